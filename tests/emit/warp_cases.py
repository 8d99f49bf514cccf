"""Products whose warps have roles, run by the process that interprets; see ``runtime/warp_interpreter.py``."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch

from opspec.driver.targets import limits
from opspec.driver.verify import call_arguments, load_module
from opspec.emit.package import build_package
from opspec.frontend import load
from opspec.reference.compare import compare, poisoned
from opspec.reference.evaluate import evaluate
from opspec.runtime import warp_interpreter, warp_specialised
from opspec.runtime.launch import DTYPES

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
CASES: dict[str, Callable[[], None]] = {}
EPILOGUE = """op f[B, M, N, K](x: bf16[B, M, K], w: bf16[B, N, K], r: bf16[B, M, N], bias: f32[N], row: f32[B, M], tiles: f32)
  -> y: bf16[B, M, N], slot: f32[B, M, N] {
  kernel k {
    s[b, m, n] = sum[k](x[b, m, k] * w[b, n, k])
    y[b, m, n] = silu(s[b, m, n] + bias[n]) * row[b, m] + r[b, m, n]
    slot[b, m, n] = s[b, m, n] * tiles
  }
}
"""
ENDS = """op f[M, K](a: bf16[M, K], b: bf16[M, K], r: bf16[M, M], u: f32[M], keep: bool[M, M])
  -> c: bf16[M, M], d: f16[M, M] {
  kernel k {
    s[m, n] = sum[k](a[m, k] * b[n, k])
    c[m, n] = where(m // 3 < n, s[m, n] + r[n, m], gelu(s[m, n])) * u[m % 7]
    d[m, n] = where(keep[m, n], f8e4m3.sat(s[m, n]) / (1.0 + abs(u[n])), (r[m, n + 1] else 0))
  }
}
"""
OWN_NAMES = """op f[slot, phase, wave](free: bf16[slot, wave], filled: bf16[phase, wave], WHO: f32[phase]) -> LAYOUT: f32[slot, phase] {
  kernel warps { LAYOUT[gl, never] = sum[unit](free[gl, unit] * filled[never, unit]) * WHO[never] }
}
"""
PLAIN = """op f[M, N, K](a: bf16[M, K], b: bf16[N, K]) -> c: bf16[M, N] {
  kernel k { c[m, n] = sum[k](a[m, k] * b[n, k]) }
}
"""


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


def run(
    text: str,
    dims: dict[str, int],
    op: str = "",
    edits: tuple[tuple[str, str], ...] = (),
    change: Callable[[dict[str, torch.Tensor]], None] = lambda _: None,
    **scalars: float,
) -> str | None:
    """What is wrong with the results of an op that must have run with roles; ``edits`` of its kernel file."""
    with tempfile.TemporaryDirectory(prefix="opspec-test-") as folder:
        spec, path = Path(folder) / "spec.op", Path(folder) / "kernel.py"
        spec.write_text(text, encoding="utf-8")
        module = load(spec)
        kernel = build_package(module, "spec.op", limits()).files["kernel.py"]
        for pattern, by in edits:
            kernel, count = re.subn(pattern, by, kernel)
            assert count, pattern
        path.write_text(kernel, encoding="utf-8")
        kernels = load_module(path)
        return _run(module, kernels, dims, op, change, scalars)


def _run(module, kernels, dims, wanted, change, scalars) -> str | None:
    op = next(o for o in module.ops if o.name == (wanted or module.ops[0].name))
    dtypes = {p.name: p.choices[0] for p in op.dtype_params}
    full = dims | {k: v.evaluate(dims) for k, v in op.derived}
    torch.manual_seed(0)
    inputs, outs = {}, {}
    for t in op.tensors:
        stored = dtypes.get(t.dtype.name, t.dtype)
        shape = [e.evaluate(full) for e in t.extents]
        made = torch.randn(shape)
        made = made > 0 if stored.name == "bool" else made.to(DTYPES[stored.name])
        if t.role == "out":
            outs[t.name] = poisoned(made)
        else:
            inputs[t.name] = made

    change(inputs)
    of = SimpleNamespace(scalars=scalars, dims=dims)
    expected = evaluate(op, inputs, scalars, dims, "", dtypes)
    started: list[str] = []

    given, named = call_arguments(op, inputs, of)
    results = tuple(outs.values())
    with (
        mock.patch.object(warp_specialised, "INTERPRETED", True),
        mock.patch.object(warp_specialised, "ALWAYS", True),
        mock.patch.object(warp_interpreter, "run", _counting(started)),
    ):
        getattr(kernels, op.name)(*given, **named, out=results if len(results) > 1 else results[0])
    assert len(started) == 1, started
    for name, found in outs.items():
        declared = op.tensor(name)
        stored = dtypes.get(declared.dtype.name, declared.dtype)
        if (wrong := compare(expected[name], found, stored)) is not None:
            return f"{name}: {wrong}"
    return None


def _counting(started: list[str]) -> Callable[..., None]:
    run = warp_interpreter.run

    def counted(kernel, *rest):
        started.append(kernel.fn.__name__)
        run(kernel, *rest)

    return counted


def spec(name: str) -> str:
    return (ROOT / "specs" / f"{name}.op").read_text(encoding="utf-8")


def corpus(name: str) -> str:
    return (CORPUS / f"{name}.op").read_text(encoding="utf-8")


def right(*args, **more) -> None:
    wrong = run(*args, **more)
    assert wrong is None, wrong


EDGE = {"M": 200, "N": 264, "K": 328}  # no multiple of any block


@case
def every_layout_of_both_operands() -> None:
    for op in ("matmul", "matmul_nt", "matmul_tn", "matmul_tt"):
        right(spec("gemm/matmul"), EDGE, op)


def programs(count: int):
    """So few programs that each has several tiles."""
    return mock.patch("opspec.runtime.launch.resident", lambda wanted, _: min(wanted, count))


@case
def more_tiles_than_programs() -> None:
    with programs(3):
        right(spec("gemm/matmul"), {"M": 520, "N": 776, "K": 136}, "matmul_nt")


@case
def two_products_share_rows() -> None:
    right(spec("gemm/gated_mlp"), EDGE)
    right(corpus("gated_product"), {"M": 136, "N": 136, "K": 72})


@case
def batches() -> None:
    right(spec("gemm/batched_matmul"), {"B": 3} | EDGE)


@case
def an_epilogue_of_vectors_tiles_and_scalars_with_two_results() -> None:
    right(EPILOGUE, {"B": 2, "M": 136, "N": 264, "K": 72}, tiles=0.5)


@case
def an_epilogue_of_indices_conditions_and_places_elsewhere() -> None:
    right(ENDS, {"M": 136, "K": 72})


@case
def names_of_the_form_itself() -> None:
    right(OWN_NAMES, {"slot": 136, "phase": 136, "wave": 72})


@case
def eight_bits_whose_steps_are_added() -> None:
    right(spec("gemm/matmul_fp8"), {"M": 300, "N": 264, "K": 656}, "matmul_fp8")


@case
def scales_of_blocks() -> None:
    right(spec("gemm/matmul_fp8"), {"M": 300, "N": 256, "K": 640, "S": 128}, "matmul_fp8_block")
    right(corpus("block_scaled"), {"M": 136, "N": 136, "G": 3, "S": 128})


@case
def the_interpreter_sees_a_slot_that_is_given_back_too_early() -> None:
    early = (r"give_back_before\(free, slot, k_start > 0, STAGES\)", "give_back(free, slot)")
    wrong = None
    try:
        wrong = run(
            PLAIN,
            EDGE | {"K": 520},
            edits=(early, (r"warps.give_back_before\(free, slot, True, STAGES\)", "pass")),
        )
    except Exception as error:  # noqa: BLE001 - any failure will do
        wrong = str(error)
    assert wrong is not None


@case
def the_interpreter_sees_a_turn_that_never_comes() -> None:
    for edit in (
        (r"slot, phase = 0, 1", "slot, phase = 0, 0"),
        (r"warps.give_back_before\(free, slot, True, STAGES\)", "pass"),
    ):
        try:
            with programs(1):
                run(PLAIN, EDGE | {"M": 520, "K": 1032}, edits=(edit,))
        except Exception as error:  # noqa: BLE001
            assert "waits" in str(error), error
        else:
            raise AssertionError("nothing stood still")


@case
def the_interpreter_sees_a_tile_that_is_not_stored() -> None:
    assert run(PLAIN, EDGE, edits=((r"warps.put_all\(\)", "pass"),)) is not None


@case
def the_interpreter_has_every_piece() -> None:
    pieces = {n for n, f in vars(warp_specialised).items() if getattr(f, "is_gluon", bool)()}
    assert pieces and pieces <= set(dir(warp_interpreter.Pieces)), pieces


def prefill(op: str, **dims: int) -> None:
    """An op of attention, at extents that no block divides."""
    right(spec("attention/prefill"), {"B": 1, "Hq": 2, "Hkv": 1, "L": 200, "T": 328, "D": 40} | dims, op)


@case
def a_chain_of_two_products() -> None:
    prefill("attention")


@case
def a_chain_whose_stream_is_shorter_than_a_step() -> None:
    prefill("attention_lse", L=130, T=17, D=64)


@case
def a_chain_with_a_result_of_rows_and_a_domain() -> None:
    prefill("attention_causal", D=64)


CHAIN = """op f[M, T, D, E](q: f16[M, D], k: f16[T, D], v: f16[T, E], slope: f32[M], u: f32[T]) -> o: f32[M, E], top: f32[M], lse: f32[M] {
  kernel k {
    s[m, t] = softplus(sum[d](q[m, d] * k[t, d]) * slope[m]) + u[t]  for t < m + 3
    top[m] = max[t](s[m, t])
    o[m, e] = sum[t] using f16 (softmax[t](s[m, t]) * v[t, e]) * slope[m]
    lse[m] = logsumexp[t](s[m, t])
  }
}
workload w for f { M = 65536, T = 4096, D = 64, E = 128 }
"""


@case
def a_chain_with_vectors_and_other_columns() -> None:
    right(CHAIN, {"M": 140, "T": 150, "D": 24, "E": 72})


@case
def what_is_outside_of_the_domain_of_a_chain_does_not_count() -> None:
    def wild(inputs) -> None:
        inputs["v"][..., 290:, :] = float("inf")  # no row of the first 250 sees these
        inputs["v"][..., 7, :] = float("nan")  # every row does

    right(
        spec("attention/prefill"),
        {"B": 1, "Hq": 1, "Hkv": 1, "L": 140, "T": 300, "D": 16},
        "attention_causal",
        change=wild,
    )


@case
def a_chain_that_gives_the_values_back_too_early_is_wrong() -> None:
    early = (
        r"( +)(o_sum = warps\.add_product\(made, v, o_sum\)\n)",
        r"\1\2\1warps.give_back(second_free, last)\n",
    )
    late = (r"(o_sum = warps\.finished\(o_sum\)\n) +warps\.give_back\(second_free, last\)\n", r"\1")
    own = {"B": 1, "Hq": 1, "Hkv": 1, "L": 128, "T": 1200, "D": 64}
    assert run(spec("attention/prefill"), own, "attention", edits=(early, late)) is not None
