"""Values and index expressions as torch text, over dense tensors that broadcast."""

from __future__ import annotations

from typing import assert_never

from opspec.emit.host import host_int
from opspec.ir.dtypes import DType, Storage, compute_dtype
from opspec.ir.integers import Datum, Dim, FloorDiv, Index, Int, Mod
from opspec.ir.program import Define, Op, Tensor
from opspec.ir.values import (
    Binary,
    Cast,
    Compare,
    Extent,
    Literal,
    Read,
    Reduce,
    Scalar,
    Scan,
    Select,
    Unary,
    Value,
    free_indices,
    integers,
    walk,
)

TORCH = {
    "f32": "torch.float32", "bf16": "torch.bfloat16", "f16": "torch.float16", "f8e4m3": "torch.float8_e4m3fn",
    "f8e5m2": "torch.float8_e5m2", "i8": "torch.int8", "i32": "torch.int32", "i64": "torch.int64", "bool": "torch.bool",
}  # fmt: skip
UNARY = {
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tanh",
    "erf",
    "abs",
    "round",
    "floor",
    "ceil",
    "reciprocal",
}
SIGN = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|"}
RELATION = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class NoFormula(Exception):
    """The spec has a construct that plain torch has no line for; the message names it."""


class TorchExpressions:
    """The printer's state and its expressions; statements are in ``formula``."""

    op: Op
    names: dict[str, str]
    var: dict[str, tuple[str, tuple[str, ...]]]
    kept: dict[str, str]
    kernel: dict[str, str]
    defines: dict[str, Define]
    raw: set[str]
    guards: int

    def _expr(self, value: Value, axes: tuple[str, ...], define: Define) -> tuple[str, int]:
        match value:
            case Literal(value=v):
                text = repr(v)
                return (
                    (f'float("{text}")', 9)
                    if text in ("inf", "-inf", "nan")
                    else (text, 9 if not text.startswith("-") else 6)
                )
            case Extent(value=v):
                return self._int(v, axes), 4
            case Scalar(name=name):
                return self.names[name], 9
            case Read():
                return self._read(value, axes, define), 9
            case Unary(op="neg", x=x):
                return f"-{_wrap(self._expr(x, axes, define), 6)}", 6
            case Unary(op="not", x=x) if not self._dense_value(x):
                return f"(not {self._expr(x, axes, define)[0]})", 9
            case Binary(op=("and" | "or") as op, a=a, b=b) if not self._dense_value(value):
                first, second = self._expr(a, axes, define)[0], self._expr(b, axes, define)[0]
                return f"({first} {op} {second})", 9
            case Unary(op="not", x=x):
                return f"~{_wrap(self._expr(x, axes, define), 6)}", 6
            case Unary(op=op, x=x):
                return f"torch.{op}({self._tensor(x, axes, define)})", 9
            case Binary(op=("min" | "max") as op, a=a, b=b):
                texts = [self._tensor(v, axes, define) for v in (a, b)]
                return f"torch.{op}imum({', '.join(texts)})", 9
            case Binary(op=op, a=a, b=b):
                p = 5 if op in ("mul", "div", "floordiv", "mod") else 4 if op in ("add", "sub") else 2
                left, right = self._expr(a, axes, define), self._expr(b, axes, define)
                return f"{_wrap(left, p)} {SIGN[op]} {_wrap(right, p + 1)}", p
            case Compare(op=op, a=a, b=b):
                left, right = self._expr(a, axes, define), self._expr(b, axes, define)
                return f"({_wrap(left, 4)} {RELATION[op]} {_wrap(right, 4)})", 9
            case Select(condition=c, a=a, b=b):
                test = self._expr(c, axes, define)[0]
                if not self._dense_value(c):
                    test = f"torch.as_tensor({test}, device=device)"
                self.guards += 1
                texts = [self._expr(v, axes, define)[0] for v in (a, b)]
                self.guards -= 1
                return f"torch.where({test}, {texts[0]}, {texts[1]})", 9
            case Cast(to=to, implicit=implicit, x=x):
                return self._cast(to, implicit, x, axes, define)
            case Reduce() | Scan():
                raise AssertionError("reductions stand at the root of a statement")
            case _:
                assert_never(value)

    def _cast(
        self, to: Storage, implicit: bool, x: Value, axes: tuple[str, ...], define: Define
    ) -> tuple[str, int]:
        inner = self._expr(x, axes, define)
        if isinstance(x, Extent | Literal | Scalar):
            return inner
        if implicit and not self._dense_value(x):
            return inner
        if implicit:
            return f"{_wrap(inner, 9)}.to(real)", 9
        if isinstance(to, DType) and to.kind == "float":
            return f"{_wrap(inner, 9)}.to({TORCH[to.name]}).to(real)", 9
        raise NoFormula("a cast to a quantised or generic type")

    def _dense_value(self, value: Value) -> bool:
        """Whether the value's text is a tensor and not a Python number."""
        return bool(free_indices(value)) or any(isinstance(n, Read) for n in walk(value))

    def _tensor(self, value: Value, axes: tuple[str, ...], define: Define) -> str:
        text = self._expr(value, axes, define)[0]
        scalar = all(
            isinstance(n, Literal | Extent | Scalar | Cast | Unary | Binary) for n in walk(value)
        ) and not any(i.free_indices() for n in walk(value) for i in integers(n))
        return f"torch.as_tensor({text}, dtype=real, device=device)" if scalar else text

    def _read(self, read: Read, axes: tuple[str, ...], define: Define) -> str:
        if read.otherwise is not None:
            return self._read_or_else(read, axes, define)
        if read.name in self.var:
            name, own = self.var[read.name]
            if read.name in self.kept and self.kernel[read.name] != self.kernel[define.name]:
                name = self.kept[read.name]
            full = self.defines[read.name].indices
            at = dict(zip(full, read.indices, strict=True))
            return self._place(name, [at[o] for o in own], axes, None)
        tensor = self.op.tensor(read.name)
        if tensor is None:
            raise NoFormula(f"`{read.name}`")
        name = self.names[read.name]
        if read.name in self.raw:
            name = f"{name}.to(real)"
        return self._place(name, list(read.indices), axes, (tensor, define))

    def _read_or_else(self, read: Read, axes: tuple[str, ...], define: Define) -> str:
        """A read that may lie outside: clamped, and replaced where it does."""
        tensor = self.op.tensor(read.name)
        if tensor is None or read.otherwise is None:
            raise NoFormula("a value read with `else`")
        places, tests = [], []
        for i, extent in zip(read.indices, tensor.extents, strict=True):
            at, end = self._int(i, axes), host_int(extent, self.names, tight=True)
            if not i.free_indices() and not i.tensors():
                at = f"torch.as_tensor({at}, device=device)"
            if i.index is None or self._upper(define, i.index) != extent:
                tests.append(f"({at} >= 0) & ({at} < {end})")
                at = f"{at}.clamp(0, {end} - 1)"
            places.append(at)
        text = f"{self.names[read.name]}[{', '.join(places)}]"
        other = self._expr(read.otherwise, axes, define)[0]
        return f"torch.where({' & '.join(tests)}, {text}, {other})" if tests else text

    def _place(
        self, name: str, at: list[Int], axes: tuple[str, ...], access: tuple[Tensor, Define] | None
    ) -> str:
        """Index ``name`` so that it broadcasts over ``axes``."""
        slices, own = [], []
        simple = True
        for k, i in enumerate(at):
            free = i.free_indices()
            split = i.affine(free) if len(free) == 1 and not i.tensors() else None
            index = next(iter(free)) if len(free) == 1 else None
            if self.guards and i.index is None:
                simple = False
                break
            if split is None or index is None or index in own or split[0].get(index, Int(())).constant != 1:
                simple = False
                break
            own.append(index)
            extent = access[0].extents[k] if access else None
            upper = self._upper(access[1], index) if access else None
            if access is None or (i.index is not None and upper == extent):
                slices.append(":")
            else:
                start, stop = split[1], split[1] + (upper or Int(()))
                slices.append(f"{self._bound(start)} : {self._bound(stop)}".strip())
        if not simple:
            parts = [self._int(i, axes) for i in at]
            if self.guards:
                # torch reads both branches of a `where`: keep the one not taken inside
                for k, i in enumerate(at):
                    if i.index is None and (i.free_indices() or i.tensors()):
                        end = f"{name}.shape[{k}]"
                        if access is not None:
                            end = host_int(access[0].extents[k], self.names, tight=True)
                        parts[k] = f"({parts[k]}).clamp(0, {end} - 1)"
            return f"{name}[{', '.join(parts)}]"
        text = name if all(s == ":" for s in slices) else f"{name}[{', '.join(slices)}]"
        wanted = [a for a in axes if a in own]
        if wanted != own:
            text = f"{text}.permute({', '.join(str(own.index(a)) for a in wanted)})"
        pattern = [":" if a in own else "None" for a in axes]
        while pattern and pattern[0] == "None":
            pattern.pop(0)
        if "None" in pattern:
            text = f"{text}[{', '.join(pattern)}]"
        return text

    def _bound(self, value: Int) -> str:
        return "" if value.constant == 0 else host_int(value, self.names)

    def _upper(self, define: Define, index: str) -> Int | None:
        bound = define.value.ranges if isinstance(define.value, Reduce) else ()
        return next((r.upper for r in (*define.ranges, *bound) if r.index == index), None)

    def _int(self, value: Int, axes: tuple[str, ...]) -> str:
        """An integer expression; indices become broadcast aranges."""
        if not value.free_indices() and not value.tensors():
            return host_int(value, self.names, tight=True)
        pieces = []
        for monomial, c in value.terms:
            factors = [] if abs(c) == 1 and monomial else [str(abs(c))]
            for atom, power in monomial:
                factors += [self._atom(atom, axes)] * power
            pieces.append((c < 0, " * ".join(factors)))
        text = ""
        for k, (minus, piece) in enumerate(pieces):
            text += (f"-{piece}" if minus else piece) if k == 0 else f" {'-' if minus else '+'} {piece}"
        return f"({text})" if len(pieces) > 1 else text

    def _atom(self, atom: object, axes: tuple[str, ...]) -> str:

        match atom:
            case Index(name):
                return self._arange(name, axes)
            case Datum(tensor, indices):
                text = self._place(self.names[tensor], list(indices), axes, None)
                declared = self.op.tensor(tensor)
                flag = declared is not None and compute_dtype(declared.dtype).kind == "bool"
                return f"{text}.to(torch.int64)" if flag else text
            case FloorDiv(num, den):
                return f"({self._int(num, axes)} // {self._int(den, axes)})"
            case Mod(num, den):
                return f"({self._int(num, axes)} % {self._int(den, axes)})"
            case Dim(name):
                return self.names[name]
        raise NoFormula("min or max of indices")

    def _arange(self, index: str, axes: tuple[str, ...]) -> str:
        upper = None
        for define in self.op.defines:
            upper = upper or self._upper(define, index)
        if upper is None:
            raise NoFormula(f"index {index}")
        text = f"torch.arange({host_int(upper, self.names)}, device=device)"
        pattern = [":" if a == index else "None" for a in axes]
        while pattern and pattern[0] == "None":
            pattern.pop(0)
        return f"{text}[{', '.join(pattern)}]" if len(pattern) > 1 else text

    def _condition(self, constraint: Int, axes: tuple[str, ...]) -> str:
        return f"({self._int(constraint, axes)} >= 0)"


def _wrap(text: tuple[str, int], at_least: int) -> str:
    return text[0] if text[1] >= at_least else f"({text[0]})"
