"""Values as torch text, over dense tensors that broadcast."""

from __future__ import annotations

from typing import assert_never

from opspec.emit.host import strip_parens
from opspec.emit.torch_access import NoFormula, TorchAccess
from opspec.emit.torch_casts import TORCH, cast_text
from opspec.ir.dtypes import F32, DType, DTypeParam
from opspec.ir.integers import Int
from opspec.ir.program import Define
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

SIGN = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|"}
RELATION = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
Text = tuple[str, int]  # with how tightly it binds: 9 a name, 2 a comparison


class TorchExpressions(TorchAccess):
    """Values of the current statement."""

    var: dict[str, tuple[str, tuple[str, ...]]]
    kept: dict[str, str]
    kernel: dict[str, str]
    defines: dict[str, Define]
    raw: set[str]

    def expression(self, value: Value, axes: tuple[str, ...]) -> Text:
        """A value that broadcasts over ``axes``."""
        match value:
            case Literal(value=v):
                text = repr(v)
                if text in ("inf", "-inf", "nan"):
                    return f'float("{text}")', 9
                return text, 6 if text.startswith("-") else 9
            case Extent(value=v):
                text = self.integer(v, axes)
                return text, 9 if text.isidentifier() or strip_parens(text) != text else 4
            case Scalar(name=name):
                return self.names[name], 9
            case Read():
                return self._read(value, axes), 9
            case Unary():
                return self._unary(value, axes)
            case Binary():
                return self._binary(value, axes)
            case Compare(op=op, a=a, b=b):
                left, right = self.expression(a, axes), self.expression(b, axes)
                return f"({wrap(left, 4)} {RELATION[op]} {wrap(right, 4)})", 9
            case Select():
                return self._select(value, axes), 9
            case Cast():
                return self._cast(value, axes)
            case Reduce() | Scan():
                raise AssertionError("reductions stand at the root of a statement")
            case _:
                assert_never(value)

    def _unary(self, value: Unary, axes: tuple[str, ...]) -> Text:
        if value.op == "neg":
            return f"-{wrap(self.expression(value.x, axes), 6)}", 6
        if value.op != "not":
            return f"torch.{value.op}({self.tensor(value.x, axes)})", 9
        text = self.expression(value.x, axes)
        return (f"~{wrap(text, 6)}", 6) if dense(value.x) else (f"(not {text[0]})", 9)

    def _binary(self, value: Binary, axes: tuple[str, ...]) -> Text:
        op = value.op
        if op in ("min", "max"):
            return f"torch.{op}imum({self.tensor(value.a, axes)}, {self.tensor(value.b, axes)})", 9
        left, right = self.expression(value.a, axes), self.expression(value.b, axes)
        if op in ("and", "or") and not dense(value):
            return f"({left[0]} {op} {right[0]})", 9
        p = 5 if op in ("mul", "div", "floordiv", "mod") else 4 if op in ("add", "sub") else 2
        return f"{wrap(left, p)} {SIGN[op]} {wrap(right, p + 1)}", p

    def _select(self, value: Select, axes: tuple[str, ...]) -> str:
        test = self.expression(value.condition, axes)[0]
        if not dense(value.condition):
            test = f"torch.as_tensor({test}, device=device)"
        self.guards += 1
        a, b = self.expression(value.a, axes)[0], self.expression(value.b, axes)[0]
        self.guards -= 1
        if value.dtype is F32 and not dense(value.a) and not dense(value.b):
            a = f"torch.as_tensor({a}, dtype=real, device=device)"
        return f"torch.where({test}, {a}, {b})"

    def _cast(self, value: Cast, axes: tuple[str, ...]) -> Text:
        inner, x, to = self.expression(value.x, axes), value.x, value.to
        if value.implicit and not dense(x):
            return inner
        if isinstance(to, DTypeParam):
            # float64 stays as it is: what the check allows for has the rounding in it
            return f"{wrap(inner, 9)}.to({self.dtype_of(to)}).to(real)", 9
        text = wrap(inner, 9) if dense(x) else self.tensor(x, axes)
        whole = isinstance(x, Unary) and x.op in ("round", "floor", "ceil")
        return cast_text(text, x.dtype, to, value.mode, whole=whole), 9

    def dtype_of(self, to: DTypeParam) -> str:
        """The dtype that a parameter stands for in a call: that of an input."""
        source = next((t for t in self.op.tensors if t.role != "out" and t.dtype == to), None)
        if source is None:
            raise NoFormula("a dtype that no input has")
        return f"{self.names[source.name]}_dtype"

    def tensor(self, value: Value, axes: tuple[str, ...]) -> str:
        """A value as a tensor, also where it is a number."""
        text = self.expression(value, axes)[0]
        if dense(value) or (isinstance(value, Unary) and value.op not in ("neg", "not")):
            return text
        kind = f"dtype={'real' if value.dtype is F32 else TORCH[value.dtype.name]}, "
        return f"torch.as_tensor({text}, {kind}device=device)"

    def spread(self, value: Value) -> set[str]:
        """The indices that the text of a value has as axes."""
        found: set[str] = set()
        for node in walk(value):
            at = list(integers(node))
            if isinstance(node, Read) and node.otherwise is None:
                at = self.source(node)[1]
            found |= {i for x in at for i in x.free_indices()}
        return found

    # reads -----------------------------------------------------------------------
    def _read(self, read: Read, axes: tuple[str, ...]) -> str:
        name, at, extents = self.source(read)
        if read.otherwise is None:
            return self.place(name, at, extents, axes)
        places, tests = self.inside(at, extents, axes)
        if read.name in self.var:
            own = self.defines[read.name]
            full = [r.upper for r in own.ranges]
            tests += [t for t in self.inside(list(read.indices), full, axes)[1] if t not in tests]
            self.guards += 1
            tests += [self.condition(c, axes) for c in self.domain(own, read.indices)]
            self.guards -= 1
        text = f"{name}[{', '.join(places)}]" if tests and places else self.place(name, at, extents, axes)
        other = self.expression(read.otherwise, axes)[0]
        return f"torch.where({' & '.join(tests)}, {text}, {other})" if tests else text

    def source(self, read: Read, *, raw: bool = False) -> tuple[str, list[Int], list[Int]]:
        """The variable that a read takes, its places and the extents of its axes; ``raw``: in its own type."""
        if read.name in self.var:
            name, own = self.var[read.name]
            if read.name in self.kept and self.kernel[read.name] != self.kernel[self.current.name]:
                name = self.kept[read.name]
            define = self.defines[read.name]
            at = dict(zip(define.indices, read.indices, strict=True))
            ends = {r.index: r.upper for r in define.ranges}
            return name, [at[o] for o in own], [ends[o] for o in own]
        tensor = self.op.tensor(read.name)
        if tensor is None:
            raise NoFormula(f"`{read.name}`")
        name = self.names[read.name]
        if read.name in self.raw and not raw:
            name = f"{name}.to(real)"
        return name, list(read.indices), list(tensor.extents)


def dense(value: Value) -> bool:
    """Whether the value's text is a tensor and not a Python number."""
    if any(i.free_indices() or i.tensors() for n in walk(value) for i in integers(n)):
        return True
    return bool(free_indices(value)) or any(isinstance(n, Read) for n in walk(value))


def wrap(text: Text, at_least: int) -> str:
    """The text in parentheses where it binds less tightly."""
    return text[0] if text[1] >= at_least else f"({text[0]})"


def literal(dtype: DType, *, greatest: bool) -> str:
    """The greatest or least number of a compute type."""
    if dtype.kind == "float":
        return 'float("inf")' if greatest else 'float("-inf")'
    top = (1 << (dtype.bits - 1)) - 1
    return str(top if greatest else -top - 1)
