"""The page's content, and the page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import sympy

from opspec.analysis.lattice.symbols import largest, symbol
from opspec.analysis.machine import load as machine
from opspec.analysis.report.boundaries import ALL, EACH, with_extremes
from opspec.analysis.report.figure import roofline, waterfall
from opspec.analysis.report.gather import gather
from opspec.analysis.report.html import ticks, to_html
from opspec.analysis.report.markdown import to_markdown
from opspec.analysis.report.mathml import to_mathml
from opspec.analysis.report.model import Report
from opspec.analysis.report.pipelines import gather_pipelines
from opspec.frontend import load_text

H200 = machine("h200")
DECODE = """op decode[B, H, T, D](q: bf16[B, H, D], k: bf16[B, H, T, D], v: bf16[B, H, T, D]) -> o: bf16[B, H, D] {
  kernel flash {
    s[b, h, t] = sum[d](q[b, h, d] * k[b, h, t, d]) / sqrt(D)
    p[b, h, t] = softmax[t](s[b, h, t])
    o[b, h, d] = sum[t](p[b, h, t] * v[b, h, t, d])
  }
}
workload long for decode { B = 8, H = 32, T = 8192, D = 128 }
"""
PROJECT = """op f[M, K](x: bf16[M, K], w: bf16[K, K]) -> y: bf16[M, K] {
  kernel one { c: bf16[m, n] = sum[k](x[m, k] * w[k, n]) }
  kernel two { y[m, n] = exp(c[m, n]) }
}
workload big for f { M = 65536, K = 256 }
"""


def pages(text: str, *machines):
    return gather(load_text(text), "x.op", machines or (H200,), ())


def report(text: str) -> Report:
    return Report(version="1", machines=(H200,), ops=pages(text))


def spot(text: str):
    return pages(text)[0].spots[0]


def test_numbers_of_the_decode_case():
    own = spot(DECODE).own
    assert own.tensor == 2**30
    assert own.size == 2**30 + 131072
    assert own.ai_tensor == pytest.approx(8192 / 8193)
    assert own.bound == "memory"
    assert own.time == pytest.approx((2**30 + 131072) / 4.8e12 + 4e-6)


def test_the_extremes_are_added_once():
    op = load_text(DECODE).ops[0]
    assert [b.name for b in with_extremes(op).boundaries] == ["", EACH]
    assert [b.name for b in with_extremes(load_text(PROJECT).ops[0]).boundaries] == ["", ALL]
    alone = load_text("op g[M](x: f32[M]) -> y: f32[M] { kernel k { y[m] = x[m] } }").ops[0]
    assert with_extremes(alone) is alone


def test_intensity_over_groupings_and_the_one_that_flips():
    found = spot(PROJECT)
    own, fused = found.readings
    assert own.size - fused.size == 2 * 65536 * 256 * 2
    assert fused.launches == 1
    hot = PROJECT.replace("c: bf16", "c: f32").replace("exp(c[m, n])", "exp(exp(exp(exp(c[m, n]))))")
    assert spot(hot).flips == (f"{ALL}: memory → sfu",)


def test_advice_is_priced_by_the_model():
    found = {a.text: a for a in spot(DECODE).advice}
    both = found["store every tensor in 8 bits, scales not counted"]
    assert both.saves == pytest.approx((2**30 + 131072) / 2 / 4.8e12)
    assert found["store `k` in 8 bits instead of bf16, scales not counted"].saves == pytest.approx(
        2**28 / 4.8e12
    )
    assert "store `q` in 8 bits instead of bf16, scales not counted" not in found
    fused = {a.text: a for a in spot(PROJECT).advice}[
        f"group the statements as in `{ALL}` (for analysis: no kernel is made of it)"
    ]
    assert fused.saves > 2 * 65536 * 256 * 2 / 4.8e12
    assert [a.saves for a in spot(PROJECT).advice] == sorted(
        (a.saves for a in spot(PROJECT).advice), reverse=True
    )


def test_a_launch_bound_op_is_told_about_graphs():
    small = DECODE.replace("T = 8192", "T = 16")
    (first, *_) = spot(small).advice
    assert first.text == "launch from a CUDA graph"
    assert first.saves == pytest.approx(2.5e-6)


def test_data_dependent_lengths_have_forms_and_a_note():
    text = """op f[B, T](x: f32[B, T], len: i32[B]) -> y: f32[B] {
  assume len[b] <= T
  kernel k { y[b] = sum[t | t < len[b]](x[b, t]) }
}
workload w for f { B = 4, T = 64 }
"""
    (page,) = pages(text)
    assert page.formulas
    assert page.spots == () or page.spots[0].own.size


def test_mathml():
    M, N = symbol("M"), symbol("N")
    assert to_mathml(2 * M * N**2 / (M + N)).count("<mfrac>") == 1
    assert "<mo>⌊</mo>" in to_mathml(sympy.floor(M / N))
    assert "<mi>max</mi>" in to_mathml(largest(M, N))
    assert "<mo>−</mo>" in to_mathml(M - N)
    assert to_mathml(sympy.Rational(1, 2)).count("<mn>") == 2
    assert "<mi>&lt;</mi>" in to_mathml(symbol("<"))
    assert 'mathvariant="normal">lambda</mi>' in to_mathml(symbol("lambda"))


def test_the_plot_has_every_roof_and_point():
    plot = roofline(H200, pages(DECODE))
    names = [t["name"] for t in plot["data"]]
    assert names[:2] == ["HBM 4.8 TB/s", "L2 5.5 TB/s"]
    assert {
        "tensor bf16, f16",
        "tensor tf32",
        "tensor f8e4m3, f8e5m2, i8",
        "vector f32",
        "special functions",
    } <= set(names)
    (points,) = (t for t in plot["data"] if t["meta"] == "point")
    assert points["x"] == [pytest.approx(8192 / 8193)]
    assert "bound by memory" in points["hovertemplate"][0]
    assert "asserted" in next(t for t in plot["data"] if t["name"].startswith("L2"))["hovertemplate"]


class Tags(HTMLParser):
    """All tags, attributes and ids of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def test_the_page_needs_nothing_else():
    page = Tags(to_html(report(DECODE), "/* drawing */"))
    assert not [t for t, _ in page.tags if t in ("link", "img", "iframe", "object", "embed")]
    links = [a[k] for _, a in page.tags for k in ("src", "href", "action", "data") if k in a]
    assert all(link.startswith("#") for link in links)
    policy = next(a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
    assert "default-src 'none'" in policy


def test_every_number_of_the_tables_has_a_mark():
    text = to_html(report(DECODE), "")
    cells = re.findall(r'<td class="n">(.*?)</td>', text)
    assert cells
    assert all(c == "–" or '<sup><abbr title="' in c for c in cells)


def test_no_paragraph_or_cell_holds_a_number_without_a_mark(tmp_path, monkeypatch):
    from opspec.driver.report import make_report
    from opspec.emit.package import spec_hash
    from opspec.frontend import load

    monkeypatch.chdir(Path(__file__).parents[3])
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    from documents import document, write

    spec = "specs/reduce/softmax.op"
    result = write(tmp_path, document(spec, spec_hash(load(spec))))
    page = make_report([str(result), "specs/attention/decode.op", "specs/world_model"], [])
    text = to_html(page, "").partition("<script")[0]
    amount = re.compile(r"\d[\d.,]* ?(?:ms|µs|ns|s|B|kB|MB|GB|TB|TB/s|TFLOP/s|FLOP/B|×|%)(?![\w/])")
    checked = 0
    for element in re.findall(r"<(?:td|p)\b[^>]*>(.*?)</(?:td|p)>", text, re.DOTALL):
        if amount.search(re.sub(r"<code>.*?</code>|<[^>]+>", " ", element)):
            assert '<sup><abbr title="' in element, element
            checked += 1
    assert checked > 150


def test_names_are_only_names():
    evil = "<img src=x onerror=alert(1)>"
    hidden = '"""' + evil + ' </script> {{ 7 * 7 }} %{x}"""\n' + DECODE
    text = to_html(report(hidden), "")
    assert "<img" not in text
    assert "{{ 7 * 7 }}" in text
    assert not [t for t, _ in Tags(text).tags if t == "img"]
    assert "<img" not in to_markdown(report(hidden))
    figures = re.search(
        r'<script type="application/json" id="figures">(.*?)</script>', text, re.DOTALL
    ).group(1)
    assert "<" not in figures
    assert json.loads(figures)["roofline-0"]["data"]


STEP = '''
"""A step <b>."""
pipeline step {
  machine h200
  stage attention = 32 * decode @ long takes 0.55 ms measured "a <i> run"
  stage rest = 40.4 ms measured "all else"
}
variant fp8 of step {
  stage attention = 32 * 0.33 ms measured "another"
}
'''


def with_pipeline() -> Report:
    module = load_text(DECODE + STEP)
    found = gather_pipelines(module, "x.op", Path(), "h200", {})
    return Report(version="1", machines=(H200,), ops=gather(module, "x.op", (H200,), ()), pipelines=found)


def test_a_pipeline_shows_both_gains_and_the_waterfall():
    (page,) = with_pipeline().pipelines
    (variant,) = page.variants
    assert (page.total, variant.after) == (pytest.approx(58e-3), pytest.approx(50.96e-3))
    assert (variant.kernel, variant.gain) == (pytest.approx(5 / 3), pytest.approx(58 / 50.96))
    assert variant.ceiling == pytest.approx(58 / 40.4)
    plot = waterfall(page, variant)["data"][0]
    assert plot["y"] == [pytest.approx(58), pytest.approx(-7.04), pytest.approx(50.96)]
    assert plot["measure"] == ["absolute", "relative", "total"]


def test_a_pipeline_in_both_formats():
    html, text = to_html(with_pipeline(), ""), to_markdown(with_pipeline())
    assert "<b>end to end 1.1381×</b>" in html
    assert "a &lt;i&gt; run" in html
    assert 'id="waterfall-0-0"' in html
    assert "**end to end 1.1381×** (D), 58 ms → 50.96 ms, 1.4356× (D) at most" in text
    assert "<i>" not in text


def test_ticks():
    assert str(ticks("a `b<` c")) == "a <code>b&lt;</code> c"
    assert str(ticks("a ` <b>")) == "a ` &lt;b&gt;"


def test_markdown_holds_the_same_numbers():
    text = to_markdown(report(DECODE))
    assert "| as written | 1.0739 GB | 1.0116 FLOP/B | 0.99988 FLOP/B | 227.72 µs | memory |" in text
    assert "| `ai.tensor` | `T / (T + 1)` | FLOP/B |" in text


def test_the_same_input_gives_the_same_page():
    assert to_html(report(DECODE), "") == to_html(report(DECODE), "")


def test_points_are_numbered_where_there_are_few():
    from opspec.analysis.report.figure import MOST_NUMBERS, numbered

    many = DECODE + "".join(
        f"workload w{k} for decode {{ B = 1, H = 1, T = {2**k}, D = 128 }}\n"
        for k in range(1, MOST_NUMBERS + 1)
    )
    few = pages(DECODE)
    assert [(p.name, s.workload) for p, s in numbered(H200, few)] == [("decode", "long")]
    (points,) = (t for t in roofline(H200, few)["data"] if t["meta"] == "point")
    assert points["text"] == ["1"]
    assert 'href="#op-0">decode · long</a>' in to_html(report(DECODE), "")
    assert numbered(H200, pages(many)) == []
    (points,) = (t for t in roofline(H200, pages(many))["data"] if t["meta"] == "point")
    assert set(points["text"]) == {""}


def test_points_that_lie_together_share_a_label():
    close = DECODE + "workload near for decode { B = 8, H = 32, T = 8000, D = 128 }\n"
    (points,) = (t for t in roofline(H200, pages(close))["data"] if t["meta"] == "point")
    assert points["text"] == ["1, 2", ""]
