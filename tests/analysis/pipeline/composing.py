"""Help for tests of pipelines: texts and shipped specs to reports."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from opspec.analysis.pipeline import Report, Sources, analyse, find_pipeline
from opspec.frontend import load, load_text

SPECS = Path(__file__).parents[3] / "specs"


def report(text: str, name: str = "", **more) -> Report:
    module = load_text(text, "spec.op")
    variant = more.pop("variant", None)
    return analyse(
        module, find_pipeline(module, name), Sources(module=module, folder=Path.cwd(), **more), variant
    )


@lru_cache(maxsize=4)
def shipped(path: str) -> Report:
    module = load(SPECS / path)
    return analyse(module, find_pipeline(module), Sources(module=module, folder=SPECS))
