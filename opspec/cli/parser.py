"""Every command and option in one place."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
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
    """The whole command line. Each command's options are added when it is the one that is meant."""
    parser = Parser(
        prog="opspec", description="One source for a GPU operator's closed-form cost, kernel and benchmark."
    )
    parser.add_argument("--version", action="version", version=f"opspec {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for add_options, text in COMMANDS.items():
        name = add_options.__name__.removeprefix("_")
        p = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        p.set_defaults(run=lazy(name))
        p.add_later = add_options
    return parser


def _build(p: Parser) -> None:
    p.add_argument("paths", nargs="+", metavar="PATH", help="specs, or folders of specs")
    p.add_argument("--out", metavar="DIR", help="where packages go (generated/, or debug/ with --debug)")
    p.add_argument(
        "--debug", action="store_true", help="check used indices that tensors hold before each call"
    )
    p.add_argument(
        "--target", default="sm_90", help="compile first choices for these (sm_90,…; `none` for text only)"
    )
    p.add_argument("--check", action="store_true", help="write nothing; exit 1 if the output would differ")


def _check(p: Parser) -> None:
    p.add_argument("paths", nargs="+", metavar="PATH")
    p.add_argument("--format", choices=("text", "json", "github", "sarif"), default="text")


def _fmt(p: Parser) -> None:
    p.add_argument(
        "paths", nargs="*", metavar="PATH", help="specs, folders of specs, `-` for standard input (.)"
    )
    p.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file would change")
    p.add_argument("--diff", action="store_true", help="write nothing, show what would change; exit 1 if any")


def _new(p: Parser) -> None:
    p.add_argument("name", metavar="NAME", help="the op's name, or the path of its file")
    p.add_argument(
        "--kind", choices=("map", "reduction", "contraction", "attention", "pipeline"), default="map"
    )


def _query(p: Parser) -> None:
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


def _diff(p: Parser) -> None:
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


def _verify(p: Parser) -> None:
    from opspec.runtime.bench.options import positive

    p.add_argument("paths", nargs="+", metavar="PATH")
    p.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    p.add_argument("--cases", type=positive, default=12, metavar="N", help="cases per op and dtype (12)")
    p.add_argument("--seed", type=int, default=0)


def _bench(p: Parser) -> None:
    from opspec.runtime.bench.options import SEVERAL, add_options

    p.add_argument("targets", nargs="+", metavar="SPEC[:OP]|FOLDER")
    results = {
        "type": str,  # with a slash at its end it is a folder, though there is none yet
        "metavar": "FILE|FOLDER",
        "help": "write the result; of several specs each op's to FOLDER/OP.json",
    }
    add_options(p, SEVERAL, json=results)
    p.add_argument("--tuned", metavar="FILE|FOLDER", help="launch as `opspec tune` found (its tuned.json)")


def _tune(p: Parser) -> None:
    from opspec.runtime.bench.options import positive

    p.add_argument("targets", nargs="+", metavar="SPEC[:OP]|FOLDER")
    p.add_argument("--at", "--workload", action="append", default=[], metavar="WORKLOAD")
    p.add_argument("--out", default="generated", metavar="DIR", help="where packages are (generated/)")
    p.add_argument("--jobs", type=positive, metavar="N", help="compile beforehand with N processes")
    p.add_argument(
        "--candidates", type=positive, default=24, metavar="N", help="tried per kernel, by rank (24)"
    )
    p.add_argument("--budget", type=float, default=5.0, metavar="S", help="seconds of the last race (5)")


def _explain(p: Parser) -> None:
    p.add_argument("spec", metavar="SPEC[:OP]|CODE")
    p.add_argument("--stage", choices=("syntax", "ir", "tile", "kernel", "ptx", "sass"))
    p.add_argument("--boundary", default="", metavar="NAME")
    p.add_argument("--target", default="sm_90")


def _pipeline(p: Parser) -> None:
    p.add_argument("spec", metavar="SPEC[:NAME]")
    p.add_argument("--variant", metavar="V", help="one variant (all of them)")
    p.add_argument("--machine", metavar="NAME", help="a machine's name, or a TOML file, for every stage")
    p.add_argument("--results", action="append", default=[], metavar="FILE", help="measured times of an op")
    p.add_argument("--format", choices=("text", "json", "markdown"), default="text")


def _gate(p: Parser) -> None:
    p.add_argument("spec", metavar="SPEC[:NAME]")
    p.add_argument(
        "evidence", metavar="RESULT.json", help="what was measured, by the schema opspec.evidence/1"
    )
    p.add_argument("--machine", metavar="NAME", help="a machine's name, or a TOML file, for every stage")
    p.add_argument("--results", action="append", default=[], metavar="FILE", help="measured times of an op")
    p.add_argument("--format", choices=("text", "json", "markdown"), default="text")


def _report(p: Parser) -> None:
    p.add_argument("paths", nargs="*", metavar="RESULT.json|SPEC", help="results, specs, folders (specs/)")
    p.add_argument("--out", required=True, metavar="DIR", help="gets report.md and report.html")
    p.add_argument("--machine", action="append", default=[], metavar="NAME", help="the results' own (h200)")


def _machine(p: Parser) -> None:
    p.add_argument("action", choices=("list", "show", "schema"), nargs="?", default="list")
    p.add_argument("name", nargs="?", help="with show: a machine's name, or a TOML file")
    p.add_argument("--schema", action="store_true", help="the JSON schema of machine files")


COMMANDS: Mapping[Callable[[Parser], None], str] = {
    _build: "generate kernels, drivers and costs",
    _check: "syntax, types, shapes and budgets",
    _fmt: "lay out specs in the one style",
    _new: "write a spec to begin with",
    _query: "symbolic and numeric answers about an op's cost",
    _diff: "what a change does to the costs, bounds and budgets of every op",
    _verify: "generated kernels against the float64 reference",
    _bench: "run generated drivers on the GPU that is there, one or a whole library",
    _tune: "find faster launch options on the GPU that is there",
    _explain: "roles, rewrites, laws, resources; any stage of the compiler; a diagnostic code",
    _pipeline: "the end-to-end time of a pipeline and where a variant's gain went",
    _gate: "whether the evidence for a variant lets it out",
    _report: "rooflines, formulas, advice and measurements on one page",
    _machine: "machine profiles",
}
