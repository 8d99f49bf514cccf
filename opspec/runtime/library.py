"""Generated functions as operators of torch: registered, traceable, and cheap to call again.

An ``Operator`` is what stands behind a generated function. An ordinary call goes straight to the launch: a
dictionary lookup says what calls of this kind launch. A call that torch must see — under ``torch.compile``,
``torch.export`` or a mode such as the FLOP counter, with a tensor subclass, or where gradients are asked
for — goes through a registered operator with a schema, a fake implementation and a FLOP formula.
"""

from __future__ import annotations

import copy
import operator
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import register_flop_formula

from opspec.runtime.calls import Call, Float, Replay
from opspec.runtime.launch import Result, receive
from opspec.runtime.tuned import NAME, Key, Tuning, bucket, read

Tensors = tuple[torch.Tensor, ...]
PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
KINDS = 4096  # kinds of call that an operator remembers; beyond, it starts anew
TAKEN: set[str] = set()
GRADED = operator.attrgetter("requires_grad")
NEGATED = operator.methodcaller("is_neg")
# torch has no public way to ask whether a mode or a transform such as vmap is on
MODES = torch._C._len_torch_dispatch_stack  # noqa: SLF001 - see above
TRANSFORM = torch._C._functorch.peek_interpreter_stack  # noqa: SLF001 - see above


class Counted(NamedTuple):
    """A call whose operations are counted: its checked dims and its tensors."""

    dims: tuple[Any, ...]
    tensors: Tensors


class Operator:
    """A generated function in the eyes of torch.

    ``schema`` (``ns::name(Tensor x, float eps) -> Tensor``) lists tensors, then floats, then integers.
    ``check(*tensors, *whole)`` refuses what the op can't take and returns dims and results;
    ``launch(call, dims, *tensors, *floats, *whole, *results)`` starts the kernels through ``call``;
    ``cost(counted)`` is the closed form of a checked call, of which the operations (``flops``) are counted.
    ``file`` is where the kernels stand; a ``tuned.json`` beside it is read on the first launch.
    """

    def __init__(
        self,
        schema: str,
        *,
        check: Callable[..., tuple[tuple[Any, ...], tuple[Result, ...]]],
        launch: Callable[..., None],
        cost: Callable[[Counted], dict[str, float]],
        file: str = "",
    ) -> None:
        self.check, self.launch, self.cost, self.file = check, launch, cost, file
        self.kinds: dict[Any, Replay] = {}
        self.met: set[int] = set()
        self.tuned: dict[Key, Tuning] | None = None
        self.name, self.parameters, self.returns = parts(schema)
        self.tensors = sum(p.startswith("Tensor") for p in self.parameters)
        self.floats = sum(p.startswith("float") for p in self.parameters)
        self.functional: Any = register(
            self.name, self.parameters, self.returns, self._functional, self._fake, self._flops
        )
        self.writing: Any = None
        if self.returns:
            names = [f"Tensor({chr(97 + k)}_out!) out{k}" for k in range(self.returns)]
            self.writing = register(
                f"{self.name}_out",
                (*self.parameters, *names),
                0,
                self._writing,
                self._fake_writing,
                self._flops,
            )

    def __call__(
        self,
        tensors: Tensors,
        floats: tuple[float, ...] = (),
        whole: tuple[int, ...] = (),
        out: Any = None,
    ) -> Any:
        """The results: a tensor, a tuple of several, or None. ``out`` has the form of what is returned."""
        if out is not None and self.returns == 1:
            out = (out,)
        if torch.compiler.is_compiling() or seen(tensors):
            return self._dispatched(tensors, floats, whole, out)
        return self._given(self._run(tensors, floats, whole, out))

    def _given(self, results: Tensors) -> Any:
        if self.returns == 1:
            return results[0]
        return results if self.returns else None

    def _dispatched(
        self, tensors: Tensors, floats: tuple[float, ...], whole: tuple[int, ...], out: Tensors | None
    ) -> Any:
        if out is None:
            return self.functional(*tensors, *floats, *whole)
        self.writing(*tensors, *floats, *whole, *out)
        return self._given(tuple(out))

    def _run(
        self, tensors: Tensors, floats: tuple[float, ...], whole: tuple[int, ...], out: Tensors | None
    ) -> Tensors:
        given = tensors if out is None else (*tensors, *out)
        pointers = [t.data_ptr() for t in given]
        key: tuple[Any, ...] = (
            whole,
            *[(t.shape, t.stride(), t.dtype, t.device, p % 16) for t, p in zip(given, pointers, strict=True)],
        )
        if not given:
            key = (whole, current_device())
        replay = self.kinds.get(key)
        if replay is not None:
            return replay(tensors, pointers, floats, out)
        return self._first(key, tensors, floats, whole, out)

    def _first(
        self,
        key: Any,
        tensors: Tensors,
        floats: tuple[float, ...],
        whole: tuple[int, ...],
        out: Tensors | None,
    ) -> Tensors:
        """Check, decide and launch; remember a kind of call that comes again, for many never do (lengths that
        grow by one). Without data (meta tensors) there is nothing to launch."""
        dims, results = self.check(*tensors, *whole)
        device = tensors[0].device if tensors else torch.device("cuda", current_device())
        outs = receive(results, out, device)
        if device.type == "meta":
            return outs
        slots = apart((*tensors, *outs))
        kind = hash(key)
        again = kind in self.met
        call = Call(device, list(slots), tunings=self._tunings(dims, device), recording=again)
        numbers = [Float(value, place) for place, value in enumerate(floats)] if again else floats
        self.launch(call, dims, *slots[: len(tensors)], *numbers, *whole, *slots[len(tensors) :])
        if again:
            if len(self.kinds) >= KINDS:
                self.kinds.clear()
            self.kinds[key] = Replay(call, results, len(floats))
        else:
            if len(self.met) >= 16 * KINDS:
                self.met.clear()
            self.met.add(kind)
        return outs

    def _tunings(self, dims: tuple[Any, ...], device: torch.device) -> dict[str, Tuning]:
        """What was tuned for such a call, by kernel block."""
        if self.tuned is None:
            file = Path(self.file)
            found = read(file.with_name(NAME), file) if self.file else {}
            self.tuned = {k: v for k, v in found.items() if k[0] == self.name.partition("::")[2]}
        if not self.tuned:
            return {}
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
        shapes = bucket(dims)
        return {k[1]: v for k, v in self.tuned.items() if k[2:] == (name, shapes)}

    def trial(self, tunings: dict[Key, Tuning]) -> Operator:
        """This operator with other tunings and a memory of its own, not registered; for measuring them."""
        other = copy.copy(self)
        other.tuned, other.kinds, other.met = tunings, {}, set()
        return other

    def _split(self, args: Sequence[Any]) -> tuple[Tensors, tuple[float, ...], tuple[int, ...], Tensors]:
        a, b, c = self.tensors, self.tensors + self.floats, len(self.parameters)
        return tuple(args[:a]), tuple(args[a:b]), tuple(args[b:c]), tuple(args[c:])

    def _functional(self, *args: Any) -> Any:
        tensors, floats, whole, _ = self._split(args)
        return self._given(self._run(tensors, floats, whole, None))

    def _writing(self, *args: Any) -> None:
        tensors, floats, whole, out = self._split(args)
        self._run(tensors, floats, whole, out)

    def _fake(self, *args: Any) -> Any:
        tensors, _, whole, _ = self._split(args)
        _, results = self.check(*tensors, *whole)
        device = tensors[0].device if tensors else torch.device("cuda")
        return self._given(tuple(torch.empty(r.shape, dtype=r.dtype, device=device) for r in results))

    def _fake_writing(self, *args: Any) -> None:
        tensors, _, whole, out = self._split(args)
        _, results = self.check(*tensors, *whole)
        receive(results, out, tensors[0].device if tensors else out[0].device)

    def _flops(self, *args: Any, **more: Any) -> int:
        del more
        tensors, _, whole, _ = self._split(args)
        dims, _ = self.check(*tensors, *whole)
        return int(self.cost(Counted(dims, tensors))["flops"])


