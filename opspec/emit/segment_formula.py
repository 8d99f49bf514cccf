"""Segmented ops as plain torch: the formula of one segment, over its rows, for each of them.

A statement over ``n in offs[e]..offs[e + 1]`` is a dense one of a slice of n at one e. Taken whole it would be a
box of all places by all segments, which no memory holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from opspec.emit.names import escape
from opspec.frontend.segments import segment_of
from opspec.ir.integers import Datum, Int
from opspec.ir.program import Define, Op, Tensor
from opspec.ir.values import Extent, Read, Value, map_values, walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """``op``: one segment, dense. ``slices``: each argument with what cuts it (``[bounds[e] : bounds[e + 1]]``), in
    terms of ``{bounds}`` and ``{e}``. ``joined``: the axis along which the segments of each result lie.
    """

    op: Op
    offsets: str
    slices: tuple[tuple[str, str], ...]
    joined: tuple[int, ...]


def split_segments(op: Op) -> Split | None:
    """An op whose every result is written by the same segments; None if it isn't one, or not only that."""
    ties = {segment_of(d) for d in op.defines if d.output is not None}
    tie = next(iter(ties)) if len(ties) == 1 else None
    if tie is None:
        return None
    axis, constraints = tie
    datum = next(a for a in constraints[0].atoms() if isinstance(a, Datum))
    place = next(i for i in constraints[0].free_indices() if i != axis)
    at = _positions(op, axis, place)
    if at is None:
        return None
    named: dict[str, Define] = {}
    for define in op.defines:
        kept = tuple(c for c in define.constraints if c not in constraints and axis not in c.free_indices())
        ranges = tuple(r for r in define.ranges if r.index != axis)
        value = _without(define.value, axis)
        if value is None or any(c.tensors() for c in kept):
            return None
        named[define.name] = replace(define, ranges=ranges, constraints=kept, value=value)
    boundary = op.boundaries[0]
    kernels = tuple(replace(k, body=tuple(named[d.name] for d in k.body)) for k in boundary.kernels)
    tensors = [_slice(t, at, axis) for t in op.tensors if t.name != datum.tensor]
    used = {d for t in tensors for e in t.extents for d in e.dims()}
    whole = replace(
        op,
        dims=tuple(d for d in op.dims if d in used),
        tensors=tuple(tensors),
        parameters=tuple(p for p in op.parameters if p != datum.tensor),
        boundaries=(replace(boundary, kernels=kernels),),
    )
    cuts = {axis: "{e}", place: "{bounds}[{e}] : {bounds}[{e} + 1]", "": ":"}
    slices = []
    for t in op.tensors:
        if t.role == "out" or t.name == datum.tensor:
            continue
        parts = [cuts[at.get((t.name, k), "")] for k in range(len(t.extents))]
        while parts and parts[-1] == ":":
            parts.pop()
        if parts:
            slices.append((escape(t.name), f"[{', '.join(parts)}]"))
    outputs = {d.output.tensor: d.output.at for d in op.defines if d.output is not None}
    joined = tuple([i.index for i in outputs[t.name]].index(place) for t in op.results)
    return Split(op=whole, offsets=escape(datum.tensor), slices=tuple(slices), joined=joined)


def segment_total(op: Op, name: str) -> Int | None:
    """How many places there are in all, if a tensor holds the offsets of their segments."""
    for define in op.defines:
        tie = segment_of(define)
        if tie is not None and name in tie[1][0].tensors():
            places = tie[1][0].free_indices() - {tie[0]}
            return next(r.upper for r in define.ranges if r.index in places)
    return None


def join_segments(split: Split, lines: tuple[str, ...]) -> tuple[str, ...]:
    """The body of the reference, given that of one segment."""
    taken = set(re.findall(r"\w+", " ".join((*lines, *(n for n, _ in split.slices), split.offsets))))
    name = _namer(taken)
    e, bounds, parts = map(name, ("segment", "bounds", "parts"))
    whole = {tensor: name(f"whole_{tensor}") for tensor, _ in split.slices}
    out = [f"{w} = {tensor}" for tensor, w in whole.items()]
    out.append(f"{bounds} = {split.offsets}.tolist()")
    out.append(f"{parts} = []")
    out.append(f"for {e} in range(len({bounds}) - 1):")
    for tensor, cut in split.slices:
        out.append(f"    {tensor} = {whole[tensor]}{cut.format(e=e, bounds=bounds)}")
    out += [f"    {line}" for line in lines[:-1]]
    result = lines[-1].removeprefix("return ")
    if len(split.joined) == 1:
        return (*out, f"    {parts}.append({result})", f"return torch.cat({parts}, dim={split.joined[0]})")
    joined = [f"torch.cat([p[{k}] for p in {parts}], dim={d})" for k, d in enumerate(split.joined)]
    return (*out, f"    {parts}.append(({result}))", f"return {', '.join(joined)}")


def _namer(taken: set[str]) -> Callable[[str], str]:
    def name(base: str) -> str:
        while base in taken:
            base += "_"
        taken.add(base)
        return base

    return name


def _positions(op: Op, axis: str, place: str) -> dict[tuple[str, int], str] | None:
    """Which axes of the inputs the segment and its places walk; None where they do not stand bare."""
    at: dict[tuple[str, int], str] = {}
    for define in op.defines:
        for node in walk(define.value):
            if not isinstance(node, Read) or op.tensor(node.name) is None:
                continue
            for position, i in enumerate(node.indices):
                name = i.index if i.index in (axis, place) else ""
                if not name and i.free_indices() & {axis, place}:
                    return None
                if at.setdefault((node.name, position), name or "") != (name or ""):
                    return None
    return at


def _slice(tensor: Tensor, at: dict[tuple[str, int], str], axis: str) -> Tensor:
    """The tensor at one segment."""
    extents = tuple(e for k, e in enumerate(tensor.extents) if at.get((tensor.name, k)) != axis)
    return replace(tensor, extents=extents)


def _without(value: Value, axis: str) -> Value | None:
    """A value at one segment: its index is gone from what is read. None if the index is a number there."""
    bad = False

    def change(v: Value) -> Value:
        nonlocal bad
        v = map_values(v, change)
        if isinstance(v, Read):
            own = tuple(i for i in v.indices if i.index != axis)
            bad |= any(axis in i.free_indices() for i in own)
            return replace(v, indices=own)
        bad |= isinstance(v, Extent) and axis in v.value.free_indices()
        return v

    changed = change(value)
    return None if bad else changed
