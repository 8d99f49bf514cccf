"""Products whose warps have roles: see ``warp_cases``; what the compiler makes of them, and which programs have none."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from checking import compiled, interpreter

from opspec.driver.targets import limits
from opspec.emit.package import build_package
from opspec.frontend import load
from opspec.runtime.warp_specialised import pick_chain, pick_tile
from opspec.schedule.resources import warp_specialised_tiles

ROOT = Path(__file__).parents[2]
SOURCE = (Path(__file__).parent / "warp_cases.py").read_text(encoding="utf-8")
NAMES = re.findall(r"^@case\ndef (\w+)", SOURCE, re.MULTILINE)
PRODUCT = """op f[M, N, K](a: {a}, b: {b}) -> c: {c} {{
  kernel k {{ {body} }}
}}
"""
PLAIN = {
    "a": "bf16[M, K]",
    "b": "bf16[N, K]",
    "c": "bf16[M, N]",
    "body": "c[m, n] = sum[k](a[m, k] * b[n, k])",
}
WITHOUT = {
    "an operand that is computed": {"body": "c[m, n] = sum[k](exp(a[m, k]) * b[n, k])"},
    "an operand that is widened": {"a": "i8[M, K]"},
    "f32": {"a": "f32[M, K]", "b": "f32[N, K]"},
    "bytes across memory": {"a": "f8e4m3[M, K]", "b": "f8e4m3[K, N]", "body": "c[m, n] = sum[k](a[m, k] * b[k, n])"},
    "a domain of the sum": {"body": "c[m, n] = sum[k | k <= m](a[m, k] * b[n, k])"},
    "rows that the end of a product reduces": {"c": "bf16[M, N], r: f32[M]", "body": "s[m, n] = sum[k](a[m, k] * b[n, k]) \n r[m] = max[n](s[m, n]) \n c[m, n] = s[m, n]"},
    "a result in bytes": {"c": "f8e4m3[M, N]", "body": "c[m, n] = f8e4m3.sat(sum[k](a[m, k] * b[n, k]))"},
}  # fmt: skip
SIZE = {"M": 1024, "N": 1024, "K": 512}


def kernel_of(tmp_path: Path, **parts: str) -> str:
    path = tmp_path / "f.op"
    path.write_text(PRODUCT.format(**PLAIN | parts), encoding="utf-8")
    return build_package(load(path), "f.op", limits()).files["kernel.py"]


def text_of(spec: str) -> str:
    with tempfile.TemporaryDirectory(prefix="opspec-test-") as folder:
        path = Path(folder) / "f.op"
        path.write_text(spec, encoding="utf-8")
        return build_package(load(path), "f.op", limits()).files["kernel.py"]


@pytest.mark.parametrize("name", NAMES)
def test_interpreted(name: str):
    answer = interpreter().ask({"exact": name, "module": "warp_cases"})
    assert answer == {"right": True}, answer.get("broken")


def test_there_are_cases():
    assert len(NAMES) > 9


def test_a_plain_product_has_the_form(tmp_path):
    assert "gl.warp_specialize(" in kernel_of(tmp_path)


@pytest.mark.parametrize("why", WITHOUT)
def test_a_program_without_the_form(why: str, tmp_path):
    text = kernel_of(tmp_path, **WITHOUT[why])
    assert "_part" in text or "tl.dot" in text or "dot_" in text
    assert "gluon" not in text


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f8e4m3", "f8e5m2"])
def test_it_multiplies_in_groups_brings_by_descriptors_and_moves_registers(dtype: str):
    text = PRODUCT.format(**PLAIN | {"a": f"{dtype}[M, K]", "b": f"{dtype}[N, K]"})
    rows = [r for r in compiled(text, SIZE, ttir=True)["compiled"] if "warp_specialised" in r["kernel"]]
    assert len(rows) == 1
    assert rows[0]["spills"] == 0
    for word in (
        "wgmma.mma_async",
        "cp.async.bulk.tensor",
        "setmaxnreg.inc",
        "setmaxnreg.dec",
        "mbarrier.try_wait",
    ):
        assert word in rows[0]["ptx"], word


ENDS = {
    "a transposed residual": "c[m, n] = s[m, n] + r[n, m]",
    "rows of a table": "c[m, n] = s[m, n] * u[at[m]]",
    "a place outside": "c[m, n] = s[m, n] + (r[m, n + 1] else 0)",
    "a condition on places": "c[m, n] = where(m < n, s[m, n], -inf)",
    "storage types": "c[m, n] = f8e4m3.sat(s[m, n]) + i8.sat(round(s[m, n])) + f8e5m2.nonsat(s[m, n])",
    "much between": "c[m, n] = gelu(s[m, n] + u[n]) + log(abs(s[m, n]) + 1.0) * tanh(u[m])",
}


@pytest.mark.parametrize("end", ENDS)
def test_what_stands_behind_the_sum_compiles_without_spilling(end: str):
    parts = {
        "a": "bf16[M, K], r: bf16[M, M], u: f32[M], at: i32[M]",
        "b": "bf16[M, K]",
        "c": "bf16[M, M]",
        "body": f"s[m, n] = sum[k](a[m, k] * b[n, k]) \n {ENDS[end]}",
    }
    text = PRODUCT.replace("[M, N, K]", "[M, K]").format(**parts)
    size = {k: SIZE[k] for k in "MK"}
    rows = [r for r in compiled(text, size)["compiled"] if "warp_specialised" in r["kernel"]]
    assert [r["spills"] for r in rows] == [0]


def test_offsets_beyond_31_bits_are_formed_in_64():
    body = "c[m, n] = sum[k](a[m, k] * b[n, k]) + r[m, n]"
    text = PRODUCT.format(**PLAIN | {"a": "bf16[M, K], r: bf16[M, N]", "body": body})
    for wide in (False, True):
        rows = compiled(text, SIZE, wide=wide, ttir=True)["compiled"]
        (ptx,) = (r["ptx"] for r in rows if "warp_specialised" in r["kernel"])
        assert bool(re.search(r"(mul|mad)\.lo\.s64", ptx)) == wide


def test_addresses_of_a_batch_are_formed_in_their_width():
    text = PRODUCT.replace("[M, N, K]", "[B, M, K]").format(
        a="bf16[B, M, K], r: bf16[B, M, M]",
        b="bf16[B, M, K]",
        c="bf16[B, M, M]",
        body="c[z, m, n] = sum[k](a[z, m, k] * b[z, n, k]) + r[z, m, n]",
    )
    kernel = text_of(text)
    assert "z_wide = warps.wide(z, INDEX)" in kernel
    assert "r_ptr + z_wide * r_stride_B" in kernel
    assert "[z, m_first + 64 * wave, n_first]" in kernel


@pytest.mark.parametrize(
    ("rows", "columns", "wanted"),
    [
        (8192, 8192, (128, 256)),  # the widest reads least
        (4097, 4095, (128, 256)),  # 33 by 16 tiles are four rounds
        (128, 128 * 132, (128, 128)),  # half as many wide tiles would leave half of the device idle
        (1024, 1024, None),  # 64 tiles do not fill a device
    ],
)
def test_the_tile_whose_programs_end_first(rows: int, columns: int, wanted: tuple[int, int] | None):
    tiles = ((128, 256, 64, 3), (256, 128, 64, 4), (128, 128, 64, 6))
    found = pick_tile(tiles, rows, columns, 1024)
    assert (found and found[:2]) == wanted
    assert pick_tile(tiles, rows, columns, 512) is None  # few steps between ends


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("sums", [1, 2])
@pytest.mark.parametrize("bits", [8, 16])
def test_tiles_fit_registers_and_shared_memory(bits: int, sums: int, folded: bool):
    own = limits()
    found = warp_specialised_tiles(
        own, bits, row_tiles=1, column_tiles=sums, sums=sums, folded=folded, vectors=0, results=1, result=16
    )
    for rows, columns, depth, slots in found:
        step = (rows + sums * columns) * depth * bits // 8
        assert slots * step + 2 * 64 * columns * 2 < own.shared_memory
        assert rows // 128 * columns // 2 * sums + folded * columns // 2 < 240
    assert bool(found) or (folded and sums == 2)


CHAIN = """op f[B, M, T, D, E](q: f16[B, M, D], k: f16[B, T, D], v: f16[B, T, E]) -> o: f16[B, M, E], top: f32[B, M] {{
  kernel k {{
    s[b, m, t] = sum[d](q[b, m, d] * k[b, t, d]){domain}
    p[b, m, t] = softmax[t](s[b, m, t])
    top[b, m] = max[t](s[b, m, t])
    o[b, m, e] = sum[t] using f16 ({operand} * v[b, t, e])
  }}
}}
workload w for f {{ B = 32, M = 4096, T = 4096, D = 64, E = 128 }}
"""
LONG = {"B": 32, "M": 4096, "T": 4096, "D": 64, "E": 128}


def chain(domain: str = "", operand: str = "p[b, m, t]") -> str:
    return CHAIN.format(domain=domain, operand=operand)


def test_a_chain_multiplies_what_registers_hold():
    rows = [r for r in compiled(chain(), LONG, ttir=True)["compiled"] if "warp_specialised" in r["kernel"]]
    assert [r["spills"] for r in rows] == [0]
    ptx = rows[0]["ptx"]
    assert re.search(r"wgmma\.mma_async\S+ +\{[^}]*\}, +\{", ptx)  # rows from registers
    assert re.search(r"wgmma\.mma_async\S+ +\{[^}]*\}, +%rd", ptx)  # rows from shared memory
    for word in ("cp.async.bulk.tensor", "setmaxnreg.inc", "setmaxnreg.dec", "mbarrier.try_wait"):
        assert word in ptx, word


@pytest.mark.parametrize(("domain", "mended"), [("", False), ("  for t < m + 1", True)])
def test_tiles_of_a_chain_are_made_anew_where_a_domain_cuts_rows_from_columns(
    domain: str, mended: bool, tmp_path
):
    path = tmp_path / "f.op"
    path.write_text(chain(domain), encoding="utf-8")
    text = build_package(load(path), "f.op", limits()).files["kernel.py"]
    assert "warps.pick_chain(" in text
    assert ("_mended" in text) == mended


def test_a_window_of_a_stream_keeps_the_pipeline():
    text = (ROOT / "generated/attention/prefill/kernel.py").read_text(encoding="utf-8")
    assert "def _attention_causal_flash_warp_specialised(" in text
    assert "def _attention_window_flash_warp_specialised(" not in text


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((4096, 4096, 128, 128, 128), (128, 128, 2)),
        ((4096, 4096, 64, 64, 128), (128, 128, 4)),
        ((4096, 4096, 256, 256, 32), None),  # two slots of rows so wide are more than shared memory has
        ((4096, 512, 128, 128, 128), None),  # few steps
        ((64, 4096, 128, 128, 512), None),  # half of each tile would be empty
        ((1024, 4096, 128, 128, 4), None),  # 32 tiles do not fill a device
        ((4096, 4096, 576, 512, 128), None),
    ],
)
def test_rows_chunk_and_slots_of_a_chain(shape: tuple[int, ...], wanted: tuple[int, int, int] | None):
    assert pick_chain(*shape) == wanted


def test_a_step_of_several_blocks_takes_fewer_places():
    assert pick_chain(4096, 4096, 128, 64, 128, live=2) == (128, 64, 4)
    path = Path(__file__).parent / "corpus/softcap.op"  # a hyperbolic tangent of each score
    text = build_package(load(path), "f.op", limits()).files["kernel.py"]
    assert re.search(r"warps\.pick_chain\([^)]*live=2\)", text)
