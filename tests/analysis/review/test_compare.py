"""Two versions of a spec, and what the review says about them."""

from __future__ import annotations

import pytest

from opspec.analysis.machine import load
from opspec.analysis.review.compare import compare_modules
from opspec.frontend import load_text

DECODE = """op decode[B, H, G, T, D](
  q: bf16[B, H, G, D],
  k: bf16[B, H, T, D],
  v: bf16[B, H, T, D],
) -> o: bf16[B, H, G, D] {
  kernel flash {
    s[b, h, g, t] = sum[d](q[b, h, g, d] * k[b, h, t, d]) / sqrt(D)
    p[b, h, g, t] = softmax[t](s[b, h, g, t])
    o[b, h, g, d] = sum[t](p[b, h, g, t] * v[b, h, t, d])
  }
}
workload long for decode { B = 8, H = 32, G = 1, T = 8192, D = 128 }
expect long {
  ai.tensor ~ 1.0 within 1%
  bound on h200 == memory
}
"""
THREE = """op f[M, N, K](a: bf16[M, K], b: bf16[K, N]) -> y: f32[M, N] {
  kernel product {
    c: f32[m, n] = sum[k](a[m, k] * b[k, n])
    y[m, n] = exp(c[m, n])
  }
}
workload w for f { M = 4096, N = 4096, K = 64 }
"""
MACHINES = (load("h200"),)


def compare(before: str | None, after: str | None):
    base, head = (None if t is None else load_text(t) for t in (before, after))
    return compare_modules(base, head, path="x.op", machines=(MACHINES, MACHINES))


def forms(op) -> dict:
    return {(f.quantity, f.boundary): f for f in op.forms}


def test_narrower_storage_halves_bytes_and_moves_the_crossing():
    found = compare(DECODE, DECODE.replace("k: bf16", "k: f8e4m3").replace("v: bf16", "v: f8e4m3"))
    (op,) = found.ops
    assert op.kind == "changed"
    assert forms(op)["ai.tensor", ""].before == "G * T / (G + T)"
    assert forms(op)["ai.tensor", ""].after == "2 * G * T / (2 * G + T)"
    assert ("flops", "") not in forms(op)
    moved = {c.dim: (c.before, c.after) for c in op.crossings}
    assert moved == {"G": ("compute-bound from 212", "compute-bound from 106")}
    numbers = {n.quantity: n for n in op.numbers}
    assert numbers["bytes"].before == 2**30 + 131072
    assert numbers["bytes"].after == 2**29 + 131072
    assert numbers["time"].ratio < 0.52
    assert [(b.text, b.standing) for b in found.budgets] == [("ai.tensor ~ 1.0 within 1%", "broken")]
    assert found.budgets[0].message.startswith("the left side is 1.99")


def test_a_mended_budget_and_one_that_stays_broken():
    narrow = DECODE.replace("k: bf16", "k: f8e4m3").replace("v: bf16", "v: f8e4m3")
    assert [b.standing for b in compare(narrow, DECODE).budgets] == ["mended"]
    assert [b.standing for b in compare(narrow, narrow + "# more\n").budgets] == ["still broken"]


def test_budgets_that_come_and_go():
    loose = DECODE.replace("within 1%", "within 90%")
    found = {b.text: b.standing for b in compare(DECODE, loose).budgets}
    assert found == {"ai.tensor ~ 1.0 within 1%": "removed", "ai.tensor ~ 1.0 within 90%": "added"}


def test_a_moved_brace_changes_bytes_and_nothing_of_the_operations():
    split = THREE.replace("    y[m, n] = exp", "  }\n  kernel outside {\n    y[m, n] = exp")
    (op,) = compare(THREE, split).ops
    assert {q for q, _ in forms(op)} == {"bytes", "bytes.read", "bytes.write", "ai", "ai.tensor", "launches"}
    total = forms(op)["bytes", ""]
    assert total.before == "2 * (K * M + K * N + 2 * M * N)"
    assert total.after == "2 * (K * M + K * N + 6 * M * N)"
    assert (forms(op)["launches", ""].before, forms(op)["launches", ""].after) == ("1", "2")


