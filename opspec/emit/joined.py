"""What joins parts, in one binary: a program that holds all of them at once, and beyond that a stream of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from opspec.emit.choice import Choice
from opspec.emit.host import host_int
from opspec.emit.layout import fold
from opspec.emit.lengths import operand
from opspec.emit.signature import KernelText
from opspec.schedule.plan import Plan

WORD = re.compile(r"\w+")
COMPARED = re.compile(r"[\w\s+*/%()<=-]+")  # a test that reads the same on the host and in a kernel
SAME = re.compile(r"[\w\s+*/%()-]+")  # an extent that reads the same on the host and in a kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Small:
    """What small shapes launch in place of parts and their join, as a branch of the latter's kernel: ``text`` where
    ``test`` holds, with ``lines`` of the launcher that set its ``constants`` (in its own text, and here)."""

    text: KernelText
    test: str
    lines: tuple[str, ...]
    constants: tuple[tuple[str, str], ...]
    warps: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Parts along an axis of ``extent``, which a program holds where they fit ``block``; ``choice`` is that of the stream."""

    extent: str
    block: str
    choice: Choice
    constants: tuple[str, ...]
    small: Small | None = None

    rows = None
    exact = ()
    full = False
    odd = False

    @property
    def test(self) -> str:
        """What must hold beside."""
        return self.choice.test or ""

    @property
    def before(self) -> tuple[str, ...]:
        """Lines that stand before the test."""
        return self.choice.lines if self.choice.test else ()

    @property
    def held(self) -> str:
        """How many parts a program holds, in words."""
        return self.block

    def host_lines(self, name: str) -> list[str]:
        """Lines of the launcher that pick ``kernel`` and ``options``."""
        blocks, warps = [b for b in self.choice.blocks if b in self.constants], self.choice.warps
        lines = [] if self.before else [*self.choice.lines]
        if self.small is not None:
            lines += self.small.lines
            blocks += [own for _, own in self.small.constants]
            warps = f"max({warps}, {self.small.warps})"
        given = ", ".join(f'"{b}": {b}' for b in blocks)
        options = f'{given}, "num_warps": {warps}, "num_stages": 1, "enable_fp_fusion": True'
        return [*lines, f"kernel = {name}", f"options = {{{options}}}"]


def joined(
    plan: Plan, texts: tuple[KernelText, ...], choices: tuple[Choice, ...], names: Mapping[str, str]
) -> Joined | None:
    """Of the kernel of a join: None where it has other variants than all parts held, and parts that stream."""
    if len(plan.variants) < 2:
        return None
    held, streamed = plan.variants[:2]
    if held.roles.stream or len(streamed.roles.stream) != 1 or streamed.roles.laned is not None:
        return None
    (axis,) = streamed.roles.stream
    if set(held.roles.tile) != {axis, *streamed.roles.tile} or texts[0].blocks != texts[1].blocks:
        return None
    extent = host_int(held.program.axis(axis).extent, names)
    if not SAME.fullmatch(extent):
        return None
    constants = tuple(dict.fromkeys((*texts[0].constexprs, *texts[1].constexprs)))
    return Joined(extent=extent, block=texts[1].blocks[axis], choice=choices[1], constants=constants)


def print_joined(name: str, texts: tuple[KernelText, ...], own: Joined) -> KernelText:
    """The kernel called ``name``, whose programs are those of the first or the second of ``texts``."""
    held, streamed = texts[:2]

    def call(text: KernelText) -> str:
        return f"        {text.name}({', '.join([*text.params, *(f'{c}={c}' for c in text.constexprs)])})"

    lines: list[str] = []
    params, constants, waits = streamed.params, own.constants, False
    small = own.small
    if small is not None:
        places = dict(small.constants)
        given = [*small.text.params, *(f"{c}={places.get(c, c)}" for c in small.text.constexprs)]
        lines = [f"    if {small.test}:", f"        {small.text.name}({', '.join(given)})"]
        if "OVERLAP" in constants:
            waits = True
            lines.insert(1, "        wait_for_earlier(OVERLAP)")
        params = (*small.text.params, *(p for p in params if p not in small.text.params))
        constants = tuple(dict.fromkeys((*places.values(), *constants)))
    lines += [
        f"    {'el' if lines else ''}if {operand(own.extent)} <= {own.block}:",
        call(held),
        "    else:",
        call(streamed),
    ]
    return KernelText(
        name=name,
        params=params,
        constexprs=constants,
        lines=tuple(f for line in lines for f in fold(line)),
        helpers=("wait_for_earlier",) if waits else (),
        blocks={},
        grouped=False,
    )


def small_of(text: KernelText, choice: Choice, test: str, params: tuple[str, ...]) -> Small | None:
    """The branch for small shapes; ``params`` of the join, which its constants must not be called like."""
    blocks = [b for b in choice.blocks if b in text.constexprs]
    names = dict.fromkeys(blocks, "")
    for b in blocks:
        names[b] = f"{b}_WHOLE"
        while names[b] in params or names[b] in text.params:
            names[b] += "_"

    def renamed(line: str) -> str:
        return WORD.sub(lambda m: names.get(m[0], m[0]), line)

    test = test[1:-1] if test.startswith("(") and test.endswith(")") else test
    if not COMPARED.fullmatch(test):
        return None
    return Small(
        text=text,
        test=renamed(test),
        lines=tuple(map(renamed, choice.lines)),
        constants=tuple(names.items()),
        warps=renamed(choice.warps),
    )


__all__ = ["Joined", "Small", "joined", "print_joined", "small_of"]
