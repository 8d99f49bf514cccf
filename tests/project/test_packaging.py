"""What the wheel ships, and what an environment for development is made of."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def shipped(folder, prefix):
    files = (
        path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    return {f"{prefix}/{path.relative_to(ROOT / folder).as_posix()}" for path in files}


def test_the_wheel_ships_grammar_templates_prelude_machines_and_schema(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert shipped("grammar", "opspec/grammar") <= names
    assert shipped("templates", "opspec/templates") <= names
    assert shipped("opspec", "opspec") <= names
    assert not {name for name in names if name.startswith(("tests/", "tools/", "specs/"))}


def test_plain_installation_brings_no_gpu_stack():
    names = {requirement.split(">")[0].split("=")[0] for requirement in PROJECT["dependencies"]}
    assert names == {"lark", "sympy", "jinja2"}


def test_development_pins_torch_and_names_triton():
    dev = PROJECT["optional-dependencies"]["dev"]
    assert any(requirement.startswith("torch==") for requirement in dev)
    assert "triton>=3.6" in dev


def test_ci_runs_the_one_check_command_in_a_fresh_environment():
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "-m venv" in script
    assert "-m tools.check" in script
    assert os.access(ROOT / ".ci/run", os.X_OK)
