"""Makes Triton's interpreter give what a GPU gives, where it is known not to.

``repair`` tries each known fault on a tiny kernel and patches only what is wrong in
the installed Triton, in place, for this process. It changes nothing on a GPU. The
faults, seen in Triton 3.6 to 3.9: conversions to bf16 truncate and those to fp8
overflow or round wrongly, ``tl.dot`` and arithmetic take bf16 for 16-bit integers, scalar
arguments keep the 64 bits of Python, and in 3.6 ``tl.maximum`` keeps a NaN that the device drops, which would hide a lost NaN.

Not repaired: the order of a floating-point sum, and NaN in an arg-reduction.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter as host

from opspec.runtime.blockwise import combine_by_blocks
from opspec.runtime.shortcuts import take_shortcuts

Array = np.ndarray[Any, Any]

# Explicit mantissa bits, least normal exponent, greatest finite value, code of NaN.
_FORMATS = {
    "bf16": (7, -126, float.fromhex("0x1.fep127"), 0x7FC0),
    "fp16": (10, -14, 65504.0, 0x7E00),
    "fp8e4nv": (3, -6, 448.0, 0x7F),
    "fp8e5": (2, -14, 57344.0, 0x7F),
}
_NUMPY = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}


@dataclass(frozen=True, slots=True)
class Fault:
    """One known fault: what it is in words, a probe that is True where it is absent, its patch."""

    words: str
    absent: Callable[[], bool]
    patch: Callable[[], None]


def repair() -> tuple[str, ...]:
    """Patch the faults that the installed interpreter shows; returns what was repaired.

    Safe to call again: a repaired interpreter shows none. Raises ``RuntimeError`` if a
    fault is still there after its patch, as with a Triton that this module doesn't know.
    """
    # lanes that are masked hold infinities, whose differences NumPy would report
    for module in (re.escape(host.__name__), r"numpy\._?core\.fromnumeric"):
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=module)
    combine_by_blocks()
    take_shortcuts()
    found = [fault for fault in FAULTS if not fault.absent()]
    for patch in dict.fromkeys(fault.patch for fault in found):
        patch()
    left = [fault.words for fault in found if not fault.absent()]
    if left:
        raise RuntimeError(f"Triton's interpreter could not be repaired: {'; '.join(left)}")
    return tuple(fault.words for fault in found)


# --- conversions ----------------------------------------------------------------------------------
def decode(data: Array, name: str) -> Array:
    """Elements of a Triton float type, held as bit patterns or as numpy floats, in float64."""
    if name in _NUMPY:
        plain: Array = data.view(_NUMPY[name]) if data.dtype.kind in "ui" else data
        with np.errstate(invalid="ignore"):
            return np.asarray(plain.astype(np.float64))
    if name == "bf16":
        wide: Array = (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        with np.errstate(invalid="ignore"):
            return np.asarray(wide.astype(np.float64))
    mantissa, least, greatest, nan = _FORMATS[name]
    code = data.view(np.uint8).astype(np.int64)
    size = code & 0x7F
    field, rest = size >> mantissa, size & ((1 << mantissa) - 1)
    significand = np.where(field > 0, rest + (1 << mantissa), rest).astype(np.float64)
    value = np.ldexp(significand, np.maximum(field, 1) - 1 + least - mantissa)
    if name == "fp8e5":
        value = np.where(size == 0x7C, np.inf, np.where(size > 0x7C, np.nan, value))
    else:
        value = np.where(size == nan, np.nan, value)
    assert np.nanmax(np.where(np.isinf(value), 0.0, value), initial=0.0) <= greatest
    return np.asarray(np.where(code > 0x7F, -value, value))


def encode(value: Array, name: str) -> Array:
    """Bit patterns of float64 values, to nearest even; fp8 saturates, as the device's ``cvt`` does."""
    if name in ("fp32", "fp64"):
        with np.errstate(over="ignore"):
            exact: Array = value.astype(_NUMPY[name]).view(np.uint32 if name == "fp32" else np.uint64)
        return exact
    mantissa, least, greatest, nan = _FORMATS[name]
    bits = 8 if name.startswith("fp8") else 16
    size = np.abs(np.where(np.isnan(value), 0.0, value))
    bounded = np.minimum(size, 4 * greatest)
    _, exponent = np.frexp(bounded)
    exponent = np.maximum(np.where(bounded == 0, least, exponent - 1), least)
    units = np.rint(np.ldexp(bounded, mantissa - exponent)).astype(np.int64)
    # `units` may carry into the next exponent: adding, not or-ing, the field lets it.
    code = units + np.where(units >= 1 << mantissa, (exponent - least) << mantissa, 0)
    rounded = np.ldexp(units.astype(np.float64), exponent - mantissa)
    top = int(np.frexp(greatest)[1]) - 1
    last = ((top - least + 1) << mantissa) + int(greatest / 2.0 ** (top - mantissa)) - (1 << mantissa)
    beyond = last if bits == 8 else last + 1
    code = np.where(rounded > greatest, beyond, code)
    code = np.where(np.isnan(value), nan, code) | (np.signbit(value).astype(np.int64) << (bits - 1))
    return np.asarray(code.astype(np.uint8 if bits == 8 else np.uint16))