def test_exponents_and_the_largest_term():
    one = "op f[L, D](x: f32[L, D]) -> y: f32[L] { kernel k { y[i] = sum[d](x[i, d]) } }\nworkload w for f { L = 4096, D = 64 }\n"
    two = one.replace("y[i] = sum[d](x[i, d])", "y[i] = sum[j, d](x[j, d] * x[i, d])")
    (op,) = compare(one, two).ops
    assert forms(op)["flops", ""].growth == (("L", 1, 2),)
    read = "op g[M, N](x: f32[M, N], w: f32[N]) -> y: f32[M, N] { kernel k { y[m, n] = x[m, n] * w[n] } }\nworkload w for g { M = 10, N = 1000 }\n"
    (op,) = compare(read, read.replace("f32[M, N], w", "f32[N], w").replace("x[m, n]", "x[n]")).ops
    assert forms(op)["bytes.read", ""].dominant_before == "4 * M * N (91%)"
    assert forms(op)["bytes.read", ""].dominant_after == ""


def test_a_flipped_bound():
    (op,) = compare(
        THREE, THREE.replace("exp(c[m, n])", "exp(exp(exp(exp(exp(exp(exp(exp(c[m, n]))))))))")
    ).ops
    assert [(f.machine, f.before, f.after) for f in op.flips] == [("h200", "memory", "sfu")]


@pytest.mark.parametrize(
    "after",
    [
        "# a comment\n" + DECODE,
        DECODE.replace("\n", "\r\n"),
        "\ufeff" + DECODE,
        '"""A document."""\n' + DECODE,
        DECODE.replace("s[b, h, g, t] =", "s[b, h, g, t]   ="),
    ],
)
def test_what_says_the_same_is_quiet(after: str):
    assert compare(DECODE, after).quiet


def test_equal_forms_that_are_written_otherwise_are_the_same():
    other = DECODE.replace("s[b", "score[b").replace("(s[b", "(score[b")
    (op,) = compare(DECODE, other).ops
    assert (op.kind, op.edited, op.forms, op.numbers) == ("same", True, (), ())


def test_a_renamed_dim_is_no_change_of_cost():
    other = (
        DECODE.replace("T", "S").replace("[t]", "[z]").replace(", t]", ", z]").replace(", t, d]", ", z, d]")
    )
    (op,) = compare(DECODE, other).ops
    assert op.renamed == (("T", "S"),)
    assert (op.kind, op.forms) == ("same", ())
    assert not op.quiet


def test_new_and_removed_ops_show_their_forms():
    two = DECODE + THREE
    found = compare(DECODE, two)
    assert [(o.op, o.kind) for o in found.ops] == [("decode", "same"), ("f", "added")]
    assert forms(found.ops[1])["flops.tensor", ""].after == "2 * K * M * N"
    assert [(o.op, o.kind) for o in compare(two, DECODE).ops] == [("decode", "same"), ("f", "removed")]
    assert [o.kind for o in compare(None, THREE).ops] == ["added"]
    assert [o.kind for o in compare(THREE, None).ops] == ["removed"]


def test_another_shape_is_said_and_both_sides_are_taken_at_it():
    (op,) = compare(DECODE, DECODE.replace("T = 8192", "T = 4096")).ops
    assert op.notes == ("workload long has another shape now; both sides are computed at it",)
    assert op.numbers == ()


def test_other_dims_are_said():
    one = "op g[M](x: f32[M]) -> y: f32[M] { kernel k { y[m] = 2 * x[m] } }\nworkload w for g { M = 8 }\n"
    two = one.replace("[M]", "[M, N]").replace("[m]", "[m, n]").replace("M = 8", "M = 8, N = 8")
    (op,) = compare(two, one).ops
    assert "no numbers at w: the op had other dims before" in op.notes
    (op,) = compare(one, two).ops
    assert op.numbers


