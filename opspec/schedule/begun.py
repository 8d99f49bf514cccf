"""A sum of block products that begins at what is added to it.

In ``x w + alpha * (t b)`` a second tile as large as the accumulator would wait in registers until the sum is
through. Where it is known before the stream, the sum begins at it instead: one accumulator, and no addition behind.
A row or a column of numbers takes few registers and stays where it is, and so does what is loaded late.
"""

from __future__ import annotations

from dataclasses import replace

from opspec.ir.dtypes import F32
from opspec.ir.values import Binary, Read, Value, walk
from opspec.schedule.tile import (
    Begin,
    Let,
    Loop,
    Multiply,
    Remark,
    Statement,
    TileProgram,
    Var,
    assigned,
    statements,
    values_of,
)


def begin_sums(program: TileProgram) -> TileProgram:
    """The program with such sums begun; the same object where there is none."""
    body = list(program.body)
    for k, s in enumerate(body):
        if isinstance(s, Let) and (found := _sum_and_rest(body, k, s)) is not None:
            summed, rest = found
            return replace(program, body=tuple(_begun(body, k, s, summed, rest)))
    return program


def begun_products(program: TileProgram) -> frozenset[str]:
    """Names of the sums that begin at a tile of their own shape."""
    lets = {s.var.name for s in program.body if isinstance(s, Let)}
    return frozenset(
        s.var.name
        for s in statements(program.body)
        if isinstance(s, Multiply) and s.accumulate and s.var.name in lets
    )


def _sum_and_rest(body: list[Statement], at: int, let: Let) -> tuple[Var, Value] | None:
    """The sum of products that a value is, and what is added to it and known before."""
    value = let.value
    if not isinstance(value, Binary) or value.op != "add" or value.dtype is not F32:
        return None
    for own, rest in ((value.a, value.b), (value.b, value.a)):
        loop = next((k for k, s in enumerate(body) if _sums(s, own)), None)
        if loop is None or loop > at or not isinstance(own, Read):
            continue
        var = next(s.var for s in statements((body[loop],)) if isinstance(s, Multiply) and s.var.name == own.name)
        begins = [k for k, s in enumerate(body[:loop]) if isinstance(s, Begin) and s.var == var]
        reads = {v.name for v in walk(rest) if isinstance(v, Read)}
        tile = any(s.axes == var.axes for s in _vars(body[:loop]) if s.name in reads)
        known = {v.name for v in _vars(body[:loop])}
        others = [s for k, s in enumerate(body) if k != at and any(own.name == n for n in _reads(s))]
        if len(begins) == 1 and let.var.axes == var.axes and tile and reads <= known and not others:
            return var, rest
    return None


def _sums(s: Statement, value: Value) -> bool:
    """Whether a loop does nothing with a sum but add products to it, none of which its domain cuts apart."""
    if not isinstance(s, Loop) or not isinstance(value, Read):
        return False
    inner = list(statements(s.body))
    own = [x for x in inner if value.name in {v.name for v in assigned(x)}]
    products = [x for x in own if isinstance(x, Multiply) and x.accumulate and not x.a.apart + x.b.apart]
    return len(own) == len(products) == 1 and len([c for c in s.carried if c.var.name == value.name]) <= 1


def _vars(body: list[Statement]) -> list[Var]:
    return [v for s in statements(tuple(body)) for v in assigned(s)]


def _reads(s: Statement) -> set[str]:
    inner = (s, *statements(s.body)) if isinstance(s, Loop) else (s,)
    return {v.name for x in inner for value in values_of(x) for v in walk(value) if isinstance(v, Read)}


def _begun(body: list[Statement], at: int, let: Let, summed: Var, rest: Value) -> list[Statement]:
    """The statements with the sum under the name of what it becomes; the spec's line goes where it begins."""
    out: list[Statement] = []
    said = body[at - 1] if at and isinstance(body[at - 1], Remark) else None
    for k, s in enumerate(body):
        if k == at or (s is said and k == at - 1):
            continue
        if isinstance(s, Begin) and s.var == summed:
            out += [said] if said is not None else []
            out.append(Let(var=let.var, value=rest))
        else:
            out.append(_renamed(s, summed, let.var))
    return out


def _renamed(s: Statement, old: Var, new: Var) -> Statement:
    """A statement whose block product adds to ``new``."""
    if isinstance(s, Multiply) and s.var == old:
        return replace(s, var=new)
    if isinstance(s, Loop):
        carried = tuple(replace(c, var=new) if c.var == old else c for c in s.carried)
        return replace(s, body=tuple(_renamed(x, old, new) for x in s.body), carried=carried)
    return s
