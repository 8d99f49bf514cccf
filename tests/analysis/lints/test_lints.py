"""What `opspec check` says about pipelines, ledgers and evidence beyond budgets: warnings, each with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opspec.analysis.lints import lints
from opspec.frontend import load, load_text

ROOT = Path(__file__).parents[3]
OP = """op f[M, N](x: bf16[M, N]) -> y: bf16[M, N] { kernel k { y[m, n] = exp(x[m, n]) } }
workload odd for f { M = 1000, N = 4099 }
workload served for f { M = 64, N ~ {512: 0.3, 2048: 0.7} }
pipeline p {
  machine h200
  stage a = 10 * f @ odd from "base.json"
  stage b = 2 ms measured "trace"
}
variant v of p { stage a = 10 * f @ odd from "new.json" }
evidence e for p.v {
  cost    = "the loop"
  numbers { f @ odd: bytes }
  failure = "none known"
  level   = "closed loop"
  acceptance = "faster"
  gate { end_to_end_gain > 1 }
}
"""


def result(**more) -> str:
    timing = {"status": "ok", "time_s": 1e-3, **more}
    record = {"workload": "odd", "weight": 1.0, "dims": {"M": 1000, "N": 4099}, "measured": timing}
    return json.dumps(
        {
            "schema": "opspec.bench/1",
            "op": "f",
            "spec": "<text>",
            "status": "measured",
            "results": [record],
            "distributions": [],
        }
    )


@pytest.fixture
def folder(tmp_path) -> Path:
    for name in ("base.json", "new.json"):
        (tmp_path / name).write_text(result())
    return tmp_path


def found(text: str, folder: Path) -> list[tuple[str, str]]:
    module = load_text(text)
    for name in ("base.json", "new.json"):
        path = folder / name
        if path.exists():
            path.write_text(path.read_text().replace("<text>", module.files[0].name))
    diagnostics = lints(module, folder)
    assert all(d.severity == "warning" for d in diagnostics)
    assert all(d.span is not None for d in diagnostics)
    return [(d.code.code, d.message) for d in diagnostics]


def test_evidence_without_gaps_is_silent(folder):
    assert found(OP, folder) == []


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        ("M = 1000, N = 4099", "M = 1024, N = 4096", "OP752", "ideal shapes of `f` only: `odd`, `served`"),
        ("N ~ {512: 0.3, 2048: 0.7}", "N = 700", "OP753", "no distribution of the shapes of `f`"),
        ("f @ odd: bytes", "f @ odd: flops", "OP754", "neither bytes nor intensity of `f`"),
        ('odd from "new.json" }', "odd takes 1 ms measured }", "OP755", "stage `a` states a measured time"),
        ("  machine h200\n", "", "OP756", "no machine is named"),
        ('odd from "new.json" }', "odd }", "OP756", "no stage that it restates was measured"),
        (
            'stage a = 10 * f @ odd from "new.json" }',
            "stage b = 1 ms measured }",
            "OP756",
            "restates no stage that runs",
        ),
        ('odd from "new.json" }', 'odd from "missing.json" }', "OP743", "cannot read `missing.json`"),
    ],
)
def test_each_gap_is_named(folder, old, new, code, words):
    assert old in OP
    said = found(OP.replace(old, new), folder)
    assert code in {c for c, _ in said}
    assert any(words in m for c, m in said if c == code), said


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"drifted": True}, "rate drifted"),
        ({"throttled_rounds": 3}, "held down"),
        ({"incomplete": "timeout"}, "timeout"),
    ],
)
def test_a_result_that_is_not_steady(folder, field, words):
    (folder / "new.json").write_text(result(**field))
    ((code, message),) = found(OP, folder)
    assert code == "OP755"
    assert words in message


def test_the_shipped_case_contradicts_itself_as_its_document_does():
    path = ROOT / "specs/world_model/latent_block.op"
    found = [d for d in lints(load(path), path.parent) if d.code.code == "OP751"]
    texts = [d.message for d in found]
    assert any(
        "contact 3 * 16 * 16 = 768 already" in t and "nothing is left for history and layout" in t
        for t in texts
    )
    assert any("18 ms / 4.1 ms each = 4.39 runs" in t for t in texts)
    (disagrees,) = (d for d in found if "count × latency disagrees" in d.message)
    assert "4.39 runs before" in disagrees.message
    assert "5.19 after" in disagrees.message
    assert ["no whole number" in n.text for n in disagrees.notes] == [True]
    lines = [d.span.source.line(d.span.source.position(d.span.start)[0]).split()[0] for d in found]
    assert lines == ["stage", "stage", "ledger"]


def test_a_ledger_without_a_pipeline_is_counted():
    text = OP.partition("pipeline")[0] + "ledger t for odd.N { a = 4100 }\n"
    ((code, message),) = found(text, Path())
    assert code == "OP751"
    assert "add up to 4100" in message


SCORES = """op attend[L, D](q: bf16[L, D], k: bf16[L, D]) -> o: f32[L] {
  kernel scores { s: bf16[i, j] = sum[d](q[i, d] * k[j, d]) }
  kernel weights { o[i] = max[j](s[i, j]) }
}
boundary fused of attend { kernel all { s, o } }
workload long for attend { L = 8192, D = 64 }
"""


def test_a_value_larger_than_all_tensors_between_kernels(folder):
    ((code, message),) = found(SCORES, folder)
    assert code == "OP757"
    assert message == "`s` goes through memory: 128 MiB at `long`, 128 times the largest tensor of `attend`"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  kernel scores {", "  kernel all {"),
        ("L = 8192", "L = 128"),
        ("workload long for attend { L = 8192, D = 64 }", ""),
    ],
)
def test_values_that_stay_inside_or_are_small_are_silent(folder, old, new):
    text = SCORES.replace(old, new)
    if "all {" in new:
        text = (
            text.replace(" }\n  kernel weights {", "\n ").partition("boundary")[0]
            + "workload long for attend { L = 8192, D = 64 }"
        )
    assert found(text, folder) == []
