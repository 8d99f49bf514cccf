"""Random inputs of a driver: products keep unit scale, and roots see nothing negative."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from opspec.emit.scales import LARGE, Size, _Scales, input_scales
from opspec.emit.signs import Signs
from opspec.frontend import load, load_text
from opspec.ir.integers import dim
from opspec.runtime.bench.check import as_tuple
from opspec.runtime.bench.inputs import make_set, widen
from opspec.runtime.bench.model import Case
from tests.emit.drivers import drivers

ROOT = Path(__file__).resolve().parents[2]
DIMS = {"B": 2, "L": 64, "H": 4, "D": 32, "C": 128, "M": 64, "N": 64, "K": 256, "S": 64, "T": 64, "R": 16}


def op_of(text):
    return load_text(text).ops[0]


def scales(text, **dims):
    op = op_of(text)
    return {k: v.at({**DIMS, **dims}) for k, v in input_scales(op, (), Signs(op)).items()}


def positive(text):
    return Signs(op_of(text)).positive


def test_a_weight_is_drawn_by_what_it_is_summed_over():
    text = "op f[M, N, K](x: f32[M, K], w: f32[K, N]) -> y: f32[M, N] { kernel k { y[m, n] = sum[k](x[m, k] * w[k, n]) } }"
    assert scales(text) == {"w": 256**-0.5}
    assert scales(text, K=1024) == {"w": 1024**-0.5}


def test_what_the_spec_scales_itself_stays():
    text = """op f[M, T, D](q: f32[M, D], k: f32[T, D]) -> s: f32[M, T] {
      kernel k { s[m, t] = softmax[t](sum[d](q[m, d] * k[t, d]) / sqrt(D)) }
    }"""
    assert scales(text) == {}
    assert scales(text.replace(" / sqrt(D)", "")) == {"k": 32**-0.5}


def test_a_sum_of_squares_is_no_product_with_a_weight():
    assert (
        scales("op f[M, K](x: f32[M, K]) -> y: f32[M] { kernel k { y[m] = sum[k](x[m, k] * x[m, k]) } }")
        == {}
    )


def test_of_narrow_operands_the_scale_beside_them_is_drawn_smaller():
    text = """op f[M, N, K](a: f8e4m3[M, K], u: f32[M], b: f8e4m3[N, K], v: f32[N]) -> c: f32[M, N] {
      kernel k { c[m, n] = sum[k](a[m, k] * b[n, k]) * u[m] * v[n] }
    }"""
    assert scales(text) == {"v": 256**-0.5}


def test_codes_count_with_their_size():
    text = """op f[M, N, K](x: bf16[M, K], w: i8[N, K], scale: f32[N]) -> y: f32[M, N] {
      kernel k { y[m, n] = sum[k](x[m, k] * w[n, k]) * scale[n] }
    }"""
    assert scales(text)["scale"] == pytest.approx(256**-0.5 / 74, rel=0.01)


def test_a_size_as_text():
    size = Size(3.0, ()) * Size(1.0, ((dim("K"), -1),)) * Size(1.0, ((dim("N"), -1),))
    assert size.text({"K": "k", "N": "n"}) == "3 * (k * n) ** -1"
    assert (Size(1.0, ((dim("K"), 1),)) * Size(1.0, ((dim("K"), -1),))).powers == ()


@pytest.mark.parametrize(
    "body, found",
    [
        ("y[n] = sqrt(a[n])", {"a"}),
        ("y[n] = log(a[n] * 0.5 + b[n] * b[n])", {"a"}),
        ("y[n] = rsqrt(a[n] * b[n])", {"a", "b"}),
        ("y[n] = sqrt((1 - c) * a[n] * a[n])", set()),
        ("y[n] = sqrt(max(a[n], 0))", set()),
        ("y[n] = sqrt(a[n] - b[n])", set()),
        ("y[n] = sqrt(exp(a[n]) + abs(b[n]))", set()),
        ("y[n] = a[n] / b[n]", {"b"}),
        ("y[n] = a[n] / (1 + exp(-b[n]))", set()),
        ("v[n] = a[n] * 0.9\n y[n] = b[n] / (sqrt(v[n]) + 1)", {"a"}),
    ],
)
def test_what_a_root_or_a_quotient_needs_is_positive(body, found):
    assert (
        positive(f"op f[N](a: f32[N], b: f32[N], c: f32 = 0.5) -> y: f32[N] {{ kernel k {{ {body} }} }}")
        == found
    )


def test_a_share_of_a_running_sum_is_between_0_and_1():
    text = "op f[T](x: f32[T], keep: f32[T]) -> y: f32[T] { kernel k { y[t] = scan_sum[t](x[t], keep[t]) } }"
    assert Signs(op_of(text)).shares == {"keep"}


def run(path, op, dims):
    driver = next(d for o, d in drivers(ROOT / path) if o.name == op)
    case = Case(workload="w", weight=None, dims=dims, dtypes={k: v[0] for k, v in driver.dtypes.items()})
    inputs = make_set(driver, case, seed=0, device="cpu")
    return driver, inputs, as_tuple(driver.reference(*widen(inputs.arguments), **inputs.named))


def test_the_projections_of_a_block_keep_unit_scale():
    _, inputs, (y,) = run(
        "specs/world_model/latent_block.op", "latent_block", {"B": 1, "L": 64, "H": 4, "D": 64}
    )
    x, wq = (a.double() for a in inputs.arguments[:2])
    logits = torch.einsum("blc,chd->blhd", x, wq)
    assert 0.9 < logits.std() < 1.1
    assert 0.05 < y.std() < 5


def test_the_second_moment_of_an_optimizer_is_positive():
    driver, inputs, results = run("specs/optim/adamw.op", "adamw", {"N": 1000})
    place = [i.name for i in driver.inputs].index("v")
    assert inputs.arguments[place].min() > 0
    assert all(r.isfinite().all() for r in results)


@pytest.mark.parametrize("path", sorted((ROOT / "specs").rglob("*.op")), ids=lambda p: p.stem)
def test_results_of_shipped_ops_at_their_workloads_are_of_a_few_units(path):
    """By the estimate itself, once all is drawn."""

    module = load(path)
    for op in module.ops:
        workloads = module.workloads_of(op.name)
        cases = [dict(d) for w in workloads for _, d in w.cases]
        if not cases:
            continue
        signs = Signs(op)
        scales = _Scales(op, {d: max(c[d] for c in cases) for d in op.dims}, signs)
        scales.drawn = input_scales(op, workloads, signs)
        if not scales.drawn:
            continue
        for define in op.defines:
            if define.output is not None:
                assert scales.size(define.value).at(scales.dims) <= 4 * LARGE, (op.name, define.name)
