"""Checks on a function that hold for every call of it."""

from __future__ import annotations

from collections.abc import Mapping

from opspec.diagnostics import Diagnostic
from opspec.frontend import syntax as s
from opspec.frontend.builtins import RESERVED
from opspec.frontend.faults import names
from opspec.frontend.faults import syntax as forms


def check_parameters(function: s.Function, report: list[Diagnostic]) -> None:
    """Report repeated or reserved parameters."""
    seen: dict[str, s.Ident] = {}
    for name in (*function.indices, *function.params, *(b.name for b in function.bindings)):
        if name.text in RESERVED:
            report.append(forms.reserved(name.span, name.text, "a parameter"))
        elif name.text in seen:
            report.append(names.duplicate(name.span, name.text, seen[name.text].span))
        seen.setdefault(name.text, name)


def check_recursion(functions: Mapping[str, s.Function], report: list[Diagnostic]) -> None:
    """Report each circle of calls, once, at its first function."""
    graph = {name: sorted(n for n in calls(f) if n in functions) for name, f in functions.items()}
    order = {name: k for k, name in enumerate(functions)}
    done: set[str] = set()
    for start in functions:
        path: list[str] = []
        stack = [(start, iter(graph[start]))] if start not in done else []
        if stack:
            path.append(start)
        while stack:
            name, rest = stack[-1]
            callee = next(rest, None)
            if callee is None:
                done.add(name)
                stack.pop()
                path.pop()
            elif callee in path:
                circle = path[path.index(callee) :]
                first = circle.index(min(circle, key=order.__getitem__))
                chain = [*circle[first:], *circle[:first], circle[first]]
                report.append(names.recursion(functions[chain[0]].name.span, chain))
            elif callee not in done:
                path.append(callee)
                stack.append((callee, iter(graph[callee])))


def calls(function: s.Function) -> set[str]:
    """Names of the functions that a function calls."""
    return {
        node.name.text
        for expr in (*(b.value for b in function.bindings), function.value)
        for node in s.walk(expr)
        if isinstance(node, s.Call)
    }
