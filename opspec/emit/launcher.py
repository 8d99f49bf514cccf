"""The launcher: a Python function with the op's own signature around its kernels.

Three functions stand behind it. ``check`` refuses what the op can't take and says what it returns,
``launch`` starts the kernels, and a ``_configure`` per kernel picks blocks. The runtime calls them once
per kind of call (shapes, strides, dtypes, devices, alignment) and repeats what they launched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from opspec.emit.configure import Choice
from opspec.emit.host import dtype_text, host_int, stored_extents, tuple_text
from opspec.emit.names import escape
from opspec.emit.triton import KernelText, SplitText, descriptor, identifiers, pointer, stride
from opspec.ir.dtypes import DTypeParam, choices
from opspec.ir.integers import Dim, Int
from opspec.ir.program import Op, Tensor
from opspec.schedule.graph import Fold, Load
from opspec.schedule.plan import Plan

RELATION = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
STEPS = 4
COPIED = 512
PY = {"float": "float", "int": "int", "bool": "bool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLaunch:
    """One kernel of a boundary, ready to print: its variants' texts and configurations.

    ``steps``: the fewest steps of a stream that are worth a program of their own; ``copied``: the fewest
    rows and columns of a product for which operands with odd rows are copied.
    """

    plan: Plan
    texts: tuple[KernelText, ...]
    choices: tuple[Choice, ...]
    steps: int = STEPS
    copied: int = COPIED


@dataclass(frozen=True, slots=True, kw_only=True)
class Configure:
    """The configuration function of one kernel."""

    name: str
    kernel: str
    params: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A function behind the launcher."""

    name: str
    params: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """The launcher's text in parts. ``operator`` is the name of the object that it calls."""

    name: str
    params: str
    returns: str
    line: str
    check: Part
    launch: Part
    operator: str
    schema: str
    tensors: tuple[str, ...]
    configures: tuple[Configure, ...]


def launcher(op: Op, boundary: str, launches: tuple[KernelLaunch, ...]) -> Function:
    """The launcher of one boundary of an op."""
    return _Launcher(op, boundary, launches).function()


def streamed_tensors(plan: Plan) -> list[Tensor]:
    """The tensors whose element size decides a configuration: what a product or a laned stream reads.

    A label or a table beside the stream has no say in how wide its lanes are.
    """
    axes = {a for v in plan.variants for a in (v.roles.laned, *(p.k for p in v.roles.products.values())) if a}
    data = set(plan.graph.data.values())
    loads = [n for n in plan.graph.nodes if isinstance(n, Load) and n.name not in data]
    wanted = {n.tensor for n in loads if n.axes & axes} or {n.tensor for n in loads}
    found = [t for t in plan.variants[0].program.tensors if t.name in wanted]
    return found or list(plan.variants[0].program.tensors)


def unspecialised(op: Op, plan: Plan) -> tuple[str, ...]:
    """Dims that Triton need not know more of than that they are numbers: those along no tensor's last axis.

    Knowing that 16 divides a dim makes wide loads possible under a mask, which matters along memory. A batch or
    a length elsewhere would only compile a binary for 1, for multiples of 16 and for the rest. A block
    product may be given either layout, so there nothing is left out.
    """
    if any(v.roles.products for v in plan.variants):
        return ()
    tensors = plan.variants[0].program.tensors
    wide = [
        t for t in tensors if len(t.extents) > 1
    ] or tensors  # a label or a weight a row is read beside these
    fast = {d for t in wide if t.extents for d in _base(op, t.extents[-1])}
    return tuple(d for d in op.dims if d not in fast)


def _base(op: Op, extent: Int) -> set[str]:
    """Declared dims in an extent, through derived ones."""
    derived = dict(op.derived)
    found: set[str] = set()
    for d in extent.dims():
        found |= _base(op, derived[d]) if d in derived else {d}
    return found


def function_name(op: Op, boundary: str) -> str:
    """The generated function's name: the op's, with the boundary's behind it if it is not the op's own."""
    return escape(op.name if not boundary else f"{op.name}__{boundary}")


