"""The launcher: a Python function with the op's own signature around its kernels.

Three functions stand behind it. ``check`` refuses what the op can't take and says what it returns,
``launch`` starts the kernels, and a ``_configure`` per kernel picks blocks. The runtime calls them once
per kind of call (shapes, strides, dtypes, devices, alignment) and repeats what they launched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opspec.emit.choosing import defining
from opspec.emit.host import dtype_text, host_int, linear, stored_extents, tuple_text
from opspec.emit.kernel_launch import Configure, KernelLaunch
from opspec.emit.names import escape
from opspec.emit.starting import Starts
from opspec.ir.dtypes import DTypeParam, choices
from opspec.ir.integers import Dim, Int
from opspec.ir.program import Op, Tensor
from opspec.schedule.graph import Fold

RELATION = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
PY = {"float": "float", "int": "int", "bool": "bool"}


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


def function_name(op: Op, boundary: str) -> str:
    """The generated function's name: the op's, with the boundary's behind it if it is not the op's own."""
    return escape(op.name if not boundary else f"{op.name}__{boundary}")


class _Launcher(Starts):
    """What a launcher checks, makes and returns."""

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
        configures = tuple(self._launch_all())
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

    def _launch_all(self) -> list[Configure]:
        """The lines that start every kernel; a small shape launches one instead of several."""
        made: list[Configure] = []
        grouped: list[tuple[KernelLaunch, ...]] = []
        rest = self.launches
        while rest:
            count = rest[0].instead.covers if rest[0].instead is not None else 1
            grouped.append(rest[:count])
            rest = rest[count:]
        alone: list[KernelLaunch] = []
        for several in grouped:
            own = several[0].instead
            alone += [several[0]] if own is None else several if own.by is not None else [own.launch]
        self._workspace(alone, every=alone == list(self.launches))
        for several in grouped:
            own = several[0].instead
            if own is None:
                made += self._launch(several[0])
                continue
            outer, self.lines = self.lines, []
            if own.by is None:
                made += self._launch(own.launch)
            else:
                self._launch(own.by, small=True)
            small, self.lines = self.lines, []
            self._workspace(several, every=False)
            for k in several:
                made += self._launch(k)
            large, self.lines = self.lines, outer
            self.lines += defining(list(own.launch.choices[0].lines), own.test)
            test = own.test[1:-1] if own.test.startswith("(") and own.test.endswith(")") else own.test
            if own.by is not None and own.by.lengths is not None:
                name = own.by.plan.block.name
                test += f' and launch.chosen(call.tuned("{name}"), "{own.by.lengths.text.name}")'
            self.lines += [f"if {test}:", *("    " + line for line in small)]
            self.lines += ["else:", *("    " + line for line in large)]
        return made

    def _shape(self, tensor: Tensor) -> str:
        stored = [host_int(e, self.names) for e in stored_extents(tensor)]
        return tuple_text(stored) if stored else "()"

    def _workspace(self, launches: Sequence[KernelLaunch], *, every: bool) -> None:
        """Lines that allocate what passes between kernels, ``every`` one or those that these launches touch."""
        own = {t.name for t in self.op.tensors}
        for k in launches:
            for tensor in k.plan.block.tensors if every else k.plan.variants[0].program.tensors:
                if tensor.name in own or tensor.name in self.allocated:
                    continue
                self.allocated.add(tensor.name)
                self.names[tensor.name] = tensor.name.replace(".", "_")
                dtype = dtype_text(tensor.dtype, self.names)
                self.lines.append(
                    f"{self.names[tensor.name]} = call.workspace({self._shape(tensor)}, {dtype})"
                )

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
                    if extent.constant is not None and extent.constant >= 1:
                        continue
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
        solved = linear(extent)
        if solved is None or solved[0] in self.bound:
            return
        dim, factor, offset = solved
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


def quoted(text: str) -> str:
    """A Python string literal in double quotes."""
    import json

    return json.dumps(text, ensure_ascii=False)


def python_number(value: float | None) -> str:
    """A scalar default as Python text."""
    text = repr(value)
    return f'float("{text}")' if text in ("inf", "-inf", "nan") else text
