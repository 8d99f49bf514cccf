"""``opspec new``."""

from __future__ import annotations

import argparse
from pathlib import Path

from opspec.driver.starters import starting_spec, write_new


def run(options: argparse.Namespace) -> int:
    """Write a spec to begin with; what is there already stays."""
    path = Path(options.name)
    if path.suffix != ".op":
        path = path.with_name(f"{path.name}.op") if path.name else path
    write_new(path, starting_spec(options.kind, path.stem))
    print(f"wrote {path}")
    for command in ("check", "build", "verify"):
        print(f"  opspec {command} {path}")
    return 0
