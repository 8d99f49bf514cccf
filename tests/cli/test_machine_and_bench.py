import json
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, shell

SOFTMAX = str(ROOT / "specs/reduce/softmax.op")


def test_list(opspec):
    ran = opspec("machine", "list")
    assert ran.status == 0
    names = [line.split()[0] for line in ran.out.splitlines()[1:]]
    assert names == ["a100", "a100-40", "b200", "h100", "h100-pcie", "h200", "l40s", "mi300x", "rtx4090"]
    assert max(map(len, ran.out.splitlines())) <= 110
    assert opspec("machine").out == ran.out


def test_the_schema_of_machine_files(opspec):
    schema = json.loads(opspec("machine", "--schema").out)
    assert schema == json.loads(opspec("machine", "schema").out)
    assert schema["properties"]["tensor"]["properties"]["bf16"]["required"] == ["value", "source", "density"]


def test_a_file_of_ones_own_is_a_machine_everywhere(opspec, tmp_path):
    from opspec.resources import machines

    path = tmp_path / "mine.toml"
    path.write_text((machines() / "h100.toml").read_text().replace("3.35e12", "1.0e12"))
    asked = ("query", f"{SOFTMAX}:softmax", "time", "--at", "rows_4k", "--format", "json")
    own = json.loads(opspec(*asked, "--machine", str(path)).out)["value"]
    assert own > 3 * json.loads(opspec(*asked, "--machine", "h100").out)["value"]
    path.write_text(path.read_text().replace('density = "dense"', 'density = "sparse"', 1))
    ran = opspec(*asked, "--machine", str(path))
    assert ran.status == 2
    assert "`tensor.bf16` is a sparse peak; give the dense one" in ran.err


def test_show_says_value_unit_and_source(opspec):
    out = opspec("machine", "show", "h200").out
    assert "4.8 TB/s" in out
    assert "989.4 TFLOP/s dense" in out
    assert "datasheet" in out
    assert "asserted" in out
    assert max(map(len, out.splitlines())) <= 120


def test_show_a_file(opspec, tmp_path):
    from opspec.resources import machines

    path = tmp_path / "mine.toml"
    path.write_text((machines() / "h100.toml").read_text().replace('name = "h100"', 'name = "mine"'))
    assert opspec("machine", "show", str(path)).out.startswith("mine: ")


@pytest.mark.parametrize("arguments", [("show",), ("show", "h300")])
def test_wrong_input(opspec, arguments):
    ran = opspec("machine", *arguments)
    assert ran.status == 2
    assert "h200" in ran.err


def test_bench_without_a_gpu_is_the_roofline_and_says_so(tmp_path):
    folder, out = tmp_path / "my ops", tmp_path / "a b.json"  # names with spaces are handed on whole
    folder.mkdir()
    spec = folder / "soft max.op"
    spec.write_bytes(Path(SOFTMAX).read_bytes())
    ran = shell(
        "bench", f"{spec}:softmax", "--at", "rows_4k", "--machine", "h200", "--json", str(out),
        cwd=tmp_path, CUDA_VISIBLE_DEVICES="",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    assert "nothing was measured" in ran.out
    assert "floor" in ran.out
    assert "rows_32k" not in ran.out
    assert json.loads(out.read_text())["status"] == "not measured"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((SOFTMAX, "--at", "rows"), "OP722"),
        ((SOFTMAX, "--machine", "h20"), "OP711"),
        ((f"{SOFTMAX}:soft",), "OP626"),
        (("none.op",), "OP621"),
    ],
)
def test_bench_of_wrong_input(opspec, arguments, code):
    ran = opspec("bench", *arguments)
    assert ran.status == 2
    assert f"error[{code}]" in ran.err


def test_bench_passes_the_status_of_the_driver_on(opspec, monkeypatch):
    import subprocess

    class Child:
        def __init__(self, command, **_):
            self.command = command

        def wait(self):
            return 1

    monkeypatch.setattr(subprocess, "Popen", Child)
    assert opspec("bench", SOFTMAX, "--machine", "h200").status == 1


@pytest.mark.parametrize(
    "options",
    [["--peers=max", "--graph"], ["--no-peers", "--quick"], ["--peers=none"], ["--warm", "--seed=7"], []],
)
def test_bench_hands_its_options_to_the_driver(options):
    from opspec.cli.bench import arguments
    from opspec.cli.parser import build_parser
    from opspec.driver.select import split_target
    from opspec.runtime.bench.command import build_parser as driver_parser
    from tests.runtime.bench.fakes import driver

    given = arguments(split_target(SOFTMAX), build_parser().parse_args(["bench", SOFTMAX, *options]))
    assert sorted(given) == sorted(options)
    read = driver_parser([driver()]).parse_args(given)
    assert read.graph == ("--graph" in options)
    assert read.peers == next((o.partition("=")[2] for o in options if o.startswith("--peers=")), "usual")
    assert (read.warm, read.seed) == (("--warm" in options), 7 if "--seed=7" in options else 0)


def test_the_command_lines_that_measure_say_the_same_of_an_option(opspec, capsys, monkeypatch):
    from opspec.runtime.bench import command, suite
    from tests.runtime.bench.fakes import driver

    monkeypatch.setenv("COLUMNS", "400")  # an option a line
    with pytest.raises(SystemExit):
        opspec("bench", "--help")
    helps = [capsys.readouterr().out, suite.build_parser().format_help()]
    helps.append(command.build_parser([driver()]).format_help())
    lines = [{line.split()[0]: line.split()[1:] for line in text.splitlines() if line} for text in helps]
    for name in ("--at", "--machine", "--peer", "--peers", "--no-peers", "--graph", "--quick", "--budget"):
        first, *others = [found[name] for found in lines]
        assert others == [first, first]


def test_bench_without_torch(opspec, monkeypatch):
    from opspec.cli import bench

    monkeypatch.setattr(bench, "find_spec", lambda _: None)
    ran = opspec("bench", SOFTMAX)
    assert ran.status == 2
    assert "error[OP623]" in ran.err
