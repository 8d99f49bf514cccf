"""A kernel of each kind against torch: `repaired` and `unrepaired` under TRITON_INTERPRET=1, or on the `device`.

Prints what was repaired, if asked to repair, then one line for each check that failed.
"""

import math
import sys

import torch
import triton
import triton.language as tl
from triton.runtime import interpreter
from triton.tools.tensor_descriptor import TensorDescriptor

from opspec.runtime.interpreter import repair

BLOCK = 4096


@triton.jit
def cast(x, y, N: tl.constexpr, TO: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y + at, tl.load(x + at).to(TO))


@triton.jit
def dot(x, y, z, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(x + m[:, None] * K + k[None, :])
    b = tl.load(y + k[:, None] * N + n[None, :])
    tl.store(z + m[:, None] * N + n[None, :], tl.dot(a, b))


@triton.jit
def described_dot(x, y, z, N: tl.constexpr):
    tl.store(
        z + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :], tl.dot(x.load([0, 0]), y.load([0, 0]))
    )


@triton.jit
def extremes(x, y, N: tl.constexpr):
    block = tl.load(x + tl.arange(0, N))
    tl.store(y, tl.max(block, 0))
    tl.store(y + 1, tl.min(block, 0))
    tl.store(y + 2, tl.sum(block, 0))
    tl.store(y + 3 + tl.arange(0, N), tl.maximum(block, 1.0))
    tl.store(y + 3 + N + tl.arange(0, N), tl.maximum(block, 1.0, propagate_nan=tl.PropagateNan.ALL))


