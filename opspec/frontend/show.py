"""The syntax tree as indented text, each node with its place; for people and tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from opspec.frontend.syntax import File, Ident
from opspec.source import Source, Span


def show_syntax(file: File) -> str:
    """One line per node: what it is, what it holds, ``line:column``."""
    lines = [f"file {file.source.name}"]
    for item in file.items:
        lines += _node("", item, 1)
    return "\n".join(lines) + "\n"


def _node(label: str, node: object, depth: int) -> Iterator[str]:
    pad = "  " * depth + (f"{label}: " if label else "")
    match node:
        case Ident(text=text):
            yield f"{pad}{text}"
        case tuple():
            if node:
                yield f"{pad.rstrip()}"
            for child in node:
                yield from _node("", child, depth + 1)
        case Span():
            yield f"{pad}{node.text!r}"
        case _ if is_dataclass(node) and not isinstance(node, Source):
            span = getattr(node, "span", None)
            simple: list[str] = []
            nested: list[tuple[str, object]] = []
            for f in fields(node):
                value = getattr(node, f.name)
                if f.name == "span" or value in (None, (), "", False):
                    continue
                if isinstance(value, str | int | float):
                    simple.append(f"{f.name}={value!r}")
                elif isinstance(value, Ident):
                    simple.append(f"{f.name}={value.text}")
                else:
                    nested.append((f.name, value))
            place = ""
            if isinstance(span, Span):
                line, column = span.source.position(span.start)
                place = f"  @{line}:{column}"
            yield f"{pad}{type(node).__name__} {' '.join(simple)}".rstrip() + place
            for name, value in nested:
                yield from _node(name, value, depth + 1)
        case _:
            yield f"{pad}{node}"
