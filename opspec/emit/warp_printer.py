"""What kernels whose warps have roles are printed with: functions for each role, and names of the form's own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import ClassVar

from opspec.emit.describe import Tile
from opspec.emit.names import shorten
from opspec.emit.narrow import Narrow
from opspec.emit.signature import RoleText, descriptor
from opspec.emit.triton import Printer, words_of
from opspec.ir.integers import Int
from opspec.schedule.tile import TileProgram, Write

OWN = re.compile(r"@(\w+)")
ROWS = 64  # of a group of four warps, at once
COUNTED = re.compile(r"(\s*for )(\w+)( in .*)")


class RolePrinter(Printer):
    """A kernel of several functions; ``BARRIERS``: what its roles wait for, in pairs of filled and free."""

    BARRIERS: ClassVar[tuple[str, ...]] = ("filled", "free")

    def __init__(self, program: TileProgram, name: str, tiles: Mapping[str, Tile], halves: Narrow) -> None:
        super().__init__(program, name, tiles, halves)
        self.functions: list[RoleText] = []
        self.own: dict[str, str] = {}
        self.narrow_names: dict[str, str] = {}  # of single indices, where others have the width of addresses

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

    def start(self, multiply: RoleText, load: RoleText) -> None:
        """Two groups that multiply and the warp that loads; registers a thread of the second and the third: the first
        has as many as the second."""
        calls = []
        for role, who in ((multiply, "0"), (multiply, "1"), (load, None)):
            given = [who if p == self.word("WHO") and who else p for p in (*role.params, *role.constexprs)]
            calls.append(f"({role.name}, ({', '.join(given)}))")
        self.put(f"gl.warp_specialize([{', '.join(calls)}], [4, 1], [240, 24])")

    def slot_of(self, tensor: str, slot: str) -> tuple[str, tuple[str, ...]]:
        """A tile in its slot, without single indices, and its dimensions."""
        tile = self.tiles[tensor]
        text = f"{self.held_tiles(tensor)}.index({slot})"
        kept = tuple(a for a in tile if a is not None)
        if len(kept) < len(tile):
            text += f".reshape([{', '.join(self.blocks[a] for a in kept)}])"
        return text, kept

    def corner(self, tensor: str, at: tuple[Int, ...]) -> str:
        """As everywhere, of numbers of 32 bits."""
        known = dict(self.names)
        self.names |= self.narrow_names
        text = super().corner(tensor, at)
        self.names |= known
        return text

    def put_result(self, s: Write) -> None:
        """A store of a group's 64 rows through their descriptor."""
        value, dtype = self.x.value(s.value, s.axes), self.tensor(s.tensor).dtype
        if (same := self.x.held(s.value, s.axes, dtype)) is not None:
            value = same
        place = f"{self.held_tiles(s.tensor)}.index(@WHO)"
        columns = self.tiles[s.tensor][-1]
        if len(self.tiles[s.tensor]) > 2 and columns is not None:
            place += f".reshape([{ROWS}, {self.blocks[columns]}])"
        where = f"{descriptor(s.tensor)}, {self.corner(s.tensor, s.at)}"
        self.put(f"warps.put_tile({where}, {value[0]}, {place})")

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
