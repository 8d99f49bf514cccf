"""Runs kernels whose warps have roles on the CPU, on top of Triton's interpreter.

Triton's interpreter knows nothing of Gluon. Such a kernel says little in it, though: which warps run what, where tiles
lie, and when one waits for another. Here each role runs in a thread of its own, of which one goes at a time, and the
barriers count as those of the device do. What the device does later is done as late as it may be: a product reads its
tiles when it is awaited, a tile is stored when its place is wanted again, and who gives a slot back lets the others go
first. A slot that is given back too early, or waited for in the wrong turn, so gives a wrong result or stands still.
"""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections.abc import Callable, Sequence
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as host

Array = np.ndarray[Any, Any]


class Stalled(RuntimeError):
    """Every role waits for another."""


class Turns:
    """Threads of which one goes at a time; one that can't go on lets the next."""

    def __init__(self, count: int) -> None:
        self.changed = threading.Condition()
        self.going, self.left = 0, set(range(count))
        self.stopped = False
        self.waiting = 0  # roles in a row that could not go on
        self.own = threading.local()

    def run(self, roles: Sequence[Callable[[], None]]) -> None:
        """Run all roles to their ends; the first error of any is raised."""
        errors: list[BaseException] = []

        def go(place: int) -> None:
            self.own.place = place
            try:
                self.take()
                roles[place]()
            except BaseException as error:  # noqa: BLE001 - it is raised in the thread that called
                errors.append(error)
                self.stopped = True
            finally:
                with self.changed:
                    self.left.discard(place)
                    self.waiting = 0
                    self.next(place)

        threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(go, k), daemon=True)
            for k in range(len(roles))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def take(self) -> None:
        """Wait for this thread's turn."""
        with self.changed:
            self.changed.wait_for(lambda: self.stopped or self.going == self.own.place)
        if self.stopped:
            raise Stalled("another role stopped")

    def next(self, place: int) -> None:
        """Give the turn to the next role that is left."""
        later = sorted(self.left, key=lambda k: (k - place - 1) % (max(self.left, default=0) + 2))
        if later:
            self.going = later[0]
        self.changed.notify_all()

    def let_others(self) -> None:
        """Let every other role go on until it waits."""
        with self.changed:
            self.next(self.own.place)
        self.take()

    def until(self, ready: Callable[[], bool]) -> None:
        """Let others go until something holds."""
        while not ready():
            with self.changed:
                self.waiting += 1
                if self.waiting > len(self.left):
                    self.stopped = True
                    self.changed.notify_all()
                    raise Stalled("every role waits for a slot")
                self.next(self.own.place)
            self.take()
        self.waiting = 0


class Barrier:
    """Completes a turn once so many have arrived and all announced bytes have come."""

    def __init__(self, count: int) -> None:
        self.count = self.missing = count
        self.bytes = self.turns = 0

    def expect(self, size: int) -> None:
        """Announce bytes, and arrive."""
        self.bytes += size
        self.arrive()

    def arrive(self) -> None:
        """One of those that it waits for is there."""
        self.missing -= 1
        self.complete()

    def came(self, size: int) -> None:
        """Announced bytes have come."""
        self.bytes -= size
        self.complete()

    def complete(self) -> None:
        """End the turn if nothing is missing."""
        if self.missing == 0 and self.bytes == 0:
            self.turns += 1
            self.missing = self.count

    def passed(self, phase: int) -> bool:
        """Whether the turn of a parity is complete."""
        return self.turns & 1 != phase


class Tiles:
    """Slots for tiles in shared memory."""

    def __init__(self, dtype: Any, shape: Sequence[int], count: int) -> None:
        self.dtype, self.shape = dtype, tuple(shape)
        self.values: list[Array | None] = [None] * count
        self.leaving: list[Callable[[], None] | None] = [None] * count

    def index(self, slot: Any) -> View:
        """One slot."""
        return View(self, _int(slot), ())


