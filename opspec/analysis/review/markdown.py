"""A review as a comment on a pull request: short when nothing matters, details folded, always a heartbeat.

Every text that a user wrote passes ``escape``; everything else is ours.
"""

from __future__ import annotations

from collections.abc import Iterable

from opspec.analysis.review import tables
from opspec.analysis.review.escape import code, one_line, words
from opspec.analysis.review.model import BudgetChange, OpReview, Review, SpecReview
from opspec.analysis.review.wording import end_to_end, flips, headline, heartbeat

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
        for (workload, boundary, before, after), machines in flips(op).items():
            where = f"{code(op.op)} at {code(workload)}{tables.of(boundary)}"
            lines.append(f"- ⚠️ bound of {where}: {before} → {after} on {', '.join(map(code, machines))}")
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
    lines += tables.forms(op.forms, alone=op.kind != "changed")
    lines += tables.crossings(op.crossings)
    lines += tables.numbers(op.numbers)
    return [*lines, "</details>", ""]


def _html(text: str) -> str:
    """A name inside an HTML tag, where backticks mean nothing."""
    return f"<code>{words(one_line(text, 120))}</code>"
