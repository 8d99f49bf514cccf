"""A spec's generated package: ``kernel.py``, ``bench.py`` and ``cost.json`` as text.

Pure: text in, text out. The same spec, prelude, machine data and version give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from opspec.diagnostics import Diagnostic
from opspec.emit.bench import DriverModel, driver_model
from opspec.emit.configure import Sizes
from opspec.emit.costs import CostFunction, cost_function, cost_lines, cost_text
from opspec.emit.host import safe_doc, wrap_doc
from opspec.emit.launcher import Function, Part, function_name, launcher, quoted
from opspec.emit.launches import every, launches_of, printed, reserved
from opspec.emit.layout import WIDTH, fold
from opspec.emit.lengths import (
    lengths_doc,
    odd,
    unspecialised_odd,
)
from opspec.emit.signature import (
    KernelText,
    RoleText,
    identifiers,
)
from opspec.emit.specialise import unspecialised
from opspec.emit.starting import KernelLaunch
from opspec.emit.used import check_lines, unpacked
from opspec.ir.dtypes import DTypeParam
from opspec.ir.program import Boundary, Module, Op
from opspec.resources import folder
from opspec.schedule.parted import with_parts
from opspec.schedule.plan import Plan, Variant, schedule_kernel
from opspec.schedule.resources import Limits
from opspec.schedule.serial import serial
from opspec.schedule.totals import typical_of
from opspec.version import VERSION

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """The files of one spec by name, and what was scheduled for them."""

    files: dict[str, str]
    launches: dict[tuple[str, str], tuple[KernelLaunch, ...]]
    skipped: tuple[tuple[str, str, str], ...]
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _KernelModel:
    decorator: str
    signature: str
    doc: str
    lines: tuple[str, ...]
    alias: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ConfigureModel:
    signature: str
    kernel: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PartModel:
    signature: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _FunctionModel:
    name: str
    signature: str
    doc: str
    lines: tuple[str, ...]
    kernels: tuple[_KernelModel, ...]
    configures: tuple[_ConfigureModel, ...]
    check: _PartModel
    launch: _PartModel
    operator: tuple[str, ...]
    used: tuple[_PartModel, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpModel:
    functions: tuple[_FunctionModel, ...]
    cost: CostFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class _KernelFile:
    title: str
    origin: str
    imports: tuple[str, ...]
    gluon: bool
    runtime: str
    ops: tuple[_OpModel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _BenchFile:
    ops_text: str
    origin: str
    example: str
    spec: str
    spec_hash: str
    kernel_hash: str
    version: str
    runtime: str
    torch: bool
    ops: tuple[DriverModel, ...]
    drivers: str


def namespace(spec: str) -> str:
    """The namespace of a package's operators in torch: where its spec lies, without the folder of all specs."""
    stem = spec.removesuffix(".op").removeprefix("specs/")
    return "opspec_" + re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_")


