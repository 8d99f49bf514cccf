"""Plots in characters and as pictures."""

from __future__ import annotations

import sys

import pytest

from opspec.analysis.plot.model import Curve, Level, Mark, Sweep
from opspec.analysis.plot.picture import to_picture
from opspec.analysis.plot.terminal import to_text
from opspec.analysis.plot.ticks import extents, short, values
from opspec.diagnostics import Failure

PLOT = Sweep(
    op="f", expr="ai", dim="T", unit="FLOP/B", where="at w, on h200",
    curves=(Curve(name="ai", points=tuple((2**k, 2.0**k / 4) for k in range(13))),),
    levels=(Level(name="ridge of h200", value=206.125),),
    marks=(Mark(at=825, kind="bound", text="bound by tensor instead of memory"),),
    notes=("a note",), log_x=True, log_y=True,
)  # fmt: skip


def test_text_has_axes_marks_levels_and_fits():
    pytest.importorskip("plotille")
    text = to_text(PLOT, 80)
    lines = text.splitlines()
    assert lines[0] == "ai of f over T, at w, on h200"
    assert max(map(len, lines)) <= 80
    assert "  a  T = 825: bound by tensor instead of memory" in lines
    assert "  ┈  ridge of h200: 206 FLOP/B" in lines
    assert lines[-1] == "note: a note"
    axis = next(line for line in lines if "└" in line)
    numbers = lines[lines.index(axis) + 1]
    assert numbers.split()[0] == "1"
    assert numbers.split()[-2:] == ["4096", "T"]
    assert "100 FLOP/B ┤" in text


def test_a_curve_rises_from_the_lower_left_to_the_upper_right():
    pytest.importorskip("plotille")
    rows = [line.partition("┤")[2] for line in to_text(PLOT, 80).splitlines() if "┤" in line]
    assert rows[0].rstrip()[-1] != "⠀"
    assert rows[-1][0] != "⠀"


@pytest.mark.parametrize("columns", [1, 40, 110])
def test_any_width(columns):
    pytest.importorskip("plotille")
    assert max(map(len, to_text(PLOT, columns).splitlines()[1:20])) <= max(columns, 40)


def test_flat_and_negative_curves():
    pytest.importorskip("plotille")
    for value in (0.0, 5.0, -3.0):
        flat = Sweep(
            op="f",
            expr="x",
            dim="T",
            unit="",
            where="",
            curves=(Curve(name="x", points=((1, value), (9, value))),),
        )
        assert "└" in to_text(flat, 60)


def test_pictures_are_what_their_name_says_and_the_same_each_time():
    pytest.importorskip("matplotlib")
    png, svg = to_picture(PLOT, "png"), to_picture(PLOT, "svg")
    assert png.startswith(b"\x89PNG")
    assert b"<svg" in svg[:800]
    assert b"ridge of h200: 206 FLOP/B" in svg
    assert b"T = 825: bound by tensor instead of memory" in svg
    assert (to_picture(PLOT, "svg"), to_picture(PLOT, "png")) == (svg, png)


def test_names_are_not_markup():
    pytest.importorskip("matplotlib")
    odd = Sweep(
        op="$f_{1}$", expr="a $x^2$ <b>&", dim="λ", unit="", where="",
        curves=(Curve(name="$\\frac$", points=((1, 1.0), (2, 2.0))), Curve(name="b", points=((1, 1.0), (2, 3.0)))),
    )  # fmt: skip
    svg = to_picture(odd, "svg").decode()
    assert "a $x^2$ &lt;b&gt;&amp; of $f_{1}$" in svg


@pytest.mark.parametrize(
    ("library", "draw"),
    [("plotille", lambda: to_text(PLOT, 80)), ("matplotlib", lambda: to_picture(PLOT, "png"))],
)
def test_without_the_library(monkeypatch, library, draw):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(Failure) as caught:
        draw()
    (found,) = caught.value.diagnostics
    assert found.code.code == "OP726"
    assert library in found.message
    assert "opspec[plot]" in found.help


def test_ticks_are_round_and_few():
    assert extents(1, 65536, 9, log=True) == [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536]
    assert extents(200, 400, 9, log=False) == [200, 250, 300, 350, 400]
    assert values(0.5, 3000, 9, log=True) == [1, 3, 10, 30, 100, 300, 1000, 3000]
    assert values(3.0, 3.0, 9, log=False) == [3.0]
    assert len(values(1e-9, 1e9, 9, log=True)) <= 9


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "s", "0 s"), (2e-5, "s", "20 µs"), (1.5, "s", "1.5 s"), (4.8e12, "B/s", "4.8 TB/s"), (1e3, "FLOP/B", "1,000 FLOP/B"),
        (999.9, "B", "1 kB"), (3, "", "3"), (1e9, "", "1e+09"), (-2e9, "B", "-2 GB"), (1e-5, "B", "10 µB"),
    ],
)  # fmt: skip
def test_short_numbers(value, unit, text):
    assert short(value, unit) == text
