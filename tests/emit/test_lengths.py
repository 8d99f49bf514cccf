"""Which kernels take rows of any length in one binary, and what such a kernel says."""

from __future__ import annotations

import re
import textwrap
import types

import pytest

from opspec.driver.targets import limits
from opspec.emit.choice import SMALL, Sizes
from opspec.emit.package import build_package
from opspec.frontend import load_text

ROW = "y[m, n] = softmax[n](x[m, n])"
WHOLE_AND_STREAMED = {
    "norm": "op f[M, N](x: f32[M, N], w: f32[N]) -> y: f32[M, N] { kernel k { y[m, n] = rmsnorm[n](x[m, n], 0) * w[n] } }",
    "several axes": "op f[A, B, N](x: f32[A, B, N]) -> y: f32[A, B] { kernel k { y[a, b] = max[n](x[a, b, n]) } }",
    "scan": "op f[M, N](x: f32[M, N]) -> y: f32[M, N] { kernel k { y[m, n] = scan_sum[n](x[m, n]) } }",
    "half": "op f[M, N](x: f32[M, 2 * N]) -> y: f32[M] { kernel k { y[m] = sum[n | n < 2 * N](x[m, n]) } }",
}
OTHERS = {
    "along no memory": "op f[M, N](x: f32[M, N]) -> y: f32[N] { kernel k { y[n] = max[m](x[m, n]) } }",
    "scanned across memory": "op f[T, C](x: f32[T, C]) -> y: f32[T, C] { kernel k { y[t, c] = scan_sum[t](x[t, c]) } }",
    "of one length": "op f[M](x: f32[M, 64]) -> y: f32[M, 64] { kernel k { y[m, n] = softmax[n](x[m, n]) } }",
    "without a fold": "op f[M, N](x: f32[M, N]) -> y: f32[M, N] { kernel k { y[m, n] = 2 * x[m, n] } }",
    "of a product": "op f[M, N, K](a: bf16[M, K], b: bf16[K, N]) -> c: bf16[M, N] { kernel k { c[m, n] = sum[k](a[m, k] * b[k, n]) } }",
}


def launch_of(text: str, sizes: Sizes = Sizes()):  # noqa: B008 - frozen
    module = load_text(text, "spec.op")
    package = build_package(module, "spec.op", limits(), sizes)
    return package, package.launches["f", ""][0]


@pytest.mark.parametrize("text", WHOLE_AND_STREAMED.values(), ids=WHOLE_AND_STREAMED)
def test_rows_along_memory_have_one_kernel_for_any_length(text: str):
    package, launch = launch_of(text)
    assert launch.lengths is not None
    own = launch.lengths.text
    assert own.name == "_f_k"
    assert package.files["kernel.py"].count(f"kernel = {own.name}\n") >= 1


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_others_have_none(text: str):
    assert launch_of(text)[1].lengths is None


def test_what_is_read_in_several_sweeps_is_held_whole_further():
    twice = launch_of(WHOLE_AND_STREAMED["norm"])[1].lengths.lengths
    once = launch_of(WHOLE_AND_STREAMED["several axes"])[1].lengths.lengths
    assert (twice.longest, once.longest) == (8192, 4096)
    # in a stream of its own, rows of odd length begin where a wide load can
    assert [(c.odd, c.steps, c.warps) for c in once.classes][:2] == [(True, 0, 4), (True, 1, 4)]
    assert [c.warps for c in twice.classes] == [4, 4, 8]


@pytest.mark.parametrize("sizes", [Sizes(), SMALL], ids=["usual", "small"])
@pytest.mark.parametrize("text", list(WHOLE_AND_STREAMED.values())[:3], ids=list(WHOLE_AND_STREAMED)[:3])
def test_each_length_meets_one_branch_with_the_rows_that_the_host_counts(text: str, sizes: Sizes):
    from opspec.runtime import launch as runtime

    launch = launch_of(text, sizes)[1]
    own, lines = launch.lengths.lengths, "\n".join(launch.lengths.text.lines)
    rows = re.search(r"BLOCK_\w=(1 \+ .*),", lines)[1]
    body = re.sub(
        r"_f_k_(resident|streamed)\([^)]*?(\(.*\)[^)]*?)*?\)(?=\n|$)",
        "met.append(power if '\\1' == 'resident' else None)",
        lines,
    )
    tl = types.SimpleNamespace(static_range=range, cast=lambda x, _: int(x), int32=None)
    host = "\n".join(own.host_lines("even"))
    for n in (*range(18), 63, 64, 65, 128, 129, 4096, 4097, 8191, 8192, 8193, 8208, 100000):
        given = {
            "launch": runtime,
            "N": n,
            "width": 4,
            "even_odd": "odd",
            "even": "even",
            "tl": tl,
            "met": [],
        } | {own.streamed: "long"}
        exec(host, given)
        given |= {"FIRST": 0, "LAST": 0} | given["options"]
        exec(textwrap.dedent(body), given)
        (power,) = given["met"]
        assert given[own.rows] == (1 if power is None else eval(rows, {**given, "power": power}))
        assert power is None or n <= 1 << power
        assert power in (None, given["FIRST"]) or n > 1 << power - 1
        assert power is not None or n > (1 << given["LAST"]) // 2
        assert (given["kernel"] == "odd") == (n % sizes.aligned != 0)


