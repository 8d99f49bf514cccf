from __future__ import annotations

import pytest

from opspec.analysis.machine import available, load, parse
from opspec.diagnostics import Failure
from opspec.resources import machines
from opspec.source import Source


def text() -> str:
    return (machines() / "h100.toml").read_text(encoding="utf-8")


def faults(changed: str) -> list[str]:
    with pytest.raises(Failure) as caught:
        parse(Source("m.toml", changed))
    return [d.message for d in caught.value.diagnostics]


def test_shipped_machines():
    assert {"a100", "b200", "h100", "h200"} <= set(available())
    for name in available():
        assert load(name).name == name


@pytest.mark.parametrize(("name", "ridge"), [("h100", 295.34), ("h200", 206.125)])
def test_ridges(name: str, ridge: float):
    assert load(name).ridge("bf16") == pytest.approx(ridge, abs=0.01)


def test_limits_of_shared_memory():
    assert [load(n).shared_block for n in ("h100", "h200", "b200", "a100")] == [
        232448,
        232448,
        232448,
        166912,
    ]


def test_narrow_types_widen_and_f32_has_no_matrix_unit():
    assert load("a100").peak("f8e4m3") == ("f16", 312e12)
    assert load("h100").peak("f8e4m3") == ("f8e4m3", 1978.9e12)
    assert load("h100").peak("f32") is None
    assert load("h100").ridge("f32") == pytest.approx(66.9e12 / 3.35e12)


def test_an_unlabelled_or_sparse_peak_is_refused():
    plain = 'bf16 = { value = 989.4e12, density = "dense"'
    assert plain in text()
    unlabelled = faults(text().replace(plain, "bf16 = { value = 989.4e12"))
    assert unlabelled == ["`tensor.bf16` does not say whether it is dense: a sparse peak is no roof"]
    assert faults(text().replace(plain, 'bf16 = { value = 1978.9e12, density = "sparse"')) == [
        "`tensor.bf16` is a sparse peak; give the dense one"
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("value = 132,", "value = -1,", "`sm.count` needs a positive number as its `value`"),
        ("[l2]", "[l3]", "`l2.size` is missing; write `{ value = …, source = … }`"),
        ('plain = { value = 4.0e-6, source = "asserted" }', "plain = { value = 4.0e-6 }", "`launch.plain` does not say its `source`"),
        ("name =", "nme =", "`name` is missing or not a string"),
        ("[tensor]", "[tensor", "the file is not TOML"),
    ],
)  # fmt: skip
def test_faults_of_a_file(old: str, new: str, message: str):
    assert any(m.startswith(message) for m in faults(text().replace(old, new)))


def test_a_fault_points_at_its_line():
    with pytest.raises(Failure) as caught:
        parse(Source("m.toml", text().replace("value = 132,", "value = 0,")))
    span = caught.value.diagnostics[0].span
    assert span is not None
    assert span.text.startswith("count =")


def test_an_unknown_machine_lists_those_that_ship():
    with pytest.raises(Failure) as caught:
        load("h300")
    assert "h100" in caught.value.diagnostics[0].help
