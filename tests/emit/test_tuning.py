"""What is worth trying; and tuning with a clock made of a script, see ``tuning_cases``."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from checking import interpreter

from opspec.cli import main
from opspec.driver.targets import limits
from opspec.emit.package import build_package
from opspec.emit.tuning import candidates, variant_of
from opspec.frontend import load
from opspec.schedule.resources import Limits

ROOT = Path(__file__).parents[2]
NAMES = re.findall(
    r"^@case\ndef (\w+)",
    (Path(__file__).parent / "tuning_cases.py").read_text(encoding="utf-8"),
    re.MULTILINE,
)
MATMUL = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP": 8, "num_warps": 8, "num_stages": 3}


@pytest.mark.parametrize("name", NAMES)
def test_tuning(name: str):
    answer = interpreter().ask({"exact": name, "module": "tuning_cases"})
    assert answer == {"right": True}, answer.get("broken")


def launch(spec: str):
    module = load(ROOT / "specs" / spec)
    package = build_package(module, spec, limits())
    return package.launches[module.ops[0].name, ""][0]


def test_what_a_target_cannot_hold_is_never_tried():
    one = launch("gemm/matmul.op")
    extents = {"m": 8192, "n": 8192, "k": 8192}
    variant = one.texts[0].name
    large = candidates(one, variant, MATMUL, extents, 16, limits())
    small = candidates(one, variant, MATMUL, extents, 16, Limits(shared_memory=101376))

    def bytes_of(c):
        o = {**MATMUL, **c.changes}
        return o["num_stages"] * (o["BLOCK_M"] + o["BLOCK_N"]) * o["BLOCK_K"] * 2

    assert max(map(bytes_of, large[1:])) > 101376 >= max(map(bytes_of, small[1:]))
    assert all(min({**MATMUL, **c.changes}[f"BLOCK_{x}"] for x in "MNK") >= 16 for c in large)


def test_tiles_of_warps_with_roles_are_tried_and_what_has_none_beside_them():
    one = launch("gemm/matmul.op")
    name = one.texts[0].warps.name
    assert variant_of(one, name) == name
    options = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP": 16, "STAGES": 3, "num_warps": 4}
    found = candidates(one, name, options, {"m": 8192, "n": 8192, "k": 8192}, 16, limits())
    assert found[0].changes == {}
    tried = [{**options, **c.changes} for c in found]
    assert {(o["BLOCK_M"], o["BLOCK_N"]) for o in tried} == {(128, 256), (256, 128), (128, 128)}
    assert {o["GROUP"] for o in tried} == {4, 8, 16, 32}
    assert all(o["num_warps"] == 4 for o in tried)


def test_the_untuned_choice_comes_first_and_the_rest_by_rank():
    one = launch("reduce/softmax.op")
    options = {"BLOCK_M": 1, "BLOCK_N": 4096, "num_warps": 8, "num_stages": 1}
    found = candidates(one, one.texts[0].name, options, {"m": 8192, "n": 4096}, 16, limits())
    assert found[0].changes == {}
    assert found[0].words == "untuned"
    ranks = [c.expected for c in found[1:]]
    assert ranks == sorted(ranks)
    assert len({tuple(sorted(c.changes.items())) for c in found}) == len(found) > 5


def test_a_block_that_holds_a_whole_axis_stays():
    one = launch("reduce/softmax.op")
    options = {"BLOCK_M": 1, "BLOCK_N": 4096, "num_warps": 8, "num_stages": 1}
    found = candidates(one, one.texts[0].name, options, {"m": 8192, "n": 4096}, 16, limits())
    assert all("BLOCK_N" not in c.changes for c in found)


def test_what_is_unrolled_does_not_grow():
    one = launch("scan/decayed_scan.op")
    options = {"BLOCK_T": 4, "BLOCK_C": 64, "ROWS_T": 32, "num_warps": 2, "num_stages": 1}
    name = next(t.name for t in one.texts if "ROWS_T" in t.blocks.values())
    found = candidates(one, name, options, {"b": 8, "t": 4096, "c": 2048}, 16, limits())
    rows = {c.changes.get("ROWS_T", 32) for c in found}
    assert max(rows) == 32
    assert min(rows) < 32


def test_without_a_gpu_tuning_says_so(capsys, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["tune", str(ROOT / "specs/reduce/softmax.op")]) == 2
    assert "OP624" in capsys.readouterr().err


def test_several_specs_without_a_gpu_say_so_once(capsys, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert (
        main(["tune", str(ROOT / "specs/reduce"), str(ROOT / "specs/map/gelu_bias.op"), "--jobs", "2"]) == 2
    )
    assert capsys.readouterr().err.count("OP624") == 1


def test_processes_that_find_no_gpu_leave_compiling_to_the_tuning(monkeypatch):
    from opspec.driver.tune_ahead import Task, compile_all

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    path = str(ROOT / "specs/reduce/softmax.op")
    tasks = [
        Task(path=path, op=op, workload="rows_4k", device="x", count=2, own=limits())
        for op in ("softmax", "none")
    ]
    launched, seconds = compile_all(tasks, 1)
    assert launched == 0
    assert seconds > 0.0


def test_many_kernels_are_summed_up():
    from opspec.cli.tune import summary
    from opspec.driver.tune import Outcome

    def outcome(kernel, untuned, tuned):
        case = SimpleNamespace(workload="w")
        return Outcome(op="o", kernel=kernel, case=case, device="d", bucket="", untuned=untuned, tuned=tuned)

    made = [outcome("a", 1.21, 1.0), outcome("b", 1.0, 1.0), outcome("none launched", 0.0, 0.0)]
    assert list(summary(made)) == [
        "untuned against tuned, 2 kernels: +10.0% (geometric mean), at most +21.0% (a, w)"
    ]
    assert list(summary(made[1:])) == []


def test_a_workload_that_is_none_is_refused(capsys):
    assert main(["tune", str(ROOT / "specs/reduce/softmax.op"), "--at", "rows_4"]) == 2
    assert "rows_4k" in capsys.readouterr().err


def test_a_benchmark_of_tuned_options_needs_their_file(capsys, tmp_path):
    missing = str(tmp_path / "tuned.json")
    assert main(["bench", str(ROOT / "specs/reduce/softmax.op"), "--tuned", missing]) == 2
    assert missing in capsys.readouterr().err


def test_a_benchmark_takes_tuned_options_and_peers_along(monkeypatch, tmp_path):
    from opspec.runtime.bench import suite

    ran = []

    def wait(command):
        folder = Path(command[1]).parent
        ran.append((sorted(p.name for p in folder.iterdir()), (folder / "tuned.json").read_text(), command))
        return 0

    monkeypatch.setattr(suite, "start_worker", wait)
    (tmp_path / "tuned.json").write_text("{}")
    spec = str(ROOT / "specs/reduce/softmax.op")
    assert main(["bench", spec, "--tuned", str(tmp_path / "tuned.json"), "--peer", "a.b:c"]) == 0
    ((files, text, command),) = ran
    assert files == ["bench.py", "kernel.py", "tuned.json"]
    assert text == "{}"
    assert "--peer=a.b:c" in command
