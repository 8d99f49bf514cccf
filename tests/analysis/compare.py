"""Hold the closed forms of one op against enumeration; returns what differs, as text."""

from __future__ import annotations

import random
import re
from collections import defaultdict

from brute import Shape, Tally, addresses

from opspec.analysis.costs import cost
from opspec.analysis.forms import closed_form_python, evaluate, python_names, unbound
from opspec.diagnostics import Failure


def shapes_for(op, rng, many=3, least=1, most=5):
    """Random dims, with data for every integer tensor: lengths within their bound, indices in range."""
    found = []
    for _ in range(many):
        shape = Shape({d: rng.randint(least, most) for d in op.dims})
        bounds = {a.tensor: a.slack for a in op.assumes if a.kind == "bound"}
        for t in op.tensors:
            if t.dtype.kind != "int":
                continue
            (n,) = (shape.value(e, {}) for e in t.extents)
            top = 1
            if t.name in bounds:
                slack = bounds[t.name]
                top = (
                    shape.dims
                    and slack.substitute(lambda a: _zero() if type(a).__name__ == "Datum" else None).evaluate(
                        shape.dims
                    )
                    + 1
                )
            low = 1 if t.name in bounds else 0
            shape.data[t.name] = {(k,): rng.randrange(low, max(top, 1)) for k in range(n)}
        for name, size in gathered(op):
            if name not in bounds:
                top = shape.value(size, {})
                shape.data[name] = {k: rng.randrange(top) for k in shape.data[name]}
        found.append(shape)
    return found


def _zero():
    from opspec.ir.integers import ZERO

    return ZERO


def gathered(op):
    from opspec.ir.values import Read, walk

    for d in op.defines:
        for v in walk(d.value):
            if isinstance(v, Read):
                t = op.tensor(v.name)
                for e, n in zip(v.indices, t.extents if t else (), strict=False):
                    if e.tensors():
                        yield next(iter(e.tensors())), n


def env_of(shape, names):
    """Values of dims and of moments such as ``sum(len^2)``."""
    env = dict(shape.dims)
    for name in names:
        m = re.fullmatch(r"sum\((\w+)(?:\^(\d+))?\)", name)
        if m:
            env[name] = sum(v ** int(m[2] or 1) for v in shape.data[m[1]].values())
    return env


def differences(op, seed=0, many=3, least=1, most=5, stats=None, large=(5, 6)):
    """All disagreements between ``cost(op)`` and enumeration on a few random shapes."""
    stats = defaultdict(int) if stats is None else stats
    rng = random.Random(seed)
    try:
        costs = cost(op)
    except Failure as f:
        stats["refused"] += 1
        stats["refused: " + re.sub(r"`[^`]*`", "_", str(f))[-90:]] += 1
        return []
    # Small and large shapes tell apart domains that happen to agree on the random ones.
    shapes = [
        *shapes_for(op, rng, 1, 1, 1),
        *shapes_for(op, rng, many, least, most),
        *shapes_for(op, rng, 1, *large),
    ]
    wrong = []
    lengths = any(a.kind == "bound" for a in op.assumes)
    for shape, total in zip(shapes, Tally(op, shapes).run(), strict=True):
        for unit in ("tensor", "vector", "sfu"):
            form = costs.total_flops(unit)
            env = env_of(shape, unbound(form))
            got = evaluate(form, env)
            if unbound(got):
                stats["moments without data"] += 1
            elif got > total[unit] and lengths:
                stats["conditions on data counted in full"] += 1
            elif got != total[unit]:
                wrong.append(f"flops.{unit}: {got} against {total[unit]} at {shape.dims}: {form}")
            else:
                names = python_names(unbound(form))
                text = closed_form_python(form, names)
                again = eval(text, {v: env.get(k, 0) for k, v in names.items()})
                if again != got:
                    wrong.append(f"python form {text} gives {again}, not {got} at {shape.dims}")
        for boundary in costs.boundaries:
            wrong += byte_differences(op, costs, boundary, shape, stats)
    return wrong


def byte_differences(op, costs, boundary, shape, stats):
    wrong = []
    touched = {k: len(v) for k, v in addresses(op, boundary, shape).items() if v}
    terms = {(t.kernel, t.tensor, t.direction): t for t in costs.byte_terms(boundary)}
    for key in sorted({*touched, *terms}):
        want = touched.get(key, 0)
        if key not in terms:
            wrong.append(f"bytes {key}: missing, {want} touched")
            continue
        term = terms[key]
        got = evaluate(term.elements, env_of(shape, unbound(term.elements)))
        stats[term.bound] += 1
        if unbound(got):
            stats["moments without data"] += 1
        elif term.bound == "upper":
            stats["upper: " + term.why] += 1
            if got < want:
                wrong.append(f"bytes {key}: bound {got} below {want} at {shape.dims}: {term.elements}")
        elif got > want and any(a.kind == "bound" for a in op.assumes):
            stats["conditions on data counted in full"] += 1
        elif got != want:
            wrong.append(f"bytes {key}: {got} against {want} at {shape.dims}: {term.elements}")
    return wrong


def main():
    """``python tests/analysis/compare.py 10000``: compare so many random ops, print what differs."""
    import sys

    from random_ops import Maker

    first, last = (0, int(sys.argv[1])) if len(sys.argv) == 2 else map(int, sys.argv[1:3])
    stats, bad = defaultdict(int), 0
    for seed in range(first, last):
        wrong = differences(Maker(seed).op(), seed, many=1, stats=stats)
        if wrong:
            bad += 1
            if bad <= 10:
                print(f"seed {seed}: " + "\n  ".join(wrong[:3]))
    print(f"{last - first} ops, {bad} differ;", dict(sorted(stats.items())))
    raise SystemExit(bad > 0)


if __name__ == "__main__":
    main()
