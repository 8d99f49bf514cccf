"""Which dim moves a value most: elasticities of closed forms."""

from __future__ import annotations

import json

import pytest

from opspec.diagnostics import Failure
from tests.analysis.conftest import module


def ask(text, spec="decode", op=None, **more):
    from opspec.analysis.query import query

    m = module(spec)
    return query(m, m.op(op or spec), text, **more)


def moves(answer):
    return {m.dim: m.value for m in answer.moves}


def test_the_dim_that_moves_intensity_most_stands_first():
    answer = ask("sensitivity(ai.tensor)", workload="decode_8k")
    assert answer.word == "Hq"
    assert [m.dim for m in answer.moves] == ["Hq", "Hkv", "T", "B", "D"]
    assert moves(answer)["Hq"] == pytest.approx(8192 / 8193)
    assert moves(answer)["Hkv"] == pytest.approx(-8192 / 8193)
    assert moves(answer)["T"] == pytest.approx(1 / 8193)
    assert {m.dim: m.note for m in answer.moves} == {
        "Hq": "",
        "Hkv": "",
        "T": "",
        "B": "cancels",
        "D": "cancels",
    }


@pytest.mark.parametrize("text", ["flops", "bytes", "ai", "time on h200", "bytes ** 2 / T"])
@pytest.mark.parametrize("dim", ["B", "T", "D"])
def test_elasticity_is_what_a_percent_more_does(text, dim):
    base = {"B": 1000, "Hq": 800, "Hkv": 100, "T": 10_000, "D": 1000}
    more = {**base, dim: base[dim] * 1001 // 1000}
    change = ask(text, settings=more).value / ask(text, settings=base).value - 1
    assert 1000 * change == pytest.approx(ask(f"elasticity({text}, {dim})", settings=base).value, abs=2e-3)


def test_one_dim_as_a_closed_form_and_a_derived_one():
    assert ask("elasticity(ai.tensor, Hq)").symbolic == "Hkv * T / (Hkv * T + Hq)"
    assert ask("elasticity(ai.tensor, G)").symbolic == "T / (G + T)"
    assert ask("elasticity(flops.tensor, T)").value == 1
    assert ask("elasticity(ai.tensor, B)").value == 0


def test_a_maximum_follows_the_branch_that_holds():
    at = {"workload": "decode_8k"}
    assert ask("elasticity(max(flops / 1 TFLOP/s, bytes / 1 GB/s), T)", **at).value == pytest.approx(
        1, abs=1e-3
    )
    small = ask("elasticity(time on h200, T)", settings={"B": 1, "Hq": 1, "Hkv": 1, "T": 1, "D": 16})
    assert 0 < small.value < 1e-3
    with pytest.raises(Failure, match="depends on dims that are open"):
        ask("sensitivity(time on h200)")


def test_rounded_divisions_are_said():
    answer = ask("sensitivity(flops)", "cases", "bottom_right", settings={"L": 100, "T": 160, "D": 64})
    assert answer.word in ("L", "T", "D")
    tiles = ask("elasticity(max(3, T) / 2, T)", settings={"T": 3})
    assert any("two branches" in n for n in tiles.notes)


def test_open_dims_leave_forms_and_say_so():
    answer = ask("sensitivity(ai.tensor)")
    assert answer.word == "open"
    assert "give a workload" in answer.notes[-1]
    assert moves(answer)["Hq"] is None


def test_over_a_distribution_all_lengths_move_together():
    answer = ask("sensitivity(bytes)", workload="served")
    assert moves(answer)["D"] == pytest.approx(1)
    assert 0.99 < moves(answer)["T"] < 1
    one = [ask("bytes", workload="decode_8k", settings={"Hkv": 8, "T": t}).value for t in (512, 2048, 8192)]
    more = [
        ask("bytes", workload="decode_8k", settings={"Hkv": 8, "T": 2 * t}).value for t in (512, 2048, 8192)
    ]
    mean = [sum(w * v for w, v in zip((0.3, 0.5, 0.2), values, strict=True)) for values in (one, more)]
    assert moves(answer)["T"] == pytest.approx(mean[1] / mean[0] - 1)


def test_every_format():
    answer = ask("sensitivity(ai.tensor)", workload="decode_8k")
    data = json.loads(json.dumps(answer.to_json()))
    assert (data["symbolic"], data["value"], data["unit"]) == ("Hq", None, "dim")
    assert data["sensitivity"][0] == {
        "dim": "Hq", "symbolic": "Hkv * T / (Hkv * T + Hq)", "value": pytest.approx(8192 / 8193),
    }  # fmt: skip
    assert data["sensitivity"][3]["note"] == "cancels"
    assert answer.to_text().splitlines()[0] == "Hq"
    assert r"\mathrm{Hq} & \frac" in answer.to_latex()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("sensitivity(ai) + 1", "OP723"), ("sensitivity(bound on h200)", "OP721"), ("sensitivity(ai, T)", "OP721"),
        ("sensitivity(T - T)", None), ("elasticity(ai, X)", "OP722"), ("elasticity(ai, 3)", "OP721"),
        ("elasticity(T - 8192, T)", "OP724"), ("elasticity(1 / (T - 8192), T)", "OP724"), ("sensitivity(T -> 3)", "OP721"),
    ],
)  # fmt: skip
def test_what_has_no_sensitivity(text, code):
    if code is None:
        assert ask(text, workload="decode_8k").word == "none"
        return
    with pytest.raises(Failure) as caught:
        ask(text, workload="decode_8k")
    assert caught.value.diagnostics[0].code.code == code
