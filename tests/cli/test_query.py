import json
import subprocess
import sys

import pytest

from tests.cli.conftest import ROOT, shell

SOFTMAX = str(ROOT / "specs/reduce/softmax.op")
LATENT = str(ROOT / "tests/analysis/specs/latent_block.op")
TWO = """op double[M](x: f32[M]) -> y: f32[M] {
  kernel k { y[m] = 2 * x[m] }
}
op twice[M](x: f32[M]) -> y: f32[M] {
  kernel k { y[m] = x[m] + x[m] }
}
workload some for twice { M = 4 }
"""


def test_json_has_exactly_the_five_keys(opspec):
    ran = opspec("query", SOFTMAX, "bytes", "--set", "M=4,N=8", "--dtype", "X=f32", "--format", "json")
    assert ran.status == 0
    assert json.loads(ran.out) == {
        "op": "softmax", "expr": "bytes", "symbolic": "8 * M * N", "value": 256, "unit": "B",
    }  # fmt: skip


def test_symbolic_form_is_python(opspec):
    answer = json.loads(opspec("query", SOFTMAX, "flops", "--format", "json").out)
    assert answer["value"] is None
    code = compile(answer["symbolic"], "answer", "eval")
    assert eval(code, {"__builtins__": {}}, {"M": 3, "N": 7}) == 3 * (5 * 7 + 1)


def test_set_comes_after_the_workload_and_may_be_repeated(opspec):
    ran = opspec(
        "query", SOFTMAX, "bytes", "--at", "rows_4k", "--set", "M=1", "--set", "N=1_000", "--format", "json"
    )
    assert json.loads(ran.out)["value"] == 4000


def test_why_lists_terms(opspec):
    out = opspec("query", SOFTMAX, "ai", "--at", "rows_4k", "--why").out
    assert "sfu.exp" in out
    assert "rows: read x" in out


def test_a_comment_in_a_query_is_one(opspec):
    assert opspec("query", SOFTMAX, "flops  # all of them").out == opspec("query", SOFTMAX, "flops").out


def test_latex(opspec):
    assert opspec("query", SOFTMAX, "flops", "--format", "latex").out.strip() == r"5 M N + M"


def test_machine_by_option_and_in_the_expression(opspec):
    assert (
        opspec("query", SOFTMAX, "bound", "--at", "rows_4k", "--machine", "h200").out.splitlines()[0]
        == "memory"
    )
    assert opspec("query", SOFTMAX, "bound on h200", "--at", "rows_4k").out.splitlines()[0] == "memory"


def test_boundary(opspec):
    own = json.loads(opspec("query", LATENT, "launches", "--format", "json").out)["value"]
    from opspec.frontend import load

    other = next(b for b in load(LATENT).ops[0].boundaries if b.name and len(b.kernels) != own)
    ran = opspec("query", LATENT, "launches", "--boundary", other.name, "--format", "json")
    assert json.loads(ran.out)["value"] == len(other.kernels)


def test_op_of_several(opspec, tmp_path):
    path = tmp_path / "two.op"
    path.write_text(TWO)
    open_choice = opspec("query", str(path), "flops")
    assert open_choice.status == 2
    assert "OP626" in open_choice.err
    assert "double" in open_choice.err
    assert opspec("query", f"{path}:double", "flops", "--set", "M=3").out.startswith("3")
    assert opspec("query", str(path), "flops", "--at", "some").out.startswith("4")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([f"{SOFTMAX}:softmx", "ai"], "OP626", "did you mean `softmax`?"),
        ([SOFTMAX, "ai", "--at", "rows_4"], "OP722", "did you mean `rows_4k`?"),
        ([SOFTMAX, "ai", "--set", "K=3"], "OP722", "known: `M`, `N`"),
        ([SOFTMAX, "ai", "--set", "M"], "OP627", "not NAME=VALUE"),
        ([SOFTMAX, "ai", "--set", "M=x"], "OP627", "needs an integer"),
        ([SOFTMAX, "ai", "--set", "M=" + "9" * 5000], "OP627", "needs an integer"),
        ([SOFTMAX, "ai", "--set", "M=-1"], "OP724", "not negative"),
        ([SOFTMAX, "ai", "--dtype", "X=f33"], "OP722", "`f32`"),
        ([SOFTMAX, "ai", "--dtype", "Y=f32"], "OP722", "`X`"),
        ([SOFTMAX, "ai", "--boundary", "b"], "OP722", "boundary"),
        ([SOFTMAX, "ai", "--machine", "h20"], "OP711", "h200"),
        ([SOFTMAX, "flop"], "OP722", "did you mean `flops`?"),
        ([SOFTMAX, "flops / / bytes"], "OP721", "^"),
        ([SOFTMAX, "flops + bytes"], "OP723", "FLOP"),
        ([SOFTMAX, "time"], "OP724", "--machine"),
        ([SOFTMAX, "__import__('os')"], "OP721", ""),
        ([str(ROOT / "specs"), "ai"], "OP621", "folder"),
        ([str(ROOT / "specs/none.op"), "ai"], "OP621", "none.op"),
        (["nul\0byte.op", "ai"], "OP621", ""),
    ],
)
def test_wrong_input_is_said_with_its_code(opspec, arguments, code, words):
    ran = opspec("query", *arguments)
    assert ran.status == 2
    assert f"error[{code}]" in ran.err
    assert words in ran.err
    assert ran.out == ""


def test_errors_as_json_too(opspec):
    ran = opspec("query", SOFTMAX, "flop", "--format", "json")
    assert ran.status == 2
    assert json.loads(ran.err)[0]["code"] == "OP722"


