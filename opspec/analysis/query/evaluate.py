"""The value of a question's tree: closed forms first, numbers at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

import sympy

from opspec.analysis.codes import BAD_QUERY, BAD_UNITS, NO_ANSWER
from opspec.analysis.forms import evaluate, tidy, unbound
from opspec.analysis.lattice.symbols import symbol
from opspec.analysis.query.context import (
    OPEN,
    Context,
    broken_requirements,
    needs_machine,
    refuse,
    unknown,
    with_settings,
)
from opspec.analysis.query.functions import call
from opspec.analysis.query.names import peaks_used, resources, value_of
from opspec.analysis.query.parse import Asked, At, Call, Close, Name, Number, On, Operation
from opspec.analysis.query.quantity import NONE, PLAIN, Quantity, shared_unit, unit_of, word
from opspec.analysis.roofline import block_times, bound_of
from opspec.diagnostics import Failure
from opspec.ir.program import Require
from opspec.source import Span

_HIGHEST_POWER = 64
_LARGEST_POWER = 4096


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Evaluates trees about one context, with some dims set to numbers."""

    context: Context
    env: Mapping[str, int | Fraction]

    def value(self, asked: Asked) -> Quantity:
        """The value with the dims that are set filled in."""
        return self.fill(self.form(asked), asked.span)

    def fill(self, q: Quantity, span: Span | None = None) -> Quantity:
        """Numbers for the dims that are set; derived dims that became variables included.

        Raises: Failure where that divides by zero.
        """
        value = evaluate(q.value, self.full_env())
        if value.has(sympy.nan, sympy.zoo):
            raise refuse(
                NO_ANSWER, "at this shape it would divide by zero", span, "take extents that are not 0"
            )
        return replace(q, value=value)

    def full_env(self) -> dict[str, int | Fraction]:
        """Values of dims and of derived dims that follow from them."""
        found = dict(self.env)
        for name, form in self.context.costs.derived.items():
            number = evaluate(form, self.env)
            if name not in found and number.is_Integer:
                found[name] = int(number)
        return found

    def form(self, asked: Asked) -> Quantity:
        """The closed form of a tree, dims left open.

        Raises: Failure for unknown names, mixed units and questions without an answer.
        """
        match asked:
            case Number(digits, unit, _):
                factor, of = unit_of(unit) if unit else (sympy.Integer(1), PLAIN)
                return Quantity(sympy.Rational(digits) * factor, of)
            case Name():
                return self._name(asked)
            case Operation():
                return self._operation(asked)
            case Close(a, b, percent, span):
                return self._close(self.value(a), self.value(b), self.value(percent), span)
            case On(x, machine, _):
                return replace(self, context=replace(self.context, machine=self.context.find(machine))).form(
                    x
                )
            case At():
                return self._at(asked)
            case Call():
                return call(self, asked)
            case _:
                assert_never(asked)

    def _name(self, asked: Name) -> Quantity:
        if asked.text == "bound" and "bound" not in self.context.dims():
            return self._bound(asked)
        if asked.text == "oo" and "oo" not in self.context.dims():
            return Quantity(sympy.oo, PLAIN)
        words = set(resources())
        if asked.text in words and not asked.selector and asked.text not in self.context.dims():
            return word(asked.text)
        return value_of(asked, self.context)

    def _bound(self, asked: Name) -> Quantity:
        if self.context.machine is None:
            raise needs_machine("bound", asked.span)
        notes = peaks_used(self.context, self.context.machine, asked.span)
        blocks = block_times(
            self.context.costs, self.context.machine, self.context.boundary, traffic=self.context.traffic
        )
        if asked.selector:
            known = [b.name for b in blocks]
            if asked.selector not in known:
                raise unknown(asked.selector, known, asked.span, "kernel")
            blocks = tuple(b for b in blocks if b.name == asked.selector)
        found = bound_of(blocks, self.env)
        if found is None:
            missing = sorted(set(self.context.costs.symbols) - set(self.env))
            sums = sorted(
                {s.name for b in blocks for v in b.seconds.values() for s in v.free_symbols} - set(self.env)
            )
            what = f"dims that are open: {', '.join(missing)}" if missing else "lengths that are data"
            stated = ",".join(f"{s}=…" for s in sums)
            help = OPEN if missing else f'state what they add up to: `--set "{stated}"`'
            raise refuse(NO_ANSWER, f"what binds depends on {what}", asked.span, help)
        return word(found, *notes)

    def _operation(self, asked: Operation) -> Quantity:
        if asked.op in ("==", "!=", "<", "<=", ">", ">="):
            return self._compare(asked)
        parts = [self.form(x) for x in asked.operands]
        for q in parts:
            if q.word:
                raise refuse(BAD_UNITS, f"`{q.word}` is a word, not a number", asked.span)
        notes = tuple(dict.fromkeys(n for q in parts for n in q.notes))
        if asked.op == "neg":
            return replace(parts[0], value=-parts[0].value)
        a, b = parts
        match asked.op:
            case "add" | "sub":
                unit = shared_unit(a, b, "add" if asked.op == "add" else "subtract", asked.span)
                value = a.value + b.value if asked.op == "add" else a.value - b.value
                return Quantity(value, unit, notes=notes)
            case "mul":
                return Quantity(a.value * b.value, a.unit.times(b.unit), notes=notes)
            case "div":
                if b.value == 0:
                    raise refuse(
                        NO_ANSWER, "division by zero", asked.span, "the divisor is zero for every shape"
                    )
                return Quantity(a.value / b.value, a.unit.times(b.unit, -1), notes=notes)
            case _:
                return self._power(a, b, asked.span, notes)

    @staticmethod
    def _power(a: Quantity, b: Quantity, span: Span, notes: tuple[str, ...]) -> Quantity:
        if not (b.value.is_Integer and b.unit.plain and abs(b.value) <= _HIGHEST_POWER):
            raise refuse(BAD_QUERY, f"an exponent is a literal integer up to {_HIGHEST_POWER}", span)
        if a.value == 0 and b.value < 0:
            raise refuse(NO_ANSWER, "division by zero", span)
        n = int(b.value)
        if _size_of(a.value) * abs(n) > _LARGEST_POWER:
            raise refuse(BAD_QUERY, "the power is too large", span)
        unit = a.unit
        for _ in range(abs(n) - 1):
            unit = unit.times(a.unit)
        if n < 0:
            unit = NONE.times(unit, -1) if not unit.plain else unit
        return Quantity(a.value**n, PLAIN if n == 0 else unit, notes=notes)

    def _compare(self, asked: Operation) -> Quantity:
        a, b = (self.value(x) for x in asked.operands)
        if a.word or b.word:
            if asked.op not in ("==", "!=") or not (a.word and b.word):
                raise refuse(
                    BAD_UNITS,
                    "a resource compares only with `==` and `!=`, and only with a resource",
                    asked.span,
                )
            return word(
                "true" if (a.word == b.word) == (asked.op == "==") else "false", f"the left side is {a.word}"
            )
        shared_unit(a, b, "compare", asked.span)
        difference = tidy(a.value - b.value)
        if unbound(difference):
            raise refuse(
                NO_ANSWER,
                f"the comparison depends on {', '.join(unbound(difference))}",
                asked.span,
                "give a workload with `--at` or dims with `--set`; or ask `solve(… == …, DIM)`",
            )
        holds = {
            "==": difference == 0, "!=": difference != 0, "<": difference < 0, "<=": difference <= 0,
            ">": difference > 0, ">=": difference >= 0,
        }[asked.op]  # fmt: skip
        return word("true" if holds else "false", f"the left side is {_number(a.value)}{_suffix(a)}")

    @staticmethod
    def _close(a: Quantity, b: Quantity, percent: Quantity, span: Span) -> Quantity:
        if a.word or b.word or percent.word:
            raise refuse(BAD_UNITS, "`~` compares numbers", span)
        shared_unit(a, b, "compare", span)
        left = unbound(a.value - b.value)
        if left or unbound(percent.value):
            raise refuse(NO_ANSWER, f"the comparison depends on {', '.join(left)}", span)
        holds = sympy.Abs(a.value - b.value) <= sympy.Abs(b.value) * percent.value / 100
        return word(
            "true" if holds == sympy.true else "false", f"the left side is {_number(a.value)}{_suffix(a)}"
        )

    def _at(self, asked: At) -> Quantity:
        env: dict[str, int] = {}
        for name, tree in asked.settings:
            if name not in self.context.dims():
                raise unknown(name, list(self.context.dims()), asked.span, "dim")
            number = self.value(tree)
            if number.word or not number.value.is_Integer or number.value < 0:
                raise refuse(BAD_QUERY, f"`{name}` needs an integer that is not negative", asked.span)
            env[name] = int(number.value)
        inner = self.with_set(env, asked.span)
        q = inner.form(asked.x)
        if self.context.moments is not None:
            sums = {k: v for k, v in inner.env.items() if k not in self.context.dims()}
            q = replace(q, value=evaluate(q.value, sums))
        for name, n in env.items():
            q = replace(q, value=_set(q.value, name, n, self.context))
        return q

    def with_set(self, given: Mapping[str, int], span: Span) -> Evaluator:
        """The same evaluator with dims set; a derived dim waits in the form where others are open."""
        base = {k: v for k, v in given.items() if k not in self.context.costs.derived}
        try:
            return replace(self, env=with_settings(self.context, self.env, given, span))
        except Failure:
            if set(self.context.costs.symbols) <= {*self.env, *base}:
                raise
            return replace(self, env={**with_settings(self.context, self.env, base, span), **given})

    def variable(self, name: str, span: Span) -> tuple[sympy.Symbol, sympy.Symbol, sympy.Expr]:
        """The variable called ``name``: (its symbol, the dim that it replaces, what by)."""
        found = self.context.pinned(name)
        if found is None:
            raise unknown(name, list(self.context.dims()), span, "dim")
        return symbol(name), *found

    def broken_at(self, name: str, value: int, *, others: int = 1) -> Require | None:
        """A requirement on a dim that a value of it breaks; dims that are open count as ``others``."""
        found = self.context.pinned(name)
        if found is None:
            return None
        known = {**dict.fromkeys(self.context.costs.symbols, others), **self.env}
        number = evaluate(found[1], {**known, name: value})
        if not number.is_Integer:
            return None
        old = found[0].name
        known[old] = int(number)
        return next(
            (r for r in broken_requirements(self.context.op, known) if old in r.left.dims() | r.right.dims()),
            None,
        )

    def lever(self, name: str, span: Span) -> tuple[sympy.Symbol, sympy.Symbol, sympy.Expr]:
        """The variable that a sensitivity moves by percents."""
        return self.variable(name, span)

    def others_filled(self, form: sympy.Expr, name: str) -> sympy.Expr:
        """The form with every set dim filled in except the variable and what it replaced."""
        return evaluate(form, {k: v for k, v in self.full_env().items() if k != name})


def _set(form: sympy.Expr, name: str, n: int, context: Context) -> sympy.Expr:
    found = context.pinned(name)
    assert found is not None
    old, new = found
    return form.xreplace({old: new}).xreplace({symbol(name): sympy.Integer(n)})


def _size_of(value: sympy.Expr) -> int:
    """A measure of how fast powers of a form grow: bits of its numbers, or its highest power."""
    numbers = (max(int(abs(q.p)).bit_length(), int(q.q).bit_length()) for q in value.atoms(sympy.Rational))
    powers = (abs(int(p.exp)) * _HIGHEST_POWER // 2 for p in value.atoms(sympy.Pow) if p.exp.is_Integer)
    return max((1, *numbers, *powers))


def _number(value: sympy.Expr) -> str:
    return str(value) if value.is_Integer else f"{float(value):.6g}"


def _suffix(q: Quantity) -> str:
    text = str(q.unit)
    return f" {text}" if text else ""
