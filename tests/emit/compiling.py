"""A process that compiles the kernels of specs for a GPU that isn't there; one JSON line a request.

A request has ``text``, ``op`` (all of them otherwise), ``extents`` (each gives all dims one extent, or maps dims to theirs), ``target`` and
``wide`` (offsets of 64 bits), ``tiny`` (blocks of a few elements), ``until`` (the stage after which a compile ends, "ttir" or "ttgir") or ``first`` (only
what aligned operands take). The answer lists what was compiled, with registers, spills and shared memory
where asked, or ``broken``. With ``binaries`` (dims by name, many times) it says instead how many binaries
calls of ``op`` (the first otherwise) on contiguous inputs of those shapes need, other dims and dtypes as the
op's first workload has them; a ``spec`` by its path under ``specs`` is counted as it was generated. With ``exact``, a case of ``module``, it runs that.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import traceback
import types
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from held import held_operands

from opspec.diagnostics import Failure
from opspec.driver import compile as compiling
from opspec.driver import verify
from opspec.driver.targets import limits, target
from opspec.runtime import warp_specialised

ROOT = Path(__file__).parents[2]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    warp_specialised.ALWAYS = True  # however few tiles a shape has
    with tempfile.TemporaryDirectory(prefix="opspec-test-") as folder:
        try:
            if "exact" in request:
                importlib.import_module(request["module"]).CASES[request["exact"]]()
                return {"right": True}
            if "binaries" in request:
                return {"binaries": _binaries(request, Path(folder))}
            if request.get("launches"):
                return {"launches": _launches(request, Path(folder))}
            if "until" not in request:
                return {"compiled": _compile(request, Path(folder))}
            with patch("triton.compile", partial(_compiled_until, request["until"])):
                return {"compiled": _compile(request, Path(folder))}
        except Failure as failure:
            return {"refused": [d.code.code for d in failure.diagnostics]}
        except Exception:  # noqa: BLE001 - the answer is that something broke, and how
            return {"broken": traceback.format_exc()[-6000:]}


def _binaries(request: dict[str, Any], folder: Path) -> int:
    import torch
    from binaries import binaries

    from opspec.emit.host import stored_extents
    from opspec.emit.package import build_package
    from opspec.frontend import load
    from opspec.runtime.launch import DTYPES

    if "spec" in request:
        module = load(ROOT / "specs" / f"{request['spec']}.op")
        path = ROOT / "generated" / request["spec"] / "kernel.py"
    else:
        spec, path = folder / "spec.op", folder / "kernel.py"
        spec.write_text(request["text"], encoding="utf-8")
        module = load(spec)
        path.write_text(build_package(module, "spec.op", limits()).files["kernel.py"], encoding="utf-8")
    op = next(o for o in module.ops if o.name == request.get("op", module.ops[0].name))
    workload = next(iter(module.workloads_of(op.name)), None)
    shape = {} if workload is None else dict(workload.cases[0][1])
    dtypes = {p.name: p.choices[0] for p in op.dtype_params} | (
        {} if workload is None else dict(workload.dtypes)
    )
    operands = sorted(
        (t for t in op.tensors if t.role != "out" and t.name in op.parameters),
        key=lambda t: op.parameters.index(t.name),
    )
    inputs = []
    for given in request["binaries"]:
        dims = shape | given
        full = dims | {name: value.evaluate(dims) for name, value in op.derived}
        inputs.append(
            tuple(
                torch.empty(
                    [e.evaluate(full) for e in stored_extents(t)],
                    dtype=DTYPES[compiling._concrete(t.dtype, dtypes).name],
                    device="meta",
                )
                for t in operands
            )
        )
    whole = tuple(int(s.default or 0) for s in op.scalars if s.dtype.kind != "float")
    whole += tuple(shape[d] for d in op.dims if not any(d in e.dims() for t in operands for e in t.extents))
    return binaries(getattr(verify.load_module(path), f"_{op.name}__operator"), inputs, whole)


def _built(request: dict[str, Any], folder: Path) -> tuple[Any, Any, Any]:
    """The module of a request's text, its package, and the package's kernels as a module of Python."""
    from opspec.emit.configure import SMALL, Sizes
    from opspec.emit.package import build_package
    from opspec.frontend import load

    spec, path = folder / "spec.op", folder / "kernel.py"
    spec.write_text(request["text"], encoding="utf-8")
    module = load(spec)
    package = build_package(module, "spec.op", limits(), SMALL if request.get("tiny") else Sizes())
    path.write_text(package.files["kernel.py"], encoding="utf-8")
    return module, package, verify.load_module(path)


def _launches(request: dict[str, Any], folder: Path) -> list[str]:
    """Kernels that would start at each workload, with what they are given; nothing is compiled."""
    module, package, kernels = _built(request, folder)
    nothing = types.SimpleNamespace(asm={}, metadata=types.SimpleNamespace(shared=0, num_warps=4))
    with patch("triton.compile", lambda *_, **__: nothing):
        return [
            c.kernel
            for (name, _), launches in package.launches.items()
            if (op := module.op(name)) is not None
            for c in compiling.compile_first_choices(module, op, launches, kernels, target("sm_90"))
        ]


def _compiled_until(last: str, source: Any, target: Any, options: dict[str, Any]) -> Any:
    """What ``triton.compile`` gives, with the stages up to ``last``, whose names are those of the texts that they make."""
    from triton._C.libtriton import ir
    from triton.compiler import make_backend

    backend = make_backend(target)
    chosen = backend.parse_options({**options, **source.parse_options()})
    stages: dict[str, Any] = {}
    backend.add_stages(stages, chosen, source.language)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    made = source.make_ir(
        target, chosen, backend.get_codegen_implementation(chosen), backend.get_module_map(), context
    )
    metadata, texts = {"target": target, **chosen.__dict__}, {}
    for name, run in stages.items():
        made = run(made, metadata)
        texts[name] = str(made)
        if name in (last, "ttgir"):  # what is written in Gluon has no other before that
            break
    return types.SimpleNamespace(
        asm=texts, metadata=types.SimpleNamespace(shared=0, num_warps=chosen.num_warps)
    )


def _compile(request: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    from opspec.emit.signature import identifiers

    module, package, kernels = _built(request, folder)
    rows: list[dict[str, Any]] = []
    for (name, _), launches in package.launches.items():
        op = module.op(name)
        assert op is not None
        if request.get("op", name) != name:
            continue
        names = identifiers(op)
        for dtypes in list(verify.assignments(op))[: request.get("dtypes", 1)]:
            for extents in request["extents"]:
                dims = extents if isinstance(extents, dict) else compiling.within(op, extents)
                for launch in launches:
                    gpu = target(request.get("target", "sm_90"))
                    for kernel, options, tiles in _choices(
                        kernels, op, launch, names, dims, dtypes, gpu, request
                    ):
                        c = compiling._compile(
                            op,
                            launch,
                            kernel,
                            options,
                            tiles,
                            dims,
                            dtypes,
                            "",
                            gpu,
                        )
                        rows.append(
                            {
                                "kernel": c.kernel, "dims": dims, "spills": c.spills, "registers": c.registers,
                                "held": held_operands(str(c.asm.get("ttgir", ""))), "shared": c.shared,
                                "wgmma": c.wgmma or "ttng.warp_group_dot" in str(c.asm.get("ttgir", "")),
                                **{t: str(c.asm.get(t, "")) if request.get("ttir") else "" for t in ("ttir", "ptx")},
                            }
                        )  # fmt: skip
    return rows


def _choices(
    kernels: Any, op: Any, launch: Any, names: Any, dims: Any, dtypes: Any, gpu: Any, request: dict[str, Any]
) -> list[tuple[Any, dict[str, Any], Any]]:
    """What a launch would choose: with pointers, and where the target has them with descriptors and roles too."""
    wide = bool(request.get("wide"))
    prefix = f"_configure_{compiling_name(op, launch)}"
    function = getattr(kernels, prefix)
    wanted = function.__code__.co_varnames[: function.__code__.co_argcount]
    from opspec.emit.kernel_launch import streamed_tensors

    host = {names[d]: v for d, v in dims.items()}
    read = streamed_tensors(launch.plan)
    host["width"] = max((compiling._width(t.dtype, dtypes) for t in read), default=4)
    full = dims | {k: v.evaluate(dims) for k, v in op.derived}
    host["aligned"] = all(t.extents[-1].evaluate(full) % 16 == 0 for t in read if len(t.extents) > 1)
    out: list[tuple[Any, dict[str, Any], Any]] = []
    pointers = 0  # of what follows, those that take addresses
    for described, specialised in ((False, False), (True, False), (True, True)):
        host["described"], host["specialised"] = described, specialised
        if specialised and (
            "specialised" not in wanted
            or int(gpu.arch) != compiling.SPECIALISED
            or not compiling.wide_rows(launch, full)
        ):
            continue
        choice = function(*(host[w] for w in wanted))
        tiles = choice[3] if len(choice) > len(("kernel", "grid", "options")) else None
        if described and (
            tiles is None
            or (wide and not specialised)
            or not host["aligned"]
            or gpu.backend != "cuda"
            or int(gpu.arch) < 90
        ):
            continue
        # the whole stream in one program, and a part of it where a launch would cut it
        for kernel, options, own in {
            c[0].fn.__name__: c
            for c in ((choice[0], choice[2], tiles), compiling.started(launch, kernels, choice, full))
        }.values():
            index = {}
            if wide and "INDEX" in kernel.arg_names:
                import triton.language as tl

                index = {"INDEX": tl.int64}
            out.append((kernel, {**options, **index}, own))
        pointers = pointers or len(out)
    return out[pointers:] or out if request.get("first") else out


def compiling_name(op: Any, launch: Any) -> str:
    from opspec.emit.names import escape

    block = launch.plan.block
    return (
        f"{op.name}__{block.boundary}_{block.name}" if block.boundary else f"{escape(op.name)}_{block.name}"
    )


def main() -> None:
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
