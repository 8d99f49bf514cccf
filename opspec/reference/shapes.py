"""Dims worth trying that an op's ``require``s allow.

A shape is drawn, repaired where a requirement names a dim (``D % 64 == 0``,
``T >= L``, ``N == 2 * K``), and dropped if it still doesn't fit or is too large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opspec.ir.integers import Dim, Int, Mod
from opspec.ir.program import Op, Require, Workload
from opspec.ir.values import Range, Reduce

RAGGED = (3, 5, 7, 11, 13, 17, 23, 31, 33, 37, 47, 63, 65, 97, 100, 127, 130, 193, 257, 300)
ALIGNED = (16, 32, 48, 64, 96, 128, 256)
STEPS = (19, 24, 33, 40, 70)
LONG = (777, 1000, 1025, 2049, 3001)
SEVERAL = 256  # of an extent's places: several steps of every chunk that a launch chooses
TRIES = 400
DOMAIN_FACTOR = 64
"""Points of a statement's domain allowed for each tensor element allowed."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Dims by name, and what is special about them in words."""

    dims: Mapping[str, int]
    words: str


def shapes(
    op: Op,
    rng: np.random.Generator,
    limit: int,
    workloads: Sequence[Workload],
    admits: Callable[[Mapping[str, int]], bool],
) -> Iterator[Shape]:
    """Endless shapes of at most ``limit`` elements a tensor, kinds in turn.

    ``admits`` is a further condition, on what data the shape allows. Raises
    ``ValueError`` if no shape at all can be found.
    """
    kinds: list[tuple[str, Callable[[], dict[str, int]]]] = [
        ("ragged", lambda: _draw(op, rng, RAGGED)),
        ("multiples of 16", lambda: _draw(op, rng, ALIGNED)),
        ("one extent is 1", lambda: _one(op, rng, 1)),
        ("one extent is 0", lambda: _one(op, rng, 0)),
        ("one long extent", lambda: _long(op, rng)),
        ("all extents 1", lambda: dict.fromkeys(op.dims, 1)),
    ]
    kinds[2:2] = [
        (f"`{w.name}` scaled down", lambda case=case: _scaled(op, dict(case), limit))  # type: ignore[misc]
        for w in workloads
        for _, case in w.cases[:1]
    ]
    kinds.insert(1, ("several steps of one extent", lambda: _steps(op, rng)))
    few = {tuple(_few(op, dict(w.cases[-1][1]), limit).items()): w.name for w in reversed(workloads)}
    kinds[2:2] = [
        (f"few programs of `{name}`", lambda dims=dims: dict(dims))  # type: ignore[misc]
        for dims, name in reversed(few.items())
    ]
    if len(kinds) % 2 == 0:
        # an odd number, so that who takes every other case sees all kinds in time
        kinds.append(kinds[1])
    barren = 0
    while True:
        for words, draw in kinds:
            found = _search(op, draw, limit, admits)
            if found is not None:
                barren = 0
                yield Shape(found, words)
            else:
                barren += 1
            if barren > len(kinds):
                raise ValueError(f"no small shape found that the requirements of `{op.name}` allow")


def _search(
    op: Op, draw: Callable[[], dict[str, int]], limit: int, admits: Callable[[Mapping[str, int]], bool]
) -> dict[str, int] | None:
    for _ in range(TRIES):
        dims = draw()
        for _ in range(6):
            if not _repair(op.requires, dims):
                break
        if admissible(op, dims) and size(op, dims) <= limit and admits(dims):
            return dims
    return None


def admissible(op: Op, dims: Mapping[str, int]) -> bool:
    """Whether every requirement holds and no extent is negative."""
    try:
        full = dict(dims) | {name: value.evaluate(dims) for name, value in op.derived}
        extents = [e.evaluate(full) for t in op.tensors for e in t.extents]
        return min([*full.values(), *extents, 0]) >= 0 and all(holds(r, full) for r in op.requires)
    except ZeroDivisionError:
        return False


def holds(require: Require, dims: Mapping[str, int]) -> bool:
    """Whether one requirement is met."""
    left, right = require.left.evaluate(dims), require.right.evaluate(dims)
    return {
        "lt": left < right,
        "le": left <= right,
        "gt": left > right,
        "ge": left >= right,
        "eq": left == right,
        "ne": left != right,
    }[require.op]


