"""A quantity over a range of one dim: `query … --plot T=1..65536`.

``sweep`` computes the curve, where another resource begins to bind, and where a ridge is reached · ``ticks`` the marks
of an axis · ``terminal`` draws with characters · ``picture`` writes PNG and SVG · ``model`` what they draw.
"""