def test_the_kernel_for_odd_rows_is_specialised_for_no_length():
    text = launch_of(WHOLE_AND_STREAMED["norm"])[0].files["kernel.py"]
    assert (
        '_f_k_odd = triton.jit(do_not_specialize=["M", "N", "x_stride_M", "y_stride_M"])(_f_k.fn)\n' in text
    )


def test_a_dim_may_be_called_as_the_kernel_counts_tiles():
    _, launch = launch_of(
        "op f[M, power](x: f32[M, power]) -> y: f32[M] { kernel k { y[m] = sum[n | n < power](x[m, n]) } }"
    )
    assert "for power_ in " in "\n".join(launch.lengths.text.lines)


STATED = (
    "op f[M, N](x: f32[M, N], w: f32[N]) -> y: f32[M, N] {{ kernel k {{ y[m, n] = rmsnorm[n](x[m, n], 0) * w[n] }} }}\n"
    "workload a for f {{ M = 64, N = {} }}\n"
)


def test_a_stated_length_that_fills_its_tile_needs_no_mask():
    package, launch = launch_of(STATED.format(8192))
    kernel = package.files["kernel.py"]
    assert (launch.lengths.lengths.own, launch.lengths.lengths.exact) == ((), (8192,))
    assert "    if N != 8192 and launch.chosen(tuned" in kernel
    assert 'options["FULL"] = options["BLOCK_N"] == N and options["BLOCK_M"] == 1\n' in kernel
    assert "mask = unless_full((m[:, None] < M) & (n[None, :] < N), FULL)" in kernel
    assert "FULL=False" in "\n".join(launch.lengths.text.lines)


@pytest.mark.parametrize("length", [5120, 256])
def test_other_stated_lengths_keep_their_masks(length: int):
    package, launch = launch_of(STATED.format(length))
    assert launch.lengths.lengths.exact == ()
    assert "FULL" not in package.files["kernel.py"]


def test_a_length_that_shares_its_tile_with_another_has_no_binary_without_masks():
    _, launch = launch_of(STATED.format(8192) + "workload b for f { M = 64, N = 5120 }\n")
    assert (launch.lengths.lengths.own, launch.lengths.lengths.exact) == ((8192,), ())


def test_lanes_of_odd_rows_have_one_element_a_step_and_others_a_wide_load():
    kernel = launch_of(WHOLE_AND_STREAMED["norm"])[0].files["kernel.py"]
    assert "n = (n_start + lane_places(BLOCK_N, STEPS, WIDE)).to(INDEX)" in kernel
    odd, short, long = (re.search(r'"WIDE": (.*),', part)[1] for part in kernel.split("kernel = ")[1:4])
    assert (odd, short, long) == ("1", "1", "16 // width")


def test_rows_that_are_swept_again_leave_room_for_three_programs():
    twice, once = (launch_of(WHOLE_AND_STREAMED[name])[0] for name in ("norm", "several axes"))
    assert '"maxnreg": 80,' in twice.files["kernel.py"]
    assert "maxnreg" not in once.files["kernel.py"]


@pytest.mark.parametrize(
    ("y", "value", "odd"),
    [
        ("f32[M]", "y[m] = logsumexp[n](x[m, n])", True),
        ("f32[M]", "y[m] = sum[n | x[m, n] > 0](x[m, n])", True),
        ("f32[M]", "y[m] = sum[n](x[m, n] * z[m, n])", False),  # two rows, each with its own first wide load
        ("f32[M]", "y[m] = sum[n | n < M](x[m, n])", False),
        ("f32[M, N]", "y[m, n] = softmax[n](x[m, n])", False),
    ],
    ids=["one", "by value", "two", "by place", "stored"],
)
def test_a_stream_of_one_load_takes_rows_of_odd_length_by_wide_loads(y: str, value: str, odd: bool):
    text = f"op f[M, N](x: f32[M, N], z: f32[M, N]) -> y: {y} {{ kernel k {{ {value} }} }}"
    kernel = launch_of(text.replace(", z: f32[M, N]", "") if "z[" not in value else text)[0].files[
        "kernel.py"
    ]
    assert ('"ODD": True' in kernel) is odd
    assert kernel.count("load_row(x_row") == odd
