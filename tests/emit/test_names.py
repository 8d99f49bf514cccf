"""User names in generated Python."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from pathlib import Path

import pytest

from opspec.driver.targets import limits
from opspec.emit.names import HELPERS, escape, shorten
from opspec.emit.package import build_package
from opspec.frontend import load_text

ROOT = Path(__file__).parents[2]
HARD = (
    "lambda",
    "class",
    "None",
    "pid",
    "tl",
    "torch",
    "launch",
    "num_warps",
    "grid",
    "INDEX",
    "out",
    "print",
    "type",
    "match",
)


@pytest.mark.parametrize("name", HARD)
def test_a_taken_name_is_marked(name: str):
    found = escape(name)
    assert found == f"{name}_"
    assert not keyword.iskeyword(found)
    assert not hasattr(builtins, found)


@pytest.mark.parametrize("name", ("N", "S", "E", "beta", "pi", "x", "weight"))
def test_a_plain_name_is_kept(name: str):
    assert escape(name) == name


def test_long_names_stay_apart():
    a, b = (shorten("_".join(["fused"] * 60) + tail) for tail in ("first", "second"))
    assert len(a) <= 80
    assert a != b


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("role", ["tensor", "dim", "scalar", "result", "kernel", "op"])
def test_any_name_in_any_place_gives_valid_python(name: str, role: str):
    words = {"tensor": "x", "dim": "N", "scalar": "s", "result": "y", "kernel": "k", "op": "f"} | {role: name}
    text = (
        "op {op}[{dim}]({tensor}: f32[{dim}], {scalar}: f32) -> {result}: f32[{dim}] {{\n"
        "  kernel {kernel} {{ {result}[i] = {tensor}[i] * {scalar} + sum[j]({tensor}[j]) }}\n}}\n"
    ).format(**words)
    files = build_package(load_text(text), "spec.op", limits()).files
    for file in ("kernel.py", "bench.py"):
        tree = ast.parse(files[file])
        compile(tree, file, "exec")
    # parameters of one function are never called alike
    for node in ast.walk(ast.parse(files["kernel.py"])):
        if isinstance(node, ast.FunctionDef):
            names = [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
            assert len(set(names)) == len(names)


def test_no_name_is_that_of_a_device_function():
    files = (
        "arithmetic.py",
        "casting.py",
        "device.py",
        "folding.py",
        "following.py",
        "groups.py",
        "odd_rows.py",
        "segmented.py",
        "widening.py",
    )
    text = "\n".join((ROOT / "opspec/runtime" / f).read_text(encoding="utf-8") for f in files)
    public = {n for n in re.findall(r"^def (\w+)\(", text, re.MULTILINE) if not n.startswith("_")}
    assert public == HELPERS
    assert escape("decayed") == "decayed_"


def test_variants_that_all_stream_have_kernels_of_their_own():
    text = (
        "op f[M, V, K](x: bf16[M, K], w: bf16[V, K]) -> y: f32[M] {\n"
        "  kernel k { y[m] = logsumexp[v](sum[k](x[m, k] * w[v, k])) }\n}\n"
    )
    kernel = build_package(load_text(text), "f.op", limits()).files["kernel.py"]
    names = [n.name for n in ast.parse(kernel).body if isinstance(n, ast.FunctionDef)]
    assert "_f_k_streamed0" in names
    assert len(set(names)) == len(names)
