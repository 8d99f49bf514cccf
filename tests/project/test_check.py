"""The one check command passes on a sound tree and fails on each kind of fault."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.check import STEPS

ROOT = Path(__file__).resolve().parents[2]
LAYERS = (
    "cli",
    "driver",
    "emit",
    "schedule",
    "formatting",
    "analysis",
    "reference",
    "frontend",
    "ir",
    "diagnostics",
    "runtime",
)
PASSING_CLI = '''"""A stand-in for the command line."""

import sys


def main() -> int:
    """Accept exactly the commands that the check runs."""
    build, fmt = ["build", "specs/", "--check"], ["fmt", "specs/", "opspec/prelude/", "--check"]
    return {"build": 0, "fmt": 0}[sys.argv[1]] if sys.argv[1:] in (build, fmt) else 2
'''

# step -> (file, text that this step must refuse)
FAULTS = {
    "format": ("opspec/planted.py", '"""Planted."""\nx   =  1\n'),
    "lint": ("opspec/planted.py", '"""Planted."""\n\nimport os\n'),
    "types": ("opspec/planted.py", '"""Planted."""\n\nx: int = "text"\n'),
    "imports": ("opspec/runtime/planted.py", '"""Planted."""\n\nfrom opspec import ir\n\n__all__ = ["ir"]\n'),
    "tests": ("tests/test_planted.py", "def test_planted():\n    assert 1 == 2\n"),
    "specs": ("opspec/cli/__init__.py", PASSING_CLI.replace('"fmt": 0', '"fmt": 1')),
    "generated": ("opspec/cli/__init__.py", PASSING_CLI.replace('"build": 0', '"build": 1')),
}


@pytest.fixture
def tree(tmp_path):
    """A small sound project, in a path with a blank, under this project's own configuration."""
    root = tmp_path / "a tree"
    root.mkdir()
    shutil.copy(ROOT / "pyproject.toml", root)
    for package in ("opspec", "tools", *(f"opspec/{layer}" for layer in LAYERS)):
        write(root / package / "__init__.py", f'"""The {package.rpartition("/")[2]} of a small project."""\n')
    write(root / "opspec/source.py", '"""The source of a small project."""\n')
    write(root / "opspec/cli/__init__.py", PASSING_CLI)
    write(root / "tests/test_sound.py", "def test_sound():\n    assert True\n")
    return root


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def check(root, step):
    command = [sys.executable, "-m", "tools.check", "--root", str(root), "--only", step]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("step", [step.name for step in STEPS])
def test_each_step_passes_on_a_sound_tree_and_fails_on_its_fault(tree, step):
    status, output = check(tree, step)
    assert status == 0, output
    path, text = FAULTS[step]
    write(tree / path, text)
    status, output = check(tree, step)
    assert status == 1, output
    assert f"FAIL  {step}" in output


def test_every_step_has_a_planted_fault():
    assert set(FAULTS) == {step.name for step in STEPS}
