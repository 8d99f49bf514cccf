"""Reductions of a statement: their operands, the matrix product where one fits, empty domains."""

from __future__ import annotations

import math

import numpy as np

from opspec.ir.program import Define
from opspec.ir.values import Reduce, free_indices
from opspec.reference import boxes, pointwise
from opspec.reference.bounded import Bounded, known
from opspec.reference.boxes import Box
from opspec.reference.casts import entering
from opspec.reference.combine import counted, reduce
from opspec.reference.contract import contract, is_raw, operands
from opspec.reference.values import Values


class EmptyDomain(ValueError):
    """A max, min or arg-reduction over nothing that declares no identity."""


class Reductions(Values):
    """``Values``, and what reductions of them give."""

    def fits(self, value: Reduce, box: Box, whole: Box) -> bool:
        """Whether a matrix product needs no array of the whole box, but only of each operand's part."""
        sizes = {a.name: a.size for a in whole.axes}
        parts = operands(value)
        own = [math.prod(sizes[i] for i in free_indices(f) if i in sizes) for f in parts]
        return value.monoid == "sum" and len(parts) == 2 and max(*own, box.points) <= 8 * boxes.LIMIT

    def factors(self, value: Reduce, whole: Box, strict: bool) -> list[Bounded]:
        """The operands that a sum multiplies, rounded as it allows; otherwise its body alone."""
        parts = operands(value) if value.monoid == "sum" else (value.body,)
        found = [self.value(f, whole.indices(), strict) for f in parts]
        if len(parts) == 1:
            return found
        raw = [is_raw(f, self.defines) for f in parts]
        if len(parts) > 2:
            # of several factors an operand is a product, which a format holds no longer: one of three, both of more
            rounded = min(2, len(parts) - 2 + raw.count(False))
            for k in [k for k, stored in enumerate(raw) if stored][: max(rounded - raw.count(False), 0)]:
                raw[k] = False
        return [entering(x, value.using, raw=r) for x, r in zip(found, raw, strict=True)]

    def product(self, value: Reduce, found: list[Bounded], box: Box, whole: Box) -> Bounded | None:
        """The reduction as a matrix product, or None where it is none."""
        if value.monoid != "sum" or len(found) != 2:
            return None
        axes = tuple(range(len(box.axes), len(whole.axes)))
        return contract(found[0], found[1], whole.mask, whole.shape, axes)

    def reduce(self, define: Define, value: Reduce, box: Box, whole: Box, strict: bool) -> Bounded:
        """A reduction at every point of ``box``; ``whole`` has its ranges as further axes."""
        axes = tuple(range(len(box.axes), len(whole.axes)))
        strict = strict or value.monoid in ("argmax", "argmin")
        found = self.factors(value, whole, strict)
        fast = self.product(value, found, box, whole)
        if fast is not None:
            return fast
        body = found[0]
        for x in found[1:]:
            body = pointwise.binary("mul", body, x, precise=strict)
        result = reduce(value.monoid, body, whole.mask, whole.shape, axes)
        if value.monoid in ("sum", "prod", "any", "all"):
            return result
        if value.monoid in ("argmax", "argmin"):
            start = whole.axes[-1].start if len(axes) == 1 else 0
            result = Bounded(result.value + start, result.error)
        nothing = counted(whole.mask, whole.shape, axes) == 0
        if not nothing.any():
            return result
        if value.empty is None:
            domain = np.ones(box.shape, dtype=bool) if box.mask is None else box.mask
            if (nothing & domain).any():
                raise EmptyDomain(f"`{define.origin}`: {value.monoid} over nothing, and no identity declared")
            return result
        return pointwise.select(
            known(nothing.astype(np.int64)), self.value(value.empty, box.indices(), strict), result
        )
