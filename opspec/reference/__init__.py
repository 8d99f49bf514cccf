"""What an op must compute, in float64, and how far a kernel may be from it.

``rounding`` storage formats and ties · ``tensors`` the torch edge · ``bounded``
values with an error radius · ``pointwise``, ``casts``, ``combine`` and ``contract``
one rule per primitive, rounding and monoid · ``extents`` and ``boxes`` integer
expressions and domains over arrays · ``precise`` where division is exact · ``values``
and ``evaluate`` the walk over an op · ``compare`` the verdict · ``shapes``,
``gathers``, ``contents`` and ``cases`` inputs worth trying.

It shares no code with the schedule or the emitter, so that a fault in one
cannot hide in the other.
"""
