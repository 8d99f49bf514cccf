"""What a formula returns: whole values, and tensors that statements fill part by part."""

from __future__ import annotations

from opspec.emit.formula_reductions import WIDTH, Reductions
from opspec.emit.host import host_int, tuple_text
from opspec.emit.torch_access import NoFormula, cut
from opspec.emit.torch_casts import TORCH, packed
from opspec.ir.dtypes import F32, I4, DTypeParam
from opspec.ir.integers import Int
from opspec.ir.program import Define, Tensor


class Results(Reductions):
    """The end of a formula."""

    def result(self, tensor: Tensor, parts: list[Define]) -> str:
        """The text of a result, from the statements that write it."""
        name = self._whole(tensor, parts[0]) if len(parts) == 1 else None
        if name is None:
            name = self._filled(tensor, parts)
        if tensor.dtype == I4:
            count = host_int(tensor.extents[-1], self.names, tight=True)
            made = self.fresh(f"{tensor.name}_packed")
            self.body += [f"{made} = {name}", *packed(made, count)]
            return made
        dtype = self._dtype(tensor)
        return f"{name}.to({dtype})" if dtype else name

    def _whole(self, tensor: Tensor, define: Define) -> str | None:
        """The statement's value as the result, if it gives every element and each index or two are an axis."""
        assert define.output is not None
        self.current = define
        if tensor.role == "inout" and self.domain(define):
            return None
        order: list[str] = []
        joined = False
        for i, extent in zip(define.output.at, tensor.extents, strict=True):
            digits = self.digits(i, extent)
            if digits is not None:
                order += digits
                joined = True
            elif i.index is not None and self.same(self.upper(i.index), extent):
                order.append(i.index)
            else:
                return None
        if len(set(order)) < len(order) or set(order) != set(define.indices):
            return None
        name, axes = self.var[define.name]
        own = [i for i in order if i in axes]
        if list(axes) != own:
            name = f"{name}.permute({', '.join(str(axes.index(i)) for i in own)})"
        if len(own) < len(order):
            name = f"{name}[{', '.join(':' if i in axes else 'None' for i in order)}]"
            name = f"torch.broadcast_to({name}, {tuple_text([self.size(i) for i in order])})"
        if joined:
            name = f"{name}.reshape({tuple_text([host_int(e, self.names) for e in tensor.extents])})"
        return name

    def _filled(self, tensor: Tensor, parts: list[Define]) -> str:
        """A tensor into which each statement writes its part."""
        target = self.fresh(f"{tensor.name}_whole")
        shape = tuple_text([host_int(e, self.names) for e in tensor.extents]) if tensor.extents else "()"
        if tensor.role == "inout":
            self.body.append(f"{target} = {self.names[tensor.name]}.clone()")
        else:
            kind = "real" if self.floating(tensor) else TORCH["i64"]
            self.body.append(f"{target} = torch.empty({shape}, dtype={kind}, device=device)")
        for part in parts:
            self.current = part
            self._write(target, tensor, part)
        return target

    def floating(self, tensor: Tensor) -> bool:
        """Whether a tensor holds floats."""
        return isinstance(tensor.dtype, DTypeParam) or tensor.dtype.kind == "float"

    def _write(self, target: str, tensor: Tensor, part: Define) -> None:
        assert part.output is not None
        name, axes = self.var[part.name]
        at = part.output.at
        cuts = None if self.domain(part) else self._cuts(at, tensor)
        if cuts is not None:
            self.body.append(f"{target}[{', '.join(cuts)}] = {self._broadcast(name, axes, part)}")
            return
        used = tuple(i for i in part.indices if any(i in a.free_indices() for a in at))
        if set(used) != set(part.indices):
            raise NoFormula("a write of one element by several points")
        value = self._broadcast(name, axes, part)
        domain = self.masks(self.domain(part), part.indices)
        if not domain:
            places = [self.integer(i, part.indices) for i in at]
            self.body.append(f"{target}[{', '.join(places)}] = {value}")
            return
        shape = tuple_text([self.size(i) for i in part.indices])
        mask = self.fresh(f"{part.name}_domain")
        self.body.append(f"{mask} = torch.broadcast_to({domain}, {shape})")
        wide = [self._index(i, part.indices, shape) for i in at]
        places = [f"{w}[{mask}]" for w in wide]
        self.body.append(f"{target}[{', '.join(places)}] = {value}[{mask}].to({target}.dtype)")

    def _index(self, i: Int, axes: tuple[str, ...], shape: str) -> str:
        self.guards += 1
        text = self.integer(i, axes)
        self.guards -= 1
        if not i.free_indices() and not i.tensors():
            text = f"torch.as_tensor({text}, device=device)"
        return f"torch.broadcast_to({text}, {shape})"

    def _broadcast(self, name: str, axes: tuple[str, ...], part: Define) -> str:
        """The value of a statement with all of its indices as axes."""
        if not part.indices:
            return name
        if len(axes) < len(part.indices):
            name = f"{name}[{', '.join(':' if i in axes else 'None' for i in part.indices)}]"
            name = f"torch.broadcast_to({name}, {tuple_text([self.size(i) for i in part.indices])})"
        return name

    def _cuts(self, at: tuple[Int, ...], tensor: Tensor) -> list[str] | None:
        """A slice for each axis, where the indices of the statement are the axes in order; else None."""
        cuts, seen = [], []
        for i, extent in zip(at, tensor.extents, strict=True):
            free = i.free_indices()
            if len(free) != 1 or i.tensors():
                return None
            (index,) = free
            split, upper = i.affine(free), self.upper(index)
            if split is None or upper is None:
                return None
            step, start = split[0].get(index, Int(())).constant, split[1]
            if step is None or step < 1:
                return None
            seen.append(index)
            if start.constant == 0 and step == 1 and self.same(upper, extent):
                cuts.append(":")
                continue
            stop = start + (upper - 1) * step + 1
            cuts.append(cut(self.bound(start), self.bound(stop), str(step) if step > 1 else ""))
        return cuts if tuple(seen) == self.current.indices else None

    def _dtype(self, tensor: Tensor) -> str:
        """The dtype a result takes; float results stay float64 where the inputs are."""
        if isinstance(tensor.dtype, DTypeParam):
            return self.dtype_of(tensor.dtype)
        if tensor.dtype.kind != "float":
            return TORCH[tensor.dtype.name]
        if tensor.dtype is F32:
            return "real"
        known = WIDTH.get(tensor.dtype.name)
        return known or f"real if real == torch.float64 else {TORCH[tensor.dtype.name]}"
