"""The options of measuring: of one driver, of a run of several, and of ``opspec bench``, which starts both.

Each is declared once. What differs between command lines (a file or a folder of results) they say themselves.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Options = Mapping[str, Mapping[str, Any]]


def positive(text: str) -> int:
    """A whole number of at least 1.

    Raises: ArgumentTypeError, ValueError if the text is another.
    """
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


COMMON: Options = {
    "--op": {"action": "append", "default": [], "metavar": "OP", "help": "only this op (may be repeated)"},
    "--at": {
        "action": "append",
        "default": [],
        "metavar": "WORKLOAD",
        "help": "only this workload (may be repeated); all by default",
    },
    "--json": {"type": Path, "metavar": "FILE", "help": "write the result, raw samples and all"},
    "--machine": {
        "metavar": "NAME",
        "help": "datasheet to stand beside: a name or a TOML file; by the card if left out",
    },
    "--peer": {
        "action": "append",
        "default": [],
        "metavar": "[OP=]MODULE:FUNCTION",
        "help": "another implementation to measure beside (that op), called like it; a module or a .py file",
    },
    "--peers": {
        "choices": ("none", "usual", "max"),
        "help": "torch eager and torch.compile of the formula beside it, or none, or max-autotune too (usual)",
    },
    "--no-peers": {"action": "store_true", "help": "measure the operator alone, as --peers none"},
    "--graph": {
        "action": "store_true",
        "help": "time through a captured CUDA graph, too, also what is not short",
    },
    "--warm": {"action": "store_true", "help": "afterwards, and labelled as such, with a warm L2"},
    "--quick": {"action": "store_true", "help": "a looser bound on the noise and a smaller time budget"},
    "--budget": {"type": float, "metavar": "S", "help": "seconds of sampling per shape at most"},
    "--seed": {"type": int, "metavar": "N", "help": "of the random inputs (0)"},
}

ONE: Options = {
    "--set": {"action": "append", "default": [], "metavar": "M=8192", "help": "change a dim of the workload"},
    "--dtype": {"action": "append", "default": [], "metavar": "X=bf16", "help": "choose a dtype parameter"},
    "--list": {"action": "store_true", "help": "list workloads, dims and dtypes"},
}

SEVERAL: Options = {
    "--peers-from": {
        "type": Path,
        "metavar": "FILE.toml",
        "help": "peers by op: [OP] with peers = [...] and at = [...]",
    },
    "--resume": {"action": "store_true", "help": "leave out ops whose result lies in the folder of --json"},
    "--jobs": {
        "type": positive,
        "metavar": "N",
        "help": "compile beforehand, with N processes and nothing measured meanwhile",
    },
}


def add_options(parser: argparse.ArgumentParser, group: Options, **own: Mapping[str, Any]) -> None:
    """Add the options that all command lines have, and those of a group.

    ``own``: by the name of an option, what this command line declares otherwise.
    """
    for name, declared in {**COMMON, **group}.items():
        parser.add_argument(name, **{**declared, **own.get(name.removeprefix("--"), {})})
