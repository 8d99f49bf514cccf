"""The questions that make a case reusable, answered for products, rows and attending queries.

The snapshots in tests/cli/explained say all of it; ``python -m tests.cli.explaining`` writes them anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT
from tests.cli.explaining import HERE, OPS, explained

CASES = [(spec, op) for spec, ops in OPS.items() for op in ops]


def answers(op: str) -> str:
    """A snapshot on one line a statement."""
    return re.sub(r"\n {8,}", " ", (HERE / f"{op}.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("spec", "op"), CASES)
def test_snapshot(spec, op, tmp_path):
    expected = (HERE / f"{op}.txt").read_text(encoding="utf-8")
    assert explained(tmp_path, spec, op) == expected, "if this is meant: python -m tests.cli.explaining"


def test_a_product_tells_sizes_bound_heat_and_epilogue():
    text = answers("plain")
    assert "c is a product of m with n by k; on the matrix unit" in text
    assert "large: tensor binds on h200" in text
    assert "small: the launch binds on h200, so shape and number of launches decide" in text
    assert re.search(r"hot: \d+\.\d% of pipeline model, 24 runs", text)
    assert "behind it: any map of c" in text
    assert "add can join it: 64 MiB less at layer" in answers("apart")
    assert "with the matrix unit, an epilogue" in answers("biased")
    assert "requests: distributions served (2 shapes)" in answers("biased")


def test_rows_tell_passes_path_vectors_and_neighbours():
    text = answers("norm")
    assert "resident: x, w in one pass" in text
    assert "streamed: x in 2 passes" in text
    assert "sum over n at once, across the threads of the program" in text
    assert "in lanes: each keeps its own state through the stream, all are merged once at the end" in text
    assert "x, w, y along n, up to 16 B a thread (8 of bf16)" in text
    assert "folds over n, which a program holds all of" in text


def test_attending_queries_are_taken_apart():
    assert "s is a product of i with j by d, for each b, h; on the matrix unit" in answers("many")
    assert "a restricted domain" in answers("many")
    assert "s is a product of row with t by d, for each b, h; on the matrix unit" in answers("one")
    assert "k is found through table: which rows are read is data" in answers("paged")
    assert "s is a product of h_member with t by d, for each b, h_group; on the matrix unit" in answers(
        "paged"
    )
    assert "kp is one for all b: read once for them together" in answers("prefix")
    warned = [op for _, op in CASES if "warning: " in answers(op)]
    assert warned == ["stored"]
    assert "warning: s goes through memory, 4 GiB at naive, 32 times the largest tensor" in answers("stored")


def test_others_with_the_pattern_and_how_they_differ():
    assert "just like it: apart.product (specs/products.op), stored.scores (specs/queries.op)" in answers(
        "plain"
    )
    assert "biased (specs/products.op): with an epilogue" in answers("plain")
    assert "just like it: stored.weights (specs/queries.op)" in answers("weights")
    assert "paged (specs/queries.op): with gathered reads" in answers("one")


def test_each_variant_tells_its_traffic():
    text = answers("weights")
    assert "2 * M * N * sizeof(X) B, the compulsory bytes" in text
    assert "3 * M * N * sizeof(X) B; compulsory 2 * M * N * sizeof(X) B" in text


def test_first_choices_tell_how_full_they_are(opspec):
    out = opspec("explain", str(ROOT / "specs/gemm/matmul.op:matmul")).out
    assert re.search(
        r"cube_8k: \d+ programs, [\d.]+ for each of 132 multiprocessors, 100% of the blocks is used", out
    )
    assert re.search(r"skinny_1: .*6% of the\s+blocks is used: fragmented", re.sub(r"\n {8,}", " ", out))


def test_a_spec_outside_of_any_library_stands_alone(opspec, spec, monkeypatch):
    monkeypatch.chdir(Path(spec).parent)
    assert "none among the specs here" in opspec("explain", spec.name).out


def test_the_library_is_looked_through_once(opspec, tmp_path, monkeypatch):
    import shutil

    from opspec.driver import library, stages

    calls = []
    real = library.relatives_in
    monkeypatch.setattr(library, "relatives_in", lambda specs: calls.append(1) or real(specs))
    monkeypatch.setattr(stages, "can_compile", lambda: False)
    shutil.copytree(HERE / "specs", tmp_path / "specs")
    monkeypatch.chdir(tmp_path)
    assert opspec("explain", "specs/rows.op").status == 0
    assert len(calls) == 1
    opspec("explain", "specs/rows.op:norm", "--stage", "tile")
    assert len(calls) == 1


def test_the_card_follows_the_target(opspec, tmp_path, monkeypatch):
    import shutil

    from opspec.driver import stages

    monkeypatch.setattr(stages, "can_compile", lambda: False)
    shutil.copytree(HERE / "specs", tmp_path / "specs")
    monkeypatch.chdir(tmp_path)
    for target, machine in (("sm_80", "a100"), ("sm_90", "h200"), ("sm_100", "b200"), ("gfx942", "mi300x")):
        assert f"memory binds on {machine}" in opspec("explain", "specs/rows.op:norm", "--target", target).out


def test_other_groupings_that_would_store_large_values_are_told(opspec, monkeypatch):
    from opspec.driver import library, stages

    monkeypatch.setattr(stages, "can_compile", lambda: False)
    monkeypatch.setattr(library, "relatives_in", lambda _: [])
    out = opspec("explain", str(ROOT / "specs/attention/prefill.op:attention")).out
    assert "grouped as unfused, s (4 GiB), p (4 GiB) would go through memory at prefill_4k" in out
    assert "warning: " not in out