class View:
    """A slot, seen in another shape or order, or a part of its rows; it is read when it is needed."""

    def __init__(self, tiles: Tiles, slot: int, changes: tuple[Callable[[Array], Array], ...]) -> None:
        self.tiles, self.slot, self.changes, self.dtype = tiles, slot, changes, tiles.dtype

    def _also(self, change: Callable[[Array], Array]) -> View:
        return View(self.tiles, self.slot, (*self.changes, change))

    def reshape(self, shape: Sequence[int]) -> View:
        """In another shape."""
        return self._also(lambda a: a.reshape([_int(e) for e in shape]))

    def permute(self, order: Sequence[int]) -> View:
        """With its axes in another order."""
        return self._also(lambda a: a.transpose([_int(k) for k in order]))

    def slice(self, start: Any, length: Any, dim: Any = 0) -> View:
        """Some of its rows, or of its columns."""
        part = slice(_int(start), _int(start) + _int(length))
        return self._also(lambda a: a[part] if _int(dim) == 0 else a[:, part])

    def read(self) -> Any:
        """What the slot holds now."""
        data = self.tiles.values[self.slot]
        if data is None:
            raise RuntimeError("a slot is read before anything came")
        for change in self.changes:
            data = change(data)
        data = np.ascontiguousarray(data)
        return tl.tensor(host.TensorHandle(data, self.dtype), tl.block_type(self.dtype, list(data.shape)))


class Product:
    """A product that has started; it reads its tiles when it has to be there."""

    def __init__(self, rows: Any, columns: View, sums: Any) -> None:
        self.rows, self.columns, self.sums = rows, columns, sums
        self.value: Any = None

    def finish(self) -> None:
        """Make its value."""
        before = self.sums.value if isinstance(self.sums, Product) else self.sums
        rows = self.rows.read() if isinstance(self.rows, View) else self.rows
        self.value = tl.dot(rows, self.columns.read(), before, input_precision="ieee")


def _int(value: Any) -> int:
    if isinstance(value, tl.tensor):
        return int(np.asarray(value.handle.data).item())
    return int(getattr(value, "value", value))


