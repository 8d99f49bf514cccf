"""Tuning with a clock made of a script; run by the interpreting process."""

from __future__ import annotations

import json
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from exact_cases import same

from opspec.driver.subjects import Subject
from opspec.driver.targets import limits
from opspec.driver.tune import compile_ahead, probe, store, tune
from opspec.driver.verify import load_module
from opspec.emit.package import build_package
from opspec.frontend import load
from opspec.runtime import calls, tuned
from opspec.runtime.bench import model
from opspec.runtime.bench.inputs import InputSet
from opspec.runtime.bench.measure import Bench
from opspec.runtime.bench.statistics import Policy

CASES: dict[str, Any] = {}
HALVE = "op halve[N](inout x: f32[N]) { kernel k { x[n] = 0.5 * x[n] } }\nworkload w for halve { N = 1100 }\n"
ROWS = """op rows[M, N](x: f32[M, N]) -> y: f32[M, N] { kernel k { y[m, n] = x[m, n] - max[i](x[m, i]) } }
workload w for rows { M = 1, N = 100 }
"""


def case(function: Any) -> Any:
    CASES[function.__name__] = function
    return function


class Clock:
    """A device whose times are a function of the options that were launched last."""

    def __init__(self, seconds: Callable[[dict[str, Any]], float]) -> None:
        self.seconds, self.options, self.time = seconds, {}, 0.0
        self.timed = 0

    def spans(self, work: Any, *, cold: bool) -> list[float]:
        found = []
        for prepare, run in work:
            if prepare is not None:
                prepare()
            run()
            self.timed += 1
            found.append(self.seconds(self.options))
            self.time += 0.1
        return found

    def clocks(self, *, wait: bool = False) -> None:
        return None

    def now(self) -> float:
        return self.time


@contextmanager
def prepared(text: str, clock: Clock) -> Iterator[Any]:
    """A subject with its bench, case and folder; ``clock`` hears what is launched."""
    started, again = calls.Call.start, calls.Launch.again

    def start(self: Any, kernel: Any, grid: Any, options: Any, *args: Any, **more: Any) -> None:
        clock.options = {**options, "variant": kernel.fn.__name__}
        started(self, kernel, grid, options, *args, **more)

    def repeat(self: Any, tensors: Any, floats: Any) -> None:
        clock.options = {**self.options, "variant": self.kernel.fn.__name__}
        again(self, tensors, floats)

    with tempfile.TemporaryDirectory(prefix="opspec-test-") as name:
        folder = Path(name)
        (folder / "spec.op").write_text(text, encoding="utf-8")
        module = load(folder / "spec.op")
        package = build_package(module, "spec.op", limits())
        files = package.files
        (folder / "kernel.py").write_text(files["kernel.py"], encoding="utf-8")
        drivers = types.ModuleType("bench")
        kernel = load_module(folder / "kernel.py")
        vars(drivers)["kernel"] = kernel
        exec(files["bench.py"].replace("import kernel\n", ""), vars(drivers))
        op = module.ops[0]
        subject = Subject(
            op=op,
            driver=drivers.DRIVER,
            launches=package.launches[op.name, ""],
            name=op.name,
            limits=limits(),
        )
        bench = Bench(
            device=clock, place="cpu", free_bytes=lambda: 1 << 30, synchronize=lambda: None, stream=None,
            roofs=None, policy=Policy(least=6, seconds=0.0, spread=0.5, budget=1.0),
        )  # fmt: skip
        calls.Call.start, calls.Launch.again = start, repeat
        try:
            yield types.SimpleNamespace(
                subject=subject,
                bench=bench,
                folder=folder,
                text=files["kernel.py"],
                case=model.cases(subject.driver, "w")[0],
            )
        finally:
            calls.Call.start, calls.Launch.again = started, again


def warps(options: dict[str, Any]) -> float:
    """Two warps are best, and the rest the worse the further from it."""
    return 1e-5 * (1 + abs(options["num_warps"] - 2))


