"""The review step of action.yml, run as the runner would, and the pre-commit hooks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = """op scale[M](x: f32[M]) -> y: f32[M] { kernel k { y[m] = 2 * x[m] } }
workload w for scale { M = 1000 }
expect w { bytes == 8000 }
"""
pytestmark = pytest.mark.skipif(
    shutil.which("bash") is None or shutil.which("git") is None, reason="no bash or git"
)


def git(folder: Path, *arguments: str) -> str:
    me = ("-c", "user.name=Someone", "-c", "user.email=someone@example.com")
    return subprocess.run(
        ["git", *me, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def clone(tmp_path) -> Path:
    """A shallow clone of a repository whose last commit breaks a budget; `main~1` is tagged `before`."""
    origin = tmp_path / "origin"
    (origin / "my specs").mkdir(parents=True)
    git(origin, "init", "--quiet", "--initial-branch=main")
    (origin / "my specs/a.op").write_text(SPEC)
    git(origin, "add", "--all")
    git(origin, "commit", "--quiet", "--message=one")
    git(origin, "tag", "before")
    (origin / "my specs/a.op").write_text(SPEC.replace("x: f32", "x: bf16"))
    git(origin, "commit", "--quiet", "--all", "--message=two")
    git(tmp_path, "clone", "--quiet", "--depth=1", "--no-tags", origin.as_uri(), "clone")
    return tmp_path / "clone"


def step(clone: Path, **environment: str):
    runner = clone.parent
    names = {
        "RUNNER_TEMP": str(runner),
        "GITHUB_OUTPUT": str(runner / "output"),
        "GITHUB_STEP_SUMMARY": str(runner / "summary"),
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", str(ROOT / ".github/review.sh")], cwd=clone, capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **names, "PATHS": "", "POLICY": "budget", **environment},
    )  # fmt: skip
    outputs = dict(line.split("=", 1) for line in (runner / "output").read_text().splitlines())
    return done, outputs, (runner / "summary").read_text()


def test_a_shallow_checkout_fetches_the_base(clone):
    done, outputs, summary = step(clone, BASE="before")
    assert (done.returncode, outputs["status"]) == (1, "1"), done.stderr
    assert "1 op changed, 1 budget broken" in summary
    assert Path(outputs["report"]).read_text() == summary


def test_paths_and_policy(clone):
    done, _, summary = step(clone, BASE="before", POLICY="never", PATHS="my specs/a.op\n")
    assert done.returncode == 0, done.stderr
    assert "(1 spec looked at)" in summary


def test_inputs_are_values_and_no_commands(clone):
    done, outputs, _ = step(clone, BASE="$(touch bad); `touch bad`", PATHS="$(touch bad)\n--help")
    assert (done.returncode, outputs["status"]) == (2, "2")
    assert not (clone / "bad").exists()


def test_a_base_that_is_nowhere_is_said(clone):
    done, outputs, summary = step(clone, BASE="0" * 40)
    assert (done.returncode, outputs["status"]) == (2, "2")
    assert "OP672" in done.stderr
    assert summary == "**opspec**: no review, see the log of the step\n"


def test_the_files_say_what_is_there():
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    scripts = " ".join(s.get("run", "") for s in action["runs"]["steps"])
    assert "${{" not in scripts
    for path in re.findall(r"\$GITHUB_ACTION_PATH/([\w./-]+)", scripts):
        assert (ROOT / path).is_file()
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    from opspec.cli.parser import build_parser

    for hook in hooks:
        program, *words = hook["entry"].split()
        assert program == "opspec"
        assert build_parser().parse_args([*words, "a.op"]).paths == ["a.op"]
