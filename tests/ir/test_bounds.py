"""Proofs are checked against enumeration: what is proven holds at every small size."""

import itertools
import random

import pytest

from opspec.ir import bounds
from opspec.ir.bounds import Facts
from opspec.ir.integers import Datum, Int, dim, floor_div, greatest, index, least, mod
from opspec.ir.values import Range

i, j, N, M, K = index("i"), index("j"), dim("N"), dim("M"), dim("K")


def ranges(**upper: Int) -> tuple[Range, ...]:
    return tuple(Range(index=n, upper=u) for n, u in upper.items())


def known(*constraints: Int, multiples: tuple[tuple[str, Int], ...] = (), **upper: Int) -> Facts:
    return Facts(multiples=multiples).extended(bounds.domain(ranges(**upper), constraints))


@pytest.mark.parametrize(
    ("goal", "facts"),
    [
        (N - 1 - i, known(i=N)),
        (N * M - 1 - i * M - j, known(i=N, j=M)),
        (i - j, known(i - j, i=N, j=N)),
        (N - 1 - j, known(i - j, i=N)),
        (N - 1 - floor_div(i, Int.of(2)), known(i=2 * N)),
        (N - 1 - mod(i - 3, N), known(i=M, j=N)),
        (mod(i - 3, N), known(i=N)),
        (N - 1 - least(i + 1, N - 1), known(i=N)),
        (greatest(i - 1, Int.of(0)), known(i=N)),
        (M - N + i, known(M - N, i=N)),
        (N * M - i * j, known(i=N, j=M)),
        (N - 1 - M * floor_div(i, M), known(M - 1, i=N)),
        (M * floor_div(i, M) + M - 1 - i, known(M - 1, i=N)),
    ],
)
def test_provable(goal: Int, facts: Facts):
    assert bounds.prove(goal, facts)


@pytest.mark.parametrize(
    ("goal", "facts"),
    [
        (N - 2 - i, known(i=N)),
        (i - 1, known(i=N)),
        (i - j, known(i=N, j=N)),
        (M - N, known(i=N, j=M)),
        (N - 1, known(i=M)),
        (N - 1 - 2 * i, known(i=N)),
        (-Int.of(1), known(i=N)),
        (N - 2 - M * floor_div(i, M), known(M - 1, i=N)),
        (M * floor_div(i, M) + M - 2 - i, known(M - 1, i=N)),
    ],
)
def test_not_provable(goal: Int, facts: Facts):
    assert not bounds.prove(goal, facts)


def test_a_divisible_dim_is_a_multiple():
    half = floor_div(N, Int.of(2))
    facts = known(i=half, multiples=(("N", 2 * half),))
    assert bounds.equal(N, 2 * half, facts)
    assert bounds.prove(N - 1 - (i + half), facts)
    assert not bounds.prove(N - 2 - (i + half), facts)


def test_grouped_heads():
    group = floor_div(N, M)
    facts = known(i=N, multiples=(("N", M * group),))
    assert bounds.prove(M - 1 - floor_div(i, group), facts)


def test_bounds_on_data():
    length = Int.of(Datum("len", (index("b"),)))
    promise = bounds.DataBound("len", ("e",), N - Int.of(Datum("len", (index("e"),))))
    facts = Facts(data=(promise,)).extended(bounds.domain(ranges(b=M), (length - 1 - i,)))
    assert bounds.prove(N - 1 - i, facts)
    assert not bounds.prove(N - 2 - i, facts)


def _random_int(rng: random.Random, names: list[Int], depth: int) -> Int:
    if depth == 0 or rng.random() < 0.3:
        return rng.choice([*names, Int.of(rng.randint(-3, 3))])
    a, b = _random_int(rng, names, depth - 1), _random_int(rng, names, depth - 1)
    kind = rng.randrange(8)
    if kind < 3:
        return a + b
    if kind < 5:
        return a - b
    if kind == 5:
        return a * rng.choice([Int.of(2), Int.of(-1), N])
    if kind == 6:
        return least(a, b) if rng.random() < 0.5 else greatest(a, b)
    den = Int.of(rng.randint(2, 3))
    return floor_div(a, den) if rng.random() < 0.5 else mod(a, den)


def test_random_proofs_hold_by_enumeration():
    rng = random.Random(11)
    proven = 0
    for _ in range(1500):
        goal = _random_int(rng, [i, j, N, M], 3)
        constraints = tuple(_random_int(rng, [i, j, N, M], 1) for _ in range(rng.randint(0, 2)))
        facts = known(*constraints, i=N, j=M)
        if not bounds.prove(goal, facts):
            continue
        proven += 1
        for n, m in itertools.product(range(1, 5), repeat=2):
            for a, b in itertools.product(range(n), range(m)):
                env = {"N": n, "M": m, "i": a, "j": b}
                if all(c.evaluate(env) >= 0 for c in constraints):
                    assert goal.evaluate(env) >= 0, (str(goal), env)
    assert proven > 200


def test_elimination_is_the_projection():
    rng = random.Random(5)
    for _ in range(200):
        constraints = [j, M - 1 - j] + [
            rng.choice([1, -1]) * j + rng.choice([i, -i, Int.of(0)]) + rng.randint(-3, 3)
            for _ in range(rng.randint(0, 2))
        ]
        left, exact = bounds.eliminate("j", constraints)
        assert exact
        for m, a in itertools.product(range(1, 5), range(6)):
            some = any(
                all(c.evaluate({"M": m, "i": a, "j": b}) >= 0 for c in constraints) for b in range(-1, m + 1)
            )
            assert some == all(c.evaluate({"M": m, "i": a}) >= 0 for c in left)


def test_counts_are_those_of_enumeration():
    rng = random.Random(3)
    for _ in range(200):
        constraints = [j, M - 1 - j] + [
            rng.choice([i - j, i - j + 2, j - i, j - 1, M - 3 - j]) for _ in range(rng.randint(0, 2))
        ]
        size = bounds.count("j", constraints, Facts())
        assert size is not None
        for m, a in itertools.product(range(1, 6), range(6)):
            points = sum(
                all(c.evaluate({"M": m, "i": a, "j": b}) >= 0 for c in constraints) for b in range(m)
            )
            assert size.evaluate({"M": m, "i": a}) == points, ([str(c) for c in constraints], str(size))


def test_proofs_are_bounded_work():
    names = [index(f"a{k}") for k in range(12)]
    goal = sum((n * names[(k + 1) % 12] for k, n in enumerate(names)), Int(())) - dim("Z")
    facts = Facts().extended(bounds.domain([Range(index=f"a{k}", upper=dim(f"D{k}")) for k in range(12)]))
    assert not bounds.prove(goal, facts)
