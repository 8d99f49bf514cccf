"""How many distinct addresses a set of accesses touches (semantics, rule 19).

Each access becomes a set over the axes of its tensor. Where every axis is an index
plus a constant, or an interval, that set is described by constraints on the axes
(a ``Region``), and unions of regions are exact by inclusion and exclusion. Axes with a
stride live in their residue class. Everything else is a number of addresses with a
key, equal for accesses that touch the same elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import sympy

from opspec.analysis.costs.accesses import Access
from opspec.analysis.lattice import Domain, Facts, Inexact, canonical, count_points, project
from opspec.analysis.lattice.count import components, interval
from opspec.analysis.lattice.domain import data_in, simplify
from opspec.analysis.lattice.series import indicator
from opspec.analysis.lattice.symbols import smallest, to_sympy
from opspec.ir.integers import ONE, ZERO, Datum, FloorDiv, Index, Int, Mod, floor_div, index, least

_MOST_REGIONS = 6


@dataclass(frozen=True, slots=True)
class Count:
    """Distinct addresses: a closed form, exact or an upper bound with the reason."""

    value: sympy.Expr
    exact: bool = True
    why: str = ""


@dataclass(frozen=True, slots=True)
class Region:
    """Addresses by constraints on the axes ``#0, #1, …``; ``strides``: an axis ``k`` with ``(s, r)``
    holds only ``s * #k + r``."""

    constraints: tuple[Int, ...]
    strides: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Opaque:
    """Addresses known by number only. ``key`` is equal for equal sets, where ``guards`` on dims hold."""

    key: tuple[str, ...]
    count: Count
    guards: frozenset[Int] = frozenset()


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


def _joined(
    regions: list[Region], opaque: list[Opaque], size: sympy.Expr, rank: int, facts: Facts
) -> Count:
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
    inside = [b for k, e in enumerate(extents) for b in (_axis(k), e - 1 - _axis(k))]
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


def _axis(k: int) -> Int:
    return index(f"#{k}")


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
        found = _part(axes, at, part, extents, facts)
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


def _part(
    axes: tuple[int, ...], at: tuple[Int, ...], domain: Domain, extents: tuple[Int, ...], facts: Facts
) -> Region | Opaque:
    """The image of a group of axes that depend on nothing else."""
    exprs = tuple(at[k] for k in axes)
    if any(e.tensors() for e in exprs):
        return _gathered(axes, exprs, domain, extents, facts)
    shifted = _shifted(axes, exprs, domain)
    if shifted is not None:
        return shifted
    if len(axes) == 1:
        found = _one_axis(axes[0], exprs[0], domain, extents, facts)
        if found is not None:
            return found
    split = _divided(axes, exprs, domain, facts)
    if split is not None:
        return split
    key = ("opaque", str(axes), *_key(exprs, domain))
    limit = sympy.Mul(*(to_sympy(extents[k], facts) for k in axes))
    if _injective(exprs, domain, facts):
        return Opaque(key, Count(count_points(domain, facts)))
    points = count_points(domain, facts)
    return Opaque(key, Count(smallest(points, limit), False, "an index expression that may repeat addresses"))


def _key(exprs: tuple[Int, ...], domain: Domain) -> tuple[str, ...]:
    order = tuple(dict.fromkeys(a.name for e in exprs for a in e.atoms() if isinstance(a, Index)))
    names = {x: f"#{k}" for k, x in enumerate(order)}
    return (*(str(e.rename(names)) for e in exprs), *canonical(domain, order))


def _shifted(axes: tuple[int, ...], exprs: tuple[Int, ...], domain: Domain) -> Region | None:
    """Each axis its own index plus a constant, a literal stride allowed."""
    rules: dict[str, Int] = {}
    strides: list[tuple[int, int]] = []
    constraints: list[Int] = []
    for k, e in zip(axes, exprs, strict=True):
        if not e.free_indices():
            constraints += [_axis(k) - e, e - _axis(k)]
            strides.append((1, 0))
            continue
        split = e.affine(domain.indices)
        if split is None or len(split[0]) != 1:
            return None
        (name, factor), rest = next(iter(split[0].items())), split[1]
        stride, offset = factor.constant, rest.constant
        if name in rules or stride is None or stride == 0:
            return None
        if stride in (1, -1):
            rules[name] = (_axis(k) - rest) * stride
            strides.append((1, 0))
        else:
            if stride < 0 or offset is None:
                return None
            rules[name] = _axis(k) - offset // stride
            strides.append((stride, offset % stride))
    def replace(atom: object) -> Int | None:
        return rules.get(atom.name) if isinstance(atom, Index) else None

    constraints += [c.substitute(replace) for c in domain.constraints]
    return Region(tuple(simplify(constraints)), tuple(strides))


