"""The launches of a boundary: which kernels each has, how they are configured and how they meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opspec.emit.configure import Sizes, configure, stream_steps, stream_warps
from opspec.emit.joined import Joined, joined, print_joined, small_of
from opspec.emit.kept_lengths import kept_of_any_length
from opspec.emit.kernel_launch import AnyLength, Instead, KernelLaunch
from opspec.emit.lengths import Lengths, Stream, any_length, operand, print_lengths
from opspec.emit.meeting import early, overlaps, reads, runs_backwards
from opspec.emit.names import escape, shorten
from opspec.emit.planning import BoundaryPlans
from opspec.emit.row_choice import FOLDING
from opspec.emit.signature import (
    KernelText,
    Overlap,
    SplitText,
    descriptor,
    identifiers,
    pointer,
    stride,
)
from opspec.emit.specialise import unspecialised
from opspec.emit.triton import print_kernel
from opspec.emit.warp_chained import print_warp_chained
from opspec.emit.warp_specialised import print_warp_specialised
from opspec.ir.program import Module, Op, Tensor
from opspec.schedule.plan import Plan, Variant
from opspec.schedule.resources import Limits
from opspec.schedule.split import Split
from opspec.schedule.tile import Loop


def launches_of(
    module: Module, planned: BoundaryPlans, limits: Limits, sizes: Sizes
) -> tuple[KernelLaunch, ...]:
    """The launches of one boundary, in order; ``sizes`` bounds their blocks, ``limits`` what these may need."""
    found: list[KernelLaunch] = []
    # launches that are made of the same block, `end` behind the last of them
    chain: list[KernelLaunch] = []
    end = 0
    for k, plan in enumerate(planned.plans):
        later = planned.plans[k + 1 :] if planned.whole or planned.alone else None
        if k >= end:
            chain = []
        read = frozenset[str]().union(*(reads(c.plan) for c in chain))
        made = _Made(parted=k in planned.whole, joins=len(chain) == 1, read=read if chain else None)
        if read & reads(plan):  # what the first of them has read last, L2 still holds
            made = replace(made, backwards=not chain[0].backwards)
        launch = _launch(module, plan, limits, sizes, found[-1] if found else None, later, made)
        if k in planned.whole:
            whole, covers = planned.whole[k]
            end = k + covers
            instead = _launch(module, whole, limits, sizes, None, None, _Made(whole=True))
            launch = replace(launch, instead=_instead(instead, covers))
        chain.append(launch)
        found.append(launch)
        if k + 1 == end and len(chain) > 2:
            found[-len(chain) : -len(chain) + 2] = _with_small(chain[0], chain[1])
    return tuple(found)


def _with_small(first: KernelLaunch, join: KernelLaunch) -> tuple[KernelLaunch, KernelLaunch]:
    """Both with what small shapes launch as a branch of the second one's kernel, where that has as many programs and
    knows as much of what it is given."""
    own, lengths, op = first.instead, join.lengths, join.plan.block.op
    if (
        own is None
        or lengths is None
        or not isinstance(lengths.lengths, Joined)
        or own.launch.lengths is not None
    ):
        return first, join
    (text,), (variant,) = own.launch.texts, own.launch.plan.variants
    programs = [
        [a.extent for a in v.program.axes if a.role == "grid"] for v in (variant, join.plan.variants[0])
    ]
    blocked = any(a.blocked for a in variant.program.axes if a.role == "grid")
    plain = {*text.params} & {*identifiers(op).values()} - {*unspecialised(op, own.launch.plan, text)}
    if programs[0] != programs[1] or blocked or plain & {*unspecialised(op, join.plan, join.texts[0])}:
        return first, join
    small = small_of(text, own.launch.choices[0], own.test, join.texts[0].params)
    if small is None:
        return first, join
    joins = replace(lengths.lengths, small=small)
    both = replace(lengths, lengths=joins, text=print_joined(lengths.text.name, join.texts, joins))
    join = replace(join, lengths=both)
    return replace(first, instead=replace(own, by=join)), join


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """How the compiler has made a launch. ``parted``: it takes parts of a block; ``whole``: all of it in place of
    these; in both no length that a workload states is its own; ``joins``: it joins parts; ``read``: what the launches before it that
    are made of the same block have read; ``backwards``: whether its programs go from the last to the first, where that is known.
    """

    parted: bool = False
    whole: bool = False
    joins: bool = False
    read: frozenset[str] | None = None
    backwards: bool | None = None

    @property
    def large(self) -> bool:
        """Whether it goes through tensors of which a workload has much."""
        return (self.parted or self.read is not None) and not self.joins


def _launch(
    module: Module,
    plan: Plan,
    limits: Limits,
    sizes: Sizes,
    before: KernelLaunch | None,
    later: Sequence[Plan] | None,
    made: _Made,
) -> KernelLaunch:
    """One launch; ``later``: those behind it, where an op's launches are the blocks as they were written."""
    op, boundary = plan.block.op, plan.block.boundary
    cases = [dict(dims) for w in module.workloads_of(op.name) for _, dims in w.cases]
    base = f"_{escape(op.name)}_{plan.block.name}"
    if boundary:
        base = f"_{op.name}__{boundary}_{plan.block.name}"
    backwards = before is not None and runs_backwards(plan, before)
    if made.backwards is not None:
        backwards = made.backwards
    overlap = Overlap()
    if later is not None:
        overlap = overlaps(op, plan, None if before is None else before.plan, later)
        if made.read is not None and overlap.waits:
            overlap = early(op, plan, later, made.read, overlap)
    texts = [
        _variant_text(v, f"{base}{label}", sizes, overlap, backwards=backwards, large=made.large)
        for v, label in zip(plan.variants, _labels(plan), strict=True)
    ]
    merged = _same_parameters(op, plan, texts)
    last = len(merged) - 1
    choices = tuple(
        configure(plan.graph, v, t, identifiers(op), limits, sizes, cases, last=k == last, joins=made.joins)
        for k, (v, t) in enumerate(zip(plan.variants, merged, strict=True))
    )
    if made.parted:  # a warp of large columns
        choices = tuple(replace(c, registers=FOLDING) if c.warps == "1" else c for c in choices)
    always = next(k for k, c in enumerate(choices) if c.test is None)
    if always < last:  # what stands behind it is never chosen
        plan = replace(plan, variants=plan.variants[: always + 1])
        merged, choices = merged[: always + 1], choices[: always + 1]
    launch = KernelLaunch(
        plan=plan,
        texts=merged,
        choices=choices,
        steps=sizes.steps,
        copied=sizes.copied,
        backwards=backwards,
        overlap=overlap,
    )
    return _with_any_length(module, launch, texts, shorten(base), sizes, made)


