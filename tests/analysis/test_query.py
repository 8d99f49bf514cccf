"""The query language: values, units, algebra, refusals, output."""

from __future__ import annotations

import json

import pytest

from opspec.diagnostics import Failure

AT = {"workload": "decode_8k"}


def refused(ask, text: str, spec: str = "decode", op: str | None = None, **more):
    with pytest.raises(Failure) as caught:
        ask(spec, text, op, **more)
    (found,) = caught.value.diagnostics
    assert found.help
    return found


def test_json_shape(ask):
    answer = ask("decode", "flops.tensor", **AT).to_json()
    assert answer == {
        "op": "decode",
        "expr": "flops.tensor",
        "symbolic": "4 * B * D * Hq * T",
        "value": 1073741824,
        "unit": "FLOP",
    }
    assert json.loads(json.dumps(answer)) == answer
    assert ask("decode", "flops").to_json()["value"] is None


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("flops", "FLOP"), ("bytes", "B"), ("ai", "FLOP/B"), ("time on h200", "s"), ("attainable on h200", "FLOP/s"),
        ("ridge on h200", "FLOP/B"), ("bandwidth on h200", "B/s"), ("T * D", ""), ("bytes / bytes", ""),
        ("flops / time on h200", "FLOP/s"), ("bytes ** 2", "B^2"), ("1 / bytes", "1/B"), ("launches", ""),
        ("bound on h200", "resource"),
    ],
)  # fmt: skip
def test_units(ask, text: str, unit: str):
    assert ask("decode", text, **AT).unit == unit


@pytest.mark.parametrize(
    "text", ["bytes + flops", "bytes == flops", "time on h200 + bytes", "max(bytes, flops)", "bytes < 1 ms"]
)
def test_units_do_not_mix(ask, text: str):
    assert refused(ask, text, **AT).code.code == "OP723"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7), ("-2 ** 2", -4), ("(1 + 2) * 3", 9), ("2 ** 3 ** 2", 512), ("7 / 2 - 3", 0.5), ("1e3", 1000),
        ("min(3, T)", 3), ("max(3, T)", 8192), ("T at (T = 5)", 5), ("ai.tensor at (T = 1)", 0.5), ("1_000", 1000),
        ("2 GiB / 1 B", 2**31), ("dim(T)", 8192), ("G", 1), ("1 kB", 1000), ("1 KiB", 1024),
    ],
)  # fmt: skip
def test_arithmetic(ask, text: str, value: float):
    assert ask("decode", text, **AT).value == value


def test_settings_come_after_the_workload(ask):
    assert ask("decode", "T", workload="decode_8k", settings={"T": 16}).value == 16


def test_a_derived_dim_may_be_set(ask):
    assert ask("decode", "Hq", workload="decode_8k", settings={"G": 8}).value == 256
    assert ask("decode", "limit(ai.tensor, T -> oo) at (G = 6)").value == 6


def test_dims_that_are_set_leave_the_form(ask):
    assert ask("decode", "ai.tensor", settings={"T": 8}).symbolic == "8 * Hq / (8 * Hkv + Hq)"


def test_words_are_answers(ask):
    assert ask("decode", "bound on h200", **AT).to_json()["symbolic"] == "memory"
    assert ask("decode", "bound on h200 == memory", **AT).word == "true"
    assert ask("decode", "bound on h200 == tensor", **AT).word == "false"


def test_parts_of_costs(ask):
    assert ask("decode", "flops.sfu.exp").symbolic == "B * Hq * T"
    assert ask("decode", "flops.sfu.sin").value == 0  # a kind of operation that the op has none of
    assert ask("decode", "bytes.read[k]").symbolic == "2 * B * D * Hkv * T"
    assert ask("decode", "flops[flash_decode] - flops").value == 0
    assert ask("latent_block", "bytes[qkv]", boundary="three").symbolic == ask(
        "latent_block", "bytes[x] + bytes[wq] + bytes[wk] + bytes[wv] + bytes.write[q] + bytes.write[k] + bytes.write[v]",
        boundary="three",
    ).symbolic  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flopss", "there is no name `flopss`"), ("bytes[kk]", "there is no kernel, tensor or statement `kk`"),
        ("flops.sfu.expp", "there is no name `flops.sfu.expp`"), ("limit(ai, TT -> oo)", "there is no dim `TT`"),
        ("foo(1)", "there is no function `foo`"), ("ai at (X = 1)", "there is no dim `X`"),
        ("flops[q]", "`q` is an input: no operation computes it"),
        ("time on h300", "there is no machine `h300`"), ("bytes.reed", "there is no name `bytes.reed`"),
    ],
)  # fmt: skip
def test_unknown_names_list_the_known(ask, text: str, message: str):
    assert refused(ask, text).message == message


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2 +", "OP721"), ("(((", "OP721"), ("ai $ 2", "OP721"), ("1 2", "OP721"), ("limit(ai)", "OP721"), ("", "OP721"),
        ("(" * 100 + "1" + ")" * 100, "OP721"), ("-" * 200 + "1", "OP721"), ("T ** T", "OP721"), ("2 ** 1000", "OP721"),
        ("1e999999999", "OP721"), ("9" * 999, "OP721"), ("((((2 ** 64) ** 64) ** 64) ** 64)", "OP721"),
        ("((((T ** 64) ** 64) ** 64) ** 64)", "OP721"),
        ("time", "OP724"), ("traffic", "OP724"), ("bound", "OP724"), ("bound on h200", "OP724"), ("1 / 0", "OP724"),
        ("ai > 2", "OP724"), ("diff(max(T, 3), T)", "OP724"), ("solve(ai, T)", "OP721"), ("ai at (T = 1/2)", "OP721"),
    ],
)  # fmt: skip
def test_refusals(ask, text: str, code: str):
    assert refused(ask, text).code.code == code


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("diff(bytes, )", "something is missing before `)`"), ("max(ai,,2)", "something is missing before `,`"),
        ("ai = 2", "equality is written `==`"), ("ai at T = 3", "shapes stand in brackets: `ai at (T = 8192)`"),
        ("ai ai", "an operator is missing before `ai`"), ("ai +", "a query looks like `ai.tensor at (T = 8192)`"),
    ],
)  # fmt: skip
def test_a_token_that_cant_stand_there_has_advice(ask, text: str, help: str):
    assert refused(ask, text).help == help


