"""The torch formula of a driver says what the spec says: compared with the float64 reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from opspec.diagnostics import Failure
from opspec.emit.formula import NoFormula, dtype_lines, formula, parameters
from opspec.frontend import load
from opspec.ir.program import Op
from opspec.reference.cases import cases
from opspec.reference.evaluate import evaluate

ROOT = Path(__file__).resolve().parents[2]
SPECS = sorted([*(ROOT / "specs").rglob("*.op"), *(ROOT / "tests" / "emit" / "corpus").rglob("*.op")])
SHIPPED = {"softmax", "add_rmsnorm", "rope", "cross_entropy", "matmul"}


def reference_of(op: Op):
    lines = dtype_lines(op, formula(op))
    body = "\n".join(f"    {line}" for line in lines)
    scope = {"torch": torch}
    exec(f"def reference({', '.join(parameters(op))}):\n{body}", scope)
    return scope["reference"]


def wide(value):
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_formula_is_the_spec(path):
    try:
        module = load(path)
    except Failure as failure:
        pytest.skip(str(failure))
    for op in module.ops:
        try:
            reference = reference_of(op)
        except NoFormula as reason:
            assert op.name not in SHIPPED, reason
            continue
        if any("_stored = " in line and "_dtype)" in line for line in formula(op)):
            continue  # it stores a value in the type of an input, and the inputs are widened here
        outs = {t.name for t in op.results}
        for case in cases(op, {}, 5, 7, workloads=module.workloads_of(op.name), limit=400):
            if "inf" in case.words or "NaN" in case.words or 0 in case.dims.values():
                continue
            expected = evaluate(op, case.inputs, case.scalars, case.dims, dtypes=case.dtypes)
            names = [p for p in op.parameters if p not in outs]
            given = [wide(case.inputs[n]) if n in case.inputs else case.scalars[n] for n in names]
            found = reference(*given)
            found = found if isinstance(found, tuple) else (found,)
            written = [t.name for t in op.tensors if t.role == "out"]
            for name, tensor in zip(written, found, strict=False):
                want = expected[name]
                error = np.where(np.isfinite(want.error), want.error, 0) + 1e-9 + 1e-9 * np.abs(want.value)
                gap = np.abs(np.asarray(tensor.double()) - want.value)
                bad = np.isfinite(want.value) & np.isfinite(want.error) & ~(gap <= error)
                assert not bad.any(), f"{op.name}.{name}: {case.words}"
