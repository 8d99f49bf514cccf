"""The launches of a boundary: which kernels each has, how they are configured and how they meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opspec.emit.configure import Sizes, configure, stream_steps, stream_warps
from opspec.emit.kept_lengths import kept_of_any_length
from opspec.emit.lengths import Stream, any_length, operand, print_lengths
from opspec.emit.names import RESERVED, escape, shorten
from opspec.emit.signature import (
    KernelText,
    Overlap,
    SplitText,
    descriptor,
    identifiers,
    pointer,
    stride,
)
from opspec.emit.starting import AnyLength, Instead, KernelLaunch
from opspec.emit.triton import print_kernel
from opspec.emit.warp_specialised import print_warp_specialised
from opspec.ir.program import Boundary, Kernel, Module, Op, Tensor
from opspec.schedule.graph import Load, Store
from opspec.schedule.plan import Plan, schedule_kernel
from opspec.schedule.resources import Limits
from opspec.schedule.split import Split
from opspec.schedule.totals import typical_of


def launches_of(
    module: Module,
    spoken: Op,
    single: Boundary,
    op: Op,
    boundary: Boundary,
    plans: Sequence[Plan],
    limits: Limits,
    sizes: Sizes,
) -> tuple[KernelLaunch, ...]:
    """The launches of a boundary, ``single`` as it was written in the op as it was ``spoken``."""
    found: list[KernelLaunch] = []
    chain: list[
        KernelLaunch
    ] = []  # launches that are made of the same block, ``end`` behind the last of them
    end = 0
    chained = any(k.whole is not None for k in boundary.kernels)
    for k, plan in enumerate(plans):
        later = plans[k + 1 :] if chained or len(plans) == len(single.kernels) else None
        whole = boundary.kernels[k].whole
        if k >= end:
            chain = []
        read = frozenset[str]().union(*(_reads(c.plan) for c in chain))
        made = _Made(parted=whole is not None, joins=len(chain) == 1, read=read if chain else None)
        if read & _reads(plan):  # what the first of them has read last, L2 still holds
            made = replace(made, backwards=not chain[0].backwards)
        launch = _schedule(
            module, op, boundary, plan, limits, sizes, found[-1] if found else None, later, made
        )
        if whole is not None:
            many = [x.name for x in boundary.kernels[k:]].index(whole.name) + 1
            end = k + many
            launch = replace(launch, instead=_instead(module, spoken, single, whole, limits, sizes, many))
        chain.append(launch)
        found.append(launch)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """How the compiler has made a launch. ``parted``: it takes parts of a block, or all of it in place of these, so
    that no length that a workload states is its own; ``joins``: it joins parts; ``read``: what the launches before it that
    are made of the same block have read; ``backwards``: whether its programs go from the last to the first, where that is known.
    """

    parted: bool = False
    joins: bool = False
    read: frozenset[str] | None = None
    backwards: bool | None = None


def _schedule(
    module: Module,
    op: Op,
    boundary: Boundary,
    plan: Plan,
    limits: Limits,
    sizes: Sizes,
    before: KernelLaunch | None,
    later: Sequence[Plan] | None,
    made: _Made,
) -> KernelLaunch:
    """One launch; ``later``: those behind it, where an op's launches are the blocks as they were written."""
    workloads = module.workloads_of(op.name)
    cases = [dict(dims) for w in workloads for _, dims in w.cases]
    names = identifiers(op)
    name = plan.block.name
    if made.joins and any(v.roles.stream for v in plan.variants):
        plan = replace(plan, variants=tuple(v for v in plan.variants if v.roles.stream))
    base = f"_{escape(op.name)}_{name}" if not boundary.name else f"_{op.name}__{boundary.name}_{name}"
    backwards = before is not None and _backwards(plan, before)
    if made.backwards is not None:
        backwards = made.backwards
    overlap = Overlap()
    if later is not None:
        overlap = _overlap(op, plan, None if before is None else before.plan, later)
        if made.read is not None and overlap.waits:
            overlap = _early(op, plan, later, made.read, overlap)
    texts = []
    for k, v in enumerate(plan.variants):
        label = f"_{v.program.variant}" if len(plan.variants) > 1 else ""
        if (
            v.program.variant == "streamed"
            and sum(o.program.variant == "streamed" for o in plan.variants) > 1
        ):
            label += str(k)
        text = print_kernel(v.program, f"{base}{label}", backwards=backwards, overlap=overlap)
        if sizes.product is None and text.described is not None:
            text = replace(text, warps=print_warp_specialised(v.program, f"{base}{label}"))
        if v.split is not None:
            text = replace(text, split=_split_text(v.split, f"{base}{label}"))
        texts.append(text)
    merged = _same_parameters(op, plan, texts)
    last = len(merged) - 1
    choices = tuple(
        configure(plan.graph, v, t, names, limits, sizes, cases, last=k == last, joins=made.joins)
        for k, (v, t) in enumerate(zip(plan.variants, merged, strict=True))
    )
    always = next(k for k, c in enumerate(choices) if c.test is None)
    if always < last:  # what stands behind it is never chosen
        plan = replace(plan, variants=plan.variants[: always + 1])
        merged, choices, last = merged[: always + 1], choices[: always + 1], always
    lengths = None
    if last == 1 or plan.variants[0].roles.kept is not None:
        stated = [dict(w.cases[0][1]) for w in workloads if len(w.cases) == 1 and not made.parted]
        streamed = plan.variants[-1]
        stream = Stream(
            warps=stream_warps(streamed, sizes),
            steps=stream_steps(streamed, sizes),
            stages=choices[-1].stages,
            registers=choices[-1].registers,
        )
        found = kept_of_any_length(plan, merged, names, sizes, stream)
        if found is None and last == 1:
            found = any_length(plan, merged, names, sizes, stated, stream)
        if found is not None and (found.exact or found.full):
            whole = print_kernel(
                plan.variants[0].program, texts[0].name, overlap=overlap, backwards=backwards, full=True
            )
            merged = _same_parameters(op, plan, [whole, *texts[1:]])
        if found is not None:
            both = (merged[0], merged[-1])
            lengths = AnyLength(lengths=found, text=print_lengths(shorten(base), both, found))
    return KernelLaunch(
        plan=plan,
        texts=merged,
        choices=choices,
        steps=sizes.steps,
        copied=sizes.copied,
        lengths=lengths,
        backwards=backwards,
        overlap=overlap,
    )


