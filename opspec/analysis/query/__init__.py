"""Questions about an op: ``query(module, op, "ai.tensor", workload="decode_8k")``.

``parse`` text to tree · ``quantity`` values with units · ``names`` what a name means ·
``evaluate`` the tree's value · ``solving`` limits, derivatives and crossings ·
``answer`` the result as text, JSON or LaTeX.
"""

from opspec.analysis.query.answer import Answer
from opspec.analysis.query.ask import query

__all__ = ["Answer", "query"]
