"""Operands of four bits that are computed in the 16 bits in which they enter a product, and those that are not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import triton.language as tl
from checking import compiled

from opspec.driver.targets import limits
from opspec.driver.verify import load_module
from opspec.emit.package import build_package
from opspec.frontend import load
from opspec.runtime import groups

SHAPE = {"M": 16, "N": 14336, "K": 4096, "S": 128}
HEAD = "op f[M, N, K](x: {x}[M, K], w: i4[N, K], z: i8[N, K], s: {s}[N, K], e: f32[N, K]){out} {{\n  kernel k {{\n"


def spec(body: str, *, x: str = "bf16", s: str = "bf16", out: str = " -> y: f32[M, N]") -> str:
    return HEAD.format(x=x, s=s, out=out) + body + "\n  }\n}\n"


def product(value: str, x: str = "bf16") -> str:
    return f"    y[m, n] = sum[k] using {x} (x[m, k] * ({value}))"


def described(text: str, folder: Path) -> str:
    """The kernel with descriptors, as text."""
    path = folder / "spec.op"
    path.write_text(text, encoding="utf-8")
    kernel = build_package(load(path), "spec.op", limits()).files["kernel.py"]
    found = re.search(r"def _f_k_described\(.*?\n\n\n", kernel, re.DOTALL)
    return found[0] if found else ""


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("w[n, k]", "y = dot_parts(w, x, y, PARTS)"),
        ("w[n, k] * s[n, k]", "times_halves(tl.trans(w), tl.trans(s).to(tl.bfloat16))"),
        ("(w[n, k] + z[n, k]) * s[n, k]", "plus_halves(tl.trans(w), tl.trans(z).to(tl.bfloat16)), "),
        ("w[n, k] + z[n, k]", "plus_halves(w, z.to(tl.bfloat16))"),
        ("z[n, k] - w[n, k]", "minus_halves(z.to(tl.bfloat16), w)"),
        # 127 + 100 and 72 are more than bf16 holds exactly
        (
            "w[n, k] - (z[n, k] + 100)",
            "minus_halves(w, plus_halves(z.to(tl.bfloat16), tl.cast(100.0, tl.bfloat16)))",
        ),
    ],
)
def test_what_16_bits_hold_exactly_is_computed_in_them(value: str, printed: str, tmp_path: Path):
    text = described(spec(product(value)), tmp_path)
    assert re.search(r"unpacked(_words)?\(w_desc\.load\(", text)
    assert printed in text


@pytest.mark.parametrize(
    "value",
    [
        "w[n, k] * e[n, k]",  # a factor with more bits would be rounded before the product
        "w[n, k] * s[n, k] * s[n, k]",  # and so would be a product
        "w[n, k] * s[n, k] - z[n, k]",
        "w[n, k] - z[n, k] - z[n, k]",  # -8 - 127 - 127: bf16 holds not every whole number up to there
        "exp(w[n, k])",
    ],
)
def test_what_they_would_round_twice_is_computed_in_32(value: str, tmp_path: Path):
    text = spec(product(value))
    kernel = described(text, tmp_path)
    assert "unpacked" not in kernel
    assert "_halves" not in kernel


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_elements_stay_above_what_they_are_where_whole_numbers_are_taken_from_them(kind: str, tmp_path: Path):
    text = described(spec(product("(w[n, k] - z[n, k]) * s[n, k]", kind), x=kind, s=kind), tmp_path)
    assert "w = lifted_words(w_desc.load(" in text
    into = {"bf16": "tl.bfloat16", "f16": "tl.float16"}[kind]
    assert f"lifted_words(w_desc.load([n_first, k_start // 8]), {into}, 1)" in text
    assert "lowered(tl.trans(w), tl.trans(z))" in text


def test_f16_holds_larger_whole_numbers(tmp_path: Path):
    text = described(spec(product("w[n, k] - z[n, k] - z[n, k]", "f16"), x="f16", s="f16"), tmp_path)
    assert "minus_halves(lowered(w, z), " in text


GROUPS = "op f[M, N, K, S](x: bf16[M, K], w: i4[N, K], z: i8[N, K // S], s: bf16[N, K // S], v: bf16[M, K]){out} {{\n"
GROUPS += "  require S >= 1\n  require K % S == 0\n  kernel k {{\n    {body}\n  }}\n}}\n"
SCALED = "(w[n, k] - z[n, k // S]) * s[n, k // S]"


@pytest.mark.parametrize(
    "body",
    [
        f"y[m, n] = sum[k] using bf16 (x[m, k] * ({SCALED}))",
        f"d[n, k] = {SCALED}\n    y[m, n] = sum[k] using bf16 (x[m, k] * d[n, k])",
        "y[m, n] = sum[k] using bf16 (x[m, k] * (s[n, k // S] * w[n, k]))",
    ],
)
def test_the_factor_of_a_group_goes_behind_its_product(body: str, tmp_path: Path):
    text = described(GROUPS.format(out=" -> y: f32[M, N]", body=body), tmp_path)
    assert re.search(r"y = dot_behind\(.*\bs,\s+x,\s+y,\s+PARTS,?\s*\)", text, re.DOTALL)
    assert "times_halves" not in text


def test_one_that_two_products_read_stays_in_them(tmp_path: Path):
    body = f"d[n, k] = {SCALED}\n    y[m, n] = sum[k] using bf16 (x[m, k] * d[n, k])"
    body += "\n    t[m, n] = sum[k] using bf16 (v[m, k] * d[n, k])"
    text = described(GROUPS.format(out=" -> y: f32[M, N], t: f32[M, N]", body=body), tmp_path)
    assert "times_halves(lowered(w, " in text
    assert "dot_behind" not in text


@pytest.mark.parametrize(("kind", "dtype"), [("bfloat16", torch.bfloat16), ("float16", torch.float16)])
def test_the_bits_of_two_elements_are_numbers_above_them(kind: str, dtype: torch.dtype):
    to = getattr(tl, kind)
    text = groups._lift(to)
    factor = int(re.search(r"mul\.lo\.u32 both, both, (0x\w+)", text)[1], 16)
    kept, magic = (
        int(re.search(r"both, (0x\w+), magic", text)[1], 16),
        int(re.search(r"magic, (0x\w+)", text)[1], 16),
    )
    for byte in range(256):
        bits = (byte * factor & 0xFFFFFFFF & kept) ^ magic  # lop3 0x6a: (a & b) ^ c
        pair = torch.tensor([bits - (1 << 32 if bits >> 31 else 0)], dtype=torch.int32).view(dtype)
        wanted = [((nibble ^ 8) - 8) + groups._lifted_by(to) for nibble in (byte & 15, byte >> 4)]
        assert pair.tolist() == wanted


@pytest.mark.parametrize(("kind", "dtype"), [("bfloat16", torch.bfloat16), ("float16", torch.float16)])
def test_a_lane_s_own_word_gives_its_elements_two_by_two_four_places_apart(kind: str, dtype: torch.dtype):
    to = getattr(tl, kind)
    text = groups._lift_word(to)
    magic = int(re.search(r"magic, (0x\w+);", text)[1], 16)
    pairs = re.findall(
        r"(shl|shr)\.\w+ both, \$8, (\d+);\s+lop3\.b32 both, both, (0x\w+), magic, 0x6a;\s+"
        r"mov\.b32 \{\$(\d), \$(\d)\}, both;",
        text,
    )
    codes = [3, 8, 15, 0, 9, 7, 12, 6]
    word = sum(code << 4 * k for k, code in enumerate(codes))
    made: dict[int, float] = {}
    for way, by, kept, low, high in pairs:
        bits = word << int(by) if way == "shl" else word >> int(by)
        bits = (bits & 0xFFFFFFFF & int(kept, 16)) ^ magic  # lop3 0x6a: (a & b) ^ c
        pair = torch.tensor([bits - (1 << 32 if bits >> 31 else 0)], dtype=torch.int32).view(dtype)
        made |= dict(zip((int(low), int(high)), pair.tolist(), strict=True))
    order = [0, 4, 1, 5, 2, 6, 3, 7]
    assert [made[k] for k in range(8)] == [((codes[k] ^ 8) - 8) + groups._lifted_by(to) for k in order]


def test_two_steps_are_unpacked_together_and_multiplied_one_after_the_other(tmp_path: Path):
    body = f"d[n, k] = {SCALED}\n    y[m, n] = sum[k] using bf16 (x[m, k] * d[n, k])"
    text = described(GROUPS.format(out=" -> y: f32[M, N]", body=body), tmp_path)
    turn = text[text.index("if STEPS == 2:") : text.index("    else:")]
    assert "for k_start in range(0, K, 2 * BLOCK_K):" in turn
    assert turn.index("d_next = lowered(w_next, z_next)") < turn.index("y = dot_behind(d, s, x, y, PARTS)")
    assert "y = dot_behind(d_next, s_next, x_next, y, PARTS)" in turn
    assert "if k_part" not in turn
    assert turn.index("s_next = load_parts(") < turn.index("x = mixed(x_desc.load(")
    for tensor in ("z", "s"):
        assert f"fetch_ahead({tensor}_ptr + n * {tensor}_stride_N, n < N)" in text


def test_a_product_that_adds_up_in_the_unit_takes_a_step_at_a_time(tmp_path: Path):
    text = described(GROUPS.format(out=" -> y: f32[M, N]", body=product("w[n, k]").strip()), tmp_path)
    assert "dot_parts(w, x, y, PARTS)" in text
    assert "STEPS" not in text


def test_what_is_used_elsewhere_too_stays_whole_bytes(tmp_path: Path):
    body = product("w[n, k] * s[n, k]") + "\n    t[n] = sum[k](abs(w[n, k]) * e[n, k])"
    text = described(spec(body, out=" -> y: f32[M, N], t: f32[N]"), tmp_path)
    assert "unpacked" not in text


def test_four_lanes_take_their_bytes_of_one_word():
    text = (Path(__file__).parent / "corpus" / "weights_i4.op").read_text(encoding="utf-8")
    answer = compiled(text, SHAPE, ttir=True, op="zeros")
    assert "broken" not in answer, answer["broken"]
    rows = [row for row in answer["compiled"] if row["kernel"].endswith("_described")]
    assert rows
    for row in rows:
        assert "ld.shared.b8" not in row["ptx"]
        assert "ld.shared.v4.b32" in row["ptx"]
        # scales and zero points of a column: once a row of the tile that a thread has, not once an element
        assert len(re.findall(r"ld\.global\S*\.b(?:8|16) ", row["ptx"])) <= 16
        assert "lop3.b32" in row["ptx"]
        assert not row["spills"]
        assert row["registers"] <= 128


@pytest.mark.parametrize(("rows", "parts"), [(1, 4), (2, 1), (64, 1)])
def test_warps_take_parts_of_a_sum_with_one_column(rows: int, parts: int, tmp_path: Path):
    path = tmp_path / "spec.op"
    path.write_text(
        GROUPS.format(out=" -> y: f32[M, N]", body=f"y[m, n] = sum[k] using bf16 (x[m, k] * ({SCALED}))")
    )
    (tmp_path / "kernel.py").write_text(build_package(load(path), "spec.op", limits()).files["kernel.py"])
    kernels = load_module(tmp_path / "kernel.py")
    assert "y = zeros_parts(BLOCK_N, BLOCK_M, PARTS)" in (text := described(path.read_text(), tmp_path))
    assert "y = sum_parts(y, PARTS)" in text
    for group, span in ((128, 2), (384, 0), (64, 2), (48, 1)):
        _, _, options, _ = kernels._configure_f_k(rows, 14336, 384 * 32, group, 2, True)
        part = options["BLOCK_K"] // parts
        assert options["PARTS"] == parts
        assert options["SPANS_K"] == span
        assert group == 48 or part == (64 if group == 64 else 128)
    assert "PARTS" not in kernels._configure_f_k(rows, 14336, 384 * 32, 128, 2, False)[2]
