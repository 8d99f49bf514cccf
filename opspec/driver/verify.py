"""``opspec verify``: generated kernels against the float64 reference.

On the CPU the kernels run in Triton's interpreter, with its known faults repaired first (each is
probed and named); what only a GPU can show is said. On CUDA they run as they are.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from opspec.diagnostics import Code, Diagnostic, Failure, register
from opspec.driver.files import Spec
from opspec.driver.targets import limits
from opspec.ir.dtypes import I4, DType, DTypeParam, choices
from opspec.ir.integers import FloorDiv
from opspec.ir.program import Boundary, Module, Op

if TYPE_CHECKING:
    import torch

    from opspec.reference.cases import Case

NO_TORCH = register(
    Code(
        code="OP623",
        title="torch and triton are needed for this",
        why="`verify` runs kernels, and `build` compiles them; both need torch and triton.",
        example="opspec verify specs/       # in an environment without triton",
        fix='Install them: `pip install "opspec[gpu]"`.',
    )
)
NO_CUDA = register(
    Code(
        code="OP624",
        title="no CUDA device",
        why="`--device cuda` needs a GPU that torch can see.",
        example="opspec verify specs/ --device cuda      # on a machine without a GPU",
        fix="Use `--device cpu`, which runs the kernels in Triton's interpreter.",
    )
)


SMALL, LARGE = 1 << 12, 1 << 17  # elements of the largest tensor: the interpreter is slow
ENOUGH = 3  # faults of one op, after which no more are sought


@dataclass(slots=True)
class Verdict:
    """What one op (in one boundary and dtype) showed."""

    op: str
    boundary: str
    dtypes: str
    cases: int = 0
    faults: list[str] = field(default_factory=list)
    over: int = 0
    decided: list[float] = field(default_factory=list)


def prepare(device: str) -> tuple[str, ...]:
    """Make the process ready to run kernels on ``device``; what of the interpreter was repaired.

    Must run before triton is imported: the interpreter is chosen when a kernel is defined.
    """
    if device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
    try:
        import torch
        import triton  # noqa: F401
    except ImportError as error:
        raise Failure(
            Diagnostic(code=NO_TORCH, message=f"{error.name} is not installed", span=None)
        ) from error
    if device == "cuda" and not torch.cuda.is_available():
        raise Failure(Diagnostic(code=NO_CUDA, message="torch sees no CUDA device", span=None))
    if device == "cpu":
        from opspec.runtime.interpreter import repair

        return repair()
    return ()


def verify_spec(
    spec: Spec,
    *,
    device: str,
    count: int,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Verdict]:
    """Verdicts of every buildable op, boundary and dtype of one spec.

    Cases alternate between the kernels as they ship and the same kernels configured for tiny
    blocks, so that every variant and several steps of every stream are walked on small shapes. Kernels whose
    warps have roles, which a launch takes where their tiles fill a device, run in every other case of the first kind.
    """
    from opspec.emit.configure import SMALL as SMALL_BLOCKS
    from opspec.emit.configure import Sizes
    from opspec.emit.package import build_package, prepare
    from opspec.frontend import load

    module = load(spec.path)
    prepared = prepare(module)
    with tempfile.TemporaryDirectory(prefix="opspec-verify-") as folder:
        kernels = []
        for k, sizes in enumerate((Sizes(), SMALL_BLOCKS)):
            path = Path(folder) / f"kernel{k}.py"
            package = build_package(module, spec.shown, limits(), sizes, prepared=prepared)
            path.write_text(package.files["kernel.py"], encoding="utf-8")
            kernels.append(load_module(path))
        verdicts = []
        for op, boundary in buildable(module):
            verdicts += [
                _verify(module, op, boundary, dtypes, kernels, device, count, seed, progress)
                for dtypes in assignments(op)
            ]
        return verdicts


def buildable(module: Module) -> Iterator[tuple[Op, Boundary]]:
    """Every (op, boundary) that has kernels."""
    for op in module.ops:
        for boundary in op.boundaries:
            if not boundary.analysis:
                yield op, boundary


def assignments(op: Op) -> Iterator[dict[str, DType]]:
    """Every choice of the op's dtype parameters."""
    for chosen in itertools.product(*(p.choices for p in op.dtype_params)):
        yield {p.name: c for p, c in zip(op.dtype_params, chosen, strict=True)}


def label(dtypes: dict[str, DType]) -> str:
    """``X=bf16``, or a dash without parameters."""
    return ",".join(f"{k}={v.name}" for k, v in dtypes.items()) or "-"


def load_module(path: Path) -> types.ModuleType:
    """Import a generated file by its path, under a name of its own."""
    name = f"opspec_generated_{abs(hash(str(path)))}"
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


def _verify(
    module: Module,
    op: Op,
    boundary: Boundary,
    dtypes: dict[str, DType],
    kernels: list[types.ModuleType],
    device: str,
    count: int,
    seed: int,
    progress: Callable[[str], None] = lambda _: None,
) -> Verdict:
    from opspec.emit.launcher import function_name
    from opspec.reference.cases import cases

    verdict = Verdict(op=op.name, boundary=boundary.name, dtypes=label(dtypes))
    functions = [getattr(k, function_name(op, boundary.name)) for k in kernels]
    limit = SMALL if device == "cpu" else LARGE
    for case in cases(op, dtypes, count, seed, workloads=module.workloads_of(op.name), limit=limit):
        verdict.cases += 1
        progress(f"{function_name(op, boundary.name)} {verdict.dtypes}, case {verdict.cases} of {count}")
        small = verdict.cases % 2 == 0
        with _roles(verdict.cases % 4 == 1, device):
            fault = _run_case(op, boundary, dtypes, functions[small], case, device, verdict)
        if fault is not None:
            verdict.faults.append(f"{case.words}{', in tiny blocks' if small else ''}: {fault}")
            if len(verdict.faults) >= ENOUGH:
                break
    return verdict


