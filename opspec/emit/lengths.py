"""Rows of any length in few binaries: tiles that hold them whole, and a stream beyond these, in one kernel.

A kernel that holds a row takes its tile as a constant, so that each power of two is a binary of its own. Here
tiles, each with as many rows as fill a program, and the stream stand beside each other in one kernel, and a
program finds its own by the length: a length that varies from call to call compiles nothing anew. Registers are
those of the neediest branch, so short rows, long ones and such of odd length each have their own constants.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from opspec.emit.choice import Sizes
from opspec.emit.host import host_int
from opspec.emit.layout import fold
from opspec.emit.signature import KernelText, stride
from opspec.ir.integers import Int
from opspec.ir.program import Op
from opspec.schedule.axis_order import fast_axes
from opspec.schedule.directions import prefixes
from opspec.schedule.packed import packed_axes
from opspec.schedule.plan import Plan

SHORT = 4096  # elements of the longest rows that four warps hold
FEW = 4
HELD_STEPS = 4  # of a stream beside a tile, so that it takes no more registers
MANY = 8
CONSTANTS = ("FIRST", "LAST", "TOGETHER")
PLAIN = re.compile(r"[\w\s+*/%-]+")  # an extent that reads the same on the host and in a kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Warps, steps of a chunk and stages of a kernel that only streams."""

    warps: int
    steps: int
    stages: str
    registers: int | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """Tiles of ``2**first`` elements up to, and without, ``2**last``, with so many rows that a program has
    ``together``; with ``steps`` also a stream of longer rows. ``test``: the lengths that it is for (None: all).
    ``odd``: they are those of odd length; ``full``: a row that fills its tile has a branch without masks;
    ``registers``: the most of a thread."""

    test: str | None
    first: int
    last: int
    together: int
    warps: int
    steps: int
    odd: bool = False
    full: bool = False
    registers: int | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Rows along an axis of ``extent``, whose tile is ``tile`` where it is held whole and ``block`` where it streams;
    ``rows`` and ``rows_beyond``: the block of rows, where there is one.

    ``own``: tiles that are binaries of their own for rows whose length ``aligned`` divides, because a workload states
    such a length; ``exact``: lengths for which one is that fill it, and need no mask. ``admits``: what must hold beside;
    ``each``: of so many powers of two one has a tile; ``counts``: constants of the tiles' kernel.

    ``step``: that of a stream in steps and ``chunk`` lanes a warp of ``near`` neighbours, ``fewest`` where
    elements are loaded one by one (two that share a byte); ``wide``: a stream of rows of odd length begins where a wide
    load can, and leaves tiles to another binary, which takes more registers. The kernel of the first of ``classes``,
    for such rows, is not specialised for any length.
    """

    extent: str
    tile: str
    block: str
    rows: str | None
    rows_beyond: str | None
    step: str | None
    near: str | None
    fewest: int
    chunk: int
    least: int
    stages: str
    streamed: str
    aligned: int
    own: tuple[int, ...]
    exact: tuple[int, ...]
    classes: tuple[Class, ...]
    admits: str = ""
    each: int = 1
    counts: tuple[tuple[str, str], ...] = ()
    wide: bool = False

    @property
    def full(self) -> bool:
        """Whether a constant says of a class that rows may fill its tiles."""
        return any(c.full for c in self.classes)

    @property
    def test(self) -> str:
        """The lengths that are not those of a tile of their own; empty where there is none."""
        tests = [self.admits] if self.admits else []
        tests += [_other(operand(self.extent), self.exact)] if self.exact else []
        if self.own:
            other = _other(f"launch.power_of_2({self.extent}, {self.least})", self.own)
            tests.append(f"({operand(self.extent)} % {self.aligned} or {other})")
        return f"({' and '.join(tests)})" if len(tests) > 1 else "".join(tests)

    def host_lines(self, name: str) -> list[str]:
        """Lines of the launcher that pick ``kernel``, ``options`` and the rows of a program."""
        lines = []
        for k, c in enumerate(self.classes):
            lanes = str(self.chunk * c.warps)
            if self.step is not None and c.odd and not self.wide:
                lanes += " * (16 // width)"
            given: dict[str, int | str] = {}
            kernel = self.streamed
            if tiles := c.last > c.first or c.odd:
                kernel = odd(name) if c.odd else name
                given = {"FIRST": c.first, "LAST": c.last, "TOGETHER": c.together}
            elif self.rows_beyond is not None:
                given = {self.rows_beyond: 1}
            given |= {self.block: lanes if c.steps else 0}
            if self.step is not None and self.near is not None:
                wide = "16 // width" if c.steps and (self.wide or not c.odd) else self.fewest
                given |= {self.step: c.steps or 1, self.near: wide}
                given |= {"ODD": c.odd} if self.wide else {}
            given |= {"num_warps": c.warps, "num_stages": self.stages if c.steps else 1}
            if tiles:
                given |= dict(self.counts) | ({"FULL": c.full} if self.full else {})
            if c.registers is not None:
                given |= {"maxnreg": c.registers}
            text = ", ".join([*(f'"{n}": {v}' for n, v in given.items()), '"enable_fp_fusion": True'])
            lines.append("else:" if c.test is None else f"{'el' if k else ''}if {c.test}:")
            lines.append(f"    kernel = {kernel}")
            if self.rows is not None:
                tile = f"launch.power_of_2({self.extent}, {self.least})"
                count = 1 if c.together == 1 else f"launch.share({c.together}, {tile})"
                lines.append(f"    {self.rows} = {count}")
            lines.append(f"    options = {{{text}}}")
        return lines

    @property
    def fills(self) -> str:
        """Whether a row fills its tile, which then needs no mask."""
        alone = "" if self.rows is None else f' and options["{self.rows}"] == 1'
        return f'options["{self.tile}"] == {self.extent}{alone}'

    @property
    def before(self) -> tuple[str, ...]:
        """Lines that stand before the test."""
        return ()

    @property
    def odd(self) -> bool:
        """Whether rows of odd length have a kernel that is specialised for none."""
        return True

    @property
    def held(self) -> str:
        """Elements of the longest row that is held whole, in words."""
        return str(self.longest)

    @property
    def longest(self) -> int:
        """Elements of the longest row that is held whole."""
        return max((1 << c.last) // 2 for c in self.classes if c.last > c.first)


def _other(value: str, known: tuple[int, ...]) -> str:
    return f"{value} != {known[0]}" if len(known) == 1 else f"{value} not in {known}"


def odd(name: str) -> str:
    """The kernel for rows of odd length."""
    return f"{name}_odd"


def any_length(
    plan: Plan,
    texts: tuple[KernelText, ...],
    names: Mapping[str, str],
    sizes: Sizes,
    cases: Sequence[Mapping[str, int]],
    stream: Stream,
) -> Lengths | None:
    """The classes of a kernel whose rows lie along memory and are held whole or streamed; None for any other.

    ``cases``: shapes of workloads that state one; ``stream``: its stream by itself.
    """
    if len(plan.variants) != 2:
        return None
    whole, streamed = plan.variants
    held = [a for a in whole.roles.tile if a in texts[0].blocks]
    if len(held) != 1 or streamed.roles.stream != tuple(held) or whole.roles.stream or whole.roles.products:
        return None
    (axis,) = held
    fast = fast_axes(plan.graph)
    others = [a for a in whole.roles.grid if a in texts[0].blocks]
    if axis not in fast or len(others) > 1 or set(others) & set(fast):
        return None
    if streamed.split is not None or any(t.described is not None for t in texts):
        return None
    if any(p.along not in fast for p in prefixes(plan.graph)):
        return None
    extent = whole.program.axis(axis).extent
    own, exact = _own(extent, cases, sizes, several=stream.warps > FEW)
    text, wide = host_int(extent, names), "ODD" in texts[1].constexprs
    if not extent.dims() or not PLAIN.fullmatch(text):
        return None
    return Lengths(
        extent=text,
        tile=texts[0].blocks[axis],
        block=texts[1].blocks[axis],
        rows=texts[0].blocks[others[0]] if others else None,
        rows_beyond=texts[1].blocks.get(others[0]) if others else None,
        step=texts[1].blocks.get(f"{axis}.step"),
        near=texts[1].blocks.get(f"{axis}.near"),
        fewest=2 if axis in packed_axes(plan.graph).values() else 1,
        chunk=max(min(sizes.chunk, SHORT) // (128 if streamed.roles.laned is not None else MANY), 1),
        least=sizes.least,
        stages=stream.stages,
        streamed=texts[1].name,
        aligned=sizes.aligned,
        own=own,
        exact=exact,
        classes=_classes(text, sizes, stream, wide=wide),
        wide=wide,
    )


def _own(
    extent: Int, cases: Sequence[Mapping[str, int]], sizes: Sizes, *, several: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tiles of lengths that workloads state, and apart from these the lengths that fill theirs alone in a program.

    Of those that stream only where it takes ``several`` sweeps, whose steps are fewer beside a tile.
    """
    lengths = {n for c in cases if (n := extent.evaluate(c)) % sizes.aligned == 0}
    tiles = {n: max(sizes.least, 1 << max(n - 1, 0).bit_length()) for n in lengths}
    kept = {n: t for n, t in tiles.items() if several or t <= sizes.resident}
    exact = {n for n, t in kept.items() if n == t and sizes.together <= n <= sizes.resident}
    own = {t for n, t in kept.items() if n not in exact}
    return tuple(sorted(own)), tuple(sorted(exact - own))


