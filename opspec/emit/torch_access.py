"""Index expressions and reads as torch text: views where the indices allow one, gathers where not."""

from __future__ import annotations

from opspec.emit.host import host_int, strip_parens, tuple_text
from opspec.ir.bounds import Facts, domain, equal, prove
from opspec.ir.dtypes import compute_dtype
from opspec.ir.integers import Atom, Datum, Dim, FloorDiv, Greatest, Index, Int, Least, Mod
from opspec.ir.program import Define, Op
from opspec.ir.values import Range, Reduce


class NoFormula(Exception):
    """The spec has a construct that plain torch has no line for; the message names it."""


class TorchAccess:
    """The printer's state, and what it says of indices. ``current`` is the statement that is printed."""

    op: Op
    facts: Facts
    names: dict[str, str]
    current: Define
    guards: int
    body: list[str]
    masked: dict[str, str]

    def fresh(self, base: str) -> str:
        """A name that nothing else has."""
        raise NotImplementedError

    def ranges(self) -> tuple[Range, ...]:
        """All ranges of the current statement, those that it reduces over included."""
        value = self.current.value
        return (*self.current.ranges, *(value.ranges if isinstance(value, Reduce) else ()))

    def upper(self, index: str) -> Int | None:
        """The end of an index of the current statement."""
        return next((r.upper for r in self.ranges() if r.index == index), None)

    def size(self, index: str) -> str:
        """The end of an index as text."""
        upper = self.upper(index)
        if upper is None:
            raise NoFormula(f"index {index}")
        text = host_int(upper, self.names)
        return text if prove(upper, self.facts) else f"max({text}, 0)"

    def same(self, a: Int | None, b: Int) -> bool:
        """Whether two extents are equal for every shape that the op allows."""
        return a is not None and equal(a, b, self.facts)

    def domain(self, define: Define, at: tuple[Int, ...] | None = None) -> tuple[Int, ...]:
        """What must be >= 0 for a point of a statement to be in its domain; at other places where ``at`` says so."""
        lower = [Int.of(Index(r.index)) - r.lower for r in define.ranges if r.lower.constant != 0]
        found = (*define.constraints, *lower)
        if at is None:
            return found
        places = dict(zip(define.indices, at, strict=True))
        return tuple(
            c.substitute(lambda a: places.get(a.name) if isinstance(a, Index) else None) for c in found
        )

    # reads -----------------------------------------------------------------------
    def place(self, name: str, at: list[Int], extents: list[Int], axes: tuple[str, ...]) -> str:
        """``name``, of those extents, indexed so that it broadcasts over ``axes``."""
        found = self.view(name, at, extents)
        if found is None:
            return f"{name}[{', '.join(self._gathered(at, extents, axes))}]" if at else name
        text, own = found
        wanted = [a for a in axes if a in own]
        if wanted != own:
            text = f"{text}.permute({', '.join(str(own.index(a)) for a in wanted)})"
        pattern = [":" if a in own else "None" for a in axes]
        while pattern and pattern[0] == "None":
            pattern.pop(0)
        return f"{text}[{', '.join(pattern)}]" if "None" in pattern else text

    def _gathered(self, at: list[Int], extents: list[Int], axes: tuple[str, ...]) -> list[str]:
        parts = [self.integer(i, axes) for i in at]
        for k, i in enumerate(at):
            # torch reads both branches of a `where`, and what lies outside a domain: keep it inside
            varies = i.index is None and bool(i.free_indices() or i.tensors())
            if varies and (self.guards or self._leaves(i, extents[k])):
                parts[k] = f"({parts[k]}).clamp(0, {host_int(extents[k], self.names, tight=True)} - 1)"
        return parts

    def _leaves(self, i: Int, extent: Int) -> bool:
        """Whether an index without data may leave its axis where only a domain, or nothing, keeps it inside."""
        uppers = {h: self.upper(h) for h in i.free_indices()}
        if i.tensors() or any(u is None for u in uppers.values()):
            return False
        ranges = [Range(index=h, upper=u) for h, u in uppers.items() if u is not None]
        facts = self.facts.extended(domain(ranges))
        return not (prove(i, facts) and prove(extent - 1 - i, facts))

    def view(self, name: str, at: list[Int], extents: list[Int]) -> tuple[str, list[str]] | None:
        """As slices, with axes cut in two or repeated, and which index each axis then is; None for a gather."""
        slices: list[str] = []
        own: list[str] = []
        after = ""
        for i, extent in zip(at, extents, strict=True):
            digits = self.digits(i, extent)
            if digits is not None:
                sizes = tuple_text([self.size(d) for d in digits])
                after += f".unflatten({len(own)}, {sizes})"
                slices.append(":")
                own += digits
                continue
            atom = i.atom
            if isinstance(atom, FloorDiv) and (h := atom.num.index) is not None:
                if not self.same(self.upper(h), extent * atom.den):
                    return None
                after += f".repeat_interleave({host_int(atom.den, self.names)}, dim={len(own)})"
                slices.append(":")
                own.append(h)
                continue
            part = self._slice(i, extent)
            if part is None:
                return None
            slices.append(part[0])
            own.append(part[1])
        if len(set(own)) < len(own):
            return None
        text = name if all(s == ":" for s in slices) else f"{name}[{', '.join(slices)}]"
        return text + after, own

    def _slice(self, i: Int, extent: Int) -> tuple[str, str] | None:
        free = i.free_indices()
        if len(free) != 1 or i.tensors() or (self.guards and i.index is None):
            return None
        (index,) = free
        split, upper = i.affine(free), self.upper(index)
        if split is None or upper is None or split[0].get(index, Int(())).constant != 1:
            return None
        start, stop = split[1], split[1] + upper
        if start.constant == 0 and self.same(upper, extent):
            return ":", index
        return cut(self.bound(start), self.bound(stop)), index

    def digits(self, i: Int, extent: Int) -> list[str] | None:
        """The two indices of ``a * C + b`` where they walk over a whole axis, digit by digit."""
        free = i.free_indices()
        split = i.affine(free) if len(free) == 2 and not i.tensors() else None
        if split is None or split[1].constant != 0:
            return None
        for low in sorted(free):
            (high,) = free - {low}
            count, inner = self.upper(high), self.upper(low)
            if split[0].get(low, Int(())).constant != 1 or count is None or inner is None:
                continue
            if self.same(split[0].get(high, Int(())), inner) and self.same(count * inner, extent):
                return [high, low]
        return None

    def bound(self, value: Int) -> str:
        """An end of a slice."""
        return "" if value.constant == 0 else host_int(value, self.names)

    # integers --------------------------------------------------------------------
    def integer(self, value: Int, axes: tuple[str, ...]) -> str:
        """An integer expression; indices become broadcast aranges."""
        if not value.free_indices() and not value.tensors():
            return host_int(value, self.names, tight=True)
        pieces = []
        for monomial, c in value.terms:
            factors = [] if abs(c) == 1 and monomial else [str(abs(c))]
            for atom, power in monomial:
                factors += [self._atom(atom, axes)] * power
            pieces.append((c < 0, " * ".join(factors)))
        text = ""
        for k, (minus, piece) in enumerate(pieces):
            text += (f"-{piece}" if minus else piece) if k == 0 else f" {'-' if minus else '+'} {piece}"
        return f"({text})" if len(pieces) > 1 else text

    def _atom(self, atom: Atom, axes: tuple[str, ...]) -> str:
        match atom:
            case Index(name):
                return self._arange(name, axes)
            case Datum(tensor, indices):
                return self._datum(tensor, indices, axes)
            case FloorDiv(num, den):
                return f"({self.integer(num, axes)} // {self.integer(den, axes)})"
            case Mod(num, den):
                return f"({self.integer(num, axes)} % {self.integer(den, axes)})"
            case Dim(name):
                return self.names[name]
            case Least(args):
                return self._extreme("minimum", args, axes)
            case Greatest(args):
                return self._extreme("maximum", args, axes)

    def _datum(self, tensor: str, indices: tuple[Int, ...], axes: tuple[str, ...]) -> str:
        declared = self.op.tensor(tensor)
        assert declared is not None
        text = self.place(self.names[tensor], list(indices), list(declared.extents), axes)
        flag = compute_dtype(declared.dtype).kind == "bool"
        return f"{text}.to(torch.int64)" if flag else text

    def _extreme(self, function: str, args: tuple[Int, ...], axes: tuple[str, ...]) -> str:
        def tensor(value: Int) -> str:
            text = self.integer(value, axes)
            known = bool(value.free_indices() or value.tensors())
            return text if known else f"torch.as_tensor({text}, device=device)"

        text = tensor(args[0])
        for other in args[1:]:
            text = f"torch.{function}({text}, {tensor(other)})"
        return text

    def _arange(self, index: str, axes: tuple[str, ...]) -> str:
        text = f"torch.arange({self.size(index)}, device=device)"
        pattern = [":" if a == index else "None" for a in axes]
        while pattern and pattern[0] == "None":
            pattern.pop(0)
        return f"{text}[{', '.join(pattern)}]" if len(pattern) > 1 else text

    def condition(self, constraint: Int, axes: tuple[str, ...]) -> str:
        """Where a constraint holds, as a truth value that broadcasts over ``axes``."""
        text = f"({self.integer(constraint, axes)} >= 0)"
        known = constraint.free_indices() or constraint.tensors()
        return text if known else f"torch.as_tensor({text}, device=device)"

    def masks(self, constraints: tuple[Int, ...], axes: tuple[str, ...]) -> str:
        """The name of where all constraints hold, which gets a line the first time; empty without any."""
        text = " & ".join(dict.fromkeys(self.condition(c, axes) for c in constraints))
        if text and text not in self.masked:
            self.masked[text] = self.fresh("inside")
            self.body.append(f"{self.masked[text]} = {strip_parens(text)}")
        return self.masked[text] if text else ""

    def inside(self, at: list[Int], extents: list[Int], axes: tuple[str, ...]) -> tuple[list[str], list[str]]:
        """Places clamped into their axes, and the tests of whether they lay inside."""
        places, tests = [], []
        for i, extent in zip(at, extents, strict=True):
            place, end = self.integer(i, axes), host_int(extent, self.names, tight=True)
            if not i.free_indices() and not i.tensors():
                place = f"torch.as_tensor({place}, device=device)"
            if i.index is None or not self.same(self.upper(i.index), extent):
                tests.append(f"({place} >= 0) & ({place} < {end})")
                place = f"{place}.clamp(0, {end} - 1)"
            places.append(place)
        return places, tests


def cut(start: str, stop: str, step: str = "") -> str:
    """A slice as the formatter spaces it: tight where its ends are names or numbers."""
    simple = all(part == "" or part.isidentifier() or part.isdigit() for part in (start, stop, step))
    if simple:
        return f"{start}:{stop}" + (f":{step}" if step else "")
    text = f"{start} :" if start else ":"
    text += f" {stop}" if stop else ""
    return text + (f" : {step}" if step else "")
