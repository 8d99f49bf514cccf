"""opspec: one source for a GPU operator's closed-form cost, kernel and benchmark.

This module imports nothing, so that ``opspec.runtime`` stays light for the
generated code that depends on it.
"""
