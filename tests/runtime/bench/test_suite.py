"""Many drivers in one run: what is measured once, what fails alone, and what is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from opspec.runtime.bench import suite, worker
from opspec.runtime.bench.model import UsageError
from opspec.runtime.bench.packages import find_packages, load_drivers
from opspec.runtime.bench.result import SCHEMA_FILE
from tests.runtime.bench.fakes import DEVICE, FakeCard, FakeDevice, NoCard, package

SCHEMA = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
ROOT = Path(__file__).resolve().parents[3]
TIMES = {"ours": [50e-6, 50.1e-6], "stream": [45e-6], "warm ours": [51e-6], "": [60e-6]}


@pytest.fixture
def device():
    DEVICE.append(FakeDevice(TIMES))
    yield DEVICE[-1]
    DEVICE.clear()


def run(folder, card, *argv, results="results", starts=None):
    """(status, documents by file) of a run over the packages below a folder."""
    path = folder.parent / results
    options = suite.build_parser().parse_args([str(folder), "--json", str(path), *argv])
    packages = dict.fromkeys(find_packages(options.packages))
    started = starts or (lambda command: worker.main(command[-1:], card=card))
    status = suite.measure(packages, options, start=started)
    found = {p.name: json.loads(p.read_text(encoding="utf-8")) for p in sorted(path.glob("*"))}
    for document in found.values():
        jsonschema.validate(document, SCHEMA)
    return status, found


def test_each_package_has_the_kernel_that_lies_beside_it(tmp_path):
    sys.modules["kernel"] = mine = object()
    try:
        functions = [load_drivers(package(tmp_path, name))[0].function for name in ("a", "b")]
        assert [f.__globals__["NAME"] for f in functions] == ["a", "b"]
        assert [Path(f.__code__.co_filename).parent.name for f in functions] == ["a", "b"]
        assert sys.modules["kernel"] is mine
    finally:
        del sys.modules["kernel"]


def test_the_device_is_opened_and_its_roofs_measured_once(tmp_path, device, capsys):
    for name in ("a", "b", "c"):
        package(tmp_path / "g", name, changes="contraction='X'" if name == "c" else "")
    card = FakeCard(device)
    status, found = run(tmp_path / "g", card)
    assert status == 0
    assert list(found) == ["a.json", "b.json", "c.json"]
    assert len(card.asked) == 1
    assert set(card.asked[0]) == {"bf16", "f16", "f8e4m3", "tf32", "f32", "i8"}
    assert len({d["run"]["id"] for d in found.values()}) == 1
    assert len({d["roofs"]["measured_at"] for d in found.values()}) == 1
    ages = [d["roofs"]["age_s"] for d in found.values()]
    assert ages == sorted(ages)
    assert [d["status"] for d in found.values()] == ["measured"] * 3
    out, err = capsys.readouterr()
    assert (
        " ".join(out.splitlines()[0].split()) == "op workload µs of the roof fastest peer µs ours is verdict"
    )
    assert out.splitlines()[2].split()[:5] == ["a", "small", "50.1", "89.8%", "copy"]
    assert "[3/3] c: done, 2 shapes" in err


def test_ops_and_workloads_can_be_chosen(tmp_path, device):
    package(tmp_path / "g", "a", more="driver(op='b', function=kernel.function),")
    package(tmp_path / "g", "c")
    status, found = run(tmp_path / "g", FakeCard(device), "--op", "b", "--op", "c", "--at", "wide")
    assert status == 0
    assert {name: [r["workload"] for r in d["results"]] for name, d in found.items()} == {
        "b.json": ["wide"],
        "c.json": ["wide"],
    }


def test_ops_of_one_name_get_files_of_their_own(tmp_path, device):
    package(tmp_path / "g", "a", op="same")
    package(tmp_path / "g", "b", op="same")
    _, found = run(tmp_path / "g", FakeCard(device), "--at", "small")
    assert list(found) == ["specs.map.a.same.json", "specs.map.b.same.json"]


@pytest.mark.parametrize(
    ("body", "state"),
    [
        ("x = x * 2", "incorrect"),
        ("raise MemoryError('out of memory')", "error"),
        ("raise RuntimeError('illegal address')", "error"),
    ],
)
def test_an_op_that_fails_does_so_alone(tmp_path, device, capsys, body, state):
    package(tmp_path / "g", "a", body=body)
    package(tmp_path / "g", "b")
    status, found = run(tmp_path / "g", FakeCard(device), "--at", "small")
    assert status == 1
    assert {name: d["status"] for name, d in found.items()} == {"a.json": "failed", "b.json": "measured"}
    assert found["a.json"]["results"][0]["measured"]["status"] == state
    out, err = capsys.readouterr()
    assert state.upper() in out
    assert f"! a small: {state}, " in out
    assert "[1/2] a: FAILED" in err


def test_a_package_that_cannot_be_imported_is_said_and_the_others_run(tmp_path, device, capsys):
    package(tmp_path / "g", "a").joinpath("kernel.py").write_text("import no_such_library\n")
    package(tmp_path / "g", "b")
    status, found = run(tmp_path / "g", FakeCard(device), "--at", "small")
    assert status == 1
    assert list(found) == ["b.json"]
    assert "! a: the package can't be loaded: ModuleNotFoundError: No module named 'no_such_library'" in (
        capsys.readouterr().out
    )


def test_after_a_lost_device_another_process_goes_on(tmp_path, device):
    for name in ("a", "b", "c"):
        package(tmp_path / "g", name)
    cards = [FakeCard(device, lost_after=2), FakeCard(device)]
    used = []

    def start(command):
        used.append(cards[len(used)])
        return worker.main(command[-1:], card=used[-1])

    status, found = run(tmp_path / "g", None, "--at", "small", starts=start)
    assert status == 0
    assert list(found) == ["a.json", "b.json", "c.json"]
    assert [card.opened for card in cards] == [2, 1]
    assert len({d["run"]["id"] for d in found.values()}) == 1


def test_a_process_that_dies_loses_one_op(tmp_path, device, capsys):
    for name in ("a", "b"):
        package(tmp_path / "g", name)
    deaths = []

    class Deadly(FakeCard):
        def __call__(self, driver, options, progress):
            if driver.op == "a" and not deaths:
                deaths.append(1)
                raise SystemExit  # as if by a signal: nothing of the worker runs any more
            return super().__call__(driver, options, progress)

    def start(command):
        try:
            return worker.main(command[-1:], card=Deadly(device))
        except SystemExit:
            return -11

    status, found = run(tmp_path / "g", None, "--at", "small", starts=start)
    assert status == 1
    assert list(found) == ["b.json"]
    assert "! a: its process ended by SIGSEGV" in capsys.readouterr().out


def test_of_an_op_whose_process_dies_the_shapes_before_are_kept(tmp_path, device):
    package(tmp_path / "g", "a", body="if x.shape[0] == 8: raise SystemExit")

    def start(command):
        try:
            return worker.main(command[-1:], card=FakeCard(device))
        except SystemExit:
            return -9

    status, found = run(tmp_path / "g", None, starts=start)
    assert status == 1
    small, wide = found["a.json"]["results"]
    assert found["a.json"]["status"] == "failed"
    assert small["measured"]["status"] == "ok"
    assert wide["measured"]["reason"] == "its process ended by SIGKILL"


def test_an_interrupt_keeps_what_was_measured_and_leaves_older_results_alone(tmp_path, device):
    for name in ("a", "b", "c"):
        package(tmp_path / "g", name)
    status, before = run(tmp_path / "g", FakeCard(device), "--at", "small")
    device.interrupt_after = device.batches + 9
    status, after = run(tmp_path / "g", FakeCard(device), "--at", "small")
    assert status == 130
    changed = [name for name in before if before[name]["run"]["id"] != after[name]["run"]["id"]]
    assert changed in (["a.json"], ["a.json", "b.json"])
    assert after["c.json"] == before["c.json"]


def test_a_run_goes_on_where_an_earlier_one_ended(tmp_path, device, capsys):
    for name in ("a", "b"):
        package(tmp_path / "g", name, changes=f"kernel_hash='{name}'")
    _, before = run(tmp_path / "g", FakeCard(device), "--op", "a")
    status, after = run(tmp_path / "g", FakeCard(device), "--resume")
    assert (status, after["a.json"], after["b.json"]["status"]) == (0, before["a.json"], "measured")
    capsys.readouterr()
    status, found = run(tmp_path / "g", FakeCard(device), "--resume")
    assert (status, found) == (0, after)
    assert "every op is measured already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "argv"),
    [
        ("kernel_hash='other'", []),
        ("workloads={'more': driver().workloads['wide']}", []),
        ("", ["--peer", "vendor.py:fast"]),
    ],
)
def test_another_kernel_shape_or_peer_is_measured_again(tmp_path, device, monkeypatch, changes, argv):
    tmp_path.joinpath("vendor.py").write_text("def fast(x, eps): return x * 2 + eps\n")
    monkeypatch.chdir(tmp_path)
    package(tmp_path / "g", "a")
    _, before = run(tmp_path / "g", FakeCard(device))
    package(tmp_path / "h", "a", changes=changes)
    status, after = run(tmp_path / "h", FakeCard(device), "--resume", *argv)
    assert status == 0
    assert after["a.json"]["run"]["id"] != before["a.json"]["run"]["id"]


def test_what_ends_an_op_between_its_shapes_leaves_those_before(tmp_path, device, capsys):
    package(tmp_path / "g", "a")
    package(tmp_path / "g", "b")

    class Breaking(FakeCard):
        def __call__(self, driver, options, progress):
            made, gpu = super().__call__(driver, options, progress)
            if driver.op == "a":
                made.release = lambda: 1 / 0
            return made, gpu

    status, found = run(tmp_path / "g", Breaking(device))
    assert status == 1
    assert {name: d["status"] for name, d in found.items()} == {"a.json": "failed", "b.json": "measured"}
    assert found["a.json"]["results"][0]["measured"]["status"] == "ok"
    assert "! a: the run ended: ZeroDivisionError" in capsys.readouterr().out


def test_peers_by_op_from_the_command_line_and_from_a_file(tmp_path, device, monkeypatch):
    package(tmp_path / "g", "a", more="driver(op='b', function=kernel.function),")
    tmp_path.joinpath("vendor.py").write_text(
        "def fast(x, eps): return x * 2 + eps\n\n\nslow = both = fast\n"
    )
    tmp_path.joinpath("peers.toml").write_text(
        '[a]\npeers = ["vendor.py:slow"]\nat = ["wide"]\n[elsewhere]\npeers = ["none:such"]\n'
    )
    monkeypatch.chdir(tmp_path)
    argv = ("--peer", "b=vendor.py:fast", "--peer", "vendor.py:both", "--peers-from", "peers.toml")
    status, found = run(tmp_path / "g", FakeCard(device), *argv)
    names = {
        name: [row["name"] for row in d["results"][0]["measured"]["candidates"] if row["role"] == "peer"]
        for name, d in found.items()
    }
    assert status == 0
    assert names == {
        "a.json": ["vendor.py:slow", "vendor.py:both"],
        "b.json": ["vendor.py:fast", "vendor.py:both"],
    }
    assert [r["workload"] for r in found["a.json"]["results"]] == ["wide"]
    assert [r["workload"] for r in found["b.json"]["results"]] == ["small", "wide"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--op", "soft"], "no op `soft`; there are: a"),
        (["--at", "huge"], "no workload `huge`; there are: small, wide"),
        (["--peer", "b=m:f"], "there is no op `b`"),
        (["--peer", "no.such.module:f"], "ModuleNotFoundError"),
        (["--peers-from", "none.toml"], "No such file"),
        (["--peers-from", "bad.toml"], "`[a]` may hold peers and at, not `peer`"),
        (["--machine", "h20"], "no machine `h20`"),
    ],
)
def test_bad_usage_is_said_before_anything_is_measured(tmp_path, device, capsys, monkeypatch, argv, said):
    package(tmp_path / "g", "a")
    tmp_path.joinpath("bad.toml").write_text('[a]\npeer = ["m:f"]\n')
    monkeypatch.chdir(tmp_path)
    status, found = run(tmp_path / "g", FakeCard(device), *argv)
    assert (status, found, device.batches) == (2, {}, 0)
    assert said in capsys.readouterr().err


def test_a_folder_without_packages_is_bad_usage(tmp_path, capsys):
    with pytest.raises(UsageError, match="holds no generated package"):
        find_packages([tmp_path])
    assert suite.main([str(tmp_path)]) == 2
    assert "holds no generated package" in capsys.readouterr().err


def test_a_worker_that_comes_to_nothing_is_not_started_again(tmp_path, device):
    package(tmp_path / "g", "a")
    starts = []
    status, found = run(tmp_path / "g", None, starts=lambda command: starts.append(1) or 1)
    assert (status, found, len(starts)) == (1, {}, 1)


def test_without_a_gpu_the_closed_forms_stand_alone(tmp_path, capsys):
    package(tmp_path / "g", "a")
    status, found = run(tmp_path / "g", NoCard(), "--machine", "h200")
    assert (status, found["a.json"]["status"]) == (0, "not measured")
    assert capsys.readouterr().out.count("nothing was measured") == 1


def test_as_a_command_of_its_own(tmp_path):
    package(tmp_path / "g", "a")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "opspec.runtime.bench", "g", "--json", "out"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out/a.json").read_text())["status"] == "not measured"
