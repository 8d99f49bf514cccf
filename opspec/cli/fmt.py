"""``opspec fmt``."""

from __future__ import annotations

import argparse
import sys
from difflib import unified_diff
from pathlib import Path

from opspec.diagnostics import Diagnostic, Failure
from opspec.driver.files import find_specs, write_atomically
from opspec.formatting import format_source
from opspec.frontend.files import read_bytes, read_stream, source_of
from opspec.frontend.loading import ordered
from opspec.source import Source


def run(options: argparse.Namespace) -> int:
    """Lay out every spec: 2 if one cannot be read, 1 if ``--check`` or ``--diff`` finds one that would change."""
    if "-" in options.paths:
        return _standard_input(options)
    broken: list[Diagnostic] = []
    changed = same = 0
    specs = find_specs(options.paths or ["."])
    for spec in specs:
        try:
            raw = read_bytes(spec.path, str(spec.path), None)
            source = source_of(raw, str(spec.path), None)
            text = format_source(source)
        except Failure as failure:
            broken += failure.diagnostics
            continue
        if raw == text.encode():
            same += 1
            continue
        changed += 1
        if options.diff:
            print(_difference(source, text), end="")
        elif options.check:
            print(f"{spec.path} would change")
        else:
            write_atomically(spec.path.resolve(), text)
    written = not (options.check or options.diff)
    print(
        _summary(changed, same, len(specs) - changed - same, written=written),
        file=sys.stderr if options.diff else sys.stdout,
    )
    if broken:
        raise Failure(*ordered(broken))
    return int(bool(changed) and not written)


def _standard_input(options: argparse.Namespace) -> int:
    """Format what comes in to standard output."""
    raw = read_stream(sys.stdin.buffer, "<stdin>")
    source = source_of(raw, "<stdin>", None)
    text = format_source(source)
    changed = raw != text.encode()
    if options.diff:
        print(_difference(source, text), end="")
    elif not options.check:
        sys.stdout.buffer.write(text.encode())
    return int(changed and (options.check or options.diff))


def _difference(source: Source, text: str) -> str:
    name = Path(source.name).as_posix()
    lines = unified_diff(
        source.text.splitlines(keepends=True), text.splitlines(keepends=True), name, f"{name} (formatted)"
    )
    shown = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    return shown or f"{name}: line ends or byte-order mark would change\n"


def _summary(changed: int, same: int, broken: int, *, written: bool) -> str:
    parts = [f"{changed} {'formatted' if written else 'would change'}", f"{same} unchanged"]
    parts += [f"{broken} with faults, left as they are"] if broken else []
    total = changed + same + broken
    return f"{total} spec{'' if total == 1 else 's'}: {', '.join(parts)}"
