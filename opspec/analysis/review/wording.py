"""Sentences and numbers that the Markdown and the plain text share."""

from __future__ import annotations

from opspec.analysis.review.model import FormChange, NumberChange, OpReview, PipelineChange, Review

_SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B": ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "FLOP": ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP"), (1.0, "FLOP")),
}


def number(value: float | None, unit: str) -> str:
    """A number with five digits and its unit."""
    if value is None:
        return "–"
    for size, name in _SCALES.get(unit, ()):
        if abs(value) >= size:
            return f"{value / size:.5g} {name}"
    return f"{value:.5g} {unit}".rstrip()


def change(n: NumberChange) -> str:
    """``−50.0%``, or a factor where it is large."""
    ratio = n.ratio
    if ratio is None:
        return ""
    if ratio >= 10 or 0 < ratio <= 0.1:
        return f"×{ratio:.4g}"
    return f"{100 * (ratio - 1):+.3g}%".replace("-", "−")


def end_to_end(p: PipelineChange) -> str:
    """``58 ms → 50.96 ms, 1.138×``; never a name that a user chose."""
    if p.before is None or p.after is None:
        return number(p.after if p.before is None else p.before, "s")
    gain = f", {p.before / p.after:.4g}×" if p.after else ""
    return f"{number(p.before, 's')} → {number(p.after, 's')}{gain}"


def heartbeat(review: Review) -> str:
    """The one line that is always there."""
    broken, still = len(review.budgets("broken")), len(review.budgets("still broken"))
    parts = [
        _count(len(review.ops("changed")), "op", "changed"),
        _count(len(review.ops("added")), "op", "added"),
        _count(len(review.ops("removed")), "op", "removed"),
        _count(sum(o.recoded for _, o in review.ops("same")), "op", "with other code at equal cost"),
        _count(sum(len(s.pipelines) for s in review.specs), "end-to-end time", "changed"),
        _count(sum(bool(s.faults_after) for s in review.specs), "spec", "broken"),
        _count(broken, "budget", "broken"),
        _count(still, "budget", "still broken"),
        _count(len(review.budgets("mended")), "budget", "mended"),
    ]
    said = ", ".join(p for p in parts if p) or "no change of cost"
    return f"{said} ({review.looked_at} spec{'' if review.looked_at == 1 else 's'} looked at)"


def headline(op: OpReview) -> str:
    """The largest consequences of a change of one op, in a few words; never a name that a user chose."""
    if op.kind in ("added", "removed"):
        return "new" if op.kind == "added" else "removed"
    if op.kind == "same":
        return "other code at equal cost" if op.recoded else "equal cost"
    parts: list[str] = []
    for quantity in ("flops.tensor", "bytes", "ai.tensor", "time"):
        found = [n for n in op.numbers if n.quantity == quantity and not n.boundary and n.ratio]
        if found:
            most = max(found, key=lambda n: abs((n.ratio or 1.0) - 1.0))
            parts.append(f"{quantity} {change(most)}")
    if op.flips:
        parts.append(f"bound {op.flips[0].before} → {op.flips[0].after}")
    if not parts:
        parts = [f"{f.quantity} differs" for f in op.forms[:2]] or ["numbers differ"]
    return ", ".join(parts)


def flips(op: OpReview) -> dict[tuple[str, str, str, str], list[str]]:
    """(workload, boundary, before, after) → the machines on which another resource binds now."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for f in op.flips:
        found.setdefault((f.workload, f.boundary, f.before, f.after), []).append(f.machine)
    return found


def exponents(form: FormChange) -> list[tuple[str, str]]:
    """(dim, ``2 → 1``) for each exponent that changed."""
    return [(d, f"{_power(a)} → {_power(b)}") for d, a, b in form.growth]


def _power(value: int | None) -> str:
    return "no power" if value is None else str(value)


def _count(n: int, what: str, how: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'} {how}" if n else ""
