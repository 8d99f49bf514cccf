"""Streams in parts: the lines that choose how many, start a program for each, and join what these carried."""

from __future__ import annotations

from dataclasses import dataclass

from opspec.emit.choosing import Choosing
from opspec.emit.host import host_int, tuple_text
from opspec.emit.kernel_launch import (
    STEPS,
    TOGETHER,
    Configure,
    KernelLaunch,
    ends_by_data,
    taken_tensors,
)
from opspec.emit.names import escape
from opspec.emit.signature import KernelText, SplitText, descriptor, pointer, stride
from opspec.schedule.adjacent import adjacent_axes
from opspec.schedule.nested import nested_product
from opspec.schedule.tile import AxisPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsCall:
    """How a launch asks into how many parts it cuts its stream.

    ``function`` of the runtime's launch module: ``spread`` where each step is a product, ``split_all`` for ``streams``
    (axes) that are cut alike, ``split`` for one. ``steps``: the fewest that are worth a part; ``warps``: whether these
    matter, since tiles are few; ``ragged``: whether data says where a stream ends.
    """

    function: str
    streams: tuple[str, ...]
    steps: int
    warps: bool
    ragged: bool


def parts_call(k: KernelLaunch, split: SplitText) -> PartsCall:
    """How a launch asks for the parts of its stream."""
    plan = split.split
    function = "split"
    if plan.beside:
        function = "split_all"
    elif nested_product(plan.partial) is not None:
        function = "spread"
    return PartsCall(
        function=function,
        streams=(plan.axis, *(other for other, _ in plan.beside)),
        steps=k.steps,
        warps=k.few_tiles,
        ragged=ends_by_data(k.plan.variants[-1].program, plan.axis),
    )


def tile_places(k: KernelLaunch, whole: KernelText, part: KernelText) -> tuple[int | None, ...]:
    """For each tensor that a part of a stream takes, where its tile is among those of the kernel that walks the whole."""
    every = [t.name for t in taken_tensors(k, whole.params)]
    return tuple(every.index(t.name) if t.name in every else None for t in taken_tensors(k, part.params))


def _joined(split: SplitText) -> list[AxisPlan]:
    """The axes of the join without those that only the parts have."""
    own = split.merge.blocks
    return [a for a in split.split.merge.axes if own.get(a.name) in (None, *split.merge.constexprs)]


class Splitting(Choosing):
    """The lines that walk a stream in parts."""

    def _start(self, k: KernelLaunch, text: KernelText, kernel: str, grid: str, described: bool) -> str:
        """The line that starts a kernel, with descriptors or with pointers."""
        args = self._arguments(k, text)
        if described:
            taken = taken_tensors(k, text.params)
            moved = tuple_text(args[: len(taken)])
            module = "warps" if text.roles is not None else "launch"
            args = [f"*{module}.describe({moved}, tiles)", *args[len(taken) :]]
        if "INDEX" in text.constexprs or not described:
            args.append(
                f"INDEX=launch.index_type({', '.join(self.names[t.name] for t in taken_tensors(k, text.params))})"
            )
        if "GROUP" in text.constexprs and not text.grouped:
            args.append(f"GROUP={TOGETHER}")
        if "OVERLAP" in text.constexprs:
            args.append("**call.following" if k.overlap.waits else "OVERLAP=call.overlaps")
        return f"call.start({kernel}, {grid}, options, {', '.join(args)})"

    def _parts(self, k: KernelLaunch, text: KernelText, split: SplitText) -> str:
        """The call that says into how many parts a stream is cut, and how long these are."""
        call = parts_call(k, split)
        extents = {a.name: host_int(a.extent, self.names) for a in k.plan.variants[-1].program.axes}
        chunks = {a: f'options["{text.blocks[a]}"]' for a in call.streams}
        extent, chunk = extents[call.streams[0]], chunks[call.streams[0]]
        if call.function == "spread":
            return f'launch.spread({extent}, {chunk}, grid, options["num_warps"])'
        if call.function == "split_all":
            streams = [f"({extents[a]}, {chunks[a]})" for a in call.streams]
            steps = "" if call.steps == STEPS else f", steps={call.steps}"
            return f"launch.split_all(grid, {', '.join(streams)}{steps})"
        least = "" if call.steps == STEPS else f", {call.steps}"
        warps = ', warps=options["num_warps"]' if call.warps else ""
        ragged = ", ragged=True" if call.ragged else ""
        if self._turned(k, text):
            chunk += ' * options.get("STEPS", 1)'
        return f"launch.split({extent}, {chunk}, grid{least}{warps}{ragged})"

    def _split(
        self, k: KernelLaunch, text: KernelText, split: SplitText, start: list[str], name: str
    ) -> Configure:
        """Lines that walk a stream in parts where too few programs are left, and join what these carried."""
        plan = split.split
        splits, span = escape(plan.splits), escape(plan.span)
        self.names |= {plan.splits: splits, plan.span: span} | {p.name: p.name for p in plan.parts}
        chosen = self._parts(k, text, split)
        own = [t.name for t in (text, text.described) if t is not None]
        alone = len(k.texts) == 1 and all(t.warps is None for t in k.texts)
        test = "" if alone else f" if kernel in ({', '.join(own)}) else (1, 0)"
        self.lines.append(f"{splits}, {span} = {chosen}{test}")
        self.lines.append(f"if {splits} > 1:")
        inner: list[str] = []
        for other, also in plan.beside:
            self.names[also] = escape(also)
            beside = next(a for a in k.plan.variants[-1].program.axes if a.name == other)
            whole = host_int(beside.extent, self.names)
            inner.append(f'{escape(also)} = launch.span({whole}, options["{text.blocks[other]}"], {splits})')
        for part in plan.parts:
            shape = tuple_text([host_int(e, self.names) for e in part.extents])
            inner.append(f'{part.name} = call.workspace({shape}, launch.DTYPES["f32"])')
        partial = split.partial
        if set(text.edges) - set(partial.edges):
            kept = "".join(f', "{e}"' for e in split.kept_edges(text))
            inner.append(f"options = launch.without_edges(options{kept})")
        if partial.described is not None:
            places = tile_places(k, text.described or text, partial.described)
            picked = tuple_text(["None" if i is None else f"tiles[{i}]" for i in places])
            inner.append("if tiles is not None:")
            inner.append(f"    tiles = {picked}")
            inner.append(
                f"    {self._start(k, partial.described, partial.described.name, f'grid * {splits}', True)}"
            )
            inner.append("else:")
            inner.append(f"    {self._start(k, partial, partial.name, f'grid * {splits}', False)}")
        else:
            inner.append(self._start(k, partial, partial.name, f"grid * {splits}", False))
        used = {d for a in _joined(split) for d in a.extent.dims()}
        dims = [self.names[d] for d in (*self.op.dims, plan.splits) if d in used]
        inner.append(f"kernel, grid, options = {name}({', '.join(dims)})")
        inner.append(self._start(k, split.merge, "kernel", "grid", False))
        self.lines += ["    " + line for line in inner]
        if start[0].startswith("if"):
            self.lines += [f"el{start[0]}", *start[1:]]
        else:
            self.lines += ["else:", *("    " + line for line in start)]
        return Configure(
            name=name,
            kernel=split.merge.name,
            params=", ".join(f"{d}: int" for d in dims),
            lines=tuple(self._merge_lines(k, split)),
        )

    def _merge_lines(self, k: KernelLaunch, split: SplitText) -> list[str]:
        """A program of the join takes all parts of a few results."""
        text, lines, counts = split.merge, [], []
        grid = [a.name for a in split.split.merge.axes if a.role == "grid" and a.name in text.blocks]
        axes = _joined(split)
        whole = [a for a in axes if a.role == "tile" and a.name in text.blocks]
        parts = axes[0]
        for axis in axes:
            extent = host_int(axis.extent, self.names)
            block = text.blocks.get(axis.name)
            if block is not None and axis == parts:
                # parts that end together are few, and what each has of a row may be wide
                few = "4, " if k.few_tiles and len(whole) > 1 else ""
                lines.append(f"{block} = launch.bucket({extent}, {few}16, 64, 256, 1024)")
            elif block is not None and axis.role == "tile":
                lines.append(f"{block} = launch.power_of_2({extent})")
            elif block is not None:
                # a result's last axis is the one along memory
                along = len(whole) == 1 and grid[-1:] == [axis.name]
                beside = text.blocks[parts.name]
                lines.append(f"{block} = {f'min(128, launch.share(8192, {beside}))' if along else 1}")
            if axis.role == "grid":
                tight = host_int(axis.extent, self.names, tight=True)
                counts.append(f"triton.cdiv({extent}, {block})" if block else tight)
        blocks = [f'"{b}": {b}' for b in dict.fromkeys(text.blocks.values()) if b in text.constexprs]
        elements = " * ".join(b for b in dict.fromkeys(text.blocks.values()) if b in text.constexprs)
        warps = f'"num_warps": launch.warps({elements}, 32)'
        options = ", ".join([*blocks, warps, '"num_stages": 1', '"enable_fp_fusion": True'])
        lines.append(f"options = {{{options}}}")
        lines.append(f"return {text.name}, {' * '.join(counts) or '1'}, options")
        return lines

    def _arguments(self, k: KernelLaunch, text: KernelText) -> list[str]:
        """Arguments of the launch: the union over the variants, by keyword where they differ."""
        lookup: dict[str, str] = {}
        for tensor in taken_tensors(k, text.params):
            host = self.names[tensor.name]
            lookup[pointer(tensor.name)] = lookup[descriptor(tensor.name)] = host
            for i in range(len(tensor.extents)):
                lookup[stride(tensor, i)] = f"{host}.stride({i})"
        for group in adjacent_axes(k.plan):
            for name, first in group.places:
                for i, d in enumerate(group.dims[:-1], start=first):
                    # an axis of one index has no stride, whatever its tensor says
                    own = stride(next(t for t in k.plan.block.tensors if t.name == name), i)
                    lookup[own] = f"0 if {self.names[d]} == 1 else {self.names[name]}.stride({i})"
        for n in (*self.op.dims, *text.sizes):
            lookup[self.names[n]] = self.names[n]
        for s in self.op.scalars:
            lookup[self.names[s.name]] = self.names[s.name]
        if text.marks:
            lookup[text.marks] = text.marks.removesuffix("_ptr")
        return [lookup[p] for p in text.params]