class Pieces:
    """The functions of ``warp_specialised`` for one program."""

    def __init__(self, turns: Turns) -> None:
        self.turns, self.own = turns, threading.local()
        self.stores: dict[tuple[int, int], Tiles] = {}

    def accumulator(self, columns: Any, bits: Any) -> None:
        """Nothing: there are no layouts here."""

    def slots(self, desc: Any, count: Any) -> Tiles:
        """As there."""
        return Tiles(desc.dtype, desc.block_shape, _int(count))

    def barriers(self, count: Any) -> tuple[list[Barrier], list[Barrier]]:
        """As there."""
        n = _int(count)
        return [Barrier(1) for _ in range(n)], [Barrier(2) for _ in range(n)]

    def following(self, slot: int, phase: int, count: Any) -> tuple[int, int]:
        """As there."""
        around = slot + 1 == _int(count)
        return 0 if around else slot + 1, phase ^ around

    def await_free(
        self, free: list[Barrier], filled: list[Barrier], slot: int, phase: int, size: Any
    ) -> None:
        """As there; the others go on until it may."""
        self.turns.until(lambda: free[slot].passed(phase))
        filled[slot].expect(_int(size))

    def bring(self, desc: Any, at: Sequence[Any], filled: list[Barrier], slot: int, tiles: Tiles) -> None:
        """As there, at once."""
        loaded = desc.load(list(at))
        tiles.values[slot] = np.asarray(loaded.handle.data).reshape(tiles.shape)
        filled[slot].came(desc.block_type.nbytes)

    def await_filled(self, filled: list[Barrier], slot: int, phase: int) -> None:
        """As there; the others go on until it is so."""
        self.turns.until(lambda: filled[slot].passed(phase))

    def give_back(self, free: list[Barrier], slot: int) -> None:
        """As there, and the others go first."""
        free[slot].arrive()
        self.turns.let_others()

    def give_back_before(self, free: list[Barrier], slot: int, known: Any, count: Any) -> None:
        """As there, and the others go first."""
        if bool(_int(known)):
            self.give_back(free, (slot or _int(count)) - 1)

    def add_product(self, rows: Any, columns: View, sums: Any) -> Product:
        """As there; it is made when it is awaited."""
        started = Product(rows, columns, sums)
        self.started().append(started)
        return started

    def product(self, rows: View, columns: View, before: Any, never: Any) -> Product:
        """As there; it is made when it is awaited."""
        assert not _int(never)
        return self.add_product(rows, columns, tl.zeros(before.shape, tl.float32))

    def started(self) -> list[Product]:
        """The products of this role that need not be there yet, in order."""
        if not hasattr(self.own, "started"):
            self.own.started = []
        found: list[Product] = self.own.started
        return found

    def now(self, value: Any) -> Any:
        """The value."""
        return value

    def rows_operand(self, value: Any, layout: Any) -> Any:
        """The value: there are no layouts here."""
        del layout
        return value

    def rows_of(self, value: Any, layout: Any) -> Any:
        """The value: there are no layouts here."""
        del layout
        return value

    def packed(self, rows: Any) -> Any:
        """The rows."""
        return rows

    def mark(self, marks: Any, value: Any, inside: Any) -> None:
        """As there."""
        total = tl.sum(value, axis=1)
        tl.store(marks, ((total != total) & inside).to(tl.int32))  # noqa: PLR0124 - NaN differs from itself

    def wide(self, value: Any, dtype: Any) -> Any:
        """The value: numbers are as wide as they have to be."""
        del dtype
        return value

    def finished(self, value: Any) -> Any:
        """As there."""
        return self.all_but((value,), 0)[0]

    def all_but(self, values: Sequence[Any], later: Any) -> tuple[Any, ...]:
        """As there: no product that need not be there is."""
        started = self.started()
        while len(started) > _int(later):
            started.pop(0).finish()
        return tuple(v.value if isinstance(v, Product) and v.value is not None else v for v in values)

    def quotient_of(self, first: Any, at: Any, divisor: Any) -> Any:
        """As there."""
        return tl.full((1,), first // divisor, at.dtype)

    def put_tile(self, desc: Any, at: Sequence[Any], value: Any, place: View) -> None:
        """As there; it is stored when its place is wanted again."""
        self.put_place(place.tiles, place.slot)
        place.tiles.leaving[place.slot] = lambda: desc.store(
            list(at), value.to(desc.dtype).reshape(desc.block_shape)
        )
        self.stores[id(place.tiles), place.slot] = place.tiles

    def put_place(self, tiles: Tiles, slot: int) -> None:
        """Store what is still on its way from a place."""
        store, tiles.leaving[slot] = tiles.leaving[slot], None
        if store is not None:
            store()

    def put_all(self) -> None:
        """Store what is still on its way."""
        for (_, slot), tiles in self.stores.items():
            self.put_place(tiles, slot)


LANGUAGE = SimpleNamespace(
    constexpr=tl.constexpr,
    program_id=lambda axis: tl.program_id(axis),  # noqa: PLW0108 - the interpreter puts its own there
    num_programs=lambda axis: tl.num_programs(axis),  # noqa: PLW0108
    static_range=lambda count: range(_int(count)),
    arange=lambda start, end, layout=None: tl.arange(_int(start), _int(end)),  # noqa: ARG005
    zeros=lambda shape, dtype, layout=None: tl.zeros([_int(e) for e in shape], dtype),  # noqa: ARG005
    full=lambda shape, value, dtype, layout=None: tl.full([_int(e) for e in shape], value, dtype),  # noqa: ARG005
    SliceLayout=lambda along, layout: None,  # noqa: ARG005
    float32=tl.float32,
)


def run(kernel: Any, grid: tuple[int, int, int], args: Sequence[Any], options: dict[str, Any]) -> None:
    """Run every program of a kernel, one after the other, on tensors in the memory of the host."""
    own = dict(kernel.fn.__globals__)
    roles = {name: f.fn for name, f in own.items() if getattr(f, "is_gluon", bool)()}

    def program(**given: Any) -> None:
        turns = Turns(3)
        space = own | {"warps": Pieces(turns)}
        space["gl"] = SimpleNamespace(
            **vars(LANGUAGE), warp_specialize=lambda calls, *_: turns.run([_bound(c) for c in calls])
        )
        space |= {name: FunctionType(f.__code__, space, name) for name, f in roles.items()}
        FunctionType(kernel.fn.__code__, space, kernel.fn.__name__)(**given)

    program.__signature__ = inspect.signature(kernel.fn)  # type: ignore[attr-defined]
    program.__annotations__ = dict(kernel.fn.__annotations__)
    host.GridExecutor(program, kernel.arg_names, grid)(*args, **options)


def _bound(call: tuple[Callable[..., None], Sequence[Any]]) -> Callable[[], None]:
    function, given = call
    return lambda: function(*given)
