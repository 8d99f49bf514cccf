"""Templates, which only arrange what was made for them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from opspec.resources import folder

if TYPE_CHECKING:
    from jinja2 import Environment


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folder("templates")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - the output is Python, and every text in it was made safe for it
    )


def render(template: str, model: object) -> str:
    """The text of a template (``kernel.py.j2``) for a print-ready model, ``m`` in it."""
    return _environment().get_template(template).render(m=model)
