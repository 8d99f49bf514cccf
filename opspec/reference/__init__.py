"""What an op must compute, in float64, and how far a kernel may be from it.

``rounding`` storage formats and ties · ``bounded`` values with an error radius ·
``pointwise`` and ``combine`` one rule per primitive and per monoid · ``extents``
integer expressions over arrays · ``tensors`` the torch edge · ``evaluate`` the
walk over an op · ``compare`` the verdict · ``cases`` inputs worth trying.

It shares no code with the schedule or the emitter, so that a fault in one
cannot hide in the other.
"""
