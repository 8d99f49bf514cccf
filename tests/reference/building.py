"""Small ops built by hand, so that the reference is tested without the front end."""

from __future__ import annotations

import numpy as np

from opspec.ir.dtypes import BOOL, F32, I32, I64, DType, compute_dtype
from opspec.ir.integers import Int, dim, index
from opspec.ir.program import Boundary, Define, Kernel, Op, Output, ScalarParam, Tensor
from opspec.ir.values import Binary, Cast, Compare, Extent, Literal, Range, Read, Reduce, Scan, Select, Unary


def number(value: float) -> Literal:
    return Literal(value=value, dtype=F32)


def whole(value: int) -> Literal:
    return Literal(value=value, dtype=I32)


def read(name: str, *at: str | Int, dtype: DType = F32, otherwise=None) -> Read:
    return Read(name=name, indices=tuple(a if isinstance(a, Int) else index(a) for a in at),
                otherwise=otherwise, dtype=dtype)  # fmt: skip


def apply(op: str, *args) -> Unary | Binary | Compare | Select:
    if op == "where":
        return Select(condition=args[0], a=args[1], b=args[2], dtype=args[1].dtype)
    if op in ("lt", "le", "gt", "ge", "eq", "ne"):
        return Compare(op=op, a=args[0], b=args[1], dtype=BOOL)
    if len(args) == 1:
        return Unary(op=op, x=args[0], dtype=args[0].dtype)
    return Binary(op=op, a=args[0], b=args[1], dtype=args[0].dtype)


def cast(to: DType, x, mode: str = "ieee") -> Cast:
    return Cast(to=to, mode=mode, x=x, dtype=compute_dtype(to))


def as_float(value: Int) -> Cast:
    return Cast(to=F32, x=Extent(value=value, dtype=I64), implicit=True, dtype=F32)


def over(name: str, upper: str | Int, lower: Int | None = None) -> Range:
    bound = dim(upper) if isinstance(upper, str) else upper
    return Range(index=name, upper=bound) if lower is None else Range(index=name, lower=lower, upper=bound)


def reduce(monoid: str, ranges, body, *, where=(), using=None, empty=None) -> Reduce:
    dtype = I32 if monoid.startswith("arg") else body.dtype
    return Reduce(
        monoid=monoid,
        ranges=tuple(ranges),
        constraints=tuple(where),
        body=body,
        using=using,
        empty=empty,
        dtype=dtype,
    )


def scan(monoid: str, along: str, body, *, reverse: bool = False) -> Scan:
    return Scan(monoid=monoid, index=along, reverse=reverse, body=body, dtype=body.dtype)


def define(name: str, ranges, value, *, where=(), to=None, at=None, storage=None) -> Define:
    ranges = tuple(ranges)
    places = at if at is not None else tuple(index(r.index) for r in ranges)
    return Define(
        name=name, origin=name, kind="value", ranges=ranges, constraints=tuple(where), value=value, storage=storage,
        output=None if to is None else Output(tensor=to, at=tuple(places)),
    )  # fmt: skip


def tensor(name: str, dtype: DType, *extents: str | Int, role: str = "in") -> Tensor:
    return Tensor(
        name=name, dtype=dtype, role=role, extents=tuple(dim(e) if isinstance(e, str) else e for e in extents)
    )


def op(tensors, *kernels, dims: str, scalars=(), requires=(), assumes=(), derived=(), dtype_params=()) -> Op:
    groups = tuple(Kernel(name=f"k{i}", body=tuple(body)) for i, body in enumerate(kernels))
    return Op(
        name="op", doc="", dims=tuple(dims.split()), derived=tuple(derived), dtype_params=tuple(dtype_params),
        tensors=tuple(tensors), scalars=tuple(ScalarParam(name=n, dtype=d, default=v) for n, d, v in scalars),
        parameters=tuple(t.name for t in tensors if t.role != "out"), requires=tuple(requires),
        assumes=tuple(assumes), boundaries=(Boundary(name="", kernels=groups),),
    )  # fmt: skip


def softmax(dtype: DType = F32) -> Op:
    """``y[m, n] = exp(x - max) / sum``."""
    rows, row = [over("m", "M"), over("n", "N")], [over("m", "M")]
    return op(
        [tensor("x", dtype, "M", "N"), tensor("y", dtype, "M", "N", role="out")],
        [
            define("top", row, reduce("max", [over("n", "N")], read("x", "m", "n"), empty=number(-np.inf))),
            define("e", rows, apply("exp", apply("sub", read("x", "m", "n"), read("top", "m")))),
            define("total", row, reduce("sum", [over("n", "N")], read("e", "m", "n"))),
            define("y", rows, apply("div", read("e", "m", "n"), read("total", "m")), to="y"),
        ],
        dims="M N",
    )


def matmul(dtype: DType = F32, out: DType = F32, using: str | None = None) -> Op:
    """``c[m, n] = sum[k](a[m, k] * b[k, n])``."""
    body = apply("mul", read("a", "m", "k"), read("b", "k", "n"))
    return op(
        [tensor("a", dtype, "M", "K"), tensor("b", dtype, "K", "N"), tensor("c", out, "M", "N", role="out")],
        [
            define(
                "c",
                [over("m", "M"), over("n", "N")],
                reduce("sum", [over("k", "K")], body, using=using),
                to="c",
            )
        ],
        dims="M N K",
    )


def norm(x: DType = F32, out: DType = F32, eps: float = 1e-6) -> Op:
    """``y[i] = x[i] * rsqrt(mean_k x[k]² + eps)`` on each row."""
    square = apply("mul", read("x", "m", "n"), read("x", "m", "n"))
    mean = apply("div", read("total", "m"), as_float(dim("N")))
    return op(
        [tensor("x", x, "M", "N"), tensor("y", out, "M", "N", role="out")],
        [
            define("total", [over("m", "M")], reduce("sum", [over("n", "N")], square)),
            define("scale", [over("m", "M")], apply("rsqrt", apply("add", mean, number(eps)))),
            define(
                "y",
                [over("m", "M"), over("n", "N")],
                apply("mul", read("x", "m", "n"), read("scale", "m")),
                to="y",
            ),
        ],
        dims="M N",
    )


def attention(*, aligned: str = "bottom") -> Op:
    """Scores given as ``s[i, j]``, causal, with values ``v[j]``; also the log-sum-exp."""
    limit = index("i") - index("j") + (dim("T") - dim("L") if aligned == "bottom" else Int.of(0))
    pairs, rows, keys = [over("i", "L"), over("j", "T")], [over("i", "L")], [over("j", "T")]
    s = read("s", "i", "j")
    return op(
        [
            tensor("s", F32, "L", "T"), tensor("v", F32, "T"),
            tensor("o", F32, "L", role="out"), tensor("lse", F32, "L", role="out"),
        ],
        [
            define("top", rows, reduce("max", keys, s, where=[limit], empty=number(-np.inf))),
            define("e", pairs, apply("exp", apply("sub", s, read("top", "i"))), where=[limit]),
            define("total", rows, reduce("sum", keys, read("e", "i", "j"), where=[limit])),
            define("p", pairs, apply("div", read("e", "i", "j"), read("total", "i")), where=[limit]),
            define("o", rows, reduce("sum", keys, apply("mul", read("p", "i", "j"), read("v", "j")), where=[limit]), to="o"),
            define("lse", rows, apply("add", read("top", "i"), apply("log", read("total", "i"))), to="lse"),
        ],
        dims="L T",
    )  # fmt: skip
