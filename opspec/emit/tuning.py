"""Configurations worth trying for one launch, the most promising first.

Each is the untuned choice with a few options changed. Blocks that hold a whole axis stay; blocks that walk a
grid or a stream, warps, stages and the walk over tiles may change. What the target can't hold is dropped
before anything is compiled. The rest is ranked by what the model expects of it: the waves that the programs
take, the bytes that tiles read again, and how far the work of a thread is from what keeps it busy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from opspec.emit.choice import Choice
from opspec.emit.kernel_launch import KernelLaunch
from opspec.emit.signature import KernelText
from opspec.schedule.plan import Variant
from opspec.schedule.resources import Limits, ProductTile, side_by_side

BUSY = 16  # elements of a thread
WARPS = (1, 2, 4, 8, 16)
STAGES = (1, 2, 3, 4, 5)
LARGEST = 1 << 17  # elements of a block


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Options that differ from the untuned choice of one variant; ``expected`` is relative, less is better."""

    variant: str
    changes: Mapping[str, int]
    expected: float

    @property
    def words(self) -> str:
        """The changes on one line."""
        return ", ".join(f"{k}={v}" for k, v in self.changes.items()) or "untuned"


def variant_of(launch: KernelLaunch, kernel: str) -> str | None:
    """The variant that ``kernel`` is a form of: as it is, with descriptors, or for a part of its stream; or the
    kernel of rows of any length. One whose warps have roles is a variant of its own. None: of none."""
    for text in launch.texts:
        if text.warps is not None and kernel == text.warps.name:
            return kernel
        forms = [text] if text.split is None else [text, text.split.partial]
        names = {t.name for f in forms for t in (f, f.described) if t is not None}
        if kernel in names:
            return text.name
    any_length = launch.lengths.text.name if launch.lengths is not None else None
    return any_length if kernel == any_length else None


def candidates(
    launch: KernelLaunch,
    variant: str,
    options: Mapping[str, int],
    extents: Mapping[str, int],
    bits: int,
    limits: Limits,
) -> list[Candidate]:
    """What to try where ``options`` of ``variant`` is the untuned choice, which comes first whatever its rank.

    ``extents`` of the kernel's axes; ``bits`` of an element of the widest operand.
    """
    if launch.lengths is not None and variant == launch.lengths.text.name:
        return [Candidate(variant=variant, changes={}, expected=0.0)]  # its variants are tried by themselves
    for text, choice in zip(launch.texts, launch.choices, strict=True):
        if text.warps is not None and variant == text.warps.name and not choice.specialised:
            return [Candidate(variant=variant, changes={}, expected=0.0)]
        if text.warps is not None and variant == text.warps.name:
            return _with_roles(text, text.warps, choice, options, extents, limits)
    place = next(k for k, text in enumerate(launch.texts) if text.name == variant)
    text, chosen = launch.texts[place], launch.plan.variants[place]
    found: dict[tuple[tuple[str, int], ...], Candidate] = {}
    for changed in _changes(text, chosen, options):
        full = {**options, **changed}
        if not _fits(chosen, text, full, bits, limits):
            continue
        found[tuple(sorted(changed.items()))] = Candidate(
            variant=variant, changes=changed, expected=_expected(chosen, text, full, extents, limits)
        )
    untuned = found.pop((), Candidate(variant=variant, changes={}, expected=0.0))
    return [untuned, *sorted(found.values(), key=lambda c: (c.expected, c.words))]


def _with_roles(
    text: KernelText,
    warps: KernelText,
    choice: Choice,
    options: Mapping[str, int],
    extents: Mapping[str, int],
    limits: Limits,
) -> list[Candidate]:
    """The tiles of a kernel whose warps have roles, each with all of its slots or one less, walked in other groups."""
    grid = [a for a in extents if text.blocks.get(a) in choice.sides[:2]]
    found = {}
    for tile in choice.specialised:
        blocks = dict(zip(choice.sides, tile, strict=False))
        programs = math.prod(math.ceil(extents[a] / blocks[text.blocks[a]]) for a in grid)
        again = 1 + 64 * (1 / tile[0] + 1 / tile[1])
        expected = math.ceil(programs / limits.multiprocessors) * tile[0] * tile[1] * again
        for slots, group in itertools.product((tile[-1], tile[-1] - 1), (4, 8, 16, 32)):
            full = {**options, **blocks, "STAGES": slots, "GROUP": group}
            changed = {k: v for k, v in full.items() if options.get(k) != v and k in options}
            found[tuple(sorted(changed.items()))] = Candidate(
                variant=warps.name, changes=changed, expected=expected
            )
    untuned = found.pop((), Candidate(variant=warps.name, changes={}, expected=0.0))
    return [untuned, *sorted(found.values(), key=lambda c: (c.expected, c.words))]


