"""The spec as plain torch: what a driver checks against in float64 and times as a peer.

One line per statement, in the order of the spec, over dense tensors. It is written as a user
of torch would write it: products of native operands go to ``einsum``, so that the vendor's
library runs them; everything else is computed in f32, or in float64 where the inputs are.
It shares nothing with the kernels' emitter.
"""

from __future__ import annotations

import re

from opspec.emit.host import host_int, tuple_text
from opspec.emit.names import escape
from opspec.emit.segment_formula import join_segments, split_segments
from opspec.emit.torch_expressions import LETTERS, TORCH, NoFormula, TorchExpressions
from opspec.frontend.segments import segment_of
from opspec.ir.dtypes import F32, DTypeParam, Storage, choices, compute_dtype
from opspec.ir.integers import Int
from opspec.ir.program import Define, Op, Tensor
from opspec.ir.values import (
    Binary,
    Literal,
    Read,
    Reduce,
    Scan,
    Unary,
    Value,
    free_indices,
    integers,
    walk,
)


def formula(op: Op) -> tuple[str, ...]:
    """Lines of the body of ``reference``; raises ``NoFormula``."""
    split = split_segments(op)
    if split is not None:
        return join_segments(split, _Formula(split.op).lines())
    if any(segment_of(d) for d in op.defines):
        raise NoFormula("segments of several kinds")
    return _Formula(op).lines()


def parameters(op: Op) -> list[str]:
    """Names that ``reference`` takes: the inputs in order, in Python's spelling."""
    outs = {t.name for t in op.results}
    return [escape(p) for p in op.parameters if p not in outs]


