"""Right before fast: every output against float64, with memory poisoned beforehand.

The full, derived bound of each element is the business of ``opspec verify``; what a driver holds against the
clock is the closed tolerance that the spec gives it (``Tolerance``).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opspec.runtime.bench.inputs import nibbles
from opspec.runtime.bench.model import Tolerance

# storage type: explicit mantissa bits, smallest normal exponent, largest finite value
FORMATS = {
    torch.float64: (52, -1022, 1.7976931348623157e308),
    torch.float32: (23, -126, 3.4028234663852886e38),
    torch.bfloat16: (7, -126, 3.3895313892515355e38),
    torch.float16: (10, -14, 65504.0),
    torch.float8_e4m3fn: (3, -6, 448.0),
    torch.float8_e5m2: (2, -14, 57344.0),
}
CHUNK = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputCheck:
    """One output against its reference.

    ``frobenius`` is ‖out − ref‖ / ‖ref‖ over finite elements; ``rounding`` the same norm of one unit in the
    last place of each element.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    matched: float
    max_error: float
    worst_of_tolerance: float
    frobenius: float
    rounding: float
    passed: bool
    reason: str = ""


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """Fill every freshly allocated tensor with NaN, or the largest integer, so that an unwritten element shows."""
    filling = torch.utils.deterministic.fill_uninitialized_memory
    mode = torch.get_deterministic_debug_mode()
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.set_deterministic_debug_mode(
        "warn"
    )  # the other switch also makes the compiler of peers avoid fast code
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        torch.utils.deterministic.fill_uninitialized_memory = filling


def as_tuple(outputs: Any) -> tuple[Any, ...]:
    """What a function returned, as a tuple of tensors."""
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


def check_outputs(
    names: Sequence[str], outputs: Sequence[Any], references: Sequence[Any], tolerance: Tolerance
) -> tuple[OutputCheck, ...]:
    """Each output beside its float64 reference."""
    if len(outputs) != len(names) or len(references) != len(names):
        reason = f"{len(outputs)} outputs and {len(references)} references for {len(names)} names"
        return (failed(", ".join(names), reason),)
    return tuple(
        check_output(name, output, reference, tolerance)
        for name, output, reference in zip(names, outputs, references, strict=True)
    )


def failed(name: str, reason: str, output: Any = None) -> OutputCheck:
    """A check that ends before any element is compared."""
    return OutputCheck(
        name=name,
        shape=tuple(output.shape) if output is not None else (),
        dtype=str(output.dtype).removeprefix("torch.") if output is not None else "",
        matched=0.0,
        max_error=math.inf,
        worst_of_tolerance=math.inf,
        frobenius=math.inf,
        rounding=0.0,
        passed=False,
        reason=reason,
    )


def check_output(name: str, output: Any, reference: Any, tolerance: Tolerance) -> OutputCheck:
    """Compare element by element, in chunks, on the device where they lie."""
    if tuple(output.shape) != tuple(reference.shape):
        return failed(name, f"shape {tuple(output.shape)}, wanted {tuple(reference.shape)}", output)
    out, ref = output.detach(), reference.detach()
    if out.dtype == torch.uint8:  # two codes a byte
        out, ref = nibbles(out), nibbles(ref)
    out, ref = out.reshape(-1), ref.reshape(-1)
    if out.numel() == 0:
        return OutputCheck(
            name=name,
            shape=tuple(output.shape),
            dtype=str(output.dtype).removeprefix("torch."),
            matched=1.0,
            max_error=0.0,
            worst_of_tolerance=0.0,
            frobenius=0.0,
            rounding=0.0,
            passed=True,
        )
    scale = max(finite_magnitude(part) for part in ref.split(CHUNK))
    matched, unwritten, moved, any_output = 0, 0, 0, False
    max_error, worst, squares, ulps, norm = 0.0, 0.0, 0.0, 0.0, 0.0
    for got, want in zip(out.split(CHUNK), ref.split(CHUNK), strict=True):
        part = compare_chunk(got, want, scale, tolerance)
        matched += part.matched
        max_error, worst = max(max_error, part.max_error), max(worst, part.worst)
        squares, ulps, norm = squares + part.squares, ulps + part.ulps, norm + part.norm
        any_output = any_output or part.any_output
        unwritten += part.unwritten
        moved += part.moved
    ratio = matched / out.numel()
    frobenius, rounding = (math.sqrt(s / norm) if norm > 0 else math.sqrt(s) for s in (squares, ulps))
    limit = norm_limit(rounding, tolerance)
    reason = ""
    if not any_output and scale > 0:
        reason = "every element is zero"
    elif unwritten:
        reason = (
            f"{unwritten} elements are NaN where the reference is a number: unwritten, or computed from such"
        )
    elif ratio < 1:
        reason = f"{out.numel() - matched} of {out.numel()} elements outside the tolerance"
    elif moved > (most := moves(out.numel(), scale, tolerance)):
        reason = f"{moved} of {out.numel()} codes differ, where roundings at a tie explain {most}"
    elif out.dtype in FORMATS and frobenius > limit:
        reason = f"relative error {frobenius:.2e} over all elements, where rounding explains {limit:.2e}"
    return OutputCheck(
        name=name,
        shape=tuple(output.shape),
        dtype=str(output.dtype).removeprefix("torch."),
        matched=ratio,
        max_error=max_error,
        worst_of_tolerance=worst,
        frobenius=frobenius,
        rounding=rounding,
        passed=not reason,
        reason=reason,
    )


