"""Commands run in this process, or in one of their own from another folder."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str


@pytest.fixture
def opspec(capsys) -> Callable[..., Ran]:
    from opspec.cli import main

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        status = main(list(arguments))
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


def python(*arguments: str, cwd: Path, **environment: str) -> Ran:
    """This Python in a process of its own, which finds the compiler."""
    path = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=cwd, env=path, capture_output=True, text=True, check=False, encoding="utf-8"
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def shell(*arguments: str, cwd: Path, **environment: str) -> Ran:
    """``python -m opspec`` in a process of its own."""
    return python("-m", "opspec", *arguments, cwd=cwd, **environment)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "scale.op"
    path.write_text(SCALE)
    return path


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }
