"""``opspec bench`` of folders and several specs, up to the process that measures."""

import json

import pytest

from tests.cli.conftest import ROOT, SCALE, shell

TWO = SCALE + SCALE.replace("op scale", "op twice").replace("small", "other").replace(
    "for scale", "for twice"
)


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "lib" / "inner"
    folder.mkdir(parents=True)
    (folder / "scale.op").write_text(TWO)
    (folder.parent / "shift.op").write_text(SCALE.replace("scale", "shift"))
    (folder.parent / "common.op").write_text("fn half(x) = x / 2\n")
    return folder.parent


@pytest.fixture
def measured(monkeypatch):
    """What is handed to the run: packages by name with their ops, and which files they hold."""
    from opspec.runtime.bench import suite

    seen = {}

    def measure(packages, options):
        seen["options"] = options
        seen["packages"] = [(path.name, ops) for path, ops in packages.items()]
        seen["files"] = [sorted(p.name for p in path.iterdir()) for path in packages]
        return 0

    monkeypatch.setattr(suite, "measure", measure)
    return seen


def test_a_folder_without_a_gpu(library, tmp_path):
    ran = shell(
        "bench", "lib", "--machine", "h200", "--json", "out", cwd=tmp_path, CUDA_VISIBLE_DEVICES=""
    )  # fmt: skip
    assert ran.status == 0, ran.err
    assert "nothing was measured" in ran.out
    found = {p.name: json.loads(p.read_text()) for p in (tmp_path / "out").iterdir()}
    assert sorted(found) == ["scale.json", "shift.json", "twice.json"]
    assert found["twice.json"]["spec"] == "lib/inner/scale.op"
    assert found["twice.json"]["results"][0]["roofline"]["floor_s"] == pytest.approx(8000 / 4.8e12)
    assert len({d["run"]["id"] for d in found.values()}) == 1


def test_targets_are_folders_specs_and_ops_each_once(library, opspec, measured):
    scale, shift = str(library / "inner/scale.op"), str(library / "shift.op")
    assert opspec("bench", str(library)).status == 0
    assert measured["packages"] == [("scale", ["scale", "twice"]), ("shift", ["shift"])]
    assert opspec("bench", f"{scale}:twice", shift).status == 0
    assert measured["packages"] == [("scale", ["twice"]), ("shift", ["shift"])]
    assert opspec("bench", str(library), scale, "--op", "twice").status == 0
    assert measured["packages"] == [("scale", ["twice"])]


def test_a_folder_for_results_makes_a_run_of_one_spec(library, opspec, measured):
    shift = str(library / "shift.op")
    assert opspec("bench", shift, "--json", "out/").status == 0
    assert opspec("bench", shift, "--json", str(library)).status == 0
    assert measured["packages"] == [("shift", ["shift"])]


def test_what_was_tuned_lies_beside_the_kernels(library, opspec, measured, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tuned/lib/shift/tuned.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert opspec("bench", "lib", "--tuned", "tuned").status == 0
    assert measured["files"] == [["bench.py", "kernel.py"], ["bench.py", "kernel.py", "tuned.json"]]


def test_a_spec_that_cannot_be_generated_is_said_and_the_others_run(library, opspec, measured):
    (library / "bad.op").write_text("op scale[M](x: f32[M]) -> {\n")
    ran = opspec("bench", str(library))
    assert ran.status == 2
    assert "error[OP" in ran.err
    assert "bad.op" in ran.err
    assert [name for name, _ in measured["packages"]] == ["scale", "shift"]


def test_results_of_several_specs_need_a_folder(library, opspec, tmp_path):
    (tmp_path / "out.json").write_text("{}")
    ran = opspec("bench", str(library), "--json", str(tmp_path / "out.json"))
    assert ran.status == 2
    assert "out.json` can't be a folder: File exists" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("--op", "scal"), "OP626"), (("--at", "smal"), "OP722"), (("--machine", "h20"), "OP711")],
)
def test_wrong_input(library, opspec, measured, arguments, code):
    ran = opspec("bench", str(library), *arguments)
    assert ran.status == 2
    assert f"error[{code}]" in ran.err
    assert not measured


def test_the_peers_of_the_shipped_specs_are_of_ops_that_there_are():
    from opspec.frontend import load
    from opspec.runtime.bench.named import peers_of, read_peers

    told = read_peers(ROOT / "tools/peers.toml")
    ops = {op.name for path in (ROOT / "specs").rglob("*.op") for op in load(path).ops}
    assert set(told) <= ops
    for op, table in told.items():
        assert [p.name for p in peers_of(op, table["peers"])] == table["peers"]
