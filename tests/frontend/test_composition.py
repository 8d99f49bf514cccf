"""What pipelines, machines, ledgers, recorded traffic and lengths become."""

from fractions import Fraction
from pathlib import Path

import pytest

from opspec.diagnostics import Failure
from opspec.frontend import load, load_text

OP = "op f[B, N](x: f32[B, N]) -> y: f32[B, N] { kernel k { y[b, i] = x[b, i] } }\n"
RAGGED = """op g[B, T](x: f32[B, T], len: i32[B]) -> y: f32[B] {
  assume len[b] <= T
  kernel k { y[b] = sum[t | t < len[b]](x[b, t]) }
}
"""


def codes(text: str) -> list[str]:
    with pytest.raises(Failure) as e:
        load_text(text)
    return [d.code.code for d in e.value.diagnostics]


def cases(folder: Path, name: str, content: str | bytes, setting: str):
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(raw)
    spec = folder / "spec.op"
    spec.write_text(f"{OP}workload w for f {{ {setting} }}\n", encoding="utf-8")
    module = load(spec)
    return module.workloads[0].cases, module


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("N,count\n8,3\n16,1\n8,2\n", {8: 5, 16: 1}),
        ("N\n8\n8\n16\n", {8: 2, 16: 1}),
        ("count;N;when\r\n3;8;noon\r\n\r\n1;16;night\r\n", {8: 3, 16: 1}),
        ("\ufeffN\tcount\n8\t3\n", {8: 3}),
        ('"N","count"\n"8","3"\n', {8: 3}),
        ("N,count\n8,0\n16,2\n", {16: 2}),
    ],
)
def test_recorded_shapes_of_one_dim(tmp_path, content, expected):
    found, _ = cases(tmp_path, "t.csv", content, 'B = 2, N ~ "t.csv"')
    assert {dict(d)["N"]: w for w, d in found} == expected
    assert all(dict(d)["B"] == 2 for _, d in found)


def test_recorded_shapes_of_several_dims_stay_together(tmp_path):
    text = '{"shapes": [{"N": 8, "B": 1, "count": 3}, {"B": 4, "N": 16}, {"N": 8, "B": 1}]}'
    found, module = cases(tmp_path, "t.json", text, '(B, N) ~ "t.json"')
    assert set(found) == {(4.0, (("B", 1), ("N", 8))), (1.0, (("B", 4), ("N", 16)))}
    assert [Path(s.name).name for s in module.files] == ["spec.op", "t.json", "prelude.op"]


def test_recorded_traffic_is_part_of_what_the_spec_is_made_from(tmp_path):
    _, before = cases(tmp_path, "t.csv", "N\n8\n", 'B = 2, N ~ "t.csv"')
    _, after = cases(tmp_path, "t.csv", "N\n9\n", 'B = 2, N ~ "t.csv"')
    assert before.digest != after.digest


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", "M,count\n8,3\n", "has no column `N`"),
        ("t.csv", "N,N\n8,3\n", "has two columns `N`"),
        ("t.csv", "N,count\n8\n", "t.csv:2 has 1 cells"),
        ("t.csv", "N,count\n8.5,1\n", "t.csv:2 gives `N` as `8.5`"),
        ("t.csv", "N,count\n0,1\n", "t.csv:2 gives `N` as `0`"),
        ("t.csv", "N,count\n8,-1\n", "t.csv:2 gives `count` as `-1`"),
        ("t.csv", "N,count\n8,nan\n", "t.csv:2 gives `count` as `nan`"),
        ("t.csv", "", "has no column `N`"),
        ("t.csv", "N,count\n", "records no shape"),
        ("t.csv", "N,count\n8,0\n", "records no shape"),
        ("t.csv", b"N\n\xff\n", "line 2 is not UTF-8"),
        ("t.json", "[{]", "is not JSON"),
        ("t.json", "7", "is no list of shapes"),
        ("t.json", "[7]", "shape 1 is no object"),
        ("t.json", '[{"M": 7}]', "shape 1 gives no `N`"),
        ("t.json", '[{"N": true}]', "gives `N` as `True`"),
        ("t.json", "[" * 100_000, "is not JSON"),
    ],
)
def test_a_traffic_file_that_cannot_be_used_says_where(tmp_path, name, content, words):
    with pytest.raises(Failure) as e:
        cases(tmp_path, name, content, f'B = 2, N ~ "{name}"')
    assert [d.code.code for d in e.value.diagnostics] == ["OP656"]
    assert words in e.value.diagnostics[0].message


