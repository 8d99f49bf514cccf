"""The page in a real browser: it draws without a network, answers the pointer, fits a phone, follows the dark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from documents import document, write

ROOT = Path(__file__).parents[3]
CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
PROBE = """<script>
let faults = 0;
addEventListener("error", () => { faults += 1; });
addEventListener("load", () => setTimeout(() => {
  const plot = document.getElementById("roofline-0"), say = (k, v) => document.body.setAttribute("data-" + k, v);
  const at = plot.data.findIndex((t) => t.meta === "point");
  Plotly.Fx.hover(plot, [{ curveNumber: at, pointNumber: 0 }]);
  say("hover", [...plot.querySelectorAll(".hoverlayer text")].map((t) => t.textContent).join(" "));
  say("points", plot.querySelectorAll(".points path").length);
  say("lines", plot.querySelectorAll("path.js-line").length);
  say("over", document.documentElement.scrollWidth - document.documentElement.clientWidth);
  say("width", document.documentElement.clientWidth);
  say("back", getComputedStyle(document.body).backgroundColor);
  say("ink", plot.querySelector(".xtick text").style.fill);
  say("faults", faults);
  say("bars", document.querySelectorAll("#waterfall-0-0 .bars .point").length);
  say("labels", [...plot.querySelectorAll(".textpoint text")].map((t) => t.textContent).join(" "));
  say("gate", document.getElementById("evidence-0").textContent);
  say("marks", document.querySelectorAll("td sup").length);
  say("fraction", document.querySelector("mfrac").getBoundingClientRect().height);
}, 300));
</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    pytest.importorskip("plotly")
    from opspec.emit.package import spec_hash
    from opspec.frontend import load

    folder = tmp_path_factory.mktemp("a report")
    spec = "specs/reduce/softmax.op"
    write(folder, document(spec, spec_hash(load(ROOT / spec))))
    done = subprocess.run(
        [sys.executable, "-m", "opspec", "report", str(folder / "result.json"), "specs/gemm/batched_matmul.op", "specs/world_model", "--out", str(folder)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "report.html"


def browse(page: Path, *options: str, width: int = 1200) -> dict[str, str]:
    """What the probe found. Every name resolves to nothing: a page that asked the network would hang or miss."""
    text = page.read_text(encoding="utf-8")
    probed = page.with_name("probed.html")
    probed.write_text(text.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    command = [
        CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={page.parent / 'profile'}", f"--window-size={width},900", "--virtual-time-budget=5000",
        *options, "--dump-dom", probed.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    body = re.search(r"<body([^>]*)>", done.stdout)
    assert body, done.stderr[-2000:]
    return dict(re.findall(r'data-(\w+)="([^"]*)"', body.group(1)))


def test_it_draws_and_answers_the_pointer(page):
    found = browse(page)
    assert re.search(r"\w+ · \w+.* derived.* by the model, bound by \w+", found["hover"])
    assert int(found["points"]) >= 6
    assert int(found["lines"]) >= 7
    assert found["faults"] == "0"
    assert float(found["fraction"]) > 20
    assert found["back"] == "rgb(255, 255, 255)"


def test_waterfalls_evidence_and_numbers_are_there(page):
    found = browse(page)
    assert int(found["bars"]) == 5
    assert found["gate"] == "token_compression: the gate is closed"
    assert int(found["marks"]) > 60
    assert found["labels"].split()[0].startswith("1")


def test_it_follows_the_dark(page):
    found = browse(page, "--blink-settings=preferredColorScheme=0")
    assert found["back"] == "rgb(20, 23, 26)"
    assert found["ink"] == "rgb(230, 233, 236)"


def test_nothing_sticks_out_on_a_narrow_screen(page):
    found = browse(page, width=390)
    assert int(found["width"]) <= 520
    assert int(found["over"]) == 0


def test_it_prints(page, tmp_path):
    out = tmp_path / "page.pdf"
    command = [
        CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=5000", f"--print-to-pdf={out}", page.as_uri(),
    ]  # fmt: skip
    subprocess.run(command, capture_output=True, check=False, timeout=120)
    assert out.read_bytes().startswith(b"%PDF")
