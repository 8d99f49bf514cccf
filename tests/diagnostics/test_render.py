"""The three renderings of a diagnostic."""

import json

from opspec.diagnostics import Code, Diagnostic, Note, render_github, render_json, render_text
from opspec.source import Source, Span

CODE = Code(code="OP999", title="t", why="w", example="e", fix="f")
SOURCE = Source("dir/a b.op", "first\n\tsecond: 100%, x\n" + "z" * 500 + "\n")


def diagnostic(start: int, end: int, **more: object) -> Diagnostic:
    return Diagnostic(code=CODE, message="wrong `x`", span=Span(SOURCE, start, end), **more)


def test_text():
    d = diagnostic(7, 13, notes=(Note("a fact"), Note("there", Span(SOURCE, 0, 5))), help="do that")
    assert render_text([d]) == (
        "error[OP999]: wrong `x`\n"
        " --> dir/a b.op:2:2\n"
        "  |\n"
        "2 |     second: 100%, x\n"
        "  |     ^^^^^^\n"
        "  = note: a fact\n"
        "  = note: there\n"
        " --> dir/a b.op:1:1\n"
        "  |\n"
        "1 | first\n"
        "  | -----\n"
        "  = help: do that\n"
        "\n"
        "1 error\n"
    )


def test_counts():
    text = render_text([diagnostic(0, 1), diagnostic(1, 2), diagnostic(2, 3, severity="warning")])
    assert text.endswith("2 errors, 1 warning\n")
    assert render_text([]) == ""


def test_a_span_over_several_lines_and_one_past_the_end():
    assert "^" in render_text([diagnostic(3, 20)])
    end = len(SOURCE.text)
    assert f":{SOURCE.position(end)[0]}:1" in render_text([diagnostic(end, end)])


def test_long_lines_are_cut_around_the_place():
    at = SOURCE.text.index("z") + 300
    lines = render_text([diagnostic(at, at + 3)]).splitlines()
    assert all(len(line) < 200 for line in lines)
    assert lines[4].count("^") == 3


def test_colour_changes_no_text():
    import re

    d = diagnostic(7, 13, notes=(Note("a fact"),), help="do that")
    assert re.sub(r"\x1b\[\d*m", "", render_text([d], colour=True)) == render_text([d])


def test_json():
    (record,) = json.loads(render_json([diagnostic(7, 13, help="do that")]))
    assert record["place"] == {"file": "dir/a b.op", "line": 2, "column": 2, "end_line": 2, "end_column": 8}
    assert (record["code"], record["severity"], record["help"]) == ("OP999", "error", "do that")
    assert json.loads(render_json([Diagnostic(code=CODE, message="m", span=None)]))[0]["place"] is None


def test_github_annotations_escape_what_they_must():
    text = render_github([diagnostic(7, 13, help="100%\nsure")])
    assert (
        text
        == "::error file=dir/a b.op,line=2,col=2,endLine=2,endColumn=8,title=OP999::wrong `x`%0Ahelp: 100%25%0Asure\n"
    )
    assert (
        render_github([Diagnostic(code=CODE, message="m", span=None, severity="warning")])
        == "::warning title=OP999::m\n"
    )
