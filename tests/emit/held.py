"""Which operands of matrix products wait in registers while a loop has other products, read from Triton's GPU dialect.

The assembler of CUDA 12.8 gives such registers away, so that a kernel is wrong from the loop's second step on.
"""

from __future__ import annotations

import re

VALUES = re.compile(r"\s*((?:%\w+(?:, )?)+)(?::\d+)? = ")
PRODUCT = re.compile(r"ttng\.warp_group_dot (%\w+)[\w#]*, .*? : (tensor|!ttg\.memdesc)<")
CARRIED = re.compile(r"(%\w+) = ")


def held_operands(text: str) -> list[str]:
    """Names of left operands in registers that no step of their loop computes, where it has other products."""
    found: list[str] = []
    made: dict[str, int] = {}  # how many loops are open where a value is made
    open_: list[list[tuple[str, bool]] | None] = []  # of each region its products, None: no loop
    for line in text.splitlines():
        depth = sum(o is not None for o in open_)
        if named := VALUES.match(line):
            made |= dict.fromkeys(named[1].split(", "), depth)
        if "scf.for" in line or "scf.while" in line:
            open_.append([])
            made |= dict.fromkeys(CARRIED.findall(line.partition("iter_args")[2]), depth + 1)
            continue
        if product := PRODUCT.search(line):
            loop = next((o for o in reversed(open_) if o is not None), None)
            if loop is not None:
                loop.append((product[1], product[2] == "tensor" and made.get(product[1], 0) < depth))
        if re.match(r"\s*\}", line) and open_:
            loop = open_.pop()
            if loop is not None and len(loop) > 1:
                found += [name for name, held in loop if held]
        if re.search(r"\{\s*(loc\(.*\))?\s*$", line) and not line.lstrip().startswith("tt.func"):
            open_.append(None)
    return found
