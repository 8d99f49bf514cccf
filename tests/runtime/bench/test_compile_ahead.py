"""What is compiled before anything is measured, by whom, and what of it may fail."""

from __future__ import annotations

import json

import pytest
import torch

from opspec.runtime.bench import compile_ahead, suite
from opspec.runtime.bench.packages import find_packages
from tests.runtime.bench.fakes import DEVICE, FakeCard, FakeDevice, package


@pytest.fixture
def plan(tmp_path):
    """Makes the plan of a run over the packages below `g`."""
    DEVICE.append(FakeDevice({}))

    def make(*argv):
        options = suite.build_parser().parse_args([str(tmp_path / "g"), *argv])
        packages = dict.fromkeys(map(str, find_packages(options.packages)))
        run = suite.Run(packages=packages, options=options, results=tmp_path / "r", scratch=tmp_path)
        return json.loads(run.plan().read_text())

    yield make
    DEVICE.clear()


def done(tmp_path):
    path = tmp_path / compile_ahead.DONE
    lines = path.read_text().splitlines() if path.is_file() else []
    return [(e["op"], e["workload"], e["fault"]) for e in map(json.loads, lines)]


def test_each_shape_is_called_once_and_what_fails_is_said(tmp_path, plan):
    package(tmp_path / "g", "a", body="raise MemoryError('too large')")
    package(tmp_path / "g", "b")
    made = plan("--no-peers", "--at", "small")
    compile_ahead.compile_some(made, place="cpu")
    assert done(tmp_path) == [("a", "small", "MemoryError: too large"), ("b", "small", "")]
    compile_ahead.compile_some(made, place="cpu")
    assert len(done(tmp_path)) == 2  # what is taken is taken
    assert compile_ahead.summary(tmp_path / compile_ahead.DONE, 1.5).splitlines() == [
        "compiled 1 shape in 1.5 s",
        "  a small: MemoryError: too large",
    ]


def test_ops_that_others_have_taken_are_left_to_them(tmp_path, plan):
    package(tmp_path / "g", "a")
    package(tmp_path / "g", "b")
    assert compile_ahead.take(tmp_path / "taken-0")
    assert not compile_ahead.take(tmp_path / "taken-0")
    compile_ahead.compile_some(plan("--no-peers"), place="cpu")
    assert done(tmp_path) == [("b", "small", ""), ("b", "wide", "")]


@pytest.mark.parametrize(
    ("argv", "modes"),
    [
        ([], [None]),
        (["--peers", "max"], [None, "max-autotune-no-cudagraphs"]),
        (["--no-peers", "--peers", "max"], []),
        (["--peers", "none"], []),
    ],
)
def test_formulas_are_compiled_where_they_are_peers(tmp_path, plan, monkeypatch, argv, modes):
    package(tmp_path / "g", "a")
    seen = []
    monkeypatch.setattr(torch, "compile", lambda function, **options: seen.append(options) or function)
    compile_ahead.compile_some(plan("--at", "small", *argv), place="cpu")
    assert seen == [{"dynamic": False, "mode": mode} for mode in modes]


def test_choices_that_are_measured_beside_others_are_not_kept(monkeypatch):
    import torch._inductor.config as inductor

    monkeypatch.setattr(inductor, "autotune_local_cache", True)
    compile_ahead.choose_nothing()
    assert inductor.autotune_local_cache is False


def test_a_run_compiles_before_it_measures(tmp_path, monkeypatch):
    package(tmp_path / "g", "a")
    DEVICE.append(FakeDevice({"ours": [5e-5], "stream": [4e-5]}))
    order = []
    monkeypatch.setattr(suite, "compile_all", lambda plan, count, env: order.append(count) or 0)

    def start(command):
        from opspec.runtime.bench import worker

        order.append("measured")
        return worker.main(command[-1:], card=FakeCard(DEVICE[-1]))

    options = suite.build_parser().parse_args([str(tmp_path / "g"), "--jobs", "3"])
    assert suite.measure(dict.fromkeys(find_packages(options.packages)), options, start=start) == 0
    assert order == [3, "measured"]
    monkeypatch.setattr(suite, "compile_all", lambda *_: 130)
    assert suite.measure(dict.fromkeys(find_packages(options.packages)), options, start=start) == 130
    assert order == [3, "measured"]
    DEVICE.clear()


def test_several_processes_end_without_a_gpu(tmp_path, plan, monkeypatch, capfd):
    package(tmp_path / "g", "a")
    plan()
    env = {**suite.environment(), "CUDA_VISIBLE_DEVICES": ""}
    assert compile_ahead.compile_all(tmp_path / "plan.json", 2, env) == 0
    assert "compiled 0 shapes" in capfd.readouterr().err
