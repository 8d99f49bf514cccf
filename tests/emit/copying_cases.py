"""Copies of operands into aligned rows, and products of them; run by the interpreting process."""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock

import torch
from exact_cases import built, same

from opspec.emit.configure import SMALL
from opspec.runtime import copying
from opspec.runtime.calls import Call

CASES: dict[str, Callable[[], None]] = {}
PRODUCT = """op f[M, N, K](a: bf16[M, K], b: bf16[K, N]) -> c: bf16[M, N] {
  kernel k { c[m, n] = sum[k](a[m, k] * b[k, n]) }
}
"""


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


def values(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randint(-8, 8, shape).to(dtype)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8)


def copied(*tensors: torch.Tensor, launches: int = 1) -> tuple[torch.Tensor, ...]:
    """Copies, checked: the content, 0 behind it and rows that a descriptor takes, by so many launches."""
    call = Call(torch.device("cpu"), list(tensors), recording=False)
    with mock.patch.object(Call, "start", autospec=True, side_effect=Call.start) as start:
        found = copying.all_aligned_rows(call, *tensors)
    assert start.call_count == launches, start.call_count
    assert len(found) == len(tensors)
    for x, y in zip(tensors, found, strict=True):
        assert y.dtype == x.dtype
        assert y.shape[:-1] == x.shape[:-1]
        assert y.stride(-2) * y.element_size() % 16 == 0
        assert torch.equal(bits(y[..., : x.shape[-1]]), bits(x))
        assert not bits(y[..., x.shape[-1] :]).any()
    return found


@case
def several_tensors_take_one_launch() -> None:
    tensors = [values(5, 33), values(3, 77), values(2, 5), values(4, 1)]
    for many in (1, 2, 3, 4):
        copied(*tensors[:many])
    copied(*tensors, values(6, 9), launches=2)


@case
def what_is_aligned_stays_where_it_is() -> None:
    odd, even = values(5, 33), values(5, 32)
    found = copied(even, odd)
    assert found[0] is even
    assert found[1] is not odd
    assert copied(even, launches=0) == (even,)
    assert copying.aligned_rows(Call(torch.device("cpu"), [even]), even) is even


@case
def rows_of_any_stride_begin_anywhere() -> None:
    x = values(9, 41)
    copied(x[:, 1:], x[::2, 3:8], x[1:, :40], x[:1].expand(3, 41))


@case
def long_rows_are_whole_lines_of_memory() -> None:
    (y,) = copied(values(2, 4099))
    assert y.shape == (2, 4160)
    (y,) = copied(values(2, 99))
    assert y.shape == (2, 104)


@case
def tensors_without_rows_have_no_programs() -> None:
    copied(values(0, 33))
    copied(values(0, 33), values(3, 33))
    copied(values(3, 33), values(0, 33), values(2, 7))


@case
def leading_axes_are_joined_where_there_is_no_gap() -> None:
    x = values(2, 3, 4, 11)
    copied(x, x.permute(2, 0, 1, 3), x[:, 1:], values(2, 2, 1, 3, 5))
    copied(x.permute(0, 2, 1, 3), values(4, 9))
    copied(values(2, 3, 2, 2, 5).permute(3, 1, 2, 0, 4))


@case
def elements_of_any_width_are_copied() -> None:
    f8 = values(3, 21).to(torch.float8_e4m3fn)
    copied(f8, values(4, 19, dtype=torch.int8))
    copied(values(3, 21, dtype=torch.float32), f8, values(2, 3, dtype=torch.float16))
    wild = torch.tensor([[float("nan"), float("inf"), -0.0]], dtype=torch.bfloat16)
    copied(wild)


@case
def a_product_of_copies_has_the_same_bits() -> None:
    m = built(PRODUCT, SMALL)
    for rows, columns, depth in ((33, 31, 29), (17, 40, 33), (40, 19, 32), (33, 31, 0)):
        a, b = torch.randn(rows, depth).bfloat16(), torch.randn(depth, columns).bfloat16()
        found = m.f(a, b)
        with mock.patch.object(copying, "copies_pay", lambda *_, **__: False):
            again = built(PRODUCT, SMALL).f(a, b)
        assert torch.equal(bits(found), bits(again))
        whole = values(rows, depth), values(depth, columns)
        same(m.f(*whole), (whole[0].float() @ whole[1].float()).bfloat16(), 1 / 128)