def _one_axis(
    k: int, e: Int, domain: Domain, extents: tuple[Int, ...], facts: Facts
) -> Region | Opaque | None:
    """One axis: an interval where it provably is one, else the size of a window sum."""
    free = sorted(e.free_indices())
    mixed = [c for c in domain.constraints if len(c.free_indices()) != 1]
    clip = [c for c in mixed if c in (e, extents[k] - 1 - e)]
    if len(clip) != len(mixed):
        return None
    boxes = {
        name: interval(name, tuple(c for c in domain.constraints if c.free_indices() == {name}), facts)
        for name in free
    }
    found = _divided_axis(k, e, boxes, domain, facts) if len(free) == 1 and not mixed else None
    if found is None:
        split = e.affine(free)
        found = split and _window(k, e, split, boxes, bool(clip), extents[k], domain, facts)
    guards = [size - 1 for _, size in boxes.values() if not facts.positive(size)]
    if found is None or not guards:
        return found
    if isinstance(found, Region):
        return Region(tuple(simplify([*found.constraints, *guards])), found.strides)
    value = sympy.Mul(found.count.value, *(indicator(g, facts) for g in guards))
    return Opaque(found.key, Count(value, found.count.exact, found.count.why))


def _divided_axis(
    k: int, e: Int, boxes: dict[str, tuple[Int, Int]], domain: Domain, facts: Facts
) -> Region | Opaque | None:
    """``(i + c) // d`` or ``(i + c) % d`` over an interval of i; None if it is neither."""
    ((name, (low, size)),) = boxes.items()
    atom = e.atom
    if not isinstance(atom, FloorDiv | Mod) or atom.den.free_indices():
        return None
    inner = atom.num.affine([name])
    if inner is None or inner[0].get(name) != ONE:
        return None
    start, den = low + inner[1], atom.den
    if isinstance(atom, FloorDiv):
        first, last = facts.quotient(start, den), facts.quotient(start + size - 1, den)
        return _interval_region(k, first, last - first + 1)
    if facts.proves(size - den, least=1):
        return _interval_region(k, ZERO, den)
    if facts.proves(start) and facts.proves(den - start - size):
        return _interval_region(k, start, size)
    number = least(size, den)
    if start == ZERO:
        return _interval_region(k, ZERO, number)
    return Opaque(("opaque", str(k), *_key((e,), domain)), Count(to_sympy(number, facts)))


def _interval_region(k: int, low: Int, size: Int) -> Region:
    return Region(tuple(simplify([_axis(k) - low, low + size - 1 - _axis(k)])), ((1, 0),))


def _window(
    k: int,
    e: Int,
    split: tuple[dict[str, Int], Int],
    boxes: dict[str, tuple[Int, Int]],
    clipped: bool,
    extent: Int,
    domain: Domain,
    facts: Facts,
) -> Region | Opaque | None:
    """Sums ``s*i + r + …`` of independent intervals, smallest coefficient first."""
    coefficients, rest = split
    terms: list[tuple[Int, Int]] = []
    low = rest
    for name, c in coefficients.items():
        start, size = boxes[name]
        sign = 1 if facts.positive(c) else -1 if facts.positive(-c) else 0
        if sign == 0:
            return None
        low = low + c * start if sign > 0 else low + c * (start + size - 1)
        terms.append((c * sign, size))
    terms.sort(key=lambda t: (t[0].constant is None, t[0].constant or 0, str(t[0])))
    length, pending = ONE, None
    for step, size in terms:
        if pending is not None:
            return None
        if facts.proves(length - step, least=1):
            length = length + step * (size - 1)
        else:
            pending = (step, size)
    if pending is None:
        region = _interval_region(k, low, length)
        if clipped:
            return Region(tuple(simplify([*region.constraints, _axis(k), extent - 1 - _axis(k)])), ((1, 0),))
        return region
    key = ("opaque", str(k), *_key((e,), domain))
    step, size = pending
    if not clipped:
        n = (size - 1) * least(step, length) + length
        return Opaque(key, Count(to_sympy(n, facts)))
    points = count_points(domain, facts)
    if facts.proves(step - length, least=1):
        return Opaque(key, Count(points))
    return Opaque(key, Count(smallest(points, to_sympy(extent, facts)), False, "a strided window over an edge"))


