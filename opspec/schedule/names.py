"""Readable, unique identifiers for block variables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

DULL = {"before", "sum", "max", "min", "prod", "any", "all", "arg", "x", "store"}


@dataclass
class Names:
    """Readable, unique identifiers for block variables. ``taken`` holds everything else in the kernel."""

    taken: set[str]
    given: dict[str, str] = field(default_factory=dict)

    def of(self, node: str) -> str:
        """The identifier of a node: the last telling part of its name."""
        if node not in self.given:
            parts = [p for p in node.split(".") if not p.isdigit()]
            last = parts[-1]
            base = parts[0] if last == "load" else "_".join(parts) if last in DULL else last
            if base in self.taken and last != "load" and len(parts) > 1:
                base = "_".join(parts[-2:])
            self.given[node] = self.fresh(base)
        return self.given[node]

    def fresh(self, base: str) -> str:
        """An unused identifier that starts with ``base``."""
        base = re.sub(r"\W", "_", base)
        name, k = base, 2
        while name in self.taken:
            name, k = f"{base}_{k}", k + 1
        self.taken.add(name)
        return name
