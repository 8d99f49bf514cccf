"""The gate before the clock: tolerance, poison, shapes, non-finite values, peers."""

from __future__ import annotations

import math

import pytest
import torch
import torch._inductor.config as inductor_config

from opspec.runtime.bench.check import allowance, check_output, close_enough, poisoned
from opspec.runtime.bench.model import Tolerance


def of(out, ref, **tolerance):
    return check_output("y", out, ref, Tolerance(**tolerance))


def test_correctly_rounded_output_passes_and_two_ulps_do_not():
    ref = torch.randn(1000, dtype=torch.float64)
    out = ref.to(torch.bfloat16)
    assert of(out, ref).passed
    off = out.clone()
    off[7] = (off.view(torch.int16)[7] + 3).view(torch.bfloat16)
    found = of(off, ref)
    assert not found.passed
    assert found.matched == pytest.approx(0.999)
    assert found.worst_of_tolerance > 2


@pytest.mark.parametrize(
    ("dtype", "value", "ulp"),
    [
        (torch.float32, 1.0, 2.0**-23),
        (torch.bfloat16, 3.0, 2.0**-6),
        (torch.float16, 0.0, 2.0**-24),
        (torch.float8_e4m3fn, 448.0, 32.0),
        (torch.float8_e5m2, 1.5, 0.25),
    ],
)
def test_one_unit_in_the_last_place(dtype, value, ulp):
    assert float(allowance(dtype, torch.tensor([value], dtype=torch.float64), 0.0, Tolerance())) == ulp


def test_terms_of_accumulation_widen_the_tolerance_by_the_scale():
    want = torch.tensor([1.0], dtype=torch.float64)
    plain, wide = (float(allowance(torch.float32, want, 8.0, Tolerance(terms=n))) for n in (0, 4096))
    assert wide - plain == pytest.approx(4096 * 2.0**-24 * 8)


def test_unwritten_elements_fail():
    ref = torch.ones(10, dtype=torch.float64)
    out = torch.ones(10)
    out[3] = math.nan
    assert "unwritten" in of(out, ref).reason


def test_poison_fills_fresh_memory_and_is_taken_back():
    with poisoned():
        assert torch.empty(100).isnan().all()
        assert torch.empty(4, dtype=torch.int32).eq(torch.iinfo(torch.int32).max).all()
        assert not inductor_config.deterministic
    assert not torch.are_deterministic_algorithms_enabled()


def test_all_zero_output_fails_even_where_zero_is_within_the_tolerance():
    ref = torch.full((4,), 1e-9, dtype=torch.float64)
    assert of(torch.zeros(4), ref, terms=1e20).reason == "every element is zero"
    assert of(torch.zeros(4), torch.zeros(4, dtype=torch.float64)).passed


def test_infinities_and_nans_must_stand_where_the_reference_has_them():
    ref = torch.tensor([math.inf, -math.inf, math.nan, 1.0], dtype=torch.float64)
    assert of(ref.to(torch.float32), ref).passed
    assert not of(torch.tensor([math.inf, math.inf, math.nan, 1.0]), ref).passed
    assert not of(torch.tensor([3e38, -math.inf, math.nan, 1.0]), ref).passed


def test_overflow_of_the_output_type_may_be_infinite_or_saturate():
    ref = torch.tensor([1e6, 1.0], dtype=torch.float64)
    assert of(torch.tensor([math.inf, 1.0], dtype=torch.float16), ref).passed
    assert of(torch.tensor([65504.0, 1.0], dtype=torch.float16), ref).passed
    assert not of(torch.tensor([60000.0, 1.0], dtype=torch.float16), ref).passed


def test_wrong_shape_fails():
    assert "shape" in of(torch.ones(3), torch.ones(4, dtype=torch.float64)).reason


def test_integers_are_exact_unless_codes_are_allowed():
    ref = torch.tensor([1, 2, 3], dtype=torch.int8)
    out = torch.tensor([1, 2, 4], dtype=torch.int8)
    assert not of(out, ref).passed
    assert of(out, ref, codes=1).passed


def test_empty_output_passes():
    assert of(torch.empty(0), torch.empty(0, dtype=torch.float64)).passed


def test_a_fault_that_hides_in_the_tolerance_of_each_element_shows_in_the_norm():
    ref = torch.randn(100_000, dtype=torch.float64) + 10
    off = (ref * (1 + 1e-3)).to(torch.float32)
    found = of(off, ref, terms=100_000)
    assert found.matched == 1.0
    assert not found.passed
    assert "over all elements" in found.reason
    assert of(ref.to(torch.float32), ref, terms=100_000).passed


def test_subnormal_outputs_are_measured_by_their_own_spacing():
    ref = torch.rand(10_000, dtype=torch.float64) * 1e-6
    assert of(ref.to(torch.float16), ref).passed


def test_a_peer_is_judged_by_its_norm_error_at_its_output_type():
    ref = torch.randn(1000, dtype=torch.float64)
    rough = (ref * (1 + 0.01 * torch.randn(1000, dtype=torch.float64))).to(torch.bfloat16)
    wrong = (ref * 1.1).to(torch.bfloat16)
    assert not of(rough, ref).passed
    assert close_enough((of(rough, ref),), Tolerance())
    assert not close_enough((of(wrong, ref),), Tolerance())
    assert not close_enough((of((ref * 1.001).to(torch.float32), ref),), Tolerance())


def test_codes_may_move_over_a_tie_but_only_as_many_as_roundings_carry():
    ref = torch.arange(100_000) % 200 - 100
    out = ref.clone()
    out[:50] += 1
    assert of(out.to(torch.int8), ref, codes=1, terms=4096).passed
    assert not of(out.to(torch.int8), ref, terms=4096).passed
    out[:20_000] = ref[:20_000] + 1
    assert "codes differ" in of(out.to(torch.int8), ref, codes=1, terms=4096).reason
    out[:3] = ref[:3] + 2
    assert "outside" in of(out.to(torch.int8), ref, codes=1, terms=4096).reason


def test_of_two_codes_in_a_byte_each_is_compared():
    ref = torch.tensor([0x10, 0x2F] * 8, dtype=torch.uint8)
    out = ref.clone()
    out[0] = 0x20  # the upper code is 2 in place of 1
    found = of(out, ref, codes=1)
    assert found.passed
    assert found.max_error == 1
