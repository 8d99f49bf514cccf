"""Closed counts of index domains against enumeration, and their shapes where they should be plain."""

from __future__ import annotations

import itertools

import pytest

from opspec.analysis.forms import evaluate
from opspec.analysis.lattice import Domain, Facts, Inexact, count_points, project
from opspec.analysis.lattice.domain import simplify
from opspec.analysis.lattice.pieces import faulhaber
from opspec.ir.integers import Int, dim, floor_div, index, least

L, T, W, P = map(dim, "LTWP")
i, j, k = map(index, "ijk")


def box(x: Int, n: Int) -> list[Int]:
    return [x, n - 1 - x]


def domain(names: str, *constraints: Int) -> Domain:
    return Domain(tuple(names), tuple(simplify(constraints)))


def brute(d: Domain, env: dict[str, int]) -> int:
    points = itertools.product(range(-6, 13), repeat=len(d.indices))
    points = (dict(zip(d.indices, p, strict=True)) for p in points)
    return sum(all(c.evaluate({**env, **p}) >= 0 for c in d.constraints) for p in points)


SHAPES = [{"L": a, "T": b, "W": c, "P": 2} for a in (0, 1, 3, 6) for b in (0, 2, 5) for c in (0, 1, 4)]

DOMAINS = {
    "rectangle": domain("ij", *box(i, L), *box(j, T)),
    "causal, bottom right": domain("ij", *box(i, L), *box(j, T), i + T - L - j),
    "causal, top left": domain("ij", *box(i, L), *box(j, T), i - j),
    "sliding window": domain("ij", *box(i, L), *box(j, T), i - j, W - 1 - (i - j)),
    "window that may be inverted": domain("ij", *box(i, L), *box(j, T), i - j - 2, W - (i - j)),
    "prefix": domain("ij", *box(i, L), *box(j, T), W - 1 - j),
    "sum below a bound": domain("ij", *box(i, L), *box(j, T), W - i - j),
    "slope two": domain("ij", *box(i, L), *box(j, T), 2 * i + W - 3 - j),
    "slope a third": domain("ij", *box(i, L), *box(j, T), i + W - 3 - 3 * j),
    "symbolic slope": domain("ij", *box(i, L), *box(j, T), (W + 1) * i - j),
    "strided window": domain("ij", *box(i, L), *box(j, T), 2 * i + 1 - j, j - 2 * i + W - 2),
    "both kinds of line": domain("ij", *box(i, L), *box(j, T), i - j, W - i - j),
    "minimum as a bound": domain("ij", *box(i, L), *box(j, T), least(i + 1, W) - 1 - j),
    "blocks": domain("ij", *box(i, L), *box(j, T), floor_div(i, Int.of(2)) - j),
    "multiple": domain("i", *box(i, L), W - 2 * i),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_count(name: str):
    form = count_points(DOMAINS[name], Facts())
    for env in SHAPES:
        assert evaluate(form, env) == brute(DOMAINS[name], env), env


@pytest.mark.parametrize(
    "chain",
    [
        domain("ijk", *box(i, L), *box(j, L), *box(k, L), i - j, j - k),
        domain("ijk", *box(i, L), *box(j, T), *box(k, W), i - j, j - k),
        domain("ijk", *box(i, L), *box(j, T), *box(k, W), i - j, i - k, j - k + 1),
    ],
)
def test_chains_of_three(chain: Domain):
    form = count_points(chain, Facts())
    for env in SHAPES[::5]:
        assert evaluate(form, env) == brute(chain, env), env


def test_tetrahedron_is_a_polynomial():
    form = count_points(domain("ijk", *box(i, L), *box(j, L), *box(k, L), i - j, j - k), Facts())
    assert str(form) == "L**3/6 + L**2/2 + L/3"


def test_declared_order_removes_the_maximum():
    facts = Facts(known=(T - L,))
    form = count_points(DOMAINS["causal, bottom right"], facts)
    assert "Max" not in str(form)


def test_unknown_shape_is_refused():
    with pytest.raises(Inexact):
        count_points(domain("ij", *box(i, L), *box(j, T), W - i * j), Facts())
    with pytest.raises(Inexact):
        count_points(domain("ij", i, *box(j, T)), Facts())


def test_coupled_multiples_are_refused():
    with pytest.raises(Inexact):
        count_points(domain("ijk", *box(i, L), *box(j, T), *box(k, W), 2 * i - 3 * j, 3 * j - 5 * k), Facts())


def test_shadow_of_a_triangle():
    shadow = project(DOMAINS["causal, top left"], frozenset("j"), Facts())
    assert str(count_points(shadow, Facts())) == "Min(L, T)"


def test_power_sums():
    for p in range(6):
        total = 0
        for n in range(1, 8):
            total += n**p
            at = sum(q * n**e for e, q in enumerate(faulhaber(p)))
            assert at - (1 if p == 0 else 0) == total


def test_prover_is_sound_on_small_cases():
    facts = Facts(known=(T - L,))
    assert facts.proves(T - L)
    assert facts.proves(2 * T - L)
    assert not facts.proves(L - T)
    assert not facts.proves(T - 1)
    assert facts.proves(T - 1, least=1)
    assert facts.proves(i, [i - j, j])
    assert not facts.proves(i - 1, [i - j, j])
    assert facts.proves(floor_div(T, P) * P - T + P - 1)
    assert facts.quotient(T * P - 1, P) == T - 1
