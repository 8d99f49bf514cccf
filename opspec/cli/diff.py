"""``opspec diff``: what a change does to the closed forms, numbers, bounds and budgets of every op."""

from __future__ import annotations

import argparse
import sys

from opspec.cli.quick import without_collector
from opspec.diagnostics import Code, Diagnostic, Failure, register
from opspec.driver.review import review

BAD_DIFF = register(
    Code(
        code="OP674",
        title="`opspec diff` takes one or two revisions",
        why="It compares BASE with HEAD, or with the working tree where HEAD is left out.",
        example="opspec diff main feature extra",
        fix="Write `opspec diff BASE [HEAD] [-- PATH…]`.",
    )
)


def run(options: argparse.Namespace) -> int:
    """Print the review; the status follows the policy: 0, 1 for a no, 2 for a broken spec."""
    from opspec.analysis.review.policy import status

    base, head = _revisions(options.revisions)
    with without_collector():
        found = review(base, head, options.paths, options.machine)
    verdict = status(found, options.policy)
    match options.format:
        case "json":
            from opspec.analysis.review.data import to_json

            text = to_json(found, verdict)
        case "markdown":
            from opspec.analysis.review.markdown import to_markdown

            text = to_markdown(found)
        case _:
            from opspec.analysis.review.plain import to_text

            text = to_text(found)
    _print(text)
    faults = tuple(d for s in found.specs for d in s.faults_after)
    if faults and options.format != "json":
        from opspec.diagnostics import render_text

        print(render_text(faults), file=sys.stderr)
    return verdict


def _revisions(given: list[str]) -> tuple[str, str | None]:
    if len(given) > 2:
        message = f"`{given[2]}` is a third revision"
        raise Failure(
            Diagnostic(
                code=BAD_DIFF,
                message=message,
                span=None,
                help="paths come after `--`: `opspec diff BASE -- PATH`",
            )
        )
    return given[0], given[1] if len(given) == 2 else None


def _print(text: str) -> None:
    """To standard output in UTF-8, whatever the locale says."""
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(text)
        return
    buffer.write(text.encode("utf-8", "replace"))
    buffer.flush()