def _overlap(op: Op, plan: Plan, before: Plan | None, later: Sequence[Plan]) -> Overlap:
    """How a kernel meets the launches beside it. Programs of a product leave no room for others on a multiprocessor."""

    def beside(other: Plan | None) -> bool:
        plans = (plan,) if other is None else (plan, other)
        return other is not None and not any(
            v.roles.products or v.split is not None for p in plans for v in p.variants
        )

    waits, lets = beside(before), beside(later[0] if later else None)
    read = [{n.tensor for n in p.graph.nodes if isinstance(n, Load)} for p in (plan, *later)]
    given = {t.name for t in op.tensors}
    written = set() if before is None else {n.tensor for n in before.graph.nodes if isinstance(n, Store)}
    own = {n.tensor for n in plan.graph.nodes if isinstance(n, Store)}
    return Overlap(
        waits=waits,
        lets=lets,
        kept=frozenset(own & read[1] if lets else ()),
        spent=frozenset(written & read[0] - given - set().union(*read[1:]) if waits else ()),
    )


def _early(op: Op, plan: Plan, later: Sequence[Plan], before: frozenset[str], overlap: Overlap) -> Overlap:
    """The same, with what a launch made of a part of a block reads that no launch writes: it need not wait for it, and
    what is read for the last time need not stay in L2."""
    given = {t.name for t in op.tensors if t.role == "in"}
    read, left = _reads(plan) & given, frozenset[str]().union(*map(_reads, later))
    return replace(overlap, early=frozenset(read), spent=overlap.spent | ((read & before) - left))


def _reads(plan: Plan) -> frozenset[str]:
    return frozenset(n.tensor for n in plan.graph.nodes if isinstance(n, Load))


def _instead(
    module: Module, op: Op, boundary: Boundary, kernel: Kernel, limits: Limits, sizes: Sizes, covers: int
) -> Instead | None:
    """One launch for shapes that a program holds at once, in place of those that a block was taken apart into."""
    own = replace(kernel, name=f"{kernel.name}_whole")
    kernels = tuple(own if k.name == kernel.name else k for k in boundary.kernels)
    boundary = replace(boundary, kernels=kernels)
    typical = typical_of(module.workloads_of(op.name))
    plan = schedule_kernel(op, boundary, own, typical=typical, reserved=reserved(op))
    made = _schedule(module, op, boundary, plan, limits, sizes, None, None, _Made(parted=True))
    choice = made.choices[0]
    if made.lengths is not None:
        lengths = made.lengths.lengths
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


def _backwards(plan: Plan, before: KernelLaunch) -> bool:
    """Whether the programs of a kernel go from the last to the first: those of the launch before it went the other
    way, and what that wrote last, L2 still holds."""
    written = {n.tensor for n in before.plan.graph.nodes if isinstance(n, Store)}
    read = {n.tensor for n in plan.graph.nodes if isinstance(n, Load)}
    products = any(v.roles.products for v in plan.variants)
    return not before.backwards and not products and bool(written & read)


def every(launches: Sequence[KernelLaunch]) -> list[KernelLaunch]:
    """All launches, with those that small shapes make instead."""
    found: list[KernelLaunch] = []
    for k in launches:
        found += [k] if k.instead is None else [k.instead.launch, k]
    return found


def printed(text: KernelText) -> list[KernelText]:
    """Every kernel of one variant."""
    found = [text, text.described, text.warps]
    if text.split is not None:
        found += [text.split.partial, text.split.partial.described, text.split.merge]
    return [t for t in found if t is not None]


def _split_text(split: Split, base: str) -> SplitText:
    partial = print_kernel(split.partial, f"{base}_part", keep={p.name for p in split.parts})
    merge = print_kernel(split.merge, f"{base}_merge")
    return SplitText(split=split, partial=partial, merge=merge)


def reserved(op: Op) -> set[str]:
    """Identifiers that a block variable must not take."""
    taken = set(RESERVED) | set(identifiers(op).values()) | set(op.dims)
    taken |= {pointer(t.name) for t in op.tensors}
    taken |= {stride(t, i) for t in op.tensors for i in range(len(t.extents))}
    # a block variable may carry the name of the tensor that it holds
    return taken - {escape(t.name) for t in op.tensors}


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
        return replace(text, params=tuple(order))

    out = []
    for text in texts:
        own = None if text.described is None else united(text.described, described)
        warps = None if text.warps is None else united(text.warps, [text.warps])
        out.append(replace(united(text, texts), described=own, warps=warps))
    return tuple(out)


__all__ = ["every", "launches_of", "printed", "reserved"]
