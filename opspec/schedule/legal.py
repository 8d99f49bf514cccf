"""Is a tile program legal? Checked after it is made: a fault here is ours, not the user's.

Legal: every variable is assigned before it is read, and not only inside a loop that has ended;
block dimensions of a statement are those of its plan; a fold leaves the dimensions of its variable.
"""

from __future__ import annotations

from typing import assert_never

from opspec.ir.values import Read, Reduce, walk
from opspec.ir.values import Scan as ScanValue
from opspec.schedule.tile import (
    Begin,
    Collapse,
    Combine,
    Fetch,
    Let,
    Locate,
    Loop,
    Multiply,
    Remark,
    Scan,
    Statement,
    Take,
    TileProgram,
    Unroll,
    Var,
    Write,
    assigned,
    values_of,
)


class IllegalTile(AssertionError):
    """A pass made a tile program that can't be printed with one meaning."""


def check_tile(program: TileProgram) -> TileProgram:
    """The program, if it is legal; raises ``IllegalTile``."""
    dims = {d for a in program.axes for d in a.dims}
    _block(program.body, set(), {v.name: v for v in program.vars}, dims)
    return program


def _block(body: tuple[Statement, ...], known: set[str], declared: dict[str, Var], dims: set[str]) -> None:
    for s in body:
        for value in values_of(s):
            for part in walk(value):
                if isinstance(part, Read) and part.name not in known:
                    raise IllegalTile(f"`{part.name}` is read before it is assigned")
                if isinstance(part, Reduce | ScanValue):
                    raise IllegalTile("a reduction inside a block value")
        match s:
            case Loop(body=inner, ahead=ahead):
                own = set(known)
                if ahead is not None:
                    _block((ahead.loads,), own, declared, dims)
                    own |= set(ahead.now)
                _block(inner, own, declared, dims)
            case Unroll(body=inner, kept=kept):
                own = set(known)
                _block(inner, own, declared, dims)
                if not {name for name, _ in kept} <= own:
                    raise IllegalTile(f"of {kept} one has no value to keep")
                known |= {values for _, values in kept}
            case Take(kept=kept) if kept not in known:
                raise IllegalTile(f"`{kept}` is taken from before it is kept")
            case Remark() | Write():
                pass
            case Combine(var=var) | Multiply(var=var, accumulate=True) if var.name not in known:
                raise IllegalTile(f"`{var.name}` is accumulated before it begins")
            case Scan(carry=Var(name=carry)) if carry not in known:
                raise IllegalTile(f"`{carry}` is carried before it begins")
            case Scan(var=var, axes=axes, along=along):
                if var.axes != axes or (along is not None and along not in axes):
                    raise IllegalTile(f"`{var.name}` has dimensions {var.axes}, not {axes}")
                known.add(_assigned(var, declared, dims))
            case Collapse(counted=Var(axes=axes) as counted, var=var) if counted.axes != var.axes:
                raise IllegalTile(f"`{counted.name}` has dimensions {axes}, not {var.axes}")
            case Collapse(var=var, axes=axes, over=over) | Locate(var=var, axes=axes, over=over):
                if tuple(a for a in axes if a not in over) != var.axes:
                    raise IllegalTile(
                        f"`{var.name}` has dimensions {var.axes}, not those of {axes} without {over}"
                    )
                known |= {_assigned(v, declared, dims) for v in assigned(s)}
            case (
                Fetch(var=var)
                | Let(var=var)
                | Begin(var=var)
                | Combine(var=var)
                | Multiply(var=var)
                | Take(var=var)
            ):
                known.add(_assigned(var, declared, dims))
            case _:
                assert_never(s)


def _assigned(var: Var, declared: dict[str, Var], dims: set[str]) -> str:
    if declared.get(var.name) != var:
        raise IllegalTile(f"`{var.name}` is not declared as it is used")
    if not set(var.axes) <= dims:
        raise IllegalTile(f"`{var.name}` has a dimension that no axis of the program gives")
    return var.name
