"""The four questions that make a case reusable, for a page: without numbers, which stand beside them there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opspec.diagnostics import Failure
from opspec.driver.library import Relative, others
from opspec.driver.pattern import pattern_of
from opspec.driver.questions.limits import limits_of
from opspec.driver.questions.problem import products_of
from opspec.ir.program import Module, Op
from opspec.schedule.plan import Plan, schedule_kernel

QUESTIONS = (
    "What kind of problem is it?",
    "Which patterns does it use?",
    "Which limits does it have?",
    "Which other operators does it carry over to?",
)


def reuse(
    module: Module, op: Op, spec: str, library: Sequence[Relative]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(question, sentences) of an op's own kernels; none where they can't be scheduled."""
    boundary = op.boundaries[0]
    found: list[tuple[str, tuple[list[str], ...]]] = []
    for kernel in boundary.kernels:
        try:
            plan = schedule_kernel(op, boundary, kernel)
        except Failure:
            return ()
        answers = (
            list(products_of(plan)),
            list(_patterns(plan)),
            list(limits_of(op, plan, module.workloads_of(op.name))),
            others(pattern_of(plan), (spec, op.name), library),
        )
        found.append((kernel.name, answers))
    return tuple((q, tuple(_joined([(n, a[k]) for n, a in found]))) for k, q in enumerate(QUESTIONS))


def _joined(answers: Sequence[tuple[str, list[str]]]) -> Iterator[str]:
    """Sentences of all kernels: what holds for each of them once, anything else with the kernel's name."""
    common = [s for s in answers[0][1] if all(s in own for _, own in answers)]
    for name, own in answers:
        yield from (f"{name}: {s}" for s in own if s not in common)
    yield from common


def _patterns(plan: Plan) -> list[str]:
    pattern = pattern_of(plan)
    lines = [f"folds and maps: {pattern.text}"]
    lines += [f"traits: {', '.join(pattern.traits)}"] if pattern.traits else []
    variants = dict.fromkeys(v.program.variant for v in plan.variants)
    grid = ", ".join(plan.variants[0].roles.grid) or "no axis"
    lines.append(f"programs over {grid}; variants {', '.join(variants)}")
    if any(" by g" in n for v in plan.variants for n in v.program.notes):
        lines.append("online reduction: folds are rescaled beside an extreme, in one sweep")
    if any("by Chan's law" in n for v in plan.variants for n in v.program.notes):
        lines.append("tuple state: sums about means run beside these, in one sweep")
    return lines
