"""Segmented statements: ``y[n, f] = … w[e, k, f] … for n in offs[e]..offs[e + 1]``.

The segment ``e`` is not where the statement writes: each ``n`` lies in exactly one, since
``offs`` rises from 0 to the extent of ``n`` (a promise about the data that writing the
clause makes). It becomes an index of the statement whose constraints tie it to ``n``.
"""

from __future__ import annotations

from opspec.frontend import syntax as s
from opspec.frontend.drafts import Draft
from opspec.frontend.faults import domains
from opspec.frontend.scope import Env
from opspec.ir.integers import Datum, Index, Int
from opspec.ir.program import Define, Tensor


def bind_segments(node: s.Statement, tensor: Tensor | None, draft: Draft, env: Env) -> None:
    """Make the segment of each such clause an index of the statement."""
    for condition in node.conditions:
        found = _segment(condition)
        if found is None:
            continue
        offsets, segment = found
        source = draft.scope.tensors.get(offsets)
        if env.find(segment.name) is not None or segment.name in draft.scope.names() or source is None:
            continue
        if tensor is None:
            draft.scope.fail(
                domains.target(
                    segment.span,
                    f"`{node.name.text}` has a value for each segment `{segment.name}`",
                    f"put `{segment.name}` on the left-hand side; only an output can leave it out",
                )
            )
        var = draft.variable(segment.name, segment.span)
        if len(source.extents) == 1:
            var.conditions.append(source.extents[0] - 2 - Int.of(Index(var.name)))
        env.names[segment.name] = var


def _segment(condition: s.Expr | s.Interval) -> tuple[str, s.Name] | None:
    """The offsets and the segment of ``n in offs[e]..offs[e + 1]``."""
    match condition:
        case s.Interval(
            index=s.Name(),
            lower=s.Subscript(name=lower, indices=(s.Name() as e,)),
            upper=s.Subscript(name=upper, indices=(s.Infix(op="+", a=s.Name(name=e2), b=s.Number(value=1)),)),
        ) if lower.text == upper.text and e.name == e2:
            return lower.text, e
        case _:
            return None


def segment_of(define: Define) -> tuple[str, tuple[Int, ...]] | None:
    """The segment index of a define that writes through segments, and the constraints that tie it."""
    if define.output is None:
        return None
    bare = {i.index for i in define.output.at}
    for c in define.constraints:
        for atom in c.atoms():
            if not isinstance(atom, Datum) or len(atom.indices) != 1:
                continue
            e = atom.indices[0].index
            if e is None or e in bare or e not in define.indices:
                continue
            after = Int.of(Datum(atom.tensor, (Int.of(Index(e)) + 1,)))
            for n in bare - {None}:
                low = Int.of(Index(str(n))) - Int.of(atom)
                high = after - 1 - Int.of(Index(str(n)))
                if low in define.constraints and high in define.constraints:
                    return e, (low, high)
    return None
