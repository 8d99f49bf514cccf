"""``opspec report``: one page about ops, their rooflines and what was measured."""

from __future__ import annotations

import argparse
from pathlib import Path

from opspec.driver.files import write_atomically


def run(options: argparse.Namespace) -> int:
    """Write ``report.md`` and ``report.html``; nothing is written if anything is wrong."""
    from opspec.analysis.report.html import plotly_script, to_html
    from opspec.analysis.report.markdown import to_markdown
    from opspec.driver.report import make_report

    plotly = plotly_script()
    report = make_report(options.paths, options.machine)
    out = Path(options.out)
    for name, text in (("report.md", to_markdown(report)), ("report.html", to_html(report, plotly))):
        write_atomically(out / name, text)
        print((out / name).as_posix())
    return 0
