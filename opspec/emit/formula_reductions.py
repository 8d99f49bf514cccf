"""Reductions and scans as torch text; products of two operands go to ``einsum``, so that no larger box is made."""

from __future__ import annotations

from dataclasses import replace

from opspec.emit.host import host_int, tuple_text
from opspec.emit.torch_access import NoFormula
from opspec.emit.torch_expressions import TorchExpressions, literal
from opspec.ir.dtypes import BF16, F16, F32, I8, DType, DTypeParam, Storage, choices, compute_dtype
from opspec.ir.integers import Int
from opspec.ir.program import Define, Op
from opspec.ir.values import (
    Binary,
    Cast,
    Literal,
    Read,
    Reduce,
    Scan,
    Unary,
    Value,
    free_indices,
    walk,
)

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
FUNCTION = {"max": "amax", "min": "amin"}


class Reductions(TorchExpressions):
    """Statements whose value is a reduction or a scan. ``narrow``: the last was a product of narrow operands."""

    narrow: bool

    # which products run in the type of their tensors --------------------------------
    def raw_inputs(self) -> set[str]:
        """Inputs that only enter products in their own type (8 bits: in bf16): they stay as they are."""
        users: dict[str, list[bool]] = {}
        for define in self.op.defines:
            self.current = define
            value = define.value
            pair = factors(value) if isinstance(value, Reduce) else None
            kind = self._kind(value) if isinstance(value, Reduce) else None
            for node in walk(value):
                tensor = self.op.tensor(node.name) if isinstance(node, Read) else None
                if tensor is None or not isinstance(node, Read):
                    continue
                own = BF16 if eight_bits(tensor.dtype) else tensor.dtype
                direct = pair is not None and any(node is f for f in pair) and kind == own
                users.setdefault(node.name, []).append(direct and tensor.role == "in")
        return {name for name, uses in users.items() if all(uses)}

    def _kind(self, value: Reduce) -> Storage | None:
        """The type of at most 16 bits, or of the caller's choice, that the operands of a product are rounded to
        or hold exactly; None where it runs in f32."""
        if value.using in WIDTH:
            return BF16 if value.using == "bf16" else F16
        pair = factors(value)
        if pair is None or value.using is not None or value.dtype is not F32:
            return None
        a, b = (self._exact(f) for f in pair)
        if a is None or b is None:
            return None
        small = [k for k in (a, b) if k != I8]
        kinds = {BF16 if eight_bits(k) else k for k in small}
        return next(iter(kinds)) if len(kinds) == 1 else None

    def _exact(self, operand: Value) -> Storage | None:
        """The narrow type that holds an operand; i8 for all small integers, which fit every other."""
        match operand:
            case Cast(implicit=True, x=Read() as x):
                found = self._exact(x)
                return found if found == I8 else None
            case Cast(to=DType() as to, implicit=False) if to in (BF16, F16):
                return to
            case Read(otherwise=None, name=name):
                tensor = self.op.tensor(name)
                if tensor is not None:
                    return _narrow(tensor.dtype)
                crosses = name in self.defines and self.kernel[name] != self.kernel[self.current.name]
                return _narrow(stored_dtype(self.op, self.defines[name]) or F32) if crosses else None
            case _:
                return None

    # sums, extremes and places -------------------------------------------------------
    def reduction(self, value: Reduce) -> tuple[str, tuple[str, ...]]:
        """A reduction, and the indices that it still has."""
        product = self._product(value)
        if product is not None:
            return product
        define = self.current
        bound = tuple(r.index for r in value.ranges)
        domain = self.domain(_over(define, value))
        present = self.spread(value.body) | {i for c in domain for i in c.free_indices()}
        present |= self.spread(value.empty) if value.empty is not None else set()
        kept = tuple(i for i in define.indices if i in present)
        axes = (*kept, *bound)
        masks = self.masks(domain, axes)
        text, _ = self.expression(value.body, axes)
        shape = tuple_text([self.size(i) for i in axes])
        if masks:
            text = f"torch.where({masks}, {text}, {self._identity(value)})"
        if not present.issuperset(axes):
            text = f"torch.broadcast_to(torch.as_tensor({text}, device=device), {shape})"
        monoid = value.monoid
        places = sorted((axes.index(b) for b in bound), reverse=True)
        dims = tuple_text([str(p) for p in reversed(places)]) if len(places) > 1 else str(places[0])
        if monoid == "prod":
            for place in places:
                text = f"torch.prod({text}, dim={place})"
        elif monoid in ("argmax", "argmin") and len(places) > 1:
            raise NoFormula("the place of an extreme over several indices")
        else:
            text = f"torch.{FUNCTION.get(monoid, monoid)}({text}, dim={dims})"
        if value.empty is not None and masks and not _is_identity(value):
            some = f"torch.any(torch.broadcast_to({masks}, {shape}), dim={dims})"
            text = f"torch.where({some}, {text}, {self.expression(value.empty, kept)[0]})"
        return text, kept

    def _identity(self, value: Reduce | Scan) -> str:
        match value.monoid:
            case "sum":
                return "0"
            case "prod":
                return "1"
            case "any":
                return "False"
            case "all":
                return "True"
            case "max" | "argmax":
                return literal(value.body.dtype, greatest=False)
            case "min" | "argmin":
                return literal(value.body.dtype, greatest=True)

    # products ------------------------------------------------------------------------
    def _product(self, value: Reduce) -> tuple[str, tuple[str, ...]] | None:
        define, bound = self.current, tuple(r.index for r in value.ranges)
        pair = factors(value)
        if pair is None:
            return None
        own = [free_indices(f) for f in pair]
        whole = (*define.indices, *bound)
        masks: list[list[Int]] = [[], []]
        for c in self.domain(_over(define, value)):
            if not c.free_indices() & set(bound):
                continue
            home = next((k for k in (0, 1) if c.free_indices() <= own[k]), None)
            if home is None:
                return None
            masks[home].append(c)
        kind = self._kind(value)
        letters = {i: LETTERS[k] for k, i in enumerate(whole)}
        texts, shapes = [], []
        for factor, mask, indices in zip(pair, masks, own, strict=True):
            axes = tuple(i for i in whole if i in indices)
            text, order = self._operand(factor, axes, tuple(mask), kind)
            texts.append(text)
            shapes.append("".join(letters[i] for i in order))
        free = tuple(i for i in define.indices if i in own[0] | own[1])
        out = "".join(letters[i] for i in free)
        text = f'torch.einsum("{shapes[0]},{shapes[1]}->{out}", {texts[0]}, {texts[1]})'
        self.narrow = kind is not None
        return text, free

    def _operand(
        self, operand: Value, axes: tuple[str, ...], masks: tuple[Int, ...], kind: Storage | None
    ) -> tuple[str, tuple[str, ...]]:
        """One operand of an ``einsum`` in the type in which it is multiplied, and what its axes are."""
        raw = isinstance(operand, Read) and operand.name in self.raw
        order, text = axes, None
        if isinstance(operand, Read) and not masks and operand.otherwise is None:
            name, at, extents = self.source(operand, raw=raw)
            found = self.view(name, at, extents)
            if found is not None and set(found[1]) == set(axes):
                text, order = found[0], tuple(found[1])
        if text is None:
            if raw and isinstance(operand, Read):
                text = self.place(*self.source(operand, raw=True), axes)
            else:
                text = self.expression(operand, axes)[0]
            condition = self.masks(masks, axes)
            if condition:
                text = f"torch.where({condition}, {text}, 0)"
            text = f"torch.broadcast_to({text}, {tuple_text([self.size(i) for i in axes])})"
        if kind is not None and not raw:
            text = f"{text}.to({self._type(kind)})"
        return text, order

    def _type(self, kind: Storage) -> str:
        return self.dtype_of(kind) if isinstance(kind, DTypeParam) else WIDTH[kind.name]

    # scans -----------------------------------------------------------------------------
    def scan(self, value: Scan, name: str) -> str:
        """A running reduction; a decayed one by doubling, with as many steps as its axis has bits."""
        define = self.current
        axes, k = define.indices, define.indices.index(value.index)
        masks = self.masks(self.domain(define), axes)
        shape = tuple_text([host_int(r.upper, self.names) for r in define.ranges])
        logical = value.monoid in ("any", "all")

        def whole(part: Value, neutral: str) -> str:
            text, _ = self.expression(part, axes)
            if masks:
                text = f"torch.where({masks}, {text}, {neutral})"
            text = f"torch.broadcast_to(torch.as_tensor({text}, device=device), {shape})"
            return f"torch.flip({text}, ({k},))" if value.reverse else text

        identity = self._identity(value)
        if value.decay is not None:
            text = self._decayed(whole(value.body, "0"), whole(value.decay, "1"), k, name)
        elif value.monoid in ("sum", "prod"):
            text = f"torch.cum{value.monoid}({whole(value.body, identity)}, dim={k})"
        elif logical:
            extreme = "cummax" if value.monoid == "any" else "cummin"
            text = f"torch.{extreme}({whole(value.body, identity)}.to(torch.int8), dim={k}).values != 0"
        else:
            text = f"torch.cum{value.monoid}({whole(value.body, identity)}, dim={k}).values"
        return f"torch.flip({text}, ({k},))" if value.reverse else text

    def _decayed(self, body: str, decay: str, k: int, name: str) -> str:
        s, a = self.fresh(f"{name}_sum"), self.fresh(f"{name}_factor")
        step, before, pad = self.fresh("step"), self.fresh("before"), "torch.nn.functional.pad"
        self.body += [
            f"{s} = torch.movedim({body}, {k}, -1)",
            f"{a} = torch.movedim({decay}, {k}, -1)",
            f"for {step} in (1 << bit for bit in range({s}.shape[-1].bit_length())):",
            f"    {before} = {pad}({s}, ({step}, 0))[..., : {s}.shape[-1]]",
            f"    {s} = {s} + {a} * {before}",
            f"    {before} = {pad}({a}, ({step}, 0), value=1)[..., : {a}.shape[-1]]",
            f"    {a} = {a} * {before}",
        ]
        return f"torch.movedim({s}, -1, {k})"