@case
def what_is_tried_is_launched_beforehand() -> None:
    clock = Clock(warps)
    with prepared(ROWS, clock) as p:
        launched: list[Any] = []
        count = Clock.__setattr__

        def hear(self: Any, name: str, value: Any) -> None:
            count(self, name, value)
            if name == "options":
                launched.append(tuple(sorted((k, v) for k, v in value.items() if isinstance(v, (int, str)))))

        Clock.__setattr__ = hear  # type: ignore[method-assign,assignment]
        try:
            assert (
                compile_ahead(p.subject, p.case, device="cpu", count=5, place="cpu") == len(set(launched)) > 3
            )
            assert clock.timed == 0
        finally:
            del Clock.__setattr__


@case
def the_fastest_is_kept_and_used() -> None:
    clock = Clock(warps)
    with prepared(ROWS, clock) as p:
        (outcome,) = tune(p.subject, p.case, p.bench, device="cpu", count=8)
        assert outcome.best is not None
        assert outcome.best.changes["num_warps"] == 2
        assert outcome.tuned < outcome.untuned
        store(p.folder / "tuned.json", p.text, "spec.op", [outcome])
        (entry,) = json.loads((p.folder / "tuned.json").read_text())["entries"]
        assert (entry["op"], entry["kernel"], entry["bucket"]) == ("rows", "k", "1,128")
        fresh = load_module(p.folder / "kernel.py")
        x = torch.randn(1, 100)
        for _ in range(2):
            same(fresh.rows(x), x - x.max(1, keepdim=True).values)
            assert clock.options["num_warps"] == 2
        fresh.rows(torch.randn(1, 200))
        assert clock.options["num_warps"] != 2


@case
def in_place_data_is_put_back() -> None:
    with prepared(HALVE, Clock(warps)) as p:
        from opspec.runtime.bench import measure

        sets, make = [], measure.make_sets
        measure.make_sets = lambda *args: sets.extend(make(*args)) or sets
        try:
            (outcome,) = tune(p.subject, p.case, p.bench, device="cpu", count=5)
        finally:
            measure.make_sets = make
        assert not outcome.refused, outcome.refused
        for each in sets:
            assert torch.equal(each.arguments[0], each.pristine[0])
        x = torch.full((1100,), 64.0)
        p.subject.driver.function(x)
        same(x, torch.full((1100,), 32.0))
        p.subject.driver.function(x)
        same(x, torch.full((1100,), 16.0))


@case
def what_is_wrong_is_never_timed() -> None:
    clock = Clock(lambda options: 1e-6 if options["num_warps"] == 2 else 1e-5)
    with prepared(ROWS, clock) as p:
        right = p.subject.operator.launch

        def launch(call: Any, dims: Any, x: Any, y: Any) -> None:
            right(call, dims, x, y)
            if clock.options.get("num_warps") == 2:
                y.add_(1)

        p.subject.operator.launch = launch
        (outcome,) = tune(p.subject, p.case, p.bench, device="cpu", count=8)
        assert any("num_warps=2" in r for r in outcome.refused)
        assert outcome.best is None or outcome.best.changes.get("num_warps") != 2


@case
def a_wrong_untuned_choice_ends_it() -> None:
    clock = Clock(warps)
    with prepared(ROWS, clock) as p:
        right = p.subject.operator.launch
        p.subject.operator.launch = lambda call, dims, x, y: (right(call, dims, x, y), y.add_(1))
        (outcome,) = tune(p.subject, p.case, p.bench, device="cpu", count=4)
        assert outcome.fault
        assert not clock.timed


@case
def what_is_no_faster_is_not_kept() -> None:
    with prepared(ROWS, Clock(lambda options: 1e-5)) as p:
        (outcome,) = tune(p.subject, p.case, p.bench, device="cpu", count=6)
        assert outcome.best is None
        path = p.folder / "tuned.json"
        older = {
            "op": "rows",
            "kernel": "k",
            "device": "cpu",
            "bucket": "1,128",
            "variant": "v",
            "options": {},
        }
        other = {**older, "device": "another"}
        kernel = tuned.digest(p.folder / "kernel.py")
        path.write_text(json.dumps({"schema": tuned.SCHEMA, "kernel": kernel, "entries": [older, other]}))
        store(path, p.text, "spec.op", [outcome])
        assert [e["device"] for e in json.loads(path.read_text())["entries"]] == ["another"]