class _Launcher:
    def __init__(self, op: Op, boundary: str, launches: tuple[KernelLaunch, ...]) -> None:
        self.op, self.boundary, self.launches = op, boundary, launches
        self.names = identifiers(op) | {p.name: escape(p.name) for p in op.dtype_params}
        self.lines: list[str] = []
        self.bound: set[str] = set()
        self.typed: set[str] = set()

    def function(self) -> Function:
        name = function_name(self.op, self.boundary)
        inputs = [t for t in self.op.tensors if t.role != "out" and t.name in self.op.parameters]
        inputs.sort(key=lambda t: self.op.parameters.index(t.name))
        tensors = tuple(self.names[t.name] for t in inputs)
        self._bind(inputs)
        free = tuple(self.names[d] for d in self.op.dims if d not in self.bound)
        self._checks(inputs)
        results = self.op.results
        dims = tuple(self.names[d] for d in self.op.dims)
        dtypes = tuple(self.names[p.name] for p in self.op.dtype_params if p.name in self.typed)
        described = [
            f'launch.Result("{t.name}", {self._shape(t)}, {dtype_text(t.dtype, self.names)})' for t in results
        ]
        self.lines.append(
            f"return {tuple_text([*dims, *dtypes]) if dims or dtypes else '()'}, {tuple_text(described) if described else '()'}"
        )
        check, self.lines = tuple(self.lines), []
        self._workspace()
        configures = tuple(c for k in self.launches for c in self._launch(k))
        body = "\n".join(self.lines)
        kept = [n if re.search(rf"\b{n}\b", body) else "_" for n in (*dims, *dtypes)]
        targets = f"({kept[0]},)" if len(kept) == 1 else ", ".join(kept)
        unpack = [f"{targets} = dims"] if set(kept) - {"_"} else []
        floats, whole = self._scalars()
        operator = f"_{name}__operator"
        several = "tuple[" + ", ".join(["torch.Tensor"] * len(results)) + "]"
        returns = "None" if not results else "torch.Tensor" if len(results) == 1 else several
        return Function(
            name=name,
            params=self._params(free, returns),
            returns=returns,
            line=self._call(operator, tensors, floats, (*whole, *free), bool(results)),
            check=Part(
                name=f"_{name}__check",
                params=", ".join([*tensors, *(self.names[s] for s in whole), *free]),
                lines=check,
            ),
            launch=Part(
                name=f"_{name}__launch",
                params=", ".join(
                    [
                        "call", "dims", *tensors, *(self.names[s] for s in (*floats, *whole)), *free,
                        *(self.names[t.name] for t in results),
                    ]
                ),
                lines=(*unpack, *self.lines),
            ),
            operator=operator,
            schema=self._schema(name, inputs, floats, (*whole, *free), len(results)),
            tensors=tensors,
            configures=configures,
        )  # fmt: skip

    def _shape(self, tensor: Tensor) -> str:
        stored = [host_int(e, self.names) for e in stored_extents(tensor)]
        return tuple_text(stored) if stored else "()"

    def _checks(self, inputs: list[Tensor]) -> None:
        """Dtypes, shapes, devices and what the op requires of its dims."""
        if inputs:
            self.lines.append(f"device = {self.names[inputs[0].name]}.device")
        for tensor in inputs:
            self._check(tensor)
        for r in self.op.requires:
            left, right = host_int(r.left, self.names), host_int(r.right, self.names)
            used = sorted(r.left.dims() | r.right.dims())
            values = "".join(f", {self.names[d]}={self.names[d]}" for d in used)
            self.lines.append(f"launch.require({left} {RELATION[r.op]} {right}, {quoted(r.text)}{values})")
        for test, text, dims in self._nonempty():
            values = "".join(f", {self.names[d]}={self.names[d]}" for d in dims)
            self.lines.append(f"launch.require({test}, {quoted(text)}{values})")

    def _scalars(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Scalar parameters by name: floats, which a launch passes on, and whole numbers, which it may depend on."""
        named = [s for p in self.op.parameters for s in self.op.scalars if s.name == p]
        floats = tuple(s.name for s in named if s.dtype.kind == "float")
        return floats, tuple(s.name for s in named if s.dtype.kind != "float")

    def _call(
        self,
        operator: str,
        tensors: tuple[str, ...],
        floats: tuple[str, ...],
        whole: tuple[str, ...],
        results: bool,
    ) -> str:
        kinds = {s.name: s.dtype.kind for s in self.op.scalars}
        numbers = [f"int({self.names[w]})" if kinds.get(w) == "bool" else self.names.get(w, w) for w in whole]
        args = [tuple_text(list(tensors)) if tensors else "()"]
        if floats:
            args.append(f"floats={tuple_text([f'float({self.names[f]})' for f in floats])}")
        if numbers:
            args.append(f"whole={tuple_text(numbers)}")
        if results:
            args.append("out=out")
        return f"{'return ' if results else ''}{operator}({', '.join(args)})"

    def _schema(
        self, name: str, inputs: list[Tensor], floats: tuple[str, ...], whole: tuple[str, ...], results: int
    ) -> str:
        """The operator's schema behind its namespace: tensors, floats, whole numbers."""
        parts = []
        for k, tensor in enumerate(inputs):
            changed = f"(a{k}!)" if tensor.role == "inout" else ""
            parts.append(f"Tensor{changed} {self.names[tensor.name]}")
        parts += [f"float {self.names[f]}" for f in floats]
        parts += [f"int {self.names.get(w, w)}" for w in whole]
        returned = "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})"
        return f"{name}({', '.join(parts)}) -> {returned}"

    def _nonempty(self) -> list[tuple[str, str, list[str]]]:
        """Extents that a max or min without a declared identity needs to be at least 1."""
        found: dict[str, tuple[str, str, list[str]]] = {}
        for k in self.launches:
            for node in k.plan.graph.nodes:
                if not isinstance(node, Fold) or node.monoid not in ("max", "min") or node.empty is not None:
                    continue
                for axis in node.over:
                    extent = k.plan.block.axis(axis).extent
                    test = f"{host_int(extent, self.names)} >= 1"
                    text = f"{extent} >= 1 (a {node.monoid} over nothing has no value)"
                    found[test] = (test, text, sorted(extent.dims()))
        return list(found.values())

    def _params(self, free: tuple[str, ...], returns: str) -> str:
        positional: list[str] = []
        keyword: list[str] = []
        defaulted = False
        for name in self.op.parameters:
            tensor = self.op.tensor(name)
            if tensor is not None and tensor.role == "out":
                continue
            scalar = next((s for s in self.op.scalars if s.name == name), None)
            if scalar is None:
                text, has_default = f"{self.names[name]}: torch.Tensor", False
            else:
                kind = PY[scalar.dtype.kind]
                has_default = scalar.default is not None
                text = f"{self.names[name]}: {kind}" + (
                    f" = {python_number(scalar.default)}" if has_default else ""
                )
            (keyword if defaulted and not has_default else positional).append(text)
            defaulted |= has_default
        keyword += [f"{d}: int" for d in free]
        if returns != "None":
            keyword.append(f"out: {returns} | None = None")
        if keyword:
            positional.append("*")
        return ", ".join([*positional, *keyword])

    def _bind(self, inputs: list[Tensor]) -> None:
        """Read every dim off the first axis that shows it bare; then off axes like ``2 * C``."""
        for tensor in inputs:
            name = self.names[tensor.name]
            targets = []
            for e in stored_extents(tensor):
                dim = e.atom.name if isinstance(e.atom, Dim) else None
                fresh = dim is not None and dim not in self.bound
                targets.append(self.names[dim] if fresh and dim is not None else "_")
                if fresh and dim is not None:
                    self.bound.add(dim)
            rank = f'launch.rank("{tensor.name}", {name}, {len(tensor.extents)})'
            if all(t == "_" for t in targets):
                self.lines.append(rank)
            else:
                names = f"({targets[0]},)" if len(targets) == 1 else ", ".join(targets)
                self.lines.append(f"{names} = {rank}")
        for tensor in inputs:
            for position, e in enumerate(stored_extents(tensor)):
                self._solve(tensor, position, e)

    def _solve(self, tensor: Tensor, position: int, extent: Int) -> None:
        missing = extent.dims() - self.bound
        if len(missing) != 1 or len(extent.dims()) != 1:
            return
        (dim,) = missing
        factor, offset = None, 0
        for monomial, c in extent.terms:
            match monomial:
                case ():
                    offset = c
                case ((Dim(), 1),):
                    factor = c
                case _:
                    return
        if factor is None or factor < 1:
            return
        self.bound.add(dim)
        size = f"{self.names[tensor.name]}.shape[{position}]"
        self.lines.append(
            f'{self.names[dim]} = launch.solve("{tensor.name}", {position}, {size}, {factor}, {offset})'
        )

    def _check(self, tensor: Tensor) -> None:
        name = self.names[tensor.name]
        if isinstance(tensor.dtype, DTypeParam) and tensor.dtype.name not in self.typed:
            allowed = tuple_text([f'"{d.name}"' for d in choices(tensor.dtype)])
            self.lines.append(
                f'{self.names[tensor.dtype.name]} = launch.dtype_of("{tensor.name}", {name}, {allowed})'
            )
            self.typed.add(tensor.dtype.name)
        dtype = dtype_text(tensor.dtype, self.names)
        self.lines.append(f'launch.check("{tensor.name}", {name}, {self._shape(tensor)}, {dtype}, device)')

    def _workspace(self) -> None:
        seen: set[str] = set()
        own = {t.name for t in self.op.tensors}
        for k in self.launches:
            for tensor in k.plan.block.tensors:
                if tensor.name in own or tensor.name in seen:
                    continue
                seen.add(tensor.name)
                self.names[tensor.name] = tensor.name.replace(".", "_")
                dtype = dtype_text(tensor.dtype, self.names)
                self.lines.append(
                    f"{self.names[tensor.name]} = call.workspace({self._shape(tensor)}, {dtype})"
                )

    def _launch(self, k: KernelLaunch) -> list[Configure]:
        name = f"_configure_{escape(self.op.name)}_{k.plan.block.name}"
        if self.boundary:
            name = f"_configure_{self.op.name}__{self.boundary}_{k.plan.block.name}"
        dims = self._dims(k)
        width = any(c.lines and "width" in " ".join((*c.lines, c.warps)) for c in k.choices)
        aligned = any("aligned" in " ".join(c.lines) for c in k.choices)
        described = [t.described for t in k.texts if t.described is not None]
        flags = ["width"] * width + ["aligned"] * aligned + ["described"] * bool(described)
        touched = k.plan.variants[0].program.tensors
        if aligned:
            self.lines.append(f"aligned = launch.aligned({', '.join(self._read(k))})")
        if width:
            self.lines.append(f"width = max(t.element_size() for t in {tuple_text(self._read(k))})")
        tuned = f'tuned=call.tuned("{k.plan.block.name}")'
        call = f"{name}({', '.join([*dims, *flags, tuned])})"
        if described:
            tiled = [t for t in touched if any(t.name in d.tiles for d in described)]
            named = ", ".join(self.names[t.name] for t in tiled)
            self.lines.append(f"described = launch.describable({named})")
            self._copies(k, tiled)
        self.lines.append(f"kernel, grid, options{', tiles' if described else ''} = {call}")
        made = [
            Configure(name=name, kernel=k.plan.block.name, params="", lines=tuple(self._configure_lines(k)))
        ]
        split = next((t for t in k.texts if t.split is not None), None)
        start: list[str] = []
        if described:
            start.append("if tiles is not None:")
            start.append(f"    {self._start(k, described[0], 'kernel', 'grid', True)}")
            start.append("else:")
            start.append(f"    {self._start(k, k.texts[0], 'kernel', 'grid', False)}")
        else:
            start.append(self._start(k, k.texts[0], "kernel", "grid", False))
        if split is not None and split.split is not None:
            made.append(self._split(k, split, split.split, start, f"{name}_merge"))
        else:
            self.lines += start
        kinds = {"width": "int", "aligned": "bool", "described": "bool"}
        params = [*(f"{d}: int" for d in dims), *(f"{f}: {kinds[f]}" for f in flags)]
        params += ["*", "tuned: launch.Tuning = launch.UNTUNED"]
        return [replace(made[0], params=", ".join(params)), *made[1:]]

    def _copies(self, k: KernelLaunch, tiled: list[Tensor]) -> None:
        """Lines that copy operands whose rows no descriptor takes, where a block product reads them often."""
        text = next((t for t in k.texts if t.described is not None and t.grouped), None)
        if text is None:
            return
        product = next(iter(k.plan.variants[-1].roles.products.values()))
        axes = {a.name: host_int(a.extent, self.names) for a in k.plan.variants[-1].program.axes}
        named = ", ".join(self.names[t.name] for t in tiled)
        least = "" if k.copied == COPIED else f", least={k.copied}"
        self.lines.append(
            f"if not described and copying.copies_pay({axes[product.rows]}, {axes[product.columns]}, {named}{least}):"
        )
        for t in tiled:
            name = self.names[t.name]
            self.lines.append(f"    {name} = copying.aligned_rows(call, {name})")
        self.lines.append(f"    described = launch.describable({named})")

    def _start(self, k: KernelLaunch, text: KernelText, kernel: str, grid: str, described: bool) -> str:
        """The line that starts a kernel, with descriptors or with pointers."""
        args = self._arguments(k, text)
        if described:
            taken = self._taken(k, text)
            moved = tuple_text(args[: len(taken)])
            args = [f"*launch.describe({moved}, tiles)", *args[len(taken) :]]
        if "INDEX" in text.constexprs or not described:
            args.append(
                f"INDEX=launch.index_type({', '.join(self.names[t.name] for t in self._taken(k, text))})"
            )
        return f"call.start({kernel}, {grid}, options, {', '.join(args)})"

    def _taken(self, k: KernelLaunch, text: KernelText) -> list[Tensor]:
        """The tensors among a kernel's parameters."""
        split = next((t.split for t in k.texts if t.split is not None), None)
        parts = split.split.parts if split is not None else ()
        every = (*k.plan.variants[0].program.tensors, *parts)
        return [t for t in every if {pointer(t.name), descriptor(t.name)} & set(text.params)]

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
        chosen = f'launch.split({extent}, options["{text.blocks[plan.axis]}"], grid{least})'
        own = [t.name for t in (text, text.described) if t is not None]
        test = f" if kernel in ({', '.join(own)}) else (1, 0)" if len(k.texts) > 1 else ""
        self.lines.append(f"{splits}, {span} = {chosen}{test}")
        self.lines.append(f"if {splits} > 1:")
        inner: list[str] = []
        for part in plan.parts:
            shape = tuple_text([host_int(e, self.names) for e in part.extents])
            inner.append(f'{part.name} = call.workspace({shape}, launch.DTYPES["f32"])')
        partial = split.partial
        if partial.described is not None:
            every = self._taken(k, text.described) if text.described is not None else []
            places = [
                next((i for i, t in enumerate(every) if t.name == own.name), None)
                for own in self._taken(k, partial.described)
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
        used = {d for a in plan.merge.axes for d in a.extent.dims()}
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
            lines=tuple(self._merge_lines(split)),
        )

    def _merge_lines(self, split: SplitText) -> list[str]:
        """A program of the join takes all parts of a few results."""
        text, lines, counts = split.merge, [], []
        grid = [a.name for a in split.split.merge.axes if a.role == "grid" and a.name in text.blocks]
        whole = [a for a in split.split.merge.axes if a.role == "tile" and a.name in text.blocks]
        for axis in split.split.merge.axes:
            extent = host_int(axis.extent, self.names)
            block = text.blocks.get(axis.name)
            if block is not None:
                # a result's last axis is the one along memory
                along = len(whole) == 1 and grid[-1:] == [axis.name]
                cap = "" if axis.role == "tile" else f", 1, {128 if along else 1}"
                lines.append(f"{block} = launch.power_of_2({extent}{cap})")
            if axis.role == "grid":
                tight = host_int(axis.extent, self.names, tight=True)
                counts.append(f"triton.cdiv({extent}, {block})" if block else tight)
        blocks = [f'"{b}": {b}' for b in dict.fromkeys(text.blocks.values()) if b in text.constexprs]
        elements = " * ".join(dict.fromkeys(text.blocks.values()))
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
        return [self.names[d] for d in self.op.dims if d in used]

    def _arguments(self, k: KernelLaunch, text: KernelText) -> list[str]:
        """Arguments of the launch: the union over the variants, by keyword where they differ."""
        lookup: dict[str, str] = {}
        for tensor in self._taken(k, text):
            host = self.names[tensor.name]
            lookup[pointer(tensor.name)] = lookup[descriptor(tensor.name)] = host
            for i in range(len(tensor.extents)):
                lookup[stride(tensor, i)] = f"{host}.stride({i})"
        for n in (*self.op.dims, *text.sizes):
            lookup[self.names[n]] = self.names[n]
        for s in self.op.scalars:
            lookup[self.names[s.name]] = self.names[s.name]
        return [lookup[p] for p in text.params]

    def _configure_lines(self, k: KernelLaunch) -> list[str]:
        out: list[str] = []
        for text, choice in zip(k.texts, k.choices, strict=True):
            indent = ""
            body = list(choice.lines)
            if choice.test is not None:
                needed = [
                    line
                    for line in body
                    if any(line.startswith(b) for b in choice.test.split() if b.startswith("BLOCK"))
                ]
                out += needed
                body = [line for line in body if line not in needed]
                out.append(f'if {choice.test} and launch.chosen(tuned, "{text.name}"):')
                indent = "    "
            options = [f'"{b}": {b}' for b in choice.blocks if b in text.constexprs]
            if text.grouped:
                options.append('"GROUP": 8')
            warps, stages = f'"num_warps": {choice.warps}', f'"num_stages": {choice.stages}'
            options += [warps, stages, '"enable_fp_fusion": True']
            body.append(f"options = {{{', '.join(options)}}}")
            body.append(f'options = launch.over(options, tuned, "{text.name}")')
            grid = self._grid(k, text)
            if text.described is not None:
                body += self._described(k, text, text.described, grid)
            last = ", None" if any(t.described is not None for t in k.texts) else ""
            body.append(f"return {text.name}, {grid}, options{last}")
            out += [indent + line for line in body]
            if choice.test is None:
                break
        return out

    def _described(self, k: KernelLaunch, text: KernelText, described: KernelText, grid: str) -> list[str]:
        """The lines that choose a kernel with descriptors, whose tiles hardware limits to 256 an axis."""
        whole = {a for v in k.plan.variants for a in v.roles.tile}
        wide = dict.fromkeys(text.blocks[a] for t in described.tiles.values() for a in t if a in whole)
        test = " and ".join(["described", *(f'options["{b}"] <= 256' for b in wide)])
        shapes = []
        for tensor in k.plan.variants[0].program.tensors:
            if {pointer(tensor.name), descriptor(tensor.name)} & set(described.params):
                tile = described.tiles.get(tensor.name)
                own = (
                    None
                    if tile is None
                    else ["1" if a is None else f'options["{text.blocks[a]}"]' for a in tile]
                )
                shapes.append("None" if own is None else tuple_text(own))
        if described.persistent:
            grid = f'launch.resident({grid}, options["num_warps"])'
        return [f"if {test}:", f"    return {described.name}, {grid}, options, {tuple_text(shapes)}"]

    def _grid(self, k: KernelLaunch, text: KernelText) -> str:
        counts = []
        for axis in k.plan.variants[0].program.axes:
            if axis.role == "grid":
                extent = host_int(axis.extent, self.names, tight=True)
                block = text.blocks.get(axis.name)
                counts.append(
                    f'triton.cdiv({host_int(axis.extent, self.names)}, options["{block}"])'
                    if block
                    else extent
                )
        return " * ".join(counts) or "1"


def quoted(text: str) -> str:
    """A Python string literal in double quotes."""
    import json

    return json.dumps(text, ensure_ascii=False)


def python_number(value: float | None) -> str:
    """A scalar default as Python text."""
    text = repr(value)
    return f'float("{text}")' if text in ("inf", "-inf", "nan") else text
