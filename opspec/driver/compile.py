"""Compile generated kernels to machine code without a GPU, and read what they need.

Triton's compiler takes a target and needs no device. The figures depend on the installed Triton,
so they go to the terminal and an ignored cache, never into committed files.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opspec.driver.targets import Target
from opspec.emit.host import stored_extents
from opspec.emit.kernel_launch import TOGETHER, KernelLaunch, streamed_tensors, taken_tensors
from opspec.emit.names import escape
from opspec.emit.signature import descriptor, identifiers, pointer, stride
from opspec.emit.splitting import parts_call, tile_places
from opspec.ir.bounds import prove
from opspec.ir.dtypes import DType, DTypeParam
from opspec.ir.facts import facts_of
from opspec.ir.integers import Int, dim
from opspec.ir.program import Module, Op
from opspec.schedule.adjacent import adjacent_axes

POINTER = {
    "f32": "*fp32", "bf16": "*bf16", "f16": "*fp16", "f8e4m3": "*fp8e4nv", "f8e5m2": "*fp8e5", "i8": "*i8", "i4": "*u8",
    "i32": "*i32", "i64": "*i64", "bool": "*i1",
}  # fmt: skip
OVERLAPS = 90  # the first architecture whose launches overlap
SPAN = 256  # for the sizes of a stream in parts: a multiple of 16, as spans are
SPECIALISED = 90  # the capability whose warps may have roles
SCALAR = {"float": "fp32", "int": "i32", "bool": "i32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """One kernel at one shape. Registers and spills per thread, shared memory in bytes per block."""

    kernel: str
    workload: str
    options: dict[str, Any]
    registers: int | None
    spills: int | None
    shared: int
    occupancy: float | None
    wgmma: bool
    asm: dict[str, Any]


def compile_first_choices(
    module: Module, op: Op, launches: tuple[KernelLaunch, ...], kernels: types.ModuleType, target: Target
) -> list[Compiled]:
    """Compile what the launcher would choose for each workload of an op; without one, for a middling shape."""
    workloads = module.workloads_of(op.name)
    shapes = [(w.name, dict(w.cases[-1][1]), dict(w.dtypes)) for w in workloads]
    if not shapes:
        shapes = [("1024 on every dim", within(op, 1024), {})]
    out: list[Compiled] = []
    seen: set[str] = set()
    names = identifiers(op)
    for workload, shape, fixed in shapes:
        dtypes = {p.name: fixed.get(p.name, p.choices[0]) for p in op.dtype_params}
        for launch in launches:
            name = f"_configure_{escape(op.name)}_{launch.plan.block.name}"
            if launch.plan.block.boundary:
                name = f"_configure_{op.name}__{launch.plan.block.boundary}_{launch.plan.block.name}"
            function = getattr(kernels, name)
            wanted = function.__code__.co_varnames[: function.__code__.co_argcount]
            dims = merged(launch, shape)
            host = {names[d]: v for d, v in dims.items()}
            read = streamed_tensors(launch.plan)
            host["width"] = max((_width(t.dtype, dtypes) for t in read), default=4)
            full = dims | {k: v.evaluate(dims) for k, v in op.derived}
            last = [t.extents[-1].evaluate(full) for t in read if len(t.extents) > 1]
            host["aligned"] = all(e % 16 == 0 for e in last)
            host["described"] = host["aligned"] and target.backend == "cuda" and int(target.arch) >= 90
            host["specialised"] = (
                host["described"]
                and int(target.arch) == SPECIALISED
                and wide_rows(launch, full)
                and in_halves(launch, dtypes)
            )
            if not set(wanted) <= set(host):
                continue
            choice = function(*(host[w] for w in wanted))
            kernel, options, tiles = started(launch, kernels, choice, full)
            key = f"{kernel.fn.__name__}:{options}:{dtypes}"
            if key in seen:
                continue
            seen.add(key)
            out.append(_compile(op, launch, kernel, dict(options), tiles, dims, dtypes, workload, target))
    return out


def wide_rows(launch: KernelLaunch, dims: dict[str, int]) -> bool:
    """Whether rows of what its kernel with roles stores are whole units of 16 bytes, as descriptors ask for."""
    roles = [t.warps.roles for t in launch.texts if t.warps is not None and t.warps.roles is not None]
    stored = {name for own in roles for name in own.results}
    results = [t for t in launch.plan.block.tensors if t.name in stored]
    return all(t.extents[-1].evaluate(dims) % 16 == 0 for t in results)


def in_halves(launch: KernelLaunch, dtypes: Mapping[str, DType]) -> bool:
    """Whether what its chain of products with roles multiplies, if it has one, is in 16 bits."""
    chained = {
        n for t in launch.texts if t.warps is not None and t.warps.roles for n in t.warps.roles.chained
    }
    return all(
        _concrete(t.dtype, dict(dtypes)).bits == 16 for t in launch.plan.block.tensors if t.name in chained
    )


def within(op: Op, extent: int) -> dict[str, int]:
    """``extent`` on every dim, and less on one of which the op requires that, by powers of two."""
    facts = facts_of(op)
    powers = [1 << k for k in range(11) if 1 << k < extent]
    return {d: next((n for n in powers if prove(Int.of(n) - dim(d), facts)), extent) for d in op.dims}


def merged(launch: KernelLaunch, dims: dict[str, int]) -> dict[str, int]:
    """The dims that a launcher passes to a kernel where all tensors are contiguous: neighbouring axes as one."""
    import torch

    from opspec.runtime import adjacent

    tensors = {t.name: t for t in launch.plan.block.tensors}
    out = dict(dims)
    full = dims | {k: v.evaluate(dims) for k, v in launch.plan.block.op.derived}
    for group in adjacent_axes(launch.plan):
        places = [
            (torch.empty([e.evaluate(full) for e in tensors[name].extents], device="meta"), first)
            for name, first in group.places
        ]
        extents = adjacent.merge(tuple(dims[d] for d in group.dims), *places, reduced=group.reduced)
        out |= dict(zip(group.dims, extents, strict=True))
    return out


Tiles = tuple[tuple[int | None, ...] | None, ...] | None


def started(
    launch: KernelLaunch, kernels: types.ModuleType, choice: tuple[Any, ...], dims: dict[str, int]
) -> tuple[Any, dict[str, Any], Tiles]:
    """The kernel that a launcher starts first for a ``choice`` of its configuration, its options and tiles:
    the chosen one, or the one that walks a part of its stream."""
    from opspec.runtime import launch as runtime

    kernel, grid, options, *more = choice
    tiles: Tiles = more[0] if more else None
    text = next((t for t in launch.texts if t.split is not None), None)
    own = [t for t in (text, None if text is None else text.described) if t is not None]
    chosen = next((t for t in own if t.name == kernel.fn.__name__), None)
    if chosen is None or text is None or text.split is None:
        return kernel, options, tiles
    call = parts_call(launch, text.split)
    extents = {a.name: a.extent.evaluate(dims) for a in launch.plan.variants[-1].program.axes}
    streams = [(extents[a], options[text.blocks[a]]) for a in call.streams]
    if call.function == "spread":
        parts, _ = runtime.spread(*streams[0], grid, options["num_warps"])
    elif call.function == "split_all":
        parts, _ = runtime.split_all(grid, *streams, steps=call.steps)
    else:
        warps = options["num_warps"] if call.warps else 0
        parts, _ = runtime.split(*streams[0], grid, call.steps, warps=warps, ragged=call.ragged)
    if parts < 2:
        return kernel, options, tiles
    partial = text.split.partial
    used = partial.described if tiles is not None and partial.described is not None else partial
    mine: Tiles = None
    if used.tiles and tiles is not None:
        mine = tuple(None if p is None else tiles[p] for p in tile_places(launch, chosen, used))
    if set(text.edges) - set(partial.edges):
        options = runtime.without_edges(options, *text.split.kept_edges(text))
    if "GROUP" in used.constexprs:
        options = {**options, "GROUP": TOGETHER}
    return getattr(kernels, used.name), options, mine


def _width(dtype: DType | DTypeParam, dtypes: dict[str, DType]) -> int:
    return max(_concrete(dtype, dtypes).bits // 8, 1)


def _concrete(dtype: DType | DTypeParam, dtypes: dict[str, DType]) -> DType:
    return dtypes[dtype.name] if isinstance(dtype, DTypeParam) else dtype


def _compile(
    op: Op,
    launch: KernelLaunch,
    kernel: Any,
    options: dict[str, Any],
    tiles: Tiles,
    dims: dict[str, int],
    dtypes: dict[str, DType],
    workload: str,
    target: Target,
) -> Compiled:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from opspec.runtime import warp_specialised
    from opspec.runtime.launch import DTYPES, Units, leading

    gluon = kernel.is_gluon()
    names = identifiers(op)
    values: dict[str, int] = {}
    signature: dict[str, str] = {}
    full = dims | {k: v.evaluate(dims) for k, v in op.derived}
    split = next((t.split for t in launch.texts if t.split is not None), None)
    sizes = () if split is None else split.split.sizes
    full |= dict.fromkeys(sizes, SPAN)
    for tensor in (*launch.plan.block.tensors, *(() if split is None else split.split.parts)):
        signature[pointer(tensor.name)] = POINTER[_concrete(tensor.dtype, dtypes).name]
        values[pointer(tensor.name)] = 16
        step = 1
        for i in reversed(range(len(tensor.extents))):
            signature[stride(tensor, i)] = "i32"
            values[stride(tensor, i)] = step
            step *= stored_extents(tensor)[i].evaluate(full)
    for text in launch.texts:
        if text.warps is not None and text.warps.marks:
            signature[text.warps.marks] = POINTER["i32"]
            values[text.warps.marks] = 16
    taken = taken_tensors(launch, kernel.arg_names)
    for tensor, tile in zip(taken, tiles or (), strict=bool(tiles)):
        if tile is not None:
            element = POINTER[_concrete(tensor.dtype, dtypes).name][1:]
            if isinstance(tile, Units):
                element = f"i{8 * tile.moved.itemsize}"
            block = leading(tile)[1]
            dtype = DTYPES[_concrete(tensor.dtype, dtypes).name]
            layout = f",{warp_specialised.layout_of(block, dtype)!r}" if gluon else ""
            signature[descriptor(tensor.name)] = f"tensordesc<{element}{list(block)}{layout}>"
    for name in op.dims:
        signature[names[name]] = "i32"
        values[names[name]] = dims[name]
    for size in sizes:
        signature[escape(size)] = "i32"
        values[escape(size)] = SPAN
    for scalar in op.scalars:
        signature[names[scalar.name]] = SCALAR[scalar.dtype.kind]
        if scalar.dtype.kind != "float" and scalar.default is not None:
            values[names[scalar.name]] = int(scalar.default)
    known = ("num_warps", "num_stages", "enable_fp_fusion", "maxnreg")
    launch_options = {k: options.pop(k) for k in known if k in options}
    overlaps = target.backend == "cuda" and int(target.arch) >= OVERLAPS
    constants: dict[str, Any] = {"INDEX": tl.int32, "OVERLAP": overlaps, **options}
    ordered = {}
    attributes = {}
    for position, name in enumerate(kernel.arg_names):
        if name in constants:
            ordered[name] = "constexpr"
        elif kernel.params[position].do_not_specialize:
            ordered[name] = signature[name]
        elif values.get(name) == 1 and name in values and not name.endswith("_ptr"):
            ordered[name] = "constexpr"
            constants[name] = 1
        else:
            ordered[name] = signature[name]
            if name in values and values[name] % 16 == 0:
                attributes[(position,)] = [["tt.divisibility", 16]]
    unknown = [k for k in options if k not in kernel.arg_names]
    if unknown:  # a launch would stop at it
        raise TypeError(f"{kernel.fn.__name__} takes no {', '.join(unknown)}")
    constants = {k: v for k, v in constants.items() if k in kernel.arg_names}
    made = warp_specialised.GluonASTSource if gluon else ASTSource
    source = made(fn=kernel, signature=ordered, constexprs=constants, attrs=attributes)
    gpu = GPUTarget(target.backend, target.arch, target.warp)
    compiled = triton.compile(source, target=gpu, options=launch_options)
    registers, spills = cubin_resources(compiled.asm) if target.backend == "cuda" else (None, None)
    shared, warps = int(compiled.metadata.shared), int(compiled.metadata.num_warps)
    # of warps with roles all are counted, and slots are what stages are elsewhere
    own = {"num_warps": warps, "num_stages": options["STAGES"]} if gluon else {}
    return Compiled(
        kernel=kernel.fn.__name__,
        workload=workload,
        options=options | launch_options | own,
        registers=registers,
        spills=spills,
        shared=shared,
        occupancy=_occupancy(target, registers, shared, warps),
        wgmma="wgmma" in str(compiled.asm.get("ptx", "")),
        asm=dict(compiled.asm),
    )


def cubin_resources(asm: Any) -> tuple[int | None, int | None]:
    """Registers and spilled bytes per thread, read from a cubin by Triton's own ``cuobjdump``."""
    import re
    import subprocess
    import tempfile

    tool = _cuobjdump()
    if tool is None or "cubin" not in asm:
        return None, None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(asm["cubin"])
        text = subprocess.run(
            [tool, "--dump-resource-usage", str(path)], capture_output=True, text=True, check=False
        ).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+).*?LOCAL:(\d+)", text)
    return (int(found[1]), int(found[2]) + int(found[3])) if found else (None, None)


def _cuobjdump() -> str | None:
    import shutil

    import triton

    bundled = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    return str(bundled) if bundled.exists() else shutil.which("cuobjdump")


def _occupancy(target: Target, registers: int | None, shared: int, warps: int) -> float | None:
    """Share of a multiprocessor's 64 warps that can be resident."""
    if registers is None:
        return None
    per_warp = -(-registers * 32 // 256) * 256
    by_registers = target.limits.registers // max(per_warp * warps, 1)
    by_shared = (target.limits.shared_memory + 1024) // (shared + 1024)
    blocks = min(by_registers, by_shared, 64 // warps, 32)
    return blocks * warps / 64
