"""From a checked kernel block to a tile program, by the roles of its loop indices.

``block`` gives the block one set of axes · ``graph`` flattens it to loads, points,
folds and stores · ``rewrites`` and ``laws`` shorten chains of reductions · ``roles``
assigns grid, tile and stream · ``place`` puts every node into its loop · ``tile`` is
the printer-independent result · ``resources`` predicts what a configuration needs.
"""