def norm_limit(rounding: float, tolerance: Tolerance) -> float:
    """What the relative norm error may be: roundings do not conspire, so sums of n grow by √n, taken 16 times."""
    accumulated = 16 * math.sqrt(max(tolerance.terms, 1.0)) * 2.0**-24
    return max(tolerance.ulps, 1.0) * rounding + accumulated + tolerance.relative


def moves(count: int, scale: float, tolerance: Tolerance) -> int:
    """Of so many codes, how many roundings before them may have carried over a tie: the share of values that lie
    within their error of one, and a few in any case."""
    error = 16 * math.sqrt(max(tolerance.terms, 1.0)) * 2.0**-24 + tolerance.relative
    return 8 + int(count * min(1.0, 2 * error * scale))


def finite_magnitude(values: Any) -> float:
    """The largest finite magnitude."""
    wide = values.to(torch.float64).abs()
    return float(torch.where(wide.isfinite(), wide, torch.zeros_like(wide)).max())


@dataclass(frozen=True, slots=True)
class ChunkCheck:
    """Partial sums of a comparison."""

    matched: int
    max_error: float
    worst: float
    squares: float
    ulps: float
    norm: float
    any_output: bool
    unwritten: int
    moved: int


def compare_chunk(out: Any, ref: Any, scale: float, tolerance: Tolerance) -> ChunkCheck:
    """One chunk: non-finite values must agree exactly, the rest within the tolerance."""
    got, want = out.to(torch.float64), ref.to(torch.float64)
    allowed = allowance(out.dtype, want, scale, tolerance)
    finite = got.isfinite() & want.isfinite()
    same = (got == want) | (got.isnan() & want.isnan())
    overflow = torch.zeros_like(finite)
    if out.dtype in FORMATS:
        # Past the largest finite value, rounding gives infinity and a saturating cast the value itself.
        overflow = (want.abs() >= FORMATS[out.dtype][2]) & (got.sign() == want.sign()) & ~got.isnan()
        overflow &= got.abs() >= FORMATS[out.dtype][2]
    error = torch.where(finite & ~overflow, (got - want).abs(), torch.zeros_like(want))
    ulps = unit(out.dtype, want)
    inside = torch.where(finite, error <= allowed, same) | same | overflow
    ratio = error / allowed.clamp_min(torch.finfo(torch.float64).tiny)
    return ChunkCheck(
        matched=int(inside.sum()),
        max_error=float(error.max()),
        worst=float(ratio.max()),
        squares=float((error * error).sum()),
        ulps=float((ulps * ulps).sum()),
        norm=float(torch.where(finite, want * want, torch.zeros_like(want)).sum()),
        any_output=bool((got != 0).any()),
        unwritten=int((got.isnan() & ~want.isnan()).sum()),
        moved=0 if out.dtype in FORMATS else int((got != want).sum()),
    )


def allowance(dtype: Any, want: Any, scale: float, tolerance: Tolerance) -> Any:
    """The tolerance of each element, float64."""
    if dtype not in FORMATS:
        return torch.full_like(want, float(tolerance.codes))
    return tolerance.ulps * unit(dtype, want) + (tolerance.terms * 2.0**-24 + tolerance.relative) * scale


def unit(dtype: Any, want: Any) -> Any:
    """One unit in the last place of ``dtype`` at each value, float64; 0 for types that are no floats."""
    if dtype not in FORMATS:
        return torch.zeros_like(want)
    bits, lowest, _ = FORMATS[dtype]
    magnitude = torch.where(want.isfinite(), want.abs(), torch.zeros_like(want))
    exponent = (torch.frexp(magnitude).exponent - 1).clamp_min(lowest)
    exponent = torch.where(magnitude > 0, exponent, torch.full_like(exponent, lowest))
    return torch.exp2((exponent - bits).to(torch.float64))


def close_enough(checks: Sequence[OutputCheck], tolerance: Tolerance) -> bool:
    """Whether a peer computes the same: its relative norm error within four roundings to the output type.

    Peers round intermediates as they please, so their elements are not held to our tolerance; their errors
    are shown beside ours.
    """
    for item in checks:
        dtype = getattr(torch, item.dtype, None)
        if dtype not in FORMATS:
            if item.matched < 0.999:
                return False
            continue
        limit = 4 * item.rounding + tolerance.terms * 2.0**-24 + tolerance.relative
        if not (
            item.frobenius <= limit and item.reason != "every element is zero" and "NaN" not in item.reason
        ):
            return False
    return True
