"""``opspec diff`` in repositories made for the purpose."""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

SCALE = """op scale[M](x: f32[M], a: f32 = 2.0) -> y: f32[M] {
  kernel k {
    y[m] = a * x[m]
  }
}

workload small for scale { M = 1000 }

expect small {
  bytes == 8000
}
"""
HALF = SCALE.replace("x: f32[M]", "x: bf16[M]")
LIBRARY = "fn twice(x) = x + x\n"
USER = 'import "../lib/library.op"\n' + SCALE.replace("a * x[m]", "twice(x[m])").replace("scale", "double")


class Work:
    """A work tree with a first commit."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        me = ("-c", "user.name=Someone", "-c", "user.email=someone@example.com", "-c", "core.autocrlf=false")
        done = subprocess.run(
            ["git", *me, *arguments], cwd=self.root, check=True, capture_output=True,
            env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull},
        )  # fmt: skip
        return done.stdout.decode()

    def write(self, path: str, text: str | bytes) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=state")
        return self.git("rev-parse", "HEAD").strip()


@pytest.fixture
def work(tmp_path, monkeypatch) -> Work:
    found = Work(tmp_path / "my repo")
    found.write("specs/scale.op", SCALE)
    found.write("specs/double.op", USER)
    found.write("lib/library.op", LIBRARY)
    found.commit()
    monkeypatch.chdir(found.root)
    return found


def record(opspec, *arguments: str) -> dict:
    return json.loads(opspec("diff", "--format", "json", *arguments).out)


def test_nothing_changed(work, opspec):
    ran = opspec("diff", "HEAD")
    assert ran.status == 0
    assert ran.out == "opspec: no change of cost (3 specs looked at), HEAD → working tree\n"


def test_an_uncommitted_change(work, opspec):
    work.write("specs/scale.op", HALF)
    ran = opspec("diff", "HEAD", "--format", "markdown")
    assert ran.status == 1
    assert "1 op changed, 1 budget broken" in ran.out
    assert "| `bytes` | `8 * M` | `6 * M` |" in ran.out
    assert opspec("diff", "HEAD", "--policy", "never").status == 0


def test_between_two_commits_with_the_tree_elsewhere(work, opspec):
    work.write("specs/scale.op", HALF.replace("8000", "6000"))
    work.commit()
    work.write("specs/scale.op", "not a spec")
    assert opspec("diff", "HEAD~1", "HEAD").status == 0
    assert opspec("diff", "HEAD~1", "HEAD", "--policy", "change").status == 1
    (spec,) = record(opspec, "HEAD~1", "HEAD")["specs"]
    assert spec["path"] == "specs/scale.op"
    assert {b["standing"] for b in spec["budgets"]} == {"added", "removed"}
    assert (work.root / "specs/scale.op").read_text() == "not a spec"


def test_imports_resolve_inside_the_revision(work, opspec):
    work.write("lib/library.op", "fn twice(x) = exp(x) + exp(x + 1)\n")
    work.commit()
    work.write("lib/library.op", LIBRARY)
    (spec,) = (s for s in record(opspec, "HEAD~1", "HEAD")["specs"] if s["ops"])
    assert (spec["path"], spec["ops"][0]["op"], spec["ops"][0]["kind"]) == (
        "specs/double.op",
        "double",
        "changed",
    )
    assert record(opspec, "HEAD~1")["specs"] == []


def test_new_untracked_specs_count_and_ignored_ones_do_not(work, opspec):
    work.write(".gitignore", "scratch/\n")
    work.write("scratch/a.op", SCALE)
    work.write("specs/b.op", SCALE.replace("scale", "other").replace("small", "little"))
    assert "1 op added (4 specs looked at)" in opspec("diff", "HEAD").out


def test_removed_and_moved_specs(work, opspec):
    work.git("mv", "specs/scale.op", "specs/moved.op")
    ran = opspec("diff", "HEAD")
    assert ran.status == 0
    assert "specs/moved.op (was specs/scale.op)" in ran.out
    assert "added" not in ran.out
    (work.root / "specs/moved.op").unlink()
    assert "1 op removed" in opspec("diff", "HEAD").out


def test_a_moved_spec_that_changed(work, opspec):
    (work.root / "specs/scale.op").unlink()
    work.write("specs/moved.op", HALF)
    (spec,) = record(opspec, "HEAD")["specs"]
    assert (spec["moved_from"], spec["ops"][0]["kind"]) == ("specs/scale.op", "changed")


@pytest.mark.parametrize(
    "variant", [SCALE.replace("\n", "\r\n"), "\ufeff" + SCALE, SCALE.replace("\n", "\r\n", 4)]
)
def test_line_ends_and_marks_are_no_change(work, opspec, variant: str):
    work.write("specs/scale.op", variant)
    assert opspec("diff", "HEAD").out.startswith("opspec: no change of cost")
    assert record(opspec, "HEAD")["specs"] == []
    work.commit()
    assert record(opspec, "HEAD~1", "HEAD")["specs"] == []


def test_code_that_changes_at_equal_cost(work, opspec):
    work.write("specs/scale.op", SCALE.replace("a * x[m]", "x[m] * a").replace("[m]", "[n]"))
    ran = opspec("diff", "HEAD")
    assert ran.status == 0
    assert "scale: other code at equal cost" in ran.out
    work.write("specs/scale.op", "# a comment\n" + SCALE)
    assert "no change of cost" in opspec("diff", "HEAD").out


def test_a_broken_spec_is_shown_and_fails(work, opspec):
    work.write("specs/scale.op", SCALE.replace("x[m]", "z[m]"))
    ran = opspec("diff", "HEAD", "--format", "markdown")
    assert ran.status == 2
    assert "1 spec broken" in ran.out
    assert "`specs/scale.op:3:" in ran.out
    assert "--> specs/scale.op:3:" in ran.err
    work.commit()
    work.write("specs/scale.op", SCALE)
    ran = opspec("diff", "HEAD")
    assert ran.status == 0
    assert "was broken before and is accepted now" in ran.out


def test_paths_choose(work, opspec):
    work.write("specs/scale.op", HALF)
    assert opspec("diff", "HEAD", "--", "lib").status == 0
    assert opspec("diff", "HEAD", "--", "specs/scale.op").status == 1
    assert opspec("diff", "HEAD", "HEAD", "--", "specs", "lib").status == 0
    assert "(2 specs looked at)" in opspec("diff", "HEAD", "--", "specs").out


def test_from_a_folder_below(work, opspec, monkeypatch):
    work.write("specs/scale.op", HALF)
    monkeypatch.chdir(work.root / "specs")
    assert opspec("diff", "HEAD", "--", "scale.op").status == 1
    assert opspec("diff", "HEAD", "--", "../lib").status == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nowhere",), "OP672", "no revision `nowhere`"),
        (("main..HEAD",), "OP672", "as two words"),
        (("HEAD", "--", "nothing"), "OP621", "`nothing` names no spec"),
        (("HEAD", "--", "../.."), "OP621", "not inside the work tree"),
        (("HEAD", "--", "a\0b"), "OP621", "names no spec"),
        (("HEAD", "HEAD", "HEAD"), "OP674", "a third revision"),
        (("HEAD", "--machine", "h9000"), "OP711", "no machine `h9000`"),
        (("",), "OP672", "no revision"),
        (("--upload-pack=x",), None, ""),
    ],
)
def test_bad_input(work, opspec, arguments, code, said):
    if code is None:
        with pytest.raises(SystemExit) as ended:
            opspec("diff", *arguments)
        assert ended.value.code == 2
        return
    ran = opspec("diff", *arguments)
    assert ran.status == 2
    assert f"error[{code}]" in ran.err
    assert said in ran.err


def test_without_a_repository(tmp_path, opspec, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    ran = opspec("diff", "HEAD")
    assert ran.status == 2
    assert "error[OP671]" in ran.err


def test_a_shallow_clone(work, opspec, tmp_path, monkeypatch):
    first = work.git("rev-parse", "HEAD").strip()
    work.write("specs/scale.op", HALF)
    work.commit()
    subprocess.run(
        ["git", "clone", "--quiet", "--depth=1", f"file://{work.root}", str(tmp_path / "shallow")], check=True
    )
    monkeypatch.chdir(tmp_path / "shallow")
    ran = opspec("diff", first)
    assert ran.status == 2
    assert f"git fetch --depth=1 origin {first}" in ran.err
    assert "git fetch --deepen=20" in opspec("diff", "HEAD~1").err
    subprocess.run(["git", "fetch", "--quiet", "--depth=1", "origin", first], check=True)
    out = opspec("diff", first).out
    assert "1 op changed" in out
    assert f"{first[:12]} → working tree" in out


def test_names_that_git_quotes_and_links(work, opspec):
    work.write('specs/ä "b" `c`.op', SCALE.replace("scale", "odd").replace("small", "tiny"))
    (work.root / "specs/link.op").symlink_to("scale.op")
    work.commit()
    assert "no change of cost (4 specs looked at)" in opspec("diff", "HEAD").out
    assert "1 op added" in opspec("diff", "HEAD~1", "HEAD", "--format", "markdown").out


def test_imports_through_links_and_links_that_lead_out(work, opspec):
    (work.root / "lib/other.op").symlink_to("library.op")
    (work.root / "lib/out.op").symlink_to("/etc/hostname")
    work.write("specs/double.op", USER.replace("library.op", "other.op"))
    work.commit()
    assert "no change of cost" in opspec("diff", "HEAD").out
    work.write("lib/library.op", "fn twice(x) = exp(x) + exp(x + 1)\n")
    (spec,) = (s for s in record(opspec, "HEAD")["specs"] if s["ops"])
    assert (spec["path"], spec["ops"][0]["kind"]) == ("specs/double.op", "changed")
    work.commit()
    assert [s["path"] for s in record(opspec, "HEAD~1", "HEAD")["specs"] if s["ops"]] == ["specs/double.op"]


def test_bytes_that_are_no_text(work, opspec):
    work.write("specs/scale.op", b"\xff\xfe op")
    ran = opspec("diff", "HEAD")
    assert ran.status == 2
    assert "not UTF-8" in ran.err


def test_many_specs_go_to_several_processes(work, opspec):
    for k in range(14):
        work.write(f"specs/s{k}.op", SCALE.replace("scale", f"op{k}").replace("small", f"w{k}"))
    work.commit()
    for k in range(14):
        work.write(f"specs/s{k}.op", HALF.replace("scale", f"op{k}").replace("small", f"w{k}"))
    found = record(opspec, "HEAD")
    assert [s["path"] for s in found["specs"]] == sorted(f"specs/s{k}.op" for k in range(14))
    assert all(s["ops"][0]["kind"] == "changed" for s in found["specs"])


@pytest.mark.parametrize("fault", [RecursionError("too deep"), BrokenProcessPool("ended")])
def test_what_the_other_process_can_not_hand_over_is_read_here(work, opspec, monkeypatch, fault):
    class Reading(Future):
        def result(self, timeout=None):
            raise fault

    work.write("specs/scale.op", HALF)
    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor.submit", lambda *_: Reading())
    assert "1 op changed" in opspec("diff", "HEAD").out


def test_one_processor_is_enough(work, opspec, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    work.write("specs/scale.op", HALF)
    assert "1 op changed" in opspec("diff", "HEAD").out


def test_the_fast_way_imports_nothing_heavy(work):
    code = (
        "import sys; from opspec.cli import main; main(['diff', 'HEAD']);"
        "assert not {'sympy', 'lark', 'torch', 'triton'} & set(sys.modules), sys.modules.keys()"
    )
    import sys

    root = Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=work.root, env={**os.environ, "PYTHONPATH": str(root)}
    )