@contextmanager
def _roles(always: bool, device: str) -> Iterator[None]:
    """Take kernels whose warps have roles however few tiles there are, on the CPU too; or as a launch would."""
    from opspec.runtime import warp_specialised as warps

    before = warps.ALWAYS, warps.INTERPRETED
    warps.ALWAYS, warps.INTERPRETED = (True, device == "cpu") if always else before
    try:
        yield
    finally:
        warps.ALWAYS, warps.INTERPRETED = before


def _run_case(
    op: Op,
    boundary: Boundary,
    dtypes: dict[str, DType],
    function: Callable[..., object],
    case: Case,
    device: str,
    verdict: Verdict,
) -> str | None:
    import torch

    from opspec.reference.compare import compare, poisoned
    from opspec.reference.evaluate import evaluate
    from opspec.reference.reductions import EmptyDomain

    inputs = {k: _moved(v, device) for k, v in case.inputs.items()}
    try:
        expected = evaluate(op, case.inputs, case.scalars, case.dims, boundary.name, dtypes)
    except EmptyDomain:
        return _refuses(op, function, inputs, case)
    outs = tuple(
        poisoned(_empty(_stored(expected[t.name].value.shape, t.dtype), _concrete(t.dtype, dtypes), device))
        for t in op.results
    )
    call = call_arguments(op, inputs, case)
    out = {"out": outs if len(outs) > 1 else outs[0]} if outs else {}
    try:
        function(*call[0], **call[1], **out)
        if device == "cuda":
            torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 - whatever a kernel raises is what the verdict must say
        if type(error).__name__ == "OutOfResources":
            verdict.over += 1
            return None
        return f"{type(error).__name__}: {error}"
    found = {t.name: o for t, o in zip(op.results, outs, strict=True)}
    found |= {t.name: inputs[t.name] for t in op.tensors if t.role == "inout"}
    for name, tensor in found.items():
        declared = op.tensor(name)
        assert declared is not None
        verdict.decided.append(expected[name].decided)
        mismatch = compare(expected[name], tensor.cpu(), _concrete(declared.dtype, dtypes))
        if mismatch is not None:
            return f"`{name}`: {mismatch}"
    return None


def _stored(shape: tuple[int, ...], dtype: DType | DTypeParam) -> tuple[int, ...]:
    """A shape in memory: two i4 share a byte along the last axis."""
    return (*shape[:-1], -(-shape[-1] // 2)) if dtype == I4 and shape else tuple(shape)


def _refuses(
    op: Op, function: Callable[..., object], inputs: dict[str, torch.Tensor], case: Case
) -> str | None:
    """An extreme over nothing has no value: the launcher must say so."""
    from opspec.runtime.launch import LaunchError

    call = call_arguments(op, inputs, case)
    try:
        function(*call[0], **call[1])
    except LaunchError:
        return None
    return "a max or min over nothing was not refused"


def call_arguments(
    op: Op, inputs: dict[str, torch.Tensor], case: Case
) -> tuple[list[object], dict[str, object]]:
    """Positional and keyword arguments of the generated function for a case."""
    from opspec.emit.host import stored_extents
    from opspec.emit.names import escape

    outs = {t.name for t in op.results}
    named: dict[str, object] = {}
    for name in op.parameters:
        if name not in outs:
            named[escape(name)] = inputs[name] if name in inputs else case.scalars[name]
    shown = [e for t in op.tensors if t.role != "out" for e in stored_extents(t)]
    shown_dims = {getattr(e.atom, "name", None) for e in shown}
    reachable = {
        d for e in shown if len(e.dims()) == 1 and not isinstance(e.atom, FloorDiv) for d in e.dims()
    }
    for dim in op.dims:
        if dim not in shown_dims and dim not in reachable:
            named[escape(dim)] = case.dims[dim]
    return [], named


def _moved(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """The tensor on ``device`` with the same strides, storage offset included."""
    import torch

    if device == "cpu":
        return (
            tensor.clone(memory_format=torch.preserve_format) if _dense(tensor) else _copied(tensor, device)
        )
    return _copied(tensor, device)


def _dense(tensor: torch.Tensor) -> bool:
    return bool(tensor.is_contiguous()) and tensor.storage_offset() == 0


def _copied(tensor: torch.Tensor, device: str) -> torch.Tensor:
    import torch

    size = tensor.untyped_storage().nbytes() // max(tensor.element_size(), 1)
    flat = torch.as_strided(tensor, (size,), (1,), 0).clone().to(device)
    return torch.as_strided(flat, tuple(tensor.shape), tensor.stride(), tensor.storage_offset())


def _empty(shape: tuple[int, ...], dtype: DType, device: str) -> torch.Tensor:
    import torch

    from opspec.runtime.launch import DTYPES

    return torch.empty(shape, dtype=DTYPES[dtype.name], device=device)


def _concrete(dtype: DType | DTypeParam, dtypes: dict[str, DType]) -> DType:
    return dtypes[dtype.name] if isinstance(dtype, DTypeParam) else choices(dtype)[0]
