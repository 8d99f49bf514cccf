"""One layout per spec: stable, complete, and the same spec."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from opspec.diagnostics import Failure
from opspec.formatting import format_source, layout
from opspec.formatting.document import WIDTH
from opspec.frontend import load_text
from opspec.frontend.parsing import parse
from opspec.ir.show import show_module
from opspec.source import Source
from tests.emit.random_specs import Maker
from tests.formatting.noise import SHIPPED, SPECS, noisy

CASES = re.findall(
    r"^## (.+?)\n\n```op\n(.*?)\n```\n\n```op\n(.*?)\n```\n",
    (Path(__file__).parent / "layouts.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


def formatted(text: str) -> str:
    return format_source(Source.normalised("spec.op", text))


def comments(text: str) -> list[str]:
    return sorted(re.findall(r"#[^\n]*", text))


@pytest.mark.parametrize(("title", "before", "after"), CASES, ids=[c[0] for c in CASES])
def test_layouts(title: str, before: str, after: str):
    assert formatted(before) == after + "\n"
    assert formatted(after) == after + "\n"


def test_there_are_layouts():
    assert len(CASES) >= 10


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped_specs_are_laid_out(path: Path):
    text = path.read_text(encoding="utf-8")
    assert formatted(text) == text


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_the_layout_is_stable_and_the_same_spec(path: Path):
    text = path.read_text(encoding="utf-8")
    once = formatted(text)
    assert formatted(once) == once
    assert comments(once) == comments(text)
    assert not re.search(r"[ \t]+$", once, re.MULTILINE)
    assert show_module(load_text(once)) == show_module(load_text(text))


@settings(max_examples=60, deadline=None)
@example(next(p for p in SPECS if p.name == "latent_block.op"), 512, 0.02)  # a comment inside a budget
@given(st.sampled_from(SPECS), st.integers(0, 10**6), st.sampled_from((0.02, 0.1, 0.4)))
def test_any_white_space_and_comments(path: Path, seed: int, rate: float):
    text = noisy(path.read_text(encoding="utf-8"), random.Random(seed), rate)
    source = Source.normalised("spec.op", text)
    report = []
    parse(source, report)
    if report:
        with pytest.raises(Failure):
            format_source(source)
        return
    once = format_source(source)
    assert formatted(once) == once
    assert comments(once) == comments(text)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_random_specs_keep_their_meaning(seed: int):
    text = Maker(seed).spec()
    once = formatted(text)
    assert formatted(once) == once
    assert max(map(len, once.splitlines())) <= WIDTH
    try:
        module = load_text(text)
    except Failure:
        return
    assert show_module(load_text(once)) == show_module(module)


def test_line_ends_and_byte_order_marks_are_normalised():
    assert formatted("\ufefffn f(x) = x\r\nfn g(x) = x\r\n") == "fn f(x) = x\nfn g(x) = x\n"


@pytest.mark.parametrize("text", ["", "\n\n", " \t\n"])
def test_nothing_stays_nothing(text: str):
    assert formatted(text) == ""


def test_a_file_of_comments_only():
    assert formatted("\n#a\n\n\n  # b\n") == "#a\n\n# b\n"


def test_a_spec_with_faults_has_no_layout():
    with pytest.raises(Failure) as e:
        formatted("op f[N](x: f32[N] -> y: f32[N] { }\n")
    assert [d.code.code for d in e.value.diagnostics] == ["OP102"]


def test_a_layout_that_would_say_something_else_is_refused(monkeypatch):
    monkeypatch.setattr(layout, "lay_out", lambda _: "fn f(x) = 2 * x\n")
    with pytest.raises(Failure) as e:
        formatted("fn f(x) = x\n")
    assert [d.code.code for d in e.value.diagnostics] == ["OP911"]


def test_a_lost_comment_is_refused(monkeypatch):
    monkeypatch.setattr(layout, "lay_out", lambda _: "fn f(x) = x\n")
    with pytest.raises(Failure) as e:
        formatted("fn f(x) = x  # why\n")
    assert [d.code.code for d in e.value.diagnostics] == ["OP911"]


def test_more_lines_than_there_were_tokens_allowed():
    values = ", ".join(f"{k}: 1" for k in range(9_000))
    once = formatted(f"workload w for f {{ N ~ {{{values}}} }}\n")
    assert once.count("\n") > 9_000
    assert formatted(once) == once


def test_the_deepest_nesting_that_is_accepted():
    deep = "op f[N](x: f32[N]) -> y: f32[N] { kernel k { y[i] = " + "(" * 55 + "x[i]" + ")" * 55 + " } }"
    once = formatted(deep)
    assert formatted(once) == once
