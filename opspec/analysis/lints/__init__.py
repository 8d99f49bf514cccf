"""Warnings about what a spec claims: numbers that contradict each other, and evidence with the usual gaps.

``memory`` values between kernels · ``agree`` pipelines, variants and token ledgers · ``release`` what an ``evidence`` block leaves open · ``codes`` their
codes. A lint is a warning: the gate decides, and `opspec check` only says what it will stumble over.
"""

from opspec.analysis.lints.collect import lints

__all__ = ["lints"]
