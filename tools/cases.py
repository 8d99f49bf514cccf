"""Numbers of the case pages, computed: ``python -m tools.cases [--check]``.

A page under ``specs/cases/`` names its spec in its first line, ``<!-- spec: ../attention/decode.op -->``. Each
number stands between ``<!--= QUESTION -->`` and ``<!--/-->`` and is written anew from the answer:

    OP @ WORKLOAD [boundary NAME] [on MACHINE]: QUERY [| FORMAT]
    sfu OP @ WORKLOAD on MACHINE: QUERY [| FORMAT]      the seconds that its special function units need for it
    pipeline NAME[.VARIANT]: PATH [| FORMAT]

``PATH`` is ``total``, ``saved``, ``gain``, ``kernel``, ``ceiling``, ``step.N``, ``loss.PART`` or a stage with ``each``,
``time``, ``share``, ``count``, ``floor``, ``over``, ``roof``, ``bandwidth``, ``rate``, ``gain``, ``stage_gain``. ``FORMAT`` is a
unit (``ms``, ``GiB``, ``TFLOP/s``, ``×``, ``%``, ``count``, ``ceil``…) with significant digits: ``ms 5``. Without one, the answer as
``query`` shows it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil
from pathlib import Path

from opspec.analysis.machine import machine_of
from opspec.analysis.pipeline import Report, Sources, analyse, find_pipeline
from opspec.analysis.pipeline.compare import Comparison
from opspec.analysis.pipeline.timing import Timed
from opspec.analysis.pipeline.total import Breakdown
from opspec.analysis.query import query
from opspec.analysis.query.answer import show
from opspec.frontend import load
from opspec.ir.program import Module

FOLDER = Path(__file__).resolve().parents[1] / "specs" / "cases"
_SPEC = re.compile(r"\A<!-- spec: (\S+) -->")
_NUMBER = re.compile(r"<!--= (?P<question>[^>]*?) -->(?P<text>.*?)<!--/-->", re.DOTALL)
_ASK = re.compile(
    r"(?P<op>\w+) @ (?P<workload>\w+)(?: boundary (?P<boundary>\w+))?(?: on (?P<machine>\w+))?$"
)
_SCALES: dict[str, Fraction] = {
    "": Fraction(1), "×": Fraction(1), "%": Fraction(1, 100), "ms": Fraction(1, 10**3), "µs": Fraction(1, 10**6),
    "KiB": Fraction(2**10), "MiB": Fraction(2**20), "GiB": Fraction(2**30), "GB": Fraction(10**9),
    "TB/s": Fraction(10**12), "GB/s": Fraction(10**9), "TFLOP/s": Fraction(10**12), "GFLOP": Fraction(10**9),
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages anew, or with ``--check`` say which would change; 1 if any would."""
    parser = argparse.ArgumentParser(prog="python -m tools.cases", description="Numbers of the case pages")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page would change")
    options = parser.parse_args(argv)
    stale = [p for p in pages() if computed(p) != p.read_text(encoding="utf-8")]
    for page in stale:
        print(page.name)
        if not options.check:
            page.write_text(computed(page), encoding="utf-8")
    return 1 if stale and options.check else 0


def pages() -> list[Path]:
    """All case pages."""
    return sorted(FOLDER.glob("*.md"))


def computed(page: Path) -> str:
    """The text of a page with every number computed.

    Raises: ValueError for a question that has no answer.
    """
    text = page.read_text(encoding="utf-8")
    first = _SPEC.match(text)
    if first is None:
        raise ValueError(f"{page.name} names no spec in its first line")
    spec = (page.parent / first[1]).resolve()

    def answer(m: re.Match[str]) -> str:
        question = m["question"].strip()
        try:
            return f"<!--= {question} -->{_answer(spec, question)}<!--/-->"
        except Exception as e:
            raise ValueError(f"{page.name}: {question}: {e}") from e

    return _NUMBER.sub(answer, text)


def prose(text: str) -> str:
    """What of a page is neither computed nor code: no number may be in it."""
    for pattern in (
        _NUMBER,
        _SPEC,
        re.compile(r"```.*?```", re.DOTALL),
        re.compile(r"`[^`\n]*`"),
        re.compile(r"\]\([^)]*\)"),
    ):
        text = pattern.sub("", text)
    return text


