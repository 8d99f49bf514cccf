"""What a spec says of its own benchmark: inputs, workloads, tolerance, the torch formula."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from opspec.emit.costs import extra_symbols
from opspec.emit.formula import (
    NoFormula,
    dtype_lines,
    formula,
    free_dims,
    keyword_scalars,
    keywords,
    parameters,
)
from opspec.emit.formula_reductions import stored_dtype
from opspec.emit.formula_rows import row_axes
from opspec.emit.host import host_int, tuple_text
from opspec.emit.launcher import python_number
from opspec.emit.layout import fold
from opspec.emit.names import escape
from opspec.emit.scales import input_scales
from opspec.emit.segment_formula import segment_total
from opspec.emit.signs import Signs
from opspec.ir.dtypes import F32, DTypeParam, Storage, choices, compute_dtype
from opspec.ir.integers import Datum, Int
from opspec.ir.program import Lengths, Module, Op, Tensor
from opspec.ir.values import Binary, Cast, Read, Reduce, Value, integers, walk

MOST = 32  # lengths of a distribution that a driver states
F8_SUMS = (
    2.0**-11
)  # of the largest result: what a matrix unit loses as it adds f8 products (tools/f8_sums.py)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The generated torch formula."""

    name: str
    params: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverModel:
    """One op's driver, as strings."""

    name: str
    driver_name: str
    function: str
    reference: Reference
    cost: str
    inputs: tuple[str, ...]
    keywords: tuple[str, ...]
    rows: tuple[str, ...]
    outputs: str
    dtypes: str
    workloads: tuple[str, ...]
    moments: tuple[str, ...]
    tolerance: str
    contraction: str


def driver_model(module: Module, op: Op, function: str, launches: int, costs: dict[str, Any]) -> DriverModel:
    """The driver of one op."""
    del launches
    many = len(module.ops) > 1
    dims = {d: f'd["{d}"]' for d in op.dims}
    return DriverModel(
        name=op.name,
        driver_name=f"DRIVER_{op.name.upper()}" if many else "DRIVER",
        function=f"kernel.{function}",
        reference=_reference(op, f"reference_{op.name}" if many else "reference"),
        cost=_cost(op, costs),
        inputs=_group("inputs", "()", _inputs(module, op, dims)),
        keywords=_keywords(op),
        rows=_rows(module, op),
        outputs=tuple_text([f'"{t.name}"' for t in op.results]) if op.results else "()",
        dtypes="{"
        + ", ".join(f'"{p.name}": {tuple_text([_quote(c.name) for c in p.choices])}' for p in op.dtype_params)
        + "}",
        workloads=_group("workloads", "{}", list(_workloads(module, op))),
        moments=_moments(op, costs),
        tolerance="\n".join(fold(f"    tolerance={_tolerance(op, dims)},", inside=True)),
        contraction=_contraction(op),
    )


def _group(name: str, brackets: str, items: list[str]) -> tuple[str, ...]:
    """A keyword argument that holds a tuple or dict, one item a line, as the formatter leaves it."""
    start, end = brackets[0], brackets[1]
    if not items:
        return (f"{name}={start}{end},",)
    short = f"{name}={start}{items[0]},{end},"
    if len(items) == 1 and brackets == "()" and len(short) <= 106:
        return (short,)
    lines = [f for item in items for f in fold(f"    {item},", 106, inside=True)]
    return (f"{name}={start}", *lines, f"{end},")


def _quote(text: str) -> str:
    return f'"{text}"'


def _reference(op: Op, name: str) -> Reference:
    named = keywords(op)
    params = ", ".join([*parameters(op), *(["*"] if named else []), *named])
    try:
        lines = dtype_lines(op, formula(op))
    except NoFormula as reason:
        lines = (f'raise NotImplementedError("plain torch has no line for {reason}")',)
    return Reference(name=name, params=params, lines=tuple(f for line in lines for f in fold(line, 106)))