def spec_hash(module: Module) -> str:
    """SHA-256 over every source that a module was made from."""
    digest = hashlib.sha256()
    for source in module.files:
        digest.update(source.text.encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return digest.hexdigest()


def build_package(
    module: Module,
    spec: str,
    limits: Limits,
    sizes: Sizes = Sizes(),  # noqa: B008 - frozen
    *,
    debug: bool = False,
) -> Package:
    """Everything that is generated for one spec; ``spec`` is its path as shown to readers.

    ``debug``: functions that first check what data says of places to read and write.
    """
    launches: dict[tuple[str, str], tuple[KernelLaunch, ...]] = {}
    skipped: list[tuple[str, str, str]] = []
    warnings: list[Diagnostic] = []
    for spoken in module.ops:
        op = with_parts(spoken, typical_of(module.workloads_of(spoken.name)))
        for boundary in op.boundaries:
            if boundary.analysis:
                skipped.append((op.name, boundary.name, "marked `analysis`: it has costs only"))
                continue
            typical = typical_of(module.workloads_of(op.name))
            plans = [
                schedule_kernel(op, boundary, each, typical=typical, reserved=reserved(op))
                for each in boundary.kernels
            ]
            warnings += [w for p in plans if (w := serial(p.graph, typical)) is not None]
            single = next(b for b in spoken.boundaries if b.name == boundary.name)
            launches[op.name, boundary.name] = launches_of(
                module, spoken, single, op, boundary, plans, limits, sizes
            )
    digest = spec_hash(module)
    origin = (
        f"Generated by opspec {VERSION} from {spec} (sha256 {digest[:16]}); do not edit, regenerate with\n\n"
        f"    opspec build {'--debug ' if debug else ''}{spec}"
    )
    costs = {op.name: _cost_data(module, op) for op in module.ops}
    space = namespace(spec) + ("_debug" if debug else "")
    kernel = _kernel_file(module, launches, costs, origin, space, debug=debug)
    kernel_hash = hashlib.sha256(kernel.encode()).hexdigest()
    files = {
        "kernel.py": kernel,
        "bench.py": _bench_file(module, spec, digest, kernel_hash, origin, launches, costs),
        "cost.json": json.dumps(
            {"spec": spec, "sha256": digest, "version": VERSION, "ops": costs}, indent=1, ensure_ascii=False
        )
        + "\n",
    }
    return Package(files=files, launches=launches, skipped=tuple(skipped), warnings=tuple(warnings))


def _cost_data(module: Module, op: Op) -> dict[str, Any]:
    from opspec.analysis.export import cost_json

    return cost_json(module, op)


def _kernel_file(
    module: Module,
    launches: dict[tuple[str, str], tuple[KernelLaunch, ...]],
    costs: dict[str, dict[str, Any]],
    origin: str,
    namespace: str,
    *,
    debug: bool,
) -> str:
    texts = [t for ks in launches.values() for k in every(ks) for text in k.texts for t in printed(text)]
    helpers = sorted({h for t in texts for h in t.helpers})
    gluon = any(t.roles is not None for t in texts)
    ops = tuple(_op_model(op, launches, costs[op.name], namespace, debug=debug) for op in module.ops)
    title = safe_doc(
        module.doc.strip().splitlines()[0] if module.doc.strip() else ", ".join(o.name for o in module.ops)
    )
    model = _KernelFile(
        title=title,
        origin=origin,
        imports=(
            *(["from opspec.runtime import warp_specialised as warps"] if gluon else []),
            *_import_lines("opspec.runtime.device", helpers),
        ),
        gluon=gluon,
        runtime=", ".join(
            (
                *(m for m in ("adjacent",) if _uses(ops, m)),
                *(["checked"] if any(f.used for op in ops for f in op.functions) else []),
                *(m for m in ("copying",) if _uses(ops, m)),
                "launch",
                "library",
            )
        ),
        ops=ops,
    )
    return _render("kernel.py.j2", model)


def _import_lines(module: str, names: Sequence[str]) -> list[str]:
    """What imports names of a module; nothing where there are none."""
    plain = f"from {module} import {', '.join(names)}"
    if not names or len(plain) <= WIDTH:
        return [plain] if names else []
    return fold(f"from {module} import ({', '.join(names)})")


def _uses(ops: tuple[_OpModel, ...], module: str) -> bool:
    """Whether a launcher calls a module of the runtime."""
    lines = (line for op in ops for f in op.functions for line in f.launch.lines)
    return any(f"{module}." in line for line in lines)


def _op_model(
    op: Op,
    launches: dict[tuple[str, str], tuple[KernelLaunch, ...]],
    costs: dict[str, Any],
    namespace: str,
    *,
    debug: bool,
) -> _OpModel:
    functions = []
    for boundary in op.boundaries:
        if (op.name, boundary.name) not in launches:
            continue
        ks = launches[op.name, boundary.name]
        function = launcher(op, boundary.name, ks)
        model = _function_model(op, boundary, function, ks, costs, namespace)
        functions.append(_with_check(op, boundary, function, model) if debug else model)
    return _OpModel(functions=tuple(functions), cost=cost_function(op, costs))


def _function_model(
    op: Op,
    boundary: Boundary,
    function: Function,
    ks: tuple[KernelLaunch, ...],
    costs: dict[str, Any],
    namespace: str,
) -> _FunctionModel:
    kernels = []
    for k in every(ks):
        pairs = [(t, v) for text, v in zip(k.texts, k.plan.variants, strict=True) for t in printed(text)]
        for text, variant in pairs:
            kernels += [_role_model(role) for role in (text.roles.functions if text.roles else ())]
            kernels.append(_kernel_model(op, k.plan, text, _kernel_doc(k.plan, variant, text)))
        if k.lengths is not None:
            doc = safe_doc(lengths_doc(k.lengths.lengths))
            text = k.lengths.text
            kept = unspecialised_odd(op, k.plan, text, identifiers(op))
            names = f"do_not_specialize=[{', '.join(map(quoted, kept))}]"
            made = f"{odd(text.name)} = triton.jit("
            alias = fold(f"{made}{names})({text.name}.fn)")
            if len(alias[0]) > WIDTH:
                alias = [made, *fold(f"    {names}"), f")({text.name}.fn)"]
            kernels.append(_kernel_model(op, k.plan, text, doc, alias="\n".join(alias)))
    configures = tuple(
        _ConfigureModel(
            signature="\n".join(fold(f"def {c.name}({c.params}):")),
            kernel=c.kernel,
            lines=tuple(f for line in c.lines for f in fold(line, 106)),
        )
        for c in function.configures
    )
    return _FunctionModel(
        name=function.name,
        check=_part(function.check),
        launch=_part(function.launch),
        operator=_operator_lines(op, function, costs, namespace),
        signature="\n".join(fold(f"def {function.name}({function.params}) -> {function.returns}:")),
        doc="\n".join(_function_doc(op, boundary, costs)),
        lines=tuple(fold(function.line, 106)),
        kernels=tuple(kernels),
        configures=configures,
    )


def _decorator(kept: Sequence[str], *, gluon: bool) -> str:
    given = f"(do_not_specialize=[{', '.join(map(quoted, kept))}])" if kept else ""
    return f"@{'gluon' if gluon else 'triton'}.jit{given}"


def _role_model(role: RoleText) -> _KernelModel:
    """A function that warps of a kernel run."""
    params = ", ".join([*role.params, *(f"{c}: gl.constexpr" for c in role.constexprs)])
    return _KernelModel(
        decorator="@gluon.jit",
        signature="\n".join(fold(f"def {role.name}({params}):")),
        doc=role.doc,
        lines=tuple(f for line in role.lines for f in fold(line)),
    )


def _kernel_model(op: Op, plan: Plan, text: KernelText, doc: str, alias: str = "") -> _KernelModel:
    module = "gl" if text.roles else "tl"
    params = ", ".join([*text.params, *(f"{c}: {module}.constexpr" for c in text.constexprs)])
    kept = [p for p in unspecialised(op, plan, text) if p in text.params]
    return _KernelModel(
        alias=alias,
        decorator="\n".join(fold(_decorator(kept, gluon=text.roles is not None))),
        signature="\n".join(fold(f"def {text.name}({params}):")),
        doc=doc,
        lines=tuple(f for line in text.lines for f in fold(line)),
    )


def _with_check(op: Op, boundary: Boundary, function: Function, model: _FunctionModel) -> _FunctionModel:
    """The function of a debug build: it looks at data that says where to read and write, if there is any."""
    names = identifiers(op)
    lines = check_lines(op, boundary, names, function.tensors[0]) if function.tensors else ()
    if not lines:
        return model
    body = "\n".join(lines)
    whole = [names[s.name] for s in op.scalars if s.dtype.kind != "float"]
    taken = [t for t in (*function.tensors, *whole) if re.search(rf"\b{t}\b", body)]
    dims = [names[d] if re.search(rf"\b{names[d]}\b", body) else "_" for d in op.dims]
    name = f"_{function.name}__used"
    unpack = [unpacked(dims)] if set(dims) - {"_"} else []
    part = Part(name=name, params=", ".join(["dims", *taken]), lines=(*unpack, *lines))
    given = ", ".join(p.split(":")[0].split(" =")[0] for p in function.check.params.split(", "))
    calls = (
        f"if checked.possible({', '.join(t for t in taken if t not in whole)}):",
        f"    {name}({', '.join([f'{function.check.name}({given})[0]', *taken])})",
    )
    return replace(
        model, used=(_part(part),), lines=(*(f for c in calls for f in fold(c, 106)), *model.lines)
    )


def _part(part: Part) -> _PartModel:
    return _PartModel(
        signature="\n".join(fold(f"def {part.name}({part.params}):")),
        lines=tuple(f for line in part.lines for f in fold(line, 106)),
    )


def _operator_lines(op: Op, function: Function, costs: dict[str, Any], namespace: str) -> tuple[str, ...]:
    """The statement that registers the function with torch."""
    args = [
        f'"{namespace}::{function.schema}"',
        f"check={function.check.name}",
        f"launch={function.launch.name}",
        f"cost={cost_text(op, costs, function.tensors)}",
        "file=__file__",
    ]
    return tuple(fold(f"{function.operator} = library.Operator({', '.join(args)})"))


def _kernel_doc(plan: Plan, variant: Variant, text: KernelText) -> str:
    """Roles in words, then what rewrites and laws did."""
    roles = variant.roles
    parts = [f"{a} in parallel" + (" by blocks" if a in roles.blocked else "") for a in roles.grid]
    parts += [f"{a} whole" for a in roles.tile]
    ways = {roles.laned: "streamed in steps and lanes", roles.kept: "one by one, kept in registers"}
    parts += [f"{a} {ways.get(a, 'streamed')}" for a in roles.stream]
    split = variant.split
    if split is not None and text.sizes:
        joined = len(text.sizes) == 1
        cut = (split.axis, *(axis for axis, _ in split.beside))
        parts = [p for p in parts if not joined or not p.startswith(tuple(f"{a} streamed" for a in cut))]
        named = " and ".join(cut)
        parts.append(f"parts of {named} joined" if joined else f"{named} in {split.splits} parts")
    lines = [f"{variant.program.variant.capitalize()}: " + ", ".join(parts or ["one program"]) + "."]
    if text.roles is not None:
        lines[0] = f"{lines[0][:-1]}; two groups of warps multiply what another warp brings."
    elif text.tiles:
        lines[0] = f"{lines[0][:-1]}; tiles move through descriptors."
    facts = [f"{r.statement}: {r.text}." for r in plan.rewrites] + [f"{n}." for n in variant.program.notes]
    if facts:
        lines += ["", *(w for f in facts for w in wrap_doc(f, "    ")), ""]
        return "\n".join([safe_doc(lines[0]), *lines[1:-1], "    "])
    return safe_doc(lines[0])


def _function_doc(op: Op, boundary: Boundary, costs: dict[str, Any]) -> list[str]:
    """Mathematics, shapes and costs, indented for a function body; the first line without indent."""
    lines: list[str] = []
    doc = op.doc.strip() or f"The op `{op.name}`."
    lines += wrap_doc(doc, "    ")
    lines.append("")
    for kernel in boundary.kernels:
        lines.append(f"    kernel {kernel.name}:")
        for d in kernel.body:
            if d.kind != "temp" and d.span is not None:
                lines += wrap_doc("    " + " ".join(d.span.text.split()), "    ")
    lines.append("")
    for t in op.tensors:
        shape = ", ".join(map(str, t.extents))
        kind = (
            " | ".join(c.name for c in t.dtype.choices) if isinstance(t.dtype, DTypeParam) else t.dtype.name
        )
        name = t.dtype.name + " in " + kind if isinstance(t.dtype, DTypeParam) else kind
        role = {"in": "", "out": " (result)", "inout": " (updated in place)"}[t.role]
        lines += wrap_doc(f"{t.name}: [{shape}] {name}{role}", "    ")
    lines.append("")
    lines += [f"    {line}" for line in cost_lines(boundary, costs)]
    lines[0] = lines[0].strip()
    return lines


def _bench_file(
    module: Module,
    spec: str,
    digest: str,
    kernel_hash: str,
    origin: str,
    launches: dict[tuple[str, str], tuple[KernelLaunch, ...]],
    costs: dict[str, dict[str, Any]],
) -> str:
    models = tuple(
        driver_model(module, op, function_name(op, ""), len(launches[op.name, ""]), costs[op.name])
        for op in module.ops
        if (op.name, "") in launches
    )
    first = next((w.name for w in module.workloads), None)
    model = _BenchFile(
        ops_text=", ".join(f"`{m.name}`" for m in models),
        origin=origin,
        example=f"--at {first}" if first else "--set",
        spec=spec,
        spec_hash=digest,
        kernel_hash=kernel_hash,
        version=VERSION,
        runtime="bench, launch" if any("launch." in m.cost for m in models) else "bench",
        torch=any("torch." in line for m in models for line in m.reference.lines),
        ops=models,
        drivers=_main([m.driver_name for m in models]),
    )
    return _render("bench.py.j2", model)


def _main(drivers: list[str]) -> str:
    """The last statement of a driver file."""
    names = ", ".join(drivers)
    line = f"    raise SystemExit(bench.main({names}))"
    if len(line) <= WIDTH:
        return line
    single = f"        bench.main({names})"
    if len(single) <= WIDTH:
        return f"    raise SystemExit(\n{single}\n    )"
    inner = [f"            {names}"] if len(names) <= WIDTH - 12 else [f"            {d}," for d in drivers]
    return "\n".join(["    raise SystemExit(", "        bench.main(", *inner, "        )", "    )"])


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folder("templates")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - the output is Python, and every text in it was made safe for it
    )


def _render(template: str, model: object) -> str:
    return _environment().get_template(template).render(m=model)