def test_the_place_of_a_fault_is_the_part_at_fault(ask):
    found = refused(ask, "1 + bytes[kk] / 2")
    assert found.span is not None
    assert found.span.text == "bytes[kk]"


def test_traffic_of_a_schedule_is_used_where_there_is_one(ask):
    import sympy

    given = {"flash_decode": sympy.Integer(10**12)}
    assert ask("decode", "traffic", traffic=given).value == 10**12
    assert ask("decode", "bound on h200", **AT, traffic=given).word == "l2"


def test_why_lists_terms_that_add_up(ask):
    answer = ask("decode", "ai", why=True, **AT)
    total = ask("decode", "flops", **AT).value
    assert sum(w.value for w in answer.why if w.unit == "FLOP") == total
    assert sum(w.value for w in answer.why if w.unit == "B") == ask("decode", "bytes", **AT).value
    assert any("o: tensor.contraction" in line for line in answer.to_text().splitlines())


def test_a_distribution_weighs_its_shapes(ask):
    shapes = [
        ask("decode", "bytes", workload="decode_8k", settings={"Hkv": 8, "T": t}).value
        for t in (512, 2048, 8192)
    ]
    mean = 0.3 * shapes[0] + 0.5 * shapes[1] + 0.2 * shapes[2]
    assert ask("decode", "bytes", workload="served").value == pytest.approx(mean)
    flops = ask("decode", "flops.tensor", workload="served").value
    assert ask("decode", "ai.tensor", workload="served").value == pytest.approx(flops / mean)
    assert ask("decode", "time on h200", workload="served").value > 0


def test_small_work_is_bound_by_its_launch(ask):
    at = {"op": "matmul", "settings": {"M": 8, "N": 8, "K": 8}}
    assert ask("cases", "bound on h200", **at).word == "launch"


def test_a_first_choice_of_dtype_is_said(ask):
    from opspec.analysis.query import query
    from opspec.frontend import load_text

    m = load_text("dtype X in {bf16, f32}\nop t[M](x: X[M]) -> y: X[M] { kernel k { y[m] = x[m] + 1.0 } }")
    answer = query(m, m.ops[0], "bytes", settings={"M": 10})
    assert answer.value == 40
    assert answer.notes == ("X = bf16, the first of its choices",)
    assert query(m, m.ops[0], "bytes", settings={"M": 10}, dtypes={"X": "f32"}).value == 80
    assert query(m, m.ops[0], "bytes").symbolic == "2 * M * sizeof_X"


def test_dims_named_like_costs_are_ambiguous_not_guessed():
    from opspec.analysis.query import query
    from opspec.frontend import load_text

    m = load_text(
        "op t[bytes, at, oo, lambda](x: f32[bytes, at, oo, lambda]) -> y: f32[bytes, at, oo, lambda] { kernel k { y[m, n, p, q] = x[m, n, p, q] + 1.0 } }"
    )
    with pytest.raises(Failure, match="ambiguous"):
        query(m, m.ops[0], "bytes")
    assert query(m, m.ops[0], "dim(bytes)").symbolic == "bytes"
    assert query(m, m.ops[0], "flops").symbolic == "at * bytes * lambda_ * oo"
    assert query(m, m.ops[0], "oo + at").symbolic == "at + oo"
    assert query(m, m.ops[0], "flops at (at = 2)").symbolic == "2 * bytes * lambda_ * oo"


def test_solving_on_a_causal_form_scans_for_the_first_integer(ask):
    answer = ask("cases", "solve(flops.tensor == 2828800, T)", "bottom_right", settings={"L": 100, "D": 64})
    assert answer.value == 160


def test_limit_resolves_maxima(ask):
    assert ask("cases", "limit(flops.tensor / (4 * D * T * L), T -> oo)", "bottom_right").value == 1


def test_latex(ask):
    assert ask("decode", "ai.tensor").to_latex() == r"\frac{T \mathrm{Hq}}{T \mathrm{Hkv} + \mathrm{Hq}}"
