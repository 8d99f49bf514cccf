"""Counting integer points of index domains, in closed form.

``facts`` what is known about dims · ``domain`` constraint sets and their projections ·
``count`` the number of points · ``series`` sums of clamped progressions · ``pieces``
the general case by splitting · ``moments`` extents that are data · ``symbols`` the
way into SymPy.
"""

from opspec.analysis.lattice.count import count_points
from opspec.analysis.lattice.domain import Domain, Inexact, canonical, project
from opspec.analysis.lattice.facts import Facts

__all__ = ["Domain", "Facts", "Inexact", "canonical", "count_points", "project"]
