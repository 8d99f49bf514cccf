"""The registry of codes, and what ends a phase."""

import pytest

from opspec.diagnostics import Code, Diagnostic, Failure, codes, core, register

CODE = Code(code="OP998", title="t", why="w")


def test_a_code_is_registered_once(monkeypatch):
    monkeypatch.setattr(core, "_registry", {})
    assert register(CODE) is CODE
    assert codes() == {"OP998": CODE}
    with pytest.raises(ValueError, match="OP998"):
        register(CODE)


def test_a_failure_carries_its_diagnostics():
    a, b = (Diagnostic(code=CODE, message=m, span=None) for m in ("first", "second"))
    failure = Failure(a, b)
    assert failure.diagnostics == (a, b)
    assert str(failure) == "first; second"
