"""Every example in README.md and docs/ is what the tool does today."""

import re

import pytest

from opspec.diagnostics import render_text
from opspec.driver.codes import reference
from tests.docs import blocks as b

CONSOLE = [path for path in b.DOCUMENTS if any(x.kind == "console" for x in b.blocks(path))]


@pytest.mark.parametrize("block", b.all_blocks("op"), ids=lambda x: x.id)
def test_spec(block):
    text = b.spec_of(block)
    diagnostics = b.diagnose(text)
    assert b.seen(diagnostics) == b.marked(text), render_text(diagnostics)
    if block.after is not None:
        assert render_text(diagnostics).rstrip() == block.after.rstrip()


@pytest.mark.parametrize("path", CONSOLE, ids=lambda p: p.name)
def test_commands(path, tmp_path):
    folder = b.workplace(tmp_path, path)
    for block in b.blocks(path):
        if block.kind == "console":
            for command, expected in b.commands(block):
                found = b.run(command, folder)
                assert block.accepts(expected, found), f"{block.id}: $ {command}\n{found}"


@pytest.mark.parametrize(
    "block", [x for x in b.all_blocks("python") if x.hint.startswith("from ")], ids=lambda x: x.id
)
def test_quoted_function(block):
    assert block.text == b.excerpt(block.hint)


def test_reference_of_diagnostics_is_up_to_date():
    text = (b.ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    assert text == reference(), "run `python -m tests.docs.update`"


def test_links_between_documents_lead_somewhere():
    for path in b.DOCUMENTS:
        prose = re.sub(
            r"^```.*?^```$|^<!--[^\n]*-->$|`[^`\n]*`",
            "",
            path.read_text(encoding="utf-8"),
            flags=re.MULTILINE | re.DOTALL,
        )
        for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", prose):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_rule_is_in_the_language_reference():
    text = (b.ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    assert [int(n) for n in re.findall(r"^\*\*(\d+)\.\*\*", text, re.MULTILINE)] == list(range(1, 25))


def test_a_wrong_example_would_be_noticed():
    block = b.Block("x.md", 1, "op", "in [N](x: f32[N]) -> y: f32[N]", "  y[i] = x[i + 1]\n", None)
    assert b.seen(b.diagnose(b.spec_of(block))) == {(2, "error", "OP301"): 1}
    assert not b.matches("a …\n...\nz", "a b\nc\ny")
    assert b.matches("a …\n...\nz", "a b\nc\nd\nz")
    assert b.matches("a\n...", "a\nb")
