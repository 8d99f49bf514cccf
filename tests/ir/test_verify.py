"""Legal IR passes, and each broken rule is named."""

from dataclasses import replace
from pathlib import Path

import pytest

from opspec.frontend import load, load_text
from opspec.ir.dtypes import BOOL, F32
from opspec.ir.integers import Int, index
from opspec.ir.program import Define, Op
from opspec.ir.values import Binary, Literal, Read, Reduce, Unary
from opspec.ir.verify import IllegalIR, verify

SPECS = sorted((Path(__file__).parents[2] / "specs").rglob("*.op"))
TEXT = "op f[M, N](x: f32[M, N]) -> y: f32[M] {\n kernel k {\n  s[m, n] = exp(x[m, n])\n  y[m] = sum[n](s[m, n])\n }\n}"


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_shipped_specs_are_legal(path: Path):
    for op in load(path).ops:
        verify(op)


def changed(op: Op, define: str, changes: dict[str, object]) -> Op:
    def edit(d: Define) -> Define:
        return replace(d, **changes) if d.name == define else d

    boundary = op.boundaries[0]
    kernels = tuple(replace(k, body=tuple(map(edit, k.body))) for k in boundary.kernels)
    return replace(op, boundaries=(replace(boundary, kernels=kernels),))


ONE = Literal(value=1.0, dtype=F32)
X = Read(name="x", indices=(index("m"), index("n")), dtype=F32)


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("s", {"value": Read(name="x", indices=(index("m"), index("q")), dtype=F32)}, "free indices"),
        ("s", {"value": Read(name="zz", indices=(), dtype=F32)}, "not defined before"),
        ("s", {"value": Read(name="x", indices=(index("m"),), dtype=F32)}, "with 1 indices"),
        ("s", {"value": Read(name="x", indices=(index("m"), index("n") + 1), dtype=F32)}, "out of range"),
        ("s", {"value": Unary(op="not", x=X, dtype=BOOL)}, "wrong type"),
        ("s", {"value": Binary(op="add", a=X, b=Literal(value=True, dtype=BOOL), dtype=F32)}, "wrong type"),
        ("s", {"value": Literal(value=1, dtype=F32)}, "wrong type"),
        ("s", {"name": "x"}, "something else"),
        ("y", {"name": "z", "output": None}, "never written"),
        (
            "y",
            {"value": Unary(op="neg", x=Reduce(monoid="sum", ranges=(), body=ONE, dtype=F32), dtype=F32)},
            "below its root",
        ),
        ("y", {"constraints": (index("zz"),)}, "free indices"),
        ("s", {"kind": "temp"}, "could clash"),
    ],
)
def test_illegal_ir_is_named(name: str, changes: dict[str, object], words: str):
    op = load_text(TEXT).ops[0]
    verify(op)
    with pytest.raises(IllegalIR, match=words):
        verify(changed(op, name, changes))


def test_boundaries_must_agree():
    op = load_text(TEXT + "\nboundary two of f { kernel a { s }  kernel b { y } }").ops[0]
    verify(op)
    two = op.boundaries[1]
    with pytest.raises(IllegalIR, match="other statements"):
        verify(replace(op, boundaries=(op.boundaries[0], replace(two, kernels=two.kernels[:1]))))
    with pytest.raises(IllegalIR, match="not the op's own"):
        verify(replace(op, boundaries=(two,)))
    assert Int.of(1).constant == 1
