"""``cost(op)``: all FLOP and byte terms of an op, for each of its boundaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

import sympy

from opspec.analysis.codes import UNCOUNTED
from opspec.analysis.costs.accesses import Access, crossing, reads_in, written_in
from opspec.analysis.costs.axes import Count
from opspec.analysis.costs.flops import count_flops
from opspec.analysis.costs.images import count_addresses
from opspec.analysis.costs.model import BlockCost, ByteTerm, FlopTerm, OpCost
from opspec.analysis.lattice import Domain, Facts, Inexact, count_points
from opspec.analysis.lattice.symbols import symbol, to_sympy
from opspec.diagnostics import Diagnostic, Failure
from opspec.ir.dtypes import DTYPES, F32, DType, DTypeParam, Storage, choices
from opspec.ir.integers import Int
from opspec.ir.program import Boundary, Define, Kernel, Op, Output
from opspec.ir.values import Range, map_integers


def cost(op: Op, dtypes: Mapping[str, str | DType] | None = None) -> OpCost:
    """The costs of an op in its dims.

    ``dtypes`` fixes dtype parameters; the size of one left free is the symbol ``sizeof(X)``.

    Raises: Failure where a count has no known closed form.
    """
    fixed = tuple(sorted((k, v.name if isinstance(v, DType) else v) for k, v in (dtypes or {}).items()))
    return _cost(op, fixed)


@lru_cache(maxsize=256)
def _cost(op: Op, fixed: tuple[tuple[str, str], ...]) -> OpCost:
    facts = Facts.of(op)
    plain = _canonical(op, facts)
    chosen = {k: DTYPES[v] for k, v in fixed if any(p.name == k for p in op.dtype_params)}
    try:
        flops = count_flops(plain, facts)
        boundaries = {b.name: _Blocks(plain, facts, chosen).costs(b, flops) for b in plain.boundaries}
    except Inexact as reason:
        raise Failure(
            Diagnostic(
                code=UNCOUNTED,
                message=f"no closed form is known for a count in op `{op.name}`: {reason}",
                span=reason.span or op.span,
                help="state the order of the bounds with `require`, or split the domain into simpler statements",
            )
        ) from None
    resolved = tuple(replace(t, dtype=chosen[t.dtype].name) if t.dtype in chosen else t for t in flops)
    return OpCost(
        op=op.name,
        symbols={d: symbol(d) for d in op.dims},
        derived={name: to_sympy(facts.canonical(value), facts) for name, value in op.derived},
        dtypes={k: v.name for k, v in chosen.items()},
        flops=resolved,
        boundaries=boundaries,
    )


class _Blocks:
    """Byte terms of the blocks of one boundary."""

    def __init__(self, op: Op, facts: Facts, chosen: Mapping[str, DType]) -> None:
        self.op, self.facts, self.chosen = op, facts, chosen

    def costs(self, boundary: Boundary, flops: tuple[FlopTerm, ...]) -> tuple[BlockCost, ...]:
        crossed = crossing(boundary.kernels)
        outputs = {d.name: d.output for k in boundary.kernels for d in k.body if d.output is not None}
        defines = {d.name: d for k in boundary.kernels for d in k.body}
        blocks: list[BlockCost] = []
        for kernel in boundary.kernels:
            inside = {d.name for d in kernel.body}
            terms = [*self._reads(kernel, crossed, outputs, defines), *self._writes(kernel, crossed)]
            mine = tuple(t for t in flops if t.statement in inside)
            fixed = tuple(
                replace(t, dtype=self.chosen[t.dtype].name) if t.dtype in self.chosen else t for t in mine
            )
            blocks.append(BlockCost(name=kernel.name, flops=fixed, bytes=tuple(terms)))
        return tuple(blocks)

    def _reads(
        self,
        kernel: Kernel,
        crossed: Mapping[str, tuple[str, Define]],
        outputs: Mapping[str, Output],
        defines: Mapping[str, Define],
    ) -> list[ByteTerm]:
        grouped: dict[str, list[Access]] = {}
        for name, accesses in reads_in(self.op, kernel).items():
            output = outputs.get(name)
            updated = self.op.tensor(name)
            if output is not None and (updated is None or updated.role == "out" or name in defines):
                for a in accesses:
                    grouped.setdefault(output.tensor, []).append(_through(a, output, defines[name]))
            else:
                grouped.setdefault(name, []).extend(accesses)
        terms: list[ByteTerm] = []
        for name, accesses in grouped.items():
            tensor = self.op.tensor(name)
            if tensor is not None:
                counted = count_addresses(accesses, tensor.extents, self.facts)
                terms.append(self._term(kernel, name, "read", counted, tensor.dtype, accesses))
            elif name in crossed:
                define = crossed[name][1]
                counted = self._value_reads(accesses, define)
                terms.append(self._term(kernel, name, "read", counted, define.storage or F32, accesses))
        return terms

    def _value_reads(self, accesses: list[Access], define: Define) -> Count:
        """Addresses of a stored value; a read of its whole domain touches exactly what was written."""
        extents = tuple(r.upper - r.lower for r in define.ranges)
        lowered = [
            Access(
                a.name,
                tuple(e - r.lower for e, r in zip(a.at, define.ranges, strict=True)),
                a.domain,
                a.origin,
                a.clipped,
            )
            for a in accesses
        ]
        return count_addresses(lowered, extents, self.facts)

    def _writes(self, kernel: Kernel, crossed: Mapping[str, tuple[str, Define]]) -> list[ByteTerm]:
        terms: list[ByteTerm] = []
        for name, accesses in written_in(kernel).items():
            tensor = self.op.tensor(name)
            assert tensor is not None, name
            counted = count_addresses(accesses, tensor.extents, self.facts)
            terms.append(self._term(kernel, name, "write", counted, tensor.dtype, accesses))
        for define in kernel.body:
            if define.name in crossed:
                points = Count(count_points(Domain.of(define.ranges, define.constraints), self.facts))
                whole = Access(define.name, (), Domain((), ()), define.origin)
                terms.append(self._term(kernel, define.name, "write", points, define.storage or F32, [whole]))
        return terms

    def _term(
        self,
        kernel: Kernel,
        name: str,
        direction: str,
        counted: Count,
        dtype: Storage,
        accesses: list[Access],
    ) -> ByteTerm:
        return ByteTerm(
            kernel=kernel.name,
            tensor=name,
            direction="read" if direction == "read" else "write",
            elements=counted.value,
            size=self._size(dtype),
            dtype=self.chosen.get(dtype.name, dtype) if isinstance(dtype, DTypeParam) else dtype,
            bound="exact" if counted.exact else "upper",
            why=counted.why,
            statements=tuple(dict.fromkeys(a.origin for a in accesses)),
        )

    def _size(self, dtype: Storage) -> sympy.Expr:
        """Bytes of one element."""
        if isinstance(dtype, DTypeParam):
            dtype = self.chosen.get(dtype.name, dtype)
        widths = {d.bits for d in choices(dtype)}
        if len(widths) == 1:
            return sympy.Rational(widths.pop(), 8)
        return symbol(f"sizeof({dtype.name})")


def _through(access: Access, output: Output, define: Define) -> Access:
    """A read of an output's statement as a read of its tensor."""
    filled = dict(zip(define.indices, access.at, strict=True))
    at = tuple(e.substitute(lambda a: filled.get(a.name) if hasattr(a, "name") else None) for e in output.at)
    return Access(output.tensor, at, access.domain, access.origin, access.clipped)


def _canonical(op: Op, facts: Facts) -> Op:
    """The op with dims that are declared multiples written as such, so that exact quotients cancel."""
    if not facts.multiples:
        return op
    fix: Callable[[Int], Int] = facts.canonical

    def ranged(r: Range) -> Range:
        return replace(r, lower=fix(r.lower), upper=fix(r.upper))

    def defined(d: Define) -> Define:
        return replace(
            d,
            ranges=tuple(map(ranged, d.ranges)),
            constraints=tuple(map(fix, d.constraints)),
            value=map_integers(d.value, fix),
            output=None if d.output is None else replace(d.output, at=tuple(map(fix, d.output.at))),
        )

    return replace(
        op,
        tensors=tuple(replace(t, extents=tuple(map(fix, t.extents))) for t in op.tensors),
        boundaries=tuple(
            replace(b, kernels=tuple(replace(k, body=tuple(map(defined, k.body))) for k in b.kernels))
            for b in op.boundaries
        ),
    )