WIDTH = {"bf16": "half", "f16": "half16"}


def narrow_lines() -> list[str]:
    """The types in which products of rounded operands run: float64 stays float64."""
    return [
        "half = real if real == torch.float64 else torch.bfloat16",
        "half16 = real if real == torch.float64 else torch.float16",
    ]


def factors(value: Reduce) -> tuple[Value, Value] | None:
    """The two operands of a sum of products that a matrix product can be; None for anything else."""
    body = value.body
    if value.monoid != "sum" or not isinstance(body, Binary) or body.op != "mul":
        return None
    own = [free_indices(body.a), free_indices(body.b)]
    bound = {r.index for r in value.ranges}
    return (body.a, body.b) if bound <= own[0] & own[1] and own[0] != own[1] else None


def eight_bits(dtype: Storage) -> bool:
    """Whether a float type has 8 bits: torch has no product of such tensors, and bf16 holds what is in them."""
    return all(d.bits == 8 and d.kind == "float" for d in choices(dtype))


def _narrow(dtype: Storage) -> Storage | None:
    if all(d.kind == "int" and d.bits <= 8 for d in choices(dtype)):
        return I8
    if isinstance(dtype, DTypeParam):
        return dtype if compute_dtype(dtype) is F32 else None
    return dtype if dtype.kind == "float" and dtype.bits <= 16 else None


def stored_dtype(op: Op, define: Define) -> Storage | None:
    """The type that a value is stored in between kernels; None where no other kernel reads it."""
    kernel = {d.name: k.name for k in op.boundaries[0].kernels for d in k.body}
    crossing = any(
        isinstance(n, Read) and n.name == define.name and kernel[d.name] != kernel[define.name]
        for d in op.defines
        for n in walk(d.value)
    )
    if not crossing:
        return None
    if define.output is not None:
        tensor = op.tensor(define.output.tensor)
        assert tensor is not None
        return tensor.dtype
    return define.storage or F32


def _over(define: Define, value: Reduce) -> Define:
    """The domain that a reduction ranges over, as that of a statement."""
    return replace(define, ranges=value.ranges, constraints=value.constraints)


def _is_identity(value: Reduce) -> bool:
    """Whether the value declared for an empty domain is the monoid's own identity."""
    empty, sign = value.empty, 1.0
    if isinstance(empty, Unary) and empty.op == "neg":
        empty, sign = empty.x, -1.0
    identity = {"max": float("-inf"), "min": float("inf")}.get(value.monoid)
    return isinstance(empty, Literal) and sign * empty.value == identity
