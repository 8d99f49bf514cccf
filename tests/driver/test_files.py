"""Files are written whole, built once, and built again when anything that they depend on has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from opspec.diagnostics import Failure
from opspec.driver import build as building
from opspec.driver.build import build
from opspec.driver.files import find_specs, write_atomically

HELPER = "fn f(x, y) = x {sign} y\n"
SPEC = (
    'import "helper.op"\nop g[N](x: f32[N], y: f32[N]) -> z: f32[N] { kernel k { z[n] = f(x[n], y[n]) } }\n'
)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "helper.op").write_text(HELPER.format(sign="*"), encoding="utf-8")
    (tmp_path / "specs" / "g.op").write_text(SPEC, encoding="utf-8")
    return tmp_path


def run(**options):
    return build(["specs/g.op"], Path("generated"), **options).built[0]


def kernel(project: Path) -> str:
    return (project / "generated" / "g" / "kernel.py").read_text(encoding="utf-8")


def test_a_second_build_changes_nothing(project):
    assert set(run().changed) == {"kernel.py", "bench.py", "cost.json"}
    again = run()
    assert not again.changed
    assert again.cached


def test_an_edit_of_an_imported_file_reaches_the_kernel(project):
    run()
    assert "x * y" in kernel(project)
    (project / "specs" / "helper.op").write_text(HELPER.format(sign="+"), encoding="utf-8")
    assert "kernel.py" in run().changed
    assert "x + y" in kernel(project)


def test_a_new_version_builds_again(project, monkeypatch):
    run()
    monkeypatch.setattr(building, "VERSION", "999.0.0")
    assert not run().cached


def test_an_edited_output_is_restored(project):
    run()
    right = kernel(project)
    (project / "generated" / "g" / "kernel.py").write_text("spoilt", encoding="utf-8")
    assert run().changed == ("kernel.py",)
    assert kernel(project) == right


def test_check_writes_nothing(project):
    found = run(check=True)
    assert found.changed
    assert not (project / "generated").exists()


def test_a_broken_cache_is_no_cache(project):
    run()
    (project / ".cache" / "opspec-build.json").write_text("[1", encoding="utf-8")
    assert not run().changed


def test_a_fault_in_one_spec_leaves_all_others(project):
    (project / "specs" / "bad.op").write_text(
        "op b[N](x: f32[N]) -> y: f32[N] { kernel k { y[n] = q[n] } }\n"
    )
    with pytest.raises(Failure):
        build(["specs"], Path("generated"))
    assert not (project / "generated").exists()


def test_a_file_is_replaced_whole(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "f.txt"
    write_atomically(path, "old\n")
    assert path.read_bytes() == b"old\n"

    def stop(self, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "new\n")
    assert path.read_bytes() == b"old\n"
    assert [p.name for p in path.parent.iterdir()] == ["f.txt"]


def test_a_folder_in_the_way_is_said(tmp_path):
    (tmp_path / "f.txt").mkdir()
    with pytest.raises(Failure) as caught:
        write_atomically(tmp_path / "f.txt", "x")
    assert caught.value.diagnostics[0].code.code == "OP622"
    assert [p.name for p in tmp_path.iterdir()] == ["f.txt"]


def test_specs_are_found_once_and_in_order(project):
    assert [s.shown for s in find_specs(["specs", "specs/g.op"])] == ["specs/g.op", "specs/helper.op"]
    with pytest.raises(Failure):
        find_specs(["nowhere"])
