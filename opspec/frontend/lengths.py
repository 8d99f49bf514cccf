"""What a workload says of lengths that are data: values, a distribution, a mean, a record.

They give the moments (Σt, Σt²) that costs of ragged loops are written in; never the maximum.
"""

from __future__ import annotations

from fractions import Fraction

from opspec.diagnostics import Diagnostic
from opspec.frontend import syntax as s
from opspec.frontend.faults import grouping
from opspec.frontend.traffic import Reader
from opspec.ir.dtypes import DType
from opspec.ir.integers import Datum, Int
from opspec.ir.program import Lengths, Op, Tensor, Workload


def tensor(name: str, op: Op) -> Tensor | None:
    """The integer tensor of that name that an op only reads, or None."""
    found = op.tensor(name)
    whole = found is not None and isinstance(found.dtype, DType) and found.dtype.name in ("i32", "i64")
    return found if found is not None and whole and found.role == "in" else None


def lengths(setting: s.Setting, op: Op, report: list[Diagnostic], read: Reader) -> Lengths | None:
    """The lengths of a setting, or a report."""
    name = setting.name.text
    found = tensor(name, op)
    assert found is not None
    values: list[tuple[Fraction, Fraction]] = []
    if setting.kind == "recorded":
        values = [(Fraction(w), Fraction(v[0])) for w, v in read(setting, (name,))]
    for value, weight in setting.cases:
        number = _number(value)
        if number is None or number < 0 or (setting.kind != "averaged" and number.denominator != 1):
            report.append(
                grouping.setting(
                    value.span, f"`{name}` is given `{value.span.text[:40]}`, which is no length"
                )
            )
            return None
        share = Fraction(1) if weight is None else _number(weight)
        if weight is not None and (share is None or share <= 0):
            report.append(
                grouping.setting(weight.span, f"a weight is a positive number, not `{weight.span.text[:40]}`")
            )
            return None
        values.append((share or Fraction(1), number))
    if not values:
        return None
    return Lengths(
        tensor=name,
        extents=found.extents,
        values=tuple(values),
        exact=setting.kind != "averaged",
        each=setting.kind == "listed",
    )


def _number(expr: s.Expr) -> Fraction | None:
    match expr:
        case s.Number(value=int(value)):
            return Fraction(value)
        case s.Number(value=value):
            return Fraction(repr(value))
        case _:
            return None


def misfit(workload: Workload, op: Op, node: s.WorkloadDecl) -> Diagnostic | None:
    """The fault of lengths that are too many, too few, or longer than the op assumes."""
    spans = {x.name.text: x.span for x in node.settings}
    for known in workload.lengths:
        for _, dims in workload.cases:
            env = dict(dims)
            count = known.elements(env)
            if known.each and count != len(known.values):
                return grouping.setting(
                    spans[known.tensor],
                    f"`{known.tensor}` has {count} elements at this workload, and {len(known.values)} are listed",
                    f"list {count} values, or give a distribution: `{known.tensor} ~ {{512: 0.3, 2048: 0.7}}`",
                )
            longest = max(v for _, v in known.values)
            for a in op.assumes:
                if a.kind != "bound" or a.tensor != known.tensor or a.slack is None:
                    continue
                top = Int.of(-(-longest.numerator // longest.denominator))
                slack = _with(a.slack, known.tensor, top)
                if slack.free_indices() or slack.tensors():
                    continue
                if slack.evaluate(env) < 0:
                    return grouping.setting(
                        spans[known.tensor],
                        f"`{known.tensor}` is up to {longest}, more than the op assumes",
                        "",
                    )
    return None


def _with(slack: Int, name: str, value: Int) -> Int:
    """The slack with every element of the tensor at ``value``."""
    return slack.substitute(lambda a: value if isinstance(a, Datum) and a.tensor == name else None)
