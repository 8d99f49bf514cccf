"""What a debug build checks before each call: that data which says where to read and write stays inside.

``opspec build --debug`` writes calls of these functions; no other package has them. They run in plain torch on
the tensors' device, and wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from opspec.runtime.launch import LaunchError

Places = Mapping[str, torch.Tensor]


def possible(*tensors: torch.Tensor) -> bool:
    """Whether the tensors have values that can be looked at now: not while torch traces or captures a call."""
    if torch.compiler.is_compiling() or any(
        type(t) not in (torch.Tensor, torch.nn.Parameter) for t in tensors
    ):
        return False
    capturing = any(t.is_cuda for t in tensors) and torch.cuda.is_current_stream_capturing()
    return not capturing and not any(t.is_meta for t in tensors)


def grid(like: torch.Tensor, *extents: int) -> tuple[torch.Tensor, ...]:
    """An index per extent, each along an axis of its own."""
    count = len(extents)
    return tuple(
        torch.arange(n, device=like.device).reshape([-1 if k == j else 1 for j in range(count)])
        for k, n in enumerate(extents)
    )


def pick(tensor: torch.Tensor, *at: torch.Tensor | int) -> torch.Tensor:
    """Elements of a tensor of integers; at places outside, which a domain leaves out, any of them."""
    if tensor.numel() == 0:
        return torch.zeros((), dtype=torch.int64, device=tensor.device)
    inside = [
        torch.as_tensor(i, device=tensor.device).clamp(0, n - 1)
        for i, n in zip(at, tensor.shape, strict=True)
    ]
    return tensor[tuple(inside)].to(torch.int64) if inside else tensor.to(torch.int64)


def least(*values: torch.Tensor | int) -> torch.Tensor:
    """The smallest of several integers, place by place."""
    found = torch.as_tensor(values[0])
    for value in values[1:]:
        found = torch.minimum(found, torch.as_tensor(value, device=found.device))
    return found


def greatest(*values: torch.Tensor | int) -> torch.Tensor:
    """The largest of several integers, place by place."""
    return -least(*(-torch.as_tensor(v) for v in values))


def inside(
    text: str,
    value: torch.Tensor,
    end: int | None,
    what: str,
    domain: tuple[torch.Tensor | bool, ...],
    at: Places,
) -> None:
    """Raise ``LaunchError`` unless ``0 <= value < end`` at every point of the domain (``end`` None: no end).

    ``text``: the value as the spec has it. ``what``: what its range is that of. ``at``: the indices of a point.
    """
    bad = value < 0
    if end is not None:
        bad = bad | (value >= end)
    for test in domain:
        bad = bad & test
    points = torch.broadcast_tensors(bad, value, *at.values())
    if not bool(points[0].any()):
        return
    first = int(points[0].flatten().nonzero()[0])
    place = ", ".join(f"{n} = {int(p.flatten()[first])}" for n, p in zip(at, points[2:], strict=True))
    found = int(points[1].flatten()[first])
    count = int(points[0].sum())
    more = f", and {count - 1} more" if count > 1 else ""
    limits = f"0 <= {text} < {end}" if end is not None else f"{text} >= 0"
    raise LaunchError(f"`{text}` is {found}{f' at {place}' if place else ''}{more}: {what} needs {limits}")


def distinct(name: str, tensor: torch.Tensor) -> None:
    """Raise ``LaunchError`` where two elements are equal."""
    values, counts = torch.unique(tensor, return_counts=True)
    if values.numel() < tensor.numel():
        value = values[counts > 1][0]
        places = [tuple(p) for p in (tensor == value).nonzero()[:2].tolist()]
        shown = " and ".join(f"{name}[{', '.join(map(str, p))}]" for p in places)
        raise LaunchError(f"{shown} are both {int(value)}: `{name}` is assumed to be distinct")
