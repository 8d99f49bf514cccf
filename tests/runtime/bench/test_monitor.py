"""Clocks and throttle reasons as the driver tells them."""

from __future__ import annotations

import pytest

from opspec.runtime.bench import monitor
from opspec.runtime.bench.monitor import Monitor, parse_smi, reasons

SCRIPT = """#!/bin/sh
case "$*" in
  *clocks_event_reasons*) echo "Field is not a valid field to query."; exit 2;;
esac
echo "1410, 3201, 699.80, 61, 0x0000000000000004"
"""


def test_reasons_that_hold_the_card_back():
    assert reasons(0x4) == ("power cap",)
    assert reasons(0x44) == ("power cap", "hardware thermal slowdown")
    assert reasons(0x1 | 0x2) == ()


def test_a_line_of_nvidia_smi():
    look = parse_smi("1980, 3201, 81.94, 38, 0x0000000000000000")
    assert (look.sm_mhz, look.memory_mhz, look.power_w, look.temperature_c, look.throttle) == (
        1980,
        3201,
        81.94,
        38,
        (),
    )
    assert parse_smi("[N/A], 3201, [N/A], 38, [N/A]").sm_mhz is None
    assert parse_smi("1980").temperature_c is None


@pytest.fixture
def smi(tmp_path, monkeypatch):
    def refuse(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(monitor.importlib, "import_module", refuse)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")

    def install(script):
        path = tmp_path / "nvidia-smi"
        path.write_text(script, encoding="utf-8")
        path.chmod(0o755)

    return install


def test_a_look_is_begun_beside_the_measurement_and_read_when_done(smi):
    smi(SCRIPT)
    watching = Monitor(identity="GPU-1")
    assert (watching.source, watching.active) == ("nvidia-smi", "clocks_throttle_reasons.active")
    watching.look_soon()
    look = watching.take(wait=True)
    assert (look.sm_mhz, look.throttle) == (1410, ("power cap",))
    assert watching.take() is None


def test_looks_are_spaced(smi):
    smi(SCRIPT)
    watching = Monitor(every=1000.0)
    watching.look_soon()
    assert watching.take(wait=True) is not None
    watching.look_soon()
    assert watching.take(wait=True) is None


def test_without_a_source_nothing_is_claimed(smi):
    smi("#!/bin/sh\nexit 9\n")
    watching = Monitor()
    watching.look_soon()
    assert (watching.source, watching.take(wait=True), watching.look()) == ("", None, None)
