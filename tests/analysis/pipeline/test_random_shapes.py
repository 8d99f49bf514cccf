"""Counts of the attention specs beside enumeration, on 10,000 random shapes each."""

import random
from functools import lru_cache

import numpy as np

from opspec.analysis.forms import closed_form_python
from opspec.analysis.query import query
from opspec.frontend import load
from tests.analysis.pipeline.composing import SPECS

SHAPES = 10_000


@lru_cache(maxsize=8)
def count(path, op):
    """The tensor FLOPs as a Python function of dims, from the closed form."""
    m = load(SPECS / path)
    form = query(m, m.op(op), "flops.tensor").form
    code = compile(closed_form_python(form), "form", "eval")
    return lambda **dims: eval(code, {"max": max, "min": min}, dims)


def shapes(seed):
    rng = random.Random(seed)
    for _ in range(SHAPES):
        T = rng.randint(1, 48)
        yield {"B": rng.randint(1, 5), "T": T, "L": rng.randint(1, T), "D": rng.randint(1, 130)}, rng


def pairs(L, T, W=None):
    ahead = np.arange(L)[:, None] + (T - L) - np.arange(T)[None, :]
    return int(((ahead >= 0) & (ahead < (W if W is not None else T))).sum())


def test_causal_with_grouped_heads():
    f = count("attention/prefill.op", "attention_causal")
    for d, rng in shapes(1):
        Hkv, G = rng.randint(1, 4), rng.randint(1, 8)
        expected = 4 * d["B"] * Hkv * G * d["D"] * pairs(d["L"], d["T"])
        assert f(Hq=Hkv * G, Hkv=Hkv, **d) == expected, d


def test_windows():
    f = count("attention/prefill.op", "attention_window")
    for d, rng in shapes(2):
        H, W = rng.randint(1, 8), rng.randint(1, 60)
        assert f(H=H, W=W, **d) == 4 * d["B"] * H * d["D"] * pairs(d["L"], d["T"], W), (d, W)


def test_grouped_heads_of_decode():
    f = count("attention/decode.op", "decode_gqa")
    for d, rng in shapes(3):
        Hkv, G = rng.randint(1, 4), rng.randint(1, 8)
        d.pop("L")
        assert f(Hkv=Hkv, G=G, **d) == 4 * d["B"] * Hkv * G * d["T"] * d["D"]


def test_ragged_rows():
    f = count("attention/decode.op", "paged_decode")
    for d, rng in shapes(4):
        lengths = [rng.randint(0, d["T"]) for _ in range(d["B"])]
        Hkv, G = rng.randint(1, 4), rng.randint(1, 8)
        points = sum(1 for n in lengths for _ in range(n))
        assert f(Hkv=Hkv, G=G, sum_len=sum(lengths), **d) == 4 * Hkv * G * d["D"] * points
