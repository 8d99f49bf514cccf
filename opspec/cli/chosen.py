"""The specs and ops that a command over several of them is asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opspec.diagnostics import Failure
from opspec.diagnostics.render import render_text
from opspec.driver.files import Spec, find_specs
from opspec.driver.select import Target, choose_ops, no_such_op, split_target
from opspec.ir.program import Module, Op


@dataclass(frozen=True, slots=True)
class Chosen:
    """A spec and the ops of it that are to be measured."""

    spec: Spec
    module: Module
    ops: tuple[Op, ...]


def targets_of(texts: Sequence[str]) -> list[Target]:
    """Each spec once, and of one that is named with ops only these."""
    found: list[Target] = []
    for text in texts:
        if Path(text).is_dir():
            found += [Target(spec, "") for spec in find_specs([text])]
        else:
            found.append(split_target(text))
    return found


def load_chosen(targets: Sequence[Target], wanted: Sequence[str]) -> tuple[list[Chosen], int]:
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
            refused = refuse(failure)
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


def refuse(failure: Failure) -> int:
    """Say why a spec is left out, and the status of that."""
    print(render_text(failure.diagnostics), file=sys.stderr, flush=True)
    return 2
