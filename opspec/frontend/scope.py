"""What names mean while an op is checked: declared names, indices, functions.

``OpScope`` is filled once per op. ``Env`` is the chain of local names inside a
statement or function. ``IndexVar`` is one loop index, whose extent is found while the
statement is read and settled at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from opspec.diagnostics import Diagnostic
from opspec.frontend import syntax as s
from opspec.ir.bounds import Facts
from opspec.ir.dtypes import Storage
from opspec.ir.integers import Int
from opspec.ir.program import Define, ScalarParam, Tensor
from opspec.ir.values import Value
from opspec.source import Span


class Skip(Exception):
    """The construct was reported (or depends on something that was) and is left out."""


@dataclass(slots=True)
class Axis:
    """Where an index stands bare: the extent it gets there, in words and with its place.

    ``weak``: inside an index or bound that is read from a tensor (``offs[e]``), which
    counts only where the index stands bare nowhere else. ``whole``: the extent of an axis that
    it stands on with a factor, of which ``upper`` is the quotient.
    """

    upper: Int
    words: str
    span: Span
    weak: bool = False
    whole: Int | None = None


@dataclass(slots=True, eq=False)
class IndexVar:
    """One loop index of a statement. ``name`` is unique there, ``shown`` is what was written.

    ``conditions`` mention it and may give it its extent; ``extra`` are those that every
    reduction over it takes over (conditions after ``for`` on an index of a function call).
    ``beside``: axes that it stands on with an offset (``n - 1``) or a factor (``2 * n``), for messages.
    ``shared``: a function reduces over it and its value depends on it, so that conditions
    of one do not cut the other.
    """

    name: str
    shown: str
    span: Span
    axes: list[Axis] = field(default_factory=list)
    conditions: list[Int] = field(default_factory=list)
    extra: list[Int] = field(default_factory=list)
    beside: list[Axis] = field(default_factory=list)
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Pack:
    """Several indices under one index parameter: ``mean[h, w](x)`` for ``fn mean[t](x)``."""

    variables: tuple[IndexVar, ...]


Local = IndexVar | Pack | Value


@dataclass(slots=True, eq=False)
class Env:
    """Local names. A ``closed`` environment (a function's) does not see the op's names."""

    names: dict[str, Local]
    parent: Env | None = None
    closed: bool = False
    parameters: frozenset[str] = frozenset()

    def find(self, name: str) -> Local | None:
        """The innermost local of that name."""
        env: Env | None = self
        while env is not None:
            if name in env.names:
                return env.names[name]
            env = None if env.closed else env.parent
        return None

    @property
    def is_closed(self) -> bool:
        """Whether this is inside a function."""
        env: Env | None = self
        while env is not None:
            if env.closed:
                return True
            env = env.parent
        return False

    def is_parameter(self, name: str) -> bool:
        """Whether the innermost binding of the name is an index parameter of a function."""
        env: Env | None = self
        while env is not None:
            if name in env.names:
                return name in env.parameters
            env = None if env.closed else env.parent
        return False

    def visible(self) -> Iterator[str]:
        """All local names that can be seen."""
        env: Env | None = self
        while env is not None:
            yield from env.names
            env = None if env.closed else env.parent

    def inner(self, names: Mapping[str, Local]) -> Env:
        """A nested environment."""
        return Env(dict(names), self)


@dataclass(slots=True, eq=False)
class OpScope:
    """The names of one op, and its facts."""

    name: str
    report: list[Diagnostic]
    functions: Mapping[str, s.Function]
    library: Mapping[str, s.Function] = field(default_factory=dict)
    dims: dict[str, Span] = field(default_factory=dict)
    derived: dict[str, Int] = field(default_factory=dict)
    dtypes: dict[str, Storage] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    scalars: dict[str, ScalarParam] = field(default_factory=dict)
    defines: dict[str, Define] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)
    kernel: str = ""
    written: dict[str, list[Define]] = field(default_factory=dict)
    parts: dict[str, int] = field(default_factory=dict)
    promised: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    # what was reported once for all that it makes wrong
    blamed: set[str] = field(default_factory=set)
    distinct: set[str] = field(default_factory=set)
    facts: Facts = field(default_factory=Facts)
    places: dict[Int, Span] = field(default_factory=dict)
    written_indices: dict[Span, tuple[Span, ...]] = field(default_factory=dict)
    nodes: int = 0

    def fail(self, diagnostic: Diagnostic) -> NoReturn:
        """Report and leave the construct out."""
        self.report.append(diagnostic)
        raise Skip

    def fail_once(self, diagnostic: Diagnostic) -> NoReturn:
        """Report a limit of the op the first time that something goes over it."""
        if diagnostic.message in self.blamed:
            raise Skip
        self.blamed.add(diagnostic.message)
        self.fail(diagnostic)

    def check_index(self, name: s.Name) -> None:
        """Refuse an index whose name already means something where an index can stand."""
        if name.name in self.numbers():
            from opspec.frontend.faults import names

            self.fail(names.taken(name.span, name.name, self.kind_of(name.name), self.place_of(name.name)))

    def kind_of(self, name: str) -> str:
        """What a declared name is, in words."""
        if name in self.dims or name in self.derived:
            return "a dim"
        if name in self.scalars:
            return "a scalar parameter"
        return "a tensor" if name in self.tensors else "a value"

    def place_of(self, name: str) -> Span | None:
        """Where a name is declared."""
        if name in self.dims:
            return self.dims[name]
        declared = self.tensors.get(name) or self.scalars.get(name) or self.defines.get(name)
        return declared.span if declared is not None else None

    def numbers(self) -> set[str]:
        """Names that mean something without ``[ ]``, so that no index can have them."""
        single = {n for n, t in self.tensors.items() if not t.extents}
        single |= {n for n, d in self.defines.items() if not d.ranges and "." not in n}
        return {*self.dims, *self.derived, *self.scalars, *single}

    def names(self) -> set[str]:
        """Every declared name."""
        return {
            *self.dims,
            *self.derived,
            *self.tensors,
            *self.scalars,
            *(n for n in self.defines if "." not in n),
            *self.promised,
        }
