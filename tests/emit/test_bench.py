"""What a driver says of lengths."""

from __future__ import annotations

import pytest

from opspec.driver.targets import limits
from opspec.emit.package import build_package
from opspec.frontend import load

POOL = """op pool[B, T, P, D](x: f32[B, T, D], len: i32[B]) -> y: f32[B, D] {
  require P >= 1
  assume len[b] <= T
  kernel k { y[b, d] = sum[t | t < len[b]](x[b, t, d]) }
}
workload w for pool { B = 4, T = 64, P = 16, D = 8  LENGTHS }
"""


def driver(tmp_path, lengths):
    path = tmp_path / "spec.op"
    path.write_text(POOL.replace("  LENGTHS", lengths), encoding="utf-8")
    return build_package(load(path), "spec.op", limits()).files["bench.py"]


@pytest.mark.parametrize(
    "stated, written",
    [
        (", len ~ {8: 0.25, 32: 0.75}", "bench.Lengths(((0.25, 8), (0.75, 32)))"),
        (", len ~ [8, 16, 32, 64]", "bench.Lengths(listed=(8, 16, 32, 64))"),
        ("", "8}, {}),"),
    ],
    ids=["shares", "listed", "unstated"],
)
def test_a_driver_states_the_lengths_of_its_workload(tmp_path, stated, written):
    text = driver(tmp_path, stated)
    assert written in text
    assert 'moments=lambda d, lengths: {"sum_len": sum(lengths["len"])}' in text
    assert 'sum_len=d["sum_len"]' in text


def test_a_long_record_of_lengths_is_stated_in_few_parts():
    from fractions import Fraction

    from opspec.emit.bench import MOST, _few

    shares = {n: Fraction(1 + n % 3) for n in range(1, 2000)}
    few = _few(shares)
    assert len(few) == MOST
    assert sum(w for w, _ in few) == sum(shares.values())
    true = sum(w * n for n, w in shares.items())
    assert abs(sum(w * n for w, n in few) / true - 1) < 1e-3
    assert [n for _, n in few] == sorted({n for _, n in few})
    assert _few({5: Fraction(1), 3: Fraction(2)}) == [(2, 3), (1, 5)]


@pytest.mark.parametrize(("dtype", "allowed"), [("f8e4m3", ", relative=0.00048828125)"), ("bf16", "+ 16)")])
def test_a_driver_allows_what_sums_of_f8_products_lose(tmp_path, dtype, allowed):
    path = tmp_path / "spec.op"
    path.write_text(
        f"op f[M, N, K](a: {dtype}[M, K], b: {dtype}[N, K]) -> c: f32[M, N] {{\n"
        "  kernel k { c[m, n] = sum[k](a[m, k] * b[n, k]) }\n}\n"
        "workload w for f { M = 64, N = 64, K = 64 }\n",
        encoding="utf-8",
    )
    text = build_package(load(path), "spec.op", limits()).files["bench.py"]
    (line,) = (line for line in text.splitlines() if "bench.Tolerance(" in line)
    assert line.rstrip(",").endswith(allowed)
