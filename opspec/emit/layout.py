"""Line breaking in the formatter's way, so that generated files pass it unchanged."""

from __future__ import annotations

WIDTH = 110
OPEN, CLOSE = "([{", ")]}"


def fold(line: str, width: int = WIDTH) -> list[str]:
    """A line, broken at the last call or bracket that closes it if it is too long."""
    if len(line) <= width or line.lstrip().startswith("#"):
        return [line]
    if " = " in line and (broken := _sum(line, width)) is not None:
        return broken
    start = line.find("(") if line.lstrip().startswith("def ") else _opening(line)
    if start is None:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    head, tail = line[: start + 1], _tail(line, start)
    inner = line[start + 1 : len(line) - len(tail)]
    parts = split_top(inner)
    single = f"{indent}    {inner}"
    call = head[:-1].rstrip()[-1:].isalnum() or head[:-1].endswith((")", "]", "_"))
    if not call and len(parts) < 2:
        # a comma behind a single parenthesised expression would make it a tuple
        return [head, single, f"{indent}{tail}"] if len(single) <= width else [line]
    if (
        call
        and len(single) <= width
        and not (head.lstrip().startswith("def ") and len(parts) > 1 and "*" in parts)
    ):
        return [head, single, f"{indent}{tail}"]
    out = [head]
    for part in parts:
        out += fold(f"{indent}    {part},", width)
    return [*out, f"{indent}{tail}"]


def _sum(line: str, width: int) -> list[str] | None:
    """``name = a + b + …`` with one operand a line, in parentheses."""
    indent = line[: len(line) - len(line.lstrip())]
    head, _, right = line.partition(" = ")
    terms = _split_at(right, (" & ",))
    if len(terms) < 2:
        terms = _split_at(right, (" + ", " - "))
    if len(terms) < 2 or "(" in head:
        return None
    if len(indent) + 4 + len(right) <= width:
        return [f"{head} = (", f"{indent}    {right}", f"{indent})"]
    return [f"{head} = (", *(f"{indent}    {t}" for t in terms), f"{indent})"]


def _split_at(text: str, signs: tuple[str, ...]) -> list[str]:
    """Split before the given operators outside brackets; each part keeps its operator."""
    parts, depth, start = [], 0, 0
    for k, c in enumerate(text):
        depth += (c in OPEN) - (c in CLOSE)
        if depth == 0 and k > start and text[k : k + 3] in signs:
            parts.append(text[start:k].strip())
            start = k + 1
    parts.append(text[start:].strip())
    return parts


def _tail(line: str, start: int) -> str:
    """From the bracket that closes the one at ``start`` to the end."""
    depth = 0
    for k in range(start, len(line)):
        depth += line[k] in OPEN
        depth -= line[k] in CLOSE
        if depth == 0:
            return line[k:]
    return ""


def _opening(line: str) -> int | None:
    """The outermost bracket that stays open until (almost) the end of the line."""
    best = None
    depth = 0
    quote = ""
    for k, c in enumerate(line):
        if quote:
            quote = "" if c == quote else quote
            continue
        if c in "\"'":
            quote = c
        elif c in OPEN:
            if depth == 0 and len(_tail(line, k).rstrip(":, ")) and "(" not in _tail(line, k)[1:]:
                best = k
            depth += 1
        elif c in CLOSE:
            depth -= 1
    return best


def split_top(text: str) -> list[str]:
    """Split at commas outside brackets and quotes."""
    parts, depth, quote, current = [], 0, "", ""
    for c in text:
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in OPEN:
            depth += 1
        elif c in CLOSE:
            depth -= 1
        if c == "," and depth == 0 and not quote:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    if current.strip():
        parts.append(current.strip())
    return parts
