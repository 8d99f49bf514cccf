import os
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, SCALE, shell, snapshot


@pytest.fixture
def built(tmp_path, spec, opspec, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert opspec("build", "scale.op", "--target", "none").status == 0
    return snapshot(tmp_path / "generated")


def test_the_three_files(built):
    assert set(built) == {"scale/kernel.py", "scale/bench.py", "scale/cost.json"}


def test_a_debug_build_lies_apart_and_checks_what_data_says(opspec, tmp_path, built):
    text = "op f[M, N](x: f32[N], at: i32[M]) -> y: f32[M] { kernel k { y[m] = x[at[m]] } }\n"
    (tmp_path / "gather.op").write_text(text)
    assert opspec("build", "gather.op", "scale.op", "--debug", "--target", "none").status == 0
    assert opspec("build", "gather.op", "--target", "none").status == 0
    found = snapshot(tmp_path / "debug")
    assert set(found) == {
        f"{s}/{f}" for s in ("gather", "scale") for f in ("kernel.py", "bench.py", "cost.json")
    }
    assert b"checked.inside(" in found["gather/kernel.py"]
    assert b"opspec build --debug gather.op" in found["gather/kernel.py"]
    assert b"checked" not in found["scale/kernel.py"].replace(b"on checked arguments", b"")
    now = snapshot(tmp_path / "generated")
    assert b"checked." not in now["gather/kernel.py"]
    assert {k: v for k, v in now.items() if k.startswith("scale")} == built


def test_check_writes_nothing_and_says_no_when_the_spec_has_changed(opspec, tmp_path, spec, built):
    assert opspec("build", "scale.op", "--check").status == 0
    spec.write_text(SCALE.replace("a * x[m]", "a * x[m] + 1"))
    ran = opspec("build", "scale.op", "--check")
    assert ran.status == 1
    assert "kernel.py" in ran.out
    assert snapshot(tmp_path / "generated") == built


def test_a_broken_spec_leaves_the_previous_output_of_all(opspec, tmp_path, spec, built):
    spec.write_text(SCALE.replace("2.0", "3.0"))
    (tmp_path / "zz.op").write_text(SCALE.replace("x[m]", "z[m]"))
    ran = opspec("build", ".", "--target", "none")
    assert ran.status == 2
    assert "error[OP201]" in ran.err
    assert snapshot(tmp_path / "generated") == built


def test_an_interrupt_leaves_whole_files_and_no_leftovers(opspec, tmp_path, spec, built, monkeypatch):
    spec.write_text(SCALE.replace("2.0", "3.0"))
    replace, count = Path.replace, iter(range(9))

    def interrupted(self, target):
        if next(count) == 1:
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    ran = opspec("build", "scale.op", "--target", "none")
    monkeypatch.undo()
    assert ran.status == 130
    found = snapshot(tmp_path / "generated")
    assert set(found) == set(built)
    changed = {k for k in found if found[k] != built[k]}
    assert len(changed) == 1
    os.chdir(tmp_path)
    assert opspec("build", "scale.op", "--target", "none").status == 0
    again = snapshot(tmp_path / "generated")
    assert all(found[k] == again[k] for k in changed)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_an_unwritable_folder_is_said(opspec, tmp_path, spec):
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(stat.S_IRUSR | stat.S_IXUSR)
    ran = opspec("build", str(spec), "--out", str(closed), "--target", "none")
    assert ran.status == 2
    assert "error[OP622]" in ran.err


def test_a_file_where_the_folder_should_be_is_said(opspec, tmp_path, spec):
    (tmp_path / "taken").write_text("mine")
    ran = opspec("build", str(spec), "--out", str(tmp_path / "taken"), "--target", "none")
    assert ran.status == 2
    assert "error[OP622]" in ran.err
    assert (tmp_path / "taken").read_text() == "mine"


def test_paths_with_spaces(opspec, tmp_path, monkeypatch):
    folder = tmp_path / "my ops" / "attn v2"
    folder.mkdir(parents=True)
    (folder / "my scale.op").write_text(SCALE)
    monkeypatch.setenv("OPSPEC_CACHE", str(tmp_path / "a cache"))
    monkeypatch.chdir(folder)
    assert opspec("build", "my scale.op", "--target", "none").status == 0
    assert (folder / "generated/my scale/kernel.py").exists()
    assert opspec("query", "my scale.op:scale", "bytes", "--at", "small").out.startswith("8000 B")
    monkeypatch.chdir(tmp_path)
    assert opspec("check", str(folder / "my scale.op")).status == 0


def test_a_colon_in_a_file_name(opspec, tmp_path):
    path = tmp_path / "a:b.op"
    path.write_text(SCALE)
    assert opspec("query", str(path), "bytes", "--at", "small").status == 0
    assert opspec("query", f"{path}:scale", "bytes", "--at", "small").status == 0


HOSTILE = """op lambda[N, S, E, I, beta, pi](num_warps: f32[N, S], tl: f32[E], grid: f32[I], mask: f32[beta], pid: f32[pi])
  -> exec: f32[N, S, E, I, beta, pi] {
  kernel import_os {
    exec[class, None, e, i, b, p] = num_warps[class, None] * tl[e] * grid[i] * mask[b] * pid[p]
  }
}
"""


def test_names_that_mean_something_elsewhere_change_no_number(opspec, tmp_path):
    path = tmp_path / "hostile.op"
    path.write_text(HOSTILE)
    sizes = "N=2,S=3,E=4,I=5,beta=6,pi=7"
    ran = opspec("query", str(path), "flops", "--set", sizes)
    assert ran.status == 0, ran.err
    points = [2 * 3 * 4, 2 * 3 * 4 * 5, 2 * 3 * 4 * 5 * 6, 2 * 3 * 4 * 5 * 6 * 7]
    assert ran.out.startswith(str(sum(points)))
    ran = opspec("build", str(path), "--out", str(tmp_path / "out"), "--target", "none")
    assert ran.status == 0, ran.err
    compile((tmp_path / "out/hostile/kernel.py").read_text(), "kernel.py", "exec")


def test_no_traceback_without_arguments():
    ran = shell(cwd=ROOT)
    assert ran.status == 2
    assert "COMMAND" in ran.out
    assert ran.err == ""
