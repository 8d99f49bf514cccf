"""Evidence: ``decide(evidence, load_results(path, module, evidence), report)``.

``results`` what was measured · ``decide`` the gate · ``table`` the five rows · ``text`` how both are shown.
"""

from opspec.analysis.evidence.decide import Decision, decide
from opspec.analysis.evidence.results import Results, load_results
from opspec.analysis.evidence.table import evidence_table

__all__ = ["Decision", "Results", "decide", "evidence_table", "load_results"]
