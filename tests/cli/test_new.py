import shutil

import pytest

from opspec.driver.starters import kinds, starting_spec
from opspec.formatting import format_source
from opspec.frontend import text_with_warnings
from opspec.source import Source
from tests.cli.conftest import shell, snapshot

KINDS = ("attention", "contraction", "map", "pipeline", "reduction")


def test_there_is_a_starter_of_each_kind():
    assert kinds() == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_starter_is_good_laid_out_and_has_no_warning(kind: str):
    text = starting_spec(kind, "my_own")
    assert "starter" not in text
    module, warnings = text_with_warnings(text)
    assert [op.name for op in module.ops] == ["my_own"]
    assert module.workloads and module.expectations and not warnings
    assert format_source(Source.normalised("my_own.op", text)) == text


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_spec_checks_and_builds(opspec, tmp_path, monkeypatch, kind: str):
    monkeypatch.chdir(tmp_path)
    ran = opspec("new", "mine", "--kind", kind)
    assert (ran.status, ran.out.splitlines()[0]) == (0, "wrote mine.op")
    assert opspec("check", "mine.op").status == 0
    assert opspec("build", "mine.op", "--target", "none").status == 0
    assert (tmp_path / "generated" / "mine" / "kernel.py").is_file()


def test_a_new_spec_verifies(opspec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opspec("new", "mine", "--kind", "reduction")
    ran = shell(
        "verify", "mine.op", "--cases", "1", cwd=tmp_path
    )  # the interpreter needs a process of its own
    assert ran.status == 0 and "all right" in ran.out


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_new_spec_verifies(opspec, tmp_path, monkeypatch, kind: str):
    monkeypatch.chdir(tmp_path)
    opspec("new", "mine", "--kind", kind)
    assert shell("verify", "mine.op", "--cases", "2", cwd=tmp_path).status == 0


def test_the_name_may_be_a_path(opspec, tmp_path):
    assert opspec("new", str(tmp_path / "specs" / "norm" / "mine.op")).status == 0
    assert "op mine[" in (tmp_path / "specs" / "norm" / "mine.op").read_text()


def test_nothing_is_overwritten(opspec, tmp_path):
    path = tmp_path / "mine.op"
    path.write_text("precious")
    ran = opspec("new", str(path))
    assert ran.status == 2 and "error[OP622]" in ran.err
    assert path.read_text() == "precious"
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    assert opspec("new", str(path)).status == 2
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("my-norm", "my_norm"),
        ("2d", "op_2d"),
        ("a b", "a_b"),
        ("é", "op_"),
        ("{{x}}", "x"),
        ("for", "for_op"),
    ],
)
def test_names_that_no_op_can_have(opspec, tmp_path, name: str, meant: str):
    ran = opspec("new", str(tmp_path / name))
    assert ran.status == 2
    assert "error[OP629]" in ran.err and f"for instance `{meant}`" in ran.err
    assert snapshot(tmp_path) == {}


def test_names_that_mean_something_elsewhere_are_fine(opspec, tmp_path):
    for name in ("lambda", "tl", "N", "starter", "grid"):
        assert opspec("new", str(tmp_path / name)).status == 0, name
