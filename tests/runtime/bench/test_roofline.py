"""Floor, prediction, calibration and ledger by numbers worked out by hand; machines from their files."""

from __future__ import annotations

import pytest

from opspec.runtime.bench.machines import FOLDER, find_machine, name_matches, read_machine
from opspec.runtime.bench.model import UsageError
from opspec.runtime.bench.roofline import calibrate, foretold, ledger, moved, reject, roofline, stream_kind
from tests.runtime.bench.fakes import MACHINES, ROOFS

MACHINE = read_machine("fake9", MACHINES["fake9"])
COPY = {"bytes.read": 64e6, "bytes.write": 64e6, "launches": 1}


def test_terms_floor_prediction_and_bound():
    line = roofline(
        {**COPY, "flops.tensor": 989.4e6, "flops.sfu": 1e6, "flops.vector": 60e6}, MACHINE, "bf16"
    )
    assert line.terms["memory"] == pytest.approx(128e6 / 4.8e12)
    assert line.terms["tensor"] == pytest.approx(1e-6)
    assert line.terms["vector"] == pytest.approx(1e-6)
    assert line.terms["sfu"] == pytest.approx(1e6 / (16 * 132 * 1830e6))
    assert line.floor == line.limit == line.terms["memory"]
    assert line.predicted == pytest.approx(line.floor + 15e-6)
    assert line.bound == "memory"
    assert roofline({"bytes": 1, "launches": 3}, MACHINE, "").bound == "launch"


def test_f32_matrix_work_runs_on_the_vector_units():
    line = roofline({"bytes": 1, "flops.tensor": 60e9, "flops.vector": 60e9}, MACHINE, "f32")
    assert line.terms["vector"] == pytest.approx(2e-3)
    assert line.limit == pytest.approx(1e-3)
    assert "tensor" not in line.terms


def test_work_that_a_rewrite_may_remove_rejects_nothing():
    line = roofline({**COPY, "flops.vector": 60e12}, MACHINE, "")
    assert line.floor == pytest.approx(1.0)
    assert reject(1e-3, line.limit) == ""
    assert "under the floor" in reject(1e-6, line.limit)


def test_no_known_machine_rejects_nothing():
    assert reject(1e-12, None) == ""


@pytest.mark.parametrize(
    ("read", "written", "kind"),
    [(100, 1, "read"), (2, 1, "mix21"), (1, 1, "copy"), (1, 100, "write"), (3, 2, "mix21"), (1, 2, "copy")],
)
def test_the_stream_that_moves_bytes_alike(read, written, kind):
    assert stream_kind({"bytes.read": read, "bytes.write": written}) == kind


def test_calibration_uses_this_runs_rates():
    terms = calibrate({**COPY, "flops.tensor": 820e6, "flops.sfu": 4.1e6}, ROOFS, "bf16")
    assert terms == {
        "memory": pytest.approx(128e6 / 4.3e12),
        "tensor": pytest.approx(1e-6),
        "sfu": pytest.approx(1e-6),
    }


def test_ledger_adds_up_and_names_the_rest():
    cost = {**COPY, "launches": 3, "traffic": 160e6}
    rows = ledger(
        measured=60e-6,
        floor=128e6 / 4.8e12,
        calibrated=calibrate(cost, ROOFS, ""),
        stream=34e-6,
        cost=cost,
        roofs=ROOFS,
        in_graph=False,
    )
    table = {row["name"]: row["seconds"] for row in rows}
    assert sum(table.values()) == pytest.approx(60e-6)
    assert table["floor at datasheet peaks"] == pytest.approx(26.667e-6, rel=1e-4)
    assert table["measured roof against datasheet"] == pytest.approx(3.101e-6, rel=1e-3)
    assert table["launch and ramp"] == pytest.approx(34e-6 - 128e6 / 4.3e12)
    assert table["further launches"] == pytest.approx(1e-6)
    assert table["extra traffic"] == pytest.approx(32e6 / 4.3e12)
    assert list(table)[-1] == "unexplained"
    assert foretold(rows) == pytest.approx(60e-6 - table["unexplained"])


@pytest.mark.parametrize(
    ("measured", "contention", "unexplained"), [(20e-6, 4e-6, 3e-6), (15e-6, 2e-6, 0.0), (10e-6, None, -3e-6)]
)
def test_units_beside_the_one_that_binds_may_explain_their_own_time_and_no_more(
    measured, contention, unexplained
):
    roofs = {**ROOFS, "launch_s": {"graph": 1e-6, "event_floor": 3e-6, "plain": 4e-6}}
    rows = ledger(
        measured=measured,
        floor=9e-6,
        calibrated={"memory": 1e-6, "tensor": 10e-6, "sfu": 3e-6},
        stream=None,
        cost=COPY,
        roofs=roofs,
        in_graph=False,
    )
    table = {row["name"]: row["seconds"] for row in rows}
    assert table.get("unit contention, at most") == (
        None if contention is None else pytest.approx(contention)
    )
    assert table["unexplained"] == pytest.approx(unexplained, abs=1e-12)
    assert foretold(rows) == pytest.approx(13e-6)  # the same whatever was measured


def test_a_last_wave_may_explain_what_its_idle_part_would_take_and_no_more():
    def rows(unfilled, measured=60e-6):
        cost = {**COPY, "launches": 1}
        terms = calibrate(cost, ROOFS, "")
        found = ledger(
            measured=measured,
            floor=None,
            calibrated=terms,
            stream=34e-6,
            cost=cost,
            roofs=ROOFS,
            in_graph=False,
            unfilled=unfilled,
        )
        assert sum(row["seconds"] for row in found) == pytest.approx(measured)
        return {row["name"]: row["seconds"] for row in found}, foretold(found)

    large = 128e6 / 4.3e12
    table, expected = rows(0.25)
    assert table["last wave, at most"] == pytest.approx(0.25 * large)
    assert table["unexplained"] == pytest.approx(60e-6 - 34e-6 - 0.25 * large)
    assert expected == pytest.approx(34e-6)  # the same whatever was measured
    assert rows(3.0)[0]["last wave, at most"] == pytest.approx(26e-6)
    assert rows(3.0, measured=20e-6)[0]["last wave, at most"] == 0
    assert "last wave, at most" not in rows(0.0)[0]


def test_moved_bytes_are_both_ways():
    assert moved(COPY) == 128e6
    assert moved({"bytes": 7}) == 7


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.toml")))
def test_every_machine_of_the_project_is_read(name):
    machine, source = find_machine(name, {}, card="")
    assert machine.bandwidth > 5e11
    assert machine.tensor["bf16"] > 1e14
    assert machine.vector
    assert machine.sfu
    assert machine.launch
    assert f"{name}.toml" in source


def test_a_machine_may_be_a_file(tmp_path):
    path = tmp_path / "my card.toml"
    path.write_text("[memory]\nbandwidth = 1e12\n", encoding="utf-8")
    assert find_machine(str(path), {}, card="")[0].bandwidth == 1e12
    path.write_text("[memory\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"my card\.toml"):
        find_machine(str(path), {}, card="")
    path.write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(UsageError, match="no memory bandwidth"):
        find_machine(str(path), {}, card="")


def test_the_card_is_matched_by_whole_words():
    assert name_matches("h200", "NVIDIA H200")
    assert name_matches("a100", "NVIDIA A100-SXM4-80GB")
    assert not name_matches("h20", "NVIDIA H200")
    assert find_machine(None, MACHINES, card="NVIDIA GeForce") == (None, "")
