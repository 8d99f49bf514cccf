"""A review for a terminal."""

from __future__ import annotations

from opspec.analysis.review.escape import one_line
from opspec.analysis.review.model import OpReview, Review
from opspec.analysis.review.wording import (
    change,
    end_to_end,
    exponents,
    flips,
    headline,
    heartbeat,
    number,
)


def to_text(review: Review) -> str:
    """All of it, nothing folded away; ends in a newline."""
    lines = [f"opspec: {heartbeat(review)}, {one_line(review.base)} → {one_line(review.head)}"]
    for spec in review.loud:
        lines += [
            "",
            one_line(spec.path) + (f" (was {one_line(spec.moved_from)})" if spec.moved_from else ""),
        ]
        if spec.faults_before and not spec.faults_after:
            lines.append("  was broken before and is accepted now")
        lines += [
            f"  broken: {d.span.place if d.span else spec.path}: {d.code.code} {one_line(d.message)}"
            for d in spec.faults_after
        ]
        for b in spec.budgets:
            lines.append(f"  budget {b.standing}: {one_line(b.text)} at {b.workload}")
            lines += [f"    {one_line(b.message)}"] if b.message else []
        for p in spec.pipelines:
            name = f"{p.pipeline}.{p.variant}" if p.variant else p.pipeline
            lines.append(
                f"  end to end of {name}: {end_to_end(p)}" + (f" ({one_line(p.note)})" if p.note else "")
            )
        for op in spec.ops:
            if not op.quiet:
                lines += _op(op)
    return "\n".join(lines) + "\n"


def _op(op: OpReview) -> list[str]:
    lines = [f"  {op.op}: {headline(op)}"]
    if op.renamed:
        lines.append("    renamed dims: " + ", ".join(f"{a} → {b}" for a, b in op.renamed))
    lines += [f"    note: {one_line(n)}" for n in op.notes]
    for f in op.forms:
        name = f"{f.quantity} of {f.boundary}" if f.boundary else f.quantity
        if op.kind != "changed":
            lines.append(f"    {name}  {one_line(f.after or f.before)}")
            continue
        lines += [f"    {name}", f"      - {one_line(f.before)}", f"      + {one_line(f.after)}"]
        if f.dominant_before or f.dominant_after:
            lines.append(f"      largest term {f.dominant_before or 'all'} → {f.dominant_after or 'all'}")
        lines += [f"      exponent of {d}: {how}" for d, how in exponents(f)]
    for (workload, boundary, before, after), machines in flips(op).items():
        where = workload + (f", {boundary}" if boundary else "")
        lines.append(f"    bound at {where}: {before} → {after} on {', '.join(machines)}")
    for c in op.crossings:
        lines.append(f"    {c.workload} on {c.machine}, along {c.dim}: {c.before} → {c.after}")
    for n in op.numbers:
        where = (
            n.workload + (f" on {n.machine}" if n.machine else "") + (f", {n.boundary}" if n.boundary else "")
        )
        lines.append(
            f"    {where}: {n.quantity} {number(n.before, n.unit)} → {number(n.after, n.unit)}  {change(n)}".rstrip()
        )
    return lines
