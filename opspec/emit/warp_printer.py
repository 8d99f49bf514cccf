"""What kernels whose warps have roles are printed with: functions for each role, and names of the form's own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import ClassVar

from opspec.emit.names import shorten
from opspec.emit.signature import RoleText
from opspec.emit.triton import Printer, words_of

OWN = re.compile(r"@(\w+)")
COUNTED = re.compile(r"(\s*for )(\w+)( in .*)")


class RolePrinter(Printer):
    """A kernel of several functions; ``BARRIERS``: what its roles wait for, in pairs of filled and free."""

    BARRIERS: ClassVar[tuple[str, ...]] = ("filled", "free")

    functions: list[RoleText]
    own: dict[str, str]

    def word(self, name: str) -> str:
        """A name of the form's own, which nothing of the op has."""
        if name not in self.own:
            self.own[name] = self.fresh(name)
        return self.own[name]

    def held_tiles(self, tensor: str) -> str:
        """The slots of a tensor's tiles in shared memory."""
        return self.word(f"{tensor.replace('.', '_')}_tiles")

    def parameters(self, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What a function takes of what its text names."""
        words = words_of(text)
        every = [*(self.held_tiles(t) for t in self.tiles), *(self.word(b) for b in self.BARRIERS)]
        made = f"{self.word(self.BARRIERS[0])}, {self.word(self.BARRIERS[1])} = "
        handed = [] if made in text else [n for n in every if n in words]
        constexprs = (
            self.word("WHO"),
            *dict.fromkeys((*self.blocks.values(), *self.edges)),
            "GROUP",
            "STAGES",
            "INDEX",
        )
        taken = [c for c in self.candidates() if c in words]
        return (*handed, *taken), tuple(c for c in constexprs if c in words)

    def function(self, role: str, doc: str, body: Callable[[], None]) -> RoleText:
        """One of the functions that the kernel is made of."""
        self.lines, self.level, self.scopes, self.masks = [], 1, [{}], 0
        body()
        self.drop_unused()
        self.drop_counters()
        params, constexprs = self.parameters("\n".join(self.lines))
        name = shorten(f"{self.name.removesuffix('_warp_specialised')}_{role}")
        own = RoleText(name=name, doc=doc, params=params, constexprs=constexprs, lines=tuple(self.lines))
        self.functions.append(own)
        return own

    def drop_counters(self) -> None:
        """Leave loops that only count without a name."""
        words = Counter(w for line in self.lines for w in re.findall(r"[A-Za-z_]\w*", line))
        for k, line in enumerate(self.lines):
            counted = COUNTED.match(line)
            if counted and words[counted[2]] == 1:
                self.lines[k] = f"{counted[1]}_{counted[3]}"

    def put(self, text: str) -> None:
        """Add a line; what has an ``@`` before it gets a name that nothing of the op has."""
        own = text if text.startswith("#") else OWN.sub(lambda m: self.word(m[1]), text)
        super().put(own)
