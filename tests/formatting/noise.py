"""The same spec with other white space, and with comments anywhere."""

import random
from pathlib import Path

from opspec.frontend.grammar import parser

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "specs").rglob("*.op"))
SPECS = [
    *SHIPPED,
    *sorted((ROOT / "tests" / "emit" / "corpus").glob("*.op")),
    *sorted((ROOT / "tests" / "frontend" / "accepted").glob("*.op")),
    ROOT / "opspec" / "prelude" / "prelude.op",
]


def noisy(text: str, rng: random.Random, rate: float) -> str:
    """White space and comments put between tokens, some where they end a statement too early."""
    out: list[str] = []
    end = 0
    for token in parser().lex(text):
        if token.type == "NEWLINE":
            continue
        gap = text[end : token.start_pos]
        roll = rng.random() / rate
        if roll < 0.3:
            gap += " " * rng.randint(1, 4)
        elif roll < 0.5:
            gap += "\n" + " " * rng.randint(0, 6)
        elif roll < 0.6:
            gap += f"  # c{rng.randint(0, 99)}\n"
        elif roll < 0.7:
            gap += f"\n\n# d{rng.randint(0, 99)}\n\n   "
        elif roll < 0.8 and "#" not in gap:
            gap = gap.replace("\n", "; ")
        elif roll < 1:
            gap = gap.replace("\n\n", "\n")
        out += [gap, str(token)]
        end = token.end_pos or 0
    return "".join(out) + text[end:]