def _convert(original: Callable[..., Array]) -> Callable[..., Array]:
    known = {*_FORMATS, *_NUMPY}

    def convert(data: Array, source: Any, target: Any, rounding: Any) -> Array:
        names = str(source.scalar), str(target.scalar)
        toward_zero = rounding is not None and rounding == host._ir.ROUNDING_MODE.RTZ  # noqa: SLF001
        if toward_zero or not known.issuperset(names):
            return original(data, source, target, rounding)
        return encode(decode(np.ascontiguousarray(data), names[0]), names[1]).reshape(data.shape)

    return convert


def _patch_conversions() -> None:
    host._convert_float = _convert(host._convert_float)  # noqa: SLF001


# --- arithmetic on bf16 ---------------------------------------------------------------------------
def _is_bf16(handle: Any) -> bool:
    return bool(handle.dtype.scalar == tl.bfloat16) and handle.data.dtype == np.uint16


def _widened(handle: Any) -> Any:
    return host.TensorHandle(decode(handle.data, "bf16").astype(np.float32), tl.float32)


def _narrowed(handle: Any) -> Any:
    if handle.data.dtype == np.bool_:
        return host.TensorHandle(handle.data, tl.bfloat16)
    return host.TensorHandle(encode(handle.data.astype(np.float64), "bf16"), tl.bfloat16)


def _patch_integers() -> None:
    """Integers become bf16 by way of f32, which holds all that bf16 does."""
    original = host.InterpreterBuilder.cast_impl

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        if dst_type.scalar == tl.bfloat16 and np.issubdtype(src.data.dtype, np.integer) and not _is_bf16(src):
            return _narrowed(host.TensorHandle(src.data.astype(np.float32), tl.float32))
        return original(self, src, dst_type)

    host.InterpreterBuilder.cast_impl = cast_impl


def _patch_dot() -> None:
    original = host.InterpreterBuilder.create_dot

    def create_dot(self: Any, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        a, b = (_widened(x) if _is_bf16(x) else x for x in (a, b))
        return original(self, a, b, d, *rest)

    host.InterpreterBuilder.create_dot = create_dot


def _patch_arithmetic() -> None:
    builder = host.InterpreterBuilder

    def wrap(name: str, count: int) -> None:
        original = getattr(builder, name)

        def operation(self: Any, *args: Any) -> Any:
            handles = args[:count]
            if not all(_is_bf16(h) for h in handles):
                return original(self, *args)
            return _narrowed(original(self, *map(_widened, handles), *args[count:]))

        setattr(builder, name, operation)

    for name, count in (("binary_op", 2), ("unary_op", 1), ("create_fma", 3)):
        wrap(name, count)
    if not hasattr(builder, "get_bf16"):
        builder.get_bf16 = lambda _, value: host.TensorHandle(
            encode(np.array([value], dtype=np.float64), "bf16"), tl.bfloat16
        )


# --- NaN in max and min ---------------------------------------------------------------------------
def _patch_extremes() -> None:
    builder = host.InterpreterBuilder
    builder.create_maxnumf = lambda self, a, b: self.binary_op(a, b, np.fmax)
    builder.create_minnumf = lambda self, a, b: self.binary_op(a, b, np.fmin)


def _patch_index() -> None:
    """Loop bounds that are block scalars: newer numpy no longer turns a 1-element array into a number."""
    original = host._patch_lang_tensor  # noqa: SLF001 - the interpreter has no public way in

    def patched(tensor: Any, scope: Any) -> None:
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(np.asarray(self.handle.data).reshape(-1)[0]))

    host._patch_lang_tensor = patched  # noqa: SLF001 - as above


def _patch_splat() -> None:
    """A comparison of scalars, whose handle is labelled with the type that was compared."""
    original = host.InterpreterBuilder.create_splat

    def create_splat(self: Any, ret_type: Any, arg: Any) -> Any:
        if getattr(arg.data, "dtype", None) == np.bool_:
            return host.TensorHandle(np.full(ret_type.shape, arg.data, dtype=np.bool_), tl.int1)
        return original(self, ret_type, arg)

    host.InterpreterBuilder.create_splat = create_splat


def _patch_scalars() -> None:
    """Scalar arguments in f32, the type that a launch passes them in."""
    original = host._implicit_cvt  # noqa: SLF001 - the interpreter has no public way in

    def convert(arg: Any) -> Any:
        if isinstance(arg, float):
            return tl.tensor(host.TensorHandle(np.array([arg], dtype=np.float32), tl.float32), tl.float32)
        return original(arg)

    host._implicit_cvt = convert  # noqa: SLF001 - as above


