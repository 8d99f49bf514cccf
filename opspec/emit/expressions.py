"""Integer and value expressions as Triton text, with block dimensions expanded where they meet."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from opspec.ir.dtypes import BOOL, F32, I4, I8, I64, DType, DTypeParam, Storage
from opspec.ir.integers import Atom, Datum, Dim, FloorDiv, Greatest, Index, Int, Least, Mod
from opspec.ir.values import (
    Binary,
    Cast,
    Compare,
    CompareOp,
    Extent,
    Literal,
    Monoid,
    Read,
    Reduce,
    Scalar,
    Scan,
    Select,
    Unary,
    Value,
    walk,
)

TL = {
    "f32": "tl.float32", "bf16": "tl.bfloat16", "f16": "tl.float16", "f8e4m3": "tl.float8e4nv",
    "f8e5m2": "tl.float8e5", "i8": "tl.int8", "i32": "tl.int32", "i64": "tl.int64", "bool": "tl.int1",
}  # fmt: skip
UNARY = {
    "exp": "tl.exp", "exp2": "tl.exp2", "log": "tl.log", "sqrt": "tl.sqrt", "rsqrt": "tl.rsqrt", "sin": "tl.sin", "cos": "tl.cos",
    "erf": "erf", "one_plus_erf": "one_plus_erf", "abs": "tl.abs", "floor": "tl.floor", "ceil": "tl.ceil", "tanh": "tanh",
    "round": "round_even",
}  # fmt: skip
HELPERS = frozenset({"erf", "one_plus_erf", "tanh", "round_even"})
INFIX = {"add": ("+", 4), "sub": ("-", 4), "mul": ("*", 5), "div": ("/", 5), "and": ("&", 3), "or": ("|", 2)}
OPPOSITE: dict[str, CompareOp] = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}
RELATION = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
ATOM = 9
SMALL = 2048  # of what is counted: the points of one block times it stay far within 32 bits

Text = tuple[str, int]  # text and its precedence


@dataclass
class Expressions:
    """A printer. ``axes``: block dimensions of variables; ``dims``: of axes; ``names``: user name → identifier; ``stored``:
    variables that are held in a storage type; ``lifted``: those that are held above what they are."""

    dims: Mapping[str, tuple[str, ...]]
    names: Mapping[str, str]
    axes: dict[str, tuple[str, ...]]
    data: Mapping[tuple[str, tuple[Int, ...]], str]
    element: Callable[[DTypeParam], str]
    used: set[str] = field(default_factory=set)
    stored: dict[str, Storage] = field(default_factory=dict)
    lifted: set[str] = field(default_factory=set)
    wide: bool = False
    quotient: Callable[[str, Int], str | None] | None = None

    # shapes --------------------------------------------------------------
    def expand(self, text: Text, own: tuple[str, ...], target: tuple[str, ...]) -> Text:
        """Index a block of dimensions ``own`` so that it broadcasts over ``target``."""
        if not own or own == target:
            return text
        ordered = tuple(a for a in target if a in own)
        if ordered != own and set(ordered) == set(own):
            text = (f"tl.trans({text[0]})", ATOM)
            if ordered == target:
                return text
        pattern = ", ".join(":" if a in own else "None" for a in target)
        return f"{wrap(text, ATOM)}[{pattern}]", ATOM

    def int_axes(self, value: Int) -> frozenset[str]:
        """Block dimensions of an integer expression."""
        found: set[str] = set()
        for atom in value.atoms():
            if isinstance(atom, Index):
                found |= set(self.dims.get(atom.name, ()))
            if isinstance(atom, Datum):
                found |= set(self.axes[self.data[atom.tensor, atom.indices]])
        return frozenset(found)

    # integers ------------------------------------------------------------
    def integer(self, value: Int, target: tuple[str, ...]) -> Text:
        """An integer expression over ``target`` dimensions."""
        own = tuple(a for a in target if a in self.int_axes(value))
        if len(own) == 1 and own != target:
            return self.expand(self.integer(value, own), own, target)
        if not value.terms:
            return "0", ATOM
        text, first = "", True
        for monomial, c in sorted(value.terms, key=lambda t: t[1] < 0):
            factors = [self.atom(a, target) for a, p in monomial for _ in range(p)]
            if self.wide and (len(factors) > 1 or (factors and abs(c) > 1 << 15)):
                factors[0] = (f"tl.cast({factors[0][0]}, tl.int64)", ATOM)
            if abs(c) != 1 or not factors:
                factors.insert(0, (str(abs(c)), ATOM))
            # a quotient behind a factor needs its parentheses
            part = " * ".join(wrap(f, 6 if k else 5) for k, f in enumerate(factors))
            if first:
                text = f"-{part}" if c < 0 else part
            else:
                text += f" {'-' if c < 0 else '+'} {part}"
            first = False
        single = len(value.terms) == 1
        precedence = 4 if not single else 5
        if single and value.atom is not None:
            return text, self.atom(value.atom, target)[1]
        if single and value.constant is not None and value.constant >= 0:
            precedence = ATOM
        return text, precedence

    def exact(self, value: Int, target: tuple[str, ...]) -> Text:
        """An integer expression used as a value: products are formed in 64 bits."""
        before, self.wide = self.wide, True
        text = self.integer(value, target)
        self.wide = before
        return text

    def atom(self, atom: Atom, target: tuple[str, ...]) -> Text:
        """One atom of an integer expression."""
        match atom:
            case Dim(name):
                return self.names[name], ATOM
            case Index(name):
                return self.expand((self.names[name], ATOM), self.dims.get(name, ()), target)
            case FloorDiv(num, den) if self.quotient and num.index and (one := self.quotient(num.index, den)):
                return self.expand((one, ATOM), self.dims.get(num.index or "", ()), target)
            case FloorDiv(num, den) | Mod(num, den):
                a, b = self.integer(num, target), self.integer(den, target)
                floor = isinstance(atom, FloorDiv)
                if all(c > 0 for _, c in num.terms):
                    return f"{wrap(a, 5)} {'//' if floor else '%'} {wrap(b, 6)}", 5
                return self.call("floor_div" if floor else "floor_mod", a[0], b[0])
            case Datum(tensor, indices):
                name = self.data[tensor, indices]
                # in an address it is multiplied by a stride, and may be narrower than an offset
                text = name if self.wide else f"{name}.to(INDEX)"
                return self.expand((text, ATOM), self.axes[name], target)
            case Least(args) | Greatest(args):
                function = "tl.minimum" if isinstance(atom, Least) else "tl.maximum"
                text = self.integer(args[0], target)[0]
                for arg in args[1:]:
                    text = f"{function}({text}, {self.integer(arg, target)[0]})"
                return text, ATOM
            case _:
                assert_never(atom)

    # values --------------------------------------------------------------
    def call(self, helper: str, *args: str) -> Text:
        """A call of a device function of the runtime."""
        self.used.add(helper)
        return f"{helper}({', '.join(args)})", ATOM

    def value(self, value: Value, target: tuple[str, ...]) -> Text:
        """A pointwise value that broadcasts over ``target``."""
        match value:
            case Literal():
                return literal(value)
            case Extent(value=v):
                return self.exact(v, target)
            case Scalar(name=name) if value.dtype is I64:
                return f"tl.cast({self.names[name]}, tl.int64)", ATOM
            case Scalar(name=name):
                # a truth value arrives as an integer
                return (f"{self.names[name]} != 0", 1) if value.dtype is BOOL else (self.names[name], ATOM)
            case Read(name=name):
                text = self.expand((name, ATOM), self.axes[name], target)
                return (f"{text[0]}.to({TL[value.dtype.name]})", ATOM) if name in self.stored else text
            case Unary(op="neg", x=x):
                return f"-{wrap(self.value(x, target), 6)}", 6
            case Unary(op="not", x=x):
                return self._negated(x, target)
            case Unary(op="reciprocal", x=x):
                return f"1.0 / {wrap(self.value(x, target), 6)}", 5
            case Unary(op=op, x=x):
                function = UNARY[op]
                if function in HELPERS:
                    return self.call(function, self.value(x, target)[0])
                return f"{function}({self.value(x, target)[0]})", ATOM
            case Binary(op=("min" | "max") as op, a=a, b=b):
                args = (self.value(a, target)[0], self.value(b, target)[0])
                if value.dtype is F32:
                    return self.call("minimum" if op == "min" else "maximum", *args)
                return f"tl.{op}imum({args[0]}, {args[1]})", ATOM
            case Binary(op=("floordiv" | "mod") as op, a=a, b=b):
                args = (self.value(a, target)[0], self.value(b, target)[0])
                return self.call("floor_div" if op == "floordiv" else "floor_mod", *args)
            case Binary(op=("div_fast" | "div_near") as op, a=a, b=b):
                if op == "div_fast" and a == Literal(value=1.0, dtype=F32):
                    return self.call("inverse", self.value(b, target)[0])
                return self.call(op, self.value(a, target)[0], self.value(b, target)[0])
            case Binary(op=("add" | "sub" | "mul") as op, a=a, b=b) if value.dtype is I64 and not (
                in_64_bits(a) or in_64_bits(b)
            ):
                sign, p = INFIX[op]
                return f"{self.widened(a, target)} {sign} {wrap(self.value(b, target), p + 1)}", p
            case Binary(op=op, a=a, b=b):
                sign, p = INFIX[op]
                right = p if op in ("add", "mul", "and", "or") else p + 1
                if op in ("add", "mul"):
                    # floating-point sums and products keep the grouping that the spec wrote
                    right = p + 1
                return f"{wrap(self.value(a, target), p)} {sign} {wrap(self.value(b, target), right)}", p
            case Compare(op=("eq" | "ne") as op, a=a, b=b) if a == b and _varies(a):
                nan = self.call("is_nan", self.value(a, target)[0])
                return nan if op == "ne" else (f"~{nan[0]}", 6)
            case Compare(op=op, a=a, b=b):
                left, right_text = self.value(a, target), self.value(b, target)
                return f"{wrap(left, 2)} {RELATION[op]} {wrap(right_text, 2)}", 1
            case Select(condition=c, a=a, b=b):
                texts = [self.value(v, target)[0] for v in (c, a, b)]
                return f"tl.where({', '.join(texts)})", ATOM
            case Cast():
                return self.cast(value, target)
            case Reduce() | Scan():
                raise AssertionError("reductions stand at the root of a statement")
            case _:
                assert_never(value)

    def widened(self, value: Value, target: tuple[str, ...]) -> str:
        """A value of 64 bits, of which literals, dims and indices are written in what Triton gives them."""
        text = self.value(value, target)[0]
        return f"tl.cast({text}, tl.int64)" if value.dtype is I64 and not in_64_bits(value) else text

    def entering(self, value: Value, monoid: Monoid, target: tuple[str, ...]) -> Text:
        """A value that a reduction or a scan takes, wide enough for what comes of it. Few points have a say at once,
        and what is carried has 64 bits: a sum of small numbers needs no more than 32 in between."""
        if value.dtype is not I64 or in_64_bits(value) or is_count(value, monoid):
            return self.value(value, target)
        return self.widened(value, target), ATOM

    def _negated(self, x: Value, target: tuple[str, ...]) -> Text:
        """The negation, pushed inwards: what is known when Triton compiles may be a Python bool there, and ``~True`` is -2."""
        match x:
            case Compare(op=op, a=a) if op in ("eq", "ne") or a.dtype.kind == "int":
                return self.value(replace(x, op=OPPOSITE[op]), target)
            case Binary(op=("and" | "or") as op, a=a, b=b):
                left, right = (Unary(op="not", x=v, dtype=BOOL) for v in (a, b))
                return self.value(
                    Binary(op="or" if op == "and" else "and", a=left, b=right, dtype=BOOL), target
                )
            case Unary(op="not", x=inner):
                return self.value(inner, target)
            case Scalar(name=name):
                return f"{self.names[name]} == 0", 1
            case Literal(value=value):
                return str(not value), ATOM
        return f"~{wrap(self.value(x, target), 6)}", 6

    def cast(self, value: Cast, target: tuple[str, ...]) -> Text:
        """A rounding to a storage type, back in its compute type."""
        if isinstance(value.x, Literal) and value.implicit:
            return literal(Literal(value=float(value.x.value), dtype=F32))
        text = self.rounded(value, target)
        if value.implicit or value.to == value.dtype:
            return text
        return f"{text[0]}.to({TL[value.dtype.name]})", ATOM

    def rounded(self, value: Cast, target: tuple[str, ...]) -> Text:
        """A rounding to a storage type, left in it."""
        saturates = value.mode == "sat" and value.to == I8  # and rounds as well
        inner = value.x.x if saturates and isinstance(value.x, Unary) and value.x.op == "round" else value.x
        x = self.value(inner, target)
        if not any(isinstance(v, Read) for v in walk(value.x)):
            # what depends on no element may be a number of Python
            x = f"tl.cast({x[0]}, {TL[(value.dtype if value.implicit else value.x.dtype).name]})", ATOM
            if value.implicit:
                return x
        if value.implicit or value.to == F32:
            return f"{wrap(x, ATOM)}.to({TL[value.dtype.name]})", ATOM
        if value.dtype.kind == "int" and value.x.dtype is F32:
            if not whole(value.x) and not saturates:
                x = self.call("round_even", x[0])
            if value.mode == "wrap":
                x = f"{wrap(x, ATOM)}.to(tl.int64)", ATOM
        f8 = isinstance(value.to, DType) and value.to.kind == "float" and value.to.bits == 8
        if value.to == I4 and value.mode == "wrap":
            return self.call("to_i4_wrap", x[0])
        if isinstance(value.to, DType) and (value.mode == "sat" or (value.mode == "nonsat" and f8)):
            return self.call(f"to_{value.to.name}_{value.mode}", x[0])
        return f"{wrap(x, ATOM)}.to({self.storage(value.to)})", ATOM

    def held(self, value: Value, target: tuple[str, ...], dtype: Storage) -> Text | None:
        """A variable in the storage type in which it is held, if that is ``dtype``."""
        if isinstance(value, Read) and self.stored.get(value.name) == dtype:
            return self.expand((value.name, ATOM), self.axes[value.name], target)
        return None

    def storage(self, dtype: Storage) -> str:
        """A storage type as Triton text."""
        return self.element(dtype) if isinstance(dtype, DTypeParam) else TL[dtype.name]


def in_64_bits(value: Value) -> bool:
    """Whether the text of an integer value has 64 bits, whatever those of literals, dims and indices have."""
    match value:
        case Literal() | Extent():
            return False
        case Select(a=a, b=b) | Binary(op="min" | "max" | "floordiv" | "mod", a=a, b=b):
            return in_64_bits(a) or in_64_bits(b)
        case Unary(x=x):
            return in_64_bits(x)
    return True


def is_count(value: Value, monoid: Monoid) -> bool:
    """Whether a reduction sums small numbers, in 32 bits."""
    return monoid == "sum" and value.dtype is I64 and _is_small(value)


def _is_small(value: Value) -> bool:
    match value:
        case Literal(value=number):
            return abs(number) <= SMALL
        case Select(a=a, b=b):
            return _is_small(a) and _is_small(b)
    return False


def _varies(value: Value) -> bool:
    """Whether an f32 value depends on an element, so that it may be NaN."""
    return value.dtype is F32 and any(isinstance(v, Read) for v in walk(value))


def whole(value: Value) -> bool:
    """Whether an f32 value is known to be an integer, so that a cast to one need not round it."""
    match value:
        case Unary(op="round" | "floor" | "ceil"):
            return True
        case Unary(op="neg" | "abs", x=x):
            return whole(x)
        case Binary(op="min" | "max", a=a, b=b):
            return whole(a) and whole(b)
        case Literal(value=number):
            return math.isinf(number) or float(number).is_integer()
        case Cast(x=x):
            return x.dtype.kind == "int"
    return False


def wrap(text: Text, at_least: int) -> str:
    """The text, in parentheses if it binds less tightly."""
    return text[0] if text[1] >= at_least else f"({text[0]})"


def literal(value: Literal) -> Text:
    """A number as Triton text."""
    v = value.value
    if isinstance(v, bool):
        return str(v), ATOM
    if isinstance(v, float):
        if math.isnan(v):
            return 'float("nan")', ATOM
        if math.isinf(v):
            return ('float("inf")', ATOM) if v > 0 else ('float("-inf")', ATOM)
        text = repr(v)
    else:
        text = f"{v}.0" if value.dtype is F32 else str(v)
    return text, 6 if text.startswith("-") else ATOM