def test_lengths_give_moments():
    text = RAGGED + "workload w for g { B = 4, T = 16, len ~ [1, 2, 3, 10] }\n"
    (workload,) = load_text(text).workloads
    moments = workload.moments(workload.cases[0][1])
    assert (moments["sum(len)"], moments["sum(len^2)"]) == (16, 114)


def test_a_distribution_of_lengths_gives_expected_moments():
    text = RAGGED + "workload w for g { B ~ {4: 0.5, 8: 0.5}, T = 16, len ~ {2: 0.25, 6: 0.75} }\n"
    (workload,) = load_text(text).workloads
    assert [workload.moments(d)["sum(len)"] for _, d in workload.cases] == [20, 40]
    assert workload.moments(workload.cases[0][1])["sum(len^2)"] == 4 * (
        Fraction(1, 4) * 4 + Fraction(3, 4) * 36
    )


def test_a_mean_gives_the_first_moment_only():
    text = RAGGED + "workload w for g { B = 4, T = 16, len ~ mean 2.5 }\n"
    (workload,) = load_text(text).workloads
    assert workload.moments(workload.cases[0][1]) == {"sum(len)": 10}


def test_words_of_pipelines_are_names_elsewhere():
    words = [
        "stage",
        "wall",
        "overlap",
        "each",
        "takes",
        "measured",
        "asserted",
        "world",
        "gate",
        "new",
        "mean",
    ]
    words += [
        "pipeline",
        "variant",
        "evidence",
        "machine",
        "ledger",
        "on",
        "like",
        "dense",
        "numbers",
        "calibrated",
    ]
    for word in words:
        text = f"op f[N]({word}: f32[N]) -> y: f32[N] {{ kernel k {{ y[i] = {word}[i] }} }}\n"
        assert load_text(text).ops[0].tensor(word) is not None, word
        text = f"op f[{word}](x: f32[{word}]) -> y: f32[{word}] {{ kernel {word}_ {{ y[i] = x[i] }} }}\n"
        assert load_text(text).ops[0].dims == (word,)
        assert load_text(f"pipeline {word} {{ stage {word} = 1 ms }}\n").pipelines[0].stages[0].name == word


def test_times_are_exact():
    text = "pipeline p { stage a = 32 * 0.55 ms; stage b = 1e-3 s; stage c = 7us; stage d = 18 ms of 4.1 ms each }"
    a, b, c, d = load_text(text).pipelines[0].stages
    assert a.count * a.seconds == Fraction(176, 10_000)
    assert (b.seconds, c.seconds) == (Fraction(1, 1000), Fraction(7, 10**6))
    assert (d.count, d.total) == (Fraction(180, 41), Fraction(18, 1000))


def test_stages_may_run_ops_of_other_files(tmp_path):
    (tmp_path / "ops.op").write_text(
        OP + "workload w for f { B = 2, N = 8 }\nworkload v for f { B = 2, N = 9 }\n"
    )
    machine = 'machine m like h200 { memory.bandwidth = 4 TB/s measured "a copy" }\n'
    (tmp_path / "machines.op").write_text(machine)
    spec = tmp_path / "spec.op"
    spec.write_text('import "ops.op"\nimport "machines.op"\npipeline p { stage a = f @ w on m }\n')
    module = load(spec)
    assert (module.ops, module.workloads) == ((), ())
    assert [(o.name, [w.name for w in ws]) for o, ws in module.linked] == [("f", ["w", "v"])]
    assert module.runnable("f", "w") is not None
    assert [m.name for m in module.machines] == ["m"]


def test_one_fault_is_reported_once():
    text = "op f[N](x: f32[N]) -> y: f32[N] { kernel k { y[i] = z[i] } }\nworkload w for f { N = 8 }\n"
    assert codes(text + "pipeline p { stage a = f @ w on h200 }\n") == ["OP201"]


def test_numbers_of_absurd_size_are_refused():
    assert codes("pipeline p { stage a = 1e999999999 ms }") == ["OP652"]
    assert codes(f"pipeline p {{ stage a = {'9' * 100} ms }}") == ["OP652"]
