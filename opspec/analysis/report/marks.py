"""Where each number is from: the letters beside the numbers of both formats."""

from __future__ import annotations

from opspec.analysis.machine import Machine
from opspec.analysis.report.model import Measurement, Provenance
from opspec.analysis.review.wording import number

MARKS = {
    "D": "derived from the spec",
    "A": "asserted in a spec or a machine file",
    "M": "measured",
    "C": "calibrated on the card",
}
LETTERS: dict[Provenance, str] = {"derived": "D", "asserted": "A", "measured": "M", "calibrated": "C"}
_RATES = (("bytes_per_s", "B"), ("flops_per_s", "FLOP"))
_ASSUMED = {"launch": "launch.plain", "sfu": "clock.boost"}


def of_term(machine: Machine, resource: str) -> str:
    """The letter of the time that a resource needs: asserted where its rate on the machine is."""
    source = machine.sources.get(_ASSUMED.get(resource, ""), "")
    return "A" if source.startswith("asserted") else "D"


def of_ledger(row: str) -> str:
    """The letter of a row of the ledger of a measurement."""
    return {"floor at datasheet peaks": "D", "unexplained": "M"}.get(row, "C")


def rates(m: Measurement) -> list[str]:
    """What the time comes to in bytes and operations per second."""
    return [f"{number(m.rates[k], unit)}/s" for k, unit in _RATES if m.rates.get(k)]
