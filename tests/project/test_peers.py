"""Peers of the shipped specs: each takes what a driver passes and says what differs; those in torch are right."""

from __future__ import annotations

import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

from opspec.runtime.bench.inputs import make_set
from opspec.runtime.bench.model import Case, Tolerance
from opspec.runtime.bench.named import named_peer, read_peers
from opspec.runtime.bench.peers import prepare_peers
from opspec.runtime.bench.preparing import preparing
from opspec.runtime.bench.references import reference_of
from tests.emit.drivers import drivers

ROOT = Path(__file__).resolve().parents[2]
FILES = ("peers", "peers_aten", "peers_liger", "peers_quack", "peers_fla")
LEFT_OUT = {"int8pack_mm", "cumulative_sum"}  # of the table, where it says why
SHAPES = {  # at which a CPU holds them to the formula of the driver
    "norm/rmsnorm": {"M": 8, "N": 64},
    "norm/layernorm": {"M": 8, "N": 64},
    "norm/group_norm_silu": {"N": 2, "G": 4, "C": 16, "S": 32},
    "reduce/log_softmax": {"M": 8, "N": 64},
    "reduce/logsumexp": {"M": 8, "N": 64},
    "loss/cross_entropy": {"M": 8, "V": 64},
    "loss/label_smoothing": {"M": 8, "V": 64},
    "loss/kl_div": {"M": 8, "V": 64},
    "conv/causal_conv1d": {"B": 2, "T": 32, "C": 16, "K": 4},
    "nn/linear_cross_entropy": {"M": 16, "V": 64, "K": 32},
    "nn/grouped_gemm": {"N": 32, "E": 4, "K": 32, "F": 16},
    "gemm/matmul": {"M": 32, "N": 48, "K": 16},
    "gemm/lora": {"M": 32, "N": 48, "K": 64, "R": 16},
    "gemm/gated_mlp": {"M": 32, "N": 48, "K": 64},
}


TABLE = read_peers(ROOT / "tools" / "peers.toml")
PEERS = [
    (op, *re.fullmatch(r"tools/(\w+)\.py:(\w+)", peer).groups())
    for op in TABLE
    for peer in TABLE[op]["peers"]
]


def listed(file):
    """Names of functions in the list that the docstring of a file ends in, family by family."""
    text = importlib.import_module(f"tools.{file}").__doc__
    families = re.findall(r"^- (\w+: (?:.|\n(?! *\n|- ))*)", text, re.MULTILINE)
    return re.findall(r"`(\w+)`", " ".join(families))


@cache
def shipped():
    """Op name -> spec of every shipped op."""
    found = {}
    for path in sorted((ROOT / "generated").glob("*/*/bench.py")):
        for op in re.findall(r"^    op=\"(\w+)\",$", path.read_text(encoding="utf-8"), re.MULTILINE):
            found[op] = path.parent.relative_to(ROOT / "generated").as_posix()
    return found


@cache
def drivers_of(spec):
    return {op.name: driver for op, driver in drivers(ROOT / "specs" / f"{spec}.op")}


def parameters(spec, op):
    """What the driver of an op passes, in order, and what it passes by name."""
    text = (ROOT / "generated" / spec / "bench.py").read_text(encoding="utf-8")
    part = next(p for p in text.split("bench.Driver(")[1:] if f'op="{op}"' in p)
    placed = re.findall(r"bench\.(?:Tensor|Scalar)Input\(\s*\"(\w+)\"", part)
    named = re.findall(r"keywords=lambda d: {(.*)}", part)
    return [*placed, *re.findall(r"\"(\w+)\": ", named[0] if named else "")]


@pytest.mark.parametrize("file", FILES)
def test_a_file_lists_its_peers_and_the_table_has_them(file):
    named = listed(file)
    assert len(named) == len(set(named))
    told = {name for _, f, name in PEERS if f == file}
    assert told <= set(named)
    assert {n for n in named if not n.endswith("_tuned")} - told <= set(LEFT_OUT)


@pytest.mark.parametrize("op, file, name", [*PEERS, ("w8a16", "peers", "int8pack_mm")])
def test_a_peer_takes_what_the_driver_of_its_op_passes(op, file, name):
    module = importlib.import_module(f"tools.{file}")
    function = getattr(module, name)
    taken = preparing(function) or function
    assert list(inspect.signature(taken).parameters) == parameters(shipped()[op], op)
    assert inspect.getdoc(function)
    assert inspect.getdoc(taken)
    assert module.__distribution__


@pytest.mark.parametrize("spec", SHAPES)
def test_a_peer_of_torch_computes_what_its_op_says(spec):
    for op, file, name in PEERS:
        if file not in ("peers", "peers_aten") or shipped()[op] != spec or op not in drivers_of(spec):
            continue
        if op == "layernorm_stats":  # the CPU's statistics have the type of its input, a GPU's f32
            continue
        driver = drivers_of(spec)[op]
        dtypes = {name: allowed[0] for name, allowed in driver.dtypes.items()}
        case = Case(workload="w", weight=None, dims=SHAPES[spec], dtypes=dtypes)
        inputs = make_set(driver, case, seed=1, device="cpu")
        (row,) = prepare_peers(
            driver,
            case,
            [inputs],
            reference_of(driver, inputs),
            driver.tolerance(case.dims, dtypes) if driver.tolerance else Tolerance(),
            peers=[named_peer(f"{ROOT}/tools/{file}.py:{name}")],
            synchronize=lambda: None,
            progress=lambda _: None,
        )
        assert row.status == "ready", (name, row.reason)
        assert row.version.startswith("torch ")
