"""Device functions on dense grids against float64; ``python device_script.py`` prints the largest errors as JSON.

Errors are in units of the last place of f32, but those of ``one_plus_erf`` in 2**-24.
"""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import torch
import triton
import triton.language as tl

from opspec.runtime import device
from opspec.runtime.device import div_fast, div_near, erf, exp, inverse, one_plus_erf, round_even, tanh

DEVICE = "cuda" if len(sys.argv) > 1 else "cpu"


@triton.jit
def unary(x, y, OP: tl.constexpr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + at)
    if OP == "erf":
        r = erf(v)
    elif OP == "tanh":
        r = tanh(v)
    elif OP == "one_plus_erf":
        r = one_plus_erf(v)
    elif OP == "exp":
        r = exp(v)
    elif OP == "inverse":
        r = inverse(v)
    elif OP == "round_even":
        r = round_even(v)
    elif OP == "third":
        r = div_near(v, tl.full([N], 3.0, tl.float32))
    else:
        r = div_fast(v, tl.full([N], 3.0, tl.float32))
    tl.store(y + at, r)


@triton.jit
def divide(a, b, y, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y + at, div_near(tl.load(a + at), tl.load(b + at)))


@triton.jit
def codes(x, y, z, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y + at, device.to_i8_sat(tl.load(x + at)))
    tl.store(z + at, device.to_f8e4m3_sat(tl.load(x + at)).to(tl.float32))


def run(name: str, x: np.ndarray) -> np.ndarray:
    size = 1 << 16 if DEVICE == "cpu" else 1024
    padded = np.resize(x.astype(np.float32), (len(x) + size - 1) // size * size)
    given = torch.from_numpy(padded).to(DEVICE)
    out = torch.empty_like(given)
    unary[(given.numel() // size,)](given, out, name, size)
    return out.cpu().numpy()[: len(x)].astype(np.float64)


def ulps(found: np.ndarray, right: np.ndarray) -> float:
    _, exponent = np.frexp(np.maximum(np.abs(right), 2.0**-126))
    return float(np.max(np.abs(found - right) / np.ldexp(1.0, exponent - 24)))


def grid(top: float) -> np.ndarray:
    """Even and by exponents, denormals among them, of both signs; ascending."""
    even = np.linspace(0, top, 150_000)
    wide = np.ldexp(
        np.random.default_rng(0).uniform(1, 2, 100_000), np.repeat(np.arange(-149, 1), 667)[:100_000]
    )
    one = np.concatenate([even, wide, [2.0**-149, 2.0**-126]]).astype(np.float32).astype(np.float64)
    return np.unique(np.concatenate([-one, one]))


def main() -> None:
    report: dict[str, object] = {}
    x = grid(12)
    report["erf"] = ulps(run("erf", x), np.vectorize(math.erf)(x))
    report["tanh"] = ulps(run("tanh", x), np.tanh(x))
    right = np.vectorize(lambda v: math.erfc(-v))(x)
    report["one_plus_erf"] = float(np.max(np.abs(run("one_plus_erf", x) - right)) * 2.0**24)
    for name in ("erf", "tanh"):
        found = run(name, x)
        report[f"{name} is odd"] = bool(np.array_equal(found, -found[::-1]))
        report[f"{name} rises"] = bool(np.all(np.diff(found[np.abs(x) > 3]) >= 0))
    special = np.array([0.0, -0.0, math.inf, -math.inf, math.nan])
    for name in ("erf", "tanh", "one_plus_erf", "exp", "inverse", "div_fast", "third", "round_even"):
        found = run(name, special)
        report[f"{name} at the ends"] = [
            "nan" if math.isnan(v) else f"{math.copysign(1, v) * abs(v):g}" for v in found
        ]
    y = np.linspace(-80, 80, 200_001).astype(np.float32).astype(np.float64)
    report["exp"] = float(np.max(np.abs(run("exp", y) / np.exp(y) - 1) / (2 + 2 * np.abs(y))) * 2.0**24)
    far = x[np.abs(x) >= 2.0**-126]
    thirds = run("div_fast", x)
    whole = np.abs(x / 3) >= 2.0**-126  # below that a quotient may be 0
    report["inverse"], report["div_fast"] = (
        ulps(run("inverse", far), 1 / far),
        ulps(thirds[whole], x[whole] / 3),
    )
    report["div_fast is near or 0"] = bool(
        np.all((thirds == 0) | (np.abs(thirds - x / 3) <= np.abs(x) * 2.0**-23 + 2.0**-149))
    )
    halves = np.concatenate(
        [np.arange(-2000.5, 2000, 0.5), 2.0**22 + np.arange(0.5, 9, 0.5), [2.0**23 + 1, 2.0**100]]
    )
    report["round_even"] = ulps(run("round_even", halves), np.rint(halves))
    report["div_near"] = quotients()
    report["codes"] = saturated()
    print(json.dumps(report))


def quotients() -> int:
    """How many quotients of random f32 are not the nearest f32."""
    rng = np.random.default_rng(1)
    a, b = (
        np.ldexp(rng.uniform(1, 2, 1 << 17), rng.integers(-40, 40, 1 << 17)).astype(np.float32)
        for _ in range(2)
    )
    given = [torch.from_numpy(v).to(DEVICE) for v in (a, b)]
    out = torch.empty_like(given[0])
    divide[(1 << 7,)](*given, out, 1024)
    return int((out.cpu().numpy() != a / b).sum())


def saturated() -> list[list[float]]:
    """Codes of ties, of what is beyond either type, and of what is no number."""
    x = [
        -1e30,
        -128.6,
        -2.5,
        -1.5,
        0.5,
        1.5,
        126.5,
        127.5,
        464.0,
        500.0,
        math.inf,
        -math.inf,
        math.nan,
        0.0,
        3.0,
        17.0,
    ]
    given = torch.tensor(x, device=DEVICE)
    y, z = torch.empty(16, dtype=torch.int8, device=DEVICE), torch.empty(16, device=DEVICE)
    codes[(1,)](given, y, z, 16)
    z = torch.where(z.isnan(), torch.full_like(z, -1e6), z)
    return [y.tolist(), z.tolist()]


if __name__ == "__main__":
    if DEVICE == "cpu":
        from opspec.runtime.interpreter import repair

        repair()
    main()
