"""What a configuration is: block sizes to stay within, and a variant's choice as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from opspec.emit.signature import KernelText


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Elements of a block: the most that is held whole, of a chunk of a stream, of rows together, and
    of a block without reductions; ``least``: of a whole axis along memory. ``product``: the most along one axis of a block product (None: what
    the resource model offers), ``held`` the same where the axis is whole; ``steps``: the fewest of a stream for a program of its own; ``copied``: the fewest rows and columns of a
    product for which odd rows are copied; ``aligned``: what divides the length of rows that are not odd. ``SMALL`` sizes make
    ``verify`` walk every variant on small shapes; they are sizes that a matrix unit still takes."""

    resident: int = 16384
    chunk: int = 4096
    together: int = 4096
    pointwise: int = 2048
    least: int = 64
    product: int | None = None
    held: int = 512
    steps: int = 4
    copied: int = 512
    aligned: int = 16


SMALL = Sizes(
    resident=4,
    chunk=16,
    together=16,
    pointwise=32,
    least=1,
    product=16,
    held=16,
    steps=2,
    copied=16,
    aligned=2,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One variant's configuration: the test that admits it (None: always), lines, warps, stages; the test in
    ``words`` where it is a name. ``parted``: its tiles are few because parts of a sum fill a device;
    ``group``: rows of tiles that are walked before the next column; ``specialised``: tiles (rows, columns, depth, slots) where its warps have roles, whose blocks are ``sides``;
    ``registers``: the most of a thread, where more would leave room for too few programs."""

    kernel: str
    test: str | None
    lines: tuple[str, ...]
    blocks: tuple[str, ...]
    warps: str
    stages: str
    words: str = ""
    parted: bool = False
    group: str = "8"
    specialised: tuple[tuple[int, int, int, int], ...] = ()
    sides: tuple[str, ...] = ()
    registers: int | str | None = None


def choice_of(
    text: KernelText,
    lines: Iterable[str],
    *,
    warps: str,
    stages: str,
    test: str | None = None,
    words: str = "",
    parted: bool = False,
) -> Choice:
    """The choice of every block of a kernel."""
    blocks = tuple(dict.fromkeys(text.blocks.values()))
    return Choice(
        kernel=text.name,
        test=test,
        lines=tuple(lines),
        blocks=blocks,
        warps=warps,
        stages=stages,
        words=words,
        parted=parted,
    )