def operand(extent: str) -> str:
    """An extent as an operand."""
    return extent if extent.isidentifier() else f"({extent})"


def _classes(extent: str, sizes: Sizes, stream: Stream, *, wide: bool) -> tuple[Class, ...]:
    """Rows of odd length, short rows and long ones; ``wide``: those of odd length in a stream by itself.

    A stream with many warps is one of several sweeps: of what is held whole there, each is read once.
    """
    held = min(sizes.resident, SHORT)
    first, last = power(sizes.least), power(held) + 1
    odd_last = max(last - 2, first + 1)  # an element of an odd row takes a register more for where it lies
    rows = operand(extent)
    many = stream.warps > FEW
    deep = min(stream.steps, HELD_STEPS) if many else stream.steps
    test = f"{rows} % {sizes.aligned}"
    short = Class(test=test, first=first, last=odd_last, together=1 << odd_last, warps=FEW, steps=1, odd=True)
    beyond = replace(short, first=odd_last, together=1)
    short = replace(short, test=f"{test} and {rows} <= {1 << odd_last - 1}", steps=0) if wide else short
    return (
        short,
        *([beyond] if wide else []),
        Class(test=f"{rows} <= {held}", first=first, last=last, together=held, warps=FEW, steps=0),
        Class(test=None, first=last, last=last + many, together=1, warps=stream.warps, steps=deep),
    )