def _changes(text: KernelText, variant: Variant, options: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Every combination of nearby values of what may change."""
    axes: dict[str, tuple[int, ...]] = {}
    held = {text.blocks[a] for a in variant.roles.tile if a in text.blocks}
    unrolled = {text.blocks.get(f"{a.name}.step") for a in variant.program.axes if a.rows}
    least = 16 if variant.roles.products else 1
    for block in dict.fromkeys(text.blocks.values()):
        if block in held or block not in options:
            continue
        largest = 0 if block in unrolled else 2  # time to compile grows with the square of what is unrolled
        axes[block] = tuple(v for f in range(-2, largest + 1) if (v := _shifted(options[block], f)) >= least)
    if "GROUP" in options:
        axes["GROUP"] = (1, 4, 8, 16)
    axes["num_warps"] = tuple(w for w in WARPS if options["num_warps"] / 4 <= w <= options["num_warps"] * 4)
    loops = bool(variant.roles.stream)
    axes["num_stages"] = tuple(s for s in STAGES if loops and abs(s - options["num_stages"]) <= 2) or (
        options["num_stages"],
    )
    for values in itertools.product(*axes.values()):
        changed = {k: v for k, v in zip(axes, values, strict=True) if v != options[k]}
        if len(changed) <= 3:
            yield changed


def _shifted(value: int, power: int) -> int:
    return value << power if power >= 0 else value >> -power


def _elements(text: KernelText, options: Mapping[str, int]) -> int:
    """Elements of a program's largest block, if it has all axes."""
    return math.prod(options[b] for b in dict.fromkeys(text.blocks.values()) if b in options)


def _fits(variant: Variant, text: KernelText, options: Mapping[str, int], bits: int, limits: Limits) -> bool:
    if not variant.roles.products:
        return 32 * options["num_warps"] <= max(_elements(text, options), 32) <= LARGEST
    product = next(iter(variant.roles.products.values()))
    sizes = [options.get(text.blocks.get(a, ""), 16) for a in (product.rows, product.columns, product.k)]
    tile = ProductTile(
        rows=sizes[0],
        columns=sizes[1],
        depth=sizes[2],
        warps=options["num_warps"],
        stages=options["num_stages"],
    )
    return tile.fits(limits, bits, sharing=side_by_side(variant.program))


def _expected(
    variant: Variant,
    text: KernelText,
    options: Mapping[str, int],
    extents: Mapping[str, int],
    limits: Limits,
) -> float:
    """Relative time: waves of programs, times what a program does, times how ill its threads are used."""
    programs, work = 1.0, 1.0
    for axis, extent in extents.items():
        block = options.get(text.blocks.get(axis, ""), 1) * options.get(
            text.blocks.get(f"{axis}.step", ""), 1
        )
        tiles = math.ceil(extent / block) if extent else 0
        if axis in variant.roles.grid:
            programs *= tiles
            work *= block
        else:
            work *= tiles * block
    at_once = limits.multiprocessors * max(1, min(64 // options["num_warps"], 8))
    waves = math.ceil(programs / at_once) if programs > at_once else max(programs / at_once, 0.5)
    if variant.roles.products:
        product = next(iter(variant.roles.products.values()))
        rows, columns = (options.get(text.blocks.get(a, ""), 16) for a in (product.rows, product.columns))
        again = 1 + 32 * (1 / rows + 1 / columns)  # operands per element of the result
        deep = 1 + 0.1 * abs(options["num_stages"] - 3)
        return waves * work * again * deep
    thread = _elements(text, options) / (32 * options["num_warps"])
    return waves * work * (1 + 0.15 * abs(math.log2(max(thread, 1) / BUSY)))
