"""The torch formula of a driver says what the spec says: compared with the float64 reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from opspec.diagnostics import Failure
from opspec.emit.formula import dtype_lines, formula, free_dims, keywords, parameters
from opspec.frontend import load, load_text
from opspec.ir.dtypes import F32
from opspec.reference.cases import cases
from opspec.reference.evaluate import evaluate
from opspec.reference.tensors import decode
from tests.emit.random_specs import spec

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted((ROOT / "specs").rglob("*.op"))
CORPUS = sorted((ROOT / "tests" / "emit" / "corpus").rglob("*.op"))


def reference_of(op):
    lines = dtype_lines(op, formula(op))
    body = "\n".join(f"    {line}" for line in lines)
    named = "".join(f", {k}" for k in keywords(op))
    scope = {"torch": torch}
    exec(f"def reference({', '.join(parameters(op))}{', *' if named else ''}{named}):\n{body}", scope)
    return scope["reference"]


def wide(value):
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def arguments(op, case):
    """What the reference takes: positional, and by name."""
    from opspec.emit.names import escape

    scalars = {k: float(np.float32(v)) if isinstance(v, float) else v for k, v in case.scalars.items()}
    given = {**case.inputs, **scalars, **{d: case.dims[d] for d in free_dims(op)}}
    by_name = {escape(k): wide(v) for k, v in given.items()}
    by_name |= {
        f"{k}_": wide(v) for k, v in given.items() if escape(k) == k
    }  # beside a name of the formula's own
    return [by_name[p] for p in parameters(op)], {k: by_name[k] for k in keywords(op)}


def faults(op, case):
    """Results that differ from the reference by more than its radius."""
    expected = evaluate(op, case.inputs, case.scalars, case.dims, dtypes=case.dtypes)
    positional, named = arguments(op, case)
    found = reference_of(op)(*positional, **named)
    found = found if isinstance(found, tuple) else (found,)
    order = [t for role in ("out", "inout") for t in op.tensors if t.role == role]
    assert len(found) == len(order)
    for tensor, got in zip(order, found, strict=True):
        want = expected[tensor.name]
        dtype = case.dtypes.get(tensor.dtype.name, tensor.dtype)
        if dtype.kind == "float":  # float64 stays float64
            values = np.asarray(got.double())
        else:
            values = decode(got, dtype, want.value.shape)
        assert values.shape == want.value.shape
        decided = np.isfinite(want.value) & np.isfinite(want.error)
        value, error = np.where(decided, want.value, 0), np.where(decided, want.error, 0)
        gap = np.abs(np.where(decided, values, 0) - value)
        if not (gap <= error + 1e-9 + 1e-9 * np.abs(value)).all():
            yield f"{op.name}.{tensor.name}: {case.words}: {gap.max()}"


def compared(module, count):
    """How many cases of a module's ops were compared; fails for one that differs."""
    seen = 0
    for op in module.ops:
        # inputs are widened, so that a value stored in the type of an input is not rounded: take f32
        dtypes = {p.name: F32 for p in op.dtype_params if F32 in p.choices}
        for case in cases(op, dtypes, count, 7, workloads=module.workloads_of(op.name), limit=400):
            if "inf" in case.words or "NaN" in case.words or 0 in case.dims.values():
                continue
            assert not list(faults(op, case))
            seen += 1
    return seen


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_every_shipped_op_has_a_formula_that_is_the_spec(path):
    assert compared(load(path), 5)


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.stem)
def test_every_op_of_the_corpus_has_a_formula_that_is_the_spec(path):
    try:
        assert compared(load(path), 5)
    except Failure as failure:
        pytest.skip(str(failure))


@pytest.mark.parametrize("seed", [*range(12), 30, 47, 84, 85, 112, 173, 224, 237, 242, 262, 333, 374])
def test_formulas_of_random_specs(seed):
    """Values that lack axes of their statement, ranges that end before they begin, reads of reads."""
    try:
        compared(load_text(spec(seed)), 3)
    except Failure as failure:
        pytest.skip(str(failure))
