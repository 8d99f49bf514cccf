"""End-to-end times: ``analyse(module, find_pipeline(module), sources)``.

``timing`` each stage · ``total`` stages to a whole, overlap only as declared · ``compare`` what a variant
makes of it · ``consistency`` what does not agree · ``report`` all of it · ``text``, ``export`` how it is shown.
"""

from opspec.analysis.pipeline.report import Report, analyse, find_pipeline
from opspec.analysis.pipeline.timing import Sources

__all__ = ["Report", "Sources", "analyse", "find_pipeline"]
