"""``opspec bench`` of several specs: generate all drivers, and measure them in one process."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opspec.cli.bench import check_names, need_torch, read_tuned
from opspec.diagnostics import Failure
from opspec.diagnostics.render import render_text
from opspec.driver.files import Spec, find_specs, write_atomically
from opspec.driver.select import Target, choose_ops, no_such_op, split_target
from opspec.ir.program import Module, Op


@dataclass(frozen=True, slots=True)
class Chosen:
    """A spec and the ops of it that are to be measured."""

    spec: Spec
    module: Module
    ops: tuple[Op, ...]


def run_suite(options: argparse.Namespace) -> int:
    """Measure what is asked for; the worst status, 2 if a spec can't be generated."""
    from opspec.driver.targets import limits
    from opspec.emit.package import build_package
    from opspec.runtime.bench.model import UsageError
    from opspec.runtime.bench.suite import measure

    chosen, refused = _load(_targets(options.targets), options.op)
    check_names([w.name for c in chosen for op in c.ops for w in c.module.workloads_of(op.name)], options.at)
    need_torch()
    with tempfile.TemporaryDirectory(prefix="opspec-bench-") as folder:
        packages: dict[Path, list[str]] = {}
        for place, c in enumerate(chosen):
            try:
                package = build_package(c.module, c.spec.shown, limits())
            except Failure as failure:
                refused = _refuse(failure)
                continue
            path = Path(folder) / str(place) / c.spec.package.name
            for name in ("kernel.py", "bench.py"):
                write_atomically(path / name, package.files[name])
            _place_tuned(options.tuned, c.spec, path)
            packages[path] = [op.name for op in c.ops]
        options.op = []  # which ops of which package is decided
        try:
            return max(refused, measure(packages, options)) if packages else refused
        except UsageError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2


def _targets(texts: Sequence[str]) -> list[Target]:
    """Each spec once, and of one that is named with ops only these."""
    found: list[Target] = []
    for text in texts:
        if Path(text).is_dir():
            found += [Target(spec, "") for spec in find_specs([text])]
        else:
            found.append(split_target(text))
    return found


def _load(targets: Sequence[Target], wanted: Sequence[str]) -> tuple[list[Chosen], int]:
    """The specs with the ops that are to be measured, and 2 if one of them can't be read."""
    from opspec.frontend import load

    modules: dict[Path, tuple[Spec, Module, dict[str, Op]]] = {}
    refused = 0
    for target in targets:
        key = target.spec.path.resolve()
        try:
            if key not in modules:
                modules[key] = (target.spec, load(target.spec.path), {})
            _, module, ops = modules[key]
            ops |= {op.name: op for op in (choose_ops(module, target) if module.ops or target.op else ())}
        except Failure as failure:
            if target.op:
                raise
            refused = _refuse(failure)
    known = [name for _, _, ops in modules.values() for name in ops]
    for name in wanted:
        if name not in known:
            first = next(iter(modules.values()))[0]
            raise Failure(no_such_op(Target(first, name), known))
    chosen = [
        Chosen(spec, module, tuple(op for name, op in ops.items() if not wanted or name in wanted))
        for spec, module, ops in modules.values()
    ]
    return [c for c in chosen if any(c.module.workloads_of(op.name) for op in c.ops)], refused


def _refuse(failure: Failure) -> int:
    print(render_text(failure.diagnostics), file=sys.stderr, flush=True)
    return 2


def _place_tuned(tuned: str | None, spec: Spec, path: Path) -> None:
    """Put what ``opspec tune`` found beside the kernels: from its file, or from its folder of packages."""
    if tuned is None:
        return
    source = Path(tuned)
    if source.is_dir():
        source = source / spec.package / "tuned.json"
        if not source.is_file():
            return
    write_atomically(path / "tuned.json", read_tuned(source))
