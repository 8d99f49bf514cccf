"""Questions over a workload of several shapes: FLOPs, bytes and seconds are weighted means of closed forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import sympy

from opspec.analysis.codes import NO_ANSWER
from opspec.analysis.export import number
from opspec.analysis.lattice.symbols import smallest, symbol
from opspec.analysis.query.answer import show
from opspec.analysis.query.context import Context, refuse, unknown
from opspec.analysis.query.evaluate import Evaluator
from opspec.analysis.query.parse import Asked, Name
from opspec.analysis.query.quantity import Quantity
from opspec.source import Span

Shape = Mapping[str, int | Fraction]


def mean_of(context: Context, shapes: tuple[Shape, ...], weights: tuple[float, ...]) -> Mean:
    """An evaluator of means; dims that are the same in all shapes stay variables."""
    exact = tuple(Fraction(w).limit_denominator(10**9) for w in weights)
    common = {k: v for k, v in shapes[0].items() if all(s.get(k) == v for s in shapes)}
    return Mean(context, common, shapes, tuple(sympy.Rational(w.numerator, w.denominator) for w in exact))


@dataclass(frozen=True, slots=True)
class Mean(Evaluator):
    """Evaluates with each name standing for its weighted mean over several shapes; ``env`` is what these share.

    A dim that varies is a number in each shape, times a factor of 1 by which a sensitivity moves all of them.
    """

    shapes: tuple[Shape, ...] = ()
    weights: tuple[sympy.Rational, ...] = ()

    @property
    def varying(self) -> tuple[str, ...]:
        """Dims and moments that the shapes have different numbers for."""
        return tuple(dict.fromkeys(k for s in self.shapes for k in s if k not in self.env))

    def full_env(self) -> dict[str, int | Fraction]:
        """What the shapes share, and the factors."""
        return {**Evaluator.full_env(self), **dict.fromkeys(map(_factor, self.varying), 1)}

    def _name(self, asked: Name) -> Quantity:
        head, _, rest = asked.text.partition(".")
        if head == "ai" and not asked.selector and head not in self.context.dims():
            above = self._name(Name(f"flops.{rest}" if rest else "flops", "", asked.span))
            below = self._name(Name("bytes", "", asked.span))
            return Quantity(above.value / below.value, above.unit.times(below.unit, -1))
        if asked.text == "attainable":
            return self._attainable(asked)
        parts = [Evaluator(self.context, s)._name(asked) for s in self.shapes]  # noqa: SLF001
        if parts[0].word:
            votes: dict[str, sympy.Expr] = {}
            for q, w in zip(parts, self.weights, strict=True):
                votes[q.word] = votes.get(q.word, sympy.Integer(0)) + w
            return replace(parts[0], word=max(votes, key=lambda k: votes[k]))
        forms = (_at(q.value, s, self.varying) for q, s in zip(parts, self.shapes, strict=True))
        total = sympy.Add(*(w * form for w, form in zip(self.weights, forms, strict=True)))
        return replace(parts[0], value=total / sympy.Add(*self.weights))

    def _attainable(self, asked: Name) -> Quantity:
        """The roof at the intensity of the means."""
        one = Evaluator(self.context, {})._name(asked)  # noqa: SLF001
        costs = self.context.costs
        unit = "flops.tensor" if any(t.unit == "tensor" for t in costs.flops) else "flops"
        flops, size, peak, bandwidth = (
            self._name(Name(n, "", asked.span)).value for n in (unit, "bytes", "peak", "bandwidth")
        )
        return replace(one, value=peak if size == 0 else smallest(peak, bandwidth * flops / size))

    def with_set(self, given: Mapping[str, int], span: Span) -> Evaluator:
        """The same with dims set in every shape."""
        shapes = tuple(Evaluator(self.context, s).with_set(given, span).env for s in self.shapes)
        common = {k: v for k, v in shapes[0].items() if all(s.get(k) == v for s in shapes)}
        return replace(self, env=common, shapes=shapes)

    def variable(self, name: str, span: Span) -> tuple[sympy.Symbol, sympy.Symbol, sympy.Expr]:
        """A dim that all shapes share.

        Raises: Failure for one that varies.
        """
        found = Evaluator.variable(self, name, span)
        loose = [s.name for s in (found[1], *found[2].free_symbols) if s.name in self.varying]
        if loose:
            raise refuse(
                NO_ANSWER,
                f"`{loose[0]}` differs between the shapes of the workload, so that it is no variable",
                span,
                f"set it with `--set {loose[0]}=…`, or ask at a workload of one shape",
            )
        return found

    def lever(self, name: str, span: Span) -> tuple[sympy.Symbol, sympy.Symbol, sympy.Expr]:
        """A dim that all shapes share, or the factor of one that varies."""
        if name in self.varying and name in self.context.costs.symbols:
            return symbol(_factor(name)), symbol(_factor(name)), symbol(_factor(name))
        if name not in self.context.dims():
            raise unknown(name, list(self.context.dims()), span, "dim")
        return self.variable(name, span)

    def spread(self, asked: Asked, mean: Quantity) -> tuple[str, ...]:
        """The least and the greatest value over the shapes, with the dims that tell these apart."""
        if mean.word:
            return ()
        values = [Evaluator(self.context, s).value(asked) for s in self.shapes]
        if any(q.word or not q.value.is_number for q in values):
            return ()

        def at(k: int) -> str:
            shown = number(values[k].value)
            dims = (d for d in self.context.costs.symbols if d in self.varying and d in self.shapes[k])
            where = ", ".join(f"{d} = {self.shapes[k][d]}" for d in dims)
            text = "an unknown value" if shown is None else show(shown, str(values[k].unit))
            return f"{text} at {where}" if where else text

        order = sorted(range(len(values)), key=lambda k: values[k].value)
        low, high = order[0], order[-1]
        return () if values[low].value == values[high].value else (f"from {at(low)} to {at(high)}",)


def _factor(name: str) -> str:
    """The name of the factor of a dim that varies; no user's name begins so."""
    return f"~{name}"


def _at(form: sympy.Expr, shape: Shape, varying: tuple[str, ...]) -> sympy.Expr:
    """The form with numbers for the dims that vary, each times its factor."""
    found = {}
    for name in varying:
        if name in shape:
            value = Fraction(shape[name])
            found[symbol(name)] = sympy.Rational(value.numerator, value.denominator) * symbol(_factor(name))
    return form.xreplace(found)
