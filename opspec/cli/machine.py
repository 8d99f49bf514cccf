"""``opspec machine``."""

from __future__ import annotations

import argparse
from textwrap import wrap

from opspec.analysis.codes import BAD_MACHINE
from opspec.analysis.machine import Machine, available, load
from opspec.diagnostics import Diagnostic, Failure


def run(options: argparse.Namespace) -> int:
    """List the machines that ship, show one with the source of every value, or print the schema of their files."""
    if options.schema or options.action == "schema":
        import json

        from opspec.analysis.machine_schema import machine_schema

        print(json.dumps(machine_schema(), indent=2))
        return 0
    if options.action == "list":
        print("\n".join(listing([load(name) for name in available()])))
        return 0
    if options.name is None:
        known = ", ".join(available())
        message = "`opspec machine show` needs the name of a machine, or a TOML file"
        raise Failure(Diagnostic(code=BAD_MACHINE, message=message, span=None, help=f"known: {known}"))
    print("\n".join(page(load(options.name))))
    return 0


def listing(machines: list[Machine]) -> list[str]:
    """A line per machine; peaks are dense."""
    head = ("machine", "", "bf16 TFLOP/s", "f32 TFLOP/s", "TB/s", "ridge bf16", "launch µs")
    rows = [
        (
            m.name,
            m.title,
            _number(m.tensor.get("bf16", 0.0) / 1e12),
            _number(m.vector / 1e12),
            _number(m.bandwidth / 1e12),
            _number(m.ridge("bf16")),
            _number(m.launch * 1e6),
        )
        for m in machines
    ]
    wide = [max(len(r[i]) for r in (head, *rows)) for i in range(len(head))]
    return [
        "  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(r, wide, strict=True)))
        for r in (head, *rows)
    ]


def page(machine: Machine) -> list[str]:
    """Every value of a machine with its unit and source."""
    rows = [
        *((f"tensor.{k}", _number(v / 1e12), "TFLOP/s dense") for k, v in machine.tensor.items()),
        ("vector.f32", _number(machine.vector / 1e12), "TFLOP/s"),
        ("sfu.per_clock_sm", _number(machine.sfu / machine.clock / machine.sms), "per clock and SM"),
        ("memory.bandwidth", _number(machine.bandwidth / 1e12), "TB/s"),
        ("memory.size", _number(machine.memory / 1e9), "GB"),
        ("l2.bandwidth", _number(machine.l2_bandwidth / 1e12), "TB/s"),
        ("l2.size", _number(machine.l2_size / 2**20), "MiB"),
        ("clock.boost", _number(machine.clock / 1e9), "GHz"),
        ("sm.count", str(machine.sms), ""),
        ("sm.shared", str(machine.shared), "B"),
        ("sm.shared_block", str(machine.shared_block), "B"),
        ("sm.registers", str(machine.registers), "32-bit"),
        ("sm.threads", str(machine.threads), ""),
        ("launch.plain", _number(machine.launch * 1e6), "µs"),
        ("launch.graph", _number(machine.launch_graph * 1e6), "µs"),
    ]
    key = max(len(k) for k, _, _ in rows)
    value = max(len(f"{v} {u}".rstrip()) for _, v, u in rows)
    lines = [f"{machine.name}: {machine.title}, {machine.target}"]
    for k, v, u in rows:
        head = f"  {k:<{key}}  {f'{v} {u}'.rstrip():<{value}}  "
        lines += wrap(
            machine.sources.get(k, ""), 110, initial_indent=head, subsequent_indent=" " * len(head)
        ) or [head.rstrip()]
    ridges = ", ".join(f"{k} {_number(machine.ridge(k))}" for k in machine.tensor)
    return [*lines, f"  ridge in FLOP/B: {ridges}, vector {_number(machine.vector / machine.bandwidth)}"]


def _number(value: float) -> str:
    return f"{value:.6g}" if value < 1e6 else f"{value:.0f}"