def test_a_distribution_is_weighted():
    served = DECODE.replace("T = 8192, D = 128", "D = 128, T ~ {512: 0.5, 1536: 0.5}").partition("expect")[0]
    (op,) = compare(served, served.replace("k: bf16", "k: f8e4m3")).ops
    found = next(n for n in op.numbers if n.quantity == "bytes")
    assert found.before == 2 * 8 * 32 * 128 * 2 * (1024 + 1)
    assert op.crossings == ()


def test_lengths_that_are_data_have_forms_and_no_numbers():
    one = """op f[B, T](x: f32[B, T], len: i32[B]) -> y: f32[B] {
  assume len[b] <= T
  kernel k { y[b] = sum[t | t < len[b]](x[b, t]) }
}
workload w for f { B = 4, T = 64 }
"""
    (op,) = compare(one, one.replace("(x[b, t])", "(x[b, t] * x[b, t])")).ops
    assert op.kind == "changed"
    assert op.forms


STEP = """
pipeline step {
  machine h200
  stage attention = 32 * decode @ long
  stage rest = 24.0 ms asserted "a guess"
}
"""


def test_a_pipeline_says_what_becomes_of_it():
    from pathlib import Path

    from opspec.analysis.review.pipelines import compare_pipelines

    here = (Path(), Path())
    one = load_text(DECODE + STEP)
    two = load_text((DECODE + STEP).replace("k: bf16", "k: f8e4m3"))
    (found,) = compare_pipelines(one, two, here)
    assert (found.pipeline, found.variant) == ("step", "")
    assert found.before - found.after == pytest.approx(32 * 2**28 / 4.8e12)
    assert compare_pipelines(one, one, here) == ()
    assert [p.note for p in compare_pipelines(load_text(DECODE), one, here)] == ["new"]
    assert [p.note for p in compare_pipelines(one, load_text(DECODE), here)] == ["removed"]
    assert compare_pipelines(None, one, here) == ()


def test_crossings_run_along_the_group_where_the_op_declares_one():
    text = """op decode[B, Hq, Hkv, T, D](q: bf16[B, Hq, D], k: bf16[B, Hkv, T, D], v: bf16[B, Hkv, T, D]) -> o: bf16[B, Hq, D] {
  require Hq % Hkv == 0
  let G = Hq // Hkv
  kernel flash {
    s[b, h, t] = sum[d](q[b, h, d] * k[b, h // G, t, d]) / sqrt(D)
    p[b, h, t] = softmax[t](s[b, h, t])
    o[b, h, d] = sum[t](p[b, h, t] * v[b, h // G, t, d])
  }
}
workload long for decode { B = 8, Hq = 32, Hkv = 4, T = 8192, D = 128 }
"""
    (op,) = compare(text, text.replace("k: bf16", "k: f8e4m3").replace("v: bf16", "v: f8e4m3")).ops
    found = {c.dim: (c.before, c.after) for c in op.crossings}
    assert found == {"G": ("compute-bound from 212", "compute-bound from 106")}


RAGGED = """op attend[B, T, D](q: bf16[B, D], k: bf16[B, T, D], len: i32[B]) -> m: f32[B] {
  assume len[b] <= T
  kernel scores {
    s[b, t] = sum[d](q[b, d] * k[b, t, d])  for t < len[b]
    m[b] = sum[t](s[b, t])
  }
}
workload listed for attend { B = 4, T = 8192, D = 128, len ~ [512, 80, 8192, 2048] }
"""


def test_lengths_that_a_workload_states_give_numbers_and_terms_and_no_crossing():
    (op,) = compare(RAGGED, RAGGED.replace("k: bf16", "k: f32")).ops
    numbers = {n.quantity: (n.before, n.after) for n in op.numbers if not n.machine}
    total = 512 + 80 + 8192 + 2048
    assert numbers["bytes"] == (2 * 128 * total + 1056, 4 * 128 * total + 1056)
    assert forms(op)["bytes", ""].dominant_after.startswith("4 * D * sum_len (")
    assert op.crossings == ()
