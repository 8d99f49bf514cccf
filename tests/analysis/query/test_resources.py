"""Times of one kernel and of one resource, and the rates behind them."""

from __future__ import annotations

import pytest

from opspec.diagnostics import Failure
from tests.analysis.query.test_sensitivity import ask

AT = {"workload": "decode_8k", "machine": "h200"}


@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("time.memory", "bytes / bandwidth"),
        ("time.tensor", "flops.tensor / peak"),
        ("time.vector", "flops.vector / peak.vector"),
        ("time.sfu", "flops.sfu / peak.sfu"),
        ("time[flash_decode]", "time"),
        ("time", "max(time.memory, time.tensor, time.vector, time.sfu) + time.launch"),
    ],
)
def test_a_resource_alone_needs_its_work_over_its_rate(text, of):
    assert ask(text, **AT).value == pytest.approx(ask(of, **AT).value, rel=1e-12)
    assert ask(text, **AT).unit == "s"


def test_what_is_asserted_is_said():
    assert ask("time.launch", **AT).notes == ("asserted in h200: launch latency",)
    assert ask("time.memory", **AT).notes == ()


def test_traffic_of_a_schedule_is_the_time_of_l2():
    import sympy

    given = {"flash_decode": sympy.Integer(55 * 10**9)}
    assert ask("time.l2", traffic=given, **AT).value == pytest.approx(0.01)


def test_over_a_distribution_times_are_means():
    at = {"workload": "served", "machine": "h200"}
    assert ask("time.memory", **at).value == pytest.approx(ask("bytes / bandwidth", **at).value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time[s]", "there is no kernel `s`"),
        ("bound[s]", "there is no kernel `s`"),
        ("time.foo", "there is no name `time.foo`"),
        ("time.l2", "`time.l2` is not available without a schedule"),
        ("peak.tensor", "there is no name `peak.tensor`"),
        ("ridge[flash_decode]", "there is no name `ridge`"),
    ],
)
def test_what_there_is_not(text, message):
    with pytest.raises(Failure) as caught:
        ask(text, **AT)
    assert caught.value.diagnostics[0].message == message


def test_a_machine_is_needed():
    with pytest.raises(Failure, match=r"`time\.sfu` needs a machine"):
        ask("time.sfu", workload="decode_8k")
