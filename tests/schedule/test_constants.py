"""Values that are read at fixed places are made at these."""

from __future__ import annotations

GATED = """op f[M, N, K](x: bf16[M, K], w: bf16[N, 2, K]) -> y: f32[M, N] {
  kernel k {
    u[m, n, c] = sum[k](x[m, k] * w[n, c, k])
    y[m, n] = silu(u[m, n, 0]) * u[m, n, 1]
  }
}
"""


def test_two_halves_are_two_products_of_plain_tiles(plan):
    found = plan(GATED)
    assert [r.rule for r in found.rewrites if r.rule == "apart"] == ["apart"]
    roles = found.variants[-1].roles
    assert {(p.rows, p.columns) for p in roles.products.values()} == {("m", "n")}
    assert len(roles.products) == 2
    assert "c" not in {a.name for a in found.graph.block.axes}


def test_what_is_read_along_the_axis_too_keeps_it(plan):
    found = plan(GATED.replace("* u[m, n, 1]", "* max[c](u[m, n, c])"))
    assert "apart" not in [r.rule for r in found.rewrites]


def test_what_another_kernel_reads_keeps_its_axis(plan):
    text = GATED.replace("u[m, n, c] =", "u: bf16[m, n, c] =").replace(
        "-> y: f32[M, N]", "-> y: f32[M, N], z: f32[M, N]"
    )
    text = text.replace("  }\n}", "  }\n  kernel l { z[m, n] = max[c](u[m, n, c]) }\n}")
    assert "apart" not in [r.rule for r in plan(text).rewrites]


def test_conditions_and_indices_move_with_the_place(plan):
    found = plan(
        "op f[N](x: f32[N + 3]) -> y: f32[N] {\n  kernel k {\n"
        "    s[n, c] = x[n + c] * (c + 1)  for c < 4, n < N\n    y[n] = s[n, 1] - s[n, 3]\n  }\n}\n"
    )
    at = sorted(str(load.at[0]) for load in found.graph.nodes if type(load).__name__ == "Load")
    assert at == ["n + 1", "n + 3"]
