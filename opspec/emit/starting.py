"""The lines of a launcher that start its kernels: choices, descriptors and copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opspec.emit.describe import Pairs, Words
from opspec.emit.host import host_int, tuple_text
from opspec.emit.joined import Joined
from opspec.emit.kernel_launch import (
    COPIED,
    Configure,
    KernelLaunch,
    streamed_tensors,
)
from opspec.emit.names import escape
from opspec.emit.signature import KernelText
from opspec.emit.splitting import Splitting
from opspec.ir.program import Tensor
from opspec.schedule.adjacent import adjacent_axes
from opspec.schedule.nested import nested_product


def _taking_alike(texts: Sequence[KernelText]) -> list[list[KernelText]]:
    """Kernels in groups whose launches pass the same, in the order given."""
    found: dict[tuple[tuple[str, ...], bool], list[KernelText]] = {}
    for t in texts:
        found.setdefault((t.params, "INDEX" in t.constexprs), []).append(t)
    return list(found.values())


class Starts(Splitting):
    """State of a launcher, and what starts its kernels."""

    def _launch(self, k: KernelLaunch, *, small: bool = False) -> list[Configure]:
        """Lines that start a kernel, and what chooses it; ``small``: for shapes that its kernel has a branch for."""
        name = f"_configure_{escape(self.op.name)}_{k.plan.block.name}"
        if self.boundary:
            name = f"_configure_{self.op.name}__{self.boundary}_{k.plan.block.name}"
        self._merge(k)
        dims = self._dims(k)
        width = any(c.lines and "width" in " ".join((*c.lines, c.warps, str(c.registers))) for c in k.choices)
        aligned = any("aligned" in " ".join(c.lines) for c in k.choices)
        described = [t.described for t in k.texts if t.described is not None]
        warps = [t.warps for t in k.texts if t.warps is not None]
        flags = ["width"] * (width or bool(warps)) + ["aligned"] * aligned + ["described"] * bool(described)
        flags += ["specialised"] * bool(warps)
        touched = k.plan.variants[0].program.tensors
        if aligned:
            self.lines.append(f"aligned = launch.aligned({', '.join(self._read(k))})")
        if "width" in flags:
            self.lines.append(f"width = max(t.element_size() for t in {tuple_text(self._read(k))})")
        tuned = f'tuned=call.tuned("{k.plan.block.name}")'
        call = f"{name}({', '.join([*dims, *flags, tuned])})"
        if described:
            tiled = [t for t in touched if any(t.name in d.tiles for d in described)]
            named = ", ".join(self.names[t.name] for t in tiled)
            units = ""
            for kind, label in ((Pairs, "pairs"), (Words, "words")):
                moved = [t for t in tiled if any(isinstance(d.tiles.get(t.name), kind) for d in described)]
                units += f", {label}={tuple_text([self.names[t.name] for t in moved])}" if moved else ""
            others = [self.names[t.name] for t in touched if t not in tiled]
            within = f"{named}{units}" + (f", beside={tuple_text(others)}" if others else "")
            self.lines.append(f"described = launch.describable({within})")
            self._copies(k, tiled, within)
        if warps:
            stored = ", ".join(
                self.names[t.name] for t in touched if warps[0].roles and t.name in warps[0].roles.results
            )
            chained = [t for w in warps if w.roles is not None for t in w.roles.chained]
            halves = ", ".join(self.names[t] for t in dict.fromkeys(chained))
            halves = f" and warps.in_halves({halves})" if halves else ""
            self.lines.append(
                f"specialised = launch.describable({named}) and warps.storable({stored}){halves}"
            )
        self.lines.append(f"kernel, grid, options{', tiles' if described else ''} = {call}")
        made = [
            Configure(name=name, kernel=k.plan.block.name, params="", lines=tuple(self._configure_lines(k)))
        ]
        split = next((t for t in k.texts if t.split is not None), None)
        start: list[str] = []
        if described:
            lead = "if"
            for text in warps:
                start.append(f"{lead} kernel is {text.name}:")
                without = [*(f for f in flags if f != "specialised"), "specialised=False"]
                plain = f"{name}({', '.join([*dims, *without])})"
                start += ["    " + line for line in self._with_roles(k, text, plain)]
                lead = "elif"
            for own in _taking_alike(described)[1:]:
                which = f"is {own[0].name}" if len(own) == 1 else f"in ({', '.join(t.name for t in own)})"
                start.append(f"{lead} kernel {which}:")
                start.append(f"    {self._start(k, own[0], 'kernel', 'grid', True)}")
                lead = "elif"
            start.append(f"{lead} tiles is not None:")
            start.append(f"    {self._start(k, described[0], 'kernel', 'grid', True)}")
            start.append("else:")
            start.append(f"    {self._start(k, k.texts[0], 'kernel', 'grid', False)}")
        elif k.lengths is not None and small:
            start.append(self._start(k, k.lengths.text, "kernel", "grid", False))
        elif k.lengths is not None and isinstance(k.lengths.lengths, Joined) and k.lengths.lengths.small:
            start.append(f"if kernel is {k.lengths.text.name}:")
            start.append(f"    {self._start(k, k.lengths.text, 'kernel', 'grid', False)}")
            start.append("else:")
            start.append(f"    {self._start(k, k.texts[0], 'kernel', 'grid', False)}")
        else:
            start.append(self._start(k, k.texts[0], "kernel", "grid", False))
        if split is not None and split.split is not None:
            made.append(self._split(k, split, split.split, start, f"{name}_merge"))
        else:
            self.lines += start
        kinds = {"width": "int", "aligned": "bool", "described": "bool", "specialised": "bool"}
        params = [*(f"{d}: int" for d in dims), *(f"{f}: {kinds[f]}" for f in flags)]
        params += ["*", "tuned: launch.Tuning = launch.UNTUNED"]
        return [replace(made[0], params=", ".join(params)), *made[1:]]

    def _with_roles(self, k: KernelLaunch, text: KernelText, plain: str) -> list[str]:
        """Lines that start a kernel whose warps have roles, and behind it the one that mends its results; ``plain``: the
        call of the configuration without roles."""
        mended = text.roles.mended if text.roles is not None else None
        if mended is None:
            return [self._start(k, text, "kernel", "grid", True)]
        marks = text.marks.removesuffix("_ptr")
        variant = next(t for t in k.texts if t.warps is text)
        (rows,) = (b for a, b in variant.blocks.items() if a in k.plan.variants[0].roles.grid)
        tiles = self._grid(k, variant)
        return [
            f'{marks} = call.workspace(({tiles}, options["{rows}"]), launch.DTYPES["i32"])',
            self._start(k, text, "kernel", "grid", True),
            f"_, grid, options, tiles = {plain}",
            self._start(k, mended, mended.name, "launch.resident(grid, 8)", True),
        ]

    def _merge(self, k: KernelLaunch) -> None:
        """Lines that join neighbouring axes of a kernel into one where the strides of its tensors allow it."""
        if self.merged:
            own = [d for d in self.op.dims if d in self.merged]
            places = [f"dims[{self.op.dims.index(d)}]" for d in own]
            self.lines.append(f"{', '.join(self.names[d] for d in own)} = {', '.join(places)}")
            self.merged = set()
        for group in adjacent_axes(k.plan):
            names = [self.names[d] for d in group.dims]
            places = [f"({self.names[t]}, {first})" for t, first in group.places]
            call = ", ".join([tuple_text(names), *places, *["reduced=True"] * group.reduced])
            self.lines.append(f"{', '.join(names)} = adjacent.merge({call})")
            self.merged |= set(group.dims)

    def _copies(self, k: KernelLaunch, tiled: list[Tensor], within: str) -> None:
        """Lines that copy operands whose rows no descriptor takes, where a block product reads them often."""
        nested = nested_product(k.plan.variants[-1].program) is not None
        text = next((t for t in k.texts if t.described is not None and (t.grouped or nested)), None)
        if text is None:
            return
        product = next(iter(k.plan.variants[-1].roles.products.values()))
        axes = {a.name: host_int(a.extent, self.names) for a in k.plan.variants[-1].program.axes}
        named = ", ".join(self.names[t.name] for t in tiled)
        least = "" if k.copied == COPIED else f", least={k.copied}"
        self.lines.append(
            f"if not described and copying.copies_pay({axes[product.rows]}, {axes[product.columns]}, {named}{least}):"
        )
        made = "all_aligned_rows" if len(tiled) > 1 else "aligned_rows"
        self.lines.append(f"    {named} = copying.{made}(call, {named})")
        self.lines.append(f"    described = launch.describable({within})")

    def _read(self, k: KernelLaunch) -> list[str]:
        return [self.names[t.name] for t in streamed_tensors(k.plan)]
