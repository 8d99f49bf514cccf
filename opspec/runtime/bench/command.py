"""The command line of every generated driver."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from opspec.runtime.bench.model import Case, Distribution, Driver, UsageError, cases
from opspec.runtime.bench.named import check_peers, peers_of
from opspec.runtime.bench.options import ONE, add_options
from opspec.runtime.bench.session import INTERRUPTED, Session, roof_dtypes
from opspec.runtime.bench.shared import RunRoofs
from opspec.runtime.bench.statistics import Policy

POLICY = Policy(least=10, seconds=0.5, spread=0.005, budget=20.0)
QUICK = Policy(least=10, seconds=0.5, spread=0.02, budget=3.0)


def build_parser(drivers: Sequence[Driver]) -> argparse.ArgumentParser:
    """The options of a driver file, which measures one op or several."""
    names = ", ".join(f"`{driver.op}`" for driver in drivers)
    parser = argparse.ArgumentParser(
        prog="bench.py",
        description=f"Measure {names} of {drivers[0].spec} beside the closed form.",
        allow_abbrev=False,
    )
    add_options(
        parser,
        ONE,
        op={"choices": [driver.op for driver in drivers]},
        json={
            "help": "write the result, raw samples and all; `-` is standard output; of several ops each to FILE.OP"
        },
    )
    parser.set_defaults(peers="usual", seed=0)
    return parser


def main(
    *drivers: Driver, argv: Sequence[str] | None = None, open_bench: Callable[..., Any] | None = None
) -> int:
    """Run drivers: 0 if all is well, 1 if a result is wrong or impossible, 2 for bad usage, 130 if interrupted.

    ``argv`` is the command line of the process if left out; ``open_bench`` stands in for the GPU in tests.
    """
    parser = build_parser(drivers)
    options = parser.parse_args(argv)
    if options.list:
        print("\n".join(listing(driver) for driver in drivers), end="")
        return 0
    status = 0
    try:
        check_peers(options.peer, [driver.op for driver in drivers])
        given = [
            dataclasses.replace(driver, peers=(*driver.peers, *peers_of(driver.op, options.peer)))
            for driver in drivers
        ]
        chosen = choose_drivers(given, options)
        roofs = RunRoofs(wanted=all_dtypes(chosen, quick=options.quick))
        opened = open_bench or open_cuda()
        for driver, shapes in chosen:
            path = options.json if len(chosen) == 1 else beside(options.json, driver.op)
            session = Session(driver, options, path, opened, roofs=roofs)
            status = max(status, session.run(shapes))
            if status == INTERRUPTED:
                break
    except UsageError as error:
        print(f"bench.py: error: {error}", file=sys.stderr)
        return 2
    return status


def choose_drivers(drivers: Sequence[Driver], options: argparse.Namespace) -> list[tuple[Driver, list[Case]]]:
    """The drivers that are asked for, each with its shapes: of several ops, those that have the workload."""
    wanted = [driver for driver in drivers if not options.op or driver.op in options.op]
    if options.at:
        having = [driver for driver in wanted if any(name in driver.workloads for name in options.at)]
        wanted = having or wanted[:1]
    found = []
    for driver in wanted:
        names = [n for n in options.at or driver.workloads if len(wanted) == 1 or n in driver.workloads]
        shapes = [
            case for name in names for case in cases(driver, name, numbers(options.set), pairs(options.dtype))
        ]
        found.append((driver, shapes))
    return found


def beside(path: Path | None, op: str) -> Path | None:
    """``result.OP.json`` for ``result.json``: each op of several has a file of its own."""
    return path if path is None or str(path) == "-" else path.with_name(f"{path.stem}.{op}{path.suffix}")


def all_dtypes(chosen: Sequence[tuple[Driver, Sequence[Case]]], *, quick: bool) -> tuple[str, ...]:
    """Types whose matrix rate any of the drivers stands beside."""
    found = [dtype for driver, shapes in chosen for dtype in roof_dtypes(driver, shapes, quick=quick)]
    return tuple(dict.fromkeys(found))


def open_cuda() -> Any:
    """What opens the CUDA device with what measuring needs: once, whatever the number of drivers."""
    from opspec.runtime.bench.cuda_bench import Card

    return Card(policy)


def policy(options: argparse.Namespace) -> Policy:
    """When to stop, by the options."""
    base = QUICK if options.quick else POLICY
    return base if options.budget is None else dataclasses.replace(base, budget=options.budget)


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """``["X=bf16,Y=f32"]`` as a mapping."""
    found: dict[str, str] = {}
    for text in texts:
        for part in text.split(","):
            name, equals, value = part.partition("=")
            if not equals or not name.strip() or not value.strip():
                raise UsageError(f"`{part}` is not NAME=VALUE")
            found[name.strip()] = value.strip()
    return found


def numbers(texts: Sequence[str]) -> dict[str, int]:
    """``["M=8192"]`` as a mapping to non-negative integers."""
    found: dict[str, int] = {}
    for name, value in pairs(texts).items():
        if not (value.isascii() and value.isdigit()):
            raise UsageError(f"`{name}={value}`: a dim is a non-negative integer")
        found[name] = int(value)
    return found


def listing(driver: Driver) -> str:
    """Workloads, dims and dtypes, one a line."""
    lines = [f"{driver.op} of {driver.spec}"]
    for name, workload in driver.workloads.items():
        if isinstance(workload, Distribution):
            lines += [f"  {name}  weight {weight:g}  {shape(dims)}" for weight, dims in workload.shapes]
        else:
            lines.append(f"  {name}  {shape(workload.dims)}")
    lines += [f"  --dtype {name}={'|'.join(allowed)}" for name, allowed in driver.dtypes.items()]
    return "\n".join(lines) + "\n"


def shape(dims: Any) -> str:
    """Dims on one line."""
    return ", ".join(f"{name} = {value}" for name, value in dims.items())
