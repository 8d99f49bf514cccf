"""Checks on a function that hold for every call of it."""

from __future__ import annotations

from collections.abc import Mapping

from opspec.diagnostics import Diagnostic
from opspec.frontend import syntax as s
from opspec.frontend.builtins import RESERVED
from opspec.frontend.faults import names
from opspec.frontend.faults import syntax as forms


def check_function(
    function: s.Function, functions: Mapping[str, s.Function], report: list[Diagnostic]
) -> None:
    """Report repeated or reserved parameters and recursion."""
    seen: dict[str, s.Ident] = {}
    for name in (*function.indices, *function.params, *(b.name for b in function.bindings)):
        if name.text in RESERVED:
            report.append(forms.reserved(name.span, name.text, "a parameter"))
        elif name.text in seen:
            report.append(names.duplicate(name.span, name.text, seen[name.text].span))
        seen.setdefault(name.text, name)
    chain = _cycle(function.name.text, functions)
    order = list(functions)
    if chain is not None and function.name.text == min(chain, key=order.index):
        report.append(names.recursion(function.name.span, chain))


def calls(function: s.Function) -> set[str]:
    """Names of the functions that a function calls."""
    return {
        node.name.text
        for expr in (*(b.value for b in function.bindings), function.value)
        for node in s.walk(expr)
        if isinstance(node, s.Call)
    }


def _cycle(name: str, functions: Mapping[str, s.Function]) -> list[str] | None:
    """A chain of calls from a function back to itself."""
    previous: dict[str, str] = {}
    queue = [name]
    for current in queue:
        for callee in sorted(calls(functions[current]) & set(functions)):
            if callee == name:
                chain = [name, current]
                while chain[-1] != name:
                    chain.append(previous[chain[-1]])
                return [*reversed(chain[1:]), name] if current != name else [name, name]
            if callee not in previous:
                previous[callee] = current
                queue.append(callee)
    return None
