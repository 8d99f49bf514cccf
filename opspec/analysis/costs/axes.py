"""The image of a few axes of a tensor that depend on no other axis.

An axis that is an index plus a constant, or an interval, becomes constraints on its
coordinate (a ``Region``); one with a literal stride lives in its residue class.
Everything else is a number of addresses with a key (``Opaque``).
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from opspec.analysis.lattice import Domain, Facts, canonical, count_points
from opspec.analysis.lattice.count import interval
from opspec.analysis.lattice.domain import simplify
from opspec.analysis.lattice.series import indicator
from opspec.analysis.lattice.symbols import smallest, to_sympy
from opspec.ir.integers import ONE, ZERO, Datum, FloorDiv, Index, Int, Mod, floor_div, index, least


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


def axis(k: int) -> Int:
    """The coordinate of axis ``k``."""
    return index(f"#{k}")


def image_of_axes(
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
            constraints += [axis(k) - e, e - axis(k)]
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
            rules[name] = (axis(k) - rest) * stride
            strides.append((1, 0))
        else:
            if stride < 0 or offset is None:
                return None
            rules[name] = axis(k) - offset // stride
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
    return Region(tuple(simplify([axis(k) - low, low + size - 1 - axis(k)])), ((1, 0),))


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
            return Region(tuple(simplify([*region.constraints, axis(k), extent - 1 - axis(k)])), ((1, 0),))
        return region
    key = ("opaque", str(k), *_key((e,), domain))
    step, size = pending
    if not clipped:
        n = (size - 1) * least(step, length) + length
        return Opaque(key, Count(to_sympy(n, facts)))
    points = count_points(domain, facts)
    if facts.proves(step - length, least=1):
        return Opaque(key, Count(points))
    return Opaque(
        key, Count(smallest(points, to_sympy(extent, facts)), False, "a strided window over an edge")
    )


def _divided(axes: tuple[int, ...], exprs: tuple[Int, ...], domain: Domain, facts: Facts) -> Region | None:
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
    if (
        not isinstance(q, FloorDiv)
        or not isinstance(r, Mod)
        or q.den != r.den
        or q.num != r.num
        or q.num.index != name
    ):
        return None
    low, size = interval(name, domain.constraints, facts)
    many = floor_div(size, q.den)
    if low != ZERO or not (facts.divides(size, q.den) or many * q.den == size):
        return None
    parts = [ZERO] * 2
    parts[quotient], parts[remainder] = many, q.den
    constraints = [c for k, n in zip(axes, parts, strict=True) for c in (axis(k), n - 1 - axis(k))]
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
    if all(isinstance(a, Datum) and a.tensor in facts.distinct for a in data) and _recovered(
        exprs, domain, facts
    ):
        return Opaque(key, Count(points))
    return Opaque(key, Count(smallest(points, limit), False, "a gather: addresses may repeat"))


def _recovered(exprs: tuple[Int, ...], domain: Domain, facts: Facts) -> bool:
    """Whether distinct data leave no two points with one address."""
    opened: list[Int] = []
    for e in exprs:
        atom = e.atom
        opened += atom.indices if isinstance(atom, Datum) else (e,)
    return _injective(tuple(opened), domain, facts)
