"""The error constants of the reference hold for what a GPU computes, and are not idle."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from opspec.reference.bounded import Bounded, known
from opspec.reference.pointwise import binary, unary
from opspec.runtime.device import div_fast, div_near, erf, exp, inverse, one_plus_erf, tanh


@triton.jit
def unary_kernel(x, y, OP: tl.constexpr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + at)
    if OP == "exp":
        r = tl.exp(v)
    elif OP == "exp2":
        r = exp(v)
    elif OP == "log":
        r = tl.log(v)
    elif OP == "log2":
        r = tl.log2(v) * 0.6931471805599453
    elif OP == "sqrt":
        r = tl.sqrt(v)
    elif OP == "rsqrt":
        r = tl.rsqrt(v)
    elif OP == "sin":
        r = tl.sin(v)
    elif OP == "cos":
        r = tl.cos(v)
    elif OP == "erf":
        r = erf(v)
    elif OP == "erf1":
        r = one_plus_erf(v) - 1.0
    elif OP == "tanh":
        r = tanh(v)
    elif OP == "tanh1":
        r = 1.0 - div_fast(2.0, 1.0 + exp(2.0 * v))
    elif OP == "reciprocal":
        r = 1.0 / v
    elif OP == "inverse":
        r = inverse(tl.where(tl.abs(v) < 2.0**-100, 1.0, v))
    elif OP == "div_near":
        r = div_near(v, tl.full([N], 3.0, tl.float32))
    elif OP == "div":
        r = v / 3.1
    else:
        r = tl.div_rn(v, tl.full([N], 3.0, tl.float32))
    tl.store(y + at, r)


FUNCTIONS = {
    "exp": "exp", "exp2": "exp", "log": "log", "log2": "log", "sqrt": "sqrt", "rsqrt": "rsqrt", "sin": "sin",
    "cos": "cos", "erf": "erf", "erf1": "erf", "tanh": "tanh", "tanh1": "tanh", "reciprocal": "reciprocal",
    "inverse": "reciprocal",
}  # fmt: skip


def operands() -> torch.Tensor:
    """Ordinary magnitudes, every exponent, and the special values; 2²⁰ in all."""
    generator = torch.Generator().manual_seed(0)
    count = 1 << 20
    bits = torch.randint(-(2**31), 2**31 - 1, (count // 4,), generator=generator).to(torch.int32)
    wide = bits.view(torch.float32)
    plain = torch.randn(count // 2, generator=generator) * torch.tensor([0.1, 1, 10, 50]).repeat(count // 8)
    near = 1 + torch.randn(count // 4 - 8, generator=generator) * 1e-3
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0, -1.0, 2.0])
    return torch.cat([wide, plain, near, special])


def expected(name: str, x: np.ndarray) -> Bounded:
    if name == "inverse":
        x = np.where(np.abs(x) < 2.0**-100, 1.0, x)
    if name.startswith("div"):
        return binary(
            "div",
            known(x),
            known(np.float64(np.float32(3.1 if name == "div" else 3.0))),
            precise=name != "div",
        )
    return unary(FUNCTIONS[name], known(x))


def excess(name: str, device: str) -> tuple[float, np.ndarray]:
    """The largest error in units of the radius, and the operands beyond it."""
    x = operands().to(device)
    y = torch.empty_like(x)
    unary_kernel[(x.numel() // 1024,)](x, y, name, 1024)
    x, y = x.cpu().double().numpy(), y.cpu().double().numpy()
    bound = expected(name, x)
    radius = np.broadcast_to(bound.error, x.shape)
    with np.errstate(all="ignore"):
        value = np.where(
            np.abs(bound.value) > np.finfo(np.float32).max, np.sign(bound.value) * np.inf, bound.value
        )
        gap = np.abs(y - value)
        alike = (y == value) | (np.isnan(y) & np.isnan(value)) | np.isinf(radius)
        # near the top of the range the rounded result may overflow
        alike |= np.isinf(y) & (np.abs(bound.value) * (1 + 1e-6) > np.finfo(np.float32).max)
        share = np.where(alike, 0.0, np.where(gap == 0, 0.0, gap / radius))
    share = np.where(np.isnan(share), np.inf, share)
    return float(share.max()), x[share > 1]


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*FUNCTIONS, "div", "div_near", "div_rn"])
def test_radius_covers_the_device(name):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    share, beyond = excess(name, "cuda")
    assert share <= 1, f"{name}: {share} times the radius, at {beyond[:5]}"
    assert share > 0.02, f"{name}: the radius is far wider than the error"