@lru_cache(maxsize=8)
def _module(spec: Path) -> Module:
    return load(spec)


@lru_cache(maxsize=8)
def _report(spec: Path, name: str) -> Report:
    module = _module(spec)
    return analyse(module, find_pipeline(module, name), Sources(module=module, folder=spec.parent))


def _answer(spec: Path, question: str) -> str:
    asked, _, form = (part.strip() for part in question.partition("|"))
    head, _, rest = (part.strip() for part in asked.partition(":"))
    if head.startswith("pipeline "):
        name, _, variant = head.removeprefix("pipeline ").partition(".")
        return _written(_of_pipeline(_report(spec, name), variant, rest), form)
    m = _ASK.match(head.removeprefix("sfu "))
    if m is None:
        raise ValueError("neither `OP @ WORKLOAD: …` nor `pipeline NAME: …`")
    module = _module(spec)
    runnable = module.runnable(m["op"], m["workload"])
    if runnable is None:
        raise ValueError("there is no such op and workload")
    found = query(
        module, runnable[0], rest, workload=runnable[1], machine=m["machine"], boundary=m["boundary"] or ""
    )
    if found.value is None:
        return found.symbolic
    if head.startswith("sfu "):
        return _written(Fraction(found.value) / Fraction(machine_of(module, m["machine"]).sfu), form)
    return _written(Fraction(repr(found.value)), form) if form else show(found.value, found.unit)


def _of_pipeline(report: Report, variant: str, path: str) -> Fraction | None:
    comparison = report.variant(variant) if variant else None
    breakdown = comparison.after if comparison is not None else report.base
    head, _, rest = path.partition(".")
    if not rest or head in ("step", "loss"):
        return _whole(comparison, breakdown, head, rest)
    part = next(p for p in breakdown.parts if p.timed.name == head)
    if rest == "share":
        return part.share
    if rest == "gain" and comparison is not None:
        return next(c for c in comparison.changes if c.name == head).kernel
    if rest == "stage_gain" and comparison is not None:
        return next(c for c in comparison.changes if c.name == head).stage
    return _stage(part.timed, rest)


def _whole(comparison: Comparison | None, breakdown: Breakdown, head: str, rest: str) -> Fraction | None:
    if head == "total":
        return breakdown.total
    if comparison is None:
        raise ValueError(f"`{head}` is of a variant")
    match head:
        case "saved":
            return comparison.saved
        case "gain":
            return comparison.gain
        case "kernel":
            return comparison.kernel
        case "ceiling":
            return comparison.ceiling
        case "step":
            return comparison.steps[int(rest) - 1].total
        case "loss":
            return next(x.seconds for x in comparison.losses if x.what == rest)
        case _:
            raise ValueError(f"unknown `{head}`")


def _stage(t: Timed, what: str) -> Fraction:
    if what in ("each", "time", "count"):
        return {"each": t.each, "time": t.seconds, "count": t.count}[what]
    if t.bound is None:
        raise ValueError(f"stage `{t.name}` runs no op")
    match what:
        case "floor":
            return t.bound.floor
        case "over":
            return t.each - t.bound.floor
        case "roof":
            return t.bound.floor / t.each
        case "bandwidth":
            return t.bound.bytes / t.each
        case "rate":
            return t.bound.flops / t.each
        case _:
            raise ValueError(f"unknown `{what}`")


def _written(value: Fraction | None, form: str) -> str:
    if value is None:
        return "no limit"
    unit, _, digits = form.rpartition(" ") if form[-1:].isdigit() else (form, "", "")
    if unit in ("count", "ceil") and (value.denominator == 1 or unit == "ceil"):
        return f"{ceil(value):,}"
    if unit not in _SCALES:
        raise ValueError(f"unknown format `{form}`")
    number = f"{float(value / _SCALES[unit]):.{digits or 6}g}"
    return number + unit if unit in ("%", "×") else f"{number} {unit}".strip()


if __name__ == "__main__":
    sys.exit(main())
