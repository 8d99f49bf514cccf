"""Host-side Python text: extents, dtypes, docstrings."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import assert_never

from opspec.ir.dtypes import I4, DTypeParam, Storage
from opspec.ir.integers import Atom, Datum, Dim, FloorDiv, Greatest, Index, Int, Least, Mod, floor_div
from opspec.ir.program import Tensor

Own = Callable[[Atom], str | None]


def _nothing(atom: Atom) -> str | None:  # noqa: ARG001  # whatever it is
    return None


def host_int(value: Int, names: Mapping[str, str], tight: bool = False, own: Own = _nothing) -> str:
    """An extent as a Python expression of dims; in parentheses where ``tight`` and compound.

    ``own`` prints what stands there in another way, and gives None for other atoms.
    """
    if not value.terms:
        return "0"
    text, first = "", True
    for monomial, c in sorted(value.terms, key=lambda t: t[1] < 0):
        factors = [_power(own(a) or _atom(a, names, own), p) for a, p in monomial]
        if abs(c) != 1 or not factors:
            factors.insert(0, str(abs(c)))
        part = " * ".join(factors)
        text += (f"-{part}" if c < 0 else part) if first else f" {'-' if c < 0 else '+'} {part}"
        first = False
    simple = len(value.terms) == 1 and (value.constant is not None or isinstance(value.atom, Dim | Index))
    if tight:
        return text if simple or strip_parens(text) != text else f"({text})"
    return strip_parens(text)


def _power(text: str, power: int) -> str:
    """A power as the formatter spaces it: tight on a plain name only."""
    if power == 1:
        return text
    return f"{text}**{power}" if text.isidentifier() else f"{text} ** {power}"


def _atom(atom: Atom, names: Mapping[str, str], own: Own) -> str:
    match atom:
        case Dim(name) | Index(name):
            return names[name]
        case FloorDiv(num, den):
            return f"({host_int(num, names, True, own)} // {host_int(den, names, True, own)})"
        case Mod(num, den):
            return f"({host_int(num, names, True, own)} % {host_int(den, names, True, own)})"
        case Least(args):
            return f"min({', '.join(host_int(a, names, own=own) for a in args)})"
        case Greatest(args):
            return f"max({', '.join(host_int(a, names, own=own) for a in args)})"
        case Datum():
            raise AssertionError("a length that is data is not known on the host")
        case _:
            assert_never(atom)


def strip_parens(text: str) -> str:
    """Drop one pair of parentheses around a whole expression."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and k < len(text) - 1:
            return text
    return text[1:-1]


def linear(extent: Int) -> tuple[str, int, int] | None:
    """Dim, factor and offset of an extent like ``2 * C + 1``."""
    if len(extent.dims()) != 1:
        return None
    factor, offset = 0, 0
    for monomial, c in extent.terms:
        match monomial:
            case ():
                offset = c
            case ((Dim(), 1),):
                factor = c
            case _:
                return None
    return (next(iter(extent.dims())), factor, offset) if factor >= 1 else None


def stored_extents(tensor: Tensor) -> tuple[Int, ...]:
    """The shape of a tensor in memory: two i4 share a byte along the last axis."""
    if tensor.dtype != I4 or not tensor.extents:
        return tensor.extents
    return (*tensor.extents[:-1], floor_div(tensor.extents[-1] + 1, Int.of(2)))


def tuple_text(items: list[str]) -> str:
    """A Python tuple."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def dtype_text(dtype: Storage, names: Mapping[str, str]) -> str:
    """The torch dtype of a storage type: a local name for a parameter, else a constant."""
    if isinstance(dtype, DTypeParam):
        return names[dtype.name]
    return f'launch.DTYPES["{dtype.name}"]'


def wrap_doc(text: str, indent: str, width: int = 106) -> list[str]:
    """Paragraphs of a docstring wrapped to the width, blank lines kept; quotes made harmless."""
    out: list[str] = []
    for line in safe_doc(text).splitlines():
        lead = line[: len(line) - len(line.lstrip())]
        if not line.strip():
            out.append("")
            continue
        out += textwrap.wrap(
            line.strip(),
            width - len(indent),
            initial_indent=lead,
            subsequent_indent=lead + "  ",
            break_long_words=False,
        )
    return [(indent + line).rstrip() for line in out]


def safe_doc(text: str) -> str:
    """Text that can stand in a triple-quoted string without ending or escaping it."""
    return text.replace("\\", "\\\\").replace('"""', "'''").replace("\x00", "")
