import re
import subprocess
import sys
from pathlib import Path

import pytest

from opspec.driver.codes import all_codes
from tests.cli.conftest import ROOT, SCALE

SOFTMAX = str(ROOT / "specs/reduce/softmax.op")
MATMUL = str(ROOT / "specs/gemm/matmul.op")


def test_roles_laws_sweeps_and_reloads(opspec):
    out = opspec("explain", SOFTMAX).out
    assert re.search(r"n +N +tile +stream", out)
    assert "g = exp(m_old - m_new)" in out
    assert "2 sweeps over n" in out
    assert "x is loaded again in a later sweep" in out
    assert max(map(len, out.splitlines())) <= 110


def test_first_choices_with_their_resources(opspec):
    out = opspec("explain", SOFTMAX).out
    assert re.search(r"rows_4k: softmax_rows_resident\n .*BLOCK_N 4096.*\n .*registers, 0 B spilled", out)


def test_without_triton_it_says_so(opspec, monkeypatch):
    from opspec.driver import stages

    monkeypatch.setattr(stages, "can_compile", lambda: False)
    ran = opspec("explain", SOFTMAX)
    assert ran.status == 0
    assert "not compiled" in ran.out
    ran = opspec("explain", SOFTMAX, "--stage", "ptx")
    assert ran.status == 2
    assert "OP623" in ran.err


def test_traffic_of_a_product(opspec):
    out = opspec("explain", MATMUL).out
    assert "a is loaded ceil(N / BLOCK_N) times" in out
    assert "block product" in out
    assert "wgmma" in out


def test_a_refused_law_says_why(opspec, tmp_path):
    path = tmp_path / "f.op"
    path.write_text(
        "op f[M, N](x: f32[M, N]) -> y: f32[M] {\n"
        "  kernel k {\n    a[m] = max[n](x[m, n])\n    y[m] = sum[n](x[m, n] * a[m] * exp(x[m, n]) + a[m] * a[m])\n  }\n}\n"
    )
    ran = opspec("explain", str(path))
    assert ran.status == 0, ran.err
    assert "no online law beside" in ran.out


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ("syntax", "KernelBlock name=rows"),
        ("ir", "y.m.1[m < M] = max[n < N](x[m, n])"),
        ("tile", "tile softmax.rows streamed"),
        ("kernel", "@triton.jit"),
    ],
)
def test_stages(opspec, stage, words):
    ran = opspec("explain", SOFTMAX, "--stage", stage)
    assert ran.status == 0
    assert words in ran.out


def test_odd_rows_without_gaps_move_in_vectors(opspec, tmp_path):
    """Rows of 55 elements begin at odd addresses; 64 of them one after another are one long row."""
    spec = tmp_path / "odd.op"
    body = "kernel k {{ y[m, n] = 2 * x[m, n]{} }} }}\nworkload w for f {{ M = 64, N = 55 }}\n"
    for more, wide in (("", True), (" + v[n]", False)):
        spec.write_text("op f[M, N](x: bf16[M, N], v: f32[N]) -> y: bf16[M, N] { " + body.format(more))
        out = opspec("explain", str(spec), "--stage", "ptx").out
        assert ("ld.global.v4" in out) == wide
    assert "walked as one axis" not in opspec("explain", str(spec)).out


@pytest.mark.parametrize(("stage", "words"), [("ptx", ".target sm_90a"), ("sass", "EXIT")])
def test_machine_code(opspec, tmp_path, stage, words):
    path = tmp_path / "scale.op"
    path.write_text(SCALE)
    ran = opspec("explain", str(path), "--stage", stage)
    assert ran.status == 0, ran.err
    assert words in ran.out


def test_wrong_input(opspec):
    for arguments, code in (
        ((f"{SOFTMAX}:softmx",), "OP626"),
        ((SOFTMAX, "--boundary", "b"), "OP722"),
        ((str(ROOT / "specs/attention/prefill.op:attention"), "--boundary", "b"), "OP722"),
        ((str(ROOT / "specs/reduce"),), "OP621"),
        ((SOFTMAX, "--target", "sm_1"), "OP625"),
        (("nothing.op",), "OP621"),
        (("OP9999",), "OP628"),
    ):
        ran = opspec("explain", *arguments)
        assert ran.status == 2
        assert f"error[{code}]" in ran.err


def test_a_page_per_code(opspec):
    for code in all_codes():
        ran = opspec("explain", code.lower())
        assert ran.status == 0
        assert f"[{code}]" in ran.out
        assert "Fix:" in ran.out


def test_codes_are_found_without_torch():
    code = (
        "import sys; from opspec.driver.codes import all_codes; known = all_codes();"
        "sys.exit(1 if 'torch' in sys.modules or not {'OP101', 'OP301', 'OP621', 'OP641', 'OP731'} <= set(known) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_every_code_says_what_why_and_how():
    for code in all_codes().values():
        assert code.title, code.code
        assert code.why, code.code
        assert code.fix, code.code
        assert re.fullmatch(r"OP\d{3}", code.code)


def test_a_file_called_like_a_code_wins(opspec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("OP204").write_text(SCALE)
    assert "scale of OP204" in opspec("explain", "OP204").out


def test_heads_that_share_an_element_are_pointed_out(opspec):
    out = opspec("explain", str(ROOT / "tests/analysis/specs/decode.op:decode")).out
    assert "k is loaded for each h, though several share one (h // (Hq // Hkv))" in out


def test_one_op_is_explained_though_another_has_no_emitter(opspec):
    rows = str(ROOT / "tests/frontend/accepted/rows.op")
    assert opspec("explain", f"{rows}:kl", "--stage", "tile").status == 0
    ran = opspec("explain", f"{rows}:pack")
    assert ran.status == 2
    assert "error[OP642]" in ran.err
