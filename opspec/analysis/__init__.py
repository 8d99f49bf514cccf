"""Costs, machines, the roofline and the query language: everything derived from a
checked op without building it. Exact and symbolic; imports neither torch nor triton.

``lattice`` counts integer points · ``costs`` FLOPs and bytes of an op · ``machine``
and ``roofline`` times and bounds · ``query`` questions · ``expectations`` budgets ·
``export`` closed forms for generated files.
"""