# --- probes: tiny kernels, run through the interpreter whatever the environment says ---------------
def _cast_kernel(x, y, N: tl.constexpr, TO: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    at = tl.arange(0, N)
    tl.store(y + at, tl.load(x + at).to(TO))


def _dot_kernel(x, y, N: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    block = tl.load(x + at)
    tl.store(y + at, tl.dot(block, block))


def _sum_kernel(x, y, N: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    at = tl.arange(0, N)
    block = tl.load(x + at)
    tl.store(y + at, block + block)


def _mask_kernel(x, y, N: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    at = tl.arange(0, N)
    block = tl.load(x + at)
    tl.store(y + at, tl.where((at < 2) & (tl.sum(block) > 0.0), block, 0.0))


def _loop_kernel(x, y, N):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    for k in range(0, N, 2):
        tl.store(y + k, tl.load(x + k))


def _scalar_kernel(y, x):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    tl.store(y + tl.arange(0, 1), 1.0 - x)


def _run(kernel: Callable[..., None], x: torch.Tensor, y: torch.Tensor, *rest: Any) -> torch.Tensor:
    host.InterpretedFunction(kernel)[(1,)](x, y, *rest)
    return y


def _casts_right(to: Any, dtype: torch.dtype, given: tuple[float, ...], right: tuple[float, ...]) -> bool:
    x = torch.tensor(given, dtype=torch.float32)
    y = _run(_cast_kernel, x, torch.zeros(len(given), dtype=dtype), len(given), to)
    return bool((y.float() == torch.tensor(right)).all())


def _bf16_casts() -> bool:
    return _casts_right(tl.bfloat16, torch.bfloat16, (1.00390625, 1.01171875, 0.3, -0.7), (1.0, 1.015625, 0.30078125, -0.69921875))  # fmt: skip


def _integer_casts() -> bool:
    x = torch.tensor([-128, -1, 0, 127], dtype=torch.int8)
    y = _run(_cast_kernel, x, torch.zeros(4, dtype=torch.bfloat16), 4, tl.bfloat16)
    return bool((y.float() == x.float()).all())


def _fp8_casts() -> bool:
    e4m3 = _casts_right(tl.float8e4nv, torch.float8_e4m3fn, (464.0, -1000.0, 1.0625, 1.1875), (448.0, -448.0, 1.0, 1.25))  # fmt: skip
    tiny = _casts_right(tl.float8e4nv, torch.float8_e4m3fn, (2.0**-9, 2.0**-10, 3 * 2.0**-10, 1e-9), (2.0**-9, 0.0, 2.0**-8, 0.0))  # fmt: skip
    e5m2 = _casts_right(
        tl.float8e5, torch.float8_e5m2, (1.125, 1.375, 1e6, -0.3), (1.0, 1.5, 57344.0, -0.3125)
    )
    return e4m3 and tiny and e5m2


def _dots() -> bool:
    x = torch.eye(16, dtype=torch.bfloat16) * 3
    return bool((_run(_dot_kernel, x, torch.zeros(16, 16), 16) == 9 * torch.eye(16)).all())


def _sums() -> bool:
    x = torch.tensor([1.0, -2.0, 3.0, 0.5], dtype=torch.bfloat16)
    return bool((_run(_sum_kernel, x, torch.zeros_like(x), 4) == 2 * x).all())


def _loops() -> bool:
    x = torch.ones(4)
    try:
        return bool((_run(_loop_kernel, x, torch.zeros(4), 4)[::2] == 1).all())
    except Exception:  # noqa: BLE001 - how it fails depends on the versions
        return False


def _masks() -> bool:
    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    try:
        return bool((_run(_mask_kernel, x, torch.zeros(4), 4) == torch.tensor([1.0, 2.0, 0.0, 0.0])).all())
    except Exception:  # noqa: BLE001 - how it fails depends on the versions
        return False


def _scalars() -> bool:
    y = torch.zeros(1)
    host.InterpretedFunction(_scalar_kernel)[(1,)](y, 0.9)
    return bool(y.item() == float(np.float32(1.0) - np.float32(0.9)))


def _handle(*values: float) -> Any:
    return host.TensorHandle(np.array(values, dtype=np.float32), tl.float32)


def _maxima() -> bool:
    builder, nan, one = host.interpreter_builder, _handle(np.nan), _handle(1.0)
    kept = [f(nan, one).data[0] for f in (builder.create_maxnumf, builder.create_minnumf)]
    strict = [f(nan, one).data[0] for f in (builder.create_maximumf, builder.create_minimumf)]
    return not np.isnan(kept).any() and bool(np.isnan(strict).all())


FAULTS: tuple[Fault, ...] = (
    Fault("a cast of f32 to bf16 truncates", _bf16_casts, _patch_conversions),
    Fault("casts to fp8 overflow or round wrongly", _fp8_casts, _patch_conversions),
    Fault("tl.dot multiplies the bit patterns of bf16", _dots, _patch_dot),
    Fault("arithmetic adds the bit patterns of bf16", _sums, _patch_arithmetic),
    Fault("a loop to a bound known at run time raises", _loops, _patch_index),
    Fault("a comparison of scalars becomes a float beside a block", _masks, _patch_splat),
    Fault("integers become bf16 bit by bit", _integer_casts, _patch_integers),
    Fault("scalar arguments keep 64 bits", _scalars, _patch_scalars),
    Fault("tl.maximum keeps a NaN that the device drops", _maxima, _patch_extremes),
)