class _Formula(TorchExpressions):
    def __init__(self, op: Op) -> None:
        self.op = op
        self.names = {
            n: escape(n) for n in (*op.dims, *(t.name for t in op.tensors), *(s.name for s in op.scalars))
        }
        self.taken = {*self.names.values(), "real", "torch", "device"}
        self.body: list[str] = []
        self.var: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.defines = {d.name: d for d in op.defines}
        self.raw = self._raw()
        self.floats: set[str] = set()
        self.guards = 0
        self.kept: dict[str, str] = {}
        self.kernel = {d.name: k.name for k in op.boundaries[0].kernels for d in k.body}

    def lines(self) -> tuple[str, ...]:
        self._dims()
        for tensor in self.op.tensors:
            if tensor.role == "out" or tensor.name in self.raw:
                continue
            name, kind = self.names[tensor.name], compute_dtype(tensor.dtype)
            if any(d.bits < 8 for d in choices(tensor.dtype)):
                raise NoFormula("a packed type")
            if kind is F32:
                self.body.append(f"{name} = {name}.to(real)")
            elif kind != tensor.dtype or kind.kind == "bool":
                self.body.append(f"{name} = {name}.to({TORCH[kind.name]})")
        partial: dict[str, list[Define]] = {}
        for define in self.op.defines:
            self._define(define)
            if define.output is not None:
                partial.setdefault(define.output.tensor, []).append(define)
        order = [t for t in self.op.tensors if t.role in ("out", "inout") and t.name in partial]
        order.sort(key=lambda t: t.role == "inout")
        results = [self._result(t, partial[t.name]) for t in order]
        self.body.append(f"return {', '.join(results)}")
        return _used_only(self.body)

    # frame ---------------------------------------------------------------------
    def _dims(self) -> None:
        bound: set[str] = set()
        for tensor in self.op.tensors:
            if tensor.role == "out":
                continue
            for k, e in enumerate(tensor.extents):
                dims = e.dims()
                if len(dims) == 1 and str(e) in dims and str(e) not in bound:
                    bound.add(str(e))
                    self.body.append(f"{self.names[str(e)]} = {self.names[tensor.name]}.shape[{k}]")
        missing = [d for d in self.op.dims if d not in bound]
        if missing:
            raise NoFormula(f"dim {missing[0]} is not an axis of any input")
        floats = [t for t in self.op.tensors if t.role != "out" and compute_dtype(t.dtype) is F32]
        first = next((t for t in self.op.tensors if t.role != "out"), None)
        if first is None:
            raise NoFormula("the op has no tensor inputs")
        self.body.append(f"device = {self.names[first.name]}.device")
        if floats:
            name = self.names[floats[0].name]
            self.body.append(f"real = torch.float64 if {name}.dtype == torch.float64 else torch.float32")
        else:
            self.body.append("real = torch.float32")

    def _raw(self) -> set[str]:
        """Inputs that only enter products in their own type: they stay as they are."""
        found: set[str] = set()
        users: dict[str, list[bool]] = {}
        for define in self.op.defines:
            direct = self._product(define.value)
            for node in walk(define.value):
                if isinstance(node, Read) and self.op.tensor(node.name) is not None:
                    users.setdefault(node.name, []).append(direct is not None and node in direct)
        for name, uses in users.items():
            if all(uses):
                found.add(name)
        return found

    def _product(self, value: Value) -> tuple[Read, Read] | None:
        """The two operands of a plain contraction of tensors of one type of at most 16 bits."""
        if not isinstance(value, Reduce) or value.monoid != "sum" or value.constraints:
            return None
        body = value.body
        if not isinstance(body, Binary) or body.op != "mul":
            return None
        a, b = body.a, body.b
        if not isinstance(a, Read) or not isinstance(b, Read) or a.otherwise or b.otherwise:
            return None
        left, right = self.op.tensor(a.name), self.op.tensor(b.name)
        if left is None or right is None or left.dtype != right.dtype or compute_dtype(left.dtype) is not F32:
            return None
        if left.role == "out" or right.role == "out":
            return None
        indices = [[i.index for i in r.indices] for r in (a, b)]
        if any(None in own or len(set(own)) < len(own) for own in indices):
            return None
        bound = {r.index for r in value.ranges}
        if not bound <= set(indices[0]) & set(indices[1]):
            return None
        return (a, b) if self._full(left, a, value) and self._full(right, b, value) else None

    def _full(self, tensor: Tensor, read: Read, value: Reduce) -> bool:
        ranges = {r.index: r for r in value.ranges}
        return all(
            i.index not in ranges or ranges[i.index or ""].upper == e
            for i, e in zip(read.indices, tensor.extents, strict=True)
        )

    # statements ------------------------------------------------------------------
    def _define(self, define: Define) -> None:
        name = self._fresh(define.name)
        value = define.value
        if isinstance(value, Reduce):
            text, axes = self._reduce(define, value)
        elif isinstance(value, Scan):
            text, axes = self._scan(define, value, name), define.indices
        else:
            axes = define.indices
            text = self._expr(value, axes, define)[0]
        self.body.append(f"{name} = {text}")
        self.var[define.name] = (name, axes)
        stored = self._stored_as(define)
        if stored is not None:
            # another kernel reads it back as it was stored
            kept = self._fresh(f"{define.name}.stored")
            self.body.append(f"{kept} = {name}.to({stored}).to(real)")
            self.kept[define.name] = kept

    def _stored_as(self, define: Define) -> str | None:
        """The torch dtype that a value is rounded to where it crosses to another kernel; None if it isn't."""
        crossing = any(
            isinstance(n, Read) and n.name == define.name and self.kernel[d.name] != self.kernel[define.name]
            for d in self.op.defines
            for n in walk(d.value)
        )
        dtype: Storage = define.storage or F32
        if define.output is not None:
            dtype = self._written(define).dtype
        if not crossing or dtype == F32 or compute_dtype(dtype) is not F32:
            return None
        if isinstance(dtype, DTypeParam):
            source = next((t for t in self.op.tensors if t.role != "out" and t.dtype == dtype), None)
            return None if source is None else f"{self.names[source.name]}_dtype"
        return TORCH[dtype.name]

    def _fresh(self, base: str) -> str:
        parts = [p for p in base.split(".") if not p.isdigit()]
        name = escape("_".join(parts[-2:]))
        k, unique = 2, name
        while unique in self.taken:
            unique, k = f"{name}_{k}", k + 1
        self.taken.add(unique)
        return unique

    def _reduce(self, define: Define, value: Reduce) -> tuple[str, tuple[str, ...]]:
        bound = tuple(r.index for r in value.ranges)
        direct = self._product(value)
        if direct is not None and direct[0].name in self.raw and direct[1].name in self.raw:
            letters = {i: LETTERS[k] for k, i in enumerate(dict.fromkeys((*define.indices, *bound)))}
            left, right = ("".join(letters[i.index or ""] for i in r.indices) for r in direct)
            free = [i for i in define.indices if any(i == x.index for r in direct for x in r.indices)]
            out = "".join(letters[i] for i in free)
            a, b = (self.names[r.name] for r in direct)
            return f'torch.einsum("{left},{right}->{out}", {a}, {b}).to(real)', tuple(free)
        product = self._general_product(define, value)
        if product is not None:
            return product
        axes = (*define.indices, *bound)
        text, _ = self._expr(value.body, axes, define)
        masks = [self._condition(c, axes) for c in (*define.constraints, *value.constraints)]
        masks = list(dict.fromkeys(masks))
        identity = {
            "sum": "0",
            "prod": "1",
            "max": 'float("-inf")',
            "min": 'float("inf")',
            "any": "False",
            "all": "True",
            "argmax": 'float("-inf")',
            "argmin": 'float("inf")',
        }
        if masks:
            text = f"torch.where({' & '.join(masks)}, {text}, {identity[value.monoid]})"
        whole = self._has_all(value.body, bound, bool(masks))
        if not whole:
            shape = tuple_text([self._size(i, define, value) for i in axes])
            text = f"torch.broadcast_to(torch.as_tensor({text}, device=device), {shape})"
        positions = [axes.index(b) for b in bound]
        function = {"max": "amax", "min": "amin"}.get(value.monoid, value.monoid)
        dims = tuple_text([str(p) for p in positions]) if len(positions) > 1 else str(positions[0])
        if value.monoid == "prod" and len(positions) > 1:
            raise NoFormula("a product over several indices")
        text = f"torch.{function}({text}, dim={dims})"
        if value.empty is not None and not _is_identity(value):
            raise NoFormula("a declared identity")
        return text, define.indices

    def _scan(self, define: Define, value: Scan, name: str) -> str:
        """A running reduction; a decayed one by doubling, with as many steps as its axis has bits."""
        identity = {"sum": "0", "prod": "1", "max": 'float("-inf")', "min": 'float("inf")'}.get(value.monoid)
        if identity is None or (value.monoid in ("max", "min") and value.dtype is not F32):
            raise NoFormula(f"a scan of {value.monoid}")
        axes, k = define.indices, define.indices.index(value.index)
        masks = list(dict.fromkeys(self._condition(c, axes) for c in define.constraints))
        shape = tuple_text([host_int(r.upper, self.names) for r in define.ranges])

        def whole(part: Value, neutral: str) -> str:
            text, _ = self._expr(part, axes, define)
            if masks:
                text = f"torch.where({' & '.join(masks)}, {text}, {neutral})"
            text = f"torch.broadcast_to(torch.as_tensor({text}, device=device), {shape})"
            return f"torch.flip({text}, ({k},))" if value.reverse else text

        if value.decay is None:
            function = {"sum": "cumsum", "prod": "cumprod"}.get(value.monoid, f"cum{value.monoid}")
            text = f"torch.{function}({whole(value.body, identity)}, dim={k})"
            text = f"{text}.values" if value.monoid in ("max", "min") else text
        else:
            s, a = self._fresh(f"{name}_sum"), self._fresh(f"{name}_factor")
            step, pad = self._fresh("step"), "torch.nn.functional.pad"
            before = self._fresh("before")
            self.body += [
                f"{s} = torch.movedim({whole(value.body, '0')}, {k}, -1)",
                f"{a} = torch.movedim({whole(value.decay, '1')}, {k}, -1)",
                f"for {step} in (1 << bit for bit in range({s}.shape[-1].bit_length())):",
                f"    {before} = {pad}({s}, ({step}, 0))[..., : {s}.shape[-1]]",
                f"    {s} = {s} + {a} * {before}",
                f"    {before} = {pad}({a}, ({step}, 0), value=1)[..., : {a}.shape[-1]]",
                f"    {a} = {a} * {before}",
            ]
            text = f"torch.movedim({s}, -1, {k})"
        return f"torch.flip({text}, ({k},))" if value.reverse else text

    def _general_product(self, define: Define, value: Reduce) -> tuple[str, tuple[str, ...]] | None:
        """A sum over a product of two expressions as an ``einsum``, so that no larger box is made of them."""
        body, bound = value.body, {r.index for r in value.ranges}
        if value.monoid != "sum" or not isinstance(body, Binary) or body.op != "mul":
            return None
        own = [free_indices(body.a), free_indices(body.b)]
        if not bound <= own[0] & own[1] or own[0] == own[1]:
            return None
        masks: list[list[str]] = [[], []]
        axes = [tuple(i for i in (*define.indices, *sorted(bound)) if i in o) for o in own]
        for c in value.constraints:
            if not c.free_indices() & bound:
                continue
            home = next((k for k in (0, 1) if c.free_indices() <= own[k]), None)
            if home is None:
                return None
            masks[home].append(self._condition(c, axes[home]))
        letters = {i: LETTERS[k] for k, i in enumerate((*define.indices, *sorted(bound)))}
        texts = []
        for k, operand in enumerate((body.a, body.b)):
            text = self._expr(operand, axes[k], define)[0]
            if masks[k]:
                text = f"torch.where({' & '.join(dict.fromkeys(masks[k]))}, {text}, 0)"
            shape = tuple_text([self._size(i, define, value) for i in axes[k]])
            texts.append(f"torch.broadcast_to({text}, {shape})")
        free = tuple(i for i in define.indices if i in own[0] | own[1])
        left, right, out = ("".join(letters[i] for i in a) for a in (*axes, free))
        return f'torch.einsum("{left},{right}->{out}", {texts[0]}, {texts[1]})', free

    def _has_all(self, value: Value, bound: tuple[str, ...], masked: bool) -> bool:
        found: set[str] = set()
        for node in walk(value):
            for i in integers(node):
                found |= i.free_indices()
        return set(bound) <= found and not (masked and not found)

    def _size(self, index: str, define: Define, value: Reduce) -> str:
        return next(
            host_int(r.upper, self.names) for r in (*define.ranges, *value.ranges) if r.index == index
        )

    def _result(self, tensor: Tensor, parts: list[Define]) -> str:
        name, axes = self.var[parts[0].name]
        dtype = self._dtype(tensor)
        keep = f".to({dtype})" if dtype else ""
        if len(parts) == 1 and parts[0].output is not None and self._plain(tensor, parts[0]):
            own = parts[0].indices
            at = [i.index or "" for i in parts[0].output.at]
            if at != list(own):
                name = f"{name}.permute({', '.join(str(own.index(i)) for i in at)})"
            shape = tuple_text([host_int(e, self.names) for e in tensor.extents])
            if any(i not in axes for i in own) or not self._dense(parts[0]):
                name = f"torch.broadcast_to({name}, {shape})"
            return f"{name}{keep}"
        target = self._fresh(f"{tensor.name}_whole")
        shape = tuple_text([host_int(e, self.names) for e in tensor.extents])
        if tensor.role == "inout":
            self.body.append(f"{target} = {self.names[tensor.name]}.clone()")
        else:
            self.body.append(f"{target} = torch.empty({shape}, dtype=real, device=device)")
        for part in parts:
            assert part.output is not None
            where = [self._slice(i, part) for i in part.output.at]
            self.body.append(f"{target}[{', '.join(w.strip() for w in where)}] = {self.var[part.name][0]}")
        return f"{target}{keep}"

    def _dense(self, define: Define) -> bool:
        """Whether the value's text already has every index as a full axis."""
        found: set[str] = set()
        for node in walk(define.value):
            for i in integers(node):
                found |= i.free_indices()
        return set(define.indices) <= found

    def _plain(self, tensor: Tensor, define: Define) -> bool:
        assert define.output is not None
        ranges = {r.index: r.upper for r in define.ranges}
        return all(
            i.index is not None and ranges.get(i.index) == e
            for i, e in zip(define.output.at, tensor.extents, strict=True)
        )

    def _slice(self, at: Int, define: Define) -> str:
        """A slice of one axis that a statement writes."""
        free = at.free_indices()
        if len(free) != 1:
            raise NoFormula("a write at a gathered or compound index")
        (name,) = free
        split = at.affine([name])
        upper = next(r.upper for r in define.ranges if r.index == name)
        if split is None or split[0][name].constant is None:
            raise NoFormula("a write at a gathered or compound index")
        step, start = split[0][name].constant or 1, split[1]
        stop = start + (upper - 1) * step + 1
        assert define.output is not None
        extents = self._written(define).extents
        extent = next(e for e, i in zip(extents, define.output.at, strict=True) if i == at)
        if start.constant == 0 and stop == extent and step == 1:
            return ":"
        text = f"{self._bound(start)} : {self._bound(stop)}"
        return text if step == 1 else f"{text} : {step}"

    def _written(self, define: Define) -> Tensor:
        assert define.output is not None
        tensor = self.op.tensor(define.output.tensor)
        assert tensor is not None
        return tensor

    def _dtype(self, tensor: Tensor) -> str:
        """The dtype a result takes; float results stay float64 where the inputs are."""
        if isinstance(tensor.dtype, DTypeParam):
            source = next((t for t in self.op.tensors if t.role != "out" and t.dtype == tensor.dtype), None)
            if source is None:
                raise NoFormula("a result in a dtype that no input has")
            self.floats.add(source.name)
            return f"{self.names[source.name]}_dtype"
        if tensor.dtype.kind == "float":
            return (
                f"real if real == torch.float64 else {TORCH[tensor.dtype.name]}"
                if tensor.dtype is not F32
                else "real"
            )
        return TORCH[tensor.dtype.name]


