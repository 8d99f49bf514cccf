"""The release decision: every condition of the gate, the level, and what is missing, in words.

Missing evidence closes the gate: a metric that was not measured counts as a no.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from opspec.analysis.evidence.results import DERIVED, Results
from opspec.analysis.pipeline.compare import Comparison
from opspec.analysis.pipeline.numbers import gain, ms
from opspec.analysis.pipeline.report import Report
from opspec.ir.composition import Arithmetic, Condition, Constant, Evidence, Metric, Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One condition: ``holds`` is None where a metric is missing."""

    what: str
    holds: bool | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """``open`` only if every verdict holds."""

    evidence: Evidence
    verdicts: tuple[Verdict, ...]
    comparison: Comparison
    warnings: tuple[str, ...]

    @property
    def open(self) -> bool:
        """Whether the variant may be let out."""
        return all(v.holds for v in self.verdicts)


class _Missing(Exception):
    """A metric that was not measured."""


def decide(evidence: Evidence, results: Results, report: Report) -> Decision:
    """Judge the evidence for a variant."""
    comparison = report.variant(evidence.variant)
    derived = (comparison.gain, comparison.kernel, comparison.ceiling, comparison.saved * 1000)
    known = {k: v for k, v in zip(DERIVED, derived, strict=True) if v is not None}
    verdicts = [_level(evidence, results)]
    if results.stale:
        reason = "they are of another revision (`spec_sha256`)"
        verdicts.append(Verdict(what="results of this revision of the spec", holds=False, reason=reason))
    verdicts += [_condition(c, results, known) for c in evidence.gate]
    verdicts += _contradictions(report)
    return Decision(
        evidence=evidence,
        verdicts=tuple(verdicts),
        comparison=comparison,
        warnings=results.warnings,
    )


def _level(evidence: Evidence, results: Results) -> Verdict:
    wanted = evidence.row("level", world=True) or evidence.row("level")
    fine = results.level.casefold() in {w.strip().casefold() for w in wanted}
    said = " or ".join(f"`{w}`" for w in wanted)
    if not results.level:
        return Verdict(what="level of evidence", holds=None, reason=f"not stated; {said} is needed")
    text = f"`{results.level}`" + ("" if fine else f" is not {said}")
    return Verdict(what="level of evidence", holds=fine, reason=text)


def _contradictions(report: Report) -> list[Verdict]:
    """Numbers below a bound cannot be real, and nothing is let out on them."""
    return [
        Verdict(what=f"{f.where} is possible", holds=False, reason=f.text)
        for f in report.flags
        if f.impossible
    ]


def _condition(c: Condition, results: Results, derived: Mapping[str, Fraction]) -> Verdict:
    what = c.label or c.text
    try:
        a, b = _value(c.a, results, derived), _value(c.b, results, derived)
    except _Missing as missing:
        return Verdict(what=what, holds=None, reason=f"{missing} is missing, so `{c.text}` is not shown")
    except ZeroDivisionError:
        return Verdict(what=what, holds=None, reason=f"`{c.text}` divides by zero")
    holds = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[c.op]
    shown = f"{_number(a)} {c.op} {_number(b)}" if holds else f"{_number(a)} is not {c.op} {_number(b)}"
    return Verdict(what=what, holds=holds, reason=f"{shown}  ({c.text})" if c.label else shown)


def _value(term: Term, results: Results, derived: Mapping[str, Fraction]) -> Fraction:
    match term:
        case Constant(value=value):
            return value
        case Metric(name=name, base=base):
            table = results.base if base else {**results.metrics, **derived}
            if name not in table:
                raise _Missing(f"{'the base of ' if base else ''}`{name}`")
            return table[name]
        case Arithmetic(op=op, a=a, b=b):
            x, y = _value(a, results, derived), _value(b, results, derived)
            match op:
                case "+":
                    return x + y
                case "-":
                    return x - y
                case "*":
                    return x * y
                case "/":
                    return x / y
                case _:
                    assert_never(op)
        case _:
            assert_never(term)


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.6g}"


def summary(d: Decision) -> str:
    """Both gains in one sentence."""
    c = d.comparison
    kernel = f"kernel {gain(c.kernel)}, " if c.kernel is not None else ""
    return f"{kernel}end to end {gain(c.gain)}, {ms(abs(c.saved))} {'saved' if c.saved >= 0 else 'lost'}"