@pytest.mark.parametrize(
    "arguments",
    [["query", SOFTMAX, "ai", "--at", "rows_4k", "--why"], ["check", SOFTMAX], ["machine", "list"]],
)
def test_neither_torch_nor_triton_is_imported(arguments):
    code = (
        "import sys; from opspec.cli import main; status = main(sys.argv[1:]);"
        "heavy = {'torch', 'triton', 'jinja2', 'numpy', 'rich'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_check_of_a_spec_without_budgets_needs_no_sympy(tmp_path):
    path = tmp_path / "two.op"
    path.write_text(TWO)
    code = "import sys; from opspec.cli import main; main(sys.argv[1:]); sys.exit('sympy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, "check", str(path)], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 0


def test_from_another_folder(tmp_path, spec):
    ran = shell("query", "scale.op", "bytes", "--at", "small", cwd=tmp_path)
    assert (ran.status, ran.out.splitlines()[0]) == (0, "8000 B (8 kB)")


def test_traffic_of_a_product_in_its_tiles(opspec):
    matmul = str(ROOT / "specs/gemm/matmul.op")
    tiles = ("--set", "M=64,N=96,K=32,BLOCK_M=16,BLOCK_N=32", "--dtype", "X=bf16", "--format", "json")
    answer = json.loads(opspec("query", matmul, "traffic", *tiles).out)
    assert answer["value"] == 2 * (64 * 32 * 3 + 32 * 96 * 4 + 64 * 96)
    assert "BLOCK_M" in answer["symbolic"]


def test_the_op_that_bears_the_name_of_its_file_is_the_first_choice(opspec):
    matmul = str(ROOT / "specs/gemm/matmul.op")
    answers = [
        json.loads(opspec("query", matmul, "bytes[a]", *more, "--format", "json").out)["op"]
        for more in ((), ("--at", "cube_8k_tn"))
    ]
    assert answers == ["matmul", "matmul_tn"]


def test_traffic_counts_second_sweeps(opspec):
    ran = opspec("query", SOFTMAX, "traffic / bytes", "--at", "rows_32k")
    assert ran.out.splitlines()[0] == "1.5"


def test_traffic_of_what_has_no_kernel(opspec):
    assert "OP724" in opspec("query", LATENT, "traffic", "--boundary", "three").err
    packed = str(ROOT / "tests/frontend/accepted/rows.op:pack")
    assert "OP642" in opspec("query", packed, "traffic").err


DECODE = str(ROOT / "tests/analysis/specs/decode.op:decode")


def test_a_plot_in_the_terminal_as_data_and_as_pictures(opspec, tmp_path, monkeypatch):
    pytest.importorskip("plotille")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("COLUMNS", "90")
    ask = ("query", DECODE, "ai.tensor", "--at", "decode_8k", "--machine", "h200", "--plot", "G=1..4096")
    text = opspec(*ask).out
    assert text.splitlines()[0] == "ai.tensor of decode over G, at decode_8k, on h200"
    assert "  a  G = 212: bound by tensor instead of memory; ai.tensor reaches the ridge of h200" in text
    data = json.loads(opspec(*ask, "--format", "json").out)
    assert data["marks"][0]["at"] == 212
    for name, start in (("a.png", b"\x89PNG"), ("new/b.SVG", b"<?xml")):
        path = tmp_path / name
        ran = opspec(*ask, "--save", str(path))
        assert (ran.status, ran.out.strip()) == (0, str(path))
        assert path.read_bytes().startswith(start)


def test_a_plot_over_tile_sizes(opspec):
    pytest.importorskip("plotille")
    matmul = str(ROOT / "specs/gemm/matmul.op")
    options = ("--at", "cube_8k", "--set", "BLOCK_N=256", "--plot", "BLOCK_M=16..512", "--format", "json")
    data = json.loads(opspec("query", matmul, "traffic", *options).out)
    (curve,) = data["curves"]
    assert dict(map(tuple, curve["points"]))[128] == 2 * 8192**3 // 256 + 2 * 8192**3 // 128 + 2 * 8192**2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--save", "x.png"], "needs the range"),
        (["--plot", "T=1..9", "--save", "x.gif"], "ends in `.png` or `.svg`"),
        (["--plot", "T=1..9", "--format", "latex"], "for LaTeX"),
        (["--plot", "1..9"], "no range"),
    ],
)
def test_options_of_plots_that_do_not_fit(opspec, options, words):
    ran = opspec("query", DECODE, "ai.tensor", "--at", "decode_8k", *options)
    assert (ran.status, ran.out) == (2, "")
    assert "error[OP725]" in ran.err
    assert words in ran.err


def test_sensitivity_on_the_command_line(opspec):
    out = opspec("query", DECODE, "sensitivity(ai.tensor)", "--at", "decode_8k").out.splitlines()
    assert out[0] == "Hq"
    assert out[1].split() == ["Hq", "+0.9999", "=", *["Hkv", "*", "T", "/", "(Hkv", "*", "T", "+", "Hq)"]]


@pytest.mark.parametrize("value", ["-1", "1.5", "x", "", "0x10"])
def test_what_is_no_extent_is_refused(opspec, value):
    ran = opspec("query", DECODE, "ai.tensor", "--at", "decode_8k", "--set", f"T={value}")
    assert (ran.status, ran.out) == (2, "")
    assert "error[OP" in ran.err


def test_polyhedra_are_left_out_and_can_be_had_afterwards():
    code = (
        "import sys; from opspec.cli import main; status = main(sys.argv[1:]);"
        "assert 'sympy.combinatorics' in sys.modules; name = 'sympy.combinatorics.polyhedron';"
        "assert name not in sys.modules; assert not any(type(f).__name__ == '_NoPolyhedra' for f in sys.meta_path);"
        "from sympy.combinatorics.polyhedron import cube; assert cube.size == 8; sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "query", DECODE, "ai"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
