"""The syntax tree: what was written, before any name is looked up.

All nodes are frozen, and each has the span that it was parsed from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal as L

from opspec.source import Source, Span


@dataclass(frozen=True, slots=True)
class Ident:
    """A name where it is written."""

    text: str
    span: Span


# expressions --------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A literal; an ``int`` if it was written without point or exponent."""

    value: int | float
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A bare name."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """``-x``, ``+x`` or ``not x``."""

    op: L["-", "+", "not"]
    x: Expr
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Infix:
    """Two operands and an arithmetic or logical operator."""

    op: L["+", "-", "*", "/", "//", "%", "**", "and", "or"]
    a: Expr
    b: Expr
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Comparisons that share operands: ``a <= b < c``."""

    first: Expr
    rest: tuple[tuple[str, Expr], ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscript:
    """``x[i, j]`` with an optional ``else``."""

    name: Ident
    indices: tuple[Expr, ...]
    otherwise: Expr | None = None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """``n in lo..hi``, half open."""

    index: Expr
    lower: Expr
    upper: Expr
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """``f(a)``, ``sum[j | c] using bf16 (a) else b`` or ``f8e4m3.sat(a)``."""

    name: Ident
    binders: tuple[Expr, ...] | None = None
    conditions: tuple[Expr | Interval, ...] = ()
    using: Ident | None = None
    mode: Ident | None = None
    arguments: tuple[Expr, ...]
    otherwise: Expr | None = None
    span: Span


Expr = Number | Name | Prefix | Infix | Chain | Subscript | Call


# items ----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """``import "other.op"``."""

    path: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeDecl:
    """``dtype X in {bf16, f32}``."""

    name: Ident
    choices: tuple[Ident, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """``let name = value`` in a function or directly in an op."""

    name: Ident
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """``fn name[indices](params)``: bindings, then the value."""

    name: Ident
    indices: tuple[Ident, ...]
    params: tuple[Ident, ...]
    bindings: tuple[Binding, ...]
    value: Expr
    doc: str = ""
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A tensor or scalar in the signature; ``extents`` None for a scalar."""

    name: Ident
    dtype: Ident
    extents: tuple[Expr, ...] | None
    default: Expr | None = None
    inout: bool = False
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class RequireDecl:
    """``require a == b, c``."""

    conditions: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumeDecl:
    """``assume distinct(slot), len[b] <= T``."""

    conditions: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """``name: storage[at] = value for conditions``."""

    name: Ident
    storage: Ident | None
    at: tuple[Expr, ...]
    value: Expr
    conditions: tuple[Expr | Interval, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelBlock:
    """A kernel block: statements and schedule overrides."""

    name: Ident
    statements: tuple[Statement, ...]
    schedule: tuple[tuple[str, str], ...]
    span: Span


OpItem = RequireDecl | AssumeDecl | Binding | DtypeDecl | KernelBlock | Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class OpDecl:
    """An operator: its signature and body."""

    name: Ident
    dims: tuple[Ident, ...]
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    items: tuple[OpItem, ...]
    doc: str = ""
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """``B = 8`` (one case of weight 1) or ``T ~ {512: 0.3, 2048: 0.7}``, as (value, weight).

    ``listed``: ``len ~ [512, 80]``, ``averaged``: ``len ~ mean 512``; ``recorded``: ``(B, T) ~ "file.csv"``,
    where ``joint`` are the names after the first and ``path`` is the file.
    """

    name: Ident
    cases: tuple[tuple[Expr, Expr | None], ...]
    kind: L["fixed", "spread", "listed", "averaged", "recorded"] = "fixed"
    joint: tuple[Ident, ...] = ()
    path: str = ""
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadDecl:
    """``workload name for op { … }``."""

    name: Ident
    op: Ident
    settings: tuple[Setting, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectDecl:
    """``expect workload { … }``, each condition a span."""

    workload: Ident
    budgets: tuple[Span, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryDecl:
    """``boundary name of op { kernel a { x, y } … }``."""

    name: Ident
    op: Ident
    analysis: bool
    groups: tuple[tuple[Ident, tuple[Ident, ...]], ...]
    span: Span


# pipelines, evidence, machines ---------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number with an optional unit, not yet read: ``0.55 ms``, ``2.5 TB/s``, ``32``."""

    number: str
    unit: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """``measured "where"`` or ``from "file.json"`` (then ``word`` is ``from``)."""

    word: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class StageDecl:
    """``stage name = …``: ``times`` holds one duration, or two for ``of`` (each) and ``..`` (span); an op that
    runs may leave its own out.

    ``new``: written ``new stage``, one that a variant adds.
    """

    name: Ident
    new: bool = False
    kind: L["plain", "each", "span", "op"]
    count: Measure | None
    times: tuple[Measure, ...]
    op: Ident | None = None
    workload: Ident | None = None
    boundary: Ident | None = None
    machine: Ident | None = None
    origin: Origin | None = None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineDecl:
    """``pipeline name { … }``."""

    name: Ident
    stages: tuple[StageDecl, ...]
    overlaps: tuple[tuple[Ident, ...], ...]
    walls: tuple[Measure, ...]
    machines: tuple[Ident, ...]
    doc: str = ""
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantDecl:
    """``variant name of pipeline { … }``."""

    name: Ident
    pipeline: Ident
    stages: tuple[StageDecl, ...]
    doc: str = ""
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDecl:
    """``failure = "…"``, ``world failure = "…"``."""

    name: Ident
    world: bool
    texts: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputedDecl:
    """``op @ workload: query``, the query a span."""

    op: Ident
    workload: Ident
    query: Span
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLine:
    """A condition and its words."""

    condition: Expr
    label: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceDecl:
    """``evidence name for pipeline.variant { … }``."""

    name: Ident
    pipeline: Ident
    variant: Ident
    rows: tuple[RowDecl, ...]
    numbers: tuple[RecomputedDecl, ...]
    gate: tuple[GateLine, ...]
    doc: str = ""
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineValueDecl:
    """``memory.bandwidth = 2.5 TB/s asserted "…"``."""

    key: str
    value: Measure
    dense: bool
    origin: Origin
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDecl:
    """``machine name like other { … }``."""

    name: Ident
    like: Ident | None
    values: tuple[MachineValueDecl, ...]
    doc: str = ""
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerDecl:
    """``ledger name for workload.dim { … }``, entries as (name, tokens)."""

    name: Ident
    workload: Ident
    dim: Ident
    entries: tuple[tuple[Ident, Expr], ...]
    doc: str = ""
    span: Span


Composed = PipelineDecl | VariantDecl | EvidenceDecl | MachineDecl | LedgerDecl
Item = Import | DtypeDecl | Function | OpDecl | WorkloadDecl | ExpectDecl | BoundaryDecl | Composed


@dataclass(frozen=True, slots=True)
class File:
    """One parsed file; ``complete`` is False where an item was dropped for a syntax error."""

    source: Source
    doc: str
    items: tuple[Item, ...]
    complete: bool = field(default=True)


def parts(expr: Expr | Interval) -> tuple[Expr | Interval, ...]:
    """The expressions directly inside one, in order of writing."""
    match expr:
        case Number() | Name():
            return ()
        case Prefix(x=x):
            return (x,)
        case Infix(a=a, b=b):
            return (a, b)
        case Chain(first=first, rest=rest):
            return (first, *(x for _, x in rest))
        case Subscript(indices=indices, otherwise=otherwise):
            return indices if otherwise is None else (*indices, otherwise)
        case Interval(index=index, lower=lower, upper=upper):
            return (index, lower, upper)
        case Call(binders=binders, conditions=conditions, arguments=arguments, otherwise=otherwise):
            tail = () if otherwise is None else (otherwise,)
            return (*(binders or ()), *conditions, *arguments, *tail)


def walk(expr: Expr | Interval) -> Iterator[Expr | Interval]:
    """The expression and all inside it."""
    yield expr
    for part in parts(expr):
        yield from walk(part)
