"""``opspec explain``: an op's schedule in words, any stage of the compiler, or a diagnostic code."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from opspec.diagnostics import Diagnostic, Failure
from opspec.driver.select import Target, choose_ops, split_target
from opspec.driver.targets import target as target_of
from opspec.ir.program import Boundary, Module, Op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opspec.driver.compile import Compiled
    from opspec.driver.library import Relative
    from opspec.driver.targets import Target as Architecture
    from opspec.emit.kernel_launch import KernelLaunch

CARDS = ("h200", "a100", "b200", "mi300x", "l40s")

_CODE = re.compile(r"[Oo][Pp]\d{1,9}")


def run(options: argparse.Namespace) -> int:
    """Print the explanation."""
    if _CODE.fullmatch(options.spec) and not Path(options.spec).exists():
        from opspec.driver.codes import find_code, page

        print(page(find_code(options.spec.upper())))
        return 0
    from opspec.driver import stages
    from opspec.frontend import load

    target = split_target(options.spec)
    if options.stage == "syntax":
        print(stages.syntax_text(target.spec))
        return 0
    module = load(target.spec.path)
    chosen = [(op, stages.boundary_of(op, options.boundary)) for op in _ops(module, target, options.boundary)]
    library: Sequence[Relative] = ()
    if options.stage is None:
        from opspec.driver.library import library_of, relatives_in

        library = relatives_in(library_of(target.spec))  # once, and before torch is there: it may fork
    refused: list[Diagnostic] = []
    for k, (op, boundary) in enumerate(chosen):
        try:
            text = _explained(module, target, op, boundary, options, library)
        except Failure as failure:
            refused += failure.diagnostics
        else:
            print("\n" * (k > 0) + text.rstrip())
    if refused:
        raise Failure(*refused)
    return 0


def _ops(module: Module, target: Target, boundary: str) -> tuple[Op, ...]:
    """The ops that are meant; with a boundary and no op named, those that have it."""
    ops = choose_ops(module, target)
    having = tuple(op for op in ops if any(b.name == boundary for b in op.boundaries))
    return having or ops


def _explained(
    module: Module,
    target: Target,
    op: Op,
    boundary: Boundary,
    options: argparse.Namespace,
    library: Sequence[Relative],
) -> str:
    from opspec.driver import stages

    if options.stage == "ir":
        from opspec.ir.show import show_op

        return show_op(op, boundary.name)
    own = stages.only(module, op)
    launches, kernel = stages.launches_of(own, target.spec)
    found = launches.get((op.name, boundary.name))
    if found is None:
        name = f"{op.name}__{boundary.name}" if boundary.name else op.name
        return f"{name}: marked `analysis`, so it has costs and no kernels"
    match options.stage:
        case "kernel":
            return kernel
        case "tile":
            return stages.tile_text(found)
        case "ptx" | "sass":
            compiled = stages.compiled_of(own, op, found, kernel, target_of(options.target))
            return stages.assembly(compiled, options.stage)
        case _:
            return _summary(module, target, op, boundary, found, kernel, options.target, library)


def _summary(
    module: Module,
    target: Target,
    op: Op,
    boundary: Boundary,
    found: tuple[KernelLaunch, ...],
    kernel: str,
    wanted: str,
    library: Sequence[Relative],
) -> str:
    from opspec.driver import stages
    from opspec.driver.explain import explain_kernel
    from opspec.schedule.parted import with_parts
    from opspec.schedule.totals import typical_of

    chosen = target_of(wanted)
    own = stages.only(module, op)
    compiled = stages.compiled_of(own, op, found, kernel, chosen) if stages.can_compile() else None
    lines = [f"{op.name} of {target.spec.shown}"]
    op = with_parts(op, typical_of(module.workloads_of(op.name)))
    boundary = next(b for b in op.boundaries if b.name == boundary.name)
    for k, launch in zip(boundary.kernels, found, strict=True):
        lines += ["", *explain_kernel(boundary, k, launch)]
    lines += _questions(module, target, op, boundary, found, compiled or [], chosen, library)
    return "\n".join([*lines, "", *_resources(compiled, chosen)])


def _questions(
    module: Module,
    target: Target,
    op: Op,
    boundary: Boundary,
    found: tuple[KernelLaunch, ...],
    compiled: Sequence[Compiled],
    chosen: Architecture,
    library: Sequence[Relative],
) -> list[str]:
    """Kind of problem, patterns, passes, neighbours, limits, and other specs with the same pattern."""
    from opspec.analysis.machine import load as machine
    from opspec.driver.library import others
    from opspec.driver.pattern import pattern_of
    from opspec.driver.questions import Asked, answers

    blocks = {(c.kernel, c.workload): c.options for c in compiled}
    asked = Asked(
        module=module,
        op=op,
        boundary=boundary,
        launches=found,
        machine=next((m for m in map(machine, CARDS) if m.target == chosen.name), machine(CARDS[0])),
        programs=chosen.limits.multiprocessors,
        folder=target.spec.path.resolve().parent,
        blocks=blocks,
    )
    own = (target.spec.shown, op.name)
    return answers(asked, [others(pattern_of(launch.plan), own, library) for launch in found])


def _resources(compiled: Sequence[Compiled] | None, chosen: Architecture) -> list[str]:
    """What the installed Triton makes of the first choices, or why that is not known."""
    if compiled is None:
        return ["resources: not compiled, torch and triton are not installed"]
    lines = [f"first choices, compiled for {chosen.name} without a GPU"]
    for c in compiled:
        blocks = ", ".join(f"{k} {v}" for k, v in c.options.items() if k.startswith("BLOCK"))
        lines.append(f"  {c.workload}: {c.kernel.lstrip('_')}")
        lines.append(
            f"    {blocks}; {_count(c.options['num_warps'], 'warp')}, {_count(c.options['num_stages'], 'stage')}"
        )
        used = [f"{c.shared} B shared memory"]
        if c.registers is not None:
            used = [f"{c.registers} registers, {c.spills} B spilled", *used]
        if c.occupancy is not None:
            used.append(f"occupancy {c.occupancy:.0%}")
        lines.append(f"    {', '.join([*used, *(['wgmma'] if c.wgmma else [])])}")
    return lines


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
