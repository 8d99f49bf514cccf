"""How many distinct addresses a set of accesses touches (semantics, rule 19).

Each access becomes a set over the axes of its tensor. Where every axis is an index
plus a constant, or an interval, that set is described by constraints on the axes
(a ``Region``), and unions of regions are exact by inclusion and exclusion. Axes with a
stride live in their residue class. Everything else is a number of addresses with a
key, equal for accesses that touch the same elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import sympy

from opspec.analysis.costs.accesses import Access
from opspec.analysis.costs.axes import Count, Opaque, Region, axis, image_of_axes
from opspec.analysis.lattice import Domain, Facts, Inexact, count_points, project
from opspec.analysis.lattice.count import components
from opspec.analysis.lattice.domain import data_in, simplify
from opspec.analysis.lattice.series import indicator
from opspec.analysis.lattice.symbols import smallest, to_sympy
from opspec.ir.integers import ONE, FloorDiv, Int, index

_MOST_REGIONS = 6


def count_addresses(accesses: Sequence[Access], extents: tuple[Int, ...], facts: Facts) -> Count:
    """Distinct elements of a tensor that any of the accesses touches."""
    regions: list[Region] = []
    opaque: list[Opaque] = []
    size = sympy.Mul(*(to_sympy(e, facts) for e in extents))
    for access in accesses:
        try:
            image = _image(access, extents, facts)
        except Inexact as reason:
            return Count(size, False, str(reason))
        if isinstance(image, Opaque):
            if not any(o.key == image.key and o.guards <= image.guards for o in opaque):
                opaque = [o for o in opaque if o.key != image.key or not image.guards <= o.guards]
                opaque.append(image)
        elif image not in regions:
            regions.append(image)
    if any(_is_whole(r, extents, facts) for r in regions):
        return Count(size)
    regions = _maximal(regions, facts)
    try:
        return _joined(regions, opaque, size, len(extents), facts)
    except Inexact as reason:
        return Count(size, False, str(reason))


def _joined(regions: list[Region], opaque: list[Opaque], size: sympy.Expr, rank: int, facts: Facts) -> Count:
    """Regions and opaque sets of one tensor together."""
    if opaque and (regions or len(opaque) > 1):
        parts = [o.count.value for o in opaque]
        if regions:
            parts.append(_union(regions, rank, facts).value)
        return Count(smallest(size, sympy.Add(*parts)), False, "accesses of different kinds may overlap")
    if opaque:
        return opaque[0].count
    return _union(regions, rank, facts)


def _is_whole(region: Region, extents: tuple[Int, ...], facts: Facts) -> bool:
    if any(s != 1 for s, _ in region.strides):
        return False
    inside = [b for k, e in enumerate(extents) for b in (axis(k), e - 1 - axis(k))]
    return all(facts.proves(c, inside, least=1) for c in region.constraints)


def _maximal(regions: list[Region], facts: Facts) -> list[Region]:
    """The regions that no other one contains."""
    kept = list(regions)
    for r in regions:
        if any(o is not r and _contains(o, r, facts) for o in kept):
            kept.remove(r)
    return kept


def _contains(outer: Region, inner: Region, facts: Facts) -> bool:
    return outer.strides == inner.strides and all(
        facts.proves(c, inner.constraints) for c in outer.constraints
    )


def _union(regions: list[Region], rank: int, facts: Facts) -> Count:
    """Inclusion and exclusion over the regions."""
    if len(regions) > _MOST_REGIONS:
        total = sympy.Add(*(_size(r, rank, facts) for r in regions))
        return Count(total, False, f"{len(regions)} overlapping accesses")
    total = sympy.Integer(0)
    for many in range(1, len(regions) + 1):
        for chosen in combinations(regions, many):
            common = _common(chosen)
            if common == "unknown":
                summed = sympy.Add(*(_size(r, rank, facts) for r in regions))
                return Count(summed, False, "accesses with different strides may overlap")
            if isinstance(common, Region):
                total += (-1) ** (many + 1) * _size(common, rank, facts)
    return Count(total)


def _common(regions: Sequence[Region]) -> Region | str | None:
    """The intersection: a region, None if empty, "unknown" if their strides differ."""
    for pairs in zip(*(r.strides for r in regions), strict=True):
        if len({s for s, _ in pairs}) > 1:
            return "unknown"
    if len({r.strides for r in regions}) > 1:
        return None
    return Region(tuple(simplify(c for r in regions for c in r.constraints)), regions[0].strides)


def _size(region: Region, rank: int, facts: Facts) -> sympy.Expr:
    return count_points(Domain(tuple(f"#{k}" for k in range(rank)), region.constraints), facts)


def _image(access: Access, extents: tuple[Int, ...], facts: Facts) -> Region | Opaque:
    domain = access.domain
    at = tuple(facts.canonical(e) for e in access.at)
    if access.clipped:
        domain = domain.where(
            c for e, n in zip(at, extents, strict=True) if not e.tensors() for c in (e, n - 1 - e)
        )
    at, domain = _divisions_named(at, domain)
    used = frozenset().union(*(e.free_indices() for e in at)) if at else frozenset()
    shadow = project(domain, used, facts)
    region_parts: list[Int] = [c for c in shadow.constraints if not c.free_indices()]
    strides: list[tuple[int, int]] = [(1, 0)] * len(at)
    counts: list[Count] = []
    keys: list[str] = []
    for axes, part in _axis_groups(at, shadow):
        found = image_of_axes(axes, at, part, extents, facts)
        if isinstance(found, Region):
            region_parts += found.constraints
            for k, s in zip(axes, found.strides, strict=True):
                strides[k] = s
            whole = Domain(tuple(f"#{k}" for k in axes), found.constraints)
            counts.append(Count(count_points(whole, facts)))
            keys.append(f"{sorted(map(str, found.constraints))}{found.strides}")
        else:
            counts.append(found.count)
            keys += found.key
            region_parts.append(-ONE)
    if all(not k.startswith("opaque") for k in keys):
        return Region(tuple(simplify(region_parts)), tuple(strides))
    guards = [c for c in shadow.constraints if not c.free_indices() and not data_in(c)]
    guards = [c for c in guards if indicator(c, facts) != 1]
    value = sympy.Mul(*(indicator(c, facts) for c in guards), *(c.value for c in counts))
    why = "; ".join(dict.fromkeys(c.why for c in counts if c.why))
    return Opaque(tuple(keys), Count(value, all(c.exact for c in counts), why), frozenset(guards))


def _divisions_named(at: tuple[Int, ...], domain: Domain) -> tuple[tuple[Int, ...], Domain]:
    """An axis ``t // P`` of an index with further conditions as an index of its own, bounded by t."""
    for k, e in enumerate(at):
        atom = e.atom
        if not isinstance(atom, FloorDiv) or atom.den.free_indices() or atom.num.index is None:
            continue
        name = atom.num.index
        elsewhere = any(name in x.free_indices() for p, x in enumerate(at) if p != k)
        coupled = any(name in c.free_indices() and len(c.free_indices()) > 1 for c in domain.constraints)
        if elsewhere or not coupled:
            continue
        u, num, den = index(f"{name}//"), atom.num, atom.den
        inside = (num - den * u, den * u + den - 1 - num)
        domain = Domain((*domain.indices, f"{name}//"), tuple(simplify([*domain.constraints, *inside])))
        at = (*at[:k], u, *at[k + 1 :])
    return at, domain


def _axis_groups(at: tuple[Int, ...], shadow: Domain) -> list[tuple[tuple[int, ...], Domain]]:
    """Axes that share indices or coupled indices, with the part of the domain that they depend on."""
    groups: list[tuple[set[int], set[str], list[Int]]] = []
    for names, constraints in components(shadow):
        axes = {k for k, e in enumerate(at) if e.free_indices() & set(names)}
        joined = (axes, set(names), list(constraints))
        for g in [g for g in groups if g[0] & axes]:
            groups.remove(g)
            joined = (joined[0] | g[0], joined[1] | g[1], [*g[2], *joined[2]])
        groups.append(joined)
    covered = set().union(*(g[0] for g in groups)) if groups else set()
    groups += [({k}, set(), []) for k in range(len(at)) if k not in covered]
    result = [
        (tuple(sorted(axes)), Domain(tuple(x for x in shadow.indices if x in names), tuple(cs)))
        for axes, names, cs in groups
    ]
    return sorted(result, key=lambda g: g[0])
