"""Other implementations of the same reference, in the same run: torch eager, ``torch.compile``, named ones.

A peer that cannot be made, fails or is wrong becomes a row that says so, and so does one whose library is not
installed; the fastest correct one is the baseline.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from opspec.runtime.bench.check import OutputCheck, as_tuple, check_outputs, close_enough
from opspec.runtime.bench.model import Case, Driver, Peer, Tolerance
from opspec.runtime.bench.preparing import preparing
from opspec.runtime.bench.sampling import Candidate, one_line


@dataclass(slots=True, kw_only=True)
class PeerRow:
    """What became of one peer before timing: ``status`` is ready, wrong, failed or unavailable.

    ``prepared`` says what was made of its arguments outside of the timed span, if anything was.
    """

    name: str
    version: str
    status: str
    reason: str = ""
    prepared: str = ""
    first_call_s: float | None = None
    checks: tuple[OutputCheck, ...] = ()
    candidate: Candidate | None = None


def known_peers(driver: Driver, *, autotune: bool) -> tuple[Peer, ...]:
    """The reference run eagerly and compiled, with ``autotune`` also as ``max-autotune`` compiles it, once in CUDA
    graphs of torch's own (which copy inputs that lie elsewhere) and once without; then those that are named."""
    version = f"torch {torch.__version__}"

    def compiled(mode: str | None) -> Callable[..., Any]:
        return torch.compile(driver.reference, dynamic=False, mode=mode)  # type: ignore[no-any-return,unused-ignore]

    peers = [
        Peer("torch eager", lambda _dims, _dtypes: driver.reference, version),
        Peer("torch.compile", lambda _dims, _dtypes: compiled(None), version),
    ]
    if autotune:
        mode = "max-autotune"
        peers += [
            Peer(f"torch.compile {mode}", lambda _dims, _dtypes: compiled(mode), version, replays=True),
            Peer(
                f"torch.compile {mode}, no graphs",
                lambda _dims, _dtypes: compiled(f"{mode}-no-cudagraphs"),
                version,
            ),
        ]
    return (*peers, *driver.peers)


def prepare_peers(
    driver: Driver,
    case: Case,
    sets: Sequence[Any],
    references: Sequence[Any],
    tolerance: Tolerance,
    *,
    peers: Sequence[Peer],
    synchronize: Callable[[], None],
    progress: Callable[[str], None],
) -> list[PeerRow]:
    """Make, run once and check each peer on the first set of inputs."""
    rows: list[PeerRow] = []
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()  # once per shape: what is compiled next stays in use until the shape is done
    for peer in peers:
        progress(f"preparing {peer.name}")
        start = time.perf_counter()
        row = PeerRow(name=peer.name, version=peer.version, status="failed")
        rows.append(row)
        try:
            function = peer.factory(case.dims, case.dtypes)
            call, row.prepared = caller(function, sets)
            outputs = as_tuple(call(0))
            synchronize()
        except ImportError as error:
            row.status, row.reason = "unavailable", one_line(error)
            continue
        except Exception as error:  # noqa: BLE001  # a peer may fail in any way; the row says how
            row.reason = one_line(error)
            row.first_call_s = time.perf_counter() - start
            continue
        row.first_call_s = time.perf_counter() - start
        row.checks = check_outputs(driver.results, outputs, references, tolerance)
        if close_enough(row.checks, tolerance):
            row.status = "ready"
            row.candidate = Candidate(name=peer.name, call=call, replays=peer.replays)
        else:
            row.status = "wrong"
            row.reason = "; ".join(c.reason or f"relative error {c.frobenius:.1e}" for c in row.checks)
    return rows


def caller(function: Callable[..., Any], sets: Sequence[Any]) -> tuple[Callable[[int], Any], str]:
    """``function`` on the i-th set of inputs, and what was made of these beforehand if it is marked `prepared`."""
    prepare = preparing(function)
    if prepare is None:
        return lambda index: sets[index].call(function), ""
    made = [as_tuple(inputs.call(prepare)) for inputs in sets]
    said = (prepare.__doc__ or "its arguments").strip().splitlines()[0].rstrip(".")
    return lambda index: function(*made[index]), said