@triton.jit
def arithmetic(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    block = tl.load(x + at)
    tl.store(y + at, block * block - block)
    tl.store(y + N + at, tl.where(block < 0, -block, block))


@triton.jit
def scalar(y, x):
    tl.store(y, 1.0 - x)


def every_bf16_tie() -> torch.Tensor:
    codes = torch.arange(2**16).to(torch.int16).view(torch.bfloat16).float()
    finite = codes[torch.isfinite(codes)].unique()
    middle = (finite[1:].double() + finite[:-1].double()) / 2
    return torch.cat([codes, middle.float(), torch.randn(999)])


def fp8_expected(x: torch.Tensor, to: torch.dtype) -> torch.Tensor:
    greatest = torch.finfo(to).max
    return torch.where(torch.isnan(x), x, x.clamp(-greatest, greatest)).to(to)


def check(name: str, found: torch.Tensor, right: torch.Tensor) -> None:
    found, right = found.float(), right.float()
    wrong = ~((found == right) | (found.isnan() & right.isnan()))
    if wrong.any():
        print(f"wrong: {name}: {found[wrong][:4].tolist()} for {right[wrong][:4].tolist()}")


@triton.jit
def halved(x):
    return x / 2


@triton.jit
def quarters(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y + at, halved(halved(tl.load(x + at) + tl.max(tl.load(x + at)))))


def check_shortcuts() -> None:
    """What is left out of the interpreter: no arithmetic for assertions, and one patch of each part of the language."""
    patches, semantic = [], interpreter._patch_lang_core
    interpreter._patch_lang_core = lambda *given: patches.append(given) or semantic(*given)
    was = {name: getattr(tl, name) for name in ("load", "range", "arange")}
    x = torch.arange(8.0)
    try:
        y = torch.empty(8)
        quarters[(4,)](x, y, 8)
    finally:
        interpreter._patch_lang_core = semantic
    check("functions of functions", y, (x + 7) / 4)
    # what `tl.max` is made of sees another module of the language than kernels do
    check("patches", torch.tensor(len(patches) <= 3), torch.tensor(1))
    check(
        "the language as it was", torch.tensor([getattr(tl, n) is f for n, f in was.items()]), torch.ones(3)
    )
    check(
        "overflow", torch.tensor(interpreter.interpreter_builder.options.sanitize_overflow), torch.tensor(0)
    )
    for shape in ([4, 8], [1], [tl.constexpr(2)]):
        block = tl.block_type(tl.pointer_type(tl.int32), shape)
        sides = [int(s) for s in shape]
        found = [
            block.numel,
            *block.shape,
            block == tl.block_type(tl.int32, shape),
            tl.core.tensor(None, block).numel.value,
        ]
        check("block", torch.tensor(found), torch.tensor([math.prod(sides), *sides, 0, math.prod(sides)]))
    for refused in ([], [3]):
        try:
            tl.block_type(tl.int32, refused)
        except (TypeError, ValueError):
            continue
        print(f"wrong: a block of shape {refused}")


def main() -> None:
    if "device" in sys.argv:
        torch.set_default_device("cuda")
    if "repaired" in sys.argv:
        print("repaired:", "; ".join(repair()))
        print("again:", "; ".join(repair()))
    torch.manual_seed(0)
    x = every_bf16_tie()
    y = torch.empty(x.numel(), dtype=torch.bfloat16)
    n = triton.cdiv(x.numel(), BLOCK) * BLOCK
    x, y = torch.nn.functional.pad(x, (0, n - x.numel())), torch.empty(n, dtype=torch.bfloat16)
    cast[(n // BLOCK,)](x, y, BLOCK, tl.bfloat16)
    check("bf16 cast", y, x.bfloat16())
    back = torch.empty(n)
    cast[(n // BLOCK,)](y, back, BLOCK, tl.float32)
    check("bf16 widening", back, y.float())
    for to, dtype in ((tl.float8e4nv, torch.float8_e4m3fn), (tl.float8e5, torch.float8_e5m2)):
        values = torch.arange(256).to(torch.uint8).view(dtype).float()
        ordered = values[torch.isfinite(values)].unique()
        ties = (ordered[1:] + ordered[:-1]) / 2
        given = torch.cat([values, ties, ties * (1 + 2**-20), torch.tensor([464.0, 465, -1000, 1e9, 2**-10])])
        size = triton.next_power_of_2(given.numel())
        given = torch.nn.functional.pad(given, (0, size - given.numel()))
        for source in (given, given.bfloat16(), given.half()):
            narrow = torch.empty(size, dtype=dtype)
            cast[(1,)](source, narrow, size, to)
            check(f"{to} cast from {source.dtype}", narrow, fp8_expected(source.float(), dtype))
        wide = torch.empty(256)
        cast[(1,)](values.to(dtype), wide, 256, tl.float32)
        check(f"{to} widening", wide, values.to(dtype).float())
        a, b, c = torch.randn(16, 32).to(dtype), torch.randn(32, 16).to(dtype), torch.empty(16, 16)
        dot[(1,)](a, b, c, 16, 16, 32)
        check(f"{to} dot", (c - a.float() @ b.float()).abs() < 1e-4, torch.ones(16, 16))
    for dtype in (torch.bfloat16, torch.float16):
        a, b, c = torch.randn(16, 32).to(dtype), torch.randn(32, 16).to(dtype), torch.empty(16, 16)
        dot[(1,)](a, b, c, 16, 16, 32)
        check(f"{dtype} dot", (c - a.float() @ b.float()).abs() < 1e-4, torch.ones(16, 16))
    a, c = torch.randn(16, 16).bfloat16(), torch.empty(16, 16)
    described = TensorDescriptor.from_tensor(a, [16, 16])
    described_dot[(1,)](described, described, c, 16)
    check("dot through descriptors", (c - a.float() @ a.float()).abs() < 1e-4, torch.ones(16, 16))
    nan = float("nan")
    y = torch.empty(11)
    extremes[(1,)](torch.tensor([nan, 3.0, -2.0, 0.5]), y, 4)
    check("NaN in max and min", y, torch.tensor([3, -2, nan, 1, 3, 1, 1, nan, 3, 1, 1]))
    x, y = torch.tensor([1.5, -2.0, 3.0, 0.1]).bfloat16(), torch.empty(8, dtype=torch.bfloat16)
    arithmetic[(1,)](x, y, 4)
    check("bf16 arithmetic", y, torch.cat([x * x - x, x.abs()]))
    y = torch.empty(1)
    scalar[(1,)](y, 0.9)
    check("scalar argument", y, 1 - torch.tensor([0.9]))
    if "repaired" in sys.argv:
        check_shortcuts()


main()
