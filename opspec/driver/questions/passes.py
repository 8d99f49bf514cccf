"""How often the data is read, on which path it is folded, and in which vectors it moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from opspec.driver.explain import label
from opspec.driver.traffic import fetches
from opspec.emit.kernel_launch import KernelLaunch
from opspec.ir.dtypes import choices
from opspec.ir.integers import Int
from opspec.schedule.graph import Fold, Load, Prefix, Store
from opspec.schedule.plan import Variant

_VECTOR = 128  # bits that a thread moves at once


def lines(launch: KernelLaunch) -> Iterator[str]:
    """Passes and reduction paths by variant, vectors for all of them."""
    plan = launch.plan
    said: dict[str, list[str]] = {}
    for variant in plan.variants:
        for text in (*_reads(variant), *_paths(launch, variant)):
            said.setdefault(text, []).append(label(plan, variant))
    for text, names in said.items():
        yield text if len(names) == len(plan.variants) else f"{', '.join(names)}: {text}"
    yield from _vectors(launch)


def _reads(variant: Variant) -> Iterator[str]:
    again = Counter(f.tensor for f, _ in fetches(variant.program.body) if f.reread)
    loaded = dict.fromkeys(f.tensor for f, _ in fetches(variant.program.body))
    many: dict[int, list[str]] = {}
    for tensor in loaded:
        many.setdefault(1 + again[tensor], []).append(tensor)
    for times, tensors in sorted(many.items(), reverse=True):
        yield f"{', '.join(tensors)} in {'one pass' if times == 1 else f'{times} passes'}"


def _paths(launch: KernelLaunch, variant: Variant) -> Iterator[str]:
    """The way of each reduced axis."""
    roles = variant.roles
    folds = [n for n in launch.plan.graph.nodes if isinstance(n, Fold)]
    seen: dict[str, list[str]] = {}
    for fold in folds:
        for axis in fold.over:
            if fold.name in roles.products:
                unit = "on the matrix unit" if roles.products[fold.name].unit else "block by block in f32"
                how = f"over {axis} {unit}, {_chunked(axis, variant)}"
            elif axis == roles.laned:
                how = f"over {axis} in lanes: each keeps its own state through the stream, all are merged once at the end"
            elif any(a.rows for a in variant.program.axes) and axis in roles.stream:
                how = f"over {axis} in each thread, written out when the kernel compiles"
            elif axis in roles.stream:
                how = f"over {axis} chunk by chunk across threads, joined to a carried state"
            else:
                how = f"over {axis} at once, across the threads of the program"
            seen.setdefault(how, []).append(str(fold.monoid))
    for node in launch.plan.graph.nodes:
        if isinstance(node, Prefix):
            how = f"along {node.along} {_carried(node.along, variant)}"
            seen.setdefault(how, []).append(f"running {node.monoid}")
    for how, monoids in seen.items():
        yield f"{', '.join(dict.fromkeys(monoids))} {how}"


def _carried(axis: str, variant: Variant) -> str:
    if axis in variant.roles.stream:
        return "chunk by chunk, what came before is carried"
    return "at once, across the threads of the program"


def _chunked(axis: str, variant: Variant) -> str:
    return "accumulated chunk by chunk" if axis in variant.roles.stream else "in one step"


def _vectors(launch: KernelLaunch) -> Iterator[str]:
    """Which tensors run along memory, and how many elements a thread moves at once."""
    along: dict[tuple[str, str], dict[str, None]] = {}
    single: dict[str, None] = {}
    blocked = set().union(*(v.roles.blocked for v in launch.plan.variants))
    for node in launch.plan.graph.nodes:
        if not isinstance(node, Load | Store) or not node.at:
            continue
        axis = _unit(node.at[-1])
        kind = choices(launch.plan.block.tensor(node.tensor).dtype)[0]
        if axis is None or axis not in blocked:
            single[node.tensor] = None
        else:
            along.setdefault((axis, f"{max(1, _VECTOR // kind.bits)} of {kind.name}"), {})[node.tensor] = None
    for (axis, count), tensors in along.items():
        yield f"vectors: {', '.join(tensors)} along {axis}, up to 16 B a thread ({count})"
    if single:
        yield f"vectors: {', '.join(single)} element by element"


def _unit(i: Int) -> str | None:
    """The axis along which a coordinate walks with unit stride."""
    split = i.affine(i.free_indices())
    found = [n for n, c in (split[0] if split else {}).items() if c.constant == 1]
    return found[-1] if found else None
