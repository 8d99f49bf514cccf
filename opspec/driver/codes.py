"""Every diagnostic code, whichever module registers it, and its page."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module

from opspec.diagnostics import Code, Diagnostic, Failure, codes, register
from opspec.driver.related import related
from opspec.resources import PACKAGE

_REGISTERS = re.compile(r"^\w+ = register\(", re.MULTILINE)

UNKNOWN_CODE = register(
    Code(
        code="OP628",
        title="unknown diagnostic code",
        why="`opspec explain` has a page for each code that a diagnostic can carry.",
        example="opspec explain OP200",
        fix="Copy the code from the diagnostic: it stands in brackets behind `error` or `warning`.",
    )
)


def all_codes() -> dict[str, Code]:
    """All codes by name, in order."""
    for module in registering():
        import_module(module)
    return codes()


@lru_cache(maxsize=1)
def registering() -> tuple[str, ...]:
    """The modules of opspec that register codes, found in their sources; importing them needs no torch."""
    paths = (p for p in sorted(PACKAGE.rglob("*.py")) if _REGISTERS.search(p.read_text(encoding="utf-8")))
    return tuple(".".join((PACKAGE.name, *p.relative_to(PACKAGE).with_suffix("").parts)) for p in paths)


def find_code(name: str) -> Code:
    """The code of that name.

    Raises: Failure that lists near ones.
    """
    known = all_codes()
    if name not in known:
        family = [k for k in known if k[:3] == name[:3]]
        near = get_close_matches(name[:10], list(known), n=3) or family
        hint = f"known: {', '.join(near)}" if near else "codes run from OP101; see docs/diagnostics.md"
        message = f"there is no diagnostic `{name[:20]}`"
        raise Failure(Diagnostic(code=UNKNOWN_CODE, message=message, span=None, help=hint))
    return known[name]


def page(code: Code) -> str:
    """What a code means, why it is one, an example, a fix and what it has to do with, as plain text."""
    from textwrap import wrap

    head = f"{code.severity}[{code.code}]: {sentence(code.title)}"
    parts = [head, "\n".join(wrap(code.why, 100))]
    if code.example:
        parts.append("For example:\n\n" + "\n".join(f"    {line}" for line in code.example.splitlines()))
    if code.fix:
        parts.append("\n".join(wrap(f"Fix: {code.fix}", 100)))
    known = all_codes()
    beside = [f"  {c}  {sentence(known[c].title)}" for c in related(code.code) if c in known]
    if beside:
        parts.append("\n".join(["See also:", *beside]))
    return "\n\n".join(parts)


def sentence(title: str) -> str:
    """A title without its full stop and with a small first letter, unless that is a name."""
    text = title.rstrip(".")
    return text[0].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


PHASES = {
    "1": "Text and files",
    "2": "Names and shapes",
    "3": "Domains and outputs",
    "4": "Values",
    "5": "Kernels and boundaries",
    "6": "Workloads, commands and schedules",
    "7": "Costs, machines, queries and budgets",
    "9": "Faults of opspec itself",
}


def reference() -> str:
    """All pages as one Markdown document."""
    head = "Every message of `opspec` carries a code. `opspec explain OP204` prints the page of one code; this file is"
    parts = [
        "# Diagnostics\n",
        head + "\nmade of the same pages (`python -m tests.docs.update` writes it).\n",
    ]
    phase = ""
    for code in all_codes().values():
        if code.code[2] != phase:
            phase = code.code[2]
            parts.append(f"## OP{phase}xx: {PHASES.get(phase, 'others')}\n")
        parts.append(f"### {code.code}: {sentence(code.title)}\n")
        parts.append(f"{code.why}\n")
        if code.example:
            parts.append(f"```\n{code.example}\n```\n")
        if code.fix:
            parts.append(f"{'A warning. ' if code.severity == 'warning' else ''}Fix: {code.fix}\n")
        if related(code.code):
            parts.append(f"See also {', '.join(related(code.code))}.\n")
    return "\n".join(parts)
