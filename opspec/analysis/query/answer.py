"""An answer, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from opspec.analysis.forms import closed_form_python, python_names, unbound

_LONGEST_FORM = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """One term of a number: where it comes from, its closed form and its value if known."""

    what: str
    form: str
    value: int | float | None
    unit: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The elasticity of a value in one dim: percent for each percent; ``value`` where all is known."""

    dim: str
    form: sympy.Expr
    value: float | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``symbolic``: Python source of the closed form, or a word; ``value``: a number where all is known.

    ``word`` is set where the answer is no number: a resource, ``true``, ``false``, ``never``, a dim.
    ``moves``: the answer of ``sensitivity`` by dim.
    """

    op: str
    expr: str
    form: sympy.Expr
    word: str
    value: int | float | None
    unit: str
    notes: tuple[str, ...] = ()
    why: tuple[Why, ...] = ()
    moves: tuple[Moved, ...] = ()

    @property
    def symbolic(self) -> str:
        """The closed form as Python source."""
        return self.word or python_form(self.form, self.unit)

    def to_json(self) -> dict[str, Any]:
        """The shape that scripts rely on; ``notes``, ``why`` and ``sensitivity`` only where there are any."""
        result: dict[str, Any] = {
            "op": self.op,
            "expr": self.expr,
            "symbolic": self.symbolic,
            "value": self.value,
            "unit": self.unit,
        }
        if self.moves:
            result["sensitivity"] = [
                {
                    "dim": m.dim,
                    "symbolic": python_form(m.form, ""),
                    "value": m.value,
                    **({"note": m.note} if m.note else {}),
                }
                for m in self.moves
            ]
        if self.notes:
            result["notes"] = list(self.notes)
        if self.why:
            result["why"] = [
                {
                    "what": w.what,
                    "symbolic": w.form,
                    "value": w.value,
                    "unit": w.unit,
                    **({"note": w.note} if w.note else {}),
                }
                for w in self.why
            ]
        return result

    def to_text(self) -> str:
        """A few lines: the number first, then the form, the terms and the notes."""
        shown = {"math.inf": "oo", "-math.inf": "-oo"}.get(self.symbolic, self.symbolic)
        lines = [shown if self.word or self.value is None else show(self.value, self.unit)]
        if self.word == "" and self.value is None and self.unit:
            lines[0] += f"  [{self.unit}]"
        if self.word == "" and self.value is not None and unbound(self.form):
            lines.append(f"= {self.symbolic}")
        lines += self._table()
        if self.why:
            wide = max(len(w.what) for w in self.why)
            for w in self.why:
                value = "" if w.value is None else f" = {show(w.value, w.unit)}"
                lines.append(f"  {w.what:<{wide}}  {w.form}{value}{f'  ({w.note})' if w.note else ''}")
        lines += [f"note: {n}" for n in self.notes]
        return "\n".join(lines)

    def _table(self) -> list[str]:
        """A line for each dim of a sensitivity, columns below each other."""
        wide = max((len(m.dim) for m in self.moves), default=0)
        rows = []
        for m in self.moves:
            number = "" if m.value is None else f"{m.value:+.4g}" if m.value else "0"
            form = python_form(m.form, "") if unbound(m.form) else ""
            form = form if m.value is None or len(form) <= _LONGEST_FORM else ""
            rows.append(f"  {m.dim:<{wide}}  {number:<10} {m.note or (f'= {form}' if form else '')}".rstrip())
        return rows

    def to_latex(self) -> str:
        """The closed form in LaTeX; of a sensitivity a table."""
        if self.moves:
            rows = (
                rf"{_latex_form(sympy.Symbol(m.dim))} & {_latex_form(m.form)} & "
                + ("" if m.value is None else f"{m.value:.4g}")
                for m in self.moves
            )
            return "\\begin{array}{lll}\n" + " \\\\\n".join(rows) + "\n\\end{array}"
        return rf"\text{{{self.word}}}" if self.word else _latex_form(self.form)


def _latex_form(form: sympy.Expr) -> str:
    names = {s: sympy.Symbol(rf"\mathrm{{{_latex(s.name)}}}") for s in form.free_symbols if len(s.name) > 1}
    return str(sympy.latex(form.xreplace(names)))


def _latex(name: str) -> str:
    return "".join(rf"\{c}" if c in "_%&#$" else c for c in name if c not in "\\{}^~")


def python_form(form: sympy.Expr, unit: str) -> str:
    """Python source of a form; counts of FLOPs and bytes divide exactly."""
    if form is -sympy.oo:
        return "-math.inf"
    names = python_names(unbound(form))
    return closed_form_python(form, names, integer=unit in ("FLOP", "B"))


def show(value: float, unit: str) -> str:
    """A number with its unit, for people: SI prefixes, and GiB beside GB where that is exact."""
    if unit == "B":
        return _bytes(value)
    if unit == "s":
        return _scaled(value, ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (0.0, "ns")), 1e-9)
    if unit in ("FLOP", "MAC", "FLOP/s", "MAC/s", "B/s"):
        text = _si(value, unit)
        whole = unit in ("FLOP", "MAC") and isinstance(value, int) and value >= 1000
        return f"{value} {unit} ({text})" if whole else text
    number = f"{value}" if isinstance(value, int) else f"{value:.6g}"
    return f"{number} {unit}".rstrip()


def _bytes(value: float) -> str:
    text = f"{value} B" if isinstance(value, int) else f"{value:.6g} B"
    if value < 1000:
        return text
    for size, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value % size == 0:
            return f"{text} ({_si(value, 'B')} = {int(value // size)} {name})"
    return f"{text} ({_si(value, 'B')})"


def _si(value: float, unit: str) -> str:
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.6g} {prefix}{unit}"
    return f"{value:.6g} {unit}"


def _scaled(value: float, steps: tuple[tuple[float, str], ...], smallest: float) -> str:
    for size, name in steps:
        if abs(value) >= size and value:
            return f"{value / (size or smallest):.6g} {name}"
    return f"{value:.6g} s"
