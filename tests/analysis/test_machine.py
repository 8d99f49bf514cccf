from __future__ import annotations

import tomllib
from math import log2

import jsonschema
import pytest

from opspec.analysis.machine import available, load, parse
from opspec.analysis.machine_schema import machine_schema
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
    new = {"a100-40", "h100-pcie", "l40s", "mi300x", "rtx4090"}
    assert {"a100", "b200", "h100", "h200", *new} == set(available())
    for name in available():
        machine = load(name)
        assert machine.name == name
        assert all(machine.sources[key] for key in machine.values)


@pytest.mark.parametrize("name", available())
def test_peaks_agree_with_clock_and_units(name: str):
    """A sparse or mislabelled figure is off by a factor of two at least."""
    machine = load(name)
    per_clock = {k: v / machine.clock / machine.sms for k, v in machine.tensor.items()}
    assert per_clock["f16"] == pytest.approx(2 ** round(log2(per_clock["f16"])), rel=0.03)
    assert machine.tensor["bf16"] == machine.tensor["f16"]
    assert machine.tensor["tf32"] == pytest.approx(machine.tensor["f16"] / 2, rel=0.02)
    assert machine.tensor["i8"] / machine.tensor["f16"] == pytest.approx(
        4 if name == "rtx4090" else 2, rel=0.02
    )
    assert machine.vector / machine.clock / machine.sms == pytest.approx(
        {"sm_80": 128, "gfx942": 256}.get(machine.target, 256), rel=0.1
    )
    assert machine.shared_block <= machine.shared


def test_known_datasheet_figures():
    assert load("a100-40").bandwidth == 1.555e12
    assert load("h100-pcie").ridge("bf16") == pytest.approx(378.25)
    assert load("l40s").peak("f8e4m3") == ("f8e4m3", 733e12)
    assert load("rtx4090").peak("bf16") == ("bf16", 165.2e12)
    assert (load("mi300x").sms, load("mi300x").peak("f16")) == (304, ("f16", 1307.4e12))


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
        ("bandwidth = { value = 3.35e12", "bandwidth = { value = 3.35", "`memory.bandwidth` is not plausibly 3.35 B/s"),
        ("value = 132,", "value = 132.5,", "`sm.count` is a whole number, not 132.5"),
        ("value = 132,", f"value = 1{'0' * 400},", "`sm.count` is not plausibly so large a number"),
        ("value = 132,", f"value = 1{'0' * 5000},", "the file is not TOML"),
        ("value = 132,", "value = nan,", "`sm.count` needs a positive number as its `value`"),
        ("value = 132,", "value = true,", "`sm.count` needs a positive number as its `value`"),
        ("value = 132,", 'value = 132, units = "x",', "`sm.count` has no field `units`"),
        ("bf16 =", "bf61 =", "`tensor.bf61` is not a property of a machine"),
        ('"sm_90"', '"hopper"', "`hopper` is no target"),
        ("[tensor]", "[tensor]\n" + "x = " + "[" * 5000, "the file is not TOML"),
    ],
)  # fmt: skip
def test_faults_of_a_file(old: str, new: str, message: str):
    assert any(m.startswith(message) for m in faults(text().replace(old, new)))


def test_a_slip_is_answered_with_what_was_meant():
    for old, new, meant in (("bf16 =", "bf61 =", "tensor.bf16"), ("count =", "cout =", "sm.count")):
        with pytest.raises(Failure) as caught:
            parse(Source("m.toml", text().replace(old, new)))
        assert f"did you mean `{meant}`?" in [d.help for d in caught.value.diagnostics]
    with pytest.raises(Failure) as caught:
        load("h10O")
    assert caught.value.diagnostics[0].help.startswith("did you mean `h100`?")


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    (tmp_path / "big.toml").write_bytes(b"#" * 200_000)
    (tmp_path / "folder.toml").mkdir()
    for name, reason in (("latin", "not UTF-8"), ("big", "larger than"), ("folder", "directory")):
        with pytest.raises(Failure) as caught:
            load(str(tmp_path / f"{name}.toml"))
        assert reason in caught.value.diagnostics[0].message


@pytest.mark.parametrize("name", available())
def test_the_schema_accepts_what_ships(name: str):
    data = tomllib.loads((machines() / f"{name}.toml").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(machine_schema())
    jsonschema.validate(integers(data), machine_schema())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('density = "dense", ', ""),
        ('density = "dense"', 'density = "sparse"'),
        (', source = "asserted" }', " }"),
        ("bandwidth = { value = 3.35e12", "bandwidth = { value = 3.35"),
        ("value = 132,", "value = 132.5,"),
        ("bf16 =", "bf61 ="),
        ("[l2]", "[l3]"),
        ('"sm_90"', '"hopper"'),
        ("name =", "nme ="),
    ],
)
def test_the_schema_and_the_reader_refuse_the_same(old: str, new: str):
    changed = text().replace(old, new, 1)
    assert changed != text()
    assert faults(changed)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(integers(tomllib.loads(changed)), machine_schema())


def integers(data):
    """JSON knows one kind of number: 80e9 is a whole one."""
    if isinstance(data, dict):
        return {k: integers(v) for k, v in data.items()}
    return int(data) if isinstance(data, float) and data == int(data) else data


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