def size(op: Op, dims: Mapping[str, int]) -> int:
    """Elements of the largest tensor, or points of the largest domain over ``DOMAIN_FACTOR``."""
    full = dict(dims) | {name: value.evaluate(dims) for name, value in op.derived}
    sizes = [_product(e.evaluate(full) for e in t.extents) for t in op.tensors]
    for define in op.defines:
        ranges = define.ranges + (define.value.ranges if isinstance(define.value, Reduce) else ())
        sizes.append(_product(_length(r, full) for r in ranges) // DOMAIN_FACTOR)
    return max(sizes, default=0)


def _length(r: Range, dims: Mapping[str, int]) -> int:
    try:
        return max(r.upper.evaluate(dims) - r.lower.evaluate(dims), 0)
    except (LookupError, ZeroDivisionError):
        return max(dims.values(), default=1)


def _product(extents: Iterable[int]) -> int:
    total = 1
    for n in extents:
        total *= n
    return total


def _draw(op: Op, rng: np.random.Generator, pool: Sequence[int]) -> dict[str, int]:
    few = pool[: max(2, len(pool) // max(1, len(op.dims) - 1))] if len(op.dims) > 2 else pool
    return {d: int(rng.choice(few if rng.random() < 0.7 else pool)) for d in op.dims}


def _one(op: Op, rng: np.random.Generator, extent: int) -> dict[str, int]:
    dims = _draw(op, rng, RAGGED)
    if op.dims:
        dims[str(rng.choice(op.dims))] = extent
    return dims


def _long(op: Op, rng: np.random.Generator) -> dict[str, int]:
    dims = _draw(op, rng, RAGGED[:4])
    if op.dims:
        dims[str(rng.choice(op.dims))] = int(rng.choice(LONG))
    return dims


def _steps(op: Op, rng: np.random.Generator) -> dict[str, int]:
    """Room for one reduced dim: the others are as small as they may be."""
    dims = {d: int(rng.integers(1, 4)) for d in op.dims}
    reduced = {
        d for define in op.defines if isinstance(define.value, Reduce)
        for r in define.value.ranges for d in r.upper.dims() if d in dims
    }  # fmt: skip
    pool = [d for d in op.dims if d in reduced] or list(op.dims)
    if pool:
        dims[str(rng.choice(pool))] = int(rng.choice(STEPS))
    return dims


def _scaled(op: Op, dims: dict[str, int], limit: int) -> dict[str, int]:
    """The workload with its largest extents halved together until it fits."""
    dims = {d: dims.get(d, 1) for d in op.dims}
    while size(op, dims) > limit:
        top = max(dims.values())
        if top <= 1:
            break
        halved = {d: n // 2 if n == top else n for d, n in dims.items()}
        dims = halved if admissible(op, halved) or not admissible(op, dims) else _next(op, dims)
    return dims


def _few(op: Op, dims: dict[str, int], limit: int) -> dict[str, int]:
    """The workload's tiles, and several steps of its streams: long extents cut, then the smallest ones halved."""
    whole = {d: dims.get(d, 1) for d in op.dims}
    dims = dict(whole)
    for d, n in whole.items():
        cut = dims | {d: SEVERAL}
        if n > SEVERAL and admissible(op, cut):
            dims = cut
    while size(op, dims) > limit:
        smaller = (
            cut
            for cut in _halved(op, dims, sorted(dims, key=lambda d: (whole[d], d)))
            if size(op, cut) < size(op, dims)
        )
        found = next(smaller, None)
        if found is None:
            break
        dims = found
    return dims


def _next(op: Op, dims: dict[str, int]) -> dict[str, int]:
    """Halve the largest extent that may be halved; give up to 1 where none may."""
    order = sorted(dims, key=lambda d: -dims[d])
    return next(_halved(op, dims, order), dict.fromkeys(dims, 1))


def _halved(op: Op, dims: dict[str, int], order: Iterable[str]) -> Iterator[dict[str, int]]:
    """The dims with one extent halved, each in turn that may be."""
    for d in order:
        halved = dims | {d: dims[d] // 2}
        if dims[d] > 1 and admissible(op, halved):
            yield halved


def _repair(requires: Sequence[Require], dims: dict[str, int]) -> bool:
    """Change dims towards the requirements; whether anything changed."""
    changed = False
    for require in requires:
        try:
            if holds(require, dims):
                continue
            new = _mend(require, dims)
        except (ZeroDivisionError, KeyError):
            continue
        if new is not None and dims.get(new[0]) != new[1] and new[1] >= 0:
            dims[new[0]] = new[1]
            changed = True
    return changed


def _mend(require: Require, dims: Mapping[str, int]) -> tuple[str, int] | None:
    left, right = require.left.atom, require.right.atom
    match left:
        case Mod(num, den) if require.op == "eq" and require.right.constant is not None:
            name = _dim(num)
            step = den.evaluate(dims)
            if name is not None:
                rest = require.right.constant
                return name, max(dims[name] // step, 0 if dims[name] == 0 else 1) * step + rest
    if isinstance(left, Dim):
        return left.name, _towards(require.op, require.right.evaluate(dims), dims[left.name])
    if isinstance(right, Dim):
        flipped = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}.get(require.op, require.op)
        return right.name, _towards(flipped, require.left.evaluate(dims), dims[right.name])
    return None


def _dim(value: Int) -> str | None:
    atom = value.atom
    return atom.name if isinstance(atom, Dim) else None


def _towards(op: str, bound: int, now: int) -> int:
    match op:
        case "lt":
            return bound - 1
        case "gt":
            return bound + 1
        case "ne":
            return now + 1
        case _:
            return bound
