"""What the longest call into SymPy takes: all that ships in the slow form."""

from __future__ import annotations

import pytest
import sympy

from tests.cli.conftest import ROOT
from tools.sympy_calls import REWRITES, main, watching


def test_calls_are_found_and_the_functions_put_back(capsys):
    before = [getattr(sympy, n) for n in REWRITES]
    assert main([str(ROOT / "specs/gemm/batched_matmul.op"), "--random", "3"]) in (0, 1)
    assert "calls; the longest: sympy." in capsys.readouterr().out
    assert [getattr(sympy, n) for n in REWRITES] == before


def test_the_longest_one_is_kept_with_whose_it_is():
    x = sympy.Symbol("x")
    with watching() as timer:
        timer.whose = "small"
        sympy.cancel(x / x)
        timer.whose = "large"
        sympy.expand((x + 1) ** 300)
        assert sympy.Poly(x + 1, x).degree() == 1
    assert (timer.longest.whose, timer.longest.name) == ("large", "expand")
    assert timer.count == 3


@pytest.mark.slow
def test_no_call_takes_a_second_of_cpu():
    assert main([]) == 0