def power(size: int) -> int:
    """The exponent of a power of two."""
    return size.bit_length() - 1


def print_lengths(name: str, texts: tuple[KernelText, ...], lengths: Lengths) -> KernelText:
    """The kernel called ``name`` whose programs are those of one of ``texts``, whole rows or a stream."""
    whole, streamed = texts
    at, place = (n if n not in streamed.params else f"{n}_" for n in ("power", "place"))
    extent = operand(lengths.extent)
    blocks = {lengths.tile: f"1 << {at}", lengths.rows: f"1 + (TOGETHER - 1) // (1 << {at})"}
    blocks["FULL"] = "False"
    every = f"FIRST, LAST{f', {lengths.each}' if lengths.each > 1 else ''}"
    step = f" // {lengths.each}" if lengths.each > 1 else ""
    met = f"({at} - FIRST){step}" if step else f"{at} - FIRST"
    beyond = f"(LAST - FIRST + {lengths.each - 1}){step}" if step else "LAST - FIRST"
    passed = [f"{c}={blocks.get(c, c)}" for c in whole.constexprs]
    held = f"{whole.name}({', '.join([*whole.params, *passed])})"
    branches = [f"            {held}"]
    if lengths.full:
        branches = [
            f"            if FULL and {extent} == 1 << {at}:",
            f"                {held.replace('FULL=False', 'FULL=True')}",
            "            else:",
            f"                {held}",
        ]
    ones = [f"{c}={1 if c == lengths.rows_beyond else c}" for c in streamed.constexprs]
    lines = [
        f"    {place} = 0",
        f"    for {at} in tl.static_range({every}):",
        f"        {place} += tl.cast({extent} > 1 << {at}, tl.int32)",
        f"    for {at} in tl.static_range({every}):",
        f"        if {place} == {met}:",
        *branches,
        f"    if {lengths.block} > 0:",
        f"        if {place} == {beyond}:",
        f"            {streamed.name}({', '.join([*streamed.params, *ones])})",
    ]
    return KernelText(
        name=name,
        params=streamed.params,
        constexprs=(
            *CONSTANTS,
            *(c for c, _ in lengths.counts),
            *(["FULL"] if lengths.full else []),
            *(c for c in streamed.constexprs if c != lengths.rows_beyond),
        ),
        lines=tuple(f for line in lines for f in fold(line)),
        helpers=(),
        blocks={},
        grouped=False,
    )


def unspecialised_odd(op: Op, plan: Plan, text: KernelText, names: Mapping[str, str]) -> tuple[str, ...]:
    """Parameters of the kernel for odd rows that need no binaries of their own: all dims and strides, but those
    along rows."""
    tensors = plan.variants[0].program.tensors
    above = [stride(t, i) for t in tensors for i in range(len(t.extents) - 1)]
    return tuple(p for p in (*(names[d] for d in op.dims), *above) if p in text.params)


def lengths_doc(lengths: Lengths) -> str:
    """What such a kernel does, in words."""
    return (
        f"Rows in tiles of 2**FIRST to 2**LAST // 2 elements, beyond streamed where {lengths.block} is not 0."
    )


__all__ = ["Lengths", "any_length", "lengths_doc", "odd", "print_lengths", "unspecialised_odd"]
