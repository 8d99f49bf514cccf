"""What the template of ``kernel.py`` is given: strings and tuples, ready to print."""

from __future__ import annotations

from dataclasses import dataclass

from opspec.emit.costs import CostFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelModel:
    """A kernel, or a function that warps of one run. ``alias``: the statement behind it, for rows of odd length."""

    decorator: str
    signature: str
    doc: str
    lines: tuple[str, ...]
    alias: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigureModel:
    """What chooses a kernel, its grid and its options."""

    signature: str
    kernel: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartModel:
    """A function of the host."""

    signature: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionModel:
    """The function of one op in one boundary, with all that it calls. ``used``: what looks at data first in a debug build."""

    name: str
    signature: str
    doc: str
    lines: tuple[str, ...]
    kernels: tuple[KernelModel, ...]
    configures: tuple[ConfigureModel, ...]
    check: PartModel
    launch: PartModel
    operator: tuple[str, ...]
    used: tuple[PartModel, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpModel:
    """An op: its functions, and its closed-form costs as one."""

    functions: tuple[FunctionModel, ...]
    cost: CostFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFile:
    """The whole file. ``imports`` are lines, ``runtime`` the names of modules of the runtime."""

    title: str
    origin: str
    imports: tuple[str, ...]
    gluon: bool
    runtime: str
    ops: tuple[OpModel, ...]
