"""Sums, products and hashes of integer polynomials."""

import copy
import itertools
import pickle

from opspec.ir.integers import ONE, ZERO, Int, dim, floor_div, index

I, N = index("i"), dim("N")
SOME = (ZERO, ONE, Int.of(-3), I, -I, I + 1, I * N - 1, N - I, floor_div(I + N, Int.of(4)) + 2, I * I + N)


def test_sums_do_not_depend_on_the_order():
    for a, b, c in itertools.product(SOME, repeat=3):
        assert a + b == b + a
        assert (a + b) + c == a + (b + c)
        assert hash((a + b) - b) == hash(a)
        assert (a + b) - b == a


def test_sums_and_products_have_the_values_of_their_parts():
    env = {"i": 5, "N": 7}
    for a, b in itertools.product(SOME, repeat=2):
        assert (a + b).evaluate(env) == a.evaluate(env) + b.evaluate(env)
        assert (a * b).evaluate(env) == a.evaluate(env) * b.evaluate(env)


def test_a_constant_that_cancels_leaves_no_term():
    assert (I + 3) + -3 == I
    assert len((I + 3 - 3).terms) == 1
    assert (I + 3) + 4 == 7 + I


def test_a_copy_is_equal_and_hashes_alike():
    for value in SOME:
        hash(value)
        for other in (copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert (other, hash(other)) == (value, hash(value))
