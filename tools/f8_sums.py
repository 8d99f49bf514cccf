"""What the matrix unit of a GPU loses as it adds products of f8: ``python -m tools.f8_sums``.

Sums of K products of f8e4m3 come in steps: the unit adds up to ``DEPTH`` products, and what it has is then added to an
f32. The errors against float64 are printed in powers of two, as shares of the largest result, of the sum of absolute
terms, and in norm; ``positive`` has operands of one sign, whose losses do not cancel. Needs a GPU with f8 products.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

SIDE = 256


@triton.jit  # type: ignore[untyped-decorator]
def product(a, b, c, K, SIDE: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, DEPTH: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
    """``c`` = ``a @ b.T`` of SIDE rows each, with DEPTH products in the matrix unit at a time."""
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, STEP)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, STEP):
        left = tl.load(a + m[:, None] * K + start + k[None, :])
        right = tl.load(b + n[None, :] * K + start + k[:, None])
        sums = tl.dot(left, right, sums, max_num_imprecise_acc=DEPTH)
    tl.store(c + m[:, None] * SIDE + n[None, :], sums)


def power(x: torch.Tensor) -> str:
    """A number as a power of two."""
    return f"2^{math.log2(float(x)):.1f}" if float(x) > 0 else "0"


def main() -> int:
    """Print the table."""
    if not torch.cuda.is_available():
        print("no GPU: nothing was measured")
        return 1
    torch.manual_seed(0)
    print(f"{torch.cuda.get_device_name()}, triton {triton.__version__}")
    print(f"{'K':>6} {'operands':>9} {'DEPTH':>6} {'of largest':>11} {'of terms':>9} {'in norm':>8}")
    for count in (128, 1024, 8192):
        for signs in ("normal", "positive"):
            a, b = (torch.randn(SIDE, count, device="cuda") for _ in range(2))
            if signs == "positive":
                a, b = a.abs(), b.abs()
            a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
            right = a.double() @ b.double().T
            terms = a.double().abs() @ b.double().abs().T
            for depth in (32, 64, 128):
                c = torch.empty(SIDE, SIDE, device="cuda")
                product[(SIDE // 64, SIDE // 64)](a, b, c, count, SIDE, 64, 128, depth)
                error = (c.double() - right).abs()
                print(
                    f"{count:>6} {signs:>9} {depth:>6} {power(error.max() / right.abs().max()):>11} "
                    f"{power((error / terms).max()):>9} {power(error.norm() / right.norm()):>8}"
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
