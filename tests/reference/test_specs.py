"""Whole specs: the reference against the definition point by point, and against torch."""

from pathlib import Path

import numpy as np
import pytest
import torch

from opspec.frontend import load, load_text
from opspec.ir.dtypes import BF16, DTYPES, F16, F32, DTypeParam
from opspec.reference.cases import cases
from opspec.reference.compare import compare
from opspec.reference.evaluate import EmptyDomain, Result, evaluate
from opspec.reference.tensors import decode
from tests.reference.brute import Brute

SPECS = Path(__file__).parents[2] / "specs"

TEXTS = {
    "causal attention with grouped heads": """
        op attention[B, Hq, Hkv, L, T, D](
          q: f32[B, Hq, L, D], k: f32[B, Hkv, T, D], v: f32[B, Hkv, T, D]
        ) -> o: f32[B, Hq, L, D] {
          require Hq % Hkv == 0
          require L <= T
          let G = Hq // Hkv
          kernel flash {
            s[b, h, i, j] = sum[d](q[b, h, i, d] * k[b, h // G, j, d]) / sqrt(D)  for j < i + 1 + T - L
            p[b, h, i, j] = softmax[j](s[b, h, i, j])
            o[b, h, i, d] = sum[j](p[b, h, i, j] * v[b, h // G, j, d])
          }
        }""",
    "sliding window by condition": """
        op window[N, W](x: f32[N]) -> y: f32[N] {
          require W >= 1
          kernel k { y[i] = sum[j | 0 <= i - j, i - j < W](x[j] * x[j]) }
        }""",
    "convolution with padding": """
        op conv[N, R](x: f32[N], w: f32[R]) -> y: f32[N] {
          kernel k { y[i] = sum[r](w[r] * (x[i + r - 1] else 0)) }
        }""",
    "paged lengths": """
        op paged[B, S, P, W](kv: f32[S, P], table: i32[B, W], len: i32[B]) -> y: f32[B] {
          require P >= 1
          assume len[b] <= P * W
          kernel k { y[b] = sum[t](kv[table[b, t // P], t % P] else 0)  for t < len[b] }
        }""",
    "layer norm in two kernels": """
        op layernorm[M, N](x: f32[M, N], eps: f32 = 1e-5) -> y: f32[M, N] {
          require N >= 1
          kernel stats { mu[m] = mean[n](x[m, n]); v[m] = mean[n]((x[m, n] - mu[m]) ** 2) }
          kernel apply { y[m, n] = (x[m, n] - mu[m]) * rsqrt(v[m] + eps) }
        }""",
    "a cache written through slots": """
        op update[S, B, D](inout cache: f32[S, D], slot: i32[B], x: f32[B, D]) -> y: f32[S, D] {
          assume distinct(slot)
          kernel write { cache[slot[b], d] = x[b, d] * 2 }
          kernel read { y[s, d] = cache[s, d] + 1 }
        }""",
    "quantised rows": """
        op quantise[M, N](x: f32[M, N]) -> q: i8[M, N], scale: f32[M] {
          require N >= 1
          kernel k {
            scale[m] = max[n](abs(x[m, n])) / 127 + 1e-6
            q[m, n] = i8.sat(round(x[m, n] / scale[m]))
          }
        }""",
    "running sums": """
        op running[M, N](x: f32[M, N]) -> y: f32[M, N] {
          kernel k { y[m, n] = scan_sum[n](x[m, n]) }
        }""",
    "arg-reductions and truth": """
        op picks[M, N](x: f32[M, N]) -> best: i64[M], some: bool[M] {
          require N >= 1
          kernel k { best[m] = argmax[n](x[m, n]); some[m] = any[n](x[m, n] > 1) }
        }""",
    "triangular log-mean-exp with a gathered bias": """
        op lme[A, B, C, V](x: f16[A, B, C], bias: f32[V], id: i32[B]) -> y: f32[A, C] {
          require B >= 1
          kernel k { y[a, c] = logsumexp[b](x[a, b, c] + bias[id[b]]) - log(C)  for b <= c }
        }""",
}


@pytest.mark.parametrize("text", list(TEXTS.values()), ids=list(TEXTS))
def test_it_is_what_the_definition_says(text):
    module = load_text(text)
    example = module.ops[0]
    tried = 0
    for case in cases(example, {}, 16, 0, limit=160):
        shapes = {t.name: tuple(e.evaluate(dict(case.dims) | {n: v.evaluate(case.dims) for n, v in example.derived})
                  for e in t.extents) for t in example.tensors}  # fmt: skip
        inputs = {
            t.name: decode(case.inputs[t.name], t.dtype, shapes[t.name])
            for t in example.tensors
            if t.role != "out"
        }
        try:
            got = evaluate(example, case.inputs, case.scalars, case.dims)
        except EmptyDomain:
            continue
        expected = Brute(example, inputs, case.scalars, case.dims).run()
        for name, result in got.items():
            known = np.isfinite(result.error) & ~np.isnan(expected[name])
            np.testing.assert_allclose(
                result.value[known], expected[name][known], rtol=2e-6, atol=1e-12, err_msg=case.words
            )
            missing = np.isnan(expected[name]) & np.isfinite(result.error)
            assert np.isnan(result.value[missing].astype(float)).all(), case.words
        tried += 1
    assert tried >= 8


