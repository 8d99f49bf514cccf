"""What `opspec explain` answers about the specs of tests/cli/explained, op by op.

``python -m tests.cli.explaining`` writes the snapshots anew; read the diff.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from unittest import mock

HERE = Path(__file__).with_name("explained")
OPS = {
    "products": ("plain", "biased", "apart"),
    "rows": ("norm", "weights", "scaled"),
    "queries": ("many", "one", "paged", "prefix", "stored"),
}


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    was = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(was)


def explained(folder: Path, spec: str, op: str) -> str:
    """The explanation without what the installed Triton makes of it, so that it is the same everywhere."""
    from opspec.cli import main

    shutil.copytree(HERE / "specs", folder / "specs", dirs_exist_ok=True)
    out = io.StringIO()
    with inside(folder), redirect_stdout(out), mock.patch("opspec.driver.stages.can_compile", lambda: False):
        assert main(["explain", f"specs/{spec}.op:{op}"]) == 0
    return out.getvalue().replace(str(folder), "")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        for spec, ops in OPS.items():
            for op in ops:
                (HERE / f"{op}.txt").write_text(explained(Path(name), spec, op), encoding="utf-8")
