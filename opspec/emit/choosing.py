"""The lines of a configuration function: which kernel a launch takes, its grid, options and tiles."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from opspec.emit.configure import Choice
from opspec.emit.describe import Units
from opspec.emit.host import host_int, tuple_text
from opspec.emit.joined import Joined
from opspec.emit.kernel_launch import (
    SEGMENTS,
    AnyLength,
    KernelLaunch,
    taken_tensors,
)
from opspec.emit.names import escape
from opspec.emit.signature import KernelText, descriptor, identifiers, pointer
from opspec.ir.dtypes import choices
from opspec.ir.program import Op

BLOCK = re.compile(r"\bBLOCK\w*")


def defining(lines: Sequence[str], test: str) -> list[str]:
    """The lines that set the blocks of a test, and what those are made from."""
    wanted, found = set(BLOCK.findall(test)), []
    for line in reversed(lines):
        name, _, value = line.partition(" = ")
        if name in wanted:
            wanted |= set(BLOCK.findall(value))
            found.append(line)
    return found[::-1]


def _parted(text: KernelText) -> bool:
    """Whether a kernel with descriptors takes its sum in parts side by side."""
    return text.described is not None and "PARTS" in text.described.constexprs


def wrapped(text: str) -> str:
    """An integer expression of Python as an operand."""
    return text if text.isidentifier() or text.isdigit() else f"({text})"


class Choosing:
    """What the lines of an op's launcher know, and the configuration functions that these call."""

    def __init__(self, op: Op, boundary: str, launches: tuple[KernelLaunch, ...]) -> None:
        self.op, self.boundary, self.launches = op, boundary, launches
        self.names = identifiers(op) | {p.name: escape(p.name) for p in op.dtype_params}
        self.lines: list[str] = []
        self.bound: set[str] = set()
        self.typed: set[str] = set()
        self.merged: set[str] = set()
        self.allocated: set[str] = set()

    def _dims(self, k: KernelLaunch) -> list[str]:
        used: set[str] = set()
        for axis in k.plan.variants[0].program.axes:
            used |= axis.extent.dims()
        for extent, _ in (e for text in k.texts for e in text.edges.values()):
            used |= extent.dims()
        return [self.names[d] for d in self.op.dims if d in used]

    def _configure_lines(self, k: KernelLaunch) -> list[str]:
        out = self._any_length(k, k.lengths) if k.lengths is not None else []
        for text, choice in zip(k.texts, k.choices, strict=True):
            indent = ""
            body = list(choice.lines)
            if choice.test is not None:
                needed = defining(body, choice.test)
                out += needed
                body = [line for line in body if line not in needed]
                out.append(f'if {choice.test} and launch.chosen(tuned, "{text.name}"):')
                indent = "    "
            options = [f'"{b}": {b}' for b in choice.blocks if b in text.constexprs]
            options += [f'"{c}": {host_int(e, self.names)}' for c, e in text.counts.items()]
            if text.grouped:
                options.append(f'"GROUP": {choice.group}')
            warps, stages = f'"num_warps": {choice.warps}', f'"num_stages": {choice.stages}'
            options += [warps, stages, '"enable_fp_fusion": True']
            if choice.registers is not None:
                options.append(f'"maxnreg": {choice.registers}')
            body.append(f"options = {{{', '.join(options)}}}")
            for extent, block in dict.fromkeys(
                e for flag, e in text.edges.items() if flag.startswith(("PARTIAL", "SPANS"))
            ):
                whole = host_int(extent, self.names)
                body.append(f'options["{block}"] = launch.dividing(options["{block}"], {whole})')
            if _parted(text):
                depth = next(iter(k.plan.variants[0].roles.products.values())).k
                body.append(f'options["{text.blocks[depth]}"] *= parts')
            turned = self._turned(k, text)
            if turned:
                body.append(f"steps = {turned[0]}")
                body.append(f'options["num_stages"] = {turned[1]}')
            body.append(f'options = launch.over(options, tuned, "{text.name}")')
            own = None if k.lengths is None else k.lengths.lengths
            if "FULL" in text.constexprs and not isinstance(own, Joined):
                body.append(f'options["FULL"] = {self._filled(k, text) if own is None else own.fills}')
            if "ODD" in text.constexprs:
                body.append('options["ODD"] = False')
            for edge, (extent, block) in text.edges.items():
                whole = host_int(extent, self.names)
                if edge.startswith("SPANS"):
                    part = f'options["{block}"]{" // parts" if _parted(text) else ""}'
                    body.append(f'options["{edge}"] = launch.grouping({part}, {whole})')
                    continue
                body.append(f'options["{edge}"] = int({wrapped(whole)} % options["{block}"] != 0)')
            grid = self._grid(k, text)
            if text.warps is not None and text.warps.roles is not None and text.warps.roles.chained:
                out += [indent + line for line in self._chained(k, text, text.warps, choice)]
            elif text.warps is not None and choice.specialised:
                out += [indent + line for line in self._specialised(k, text, text.warps, choice)]
            if text.described is not None:
                body += self._described(k, text, text.described, grid)
            last = ", None" if any(t.described is not None for t in k.texts) else ""
            body.append(f"return {text.name}, {grid}, options{last}")
            out += [indent + line for line in body]
            if choice.test is None:
                break
        return out

    def _filled(self, k: KernelLaunch, text: KernelText) -> str:
        """Whether all blocks of a kernel are full."""
        program = next(v.program for t, v in zip(k.texts, k.plan.variants, strict=True) if t is text)
        tests = []
        for axis in program.axes:
            if axis.blocked:
                extent = wrapped(host_int(axis.extent, self.names))
                block = f'options["{text.blocks[axis.name]}"]'
                if axis.rows:
                    block = f'({block} * options["{text.blocks[f"{axis.name}.step"]}"])'
                    tests.append(f"{extent} > 0")
                tests.append(f"{extent} % {block} == 0")
        return f"all(({', '.join(tests)}))"

    def _any_length(self, k: KernelLaunch, own: AnyLength) -> list[str]:
        """The lines that choose the kernel for rows of any length, which comes first."""
        name, rows = own.text.name, own.lengths.rows
        body = own.lengths.host_lines(name)
        body.append(f'options = launch.over(options, tuned, "{name}")')
        grid = self._grid(k, k.texts[0]).replace(f'options["{rows}"]', f"{rows}")
        body.append(f"return kernel, {grid}, options")
        test = " and ".join(t for t in (own.lengths.test, f'launch.chosen(tuned, "{name}")') if t)
        return [*own.lengths.before, f"if {test}:", *("    " + line for line in body)]

    def _specialised(self, k: KernelLaunch, text: KernelText, warps: KernelText, choice: Choice) -> list[str]:
        """The lines that choose the kernel whose warps have roles, where its tiles fill a device."""
        variant = next(v for t, v in zip(k.texts, k.plan.variants, strict=True) if t is text)
        product = next(iter(variant.roles.products.values()))
        axes = {a.name: host_int(a.extent, self.names) for a in variant.program.axes}
        batch = [axes[a] for a in variant.roles.grid if a not in text.blocks]
        blocks = dict(zip((product.rows, product.columns, product.k), choice.sides, strict=True))
        deep = " * ".join(axes[a] for a in variant.roles.stream + variant.roles.tile)
        sizes = [axes[product.rows], axes[product.columns], deep, *([" * ".join(batch)] if batch else [])]
        inner = [
            f"tiles = {choice.specialised}",
            "# rows, columns, depth, slots: the tile whose programs end first",
        ]
        inner.append(f"own = warps.pick_tile({', '.join(['tiles', *sizes])})")
        inner.append("if own is not None:")
        chosen = [f"{', '.join(blocks.values())}, STAGES = own"]
        options = [f'"{b}": {b}' for b in blocks.values() if b in warps.constexprs]
        options += ['"GROUP": 2048 // ' + blocks[product.rows], '"STAGES": STAGES']
        options += ['"num_warps": 4', '"num_stages": 1', '"enable_fp_fusion": True']
        chosen.append(f"options = {{{', '.join(options)}}}")
        chosen.append(f'options = launch.over(options, tuned, "{warps.name}")')
        fits = [
            f"{host_int(e, self.names)} == {b}" for b, e in warps.exact.items() if b not in warps.constexprs
        ]
        fits += [
            f'{wrapped(host_int(e, self.names))} % options["{b}"] == 0'
            for e, b in dict.fromkeys(warps.edges.values())
        ]
        count = self._grid(k, text)
        shapes = self._role_tiles(k, warps, blocks, product.rows)
        last = f"return {warps.name}, launch.resident({count}, 8), options, {shapes}"
        chosen += [f"if {' and '.join(fits)}:", f"    {last}"] if fits else [last]
        test = f'launch.chosen(tuned, "{warps.name}") and specialised and width < 4'
        return [f"if {test}:", *(f"    {line}" for line in inner), *(f"        {line}" for line in chosen)]

    def _chained(self, k: KernelLaunch, text: KernelText, warps: KernelText, choice: Choice) -> list[str]:
        """The lines that choose the kernel of a chain whose warps have roles, where rows fill a device."""
        variant = next(v for t, v in zip(k.texts, k.plan.variants, strict=True) if t is text)
        axes = {a.name: host_int(a.extent, self.names) for a in variant.program.axes}
        (rows,) = (a for a in variant.roles.grid if a in text.blocks)
        (stream,), roles = variant.roles.stream, warps.roles
        assert roles is not None
        deep, wide = (
            text.blocks[next(a for a in warps.tiles[t] if a in variant.roles.tile)]
            for t in (roles.chained[0], roles.chained[-1])
        )
        batch = [axes[a] for a in variant.roles.grid if a not in text.blocks]
        sizes = [axes[rows], axes[stream], deep, wide, " * ".join(batch) or "1"]
        leaving = sum(
            min(d.bits for d in choices(t.dtype)) // 8
            for t in k.plan.block.tensors
            if t.name in roles.results
        )
        held = [line for line in choice.lines if line.split(" = ")[0] in (deep, wide)]
        live = "" if roles.live == 1 else f", live={roles.live}"
        own = f"{text.blocks[rows]}, {text.blocks[stream]}, STAGES"
        blocks = dict.fromkeys((text.blocks[rows], deep, wide, text.blocks[stream]))
        options = [f'"{b}": {b}' for b in blocks if b in warps.constexprs]
        options += ['"STAGES": STAGES', '"num_warps": 4', '"num_stages": 1', '"enable_fp_fusion": True']
        shapes = self._role_tiles(k, warps, text.blocks, rows)
        fits = [
            f"{host_int(e, self.names)} == {b}"
            for b, e in warps.exact.items()
            if b not in (text.blocks[rows], text.blocks[stream])
        ]
        return [
            f'if launch.chosen(tuned, "{warps.name}") and specialised:',
            *(f"    {line}" for line in held),
            "    # rows, chunk, slots: what registers and shared memory hold",
            f"    own = warps.pick_chain({', '.join(sizes)}, leaving={leaving}{live})",
            f"    if {' and '.join(['own is not None', *fits])}:",
            f"        {own} = own",
            f"        options = {{{', '.join(options)}}}",
            f'        options = launch.over(options, tuned, "{warps.name}")',
            f"        return {warps.name}, launch.resident({self._grid(k, text)}, 8), options, {shapes}",
        ]

    def _role_tiles(self, k: KernelLaunch, warps: KernelText, blocks: Mapping[str, str], rows: str) -> str:
        """The tiles of what a kernel whose warps have roles takes: of a result, the ``rows`` of a group at once."""

        def extent(tensor: str, axis: str | None) -> str:
            if axis is None:
                return "None"
            if axis == rows and warps.roles is not None and tensor in warps.roles.results:
                return "64"
            block = blocks[axis]
            return f'options["{block}"]' if block in warps.constexprs else block

        tiles = ((t.name, warps.tiles.get(t.name)) for t in taken_tensors(k, warps.params))
        return tuple_text(
            ["None" if tile is None else tuple_text([extent(n, a) for a in tile]) for n, tile in tiles]
        )

    def _described(self, k: KernelLaunch, text: KernelText, described: KernelText, grid: str) -> list[str]:
        """The lines that choose a kernel with descriptors, whose tiles hardware limits to 256 an axis."""
        whole = {a for v in k.plan.variants for a in v.roles.tile}
        wide = dict.fromkeys(text.blocks[a] for t in described.tiles.values() for a in t if a in whole)
        exact = [f'options["{b}"] == {host_int(e, self.names)}' for b, e in described.exact.items()]
        test = " and ".join(["described", *(f'options["{b}"] <= 256' for b in wide), *exact])
        shapes = []
        for tensor in k.plan.variants[0].program.tensors:
            if {pointer(tensor.name), descriptor(tensor.name)} & set(described.params):
                tile = described.tiles.get(tensor.name)
                own = (
                    None
                    if tile is None
                    else ["None" if a is None else f'options["{text.blocks[a]}"]' for a in tile]
                )
                if own is not None and isinstance(tile, Units):
                    counted = [*own[:-1], f"{own[-1]} // {tile.elements}"]
                    shapes.append(f"launch.{type(tile).__name__}({tuple_text(counted)})")
                else:
                    shapes.append("None" if own is None else tuple_text(own))
        given = {'"PARTS"': "parts"} if _parted(text) else {}
        if (turned := self._turned(k, text)) is not None:
            given['"STEPS"'] = turned[0]
        for edge, (extent, block) in described.edges.items():
            if edge not in text.edges:
                given[f'"{edge}"'] = f'int({wrapped(host_int(extent, self.names))} % options["{block}"] != 0)'
        if described.segments is not None:
            axis, count = described.segments
            segments = host_int(count, self.names)
            given['"SEGMENTS"'] = f"launch.power_of_2({segments})"
            test += f" and {wrapped(segments)} <= {SEGMENTS}"
            grid = self._grid(k, text, segmented=axis, segments=segments)
        if described.walked is not None:
            grid = self._walking(k, text, described.walked)
        if described.persistent:
            grid = f'launch.resident({grid}, options["num_warps"])'
        options = f"{{**options, {', '.join(f'{n}: {v}' for n, v in given.items())}}}" if given else "options"
        return [f"if {test}:", f"    return {described.name}, {grid}, {options}, {tuple_text(shapes)}"]

    def _turned(self, k: KernelLaunch, text: KernelText) -> tuple[str, str] | None:
        """How many steps a kernel with descriptors takes at once, and how many stages it then has, as text."""
        if text.described is None or "STEPS" not in text.described.constexprs:
            return None
        variant = k.plan.variants[0]
        own = next(iter(variant.roles.products.values()))
        rows, columns, depth = (f'options["{text.blocks[a]}"]' for a in (own.rows, own.columns, own.k))
        whole = host_int(variant.program.axis(own.k).extent, self.names)
        steps = f"launch.turns(described, {whole}, {depth}, {rows}, {columns}, parts)"
        return steps, f'launch.turn_stages(steps, options["num_stages"], {columns})'

    def _walking(self, k: KernelLaunch, text: KernelText, walked: str) -> str:
        """How many programs a launch has that walk over an axis: as many of the same rows as a device has room for."""
        rows = self._grid(k, text, without=walked)
        extent = host_int(k.plan.variants[0].program.axis(walked).extent, self.names)
        return f'launch.walks({rows}, {extent}, options["num_warps"])'

    def _grid(
        self, k: KernelLaunch, text: KernelText, *, segmented: str = "", segments: str = "", without: str = ""
    ) -> str:
        """How many programs a launch has; at most, where the tiles of an axis begin where so many segments do."""
        counts = []
        for axis in k.plan.variants[0].program.axes:
            if axis.role == "grid" and axis.name != without:
                extent = host_int(axis.extent, self.names, tight=True)
                block = text.blocks.get(axis.name)
                rows = f' * options["{text.blocks[f"{axis.name}.step"]}"]' if axis.rows else ""
                if axis.name == segmented:
                    places = host_int(axis.extent, self.names)
                    tiles = f'triton.cdiv({places}, options["{block}"])'
                    counts.append(f"({tiles} + min({segments}, {places}))")
                    continue
                counts.append(
                    f'triton.cdiv({host_int(axis.extent, self.names)}, options["{block}"]{rows})'
                    if block
                    else extent
                )
        return " * ".join(counts) or "1"
