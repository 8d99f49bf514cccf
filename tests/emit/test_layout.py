"""Line breaking changes no meaning, and generated files pass the formatter as they are."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from opspec.diagnostics import Failure
from opspec.driver.targets import limits
from opspec.emit import kernel_file
from opspec.emit.layout import fold, split_top
from opspec.emit.package import build_package, prepare
from opspec.frontend import load

HERE = Path(__file__).parent
SPECS = [*sorted((HERE / "corpus").glob("*.op")), *sorted((HERE.parents[1] / "specs").rglob("*.op"))]


@lru_cache(maxsize=256)
def files(path: Path) -> dict[str, str] | None:
    try:
        return build_package(load(path), path.name, limits()).files
    except Failure:
        return None


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_folding_changes_no_meaning(path: Path, monkeypatch):
    module = load(path)
    try:
        prepared = prepare(module)
    except Failure:
        pytest.skip("refused")
    folded = build_package(module, path.name, limits(), prepared=prepared).files
    monkeypatch.setattr(kernel_file, "fold", lambda line, width=110: [line])
    plain = build_package(module, path.name, limits(), prepared=prepared).files
    before, after = (ast.dump(ast.parse(f["kernel.py"])) for f in (plain, folded))
    assert before == after


def test_generated_files_pass_the_formatter(tmp_path):
    tool = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if tool is None:
        pytest.skip("ruff is not installed")
    for path in SPECS:
        names = ("kernel.py",) if path.parent == HERE / "corpus" else ("kernel.py", "bench.py")
        for name in names:
            found = files(path)
            if found is not None:
                (tmp_path / f"{path.stem}_{name}").write_text(found[name], encoding="utf-8")
    check = subprocess.run(
        [tool, "format", "--check", "--isolated", "--line-length", "110", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert check.returncode == 0, check.stdout[-3000:]


def test_generated_text_is_the_same_every_time():
    for path in SPECS[::7]:
        found = files(path)
        if found is not None:
            assert build_package(load(path), path.name, limits()).files == found


def test_the_order_of_sets_does_not_show():
    code = (
        "import sys, hashlib; from pathlib import Path; from opspec.frontend import load; from opspec.driver.targets import limits;"
        "from opspec.emit.package import build_package\n"
        "for n in sys.argv[1:]:\n"
        "    f = build_package(load(Path(n)), 'spec.op', limits()).files\n"
        "    print(hashlib.sha256(''.join(f.values()).encode()).hexdigest())\n"
    )
    chosen = [
        str(HERE / "corpus" / f"{n}.op")
        for n in ("attention", "group_norm", "three_kernels", "names_more", "kl")
    ]
    seen = {
        subprocess.run(
            [sys.executable, "-c", code, *chosen], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(HERE.parents[1])},
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(seen) == 1


LONG = "x" * 30
LINES = [
    f"    y = tl.where(({LONG} < A) & ({LONG} < B), {LONG} * {LONG} + {LONG}, 0.0)",
    f"    mask = ({LONG} < A) & ({LONG}[:, None] < B) & ({LONG}[None, :] < C) & ({LONG} < D)",
    f"    at = {LONG}_ptr + {LONG}[:, None] * {LONG} + {LONG}[None, :] * {LONG}",
    f"    return f({LONG}, {LONG}, {LONG}, {LONG})",
    f"    y = ({LONG} + {LONG} * {LONG}) * ({LONG} - {LONG}) / {LONG}",
    f'    launch.require({LONG} % 4 == 0, "{LONG}, ({LONG}", {LONG}={LONG})',
    f"    y = -{LONG} - {LONG} - ({LONG} - {LONG}) - {LONG}",
    f"    y = a[{LONG}, {LONG}, {LONG}, {LONG}, {LONG}[1, 2]]",
    f"    y = f({LONG}, {LONG}, {LONG}, {LONG}) / z",
    f"    if {LONG} <= A and {LONG} <= B and launch.chosen({LONG}, {LONG}):",
]


@pytest.mark.parametrize("line", LINES)
def test_a_long_line(line: str):
    broken = fold(line)
    assert len(broken) > 1
    body = "\n        pass" if line.endswith(":") else ""
    before, after = (ast.dump(ast.parse(f"def f():\n{t}{body}")) for t in (line, "\n".join(broken)))
    assert before == after


def test_short_lines_and_comments_stay():
    assert fold("    y = x") == ["    y = x"]
    assert fold("    # " + LONG * 6) == ["    # " + LONG * 6]


def test_commas_in_brackets_and_quotes_do_not_split():
    assert split_top('a, f(b, c), "d, e", [g, h]') == ["a", "f(b, c)", '"d, e"', "[g, h]"]
