"""``kernel.py`` of a package: kernels, what chooses among them, and the functions that launch them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opspec.emit.costs import cost_function, cost_text
from opspec.emit.docstrings import function_doc, kernel_doc
from opspec.emit.host import safe_doc
from opspec.emit.joined import Joined
from opspec.emit.kernel_launch import KernelLaunch
from opspec.emit.kernel_models import (
    ConfigureModel,
    FunctionModel,
    KernelFile,
    KernelModel,
    OpModel,
    PartModel,
)
from opspec.emit.launcher import Function, Part, launcher, quoted
from opspec.emit.launches import every, printed
from opspec.emit.layout import WIDTH, fold
from opspec.emit.lengths import (
    lengths_doc,
    odd,
    unspecialised_odd,
)
from opspec.emit.rendering import render
from opspec.emit.signature import (
    KernelText,
    RoleText,
    identifiers,
)
from opspec.emit.specialise import unspecialised
from opspec.emit.used import check_lines, unpacked
from opspec.ir.program import Boundary, Module, Op
from opspec.schedule.plan import Plan

if TYPE_CHECKING:
    pass


def kernel_file(
    module: Module,
    launches: dict[tuple[str, str], tuple[KernelLaunch, ...]],
    costs: dict[str, dict[str, Any]],
    origin: str,
    namespace: str,
    *,
    debug: bool,
) -> str:
    """The text of the file; ``namespace`` is that of its operators in torch, ``origin`` says what it was made from."""
    texts = [t for ks in launches.values() for k in every(ks) for text in k.texts for t in printed(text)]
    helpers = sorted({h for t in texts for h in t.helpers})
    gluon = any(t.roles is not None for t in texts)
    ops = tuple(_op_model(op, launches, costs[op.name], namespace, debug=debug) for op in module.ops)
    title = safe_doc(
        module.doc.strip().splitlines()[0] if module.doc.strip() else ", ".join(o.name for o in module.ops)
    )
    model = KernelFile(
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
    return render("kernel.py.j2", model)


def _import_lines(module: str, names: Sequence[str]) -> list[str]:
    """What imports names of a module; nothing where there are none."""
    plain = f"from {module} import {', '.join(names)}"
    if not names or len(plain) <= WIDTH:
        return [plain] if names else []
    return fold(f"from {module} import ({', '.join(names)})")


def _uses(ops: tuple[OpModel, ...], module: str) -> bool:
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
) -> OpModel:
    functions = []
    for boundary in op.boundaries:
        if (op.name, boundary.name) not in launches:
            continue
        ks = launches[op.name, boundary.name]
        function = launcher(op, boundary.name, ks)
        model = _function_model(op, boundary, function, ks, costs, namespace)
        functions.append(_with_check(op, boundary, function, model) if debug else model)
    return OpModel(functions=tuple(functions), cost=cost_function(op, costs))


def _function_model(
    op: Op,
    boundary: Boundary,
    function: Function,
    ks: tuple[KernelLaunch, ...],
    costs: dict[str, Any],
    namespace: str,
) -> FunctionModel:
    kernels = []
    for k in every(ks):
        pairs = [(t, v) for text, v in zip(k.texts, k.plan.variants, strict=True) for t in printed(text)]
        for text, variant in pairs:
            kernels += [_role_model(role) for role in (text.roles.functions if text.roles else ())]
            kernels.append(_kernel_model(op, k.plan, text, kernel_doc(k.plan, variant, text)))
        if k.lengths is not None:
            text, own = k.lengths.text, k.lengths.lengths
            if isinstance(own, Joined):
                held = f"all parts at once where {own.block} holds them, else streamed."
                doc = f"A small shape whole; {held}" if own.small is not None else f"A{held[1:]}"
                kernels.append(_kernel_model(op, k.plan, text, doc))
                continue
            doc = safe_doc(lengths_doc(own))
            kept = unspecialised_odd(op, k.plan, text, identifiers(op))
            names = f"do_not_specialize=[{', '.join(map(quoted, kept))}]"
            made = f"{odd(text.name)} = triton.jit("
            alias = fold(f"{made}{names})({text.name}.fn)")
            if len(alias[0]) > WIDTH:
                alias = [made, *fold(f"    {names}"), f")({text.name}.fn)"]
            kernels.append(_kernel_model(op, k.plan, text, doc, alias="\n".join(alias)))
    configures = tuple(
        ConfigureModel(
            signature="\n".join(fold(f"def {c.name}({c.params}):")),
            kernel=c.kernel,
            lines=tuple(f for line in c.lines for f in fold(line, 106)),
        )
        for c in function.configures
    )
    return FunctionModel(
        name=function.name,
        check=_part(function.check),
        launch=_part(function.launch),
        operator=_operator_lines(op, function, costs, namespace),
        signature="\n".join(fold(f"def {function.name}({function.params}) -> {function.returns}:")),
        doc="\n".join(function_doc(op, boundary, costs)),
        lines=tuple(fold(function.line, 106)),
        kernels=tuple(kernels),
        configures=configures,
    )


def _decorator(kept: Sequence[str], *, gluon: bool) -> str:
    given = f"(do_not_specialize=[{', '.join(map(quoted, kept))}])" if kept else ""
    return f"@{'gluon' if gluon else 'triton'}.jit{given}"


def _role_model(role: RoleText) -> KernelModel:
    """A function that warps of a kernel run."""
    params = ", ".join([*role.params, *(f"{c}: gl.constexpr" for c in role.constexprs)])
    return KernelModel(
        decorator="@gluon.jit",
        signature="\n".join(fold(f"def {role.name}({params}):")),
        doc=role.doc,
        lines=tuple(f for line in role.lines for f in fold(line)),
    )


def _kernel_model(op: Op, plan: Plan, text: KernelText, doc: str, alias: str = "") -> KernelModel:
    module = "gl" if text.roles else "tl"
    params = ", ".join([*text.params, *(f"{c}: {module}.constexpr" for c in text.constexprs)])
    kept = [p for p in unspecialised(op, plan, text) if p in text.params]
    return KernelModel(
        alias=alias,
        decorator="\n".join(fold(_decorator(kept, gluon=text.roles is not None))),
        signature="\n".join(fold(f"def {text.name}({params}):")),
        doc=doc,
        lines=tuple(f for line in text.lines for f in fold(line)),
    )


def _with_check(op: Op, boundary: Boundary, function: Function, model: FunctionModel) -> FunctionModel:
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


def _part(part: Part) -> PartModel:
    return PartModel(
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
