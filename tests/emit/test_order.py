"""The order of what is stored, and of the programs of launches behind one another."""

from __future__ import annotations

from opspec.driver.targets import limits
from opspec.emit.package import build_package
from opspec.frontend import load_text

STATISTICS = """op f[M, N](x: f32[M, N]) -> y: f32[M, N], mu: f32[M], s: f32[M] {
  kernel k {
    mu[m] = mean[n](x[m, n])
    s[m] = sum[n]((x[m, n] - mu[m]) ** 2)
    y[m, n] = (x[m, n] - mu[m]) * s[m]
  }
}
"""
CHAIN = """op f[M, N](x: f32[M, N], w: f32[N, N]) -> y: f32[M, N] {
  kernel first { a[m, n] = softmax[n](x[m, n]) }
  kernel second { b[m, n] = 2 * a[m, n] }
  kernel third { c[m, n] = b[m, n] + max[i](b[m, i]) }
  kernel other { d[m, n] = exp(x[m, n]) }
  kernel last { y[m, n] = c[m, n] + d[m, n] }
}
"""


def kernels(text: str) -> dict[str, list[str]]:
    package = build_package(load_text(text, "spec.op"), "spec.op", limits())
    return {t.name: list(t.lines) for k in package.launches["f", ""] for t in k.texts}


def test_what_is_stored_of_a_row_comes_behind_what_is_stored_of_its_elements():
    lines = kernels(STATISTICS)["_f_k_resident"]
    stores = [line.strip()[9:].split("_ptr")[0] for line in lines if "tl.store(" in line]
    assert [s if s in ("mu", "s") else "y" for s in stores] == ["y", "mu", "s"]
    streamed = "\n".join(kernels(STATISTICS)["_f_k_streamed"])
    assert streamed.index("tl.store(mu_ptr") < streamed.rindex("for n_start")


def test_a_launch_goes_backwards_through_what_the_one_before_it_wrote():
    found = kernels(CHAIN)
    back = {name for name, lines in found.items() if any("tl.num_programs(0) - 1" in line for line in lines)}
    assert back == {"_f_second", "_f_last"}
