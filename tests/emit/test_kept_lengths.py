"""Kept rows of any length: which binaries they take, and which branch a length meets."""

from __future__ import annotations

import re
import textwrap
import types

import pytest
from checking import compiler

from opspec.driver.targets import limits
from opspec.emit.choice import SMALL, Sizes
from opspec.emit.package import build_package
from opspec.frontend import load_text

NORM = (
    "op f[N, K, S](x: bf16[N, K, S], w: f32[K]) -> y: bf16[N, K, S] {\n"
    "  kernel k { y[n, k, s] = layernorm[k, s](x[n, k, s], 1e-5) * w[k] }\n}\n"
    "workload w for f { N = 256, K = 10, S = 4096 }\n"
)
LENGTHS = (*range(1, 20), 64, 500, 512, 513, 528, 4080, 4096, 4097, 4112, 5000, 65536)


def launch_of(sizes: Sizes = Sizes()):  # noqa: B008 - frozen
    return build_package(load_text(NORM), "spec.op", limits(), sizes)


@pytest.mark.parametrize(("others", "most"), [(lambda n: True, 3), (lambda n: n % 16, 1)], ids=["all", "odd"])
def test_rows_of_any_length_take_three_binaries(others, most: int):
    shapes = [{"N": 256, "K": 10, "S": n} for n in LENGTHS if others(n)]
    assert compiler().ask({"text": NORM, "binaries": shapes}) == {"binaries": most}


@pytest.mark.parametrize("sizes", [Sizes(), SMALL], ids=["usual", "small"])
def test_each_length_meets_one_branch_that_holds_it(sizes: Sizes):
    from opspec.runtime import launch as runtime

    launch = launch_of(sizes).launches["f", ""][0]
    own, lines = launch.lengths.lengths, "\n".join(launch.lengths.text.lines)
    body = re.sub(
        r"_f_k_(kept|streamed\d)\([^)]*?(\(.*\)[^)]*?)*?FULL=(\w+)[^)]*\)(?=\n|$)",
        "met.append((power, \\3))",
        lines,
    )
    body = re.sub(r"_f_k_streamed\d\([^)]*\)(?=\n|$)", "met.append((None, False))", body)
    tl = types.SimpleNamespace(static_range=range, cast=lambda x, _: int(x), int32=None)
    host = "\n".join(own.host_lines("even"))
    for n in LENGTHS:
        given = {"launch": runtime, "S": n, "K": 10, "width": 2, "even_odd": "odd", "even": "even", "tl": tl}
        given |= {own.streamed: "long", "met": []}
        exec(host, given)
        given |= given["options"]
        if given["kernel"] == "long":  # nothing shorter is left to stream
            assert n > sizes.chunk
            continue
        exec(textwrap.dedent(body), given)
        ((power, full),) = given["met"]
        assert (given["kernel"] == "odd") == (n % sizes.aligned != 0)
        assert power is None or n <= 1 << power
        assert power is not None or n > min(4096, sizes.chunk)
        assert full == (power is not None and n == 1 << power and given["FULL"])


def test_a_kept_row_is_loaded_once_and_leaves_l2_to_others():
    kernel = launch_of().files["kernel.py"].partition("def _f_k_kept(")[2].partition("\n@triton")[0]
    assert kernel.count('eviction_policy="evict_first"') == 2  # of x and of y, and w is read by many
