"""What PyTorch may do with a generated function; run by the interpreting process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from exact_cases import built, fails, same
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

CASES: dict[str, Any] = {}
SCALE = "op scaled[M, N](x: f32[M, N], w: f32[N], a: f32 = 2.0) -> y: f32[M, N] { kernel k { y[m, n] = x[m, n] * w[n] * a } }\n"
SPLIT = """op split[M, N](x: f32[M, N], z: f32[M, N]) -> s: f32[M, N], l: f32[M] {
  kernel one { s[m, n] = x[m, n] - z[m, n] }
  kernel two { l[m] = sum[n](s[m, n] * s[m, n]) }
}
"""
STEP = """op step[N](g: f32[N], rate: f32, inout p: f32[N], inout m: f32[N]) {
  kernel k { h[n] = 0.5 * m[n] + g[n]; m[n] = h[n]; p[n] = p[n] - rate * h[n] }
}
"""
BETWEEN = """op between[M, N](x: f32[M, N]) -> y: f32[M, N] {
  kernel one { t: f32[m, n] = x[m, n] + 1 }
  kernel two { y[m, n] = t[m, n] * sum[i](t[m, i]) }
}
"""
POOL = """op pool[B, T, D](x: f32[B, T, D], len: i32[B]) -> y: f32[B, D] {
  assume len[b] <= T
  kernel k { y[b, d] = sum[t | t < len[b]](x[b, t, d]) }
}
"""


def case(function: Any) -> Any:
    CASES[function.__name__] = function
    return function


def compiled(function: Any, **more: Any) -> Any:
    torch.compiler.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager", **more)


@case
def a_call_is_repeated_with_other_content() -> None:
    m = built(SCALE)
    w = torch.arange(8.0)
    for k in range(4):
        x = torch.randn(3, 8)
        same(m.scaled(x, w, a=k), x * w * k, 1e-6)
        same(m.scaled(x, w), x * w * 2, 1e-6)
    assert len(m._scaled__operator.kinds) == 1


@case
def a_kind_of_call_is_its_shapes_strides_dtypes_and_alignment() -> None:
    m = built(SCALE)
    kinds, w = m._scaled__operator.kinds, torch.arange(8.0)
    base = torch.randn(33 * 8 + 4)
    calls = [
        base[:24].view(3, 8),
        base[:32].view(4, 8),
        base[1:25].view(3, 8),
        base[:24].view(8, 3).T,
        base[4:28].view(3, 8),
    ]
    for k, x in enumerate(calls[:4]):
        same(m.scaled(x, w), x * w * 2)
        assert len(kinds) == k
        same(m.scaled(x, w), x * w * 2)
        assert len(kinds) == k + 1
    same(m.scaled(calls[4], w), calls[4] * w * 2)
    assert len(kinds) == 4
    fails(lambda: m.scaled(calls[0].double(), w), "`x`", "float64")
    fails(lambda: m.scaled(calls[0], w.to("meta")), "`w`", "meta")


@case
def the_same_tensor_twice_and_then_two() -> None:
    m = built(SPLIT)
    x, z = torch.randn(3, 5), torch.randn(3, 5)
    for _ in range(2):
        same(m.split(x, x)[0], torch.zeros(3, 5))
    s, total = m.split(x, z)
    same(s, x - z)
    same(total, ((x - z) ** 2).sum(1), 1e-5)
    s, total = m.split(x, z)
    same(total, ((x - z) ** 2).sum(1), 1e-5)


@case
def out_receives_the_results() -> None:
    m = built(SPLIT + SCALE)
    x, z = torch.randn(3, 5), torch.randn(3, 5)
    for _ in range(3):
        outs = torch.empty(5, 3).T, torch.empty(6)[::2]
        found = m.split(x, z, out=outs)
        assert found[0] is outs[0]
        assert found[1] is outs[1]
        same(outs[0], x - z)
        same(outs[1], ((x - z) ** 2).sum(1), 1e-5)
    y = torch.empty(3, 5)
    assert m.scaled(x, z[0], out=y) is y
    same(y, x * z[0] * 2)
    fails(lambda: m.split(x, z, out=outs[:1]), "`out` has 1 tensors, expected 2")


@case
def kernels_pass_values_on_through_memory_of_the_call() -> None:
    m = built(BETWEEN)
    for _ in range(3):
        x = torch.randn(4, 6)
        same(m.between(x), (x + 1) * (x + 1).sum(1, keepdim=True), 1e-5)


@case
def tensors_are_updated_in_place_each_time() -> None:
    m = built(STEP)
    p, v = torch.ones(9), torch.zeros(9)
    g = torch.ones(9)
    for rate in (0.5, 0.25):
        assert m.step(g, rate, p=p, m=v) is None
    same(v, torch.full((9,), 1.5))
    same(p, torch.full((9,), 1 - 0.5 - 0.375))


@case
def compiled_whole() -> None:
    m = built(SCALE + SPLIT + STEP)
    x, z, w = torch.randn(3, 8), torch.randn(3, 8), torch.randn(8)
    same(compiled(lambda x, w: m.scaled(x + 1, w, a=3.0).sin())(x, w), ((x + 1) * w * 3).sin(), 1e-5)
    same(compiled(lambda x, z: m.split(x, z)[1] + 1)(x, z), ((x - z) ** 2).sum(1) + 1, 1e-5)

    def writing(x: Any, w: Any, y: Any) -> Any:
        m.scaled(x, w, out=y)
        return y + 1

    y = torch.empty(3, 8)
    same(compiled(writing)(x, w, y), x * w * 2 + 1, 1e-5)
    same(y, x * w * 2, 1e-5)
    p, v, g = torch.ones(4), torch.zeros(4), torch.ones(4)

    def update(g: Any, p: Any, v: Any) -> Any:
        m.step(g, 0.5, p=p, m=v)
        return p.sum()

    same(compiled(update)(g, p, v), 2.0)
    same(p, torch.full((4,), 0.5))


@case
def compiled_for_any_length() -> None:
    m = built(SCALE)
    w, graphs = torch.randn(8), []

    def backend(graph: Any, _inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    many = torch.compile(lambda x: m.scaled(x, w) + 1, fullgraph=True, backend=backend, dynamic=True)
    for rows in (2, 5, 7):
        x = torch.randn(rows, 8)
        same(many(x), x * w * 2 + 1, 1e-5)
    assert len(graphs) == 1


@case
def compiled_for_any_scalar() -> None:
    m = built(SCALE)
    x, w = torch.randn(3, 8), torch.randn(8)
    many = compiled(lambda x, a: m.scaled(x, w, a=a), dynamic=True)
    for a in (1.5, 2.5, 3.0):
        same(many(x, a), x * w * a, 1e-5)


@case
def exported() -> None:
    m = built(SCALE)

    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return m.scaled(x, w) + 1

    x, w = torch.randn(3, 8), torch.randn(8)
    rows = torch.export.Dim("rows", min=2, max=100)
    program = torch.export.export(Module(), (x, w), dynamic_shapes={"x": {0: rows}, "w": None})
    assert "opspec_spec.scaled" in str(program.graph)
    other = torch.randn(5, 8)
    same(program.module()(other, w), other * w * 2 + 1, 1e-5)


@case
def a_negation_still_to_be_done_is_done() -> None:
    m = built(SCALE)
    x = torch.randn(3, 8, dtype=torch.complex64)
    m.scaled(x.imag, torch.ones(8))
    lazy = x.conj().imag
    assert lazy.is_neg()
    same(m.scaled(lazy, torch.ones(8)), -2 * x.imag)


@case
def registered_as_torch_asks() -> None:
    m = built(SCALE + SPLIT + STEP + BETWEEN)
    x, z, w = torch.randn(3, 8), torch.randn(3, 8), torch.randn(8)
    vector = torch.randn(5)
    for operator, inputs, outs in (
        (m._scaled__operator, (x, w, 2.0), (torch.empty(3, 8),)),
        (m._split__operator, (x, z), (torch.empty(3, 8), torch.empty(3))),
        (m._between__operator, (x,), (torch.empty(3, 8),)),
        (m._step__operator, (vector, vector.clone(), vector.clone(), 0.1), None),
    ):
        torch.library.opcheck(operator.functional, inputs)
        if outs is not None:
            torch.library.opcheck(operator.writing, (*inputs, *outs))


@case
def operations_are_counted() -> None:
    m = built(SCALE + POOL)
    x, w = torch.randn(3, 8), torch.randn(8)
    with FlopCounterMode(display=False) as counter:
        m.scaled(x, w)
        m.scaled(x, w, out=torch.empty(3, 8))
    assert counter.get_total_flops() == 2 * m.scaled_cost(M=3, N=8)["flops"] == 2 * 48
    lengths = torch.tensor([1, 4], dtype=torch.int32)
    rows = torch.randn(2, 5, 3)
    with FlopCounterMode(display=False) as counter:
        m.pool(rows, lengths)
    assert counter.get_total_flops() == m.pool_cost(B=2, T=5, D=3, sum_len=5)["flops"] == 15
    with FakeTensorMode() as mode, FlopCounterMode(display=False):
        fake = mode.from_tensor(rows), mode.from_tensor(lengths)
        fails(lambda: m.pool(*fake), "no data")


@case
def shapes_without_data() -> None:
    m = built(SPLIT + SCALE)
    with FakeTensorMode():
        s, total = m.split(torch.empty(3, 5), torch.empty(3, 5))
        assert (s.shape, total.shape, s.dtype) == ((3, 5), (3,), torch.float32)
    y = m.scaled(torch.empty(3, 5, device="meta"), torch.empty(5, device="meta"))
    assert (y.shape, y.device.type) == ((3, 5), "meta")
    for _ in range(3):
        assert m.scaled(torch.empty(0, 5), torch.empty(5)).shape == (0, 5)


@case
def a_gradient_is_refused_and_not_forgotten() -> None:
    m = built(SCALE)
    x, w = torch.randn(3, 8, requires_grad=True), torch.randn(8)
    y = m.scaled(x, w)
    same(y.detach(), x.detach() * w * 2, 1e-6)
    try:
        y.sum().backward()
    except RuntimeError as error:
        assert "no autograd formula" in str(error)
    else:
        raise AssertionError("a gradient was made up")
    with torch.no_grad():
        assert not m.scaled(x, w).requires_grad
    functional = m._scaled__operator.functional

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[1])

    torch.library.register_autograd(
        functional, lambda ctx, grad: (grad * ctx.saved_tensors[0] * 2, None, None), setup_context=keep
    )
    m.scaled(x, w).sum().backward()
    same(x.grad, (w * 2).expand(3, 8), 1e-6)


@case
def a_second_module_of_a_spec_has_operators_of_its_own() -> None:
    first, second = built(SCALE), built(SCALE.replace("* a }", "* a + 1 }"))
    x, w = torch.randn(2, 4), torch.randn(4)
    same(compiled(first.scaled)(x, w), x * w * 2, 1e-6)
    same(compiled(second.scaled)(x, w), x * w * 2 + 1, 1e-6)


@case
def what_is_remembered_has_an_end() -> None:
    from opspec.runtime import library

    m, before = built(SCALE), library.KINDS
    library.KINDS = 3
    try:
        for rows in (1, 2, 3, 4, 5, 1, 2, 3, 4, 5):
            x = torch.randn(rows, 4)
            same(m.scaled(x, torch.ones(4)), x * 2)
        assert 1 <= len(m._scaled__operator.kinds) <= 3
    finally:
        library.KINDS = before


@case
def a_transformer_block_compiled_whole_equals_the_eager_one() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    import transformer_block as example

    sizes = example.Sizes(batch=1, length=4, heads=2, head=8, hidden=24, vocabulary=30)
    found = example.losses(sizes, torch.float32, "cpu", "aot_eager")
    assert max(found.values()) - min(found.values()) < 1e-5, found
