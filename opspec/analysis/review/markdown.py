"""A review as a comment on a pull request: short when nothing matters, details folded, always a heartbeat.

Every text that a user wrote passes ``escape``; everything else is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opspec.analysis.review.escape import code, one_line, words
from opspec.analysis.review.model import (
    BudgetChange,
    FormChange,
    NumberChange,
    OpReview,
    Review,
    SpecReview,
)
from opspec.analysis.review.wording import change, end_to_end, exponents, headline, heartbeat, number

MARKER = "<!-- opspec diff -->"
LONGEST = 60_000  # a comment on GitHub takes 65,536 characters
_ROWS = 40


def to_markdown(review: Review) -> str:
    """The comment; ends in a newline."""
    lines = [MARKER, f"**opspec**: {heartbeat(review)}, {code(review.base)} → {code(review.head)}", ""]
    if not review.loud:
        return "\n".join(lines[:2]) + "\n"
    lines += _urgent(review)
    sections = [s for spec in review.loud for s in _spec(spec)]
    left = LONGEST - sum(map(len, lines)) - 200
    for k, section in enumerate(sections):
        left -= len(section) + 1
        if left < 0:
            lines += [f"… and {len(sections) - k} more; see `opspec diff --format text`.", ""]
            break
        lines.append(section)
    return "\n".join(lines).rstrip() + "\n"


def _urgent(review: Review) -> list[str]:
    """What must not be folded away: broken specs and budgets, and flipped bounds."""
    lines: list[str] = []
    for spec in review.specs:
        for d in spec.faults_after[:5]:
            place = d.span.place if d.span is not None else spec.path
            lines.append(f"- ❌ {code(place)} {code(d.code.code)} {words(d.message)}")
    for spec, b in review.budgets("broken", "still broken"):
        lines.append(f"- ❌ {_budget(b)} in {code(spec.path)}: {words(b.message)}")
    for _, op in review.ops("changed"):
        for f in op.flips[:8]:
            where = f"{code(op.op)} at {code(f.workload)} on {code(f.machine)}{_of(f.boundary)}"
            lines.append(f"- ⚠️ bound of {where}: {f.before} → {f.after}")
    for spec in review.specs:
        for p in spec.pipelines:
            name = code(f"{p.pipeline}.{p.variant}" if p.variant else p.pipeline)
            note = f" ({words(p.note)})" if p.note else ""
            lines.append(f"- end to end of {name}: {end_to_end(p)}{note}")
    if len(lines) > _ROWS:
        lines = [*lines[:_ROWS], f"- … and {len(lines) - _ROWS} more"]
    return [*lines, ""] if lines else []


def _budget(b: BudgetChange) -> str:
    return f"budget {b.standing}: {code(b.text)} at {code(b.workload)}"


def _spec(spec: SpecReview) -> Iterable[str]:
    """The sections of one spec: an op each, and one for what belongs to the file."""
    file: list[str] = []
    if spec.moved_from:
        file.append(f"- moved from {code(spec.moved_from)} to {code(spec.path)}")
    if spec.faults_before and not spec.faults_after:
        file.append(f"- {code(spec.path)} was broken before and is accepted now")
    file += [
        f"- {_budget(b)} in {code(spec.path)}"
        for b in spec.budgets
        if b.standing not in ("broken", "still broken")
    ]
    if file:
        yield "\n".join([*file, ""])
    for op in spec.ops:
        if not op.quiet:
            yield "\n".join(_op(spec, op))


def _op(spec: SpecReview, op: OpReview) -> list[str]:
    title = f"<summary>{_html(op.op)}: {headline(op)} <i>({_html(spec.path)})</i></summary>"
    lines = ["<details>", title, ""]
    if op.renamed:
        lines += ["Renamed dims: " + ", ".join(f"{code(a)} → {code(b)}" for a, b in op.renamed), ""]
    lines += [f"- {words(n)}" for n in op.notes] + ([""] if op.notes else [])
    if op.recoded:
        lines += ["- the generated code differs, the closed forms do not", ""]
    lines += _forms(op.forms, alone=op.kind != "changed")
    if op.crossings:
        rows = [(code(c.workload), code(c.machine), code(c.dim), c.before, c.after) for c in op.crossings]
        lines += ["Crossing of `ai.tensor` and the ridge:", ""]
        lines += _table(("workload", "machine", "along", "before", "after"), rows)
    lines += _numbers(op.numbers)
    return [*lines, "</details>", ""]


def _forms(forms: Sequence[FormChange], *, alone: bool) -> list[str]:
    if not forms:
        return []
    if alone:
        rows = [(code(f.quantity) + _of(f.boundary), code(f.after or f.before)) for f in forms]
        return _table(("form", "closed form"), rows)
    changed = []
    for f in forms:
        grows = "; ".join(f"{code(d)}: {how}" for d, how in exponents(f)) or "same"
        leads = (
            ""
            if f.dominant_before == f.dominant_after
            else f"{_term(f.dominant_before)} → {_term(f.dominant_after)}"
        )
        changed.append((code(f.quantity) + _of(f.boundary), code(f.before), code(f.after), leads, grows))
    return _table(("form", "before", "after", "largest term", "exponents"), changed)


def _term(text: str) -> str:
    return code(text) or "all of it"


def _numbers(numbers: Sequence[NumberChange]) -> list[str]:
    rows = [
        (
            code(n.workload),
            code(n.machine) or "–",
            code(n.quantity) + _of(n.boundary),
            number(n.before, n.unit),
            number(n.after, n.unit),
            change(n),
        )
        for n in numbers[:_ROWS]
    ]
    lines = _table(("workload", "machine", "number", "before", "after", "change"), rows) if rows else []
    more = len(numbers) - len(rows)
    return [*lines, f"… and {more} more numbers.", ""] if more else lines


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return [*lines, *(f"| {' | '.join(r)} |" for r in rows), ""]


def _of(boundary: str) -> str:
    return f" of {code(boundary)}" if boundary else ""


def _html(text: str) -> str:
    """A name inside an HTML tag, where backticks mean nothing."""
    return f"<code>{words(one_line(text, 120))}</code>"
