"""The files of the front end import each other in one direction."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "opspec" / "frontend"


def imported(path: Path) -> set[str]:
    """Modules of the front end that a file imports, at its top or later."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("opspec.frontend"):
            inner = node.module.removeprefix("opspec.frontend").lstrip(".").replace(".", "/")
            for name in node.names:
                file = PACKAGE / inner / f"{name.name}.py"
                found.add(str(file if file.is_file() else (PACKAGE / inner).with_suffix(".py")))
    return found


def test_there_is_no_circle():
    graph = {str(p): imported(p) for p in PACKAGE.rglob("*.py")}
    order = list(TopologicalSorter(graph).static_order())
    assert order.index(str(PACKAGE / "lowering.py")) > order.index(str(PACKAGE / "calls.py"))
