"""Checks a document against a JSON schema: the part of draft 2020-12 that our own schemas use.

A keyword that is not known here raises, so that a schema can't quietly ask for more than is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),),
    "number": (int, float), "integer": (int,),
}  # fmt: skip
_WORDS = {"$schema", "$id", "$defs", "title", "description"}


def faults(value: Any, schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(place, what is wrong) for everything that does not fit; places look like ``results[0].cost``."""
    yield from _check(value, schema, "", schema)


def _check(value: Any, schema: dict[str, Any], at: str, root: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for keyword, wanted in schema.items():
        match keyword:
            case "$ref":
                yield from _check(value, root["$defs"][wanted.removeprefix("#/$defs/")], at, root)
            case "type":
                names = [wanted] if isinstance(wanted, str) else wanted
                if not any(_is(value, n) for n in names):
                    yield at, f"is no {' or '.join(names)}"
                    return
            case "const":
                if value != wanted:
                    yield at, f"is not {wanted!r}"
            case "enum":
                if value not in wanted:
                    yield at, f"is none of {', '.join(map(str, wanted))}"
            case "required":
                for name in wanted:
                    if isinstance(value, dict) and name not in value:
                        yield at, f"lacks `{name}`"
            case "properties":
                for name, inner in wanted.items():
                    if isinstance(value, dict) and name in value:
                        yield from _check(value[name], inner, f"{at}.{name}".lstrip("."), root)
            case "additionalProperties":
                for name in value if isinstance(value, dict) else ():
                    if name not in schema.get("properties", {}):
                        if wanted is False:
                            yield at, f"has an unknown `{name}`"
                        elif isinstance(wanted, dict):
                            yield from _check(value[name], wanted, f"{at}.{name}".lstrip("."), root)
            case "items":
                for k, item in enumerate(value if isinstance(value, list) else ()):
                    yield from _check(item, wanted, f"{at}[{k}]", root)
            case "minimum" | "exclusiveMinimum":
                low = isinstance(value, int | float) and not isinstance(value, bool) and value < wanted
                if low or (keyword == "exclusiveMinimum" and value == wanted):
                    yield at, f"is not {'at least' if keyword == 'minimum' else 'above'} {wanted}"
            case "maximum":
                if isinstance(value, int | float) and value > wanted:
                    yield at, f"is above {wanted}"
            case "minItems" | "maxItems":
                if (
                    isinstance(value, list)
                    and (len(value) < wanted) == (keyword == "minItems")
                    and len(value) != wanted
                ):
                    yield at, f"has {len(value)} items"
            case "oneOf" | "anyOf":
                found = [list(_check(value, s, at, root)) for s in wanted]
                if all(found):
                    yield min(found, key=lambda f: (-max(len(place) for place, _ in f), len(f)))[0]
            case "allOf":
                for inner in wanted:
                    yield from _check(value, inner, at, root)
            case _:
                if keyword not in _WORDS:
                    raise ValueError(f"the schema keyword {keyword!r} is not known")


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name]) or (
        name == "integer" and isinstance(value, float) and value.is_integer()
    )
