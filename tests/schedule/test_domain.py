"""Where domains may be empty, and where streams over them start and stop."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from opspec.ir.integers import dim, index
from opspec.ir.values import Binary, Compare, Extent, Literal, Value
from opspec.schedule.domain import nonempty
from opspec.schedule.tile import Loop, Statement, statements

CORPUS = Path(__file__).parents[1] / "emit" / "corpus"
C, K, L, M, I = dim("C"), index("k"), index("l"), index("m"), index("i")


def holds(test: Value, env: dict[str, int]) -> bool:
    match test:
        case Literal(value=value):
            return bool(value)
        case Binary(op="and", a=a, b=b):
            return holds(a, env) and holds(b, env)
        case Compare(op=op, a=Extent(value=a), b=Extent(value=b)):
            x, y = a.evaluate(env), b.evaluate(env)
            return {"ge": x >= y, "gt": x > y, "lt": x < y}[op]
    raise AssertionError(test)


@pytest.mark.parametrize(
    ("over", "constraints"),
    [
        (("k",), (I - K,)),
        (("k", "l"), (L - K - 1,)),
        (("k", "l", "m"), (L - K - 1, M - L - 1)),
        (("k", "l"), (L - K - 3, I - K)),
        (("k", "l"), (I - K, L - K - I - 1)),
        (("k", "l"), (K + L - 2 - I, 3 - K)),
    ],
)
def test_a_domain_is_said_to_have_a_point_exactly_where_it_has_one(over, constraints):
    test = nonempty(over, dict.fromkeys(over, C), constraints)
    assert test is not None
    for size, i in itertools.product(range(6), range(6)):
        points = itertools.product(range(size), repeat=len(over))
        found = any(
            all(c.evaluate({"C": size, "i": i, **dict(zip(over, p, strict=True))}) >= 0 for c in constraints)
            for p in points
        )
        assert holds(test, {"C": size, "i": i}) == found, (size, i)


def test_a_domain_of_multiples_is_not_decided():
    assert nonempty(("k", "l"), {"k": C, "l": C}, (2 * K - L, L - 2 * K + 1)) is None


def bounds_in_scope(body: tuple[Statement, ...], axes: set[str], scope: set[str]) -> bool:
    """Whether each loop runs between integers of loops around it and of programs."""
    for s in body:
        if isinstance(s, Loop):
            used = {i for v in (s.start, s.stop) for i in v.value.free_indices()} & axes
            if not used <= scope or not bounds_in_scope(s.body, axes, scope | {s.axis}):
                return False
    return True


@pytest.mark.parametrize("name", ["pairs_and_triples", "triangle", "strict_triangle", "tree_mask"])
def test_a_stream_ends_at_what_is_known_where_it_begins(plan, name):
    for variant in plan((CORPUS / f"{name}.op").read_text(encoding="utf-8")).variants:
        axes = {a.name for a in variant.program.axes}
        assert list(statements(variant.program.body))
        assert bounds_in_scope(variant.program.body, axes, set(variant.roles.grid))
