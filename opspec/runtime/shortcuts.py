"""What Triton's interpreter does over and over to no effect, left out.

A kernel of a few hundred operations spends most of its time in the interpreter's own bookkeeping: integer
arithmetic is done once more in 64 bits for an assertion that nobody reads unless debugging is on, the language is
patched again for each function that a kernel calls though it stays patched until the kernel ends, and shapes and element
types are described anew for each value. No result changes; an interpreter that looks different is left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import triton.language as tl
from triton._utils import validate_block_shape
from triton.runtime import interpreter as host


def take_shortcuts() -> None:
    """Patch the interpreter of this process, once."""
    if getattr(host, "opspec_shortcuts", False):
        return
    host.opspec_shortcuts = True
    _without_unread_checks()
    patches = _Patches()
    host._patch_lang = patches.patched  # noqa: SLF001 - the interpreter has no public way in
    host.GridExecutor.__call__ = patches.launch(host.GridExecutor.__call__)
    host.InterpretedFunction.__call__ = patches.function(host.InterpretedFunction.__call__)
    host._get_np_dtype = _remembered(host._get_np_dtype)  # noqa: SLF001 - as above
    for made, quick, arguments in (
        (tl.block_type, _block_type, (tl.pointer_type(tl.int32), [4, tl.constexpr(8)])),
        (tl.core.tensor, _tensor, (None, tl.block_type(tl.int32, [4, 8]))),
        (tl.core.tensor, _tensor, (None, tl.int32)),
    ):
        if _alike(made, quick, arguments):
            made.__init__ = quick


def _without_unread_checks() -> None:
    """``device_assert`` says nothing without ``debug``, and what it would have said need not be computed."""
    options = host.interpreter_builder.options
    if not options.debug:
        host.interpreter_builder.options = type(options)(sanitize_overflow=False)


@dataclass(slots=True)
class _Launch:
    """A launch under way: which modules of the language are patched for it, and what puts them back."""

    languages: set[int]
    scope: Any = None


class _Patches:
    """Patches the language once for each launch, and takes all of it back as the launch ends."""

    def __init__(self) -> None:
        self.launches: list[_Launch] = []
        self.patch = host._patch_lang  # noqa: SLF001 - the interpreter has no public way in

    def patched(self, function: Any) -> Any:
        """Patch what a function sees; what is patched later is put back before what was patched first."""
        scope = self.patch(function)
        launch = self.launches[-1] if self.launches else None
        if launch is not None and launch.scope is None:
            launch.scope = scope
        elif launch is not None:
            launch.scope._changes.extend(scope._changes)  # noqa: SLF001 - as above
        return scope

    def launch(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A launch, which is under way while its programs run."""

        def launched(executor: Any, *args: Any, **named: Any) -> Any:
            self.launches.append(_Launch(_languages(executor.fn)))
            try:
                return call(executor, *args, **named)
            finally:
                self.launches.pop()

        return launched

    def function(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function that a kernel calls: only what the kernel itself didn't patch is patched for it."""

        def called(function: Any, *args: Any, **named: Any) -> Any:
            if not self.launches:
                return call(function, *args, **named)
            launch, wanted = self.launches[-1], _languages(function.fn)
            if not wanted <= launch.languages:
                self.patched(function.fn)
                launch.languages |= wanted
            try:
                return function.rewrite()(*args, **named)
            except Exception as error:
                raise host.InterpreterError(repr(error)) from error

        return called


def _languages(function: Any) -> set[int]:
    """The modules of the language that a function sees, by identity."""
    seen = {id(value) for value in function.__globals__.values()}
    return seen & {id(tl), id(tl.core)}


def _remembered(numpy_type: Callable[[Any], np.dtype[Any]]) -> Callable[[Any], np.dtype[Any]]:
    """The NumPy type of a Triton type, looked up by the name of its element."""
    address = np.dtype(np.uint64)
    known: dict[str, np.dtype[Any]] = {}

    def remembered(given: Any) -> np.dtype[Any]:
        element = given.element_ty if isinstance(given, tl.block_type) else given
        if isinstance(element, tl.pointer_type):
            return address
        found = known.get(element.name)
        if found is None:
            found = known[element.name] = numpy_type(element)
        return found

    return remembered


def _alike(made: Any, quick: Callable[..., None], arguments: tuple[Any, ...]) -> bool:
    """Whether a constructor in fewer steps gives an object what its own gives it."""
    ours, theirs = object.__new__(made), made(*arguments)
    quick(ours, *arguments)
    return {k: str(v) for k, v in vars(ours).items()} == {k: str(v) for k, v in vars(theirs).items()}


@lru_cache(maxsize=4096)
def _shape(sides: tuple[int, ...]) -> tuple[Any, Any]:
    """A shape and its number of elements, as a tensor of the language has them."""
    return tl.tuple([tl.constexpr(side) for side in sides]), tl.constexpr(math.prod(sides))


def _tensor(self: Any, handle: Any, type: Any) -> None:
    self.handle, self.type, self.dtype = handle, type, type.scalar
    self.shape, self.numel = _shape(tuple(type.shape) if type.is_block() else ())


@lru_cache(maxsize=4096)
def _block(sides: tuple[int, ...], element: str) -> tuple[Any, int, str]:
    """The shape of a block, its number of elements and the name of its type. Raises as the language does."""
    if not sides:
        raise TypeError("0d block_type is forbidden")
    shape = tl.tuple(sides)
    return shape, validate_block_shape(sides), f"<{shape}, {element}>"


def _block_type(self: Any, element_ty: Any, shape: Any) -> None:
    self.element_ty = element_ty
    sides = tuple(side.value if isinstance(side, tl.constexpr) else side for side in shape)
    self.shape, self.numel, self.name = _block(sides, str(element_ty))