def _with_any_length(
    module: Module, launch: KernelLaunch, texts: list[KernelText], base: str, sizes: Sizes, made: _Made
) -> KernelLaunch:
    """The launch with a kernel for rows of any length, where its rows are such; ``texts``: of its variants as printed."""
    plan, op, last = launch.plan, launch.plan.block.op, len(launch.texts) - 1
    join = joined(plan, launch.texts, launch.choices, identifiers(op)) if made.joins else None
    if join is not None:
        return replace(launch, lengths=AnyLength(lengths=join, text=print_joined(base, launch.texts, join)))
    if last != 1 and plan.variants[0].roles.kept is None:
        return launch
    workloads = module.workloads_of(op.name)
    stated = [dict(w.cases[0][1]) for w in workloads if len(w.cases) == 1 and not (made.parted or made.whole)]
    streamed = plan.variants[-1]
    stream = Stream(
        warps=stream_warps(streamed, sizes),
        steps=stream_steps(streamed, sizes),
        stages=launch.choices[-1].stages,
        registers=launch.choices[-1].registers,
    )
    found = kept_of_any_length(plan, launch.texts, identifiers(op), sizes, stream)
    if found is None and last == 1:
        found = any_length(plan, launch.texts, identifiers(op), sizes, stated, stream)
    if found is None:
        return launch
    merged = launch.texts
    if found.exact or found.full:
        whole = print_kernel(
            plan.variants[0].program,
            texts[0].name,
            overlap=launch.overlap,
            backwards=launch.backwards,
            full=True,
        )
        merged = _same_parameters(op, plan, [whole, *texts[1:]])
    text = print_lengths(base, (merged[0], merged[-1]), found)
    return replace(launch, texts=merged, lengths=AnyLength(lengths=found, text=text))