@case
def a_file_for_other_kernels_or_none_says_nothing() -> None:
    with prepared(ROWS, Clock(warps)) as p:
        path, kernel = p.folder / "tuned.json", p.folder / "kernel.py"
        entry = {"op": "rows", "kernel": "k", "device": "cpu", "bucket": "1,128", "variant": "v"}
        document = {
            "schema": tuned.SCHEMA,
            "kernel": tuned.digest(kernel),
            "entries": [{**entry, "options": {"num_warps": 8}}],
        }
        assert tuned.read(path, kernel) == {}
        path.write_text(json.dumps(document))
        assert tuned.read(path, kernel) == {("rows", "k", "cpu", "1,128"): {"v": {"num_warps": 8}}}
        for change in ({"kernel": "0"}, {"schema": "opspec.tuned/9"}):
            path.write_text(json.dumps({**document, **change}))
            assert tuned.read(path, kernel) == {}
        for broken in (
            "{",
            "[]",
            json.dumps({**document, "entries": [{**entry, "options": {"num_warps": "8"}}]}),
        ):
            path.write_text(broken)
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                assert tuned.read(path, kernel) == {}
            assert "tuned.json" in str(heard[0].message)


@case
def nothing_to_launch_is_nothing_to_tune() -> None:
    with prepared(ROWS, Clock(warps)) as p:
        empty = replace(p.case, dims={"M": 0, "N": 100})
        (outcome,) = tune(p.subject, empty, p.bench, device="cpu", count=4)
        assert outcome.best is None
        assert not outcome.tried


@case
def another_variant_may_win() -> None:
    clock = Clock(lambda options: 1e-6 if options["variant"].endswith("streamed") else 1e-5)
    with prepared(ROWS, clock) as p:
        x = torch.randn(1, 100)
        _, before, _ = probe(p.subject, InputSet([x], {}), p.subject.launches[0], {})
        assert before == "_rows_k"  # rows of any length
        (outcome,) = tune(p.subject, p.case, p.bench, device="cpu", count=6)
        assert outcome.best is not None
        assert outcome.best.variant.endswith("streamed")
        store(p.folder / "tuned.json", p.text, "spec.op", [outcome])
        same(load_module(p.folder / "kernel.py").rows(x), x - x.max(1, keepdim=True).values)
        assert clock.options["variant"].endswith("streamed")


PRODUCT = """op mm[M, N, K](a: bf16[M, K], b: bf16[K, N]) -> c: bf16[M, N] {
  kernel k { c[m, n] = sum[k](a[m, k] * b[k, n]) }
}
workload w for mm { M = 16, N = SIDE, K = DEPTH }
"""


def _tuned_product(side: int, depth: int, form: str) -> None:
    clock = Clock(warps)
    text = PRODUCT.replace("SIDE", str(side)).replace("DEPTH", str(depth))
    with prepared(text, clock) as p:
        launch = p.subject.launches[0]
        x = InputSet([torch.ones(16, depth).bfloat16(), torch.ones(depth, side).bfloat16()], {})
        _, variant, options = probe(p.subject, x, launch, {})
        assert variant in {t.name for t in launch.texts}
        assert options["BLOCK_N"] >= 16
        heard = set()
        clock.seconds = lambda options: heard.add(options["variant"]) or warps(options)
        (outcome,) = tune(p.subject, p.case, p.bench, device="cpu", count=2)
        assert outcome.tried == 3
        assert not outcome.refused
        assert any(form in name for name in heard)


@case
def a_product_with_descriptors_is_tuned() -> None:
    _tuned_product(64, 64, "_described")


@case
def a_product_in_parts_is_tuned() -> None:
    _tuned_product(64, 2048, "_merge")
