"""Peers that want their operands in another form, such as packed weights or another layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def prepared(prepare: Callable[..., Any]) -> Callable[[F], F]:
    """Mark a peer that takes, instead of the op's arguments, what ``prepare`` makes of them.

    ``prepare`` takes the arguments of the op and returns those of the peer, as a tuple or one alone. It runs once
    for each set of inputs, outside of what is timed, and its first line of documentation stands beside the times.
    What it returns may be copies, and those the peer may change.
    """

    def mark(function: F) -> F:
        function.__dict__["prepare"] = prepare
        return function

    return mark


def preparing(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The step before a function that is marked `prepared`; None if it takes the op's own arguments."""
    found: Callable[..., Any] | None = getattr(function, "prepare", None)
    return found
