"""What a question is asked about: an op, a boundary, dtypes, a machine, a schedule's traffic."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import sympy

from opspec.analysis.codes import NO_ANSWER, UNKNOWN_NAME
from opspec.analysis.costs import OpCost
from opspec.analysis.forms import evaluate, unbound
from opspec.analysis.lattice.symbols import symbol
from opspec.analysis.machine import Machine, load
from opspec.diagnostics import Code, Diagnostic, Failure
from opspec.ir.program import Op, Require
from opspec.source import Source, Span

OPEN = "give a workload with `--at`, or dims with `--set`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Everything that a name may refer to. ``traffic``: bytes by block from a schedule, if there is one.
    ``find``: a machine by name; a spec may state some of its own. ``moments``: sums over lengths that are data, as
    they follow from the numbers of a shape; None where there are no such lengths."""

    op: Op
    costs: OpCost
    boundary: str = ""
    machine: Machine | None = None
    traffic: Mapping[str, sympy.Expr] = field(default_factory=dict)
    find: Callable[[str], Machine] = load
    moments: Callable[[Mapping[str, int | Fraction]], dict[str, int | Fraction]] | None = None

    def dims(self) -> dict[str, sympy.Expr]:
        """Dims and derived dims as expressions of dims."""
        return {**self.costs.symbols, **self.costs.derived}

    def pinned(self, name: str) -> tuple[sympy.Symbol, sympy.Expr] | None:
        """How to make a dim the variable: (a dim to replace, what by).

        For a dim that is itself. For a derived ``G = Hq / Hkv`` it is ``Hq`` by ``G * Hkv``.
        None where the name is neither, or its definition can't be turned round.
        """
        if name in self.costs.symbols:
            return self.costs.symbols[name], self.costs.symbols[name]
        form = self.costs.derived.get(name)
        if form is None:
            return None
        form = form.replace(sympy.floor, lambda x: x)
        numerator, denominator = sympy.fraction(sympy.together(form))
        target = symbol(name)
        for dim in sorted(numerator.free_symbols, key=lambda s: list(self.costs.symbols).index(s.name)):
            if dim in denominator.free_symbols or sympy.degree(numerator, dim) != 1:
                continue
            slope = sympy.diff(numerator, dim)
            rest = sympy.expand(numerator - slope * dim)
            return dim, (target * denominator - rest) / slope
        return None


_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip


def broken_requirements(op: Op, env: Mapping[str, int | Fraction]) -> Iterator[Require]:
    """Every ``require`` that a shape does not satisfy; one about dims that are open is no matter."""
    whole = {k: int(v) for k, v in env.items() if v == int(v)}
    for r in op.requires:
        if r.left.dims() | r.right.dims() <= set(whole):
            try:
                fine = _HOLDS[r.op](r.left.evaluate(whole), r.right.evaluate(whole))
            except ZeroDivisionError:
                fine = False
            if not fine:
                yield r


def broken_requirement(op: Op, env: Mapping[str, int | Fraction]) -> Require | None:
    """The first of them."""
    return next(broken_requirements(op, env), None)


def with_settings(
    context: Context, env: Mapping[str, int | Fraction], given: Mapping[str, int], span: Span | None = None
) -> dict[str, int | Fraction]:
    """Numbers of dims with some set anew; a derived dim that is set changes the dim that it is made of.

    Raises: Failure if that can't be, or the shape breaks a requirement.
    """
    derived = context.costs.derived
    found = {**env, **{k: v for k, v in given.items() if k not in derived}}
    for name, value in given.items():
        if name in derived:
            place = span or written("set", f"{name}={value}")
            pinned = context.pinned(name)
            if pinned is None:
                message = f"`{name}` can't be set: its definition can't be turned round"
                raise refuse(NO_ANSWER, message, place)
            old, new = pinned
            number = evaluate(new, {**found, name: value})
            if not number.is_Integer:
                message = f"`{name}` = {value} needs {', '.join(unbound(number)) or 'whole extents'}"
                raise refuse(NO_ANSWER, message, place)
            found[old.name] = int(number)
    if given and context.moments is not None:
        found = {
            **found,
            **context.moments(found),
            **{k: v for k, v in given.items() if k not in context.dims()},
        }
    broken = broken_requirement(context.op, found) if given else None
    if broken is not None:
        dims = sorted(broken.left.dims() | broken.right.dims())
        shown = ", ".join(f"{d} = {found[d]}" for d in dims)
        place = span or written("set", ",".join(f"{k}={v}" for k, v in given.items()))
        help = "no kernel takes that shape; set dims that satisfy it"
        raise refuse(NO_ANSWER, f"the shape breaks `require {broken.text}` with {shown}", place, help)
    return found


def refuse(code: Code, message: str, span: Span | None, help: str = "") -> Failure:
    """A failure of one diagnostic."""
    return Failure(Diagnostic(code=code, message=message, span=span, help=help or code.fix))


def unknown(name: str, known: list[str], span: Span | None, what: str = "name") -> Failure:
    """The failure for a name that is not there, with the nearest and all known names."""
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    return refuse(
        UNKNOWN_NAME,
        f"there is no {what} `{name}`",
        span,
        f"{hint}known: {', '.join(f'`{k}`' for k in known)}" if known else f"there is no {what} at all",
    )


def written(option: str, text: str) -> Span:
    """The place of a name that was given as an option of a command."""
    return Span(Source(f"<{option}>", text), 0, len(text))


def needs_machine(name: str, span: Span | None) -> Failure:
    """The failure for a question that only a machine can answer."""
    return refuse(
        NO_ANSWER, f"`{name}` needs a machine", span, "give `--machine NAME`, or ask for `… on h200`"
    )