def _cost(op: Op, costs: dict[str, Any]) -> str:
    args = [f'{costs["names"].get(d, d)}=d["{d}"]' for d in op.dims]
    args += [f'sizeof_{escape(p.name)}=launch.size_of(t["{p.name}"])' for p in op.dtype_params]
    told = dict(_sums(op, costs))
    args += [f'{e}=d["{e}"]' if e in told else f"{e}=0" for e in extra_symbols(op, costs)]
    line = f"    cost=lambda d, t: kernel.{escape(op.name)}_cost({', '.join(args)})"
    return "\n".join(fold(line, 109)).removeprefix("    cost=")


def _sums(op: Op, costs: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each symbol of the closed forms that sums something over lengths, and the sum as Python text."""
    from opspec.analysis.forms import closed_form_python, unbound
    from opspec.analysis.lattice.moments import MEANINGS

    written = {v: k for k, v in costs["names"].items()}
    for symbol in extra_symbols(op, costs):
        tensor, form = MEANINGS.get(written.get(symbol, symbol), ("", None))
        declared = op.tensor(tensor)
        if form is None or declared is None:
            continue
        names = {n: "n" if n == tensor else f'd["{n}"]' for n in unbound(form)}
        if set(names) <= {tensor, *op.dims}:
            text = closed_form_python(form, names)
            yield (
                symbol,
                f'sum(lengths["{tensor}"])' if text == "n" else f'sum({text} for n in lengths["{tensor}"])',
            )


def _moments(op: Op, costs: dict[str, Any]) -> tuple[str, ...]:
    """The keyword argument that computes these sums, or nothing."""
    items = [f'"{symbol}": {text}' for symbol, text in _sums(op, costs)]
    if not items:
        return ()
    short = f"moments=lambda d, lengths: {{{', '.join(items)}}},"
    if len(short) <= 106:
        return (short,)
    return (
        "moments=lambda d, lengths: {",
        *(f for i in items for f in fold(f"    {i},", 106, inside=True)),
        "},",
    )


def _keywords(op: Op) -> tuple[str, ...]:
    """The keyword argument with what is passed by name, or nothing."""
    items = [f'"{escape(s.name)}": 1' for s in keyword_scalars(op)]
    items += [f'"{escape(d)}": d["{d}"]' for d in free_dims(op)]
    if not items:
        return ()
    lines = fold(f"    keywords=lambda d: {{{', '.join(items)}}},", 106, inside=True)
    return tuple(line.removeprefix("    ") for line in lines)


def _rows(module: Module, op: Op) -> tuple[str, ...]:
    """The keyword argument with the axis along which the reference can be taken part by part, or nothing."""
    places = row_axes(op, module.workloads_of(op.name))
    if not places:
        return ()
    order = [t.name for t in op.tensors if t.name in places]
    items = ", ".join(f'"{n}": {places[n]}' for n in order)
    line = f"    rows={{{items}}},"
    return tuple(part.removeprefix("    ") for part in fold(line, 106, inside=True))


def _inputs(module: Module, op: Op, dims: dict[str, str]) -> list[str]:
    """Every positional argument, and how it is filled."""
    signs = Signs(op)
    scales = input_scales(op, module.workloads_of(op.name), signs)
    drawn = {name: f", scale=lambda d: {size.text(dims)}" for name, size in scales.items()}
    for name in {t.name for t in op.tensors} & (signs.positive | signs.shares):
        kind = "positive" if name in signs.positive else "uniform"
        drawn[name] = f', kind="{kind}"' + drawn.get(name, "")
    return [line for p in op.parameters for line in _input(op, p, dims, drawn.get(p, ""))]


def _input(op: Op, name: str, dims: dict[str, str], drawn: str) -> Iterator[str]:
    scalar = next((s for s in op.scalars if s.name == name), None)
    if scalar is not None:
        if scalar in keyword_scalars(op):
            return
        value = scalar.default if scalar.default is not None else 1
        yield f'bench.ScalarInput("{name}", {python_number(value)})'
        return
    tensor = op.tensor(name)
    if tensor is None or tensor.role == "out":
        return
    shape = tuple_text([host_int(e, dims) for e in tensor.extents]) if tensor.extents else "()"
    extra = _kind(op, tensor, dims) or drawn
    inout = ", inout=True" if tensor.role == "inout" else ""
    yield f'bench.TensorInput("{name}", dtype="{tensor.dtype.name}", extents=lambda d: {shape}{extra}{inout})'


def _kind(op: Op, tensor: Tensor, dims: dict[str, str]) -> str:
    """How a tensor is filled: from what the spec does with it."""
    kind = compute_dtype(tensor.dtype).kind
    if kind == "bool":
        return ', kind="bool"'
    if kind == "float":
        return ""
    total = segment_total(op, tensor.name)
    if total is not None:
        return f', kind="offsets", below=lambda d: {host_int(total, dims)}'
    target = _indexed_extent(op, tensor.name)
    if target is not None:
        distinct = any(a.kind == "distinct" and a.tensor == tensor.name for a in op.assumes)
        label = "distinct" if distinct else "index"
        return f', kind="{label}", below=lambda d: {host_int(target, dims)}'
    for a in op.assumes:
        if a.kind == "bound" and a.tensor == tensor.name and a.slack is not None:
            limit = a.slack + next(
                Int.of(x) for x in a.slack.atoms() if isinstance(x, Datum) and x.tensor == tensor.name
            )
            if not limit.tensors() and not limit.free_indices():
                return f', kind="lengths", below=lambda d: {host_int(limit, dims)}'
    return ', kind="codes"' if choices(tensor.dtype)[0].bits <= 8 else ', kind="index", below=lambda d: 2'


def _indexed_extent(op: Op, name: str) -> Int | None:
    """The extent of the axis that a tensor's elements index, if they index one."""
    for define in op.defines:
        for node in walk(define.value):
            if not isinstance(node, Read):
                continue
            tensor = op.tensor(node.name)
            if tensor is None:
                continue
            for i, extent in zip(node.indices, tensor.extents, strict=True):
                atom = i.atom
                if isinstance(atom, Datum) and atom.tensor == name:
                    return extent
        if define.output is not None:
            tensor = op.tensor(define.output.tensor)
            for i, extent in zip(define.output.at, tensor.extents if tensor else (), strict=True):
                if isinstance(i.atom, Datum) and i.atom.tensor == name:
                    return extent
    return None


def _workloads(module: Module, op: Op) -> Iterator[str]:
    for w in module.workloads_of(op.name):
        dtypes = "{" + ", ".join(f'"{k}": "{v.name}"' for k, v in w.dtypes) + "}"
        shapes = ["{" + ", ".join(f'"{k}": {v}' for k, v in dims) + "}" for _, dims in w.cases]
        known = ", ".join(f'"{n.tensor}": {_lengths(n)}' for n in w.lengths)
        if known:
            dtypes += f", {{{known}}}"
        if len(w.cases) == 1:
            yield f'"{w.name}": bench.Workload({shapes[0]}, {dtypes})'
        else:
            pairs = ", ".join(
                f"({weight!r}, {shape})" for (weight, _), shape in zip(w.cases, shapes, strict=True)
            )
            yield f'"{w.name}": bench.Distribution(({pairs}), {dtypes})'


def _lengths(known: Lengths) -> str:
    """Stated lengths: each one in order, shares of a distribution, or what has the stated mean."""
    if known.each:
        return f"bench.Lengths(listed={tuple_text([str(int(v)) for _, v in known.values])})"
    shares: dict[int, Fraction] = {}
    for weight, value in known.values:
        low = int(value)
        for length, part in ((low, 1 - (value - low)), (low + 1, value - low)):
            if part:
                shares[length] = shares.get(length, Fraction(0)) + weight * part
    pairs = [f"({float(share)!r}, {length})" for share, length in _few(shares)]
    return f"bench.Lengths({tuple_text(pairs)})"


def _few(shares: dict[int, Fraction]) -> list[tuple[Fraction, int]]:
    """At most ``MOST`` shares: neighbours of a long record are joined, at their mean, into parts of like weight."""
    if len(shares) <= MOST:
        return [(share, length) for length, share in sorted(shares.items())]
    total, gone = sum(shares.values(), Fraction(0)), Fraction(0)
    parts: dict[int, list[tuple[Fraction, int]]] = {}
    for length, share in sorted(shares.items()):
        parts.setdefault(min(int(gone / total * MOST), MOST - 1), []).append((share, length))
        gone += share
    joined = []
    for part in parts.values():
        weight = sum((w for w, _ in part), Fraction(0))
        joined.append((weight, round(sum((w * n for w, n in part), Fraction(0)) / weight)))
    return joined


def _tolerance(op: Op, dims: dict[str, str]) -> str:
    """Roundings along the longest chain of accumulation: the reduced points of every fold, and the operations."""
    terms: list[str] = []
    operations = 0
    relative = 0.0
    for define in op.defines:
        operations += sum(1 for _ in walk(define.value))
        if isinstance(define.value, Reduce):
            extents = [host_int(r.upper, dims) for r in define.value.ranges]
            terms.append(" * ".join(f"({e})" if " " in e else e for e in extents))
            if define.value.using is not None:
                relative = max(relative, 2.0**-8 if define.value.using != "tf32" else 2.0**-11)
    body = " + ".join([*dict.fromkeys(terms), str(4 * operations)])
    if _contraction(op).startswith("f8"):
        relative = max(relative, F8_SUMS)
    extra = _relative(op, relative)
    if any(isinstance(n, Cast) and n.dtype.kind == "int" and n.x.dtype is F32 for n in _nodes(op)):
        extra += ", codes=1"  # a rounding before the cast may carry a value over a tie
    return f"lambda d, t: bench.Tolerance(terms={body}{extra})"


def _nodes(op: Op) -> Iterator[Value]:
    return (n for d in op.defines for n in walk(d.value))


def _relative(op: Op, using: float) -> str:
    """What declared roundings may add: of operands, and of values stored in a narrower type on the way."""
    kept = [stored_dtype(op, d) for d in op.defines]
    kept += [n.to for n in _nodes(op) if isinstance(n, Cast) and isinstance(n.to, DTypeParam)]
    stored = {s for s in kept if s is not None and s != F32 and compute_dtype(s) is F32}
    fixed = max([using, *(2.0 ** -(s.mantissa + 1) for s in stored if not isinstance(s, DTypeParam))])
    texts = [repr(fixed)] if fixed else []
    if fixed < 2.0**-8:  # bf16 is the widest rounding that a dtype parameter can mean
        texts += sorted(f'bench.unit(t["{s.name}"])' for s in stored if isinstance(s, DTypeParam))
    if not texts:
        return ""
    return f", relative={texts[0]}" if len(texts) == 1 else f", relative=max({', '.join(texts)})"


def _contraction(op: Op) -> str:
    """The dtype of the matrix work, where there is any."""
    for define in op.defines:
        value = define.value
        if not isinstance(value, Reduce) or not isinstance(value.body, Binary) or value.body.op != "mul":
            continue
        if value.using is not None:
            return value.using
        kinds: list[Storage] = []
        for operand in (value.body.a, value.body.b):
            tensor = op.tensor(operand.name) if isinstance(operand, Read) else None
            if tensor is not None:
                kinds.append(tensor.dtype)
        if len(kinds) == 2 and kinds[0] == kinds[1]:
            a, b = (_own(value.body.a), _own(value.body.b))
            bound = {r.index for r in value.ranges}
            if a != b and bound <= a & b:
                return kinds[0].name
    return ""


def _own(value: object) -> frozenset[str]:
    found: set[str] = set()
    for node in walk(value):  # type: ignore[arg-type]
        for i in integers(node):
            found |= i.free_indices()
    return frozenset(found)
