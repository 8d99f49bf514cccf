"""Every shipped driver at a small shape: its inputs, its formula in float64 and as a peer runs it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import torch

from opspec.driver.targets import limits
from opspec.emit.formula import keywords
from opspec.emit.package import build_package
from opspec.frontend import load
from opspec.runtime.bench.check import as_tuple, check_outputs, close_enough
from opspec.runtime.bench.inputs import TORCH_DTYPES, make_set, widen
from opspec.runtime.bench.references import joined, whole
from tests.emit.drivers import drivers, shapes

ROOT = Path(__file__).resolve().parents[2]
SPECS = sorted((ROOT / "specs").rglob("*.op"))


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_formulas_run_in_float64_and_as_peers_and_agree(path):
    for op, driver in drivers(path):
        for case in shapes(op, driver, 2):
            inputs = make_set(driver, case, seed=1, device="cpu")
            before = [a.clone() if isinstance(a, torch.Tensor) else a for a in inputs.arguments]
            references = as_tuple(driver.reference(*widen(inputs.arguments), **inputs.named))
            outputs = as_tuple(inputs.call(driver.reference))
            tolerance = driver.tolerance(case.dims, case.dtypes)
            checks = check_outputs(driver.results, outputs, references, tolerance)
            # torch rounds a product of bf16 to bf16 also where the result is f32
            near = all(c.frobenius < 0.01 for c in checks if c.dtype == "float32")
            others = [c for c in checks if c.dtype != "float32"]
            assert near and close_enough(others, tolerance), (op.name, case.dims, checks)
            assert all(r.double().isfinite().all() for r in references), op.name
            for a, b in zip(inputs.arguments, before, strict=True):  # a reference changes nothing
                assert not isinstance(a, torch.Tensor) or torch.equal(
                    a.view(torch.uint8), b.view(torch.uint8)
                )
            for tensor, output in zip(
                (*op.results, *(t for t in op.tensors if t.role == "inout")), outputs, strict=True
            ):
                wanted = TORCH_DTYPES[case.dtype(tensor.dtype.name)]
                assert output.dtype == wanted, tensor.name


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_slices_of_the_inputs_give_slices_of_the_results(path):
    for op, driver in drivers(path):
        if not driver.rows:
            continue
        for case in shapes(op, driver, 2, module_workloads(path, op)):
            inputs = make_set(driver, case, seed=1, device="cpu")
            for parts in (2, 3):
                pairs = zip(joined(driver, inputs, parts), whole(driver, inputs), strict=True)
                for got, want in pairs:
                    assert got.shape == want.shape
                    assert torch.allclose(got.double(), want.double(), rtol=1e-9, atol=1e-9), op.name


def module_workloads(path, op):
    return load(path).workloads_of(op.name)


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_what_is_passed_by_name_is_what_the_generated_function_takes_by_name(path):
    module = load(path)
    text = build_package(module, path.name, limits()).files["kernel.py"]
    for op in module.ops:
        signature = re.search(rf"^def {op.name}\((.*?)\) ->", text, re.MULTILINE | re.DOTALL)
        named = re.findall(r"(\w+):", signature[1].partition("*,")[2])
        assert [n for n in named if n != "out"] == keywords(op)


def test_free_dims_are_found_by_signature():
    (op, driver), *_ = [
        p for p in drivers(ROOT / "specs/attention/prefill.op") if p[0].name == "attention_window"
    ]
    assert list(inspect.signature(driver.reference).parameters) == ["q", "k", "v", "W"]
    assert driver.keywords({"W": 7, "B": 1}) == {"W": 7}
    assert op.name == driver.op
