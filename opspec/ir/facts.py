"""What an op's requirements and promises allow a proof to use."""

from __future__ import annotations

from collections.abc import Iterable

from opspec.ir.bounds import DataBound, Facts
from opspec.ir.integers import Datum, Dim, FloorDiv, Int, Mod
from opspec.ir.program import Assume, Op, Require


def facts_of(op: Op) -> Facts:
    """The facts of a checked op."""
    return facts(op.requires, op.assumes)


def facts(requires: Iterable[Require], assumes: Iterable[Assume]) -> Facts:
    """What requirements and promises allow a proof to use."""
    known: list[Int] = []
    multiples: list[tuple[str, Int]] = []
    for r in requires:
        difference = r.right - r.left
        match r.op:
            case "lt":
                known.append(difference - 1)
            case "le":
                known.append(difference)
            case "gt":
                known.append(-difference - 1)
            case "ge":
                known.append(-difference)
            case "eq":
                found = _multiple(r.left, r.right) or _multiple(r.right, r.left) or _equality(r.left, r.right)
                if found is not None and _independent(found, multiples):
                    multiples.append(found)
                else:
                    known += [difference, -difference]
            case "ne":
                pass
    data: list[DataBound] = []
    for a in assumes:
        if a.slack is None:
            continue
        for atom in a.slack.atoms():
            if isinstance(atom, Datum) and atom.tensor == a.tensor:
                at = tuple(i.index or "" for i in atom.indices)
                data.append(DataBound(a.tensor, at, a.slack))
                break
    return Facts(tuple(known), tuple(multiples), tuple(data))


def _multiple(left: Int, right: Int) -> tuple[str, Int] | None:
    """``D % k == 0`` as ``D = k * (D // k)``."""
    atom = left.atom
    if not isinstance(atom, Mod) or right.constant != 0:
        return None
    whole = atom.num.atom
    if not isinstance(whole, Dim) or whole.name in atom.den.dims():
        return None
    return whole.name, atom.den * Int.of(FloorDiv(atom.num, atom.den))


def _equality(left: Int, right: Int) -> tuple[str, Int] | None:
    """``D == E`` as a name for the same extent."""
    for a, b in ((left, right), (right, left)):
        atom = a.atom
        if isinstance(atom, Dim) and atom.name not in b.dims():
            return atom.name, b
    return None


def _independent(found: tuple[str, Int], multiples: list[tuple[str, Int]]) -> bool:
    """Whether a dim can be replaced without going round in circles."""
    taken = {name for name, _ in multiples}
    used = {d for _, value in multiples for d in value.dims()} - taken
    return found[0] not in taken | used and not found[1].dims() - {found[0]} & taken