def _labels(plan: Plan) -> list[str]:
    """What the names of variants end in: nothing for a single one, and a number where several are streamed."""
    if len(plan.variants) == 1:
        return [""]
    kinds = [v.program.variant for v in plan.variants]
    numbered = kinds.count("streamed") > 1
    return [f"_{kind}{k}" if kind == "streamed" and numbered else f"_{kind}" for k, kind in enumerate(kinds)]


def _variant_text(
    variant: Variant, name: str, sizes: Sizes, overlap: Overlap, *, backwards: bool, large: bool
) -> KernelText:
    """The kernels of one variant: with pointers, descriptors and roles, and those of a stream in parts."""
    ahead = any(isinstance(s, Loop) and s.ahead is not None for s in variant.program.body)
    text = print_kernel(variant.program, name, backwards=backwards, overlap=overlap, full=ahead, large=large)
    if sizes.product is None and text.described is not None:
        warps = print_warp_specialised(variant.program, name) or print_warp_chained(variant.program, name)
        text = replace(text, warps=warps)
    if variant.split is not None:
        text = replace(text, split=_split_text(variant.split, name))
    return text


def _instead(made: KernelLaunch, covers: int) -> Instead | None:
    """One launch for shapes that a program holds at once, in place of those that a block was taken apart into."""
    choice = made.choices[0]
    if made.lengths is not None and isinstance(lengths := made.lengths.lengths, Lengths):
        return Instead(launch=made, covers=covers, test=f"{operand(lengths.extent)} <= {lengths.longest}")
    if choice.test is None or made.plan.variants[0].roles.stream or "width" in " ".join(choice.lines):
        return None
    made = replace(
        made,
        plan=replace(made.plan, variants=made.plan.variants[:1]),
        texts=made.texts[:1],
        choices=(replace(choice, test=None),),
        lengths=None,
    )
    return Instead(launch=made, covers=covers, test=choice.test)


def every(launches: Sequence[KernelLaunch]) -> list[KernelLaunch]:
    """All launches, with those that small shapes make instead."""
    found: list[KernelLaunch] = []
    for k in launches:
        found += [k] if k.instead is None else [k.instead.launch, k]
    return found


def printed(text: KernelText) -> list[KernelText]:
    """Every kernel of one variant."""
    mended = text.warps.roles.mended if text.warps is not None and text.warps.roles is not None else None
    found = [text, text.described, text.warps, mended]
    if text.split is not None:
        found += [text.split.partial, text.split.partial.described, text.split.merge]
    return [t for t in found if t is not None]


def _split_text(split: Split, base: str) -> SplitText:
    partial = print_kernel(split.partial, f"{base}_part", keep={p.name for p in split.parts})
    merge = print_kernel(split.merge, f"{base}_merge")
    return SplitText(split=split, partial=partial, merge=merge)


def _same_parameters(op: Op, plan: Plan, texts: list[KernelText]) -> tuple[KernelText, ...]:
    """Give all variants of a kernel one parameter list, so that one launch line serves them; another one
    all variants that take descriptors."""
    names = identifiers(op)
    tensors: tuple[Tensor, ...] = plan.variants[0].program.tensors
    described = [t.described for t in texts if t.described is not None]

    def united(text: KernelText, together: list[KernelText]) -> KernelText:
        params = {p for t in together for p in t.params}
        order = [
            descriptor(t.name) if t.name in text.tiles else pointer(t.name)
            for t in tensors
            if params & {descriptor(t.name), pointer(t.name)}
        ]
        order += [names[s.name] for s in op.scalars if names[s.name] in params]
        order += [names[d] for d in op.dims if names[d] in params]
        order += [p for t in tensors for i in range(len(t.extents)) if (p := stride(t, i)) in params]
        order += [text.marks] if text.marks in params else []
        if text.roles is not None and text.roles.mended is not None:
            mended = text.roles.mended
            text = replace(text, roles=replace(text.roles, mended=united(mended, [mended])))
        return replace(text, params=tuple(order))

    out = []
    for text in texts:
        own = None if text.described is None else united(text.described, described)
        warps = None if text.warps is None else united(text.warps, [text.warps])
        out.append(replace(united(text, texts), described=own, warps=warps))
    return tuple(out)
