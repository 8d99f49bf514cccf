"""The lines of a launcher that start its kernels: choices, descriptors, copies and streams in parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from opspec.emit.configure import Choice
from opspec.emit.describe import Pairs, Units, Words
from opspec.emit.host import host_int, tuple_text
from opspec.emit.lengths import Lengths
from opspec.emit.names import escape
from opspec.emit.signature import KernelText, Overlap, SplitText, descriptor, identifiers, pointer, stride
from opspec.ir.program import Op, Tensor
from opspec.ir.values import Extent
from opspec.schedule.adjacent import adjacent_axes
from opspec.schedule.graph import Load
from opspec.schedule.nested import nested_product
from opspec.schedule.plan import Plan
from opspec.schedule.tile import AxisPlan, Fetch, Loop, TileProgram, statements

STEPS = 4
BLOCK = re.compile(r"\bBLOCK\w*")
COPIED = 512
SEGMENTS = 1024  # of which every program finds its own at once
TOGETHER = 16  # tiles of rows that walk the parts of a stream side by side


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyLength:
    """The kernel that holds the variants of another for rows of any length, and the constants of each class."""

    lengths: Lengths
    text: KernelText


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLaunch:
    """One kernel of a boundary, ready to print: its variants' texts and configurations, and what takes rows of
    any length where that is another kernel; ``backwards``: its programs go from the last to the first; ``instead``:
    what small shapes launch in its place and in that of others behind it; ``overlap``: with the launches before and
    after it.

    ``steps``: the fewest steps of a stream that are worth a program of their own; ``copied``: the fewest
    rows and columns of a product for which operands with odd rows are copied.
    """

    plan: Plan
    texts: tuple[KernelText, ...]
    choices: tuple[Choice, ...]
    steps: int = STEPS
    copied: int = COPIED
    lengths: AnyLength | None = None
    backwards: bool = False
    instead: Instead | None = None
    overlap: Overlap = field(default_factory=Overlap)

    @property
    def few_tiles(self) -> bool:
        """Whether the tiles of its product are few because parts of the sum fill a device."""
        return any(c.parted for c in self.choices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instead:
    """One launch in place of ``covers`` others, where a program holds what it has to do at once: ``test`` admits it."""

    launch: KernelLaunch
    covers: int
    test: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Configure:
    """The configuration function of one kernel."""

    name: str
    kernel: str
    params: str
    lines: tuple[str, ...]


def _joined(split: SplitText) -> list[AxisPlan]:
    """The axes of the join without those that only the parts have."""
    own = split.merge.blocks
    return [a for a in split.split.merge.axes if own.get(a.name) in (None, *split.merge.constexprs)]


def ends_by_data(program: TileProgram, axis: str) -> bool:
    """Whether data says where a program's stream along ``axis`` ends."""
    loops = [s for s in statements(program.body) if isinstance(s, Loop) and s.axis == axis]
    return any(isinstance(loop.stop, Extent) and loop.stop.value.tensors() for loop in loops)


def streamed_tensors(plan: Plan) -> list[Tensor]:
    """The tensors whose element size decides a configuration: what a product or a laned stream reads.

    A label, a table or a scale beside the stream has no say in how wide its lanes are.
    """
    program = plan.variants[0].program
    operands = {s.tensor for s in statements(program.body) if isinstance(s, Fetch) and s.raw}
    if operands:
        return [t for t in program.tensors if t.name in operands]
    axes = {a for v in plan.variants for a in (v.roles.laned, *(p.k for p in v.roles.products.values())) if a}
    data = set(plan.graph.data.values())
    loads = [n for n in plan.graph.nodes if isinstance(n, Load) and n.name not in data]
    wanted = {n.tensor for n in loads if n.axes & axes} or {n.tensor for n in loads}
    found = [t for t in program.tensors if t.name in wanted]
    return found or list(program.tensors)


def defining(lines: Sequence[str], test: str) -> list[str]:
    """The lines that set the blocks of a test, and what those are made from."""
    wanted, found = set(BLOCK.findall(test)), []
    for line in reversed(lines):
        name, _, value = line.partition(" = ")
        if name in wanted:
            wanted |= set(BLOCK.findall(value))
            found.append(line)
    return found[::-1]


