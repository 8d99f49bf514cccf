"""The stages of the compiler as text: syntax tree, IR, tile programs, kernels, PTX, machine code."""

from __future__ import annotations

import dataclasses
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opspec.diagnostics import Diagnostic, Failure
from opspec.driver.files import Spec
from opspec.driver.targets import Target, limits
from opspec.frontend.files import read_source
from opspec.ir.program import Boundary, Module, Op
from opspec.source import Span

if TYPE_CHECKING:
    from opspec.driver.compile import Compiled
    from opspec.emit.kernel_launch import KernelLaunch


def syntax_text(spec: Spec) -> str:
    """The syntax tree of a file, before any name is looked up."""
    from opspec.frontend.parsing import parse

    report: list[Diagnostic] = []
    parsed = parse(read_source(spec.path, str(spec.path), None), report)
    if report:
        raise Failure(*report)
    return "\n".join(line for item in parsed.items for line in _tree(item, ""))


def _tree(node: Any, indent: str) -> Iterator[str]:
    """One line per node; leaves (names, numbers, spans) in their parent's line."""
    if isinstance(node, tuple):
        for part in (p for p in node if p is not None):
            yield from _tree(part, indent)
        return
    if isinstance(node, Span):
        yield f"{indent}{' '.join(node.text.split())}"
        return
    if not dataclasses.is_dataclass(node):
        yield f"{indent}{node}"
        return
    fields = [(f.name, getattr(node, f.name)) for f in dataclasses.fields(node) if f.name != "span"]
    leaves = [f"{k}={_leaf(v)}" for k, v in fields if _is_leaf(v) and v not in (None, (), "", False)]
    yield " ".join([indent + type(node).__name__, *leaves])
    for name, value in fields:
        if not _is_leaf(value):
            yield f"{indent}  {name}:"
            yield from _tree(value, indent + "    ")


def _is_leaf(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_leaf(v) for v in value)
    return not dataclasses.is_dataclass(value) or (hasattr(value, "text") and not isinstance(value, Span))


def _leaf(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_leaf, value))})"
    return str(value.text) if hasattr(value, "text") else repr(value)


def only(module: Module, op: Op) -> Module:
    """The module with one of its ops, as if the file held no other."""
    kept = tuple(w for w in module.workloads if w.op == op.name)
    return dataclasses.replace(module, ops=(op,), workloads=kept)


def launches_of(module: Module, spec: Spec) -> tuple[dict[tuple[str, str], tuple[KernelLaunch, ...]], str]:
    """What was scheduled, by op and boundary, and the text of ``kernel.py``."""
    from opspec.emit.package import build_package

    package = build_package(module, spec.shown, limits())
    return package.launches, package.files["kernel.py"]


def tile_text(launches: tuple[KernelLaunch, ...]) -> str:
    """Every variant's tile program."""
    from opspec.driver.show_tile import show_tile

    return "\n\n".join(show_tile(v.program) for launch in launches for v in launch.plan.variants)


def compiled_of(
    module: Module, op: Op, launches: tuple[KernelLaunch, ...], kernel_text: str, target: Target
) -> list[Compiled]:
    """First choices of an op, compiled for a target without a GPU.

    Raises: Failure without torch and triton.
    """
    if not can_compile():
        from opspec.driver.verify import NO_TORCH

        message = "torch and triton are not installed, so nothing can be compiled"
        raise Failure(Diagnostic(code=NO_TORCH, message=message, span=None, help=NO_TORCH.fix))
    from opspec.driver.compile import compile_first_choices
    from opspec.driver.verify import load_module

    with tempfile.TemporaryDirectory(prefix="opspec-explain-") as folder:
        path = Path(folder) / "kernel.py"
        path.write_text(kernel_text, encoding="utf-8")
        return compile_first_choices(module, op, launches, load_module(path), target)


def can_compile() -> bool:
    """Whether torch and triton are installed."""
    return find_spec("torch") is not None and find_spec("triton") is not None


def assembly(compiled: list[Compiled], stage: str) -> str:
    """PTX (or what the target has instead), or disassembled machine code, a heading per kernel."""
    parts = []
    for c in compiled:
        options = ", ".join(f"{k}={v}" for k, v in c.options.items())
        parts.append(f"// {c.kernel.lstrip('_')} at {c.workload}: {options}")
        parts.append(_text(c, stage).rstrip() + "\n")
    return "\n".join(parts)


def _text(c: Compiled, stage: str) -> str:
    if stage == "ptx":
        return str(c.asm.get("ptx") or c.asm.get("amdgcn") or "// this target has no PTX")
    if "cubin" not in c.asm:
        return str(c.asm.get("amdgcn") or "// this target has no cubin")
    from opspec.driver.compile import _cuobjdump

    tool = _cuobjdump()
    if tool is None:
        return "// cuobjdump is not installed"
    with tempfile.TemporaryDirectory(prefix="opspec-sass-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(c.asm["cubin"])
        done = subprocess.run([tool, "--dump-sass", str(path)], capture_output=True, text=True, check=False)
    return done.stdout or f"// {done.stderr.strip()}"


def boundary_of(op: Op, name: str) -> Boundary:
    """The boundary of that name.

    Raises: Failure that lists the op's boundaries.
    """
    found = next((b for b in op.boundaries if b.name == name), None)
    if found is None:
        from opspec.analysis.query.context import unknown, written

        known = [b.name for b in op.boundaries if b.name]
        failure = unknown(name, known, written("boundary", name), f"boundary of `{op.name}` called")
        if known:
            raise failure
        raise Failure(
            dataclasses.replace(
                failure.diagnostics[0], help=f"`{op.name}` has no boundary but its own kernels"
            )
        )
    return found
