"""What kind of problem: the products and how large and regular they are, what binds, whether it is hot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, prod

from opspec.analysis.review.numbers import filled
from opspec.driver.pattern import Contraction, contractions
from opspec.driver.questions.ask import Asked
from opspec.emit.kernel_launch import KernelLaunch
from opspec.emit.planning import warnings
from opspec.ir.integers import Datum, FloorDiv, Int
from opspec.ir.program import Workload
from opspec.ir.values import Read, Value, walk
from opspec.schedule.graph import Fold, Load, Prefix
from opspec.schedule.plan import Plan, Variant

_REGULAR = 0.9
_ROWS = "each element meets the others of its own row at most"
_ALONE = "each element stands alone"
_LAUNCHES = 0.5


def lines(asked: Asked, launch: KernelLaunch) -> Iterator[str]:
    """Products, sizes at each workload, the resource that binds, and the share of a pipeline."""
    products = contractions(launch.plan)
    yield from products_of(launch.plan)
    for workload in asked.workloads:
        yield from _at(asked, launch, products, workload)
    yield from _hot(asked)


def products_of(plan: Plan) -> Iterator[str]:
    """Each product of two operands, and what an operand is shared by or found through."""
    products = contractions(plan)
    for c in products:
        yield from _product(plan, c)
        yield from _common(plan, c, products)
    if not products:
        folds = any(isinstance(n, Fold | Prefix) for n in plan.graph.nodes)
        yield f"no product of two operands: {_ROWS if folds else _ALONE}"


def _product(plan: Plan, c: Contraction) -> Iterator[str]:
    over = _by(c.over)
    each = f", for each {', '.join(c.batch)}" if c.batch else ""
    unit = "on the matrix unit" if c.unit else "not on the matrix unit"
    if c.one_sided:
        wide = c.operands[0 if c.rows else 1]
        once = all(_bare(load) for load in _loads_of(plan, wide))
        used = ": each element of that operand is used once" if once else ""
        yield f"{c.statement} is a product of vectors with {_by(c.rows or c.columns)} by {over}{each}{used}; {unit}"
    else:
        yield f"{c.statement} is a product of {_by(c.rows)} with {_by(c.columns)} by {over}{each}; {unit}"
    for load in _loads(plan, c):
        shared = [a for i in load.at for a in _quotients(i)]
        tables = sorted({a.tensor for i in load.at for a in i.atoms() if isinstance(a, Datum)})
        if tables:
            yield f"{load.tensor} is found through {', '.join(tables)}: which rows are read is data"
        if shared:
            names = ", ".join(sorted(shared[0].num.free_indices()))
            quotient = str(Int.of(shared[0])).removeprefix("(").removesuffix(")")
            yield f"{load.tensor} is shared: {quotient} is the same for several {names}"


def _bare(load: Load) -> bool:
    """Whether no two points read the same element: no window and no quotient in a coordinate."""
    return not any(len(i.free_indices()) > 1 or _quotients(i) for i in load.at)


def _quotients(i: Int) -> list[FloorDiv]:
    atoms = [a for monomial, _ in i.terms for a, _ in monomial]
    return [a for a in atoms if isinstance(a, FloorDiv) and a.num.free_indices()]


def _common(plan: Plan, c: Contraction, products: list[Contraction]) -> Iterator[str]:
    """An operand that is one for all, though another product of the kernel has its own for each."""
    for axes, operand in ((c.rows, c.operands[1]), (c.columns, c.operands[0])):
        common = [x for x in axes if any(x in d.batch for d in products if d is not c)]
        tensors = dict.fromkeys(n.tensor for n in _loads_of(plan, operand))
        if common and tensors:
            yield f"{', '.join(tensors)} is one for all {', '.join(common)}: read once for them together"


def _by(axes: tuple[str, ...]) -> str:
    return " × ".join(axes)


def _loads(plan: Plan, c: Contraction) -> list[Load]:
    return [n for o in c.operands for n in _loads_of(plan, o)]


def _loads_of(plan: Plan, operand: Value) -> list[Load]:
    nodes = plan.graph.by_name
    names = [p.name for p in walk(operand) if isinstance(p, Read)]
    return [n for name in names if isinstance(n := nodes[name], Load)]


def _at(asked: Asked, launch: KernelLaunch, products: list[Contraction], workload: Workload) -> Iterator[str]:
    size = {a.name: asked.size(a.extent, workload) for a in launch.plan.block.axes}
    sizes = [
        f"{c.statement} is {_extent(size, c.rows)} with {_extent(size, c.columns)} by {_extent(size, c.over)}"
        + (f", {_extent(size, c.batch)} times" if c.batch else "")
        for c in products
    ]
    if not products:
        sizes = [", ".join(f"{a} {_extent(size, (a,))}" for a in size)]
    several = f", its most frequent of {len(workload.cases)} shapes" if len(workload.cases) > 1 else ""
    yield f"{workload.name}{several}: {'; '.join(sizes)}"
    yield from (f"{workload.name}: {t}" for t in _filling(asked, launch, workload, size))
    yield from (f"{workload.name}: {t}" for t in _bound(asked, launch, workload))
    for warning in warnings(launch.plan, lambda extent: asked.size(extent, workload)):
        yield f"warning: {warning.message.replace('`', '')}; {warning.help.replace('`', '')}"


def _extent(size: Mapping[str, int | None], axes: tuple[str, ...]) -> str:
    values = [size[a] for a in axes]
    return "data" if None in values else str(prod(v or 0 for v in values))


def _filling(
    asked: Asked, launch: KernelLaunch, workload: Workload, size: Mapping[str, int | None]
) -> Iterator[str]:
    """How many programs the first choice makes, and how much of their blocks is padding."""
    for variant, text in zip(launch.plan.variants, launch.texts, strict=True):
        names = [t.name for t in (text, text.described, text.warps) if t is not None]
        options = next((o for n in names if (o := asked.blocks.get((n, workload.name)))), None)
        if options is None or any(v is None for v in size.values()):
            continue
        steps = {a: size[a] or 0 for a in size}
        blocks = {a: options[text.blocks[a]] for a in size if text.blocks.get(a) in options}
        programs = prod(ceil(steps[a] / blocks.get(a, 1)) for a in _grid(variant) if a in steps)
        padded = prod(ceil(steps[a] / b) * b for a, b in blocks.items())
        used = prod(steps[a] for a in blocks) / padded if padded else 0.0
        waves = programs / asked.programs
        how = (
            "large and regular"
            if waves >= 1 and used >= _REGULAR
            else "fragmented"
            if waves >= 1
            else "small"
        )
        yield (
            f"{programs} program{'s' * (programs != 1)}, {waves:.3g} for each of {asked.programs} multiprocessors, "
            f"{used:.0%} of the blocks is used: {how}"
        )


def _grid(variant: Variant) -> tuple[str, ...]:
    return variant.roles.grid


def _bound(asked: Asked, launch: KernelLaunch, workload: Workload) -> Iterator[str]:
    from opspec.analysis.costs import cost
    from opspec.analysis.export import workload_dtypes
    from opspec.analysis.lengths import shape_numbers
    from opspec.analysis.roofline import block_times

    costs = cost(asked.op, workload_dtypes(asked.op, workload))
    shape = max(workload.cases, key=lambda c: c[0])[1]
    known = filled(costs, shape_numbers(workload, shape, costs))
    if known is None:
        yield "what binds depends on lengths that are data"
        return
    name = launch.plan.block.name
    block = next(b for b in block_times(known, asked.machine, asked.boundary.name) if b.name == name)
    seconds = {k: float(v) for k, v in block.seconds.items()}
    start = seconds.pop("launch")
    longest = max(seconds, key=lambda k: seconds[k])
    total = seconds[longest] + start
    share = start / total
    verdict = f"{longest} binds on {asked.machine.name}"
    if share > _LAUNCHES:
        verdict = f"the launch binds on {asked.machine.name}, so shape and number of launches decide"
    others = sorted((v, k) for k, v in seconds.items() if k != longest and v)
    beside = (
        f", {others[-1][1]} at {_percent(others[-1][0] / seconds[longest])} of it"
        if others and seconds[longest]
        else ""
    )
    yield f"{verdict}: at least {total * 1e6:.5g} µs, {_percent(share)} of it launch{beside}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "less than 1%"


def _hot(asked: Asked) -> Iterator[str]:
    """Shares of the pipelines that run the op."""
    from opspec.analysis.pipeline import Sources, analyse
    from opspec.diagnostics import Failure

    told = False
    for pipeline in asked.module.pipelines:
        named = "" if pipeline.machine else asked.machine.name
        try:
            found = analyse(
                asked.module, pipeline, Sources(module=asked.module, folder=asked.folder, machine=named)
            )
        except Failure:
            continue
        for part in found.base.parts:
            if part.timed.op == asked.op.name:
                told = True
                yield f"hot: {float(part.share):.1%} of pipeline {pipeline.name}, {float(part.timed.count):.4g} runs"
    if not told:
        yield "hot: not known, no pipeline of the file runs it"