def _is_identity(value: Reduce) -> bool:
    """Whether the value declared for an empty domain is the monoid's own identity."""
    empty, sign = value.empty, 1.0
    if isinstance(empty, Unary) and empty.op == "neg":
        empty, sign = empty.x, -1.0
    identity = {"max": float("-inf"), "min": float("inf")}.get(value.monoid)
    return isinstance(empty, Literal) and sign * empty.value == identity


def _used_only(lines: list[str]) -> tuple[str, ...]:
    """The lines without assignments of names that nothing below them uses."""
    kept: list[str] = []
    words: set[str] = set()
    for line in reversed(lines):
        name = re.match(r"(\w+) = ", line)
        if name is not None and name[1] not in words:
            continue
        words |= set(re.findall(r"\w+", line))
        kept.append(line)
    return tuple(reversed(kept))


def dtype_lines(op: Op, lines: tuple[str, ...]) -> tuple[str, ...]:
    """The formula with the dtype of each generic input kept before it is widened."""
    out = []
    joined = "\n".join(lines)
    for tensor in op.tensors:
        label = f"{escape(tensor.name)}_dtype"
        if label in joined:
            out.append(f"{label} = {escape(tensor.name)}.dtype")
    return (*out, *lines)


__all__ = ["NoFormula", "dtype_lines", "formula", "parameters"]
