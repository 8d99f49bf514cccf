"""Every element of an output is written, and none of them twice.

Each statement writes an image of its domain: along each axis a constant, an interval, or
the numbers of one residue. One image that fills the tensor is enough; several must tile
one axis, those of all residues together as one interval, or split the domain by complementary conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opspec.diagnostics import Diagnostic, Note
from opspec.frontend.faults import domains
from opspec.frontend.segments import segment_of
from opspec.ir.bounds import Facts, domain, equal, prove
from opspec.ir.integers import ONE, ZERO, Int
from opspec.ir.program import Define, Tensor
from opspec.ir.values import Range
from opspec.source import Span


@dataclass(frozen=True, slots=True)
class Segment:
    """The numbers ``start + step * n`` for ``0 <= n < size`` along one axis."""

    start: Int
    size: Int
    step: int = 1


def check(
    tensor: Tensor, writers: list[Define], facts: Facts, place: Span, conditions: Mapping[Int, Span]
) -> list[Diagnostic]:
    """The faults in how an output is written; none if it is covered exactly.

    ``conditions``: where the text of a constraint stands, for the message.
    """
    images: list[list[Segment]] = []
    outside = [d for w in writers for d in _outside(tensor, w, facts, place)]
    if outside:
        return outside
    for w in writers:
        image = _image(w, facts)
        if isinstance(image, str):
            return [domains.uncovered(w.span or place, tensor.name, image)]
        images.append(image)
    if tensor.role == "inout":
        return []
    if len(writers) > 1 and _same_box(images, facts):
        return _split(tensor, writers, images, facts, place)
    for w in writers:
        left = _restriction(w, facts)
        if left is not None:
            said = conditions[left].text if left in conditions else f"{left} >= 0"
            text = f"it is written only where `{said}`"
            return [domains.uncovered(w.span or place, tensor.name, text)]
    return _tiles(tensor, writers, images, facts, place)


def _outside(tensor: Tensor, writer: Define, facts: Facts, place: Span) -> list[Diagnostic]:
    """Writes that are not proven to stay inside the tensor."""
    assert writer.output is not None
    known = facts.extended(domain(writer.ranges, writer.constraints))
    for k, (at, extent) in enumerate(zip(writer.output.at, tensor.extents, strict=True)):
        if at.tensors():
            continue
        for over, goal in ((True, extent - 1 - at), (False, at)):
            if not prove(goal, known):
                axis = f"axis {k} of `{tensor.name}`" if len(tensor.extents) > 1 else f"`{tensor.name}`"
                return [
                    domains.written_outside(
                        writer.span or place, str(at), axis, str(extent), over, tensor.span
                    )
                ]
    return []


def _image(writer: Define, facts: Facts) -> list[Segment] | str:
    assert writer.output is not None
    ranges = {r.index: r for r in writer.ranges}
    used: set[str] = set()
    through: set[str] = set()
    result: list[Segment] = []
    for at in writer.output.at:
        if at.tensors():
            through |= at.free_indices()
            result.append(Segment(at, ONE))
            continue
        if used & at.free_indices():
            return f"`{at}` uses an index that another axis uses too"
        used |= at.free_indices()
        image = _segment(at, ranges, facts)
        if image is None:
            return f"what `{at}` reaches is not understood as an interval"
        result.append(image)
    segment = segment_of(writer)
    missing = sorted(set(ranges) - used - through - ({segment[0]} if segment is not None else set()))
    if missing:
        return f"index `{missing[0]}` is not part of where it writes, so that elements would be written again"
    return result


def _segment(at: Int, ranges: dict[str, Range], facts: Facts) -> Segment | None:
    split = at.affine(ranges)
    if split is None:
        return None
    coefficients, rest = split
    if not coefficients:
        return Segment(rest, ONE)
    rest = rest + sum((c * ranges[n].lower for n, c in coefficients.items()), ZERO)
    sizes = {n: ranges[n].upper - ranges[n].lower for n in coefficients}
    if len(coefficients) == 1:
        (name, c), *_ = coefficients.items()
        if c.constant == -1:
            return Segment(rest - sizes[name] + 1, sizes[name])
        if c.constant is not None and c.constant > 1:
            return Segment(rest, sizes[name], c.constant)
    known = facts.extended(domain(ranges.values()))
    step, left = ONE, dict(coefficients)
    while left:
        inner = next((n for n, c in left.items() if equal(c, step, known)), None)
        if inner is None:
            return None
        step = step * sizes[inner]
        del left[inner]
    return Segment(rest, step)


def _restriction(writer: Define, facts: Facts) -> Int | None:
    known = facts.extended(domain(writer.ranges))
    segment = segment_of(writer)
    tied = segment[1] if segment is not None else ()
    return next((c for c in writer.constraints if c not in tied and not prove(c, known)), None)


def _same_box(images: list[list[Segment]], facts: Facts) -> bool:
    first = images[0]
    return all(
        a.step == b.step and equal(a.start, b.start, facts) and equal(a.size, b.size, facts)
        for image in images[1:]
        for a, b in zip(first, image, strict=True)
    )


def _split(
    tensor: Tensor, writers: list[Define], images: list[list[Segment]], facts: Facts, place: Span
) -> list[Diagnostic]:
    """Statements over the same box whose conditions must be complementary."""
    known = facts.extended(domain(writers[0].ranges))
    left = [[c for c in w.constraints if not prove(c, known)] for w in writers]
    renamed = [
        [c.rename(dict(zip(w.indices, writers[0].indices, strict=True))) for c in cs]
        for w, cs in zip(writers, left, strict=True)
    ]
    if len(writers) == 2 and len(renamed[0]) == 1 and len(renamed[1]) == 1:
        total = renamed[0][0] + renamed[1][0]
        if total.constant == -1:
            return _tiles(tensor, writers[:1], images[:1], facts, place)
        if total.constant is not None and total.constant < -1:
            return [
                domains.uncovered(place, tensor.name, "the conditions of its statements leave points out")
            ]
    for k, w in enumerate(writers[1:], 1):
        others = facts.extended((*domain(writers[0].ranges), *renamed[0], *renamed[k]))
        if not prove(Int.of(-1), others):
            sure = not renamed[0] and not renamed[k]
            return [domains.twice(w.span or place, tensor.name, writers[0].span, proven=sure)]
    return []


def _tiles(
    tensor: Tensor, writers: list[Define], images: list[list[Segment]], facts: Facts, place: Span
) -> list[Diagnostic]:
    """Images that must tile the tensor along at most one axis."""
    known = facts.extended(domain([r for w in writers for r in w.ranges]))
    full = [
        [
            s.step == 1 and equal(s.start, ZERO, known) and equal(s.size, extent, known)
            for s, extent in zip(image, tensor.extents, strict=True)
        ]
        for image in images
    ]
    if len(writers) == 1:
        if all(full[0]):
            return []
        axis = full[0].index(False)
        return [_hole(tensor, axis, images[0][axis], writers[0], place)]
    open_axes = [k for k in range(len(tensor.extents)) if not all(f[k] for f in full)]
    if len(open_axes) > 1:
        return [domains.uncovered(place, tensor.name, "its statements divide more than one axis")]
    if not open_axes:
        return [domains.twice(writers[1].span or place, tensor.name, writers[0].span)]
    axis = open_axes[0]
    parts = _woven([(image[axis], w) for image, w in zip(images, writers, strict=True)], known)
    steps = {p.step for p, _ in parts}
    if steps != {1}:
        return _residues(tensor, axis, parts, known, place)
    reached, left, last = ZERO, list(parts), writers[0]
    while left:
        following = next(((p, w) for p, w in left if equal(p.start, reached, known)), None)
        if following is None:
            inside = next(((p, w) for p, w in left if prove(reached - 1 - p.start, known)), None)
            if inside is not None:
                return [domains.twice(inside[1].span or place, tensor.name, last.span)]
            return [_gap(tensor, axis, reached, place, writers)]
        left.remove(following)
        reached, last = reached + following[0].size, following[1]
    if not equal(reached, tensor.extents[axis], known):
        return [_gap(tensor, axis, reached, place, writers)]
    return []


def _woven(parts: list[tuple[Segment, Define]], facts: Facts) -> list[tuple[Segment, Define]]:
    """The parts, with those that interleave (``y[2 * i]`` and ``y[2 * i + 1]``) joined to an interval."""
    result = list(parts)
    for first, writer in parts:
        if first.step == 1:
            continue
        alike = [p for p in result if p[0].step == first.step and equal(p[0].size, first.size, facts)]
        offsets = [(p.start - first.start).constant for p, _ in alike]
        if sorted(c for c in offsets if c is not None) != list(range(first.step)):
            continue
        woven = Segment(first.start, first.size * first.step)
        result = [(woven, writer), *(p for p in result if p not in alike)]
    return result


def _residues(
    tensor: Tensor, axis: int, parts: list[tuple[Segment, Define]], facts: Facts, place: Span
) -> list[Diagnostic]:
    """Interleaved statements: ``y[2 * i]`` and ``y[2 * i + 1]``."""
    steps = {p.step for p, _ in parts}
    step = max(steps)
    starts = [p.start.constant for p, _ in parts]
    whole = all(equal(p.size * step, tensor.extents[axis], facts) for p, _ in parts)
    if len(steps) == 1 and whole and sorted(c for c in starts if c is not None) == list(range(step)):
        return []
    if len({c for c in starts if c is not None}) < len(parts):
        return [domains.twice(parts[1][1].span or place, tensor.name, parts[0][1].span, proven=False)]
    return [domains.uncovered(place, tensor.name, f"its statements do not fill axis {axis}")]


def _hole(tensor: Tensor, axis: int, segment: Segment, writer: Define, place: Span) -> Diagnostic:
    extent = tensor.extents[axis]
    end = segment.start + (segment.size - 1) * segment.step + 1
    every = f", every {segment.step}." if segment.step > 1 else ""
    text = f"axis {axis} is written from `{segment.start}` to before `{end}`{every}, and its extent is `{extent}`"
    return domains.uncovered(writer.span or place, tensor.name, text)


def _gap(tensor: Tensor, axis: int, reached: Int, place: Span, writers: list[Define]) -> Diagnostic:
    extent = tensor.extents[axis]
    text = f"axis {axis} is written up to before `{reached}`, and not proven to go on up to `{extent}`"
    notes = tuple(Note("a part is written here", w.span) for w in writers)
    return domains.uncovered(place, tensor.name, text, notes)
