"""A sum of block products that begins at what is added to it.

In ``x w + alpha * (t b)`` a second tile as large as the accumulator would wait in registers until the sum is
through. Where it needs nothing of the sum, the sum begins at it instead: one accumulator, and no addition behind.
A row or a column of numbers takes few registers and stays where it is, and so does what is loaded late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from opspec.ir.dtypes import F32
from opspec.ir.values import Binary, Read, Value, walk
from opspec.schedule.tile import (
    Begin,
    Fetch,
    Let,
    Loop,
    Multiply,
    Statement,
    TileProgram,
    Var,
    Write,
    assigned,
    statements,
    values_of,
)


def begin_sums(program: TileProgram) -> TileProgram:
    """The program with such sums begun; the same object where there is none."""
    body = list(program.body)
    for k, s in enumerate(body):
        if isinstance(s, Let) and (found := _sum_and_rest(body, k, s)) is not None:
            return replace(program, body=tuple(_begun(body, s, *found)))
    return program


def begun_products(program: TileProgram) -> frozenset[str]:
    """Names of the sums that begin at a tile of their own shape."""
    lets = {s.var.name for s in program.body if isinstance(s, Let)}
    return frozenset(
        s.var.name
        for s in statements(program.body)
        if isinstance(s, Multiply) and s.accumulate and s.var.name in lets
    )


def _sum_and_rest(body: list[Statement], at: int, let: Let) -> tuple[Loop, Var, Value] | None:
    """The stream of the sum of products that a value is, the sum, and what is added to it and needs nothing of it."""
    value = let.value
    if not isinstance(value, Binary) or value.op != "add" or value.dtype is not F32:
        return None
    for own, rest in ((value.a, value.b), (value.b, value.a)):
        loop = next((s for s in body[:at] if _sums(s, own)), None)
        if not isinstance(loop, Loop) or not isinstance(own, Read):
            continue
        var = next(v for v in _vars((loop,)) if v.name == own.name)
        reads = {v.name for v in walk(rest) if isinstance(v, Read)}
        tiles = {v.name for v in _vars(body[:at]) if v.name in reads and v.axes == var.axes and v != var}
        # what is loaded late comes when it is used, and what is used again stays in registers anyhow
        loaded = {s.var.name for s in body if isinstance(s, Fetch)}
        kept = any(_reads(s) & tiles for s in body[at + 1 :])
        begins = [s for s in body if isinstance(s, Begin) and s.var == var]
        used = any(own.name in _reads(s) for s in body if s is not let)
        if (
            tiles
            and not tiles & loaded
            and not kept
            and let.var.axes == var.axes
            and not used
            and len(begins) == 1
        ):
            return loop, var, rest
    return None


def _sums(s: Statement, value: Value) -> bool:
    """Whether a loop does nothing but add products to a sum, none of which its domain cuts apart."""
    if not isinstance(s, Loop) or not isinstance(value, Read) or len(s.carried) > 1:
        return False
    inner = list(statements(s.body))
    own = [x for x in inner if value.name in {v.name for v in assigned(x)}]
    products = [x for x in own if isinstance(x, Multiply) and x.accumulate and not x.a.apart + x.b.apart]
    return len(own) == len(products) == 1 and not any(isinstance(x, Write) for x in inner)


def _vars(body: Iterable[Statement]) -> list[Var]:
    return [v for s in statements(tuple(body)) for v in assigned(s)]


def _reads(s: Statement) -> set[str]:
    inner = (s, *statements(s.body)) if isinstance(s, Loop) else (s,)
    return {v.name for x in inner for value in values_of(x) for v in walk(value) if isinstance(v, Read)}


def _begun(body: list[Statement], let: Let, loop: Loop, summed: Var, rest: Value) -> Iterator[Statement]:
    """The statements with the sum under the name of what it becomes, its stream behind where it begins."""
    for s in body:
        if s is let:
            yield Let(var=let.var, value=rest)
            yield _renamed(loop, summed, let.var)
        elif s is not loop and not (isinstance(s, Begin) and s.var == summed):
            yield s


def _renamed(s: Statement, old: Var, new: Var) -> Statement:
    """A statement whose block product adds to ``new``."""
    if isinstance(s, Multiply) and s.var == old:
        return replace(s, var=new)
    if isinstance(s, Loop):
        carried = tuple(replace(c, var=new) if c.var == old else c for c in s.carried)
        return replace(s, body=tuple(_renamed(x, old, new) for x in s.body), carried=carried)
    return s