def _divided(
    axes: tuple[int, ...], exprs: tuple[Int, ...], domain: Domain, facts: Facts
) -> Region | None:
    """``i // d`` and ``i % d`` on two axes, over whole multiples of d: a rectangle."""
    if len(exprs) != 2 or len(domain.indices) != 1:
        return None
    name = domain.indices[0]
    atoms = [e.atom for e in exprs]
    quotient = next((k for k, a in enumerate(atoms) if isinstance(a, FloorDiv)), None)
    remainder = next((k for k, a in enumerate(atoms) if isinstance(a, Mod)), None)
    if quotient is None or remainder is None:
        return None
    q, r = atoms[quotient], atoms[remainder]
    assert isinstance(q, FloorDiv) and isinstance(r, Mod)
    if q.den != r.den or q.num != r.num or q.num.index != name:
        return None
    low, size = interval(name, domain.constraints, facts)
    many = floor_div(size, q.den)
    if low != ZERO or not (facts.divides(size, q.den) or many * q.den == size):
        return None
    parts = [ZERO] * 2
    parts[quotient], parts[remainder] = many, q.den
    constraints = [c for k, n in zip(axes, parts, strict=True) for c in (_axis(k), n - 1 - _axis(k))]
    return Region(tuple(simplify(constraints)), ((1, 0), (1, 0)))


def _injective(exprs: tuple[Int, ...], domain: Domain, facts: Facts) -> bool:
    """Whether different points have different addresses: every index is recovered from the axes."""
    free = set(domain.indices)
    known: set[str] = set()
    changed = True
    while changed:
        changed = False
        for e in exprs:
            split = e.affine(free - known)
            if split is not None and len(split[0]) == 1:
                known |= set(split[0])
                changed = bool(free - known)
                if not changed:
                    return True
                free_now = free - known
                if not free_now:
                    return True
                changed = True
                exprs = tuple(x for x in exprs if x is not e)
                break
        for a in exprs:
            for b in exprs:
                q, r = a.atom, b.atom
                if isinstance(q, FloorDiv) and isinstance(r, Mod) and (q.num, q.den) == (r.num, r.den):
                    name = q.num.index
                    if name is not None and name not in known:
                        known.add(name)
                        changed = True
    del facts
    return free <= known


def _gathered(
    axes: tuple[int, ...],
    exprs: tuple[Int, ...],
    domain: Domain,
    extents: tuple[Int, ...],
    facts: Facts,
) -> Opaque:
    """Axes addressed through data: at most the points of their indices, at most the tensor."""
    points = count_points(domain, facts)
    limit = sympy.Mul(*(to_sympy(extents[k], facts) for k in axes))
    key = ("opaque", str(axes), *_key(exprs, domain))
    data = [e.atom for e in exprs if e.tensors()]
    if all(isinstance(a, Datum) and a.tensor in facts.distinct for a in data) and _recovered(exprs, domain, facts):
        return Opaque(key, Count(points))
    return Opaque(key, Count(smallest(points, limit), False, "a gather: addresses may repeat"))


def _recovered(exprs: tuple[Int, ...], domain: Domain, facts: Facts) -> bool:
    """Whether distinct data leave no two points with one address."""
    opened: list[Int] = []
    for e in exprs:
        atom = e.atom
        opened += atom.indices if isinstance(atom, Datum) else (e,)
    return _injective(tuple(opened), domain, facts)


__all__ = ["Count", "Inexact", "count_addresses"]