def seen(tensors: Tensors) -> bool:
    """Whether torch must see this call: a mode or transform is on, a subclass is among the tensors, a
    gradient is asked for, or a negation is still to be done (of an imaginary part)."""
    if MODES() or TRANSFORM() is not None or not PLAIN.issuperset(map(type, tensors)):
        return True
    return (torch.is_grad_enabled() and any(map(GRADED, tensors))) or any(map(NEGATED, tensors))


def apart(tensors: Tensors) -> Tensors:
    """The tensors, with another object in place of each that came before, so that identity tells them apart."""
    found: dict[int, torch.Tensor] = {}
    for t in tensors:
        other = t.detach() if id(t) in found else t
        found[id(other)] = other
    return tuple(found.values())


def current_device() -> int:
    """Index of the current CUDA device, for an op that takes no tensor."""
    return int(torch.cuda.current_device())


def parts(schema: str) -> tuple[str, tuple[str, ...], int]:
    """Name, parameters and number of results of a schema."""
    found = re.fullmatch(r"(\w+::\w+)\((.*)\) -> (Tensor|\(.*\))", schema)
    if found is None:
        raise ValueError(f"not a schema: {schema}")
    parameters = tuple(found[2].split(", ")) if found[2] else ()
    return found[1], parameters, found[3].count("Tensor")


def register(
    name: str,
    parameters: Sequence[str],
    returns: int,
    function: Callable[..., Any],
    fake: Callable[..., Any],
    flops: Callable[..., int],
) -> Any:
    """Register one operator and return it; a name that another module has taken gets a number behind it."""
    free, number = name, 1
    while free in TAKEN:
        number += 1
        free = f"{name}_{number}"
    TAKEN.add(free)
    results = "Tensor" if returns == 1 else f"({', '.join(['Tensor'] * returns)})"
    changed = [p.split()[-1] for p in parameters if "!" in p.split()[0]]
    made = torch.library.custom_op(
        free,
        function,
        mutates_args=changed,
        schema=f"({', '.join(parameters)}) -> {results}",
    )
    made.register_fake(fake)
    namespace, _, own = free.partition("::")
    packet = getattr(getattr(torch.ops, namespace), own)
    register_flop_formula(packet, get_raw=True)(flops)
    return packet.default
