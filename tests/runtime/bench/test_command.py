"""A driver from its command line to its result, on a scripted GPU and on none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import jsonschema
import pytest

from opspec.runtime import bench
from opspec.runtime.bench.command import roof_dtypes
from opspec.runtime.bench.measure import lasting
from opspec.runtime.bench.model import cases
from opspec.runtime.bench.named import named_peer
from opspec.runtime.bench.peers import known_peers
from opspec.runtime.bench.result import SCHEMA_FILE
from opspec.runtime.bench.statistics import Policy
from opspec.runtime.bench.table import show
from tests.runtime.bench.fakes import CAPPED, FakeDevice, driver, nothing, opener, peer, runs, scale

SCHEMA = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
OURS, STREAM = [50e-6, 50.1e-6, 50.2e-6], [45e-6]


def run(made, tmp_path, *argv, open_bench=nothing):
    """(exit status, validated document)."""
    path = tmp_path / "out.json"
    status = bench.main(made, argv=[*argv, "--json", str(path)], open_bench=open_bench)
    document = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate(document, SCHEMA)
    assert [p.name for p in tmp_path.iterdir()] == ["out.json"]
    return status, document


def measure(tmp_path, device, *argv, opener_options=None, **changes):
    made = driver(device, **changes)
    status, document = run(
        made, tmp_path, "--at", "small", *argv, open_bench=opener(device, **(opener_options or {}))
    )
    return status, document, document["results"][0]["measured"]


def test_without_a_gpu_the_closed_form_stands_alone(tmp_path, capsys):
    status, document = run(driver(), tmp_path, "--machine", "fake9")
    assert status == 0
    assert document["status"] == "not measured"
    assert [r["measured"] for r in document["results"]] == [None, None]
    small = document["results"][0]
    assert small["roofline"]["floor_s"] == pytest.approx(64 * 32 * 4 / 4.8e12)
    printed = capsys.readouterr().out
    assert "nothing was measured" in printed
    assert "8.192 kB" in printed
    assert "floor" in printed


def test_without_a_machine_there_is_no_floor_and_the_known_ones_are_named(tmp_path, capsys):
    _, document = run(driver(), tmp_path)
    assert document["results"][0]["roofline"] is None
    assert "--machine knows a100" in capsys.readouterr().out


def test_a_sound_run(tmp_path, capsys):
    device = FakeDevice({"ours": OURS, "stream": STREAM, "lib": [100e-6]})
    status, document, found = measure(tmp_path, device, peers=(peer(device, "lib"),))
    assert (status, document["status"], found["status"]) == (0, "measured", "ok")
    assert found["time_s"] == pytest.approx(50.1e-6)
    assert found["cache"] == "cold"
    assert len(found["candidates"][0]["events"]["samples_s"]) == found["rounds"] >= 10
    assert all(item["passed"] for when in ("before", "after") for item in found["checks"][when])
    assert found["share"]["kind"] == "copy"
    assert found["share"]["share"] == pytest.approx(45 / 50.1)
    assert found["verdicts"][0]["verdict"] == "FASTER"
    assert found["launch_cost_s"] == pytest.approx(20e-6, abs=1e-6)
    assert sum(row["seconds"] for row in found["ledger"]) == pytest.approx(found["time_s"])
    assert found["ledger"][-1]["name"] == "unexplained"
    assert document["environment"]["software"]["spec_hash"] == "a1"
    assert "separate profiler pass" in document["environment"]["software"]["counters"]
    printed = capsys.readouterr().out
    for text in (
        "where the time went",
        "unexplained",
        "FASTER",
        "89.8% of a copy",
        "cold L2",
        "p90",
        "Fake9",
    ):
        assert text in printed


def test_inputs_are_random_differ_between_sets_and_are_described(tmp_path):
    seen = []

    def remembering(x, eps):
        seen.append(x)
        device.running = "ours"
        return scale(x, eps)

    device = FakeDevice({"ours": OURS, "stream": STREAM})
    _, document = run(
        driver(device, function=remembering),
        tmp_path,
        "--at",
        "small",
        "--seed",
        "7",
        open_bench=opener(device),
    )
    contents = {tuple(x.flatten()[:4].tolist()) for x in seen}
    assert len(contents) == document["results"][0]["measured"]["sets"] == 3
    (tensor,) = document["results"][0]["tensors"]
    assert tensor == {
        "name": "x",
        "dtype": "bf16",
        "shape": [64, 32],
        "strides": [32, 1],
        "kind": "normal",
        "scale": 1.0,
        "inout": False,
    }


def test_a_time_under_the_floor_is_rejected_and_not_reported(tmp_path, capsys):
    device = FakeDevice({"ours": [1e-10], "stream": STREAM})
    status, document, found = measure(
        tmp_path, device, opener_options={"policy": Policy(least=10, seconds=0)}
    )
    assert (status, document["status"], found["status"]) == (1, "failed", "rejected")
    assert "under the floor" in found["reason"]
    assert "verdicts" not in found
    assert "rates" not in found
    printed = capsys.readouterr().out
    assert "REJECTED" in printed
    assert "p90" not in printed
    assert "bandwidth" not in printed


def test_an_8192_cubed_product_cannot_be_done_in_a_microsecond(tmp_path):
    flops = 2 * 8192**3

    def cost(dims, dtypes):
        return {
            "flops": flops,
            "flops.tensor": flops,
            "bytes.read": 2 * 2 * 8192**2,
            "bytes.write": 2 * 8192**2,
        }

    device = FakeDevice({"ours": [1111e-6], "stream": STREAM, "warm ours": [1112e-6]})
    status, document, found = measure(tmp_path, device, cost=cost, contraction="X")
    line = document["results"][0]["roofline"]
    assert line["floor_s"] == pytest.approx(1111.29e-6, rel=1e-5)
    assert line["bound"] == "tensor"
    assert (status, found["status"]) == (1, "rejected")


def test_wrong_output_is_not_timed(tmp_path):
    device = FakeDevice({})
    status, _, found = measure(tmp_path, device, function=runs(device, "ours", lambda x, eps: x * 2))
    assert (status, found["status"]) == (1, "incorrect")
    assert "outside the tolerance" in found["reason"]
    assert device.batches == 0
    assert "time_s" not in found


def test_output_that_goes_wrong_while_timed_is_not_reported(tmp_path):
    calls = []

    def decaying(x, eps):
        calls.append(1)
        device.running = "ours"
        return scale(x, eps) * (1 if len(calls) < 5 else 1.5)

    device = FakeDevice({"ours": OURS, "stream": STREAM})
    status, _, found = measure(tmp_path, device, function=decaying)
    assert (status, found["status"]) == (1, "incorrect")
    assert found["reason"].startswith("after timing")
    assert found["checks"]["before"][0]["passed"]


def test_a_failing_operator_is_a_result_that_says_how(tmp_path):
    def broken(x, eps):
        raise RuntimeError("out of resource: shared memory")

    status, _, found = measure(tmp_path, FakeDevice({}), function=broken)
    assert (status, found["status"]) == (1, "error")
    assert "shared memory" in found["reason"]


def test_drift_is_flagged_and_clocks_are_recorded(tmp_path, capsys):
    slowing = [50e-6 * (1 + 0.002 * i) for i in range(400)]
    device = FakeDevice({"ours": slowing, "stream": STREAM}, clocks=[CAPPED] * 50)
    policy = Policy(least=95, seconds=0, spread=1.0)
    _, _, found = measure(tmp_path, device, opener_options={"policy": policy, "stream": False})
    assert found["drifted"]
    assert found["drift"] < -0.1
    assert found["clocks"][0]["sm_mhz"] == 1400
    assert found["throttled_rounds"] == found["rounds"]
    printed = capsys.readouterr().out
    assert "drifted" in printed
    assert "throttled" in printed


def test_the_baseline_is_the_fastest_correct_peer_with_its_version(tmp_path):
    names = {"eager f32": 8.0e-3, "library": 2.0e-3, "compiled": 2.5e-3, "cheat": 0.5e-3}
    device = FakeDevice({"ours": [1.6e-3], "stream": STREAM, **{name: [t] for name, t in names.items()}})
    peers = [peer(device, name, version=f"{name} 9") for name in list(names)[:3]]
    peers.append(peer(device, "cheat", function=lambda x, eps: x))
    _, _, found = measure(tmp_path, device, peers=tuple(peers))
    base = found["baseline"]
    assert (base["peer"], base["version"]) == ("library", "library 9")
    assert base["speedup"] == pytest.approx(1.25)
    rows = {row["name"]: row for row in found["candidates"]}
    assert rows["cheat"]["status"] == "wrong"
    assert rows["cheat"]["events"] is None


def test_a_peer_that_fails_is_a_row_that_says_so(tmp_path, capsys):
    def impossible(x, eps):
        raise RuntimeError("no kernel for this shape")

    device = FakeDevice({"ours": OURS, "stream": STREAM})
    _, _, found = measure(tmp_path, device, peers=(peer(device, "vendor", function=impossible),))
    row = next(row for row in found["candidates"] if row["name"] == "vendor")
    assert row["status"] == "failed"
    assert "no kernel for this shape" in row["reason"]
    assert "vendor: failed" in capsys.readouterr().out


def test_a_peer_whose_library_is_missing_is_a_row_that_says_so(tmp_path, capsys):
    def impossible(dims, dtypes):
        raise ModuleNotFoundError("No module named 'vendor'")

    device = FakeDevice({"ours": OURS, "stream": STREAM})
    status, _, found = measure(tmp_path, device, peers=(bench.Peer("vendor", impossible),))
    assert status == 0
    assert found["baseline"] is None
    row = next(row for row in found["candidates"] if row["name"] == "vendor")
    assert row["status"] == "unavailable"
    assert "No module named 'vendor'" in row["reason"]
    assert "vendor: unavailable" in capsys.readouterr().out


def test_a_peer_under_the_floor_is_no_baseline(tmp_path):
    device = FakeDevice({"ours": OURS, "stream": STREAM, "liar": [1e-10], "lib": [60e-6]})
    _, _, found = measure(tmp_path, device, peers=(peer(device, "liar"), peer(device, "lib")))
    assert found["baseline"]["peer"] == "lib"
    assert next(row for row in found["candidates"] if row["name"] == "liar")["status"] == "rejected"


def test_short_kernels_are_timed_in_graphs_too(tmp_path):
    device = FakeDevice({"ours": [9e-6], "stream": [8e-6]})
    _, _, found = measure(tmp_path, device)
    assert found["method"] == "graph"
    assert found["time_s"] == pytest.approx(6e-6)
    assert found["candidates"][0]["events"]["median_s"] == pytest.approx(9e-6)
    assert found["share"]["share"] == pytest.approx(8 / 9)


def test_a_short_kernel_that_no_graph_holds_stays_with_events(tmp_path):
    device = FakeDevice({"ours": [9e-6], "stream": [8e-6]}, capture=False)
    _, _, found = measure(tmp_path, device)
    assert found["method"] == "events"
    assert "capturing" in found["candidates"][0]["graph_refused"]


def test_a_peer_that_no_graph_holds_is_still_compared_by_the_same_clock(tmp_path):
    device = FakeDevice({"ours": [9e-6], "stream": [8e-6], "fast": [6e-6], "slow": [20e-6]})
    capture = device.graph

    def graph(call, sets, *, cold, repeats):
        call(0)
        if device.running == "fast":
            raise RuntimeError("host sync while capturing")
        return capture(call, sets, cold=cold, repeats=repeats)

    device.graph = graph
    _, _, found = measure(tmp_path, device, peers=(peer(device, "fast"), peer(device, "slow")))
    methods = {item["peer"]: item["method"] for item in found["verdicts"]}
    assert methods == {"fast": "events", "slow": "graph"}
    assert found["baseline"]["peer"] == "fast"
    assert found["baseline"]["speedup"] == pytest.approx(6 / 9)


def test_matrix_work_is_also_measured_back_to_back(tmp_path, capsys):
    device = FakeDevice({"ours": OURS, "stream": STREAM, "warm ours": [70e-6]})

    def cost(dims, dtypes):
        return {"flops": 1e9, "flops.tensor": 1e9, "bytes.read": 4096, "bytes.write": 4096}

    _, _, found = measure(tmp_path, device, cost=cost, contraction="X")
    assert found["sustained"]["time_s"] == pytest.approx(70e-6)
    assert found["time_s"] == pytest.approx(50.1e-6)
    assert found["calibrated"]["share"] == pytest.approx(1e9 / 820e12 / 50.1e-6)
    printed = capsys.readouterr().out
    assert "70.00 µs after" in printed
    assert "2.4% of tensor" in printed


def test_what_fails_after_the_cold_samples_does_not_lose_them(tmp_path, capsys):
    device = FakeDevice({"ours": OURS, "stream": STREAM})  # has no warm times
    status, _, found = measure(tmp_path, device, "--warm")
    assert (status, found["status"]) == (0, "ok")
    assert found["time_s"] == pytest.approx(50.1e-6)
    assert "KeyError" in found["incomplete"]
    assert "what followed failed" in capsys.readouterr().out


def test_warm_comes_after_cold_and_is_labelled(tmp_path, capsys):
    device = FakeDevice({"ours": OURS, "stream": STREAM, "warm ours": [1e-10]})
    status, _, found = measure(tmp_path, device, "--warm")
    kinds = [entry[0] for entry in device.log if entry != "prepare"]
    assert kinds == sorted(kinds)
    assert (status, found["warm"]["cache"]) == (0, "warm")
    assert found["time_s"] == pytest.approx(50.1e-6)
    assert "not to be read as memory bandwidth" in capsys.readouterr().out


def test_an_interrupt_keeps_what_was_measured(tmp_path):
    device = FakeDevice({"ours": [50e-6, 60e-6], "stream": STREAM}, interrupt_after=9)
    policy = Policy(least=10000, seconds=0)
    status, document, found = measure(tmp_path, device, opener_options={"policy": policy})
    assert (status, document["status"], found["status"]) == (130, "interrupted", "interrupted")
    assert found["stopped"] == "interrupted"
    assert len(found["candidates"][0]["events"]["samples_s"]) == found["rounds"] > 0


def test_a_request_to_end_is_taken_as_an_interrupt(tmp_path):
    class Ended(FakeDevice):
        def spans(self, work, *, cold):
            found = super().spans(work, cold=cold)
            if self.batches == 9:
                os.kill(os.getpid(), signal.SIGTERM)
            return found

    device = Ended({"ours": [50e-6, 60e-6], "stream": STREAM})
    status, document, found = measure(
        tmp_path, device, opener_options={"policy": Policy(least=10000, seconds=0)}
    )
    assert (status, document["status"], found["status"]) == (130, "interrupted", "interrupted")
    assert found["rounds"] > 0


def test_in_place_tensors_are_checked_and_restored(tmp_path):
    def add_in_place(x, cache):
        device.running = "ours"
        cache += x

    device = FakeDevice({"ours": OURS, "stream": STREAM})
    inputs = tuple(
        bench.TensorInput(name, dtype="X", extents=lambda d: (d["M"], d["N"]), inout=name == "cache")
        for name in ("x", "cache")
    )
    status, _, found = measure(
        tmp_path,
        device,
        function=add_in_place,
        reference=lambda x, cache: cache + x,
        inputs=inputs,
        outputs=(),
    )
    assert (status, found["status"]) == (0, "ok")
    assert [item["name"] for item in found["checks"]["after"]] == ["cache"]
    assert "prepare" in device.log


def test_a_distribution_reports_each_shape_the_mean_and_the_worst(tmp_path, capsys):
    shapes = ((0.25, {"M": 8, "N": 64}), (0.75, {"M": 64, "N": 64}))
    times = {8: 40e-6, 64: 80e-6}

    def sized(x, eps):
        device.running = f"ours {x.shape[0]}"
        return scale(x, eps)

    device = FakeDevice({**{f"ours {m}": [t] for m, t in times.items()}, "stream": STREAM})
    made = driver(device, function=sized, workloads={"mixed": bench.Distribution(shapes)})
    status, document = run(made, tmp_path, open_bench=opener(device, stream=False))
    # Samples are filed under the candidate's name; the fake tells them apart by shape.
    (found,) = document["distributions"]
    assert status == 0
    assert found["mean_s"] == pytest.approx(0.25 * 40e-6 + 0.75 * 80e-6)
    assert found["worst_dims"] == {"M": 8, "N": 64}
    assert "weighted mean" in capsys.readouterr().out


def test_set_and_dtype_change_the_shape(tmp_path):
    _, document = run(driver(), tmp_path, "--at", "small", "--set", "M=3,N=5", "--dtype", "X=f32")
    (record,) = document["results"]
    assert record["dims"] == {"M": 3, "N": 5}
    assert record["cost"]["bytes.read"] == 60


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--at", "huge"], "no workload `huge`; there are: small, wide"),
        (["--set", "K=1"], "no dim `K`; there are: M, N"),
        (["--set", "M=-1"], "non-negative"),
        (["--set", "M"], "not NAME=VALUE"),
        (["--dtype", "X=f8"], "`X` may be bf16, f32"),
        (["--dtype", "Y=f32"], "no dtype parameter `Y`"),
        (["--machine", "nonesuch"], "no machine `nonesuch`"),
    ],
)
def test_bad_usage_is_exit_2_and_names_what_there_is(argv, said, capsys):
    assert bench.main(driver(), argv=argv, open_bench=nothing) == 2
    assert said in capsys.readouterr().err


def test_list(capsys):
    assert bench.main(driver(), argv=["--list"]) == 0
    assert capsys.readouterr().out == (
        "scale of specs/map/scale.op\n  small  M = 64, N = 32\n  wide  M = 8, N = 512\n  --dtype X=bf16|f32\n"
    )


def test_several_ops_in_one_file(tmp_path, capsys):
    two = driver(), driver(op="other", workloads={"huge": bench.Workload({"M": 1, "N": 1})})
    assert bench.main(*two, argv=["--json", str(tmp_path / "out.json")], open_bench=nothing) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.other.json", "out.scale.json"]
    assert (
        bench.main(*two, argv=["--at", "huge", "--json", str(tmp_path / "one.json")], open_bench=nothing) == 0
    )
    assert json.loads((tmp_path / "one.json").read_text(encoding="utf-8"))["op"] == "other"
    capsys.readouterr()
    assert bench.main(*two, argv=["--op", "other"], open_bench=nothing) == 0
    assert "bench of scale" not in capsys.readouterr().out
    assert bench.main(*two, argv=["--at", "none"], open_bench=nothing) == 2
    with pytest.raises(SystemExit):
        bench.main(*two, argv=["--op", "third"], open_bench=nothing)


def test_json_to_standard_output(capsys):
    assert bench.main(driver(), argv=["--json", "-"], open_bench=nothing) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), SCHEMA)


def test_a_terminal_without_rich_gets_the_same_table(tmp_path, capsys, monkeypatch):
    _, document = run(driver(), tmp_path, "--machine", "fake9")
    plain = capsys.readouterr().out
    show(document, terminal=True)
    assert capsys.readouterr().out.split() == plain.split()
    monkeypatch.setitem(sys.modules, "rich.console", None)
    show(document, terminal=True)
    assert capsys.readouterr().out == plain


def test_fallback_is_carried_into_the_row(tmp_path, capsys):
    device = FakeDevice({"ours": OURS, "stream": STREAM})
    _, _, found = measure(tmp_path, device, fallback="sort is not emitted")
    assert found["fallback"] == "sort is not emitted"
    assert "fallback: sort is not emitted" in capsys.readouterr().out


def test_the_machine_is_found_by_the_name_of_the_card(tmp_path):
    device = FakeDevice({"ours": OURS, "stream": STREAM})
    _, document, _ = measure(tmp_path, device)
    assert document["machine"]["name"] == "fake9"
    assert "by the card's name" in document["machine"]["source"]


def test_the_reference_itself_is_a_peer_eager_and_compiled():
    names = [item.name for item in known_peers(driver(), autotune=True)]
    assert names == [
        "torch eager",
        "torch.compile",
        "torch.compile max-autotune",
        "torch.compile max-autotune, no graphs",
    ]
    assert [item.name for item in known_peers(driver(), autotune=False)] == names[:2]


def test_a_graph_beside_the_cold_median_where_it_is_asked_for(tmp_path, capsys):
    times = {"ours": [300e-6], "stream": [200e-6], "lib": [600e-6]}
    device = FakeDevice(times)
    made = (peer(device, "lib"), bench.Peer("own", lambda *_: runs(device, "lib", scale), replays=True))
    _, _, found = measure(tmp_path, device, "--graph", peers=made)
    assert found["method"] == "events"
    assert found["time_s"] == pytest.approx(300e-6)
    assert found["graph_s"] == pytest.approx(200e-6)
    assert {v["method"] for v in found["verdicts"]} == {"events"}
    printed = capsys.readouterr().out
    assert "in a CUDA graph" in printed
    assert "in a graph" in printed
    assert "own: by events, no graph (replays graphs of its own)" in printed
    _, _, found = measure(tmp_path, FakeDevice(times))
    assert "graph_s" not in found


def test_the_launches_of_a_call_and_its_cost_on_the_host(tmp_path, capsys):
    from tests.runtime.bench.test_launches import declared, generated

    device = FakeDevice({"ours": OURS, "stream": STREAM, "host ours": [8e-6], "host by hand": [6e-6]})

    def work(x, y, *_):
        device.running = "by hand"

    function, _ = generated(work)
    scope = function.__globals__
    scope["device"] = device
    exec("def scaled(x, eps, class_, *, W):\n    device.running = 'ours'\n    return x * 2 + eps", scope)
    made = declared(function)
    _, document = run(
        driver(
            function=scope["scaled"],
            reference=lambda x, eps, class_, *, W: x * 2 + eps,
            inputs=made.inputs,
            keywords=made.keywords,
        ),
        tmp_path,
        "--at",
        "small",
        open_bench=opener(device),
    )
    found = document["results"][0]["measured"]
    assert found["status"] == "ok", found["reason"]
    assert "incomplete" not in found
    (launch,) = found["launches"]
    assert launch["programs"] == 12
    assert launch["waves"] == pytest.approx(12 / 264)
    assert found["host"] == {
        "call_s": pytest.approx(8e-6),
        "by_hand_s": pytest.approx(6e-6),
        "wrapper_s": pytest.approx(2e-6),
    }
    assert "last wave, at most" in [row["name"] for row in found["ledger"]]
    printed = capsys.readouterr().out
    assert "8.000 µs, by hand 6.000 µs: 2.000 µs of wrapper" in printed
    assert "of _rows: 12 programs, 2 at once on each of 132 multiprocessors" in printed


def test_matrix_rates_of_all_types_are_roofs_unless_in_a_hurry():
    made = driver(contraction="X")
    shapes = cases(made, "small", {}, {"X": "f32"})
    assert roof_dtypes(made, shapes, quick=False) == ["bf16", "f16", "f8e4m3", "tf32", "f32", "i8"]
    assert roof_dtypes(made, shapes, quick=True) == ["bf16", "f32"]


def test_importing_the_library_brings_in_neither_torch_nor_triton():
    code = "import sys; from opspec.runtime import bench; print(sorted({'torch', 'triton', 'sympy'} & set(sys.modules)))"
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_peer_named_on_the_command_line_stands_beside(tmp_path, monkeypatch):
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "vendor_kernels.py").write_text("__version__ = '2.1'\ndef fast(x, eps): return x * 2 + eps\n")
    (folder / "vendor_wrong.py").write_text(
        "class K:\n    @staticmethod\n    def wrong(x, eps): return x * 3\n"
    )
    monkeypatch.chdir(folder)
    where = tmp_path / "out"
    where.mkdir()
    wrong = f"{folder / 'vendor_wrong.py'}:K.wrong"
    device = FakeDevice({"ours": OURS, "stream": STREAM, "": [60e-6]})
    status, _, found = measure(where, device, "--peer", "vendor_kernels:fast", "--peer", wrong)
    rows = {row["name"]: row for row in found["candidates"]}
    assert status == 0
    assert rows["vendor_kernels:fast"]["version"] == "vendor_kernels 2.1"
    assert rows["vendor_kernels:fast"]["status"] == "ok"
    assert rows[wrong]["status"] == "wrong"


def test_a_named_peer_records_the_version_of_the_library_that_it_calls(tmp_path):
    place = tmp_path / "theirs.py"
    place.write_text("__distribution__ = 'torch'\ndef fast(x, eps): return x * 2 + eps\n")
    assert named_peer(f"{place}:fast").version == f"torch {metadata.version('torch')}"
    place = tmp_path / "others.py"
    place.write_text("__distribution__ = 'no-such-library'\ndef fast(x, eps): return x * 2 + eps\n")
    assert not named_peer(f"{place}:fast").version


def test_a_prepared_peer_gets_what_was_made_of_its_arguments_once_a_set(tmp_path, capsys):
    made = []

    def doubled(x, eps):
        """X doubled beforehand.

        A copy.
        """
        made.append(x)
        return x * 2, eps

    device = FakeDevice({"ours": OURS, "stream": STREAM, "packed": [60e-6], "lib": [70e-6]})
    theirs = bench.prepared(doubled)(runs(device, "packed", lambda x2, eps: x2 + eps))
    peers = (bench.Peer("packed", lambda dims, dtypes: theirs), peer(device, "lib"))
    _, _, found = measure(tmp_path, device, peers=peers)
    rows = {row["name"]: row for row in found["candidates"]}
    assert rows["packed"]["status"] == "ok"
    assert rows["packed"]["prepared"] == "X doubled beforehand"
    assert len(made) == len({x.data_ptr() for x in made}) == found["sets"]
    assert not rows["lib"]["prepared"]
    assert "packed: made beforehand and not timed: X doubled beforehand" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name, said",
    [("nothing", "MODULE:FUNCTION"), ("os:no_such", "no function"), ("no.such.module:f", "ModuleNotFound")],
)
def test_a_peer_that_cannot_be_had_is_bad_usage(name, said, capsys):
    assert bench.main(driver(), argv=["--peer", name], open_bench=nothing) == 2
    assert said in capsys.readouterr().err


def test_where_the_seconds_went_is_in_the_result_and_not_printed(tmp_path, capsys):
    device = FakeDevice({"ours": OURS, "stream": STREAM})
    _, document, found = measure(tmp_path, device)
    assert set(document["seconds"]) == {"open", "roofs", "shapes", "rest", "total"}
    assert {"inputs", "check", "peers", "stream", "sampling", "recheck", "calls", "host"} <= set(
        found["seconds"]
    )
    for seconds in (document["seconds"], found["seconds"]):
        assert sum(v for k, v in seconds.items() if k != "total") == pytest.approx(seconds["total"])
    assert "recheck" not in capsys.readouterr().out


def test_a_shape_that_fails_says_where_the_seconds_went_until_then(tmp_path):
    _, _, found = measure(tmp_path, FakeDevice({}), function=runs(None, "ours", lambda x, eps: x))
    assert found["status"] == "error"
    assert set(found["seconds"]) == {"inputs", "check", "rest", "total"}


def test_a_peer_that_takes_seconds_is_run_a_few_times_and_the_rest_is_unhurt(tmp_path):
    times = {"ours": [9e-6], "stream": [8e-6], "slow": [2.0], "lib": [12e-6]}
    device = FakeDevice(times)
    policy = Policy(least=10, seconds=0.0, spread=0.5, budget=5.0)
    peers = (peer(device, "slow"), peer(device, "lib"))
    status, _, found = measure(tmp_path, device, peers=peers, opener_options={"policy": policy})
    rows = {row["name"]: row for row in found["candidates"]}
    assert status == 0
    assert rows["slow"]["events"]["count"] < 4
    assert rows["slow"]["wall"]["count"] == 1
    assert rows["slow"]["graph"] is None
    assert rows["slow"]["graph_refused"] == "takes too long to be repeated"
    assert rows["lib"]["graph"]["count"] == 25
    assert rows["lib"]["wall"]["count"] == 20
    assert found["baseline"]["peer"] == "lib"
    assert {v["peer"]: v["verdict"] for v in found["verdicts"]}["slow"] == "FASTER"
    slow = [what for what in device.log if what == ("cold", "slow")]
    assert len(slow) < 6


@pytest.mark.parametrize(("budget", "seconds"), [(20.0, 1.0), (0.5, 0.5)])
def test_work_back_to_back_takes_no_longer_than_the_budget(budget, seconds):
    policy = lasting(Policy(budget=budget))
    assert (policy.budget, policy.seconds) == (min(3.0, budget), seconds)
