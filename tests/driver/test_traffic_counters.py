"""What ``tools.traffic`` reads from the profiler's table and makes of it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tools.traffic import LOADED, READ, TIME, Counted, Derived, launches_in, line, parts  # noqa: E402

HEAD = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'


def table(*rows: tuple[int, str, str, str, str]) -> str:
    return HEAD + "".join(f'"{i}","{k}","{m}","{u}","{v}"\n' for i, k, m, u, v in rows)


def test_launches_are_read_in_their_units():
    found = list(
        launches_in(
            table(
                (0, "_f_k", LOADED, "Mbyte", "2.5"),
                (0, "_f_k", READ, "byte", "1,234,567"),
                (0, "_f_k", TIME, "us", "12.5"),
                (1, "_f_k_merge", LOADED, "Kbyte", "8"),
                (1, "_f_k_merge", READ, "byte", "0"),
                (1, "_f_k_merge", TIME, "ns", "900"),
            )
        )
    )
    assert found[0] == Counted(kernel="_f_k", loaded=2.5e6, read=1234567.0, seconds=pytest.approx(12.5e-6))
    assert found[1].kernel == "_f_k_merge"
    assert found[1].loaded == 8000.0


def test_a_launch_stands_beside_what_was_derived():
    seen = Counted(kernel="_f_k", loaded=11e6, read=2e6, seconds=3e-6)
    text = line("w", seen, Derived(kernel="_f_k", loaded=10e6, read=2e6))
    assert "11.0 MB (+10.0% of traffic)" in text
    assert "2.0 MB (+0.0% of bytes.read)" in text
    assert "of traffic" not in line("w", seen, None)


@pytest.mark.parametrize(
    ("text", "found"),
    [("a.op:f@w", ("a.op", "f", "w")), ("a.op:f", ("a.op", "f", None))],
)
def test_targets_are_taken_apart(text: str, found: tuple[str, str, str | None]):
    assert parts(text) == found