def softmax(i):
    return {"y": torch.softmax(i["x"].float(), 1)}


def matmul(i):
    return {"c": i["a"].float() @ i["b"].float()}


def add_rmsnorm(i):
    h = i["x"].float() + i["residual"].float()
    scale = torch.rsqrt((h * h).mean(1, keepdim=True) + 1e-6)
    return {"h": h, "y": h * scale * i["weight"].float()}


def cross_entropy(i):
    x, label = i["x"].float(), i["label"]
    lse = torch.logsumexp(x, 1)
    picked = x.gather(1, label.clamp(min=0)[:, None].long())[:, 0] if x.shape[1] else lse
    return {"lse": lse, "loss": torch.where(label == -100, 0.0, lse - picked)}


def rope(i):
    x, c, s = i["x"].float(), i["cos"].float(), i["sin"].float()
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return {"y": torch.cat([a * c - b * s, b * c + a * s], -1)}


SHIPPED = {
    "reduce/softmax": softmax, "gemm/matmul": matmul, "norm/add_rmsnorm": add_rmsnorm,
    "loss/cross_entropy": cross_entropy, "map/rope": rope,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [F32, BF16, F16])
@pytest.mark.parametrize("spec", SHIPPED)
def test_shipped_specs_agree_with_torch(spec, dtype):
    module = load(SPECS / f"{spec}.op")
    example = module.ops[0]
    decided = []
    for case in cases(example, {"X": dtype}, 16, 1, workloads=module.workloads):
        got = evaluate(example, case.inputs, case.scalars, case.dims, dtypes=case.dtypes)
        # logsumexp in torch gives -inf where all is -inf; the definition gives what IEEE gives
        plain = {
            k: v
            for k, v in SHIPPED[spec](case.inputs).items()
            if "rows of -inf" not in case.words or k != "lse"
        }
        for name, value in plain.items():
            declared = example.tensor(name).dtype
            out = dtype if isinstance(declared, DTypeParam) else declared
            actual = value.to({"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[out.name])
            special = "inf" in case.words and spec == "loss/cross_entropy"
            if not special:
                found = compare(got[name], actual, out)
                assert found is None, f"{name}: {found}\n{case.words}"
            decided.append(got[name].decided)
    assert min(decided) > 0.9


def test_dropping_any_one_term_is_seen():
    """Every shipped spec fails when one element of one input is left out."""
    for spec, formula in SHIPPED.items():
        module = load(SPECS / f"{spec}.op")
        example = module.ops[0]
        case = next(iter(cases(example, {"X": F32}, 1, 0)))
        got = evaluate(example, case.inputs, case.scalars, case.dims, dtypes={"X": F32})
        for name, value in case.inputs.items():
            if not value.is_floating_point() or not value.numel():
                continue
            changed = value.clone()
            changed[tuple(n // 2 for n in value.shape)] = 0
            wrong = formula(dict(case.inputs) | {name: changed})
            assert any(
                compare(Result(got[k].value, got[k].error), w, DTYPES["f32"]) is not None
                for k, w in wrong.items()
            ), (spec, name)


def test_a_boundary_moves_the_roundings_of_what_is_stored():
    module = load_text("""
        op pair[M, N](x: bf16[M, N], w: bf16[N]) -> y: f32[M] {
          kernel one {
            s: bf16[m, n] = x[m, n] * w[n]
            y[m] = sum[n](s[m, n])
          }
        }
        boundary two of pair { kernel a { s }  kernel b { y } }
    """)
    example = module.ops[0]
    case = next(iter(cases(example, {}, 1, 0)))
    together = evaluate(example, case.inputs, case.scalars, case.dims)["y"]
    apart = evaluate(example, case.inputs, case.scalars, case.dims, "two")["y"]
    x, w = (case.inputs[k].float() for k in ("x", "w"))
    exact, rounded = (x * w).sum(1), (x * w).bfloat16().float().sum(1)
    assert compare(together, exact, F32) is None
    assert compare(apart, rounded, F32) is None
    assert compare(together, rounded, F32) is not None
    assert compare(apart, exact, F32) is not None
    with pytest.raises(ValueError, match="no boundary `three`"):
        evaluate(example, case.inputs, case.scalars, case.dims, "three")


def test_inputs_that_do_not_fit_are_refused():
    example = load(SPECS / "reduce/softmax.op").ops[0]
    with pytest.raises(ValueError, match="no input `x`"):
        evaluate(example, {}, {}, {"M": 2, "N": 3})
    with pytest.raises(ValueError, match=r"`x` has shape \(3, 2\)"):
        evaluate(example, {"x": torch.zeros(3, 2)}, {}, {"M": 2, "N": 3})
