"""Every command and option in one place."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import Any

from opspec.cli.paths import Parser
from opspec.version import VERSION


def lazy(module: str) -> Callable[[argparse.Namespace], int]:
    """The ``run`` of a command's module, imported when it is called."""

    def run(options: argparse.Namespace) -> int:
        function: Callable[[Any], int] = import_module(f"opspec.cli.{module}").run
        return function(options)

    return run


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = Parser(
        prog="opspec", description="One source for a GPU operator's closed-form cost, kernel and benchmark."
    )
    parser.add_argument("--version", action="version", version=f"opspec {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)

    p = _command(commands, "build", "generate kernels, drivers and costs")
    p.add_argument("paths", nargs="+", metavar="PATH", help="specs, or folders of specs")
    p.add_argument("--out", metavar="DIR", help="where packages go (generated/, or debug/ with --debug)")
    p.add_argument(
        "--debug", action="store_true", help="check used indices that tensors hold before each call"
    )
    p.add_argument(
        "--target", default="sm_90", help="compile first choices for these (sm_90,…; `none` for text only)"
    )
    p.add_argument("--check", action="store_true", help="write nothing; exit 1 if the output would differ")

    p = _command(commands, "check", "syntax, types, shapes and budgets")
    p.add_argument("paths", nargs="+", metavar="PATH")
    p.add_argument("--format", choices=("text", "json", "github", "sarif"), default="text")

    p = _command(commands, "fmt", "lay out specs in the one style")
    p.add_argument(
        "paths", nargs="*", metavar="PATH", help="specs, folders of specs, `-` for standard input (.)"
    )
    p.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file would change")
    p.add_argument("--diff", action="store_true", help="write nothing, show what would change; exit 1 if any")

    p = _command(commands, "new", "write a spec to begin with")
    p.add_argument("name", metavar="NAME", help="the op's name, or the path of its file")
    p.add_argument(
        "--kind", choices=("map", "reduction", "contraction", "attention", "pipeline"), default="map"
    )

    p = _command(commands, "query", "symbolic and numeric answers about an op's cost")
    p.add_argument("spec", metavar="SPEC[:OP]")
    p.add_argument("expr", metavar="EXPR", help="for instance `ai`, `bytes[x] / bytes`, `time`")
    p.add_argument("--at", metavar="WORKLOAD", help="numbers at this workload")
    p.add_argument("--set", action="append", default=[], metavar="T=8192,B=8", help="numbers at these dims")
    p.add_argument("--machine", metavar="NAME", help="a machine's name, or a TOML file")
    p.add_argument("--boundary", default="", metavar="NAME", help="another grouping into kernels")
    p.add_argument("--dtype", action="append", default=[], metavar="X=bf16", help="fix a dtype parameter")
    p.add_argument("--why", action="store_true", help="list each term by statement and tensor")
    p.add_argument("--plot", metavar="T=1..65536", help="draw the answer over the extents of a dim")
    p.add_argument("--save", metavar="FILE", help="with --plot: write a picture, .png or .svg")
    p.add_argument("--format", choices=("text", "json", "latex"), default="text")

    p = _command(commands, "diff", "what a change does to the costs, bounds and budgets of every op")
    p.paths_behind_dashes = True
    p.usage = "opspec diff [options] BASE [HEAD] [-- PATH…]"
    p.add_argument("revisions", nargs="+", metavar="REVISION", help="BASE, and HEAD if not the working tree")
    p.add_argument("--format", choices=("markdown", "json", "text"), default="text")
    p.add_argument(
        "--policy",
        choices=("never", "budget", "cost", "change"),
        default="budget",
        help="what makes the exit status 1: a broken budget (default), a longer time, any change of cost",
    )
    p.add_argument(
        "--machine",
        action="append",
        default=[],
        metavar="NAME",
        help="a machine's name, one that a spec states, or a TOML file (all that ship and that are stated)",
    )

    p = _command(commands, "verify", "generated kernels against the float64 reference")
    p.add_argument("paths", nargs="+", metavar="PATH")
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    p.add_argument("--cases", type=_positive, default=12, metavar="N", help="cases per op and dtype (12)")
    p.add_argument("--seed", type=int, default=0)

    p = _command(commands, "bench", "run generated drivers on the GPU that is there, one or a whole library")
    p.add_argument("targets", nargs="+", metavar="SPEC[:OP]|FOLDER")
    p.add_argument("--op", action="append", default=[], metavar="OP", help="only this op; may be repeated")
    p.add_argument("--at", action="append", default=[], metavar="WORKLOAD")
    p.add_argument(
        "--json", metavar="FILE|FOLDER", help="results; of several specs a folder, with OP.json for each"
    )
    p.add_argument("--machine", metavar="NAME")
    p.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="[OP=]MODULE:FUNCTION",
        help="measure it beside (that op)",
    )
    p.add_argument("--peers-from", metavar="FILE.toml", help="peers by op: `[OP]` with `peers = [...]`")
    p.add_argument(
        "--peers", choices=("none", "usual", "max"), help="torch's own beside it; max autotunes, too"
    )
    p.add_argument("--no-peers", action="store_true")
    p.add_argument("--graph", action="store_true", help="time in a CUDA graph, too, also what is not short")
    p.add_argument("--tuned", metavar="FILE|FOLDER", help="launch as `opspec tune` found (its tuned.json)")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--budget", type=float, metavar="S", help="seconds of sampling per shape at most")
    p.add_argument(
        "--jobs",
        type=_positive,
        metavar="N",
        help="compile beforehand, with N processes, nothing measured meanwhile",
    )
    p.add_argument(
        "--resume", action="store_true", help="leave out ops whose result lies in the folder of --json"
    )
    p.set_defaults(warm=False, seed=None)

    p = _command(commands, "tune", "find faster launch options on the GPU that is there")
    p.add_argument("spec", metavar="SPEC[:OP]")
    p.add_argument("--at", "--workload", action="append", default=[], metavar="WORKLOAD")
    p.add_argument("--out", default="generated", metavar="DIR", help="where packages are (generated/)")
    p.add_argument(
        "--candidates", type=_positive, default=24, metavar="N", help="tried per kernel, by rank (24)"
    )
    p.add_argument("--budget", type=float, default=5.0, metavar="S", help="seconds of the last race (5)")

    p = _command(
        commands, "explain", "roles, rewrites, laws, resources; any stage of the compiler; a diagnostic code"
    )
    p.add_argument("spec", metavar="SPEC[:OP]|CODE")
    p.add_argument("--stage", choices=("syntax", "ir", "tile", "kernel", "ptx", "sass"))
    p.add_argument("--boundary", default="", metavar="NAME")
    p.add_argument("--target", default="sm_90")

    p = _command(commands, "pipeline", "the end-to-end time of a pipeline and where a variant's gain went")
    p.add_argument("spec", metavar="SPEC[:NAME]")
    p.add_argument("--variant", metavar="V", help="one variant (all of them)")
    p.add_argument("--machine", metavar="NAME", help="a machine's name, or a TOML file, for every stage")
    p.add_argument("--results", action="append", default=[], metavar="FILE", help="measured times of an op")
    p.add_argument("--format", choices=("text", "json", "markdown"), default="text")

    p = _command(commands, "gate", "whether the evidence for a variant lets it out")
    p.add_argument("spec", metavar="SPEC[:NAME]")
    p.add_argument(
        "evidence", metavar="RESULT.json", help="what was measured, by the schema opspec.evidence/1"
    )
    p.add_argument("--machine", metavar="NAME", help="a machine's name, or a TOML file, for every stage")
    p.add_argument("--results", action="append", default=[], metavar="FILE", help="measured times of an op")
    p.add_argument("--format", choices=("text", "json", "markdown"), default="text")

    p = _command(commands, "report", "rooflines, formulas, advice and measurements on one page")
    p.add_argument("paths", nargs="*", metavar="RESULT.json|SPEC", help="results, specs, folders (specs/)")
    p.add_argument("--out", required=True, metavar="DIR", help="gets report.md and report.html")
    p.add_argument("--machine", action="append", default=[], metavar="NAME", help="the results' own (h200)")

    p = _command(commands, "machine", "machine profiles")
    p.add_argument("action", choices=("list", "show", "schema"), nargs="?", default="list")
    p.add_argument("name", nargs="?", help="with show: a machine's name, or a TOML file")
    p.add_argument("--schema", action="store_true", help="the JSON schema of machine files")
    return parser


def _command(commands: Any, name: str, text: str) -> Parser:
    parser: Parser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.set_defaults(run=lazy(name))
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value
