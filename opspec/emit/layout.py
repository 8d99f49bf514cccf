"""Line breaking in the formatter's way, so that generated files pass it unchanged."""

from __future__ import annotations

import re

WIDTH = 110
OPEN, CLOSE = "([{", ")]}"


# Operators from the loosest to the tightest; operands of one level are broken together.
LEVELS = (
    (" if ", " else "), (" == ", " != ", " <= ", " >= ", " < ", " > "), (" | ",), (" & ",), (" + ", " - "),
    (" * ", " / ", " // ", " % "),
)  # fmt: skip
METHOD = re.compile(r"\)\.\w+\([^()]*\),?")
LABEL = re.compile(r'\s*("[^"]*": |\w+=)?([-+*/%|&<>=!]+ )?')


def fold(line: str, width: int = WIDTH, *, inside: bool = False) -> list[str]:
    """A line, broken at the last call or bracket that closes it if it is too long.

    ``inside``: it stands in brackets, where operators may begin a line without parentheses.
    """
    if len(line) <= width or line.lstrip().startswith("#"):
        return [line]
    if inside and (chain := _chain(line, width)) is not None:
        return chain
    if line.lstrip().startswith("return ") and len(items := split_top(line.lstrip()[7:])) > 1:
        indent = line[: len(line) - len(line.lstrip())]
        each = [f for item in items for f in fold(f"{indent}    {item},", width, inside=True)]
        return [f"{indent}return (", *each, f"{indent})"]
    conditions = _split_at(line.strip()[3:-1], (" and ",)) if line.lstrip().startswith("if ") else []
    # with one operator a call behind it opens; with several each operand has a line
    if len(conditions) > 2 or (len(conditions) == 2 and line[-2:] != "):"):
        indent = line[: len(line) - len(line.lstrip())]
        return [f"{indent}if (", *(f"{indent}    {c}" for c in conditions), f"{indent}):"]
    if " = " in line and (broken := _choice(line, width) or _sum(line, width)) is not None:
        return broken
    start = line.find("(") if line.lstrip().startswith("def ") else _opening(line)
    if start is None:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    head, tail = line[: start + 1], _tail(line, start)
    inner = line[start + 1 : len(line) - len(tail)]
    parts = split_top(inner)
    single = f"{indent}    {inner}"
    call = head[-2:-1].isalnum() or head[:-1].endswith((")", "]", "_"))
    if not call and len(parts) < 2:
        # a comma behind a single parenthesised expression would make it a tuple
        return [head, *fold(single, width, inside=True), f"{indent}{tail}"]
    if (
        call
        and len(single) <= width
        and not (head.lstrip().startswith("def ") and len(parts) > 1 and "*" in parts)
    ):
        return [head, single, f"{indent}{tail}"]
    out = [head]
    for part in parts:
        out += fold(f"{indent}    {part},", width, inside=True)
    return [*out, f"{indent}{tail}"]


def _chain(line: str, width: int) -> list[str] | None:
    """Operands of the loosest operator, one a line, each but the first behind its operator."""
    match = LABEL.match(line)
    start = match.end() if match is not None else 0
    indent = line[: len(line) - len(line.lstrip())]
    for level in LEVELS:
        parts = _split_at(line[start:], level)
        if len(parts) > 1:
            out = fold(line[:start] + parts[0], width, inside=True)
            for part in parts[1:]:
                out += fold(indent + part, width, inside=True)
            return out
    return None


def _choice(line: str, width: int) -> list[str] | None:
    """``name = a if c else b`` in parentheses, in three parts."""
    indent = line[: len(line) - len(line.lstrip())]
    head, _, right = line.partition(" = ")
    parts = _split_at(right, (" if ", " else "))
    if len(parts) < 3 or "(" in head:
        return None
    if len(indent) + 4 + len(right) <= width:
        return [f"{head} = (", f"{indent}    {right}", f"{indent})"]
    broken = [f for part in parts for f in fold(f"{indent}    {part}", width, inside=True)]
    return [f"{head} = (", *broken, f"{indent})"]


def _sum(line: str, width: int) -> list[str] | None:
    """``name = a + b + …`` with one operand a line, in parentheses."""
    indent = line[: len(line) - len(line.lstrip())]
    head, _, right = line.partition(" = ")
    if re.fullmatch(r"\w+ [-+] [\w.]+\(.*\)", right) and len(_split_at(right, (" & ", " + ", " - "))) == 2:
        return None  # a name and one call: the call is broken
    terms = _split_at(right, (" & ",))
    if len(terms) == 2 and terms[1].startswith("& (") and _tail(terms[1], 2) == ")":
        # of two operands the last one opens, if it stands in brackets
        start = f"{head} = {terms[0]} & ("
        if len(start) <= width:
            return [start, *fold(f"{indent}    {terms[1][3:-1]}", width, inside=True), f"{indent})"]
    if len(terms) < 2:
        terms = _split_at(right, (" + ", " - "))
    if len(terms) == 2 and terms[1].endswith(")") and re.match(r"[-+] (\w+ \* )?[\w.]+\(", terms[1]):
        call = terms[1].index("(")
        if _tail(terms[1], call) == ")" and len(f"{head} = {terms[0]} {terms[1][: call + 1]}") <= width:
            return None  # one operator, and a call behind it: the call is broken
    if len(terms) < 2:
        terms = _split_at(right, LEVELS[-1])
        behind = len(terms) == 2 and re.match(r"[\w.]+\(.*\)$", terms[0]) and terms[1][-1].isalnum()
        if not behind and (len(terms) < 3 or not re.match(r"\* \(", terms[-1])):
            return None  # unless a name behind a call keeps that from opening
    if "(" in head:
        return None
    if len(indent) + 4 + len(right) <= width:
        return [f"{head} = (", f"{indent}    {right}", f"{indent})"]
    each = [f for t in terms for f in fold(f"{indent}    {t}", width, inside=True)]
    return [f"{head} = (", *each, f"{indent})"]


def _split_at(text: str, signs: tuple[str, ...]) -> list[str]:
    """Split before the given operators outside brackets; each part keeps its operator."""
    parts, depth, start = [], 0, 0
    quote = ""
    for k, c in enumerate(text):
        if quote or c in "\"'":
            quote = "" if c == quote else quote or c
            continue
        depth += (c in OPEN) - (c in CLOSE)
        if depth == 0 and k > start and text.startswith(signs, k):
            parts.append(text[start:k].strip())
            start = k + 1
    parts.append(text[start:].strip())
    return parts


def _tail(line: str, start: int) -> str:
    """From the bracket that closes the one at ``start`` to the end."""
    depth, quote = 0, ""
    for k in range(start, len(line)):
        if quote or line[k] in "\"'":
            quote = "" if line[k] == quote else quote or line[k]
            continue
        depth += line[k] in OPEN
        depth -= line[k] in CLOSE
        if depth == 0:
            return line[k:]
    return ""


def _opening(line: str) -> int | None:
    """The outermost bracket that stays open until (almost) the end of the line; of a method of a value in
    parentheses, these parentheses."""
    best = None
    first = len(line) - len(line.lstrip())
    if line[first] == "(" and METHOD.fullmatch(_tail(line, first)) and line.rfind("(") >= WIDTH:
        return first
    outer = line.find("(")
    called = outer > 0 and line[first:outer].replace(".", "").isidentifier()
    if called and line.rfind("(") >= WIDTH and METHOD.fullmatch(_tail(line, outer)):
        return outer  # what the method is called on opens, where the method itself begins too far right
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