def taken_tensors(launch: KernelLaunch, params: Sequence[str]) -> list[Tensor]:
    """The tensors among the parameters of a kernel, workspace of parts too."""
    split = next((t.split for t in launch.texts if t.split is not None), None)
    parts = split.split.parts if split is not None else ()
    every = (*launch.plan.block.tensors, *parts)
    return [t for t in every if {pointer(t.name), descriptor(t.name)} & set(params)]


def _taking_alike(texts: Sequence[KernelText]) -> list[list[KernelText]]:
    """Kernels in groups whose launches pass the same, in the order given."""
    found: dict[tuple[tuple[str, ...], bool], list[KernelText]] = {}
    for t in texts:
        found.setdefault((t.params, "INDEX" in t.constexprs), []).append(t)
    return list(found.values())


def _parted(text: KernelText) -> bool:
    """Whether a kernel with descriptors takes its sum in parts side by side."""
    return text.described is not None and "PARTS" in text.described.constexprs


def wrapped(text: str) -> str:
    """An integer expression of Python as an operand."""
    return text if text.isidentifier() or text.isdigit() else f"({text})"


class Starts:
    """State of a launcher, and what starts its kernels."""

    def __init__(self, op: Op, boundary: str, launches: tuple[KernelLaunch, ...]) -> None:
        self.op, self.boundary, self.launches = op, boundary, launches
        self.names = identifiers(op) | {p.name: escape(p.name) for p in op.dtype_params}
        self.lines: list[str] = []
        self.bound: set[str] = set()
        self.typed: set[str] = set()
        self.merged: set[str] = set()
        self.allocated: set[str] = set()

    def _launch(self, k: KernelLaunch) -> list[Configure]:
        name = f"_configure_{escape(self.op.name)}_{k.plan.block.name}"
        if self.boundary:
            name = f"_configure_{self.op.name}__{self.boundary}_{k.plan.block.name}"
        self._merge(k)
        dims = self._dims(k)
        width = any(c.lines and "width" in " ".join((*c.lines, c.warps, str(c.registers))) for c in k.choices)
        aligned = any("aligned" in " ".join(c.lines) for c in k.choices)
        described = [t.described for t in k.texts if t.described is not None]
        warps = [t.warps for t in k.texts if t.warps is not None]
        flags = ["width"] * (width or bool(warps)) + ["aligned"] * aligned + ["described"] * bool(described)
        flags += ["specialised"] * bool(warps)
        touched = k.plan.variants[0].program.tensors
        if aligned:
            self.lines.append(f"aligned = launch.aligned({', '.join(self._read(k))})")
        if "width" in flags:
            self.lines.append(f"width = max(t.element_size() for t in {tuple_text(self._read(k))})")
        tuned = f'tuned=call.tuned("{k.plan.block.name}")'
        call = f"{name}({', '.join([*dims, *flags, tuned])})"
        if described:
            tiled = [t for t in touched if any(t.name in d.tiles for d in described)]
            named = ", ".join(self.names[t.name] for t in tiled)
            units = ""
            for kind, label in ((Pairs, "pairs"), (Words, "words")):
                moved = [t for t in tiled if any(isinstance(d.tiles.get(t.name), kind) for d in described)]
                units += f", {label}={tuple_text([self.names[t.name] for t in moved])}" if moved else ""
            others = [self.names[t.name] for t in touched if t not in tiled]
            within = f"{named}{units}" + (f", beside={tuple_text(others)}" if others else "")
            self.lines.append(f"described = launch.describable({within})")
            self._copies(k, tiled, within)
        if warps:
            stored = ", ".join(
                self.names[t.name] for t in touched if warps[0].roles and t.name in warps[0].roles.results
            )
            self.lines.append(f"specialised = launch.describable({named}) and warps.storable({stored})")
        self.lines.append(f"kernel, grid, options{', tiles' if described else ''} = {call}")
        made = [
            Configure(name=name, kernel=k.plan.block.name, params="", lines=tuple(self._configure_lines(k)))
        ]
        split = next((t for t in k.texts if t.split is not None), None)
        start: list[str] = []
        if described:
            lead = "if"
            for text in warps:
                start.append(f"{lead} kernel is {text.name}:")
                start.append(f"    {self._start(k, text, 'kernel', 'grid', True)}")
                lead = "elif"
            for own in _taking_alike(described)[1:]:
                which = f"is {own[0].name}" if len(own) == 1 else f"in ({', '.join(t.name for t in own)})"
                start.append(f"{lead} kernel {which}:")
                start.append(f"    {self._start(k, own[0], 'kernel', 'grid', True)}")
                lead = "elif"
            start.append(f"{lead} tiles is not None:")
            start.append(f"    {self._start(k, described[0], 'kernel', 'grid', True)}")
            start.append("else:")
            start.append(f"    {self._start(k, k.texts[0], 'kernel', 'grid', False)}")
        else:
            start.append(self._start(k, k.texts[0], "kernel", "grid", False))
        if split is not None and split.split is not None:
            made.append(self._split(k, split, split.split, start, f"{name}_merge"))
        else:
            self.lines += start
        kinds = {"width": "int", "aligned": "bool", "described": "bool", "specialised": "bool"}
        params = [*(f"{d}: int" for d in dims), *(f"{f}: {kinds[f]}" for f in flags)]
        params += ["*", "tuned: launch.Tuning = launch.UNTUNED"]
        return [replace(made[0], params=", ".join(params)), *made[1:]]

    def _merge(self, k: KernelLaunch) -> None:
        """Lines that join neighbouring axes of a kernel into one where the strides of its tensors allow it."""
        if self.merged:
            own = [d for d in self.op.dims if d in self.merged]
            places = [f"dims[{self.op.dims.index(d)}]" for d in own]
            self.lines.append(f"{', '.join(self.names[d] for d in own)} = {', '.join(places)}")
            self.merged = set()
        for group in adjacent_axes(k.plan):
            names = [self.names[d] for d in group.dims]
            places = [f"({self.names[t]}, {first})" for t, first in group.places]
            call = ", ".join([tuple_text(names), *places, *["reduced=True"] * group.reduced])
            self.lines.append(f"{', '.join(names)} = adjacent.merge({call})")
            self.merged |= set(group.dims)

    def _copies(self, k: KernelLaunch, tiled: list[Tensor], within: str) -> None:
        """Lines that copy operands whose rows no descriptor takes, where a block product reads them often."""
        nested = nested_product(k.plan.variants[-1].program) is not None
        text = next((t for t in k.texts if t.described is not None and (t.grouped or nested)), None)
        if text is None:
            return
        product = next(iter(k.plan.variants[-1].roles.products.values()))
        axes = {a.name: host_int(a.extent, self.names) for a in k.plan.variants[-1].program.axes}
        named = ", ".join(self.names[t.name] for t in tiled)
        least = "" if k.copied == COPIED else f", least={k.copied}"
        self.lines.append(
            f"if not described and copying.copies_pay({axes[product.rows]}, {axes[product.columns]}, {named}{least}):"
        )
        made = "all_aligned_rows" if len(tiled) > 1 else "aligned_rows"
        self.lines.append(f"    {named} = copying.{made}(call, {named})")
        self.lines.append(f"    described = launch.describable({within})")

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

    def _split(
        self, k: KernelLaunch, text: KernelText, split: SplitText, start: list[str], name: str
    ) -> Configure:
        """Lines that walk a stream in parts where too few programs are left, and join what these carried."""
        plan = split.split
        axis = next(a for a in k.plan.variants[-1].program.axes if a.name == plan.axis)
        splits, span = escape(plan.splits), escape(plan.span)
        self.names |= {plan.splits: splits, plan.span: span} | {p.name: p.name for p in plan.parts}
        extent = host_int(axis.extent, self.names)
        least = "" if k.steps == STEPS else f", {k.steps}"
        warps = ', warps=options["num_warps"]' if k.few_tiles else ""
        ragged = ", ragged=True" if ends_by_data(k.plan.variants[-1].program, plan.axis) else ""
        chunk = f'options["{text.blocks[plan.axis]}"]'
        if self._turned(k, text):
            chunk += ' * options.get("STEPS", 1)'
        chosen = f"launch.split({extent}, {chunk}, grid{least}{warps}{ragged})"
        if nested_product(plan.partial) is not None:
            chosen = (
                f'launch.spread({extent}, options["{text.blocks[plan.axis]}"], grid, options["num_warps"])'
            )
        if plan.beside:
            axes = {a.name: host_int(a.extent, self.names) for a in k.plan.variants[-1].program.axes}
            streams = [
                f'({axes[a]}, options["{text.blocks[a]}"])' for a in (plan.axis, *(o for o, _ in plan.beside))
            ]
            steps = "" if k.steps == STEPS else f", steps={k.steps}"
            chosen = f"launch.split_all(grid, {', '.join(streams)}{steps})"
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
            every = taken_tensors(k, text.described.params) if text.described is not None else []
            places = [
                next((i for i, t in enumerate(every) if t.name == own.name), None)
                for own in taken_tensors(k, partial.described.params)
            ]
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

    def _read(self, k: KernelLaunch) -> list[str]:
        return [self.names[t.name] for t in streamed_tensors(k.plan)]

    def _dims(self, k: KernelLaunch) -> list[str]:
        used: set[str] = set()
        for axis in k.plan.variants[0].program.axes:
            used |= axis.extent.dims()
        for extent, _ in (e for text in k.texts for e in text.edges.values()):
            used |= extent.dims()
        return [self.names[d] for d in self.op.dims if d in used]

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
        return [lookup[p] for p in text.params]

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
            if "FULL" in text.constexprs and k.lengths is not None:
                body.append(f'options["FULL"] = {k.lengths.lengths.fills}')
            for edge, (extent, block) in text.edges.items():
                whole = host_int(extent, self.names)
                if edge.startswith("SPANS"):
                    part = f'options["{block}"]{" // parts" if _parted(text) else ""}'
                    body.append(f'options["{edge}"] = launch.grouping({part}, {whole})')
                    continue
                body.append(f'options["{edge}"] = int({wrapped(whole)} % options["{block}"] != 0)')
            grid = self._grid(k, text)
            if text.warps is not None and choice.specialised:
                out += [indent + line for line in self._specialised(k, text, text.warps, choice)]
            if text.described is not None:
                body += self._described(k, text, text.described, grid)
            last = ", None" if any(t.described is not None for t in k.texts) else ""
            body.append(f"return {text.name}, {grid}, options{last}")
            out += [indent + line for line in body]
            if choice.test is None:
                break
        return out

    def _any_length(self, k: KernelLaunch, own: AnyLength) -> list[str]:
        """The lines that choose the kernel for rows of any length, which comes first."""
        name, rows = own.text.name, own.lengths.rows
        body = own.lengths.host_lines(name)
        body.append(f'options = launch.over(options, tuned, "{name}")')
        grid = self._grid(k, k.texts[0]).replace(f'options["{rows}"]', f"{rows}")
        body.append(f"return kernel, {grid}, options")
        test = " and ".join(t for t in (own.lengths.test, f'launch.chosen(tuned, "{name}")') if t)
        return [f"if {test}:", *("    " + line for line in body)]

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
        shapes = []
        for tensor in taken_tensors(k, warps.params):
            tile = warps.tiles.get(tensor.name)
            if tile is None:
                shapes.append("None")
                continue
            own = [
                "None"
                if a is None
                else f'options["{blocks[a]}"]'
                if blocks[a] in warps.constexprs
                else blocks[a]
                for a in tile
            ]
            if warps.roles is not None and tensor.name in warps.roles.results:
                own = ["64" if a == product.rows else o for a, o in zip(tile, own, strict=True)]
            shapes.append(tuple_text(own))
        last = f"return {warps.name}, launch.resident({count}, 8), options, {tuple_text(shapes)}"
        chosen += [f"if {' and '.join(fits)}:", f"    {last}"] if fits else [last]
        test = f'launch.chosen(tuned, "{warps.name}") and specialised and width < 4'
        return [f"if {test}:", *(f"    {line}" for line in inner), *(f"        {line}" for line in chosen)]

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
