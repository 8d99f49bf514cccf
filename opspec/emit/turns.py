"""Two steps of a stream at once: their operands are unpacked together, then multiplied one after the other.

A product whose rows are unpacked in registers waits for its result before the next step can scale and add it. With two
steps in one the unpacking of the second hides what the first waits for. The lines of a step are repeated with names of
their own for all that depends on its place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LINE = re.compile(r"\s*([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*) = (.*)", re.DOTALL)
NEXT = "next"


def in_turns(steps: Sequence[Sequence[str]], first: str, kept: frozenset[str]) -> tuple[str, ...]:
    """The lines of several statements, each followed by those for the step behind it, which begins at
    ``first`` with ``NEXT`` in its name; ``kept``: what all steps add to."""
    own = {first: f"{first}_{NEXT}"}
    out: list[str] = []
    for lines in steps:
        again = []
        for line in lines:
            found = LINE.match(line)
            if found is None or not _words(found[2]) & set(own):
                continue
            names = [n for n in found[1].split(", ") if n not in kept]
            own |= {n: f"{n}_{NEXT}" for n in names}
            again.append(_renamed(line, own))
        out += [*lines, *again]
    return tuple(out)


def _words(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text))


def _renamed(line: str, own: dict[str, str]) -> str:
    """A line with other names, but for attributes and keywords of a call."""
    return re.sub(r"(?<![\w.])([A-Za-z_]\w*)\b(?!=[^=])", lambda found: own.get(found[1], found[1]), line)


__all__ = ["NEXT", "in_turns"]
