from __future__ import annotations

from fractions import Fraction

import sympy
from hypothesis import given
from hypothesis import strategies as st

from opspec.analysis.lattice.symbols import largest, symbol
from opspec.analysis.review.forms import crossing, dominant, growth, same

T, G, D = map(symbol, "TGD")


def test_same_sees_through_the_way_it_is_written():
    assert same((T + G) ** 2, T**2 + 2 * T * G + G**2)
    assert same(2 * T * G / (T + G), 2 / (1 / T + 1 / G))
    assert not same(T**2, T**2 + G)
    assert not same(largest(T, G), T)
    assert same(sympy.floor(T / G), sympy.floor(T / G))


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 50))
def test_same_of_random_polynomials(a: int, b: int, c: int):
    form = T**a * G + c * D**b
    assert same(form, sympy.expand(form * (T + 1)) / (T + 1))
    assert not same(form, form + 1)


def test_growth_is_the_exponent_far_out():
    assert growth(3 * T**2 + 1000 * T, "T", {}) == 2
    assert growth(T * G / (T + G), "T", {"G": 8}) == 0
    assert growth(1 / T, "T", {}) == -1
    assert growth(G, "T", {}) == 0
    assert growth(largest(T, sympy.Integer(4)) * sympy.floor(T / 2), "T", {}) == 2
    assert growth(T - T**2, "T", {}) is None


def test_dominant_depends_on_the_shape():
    form = T**2 * D + T * D**2
    assert dominant(form, {"T": 100, "D": 10})[0] == T**2 * D
    assert dominant(form, {"T": 10, "D": 30}) == (T * D**2, 0.75)
    assert dominant(T * D, {"T": 1, "D": 1}) is None


def test_crossings():
    def words(flops, size, dim, ridge, **env):
        return crossing(flops, size, dim, env)(Fraction(ridge))

    assert words(G * T, G + T, "G", "206.125", T=8192) == "compute-bound from 212"
    assert words(G * T, G + T, "G", "206.125", T=200) == "never compute-bound"
    assert words(G * T, G + T, "G", 2, T=10**6) == "compute-bound from 3"
    assert words(T, sympy.Integer(1), "G", 2, T=8) == "always compute-bound"
    assert words(sympy.Integer(100), T, "T", 2) == "memory-bound from 51"
    assert words(sympy.floor(T / 3), sympy.Integer(1), "T", 4) == "compute-bound from 12"
    assert words(largest(T, sympy.Integer(7)), sympy.Integer(1), "T", 8) == "compute-bound from 8"
