"""The numbers of the mission and of the counting cases, exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy

MiB = 2**20


def value(answer):
    assert answer.value is not None, answer.to_text()
    return answer.value


def test_decode_flops_and_bytes(ask):
    at = {"workload": "decode_8k"}
    assert (
        value(ask("decode", "flops.tensor[s]", **at))
        == value(ask("decode", "flops.tensor[o]", **at))
        == 536_870_912
    )
    assert value(ask("decode", "flops.tensor", **at)) == 1_073_741_824
    assert value(ask("decode", "bytes[k] + bytes[v]", **at)) == 2**30
    assert value(ask("decode", "bytes[q] + bytes[o]", **at)) == 131_072


def test_decode_intensity(ask):
    at = {"workload": "decode_8k"}
    assert value(ask("decode", "flops.tensor / (bytes[k] + bytes[v])", **at)) == 1
    assert ask("decode", "ai.tensor == 8192 / 8193", **at).word == "true"
    assert 1.01 < value(ask("decode", "ai", **at)) < 1.02
    assert ask("decode", "ai.tensor").symbolic == "Hq * T / (Hkv * T + Hq)"
    assert ask("decode", "bound on h200", **at).word == "memory"


def test_no_batch_makes_decode_compute_bound(ask):
    answer = ask("decode", "solve(ai.tensor == ridge on h100, B)")
    assert answer.word == "never"
    assert answer.notes[0] == "never, because B cancels"


def test_group_size_that_makes_decode_compute_bound(ask):
    answer = ask("decode", "solve(ai.tensor == 295.4, G)")
    T = sympy.Symbol("T", integer=True, nonnegative=True)
    R = sympy.Rational("295.4")
    assert sympy.cancel(answer.form - R * T / (T - R)) == 0
    assert answer.notes[0] == "exists only where 5*T > 1477"
    at = {"settings": {"T": 8192}}
    assert value(ask("decode", "solve(ai.tensor == 295.4, G)", **at)) == pytest.approx(306.4, abs=0.1)
    assert ask("decode", "solve(ai.tensor == 295.4, G)", **at).notes == ("first integer: G = 307",)
    assert value(ask("decode", "solve(ai.tensor == ridge on h200, G)", **at)) == pytest.approx(
        211.45, abs=0.05
    )
    f8 = {"op": "decode_f8", **at}
    assert value(ask("decode", "solve(ai.tensor == 295.4, G)", **f8)) == pytest.approx(153.2, abs=0.05)
    assert value(ask("decode", "solve(ai.tensor == ridge on h200, G)", **f8)) == pytest.approx(
        105.7, abs=0.05
    )


def test_group_size_for_a_context_shorter_than_the_ridge_is_never(ask):
    answer = ask("decode", "solve(ai.tensor == 295.4, G)", settings={"T": 200})
    assert answer.word == "never"


def test_decode_limit_and_sensitivity(ask):
    assert ask("decode", "limit(ai.tensor, T -> oo)").symbolic == "Hq / Hkv"
    slope = ask("decode", "diff(ai.tensor, T)")
    G = Fraction(8)
    at = {
        s: v for s in slope.form.free_symbols for n, v in (("Hq", 32), ("Hkv", 4), ("T", 100)) if s.name == n
    }
    assert slope.form.subs(at) == sympy.Rational(G.numerator**2, (G.numerator + 100) ** 2)


def test_decode_floor_at_a_given_bandwidth(ask):
    at = {"workload": "decode_8k"}
    assert value(ask("decode", "(bytes[k] + bytes[v]) / 2.5 TB/s", **at)) == pytest.approx(
        0.42950e-3, abs=5e-9
    )
    assert value(ask("decode", "bytes / 2.5 TB/s", **at)) == pytest.approx(0.42955e-3, abs=5e-9)
    assert value(ask("decode", "(bytes[k] + bytes[v]) / 0.55 ms", **at)) == pytest.approx(1.9523e12, rel=1e-4)


def test_scales_of_quantised_caches(ask):
    at = {"workload": "decode_8k_i8", "op": "decode_scaled"}
    assert value(ask("decode", "bytes[k_scale] + bytes[v_scale]", **at)) == 8 * MiB
    assert value(ask("decode", "ai.tensor", **at)) == pytest.approx(1.969, abs=5e-4)


def test_latent_block_flops(ask):
    at = {"workload": "video"}
    spec = "latent_block"
    attention = value(ask(spec, "flops.tensor[s] + flops.tensor[o]", **at))
    projections = value(
        ask(spec, "flops.tensor[q] + flops.tensor[k] + flops.tensor[v] + flops.tensor[y]", **at)
    )
    assert attention == projections == 274_877_906_944
    assert value(ask(spec, "flops.tensor", **at)) == 549_755_813_888
    crossing = ask(
        spec,
        "solve(flops.tensor[s] + flops.tensor[o]"
        " == flops.tensor[q] + flops.tensor[k] + flops.tensor[v] + flops.tensor[y], L)",
    )
    assert crossing.symbolic == "2 * D * H"


@pytest.mark.parametrize(
    ("boundary", "mebibytes", "intensity"),
    [("", 136, 3855), ("three", 648, 809), ("naive", 8840, 59.3), ("apart", 8968, 58.46)],
)
def test_latent_block_over_boundaries(ask, boundary: str, mebibytes: int, intensity: float):
    at = {"workload": "video", "boundary": boundary}
    assert value(ask("latent_block", "bytes", **at)) == mebibytes * MiB
    assert value(ask("latent_block", "ai.tensor", **at)) == pytest.approx(intensity, rel=1e-3)


def test_naive_boundary_crosses_the_ridge(ask):
    for machine in ("h100", "h200", "a100", "b200"):
        below = ask("latent_block", f"ai.tensor < ridge on {machine}", workload="video", boundary="naive")
        above = ask("latent_block", f"ai.tensor > ridge on {machine}", workload="video", boundary="three")
        assert (below.word, above.word) == ("true", "true")


def test_input_and_score_matrix(ask):
    assert value(ask("latent_block", "bytes[x]", workload="video")) == 64 * MiB
    assert value(ask("latent_block", "bytes.write[s]", workload="video", boundary="naive")) == 2 * 2**30


def test_exponentials_are_a_roof_of_their_own(ask):
    at = {"workload": "video", "boundary": "three"}
    assert value(ask("latent_block", "flops.sfu.exp", **at)) == 2**30


@pytest.mark.parametrize(("machine", "ratio"), [("h100", 1.0), ("b200", 0.5)])
def test_tensor_time_beside_exponential_time(op_of, machine: str, ratio: float):
    from opspec.analysis.costs import cost
    from opspec.analysis.forms import evaluate
    from opspec.analysis.machine import load
    from opspec.analysis.roofline import exact

    found = load(machine)
    attend = next(
        b for b in cost(op_of("latent_block", "latent_block")).boundaries["three"] if b.name == "attend"
    )
    env = {"B": 16, "L": 2048, "H": 16, "D": 64}
    tensor = sum(evaluate(t.count, env) for t in attend.flops if t.unit == "tensor") / exact(
        found.tensor["bf16"]
    )
    exp = sum(evaluate(t.count, env) for t in attend.flops if t.op == "exp") / exact(found.sfu)
    assert float(tensor / exp) == pytest.approx(ratio, rel=3e-3)


def test_bound_can_be_the_exponentials(ask):
    assert ask("latent_block", "bound on b200", workload="video", boundary="three").word == "sfu"


def test_compressed_tokens(ask):
    at = {"workload": "compressed"}
    assert value(ask("latent_block", "flops.tensor[s] + flops.tensor[o]", **at)) == pytest.approx(
        38.65e9, rel=1e-3
    )
    assert value(ask("latent_block", "flops.tensor", **at)) == pytest.approx(141.73e9, rel=1e-4)


@pytest.mark.parametrize(
    ("op", "dims", "flops"),
    [
        ("attention", {"B": 2, "Hq": 24, "Hkv": 8, "L": 100, "T": 160, "D": 64}, 196_608_000),
        ("attention", {"B": 1, "Hq": 1, "Hkv": 1, "L": 128, "T": 128, "D": 80}, 5_242_880),
        ("attention", {"B": 1, "Hq": 1, "Hkv": 1, "L": 128, "T": 128, "D": 96}, 6_291_456),
        ("attention", {"B": 1, "Hq": 1, "Hkv": 1, "L": 128, "T": 128, "D": 192}, 12_582_912),
        ("bottom_right", {"L": 100, "T": 160, "D": 64}, 2_828_800),
        ("bottom_right", {"L": 160, "T": 100, "D": 64}, 1_292_800),
        ("bottom_right", {"L": 1, "T": 1, "D": 64}, 256),
        ("bottom_right", {"L": 1, "T": 160, "D": 64}, 40_960),
        ("bottom_right", {"L": 2, "T": 5, "D": 1}, 4 * 9),
        ("top_left", {"L": 2, "T": 5, "D": 1}, 4 * 3),
        ("top_left", {"L": 100, "T": 160, "D": 64}, 4 * 64 * 5050),
        ("depthwise", {"G": 32, "O": 2, "H": 16, "W": 16, "R": 3}, 294_912),
        ("matmul", {"M": 64, "N": 64, "K": 64}, 524_288),
        ("matmul", {"M": 5, "N": 9, "K": 0}, 0),
        ("matmul", {"M": 8192, "N": 8192, "K": 8192}, 1_099_511_627_776),
    ],
)
def test_contractions_of_the_cases(ask, op: str, dims: dict[str, int], flops: int):
    assert value(ask("cases", "flops.tensor", op, settings=dims)) == flops


def test_bias_and_broadcast_batch(ask):
    assert value(ask("cases", "flops", "linear", settings={"M": 6, "K": 10, "N": 14})) == 1764
    dims = {"A": 4, "B": 5, "M": 6, "K": 16, "N": 3}
    assert value(ask("cases", "flops", "broadcast_matmul", settings=dims)) == 11520


def test_broadcast_operand_and_empty_contraction_bytes(ask):
    assert value(ask("cases", "bytes", "row_scale", settings={"M": 4096, "H": 1024})) == 16_779_264
    assert value(ask("cases", "bytes", "matmul", settings={"M": 5, "N": 9, "K": 0})) == 90


def test_grouped_cache_bytes(ask):
    at = {"workload": "gqa_4k"}
    assert value(ask("decode", "bytes[k] + bytes[v]", **at)) == 67_108_864
    assert value(ask("decode", "bytes", **at)) == 67_174_400
    assert value(ask("decode", "flops.tensor", **at)) == 268_435_456
    assert value(ask("decode", "ai.tensor", **at)) == pytest.approx(3.996098, abs=5e-7)


def test_time_at_a_given_peak(ask):
    at = {"op": "matmul", "settings": {"M": 64, "N": 64, "K": 64}}
    assert value(ask("cases", "flops / 100 TFLOP/s", **at)) == pytest.approx(5.24288e-9)
    assert value(ask("cases", "6 GiB / 2 ms", **at)) == pytest.approx(3221.225e9, rel=1e-6)


def test_roof_of_a_large_product(ask):
    at = {"op": "matmul", "settings": {"M": 8192, "N": 8192, "K": 8192}}
    assert value(ask("cases", "flops / peak on h100", **at)) == pytest.approx(1111.29e-6, rel=1e-5)
