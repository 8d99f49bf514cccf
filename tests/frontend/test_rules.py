"""The rules of what a spec means, each on the smallest spec that shows it."""

import pytest

from opspec.diagnostics import Failure
from opspec.frontend import load_text, text_with_warnings
from opspec.ir.program import Define, Op
from opspec.ir.show import show_define
from opspec.ir.values import Cast, Extent, Literal, Read, Reduce, walk
from opspec.ir.verify import verify


def op_of(text: str) -> Op:
    op = load_text(text).ops[0]
    verify(op)
    return op


def body(
    *lines: str, head: str = "op f[M, N](x: f32[M, N], w: f32[N]) -> y: f32[M, N]", extra: str = ""
) -> Op:
    inner = "\n".join(f"    {line}" for line in lines)
    return op_of(f"{head} {{\n  {extra}\n  kernel k {{\n{inner}\n  }}\n}}\n")


def shown(op: Op) -> list[str]:
    return [show_define(d) for d in op.defines]


def codes(text: str) -> list[str]:
    with pytest.raises(Failure) as e:
        load_text(text)
    return [d.code.code for d in e.value.diagnostics]


def named(op: Op, name: str) -> Define:
    return next(d for d in op.defines if d.name == name)


# 1 -------------------------------------------------------------------------------
def test_an_index_takes_its_extent_from_the_axes_it_stands_bare_on():
    op = body("y[m, n] = x[m, n]")
    assert [(r.index, str(r.upper)) for r in named(op, "y").ranges] == [("m", "M"), ("n", "N")]


def test_equal_extents_may_be_written_differently():
    head = "op f[D](a: f32[D], b: f32[2 * (D // 2)]) -> y: f32[D]"
    body("y[d] = a[d] + b[d]", head=head, extra="require D % 2 == 0")
    assert "OP204" in codes(f"{head} {{ kernel k {{ y[d] = a[d] + b[d] }} }}")


def test_a_for_condition_gives_or_intersects_the_extent():
    head = "op f[N, R](x: f32[N + R], w: f32[R]) -> y: f32[N]"
    for line in (
        "y[i] = sum[r | r < R](x[i + r])",
        "y[i] = sum[r](x[i + r]) for r < R",
        "y[i] = sum[r](x[i + r] * w[r])",
    ):
        root = named(body(line, head=head), "y").value
        assert isinstance(root, Reduce)
        assert str(root.ranges[0].upper) == "R"
    op = body("s[i] = x[i] for i < R", "y[i] = s[i] else 0", head="op f[N, R](x: f32[N + R]) -> y: f32[R]")
    assert str(named(op, "s").ranges[0].upper) == "R"


def test_an_interval_gives_both_ends():
    op = body("s[m, n] = x[m, n] for n in 1..N", "y[m, n] = s[m, n] else 0")
    r = named(op, "s").ranges[1]
    assert (str(r.lower), str(r.upper)) == ("1", "N")


def test_a_triangular_index_without_axis_reaches_as_far_as_its_condition():
    op = body("s[m] = sum[j | j <= m](1.0) for m < M", "y[m, n] = x[m, n] * s[m]")
    assert "s[m < M] = sum[j < M | -j + m >= 0](1.0:f32)" in shown(op)


# 2 -------------------------------------------------------------------------------
def test_reductions_and_pointwise_statements_inherit_domains():
    op = body(
        "s[m, n] = x[m, n] for n <= m",
        "e[m, n] = exp(s[m, n])",
        "t[m] = sum[n](e[m, n])",
        "y[m, n] = x[m, n] / t[m]",
    )
    assert [str(c) for c in named(op, "e").constraints] == [["m - n", " 0"][0]]
    root = named(op, "t").value
    assert isinstance(root, Reduce) and [str(c) for c in root.constraints] == ["m - n"]


def test_a_guarded_or_defaulted_read_inherits_nothing():
    op = body("s[m, n] = x[m, n] for n <= m", "y[m, n] = where(n <= m, s[m, n], 0)")
    assert named(op, "y").constraints == ()
    op = body("s[m, n] = x[m, n] for n <= m", "y[m, n] = s[m, n] else 0")
    assert named(op, "y").constraints == ()


def test_the_for_clause_of_a_statement_does_not_cut_its_inner_reductions():
    op = body("s[m, n] = softmax[n](x[m, n]) for n <= m", "y[m, n] = s[m, n] else 0")
    assert all(d.value.constraints == () for d in op.defines if isinstance(d.value, Reduce))
    assert named(op, "s.e.1").constraints == ()


def test_nor_does_one_on_dims_alone():
    op = body("s[m, n] = softmax[n](x[m, n]) for n < 4", "y[m, n] = s[m, n] else 0")
    maximum = named(op, "s.m.1").value
    assert isinstance(maximum, Reduce) and str(maximum.ranges[0].upper) == "N"
    assert [str(c) for c in named(op, "s").constraints] == ["-n + 3"]


def test_a_read_with_an_else_may_leave_its_axis():
    head = "op f[N, P](x: f32[N]) -> y: f32[N + P]"
    op = body("y[i] = x[i] else 0", head=head)
    assert str(named(op, "y").ranges[0].upper) == "N + P"
    assert "OP204" in codes(f"{head} {{ kernel k {{ y[i] = x[i] }} }}")


def test_a_boolean_tensor_is_a_domain():
    op = body(
        "s[m, n] = x[m, n] for keep[m, n]",
        "p[m, n] = softmax[n](s[m, n])",
        "y[m, n] = p[m, n] else 0",
        head="op f[M, N](x: f32[M, N], keep: bool[M, N]) -> y: f32[M, N]",
    )
    assert [str(c) for c in named(op, "p").constraints] == ["keep[m, n] - 1"]
    assert not any("keep" in str(c) for c in named(op, "p.m.1").constraints)


def test_a_boolean_read_guards_its_domain():
    op = body(
        "s[m, n] = x[m, n] for keep[m, n]",
        "y[m, n] = where(keep[m, n], s[m, n], 0) + where(not keep[m, n], 0, s[m, n])",
        head="op f[M, N](x: f32[M, N], keep: bool[M, N]) -> y: f32[M, N]",
    )
    assert named(op, "y").constraints == ()


# 3 -------------------------------------------------------------------------------
def test_reads_are_proven_defaulted_or_guarded():
    stencil = "op f[N](x: f32[N]) -> y: f32[N]"
    body("y[i] = x[i - 1] else 0 + x[i + 1] else 0", head=stencil)
    body("y[i] = where(i >= 1 and i + 1 < N, x[i - 1] + x[i + 1], 0)", head=stencil)
    body("y[i] = where(i < 1, 0, x[i - 1])", head=stencil)
    body("y[i] = where(not (i < 1), x[i - 1], 0)", head=stencil)
    body("y[i] = x[(i - 3) % N]", head=stencil)
    body("y[i] = x[N - 1 - i]", head=stencil)
    body("y[i] = x[min(i + 1, N - 1)] + x[max(i - 1, 0)]", head=stencil)
    body("y[i] = x[i // 2]", head=stencil)
    assert codes(f"{stencil} {{ kernel k {{ y[i] = x[2 * i] }} }}") == ["OP301"]


def test_grouped_heads_are_in_range_when_they_divide():
    head = "op f[Hq, Hkv](x: f32[Hkv]) -> y: f32[Hq]"
    body("y[h] = x[h // G]", head=head, extra="require Hq % Hkv == 0\n  let G = Hq // Hkv")


def test_pages_split_without_proof_of_the_data():
    op = body(
        "y[b, t] = kv[table[b, t // P], t % P]",
        head="op f[B, T, P, S](kv: f32[S, P], table: i32[B, T // P]) -> y: f32[B, T]",
        extra="require T % P == 0",
    )
    assert "kv[table[b, (t // P)], (t % P)]" in shown(op)[0]


def test_an_argument_that_only_a_guard_makes_safe_is_put_back():
    op = body(
        "y[i] = where(i >= 1, sigmoid(x[i - 1] * 2) * sigmoid(x[i - 1] * 2), 0)",
        head="op f[N](x: f32[N]) -> y: f32[N]",
    )
    assert [d.name for d in op.defines] == ["y"]


def test_a_guarded_reduction_takes_the_guard_into_its_domain():
    op = body("y[i] = where(i >= 1, sum[j](x[i - 1] * x[j]), 0)", head="op f[N](x: f32[N]) -> y: f32[N]")
    assert [str(c) for c in named(op, "y.sum.1").constraints] == ["i - 1"]


# 4 -------------------------------------------------------------------------------
def test_an_empty_maximum_needs_an_identity_only_where_a_condition_can_empty_it():
    square = "op f[N](x: f32[N]) -> y: f32[N]"
    body("y[i] = max[j](x[j]) + x[i]", head=square)
    body("y[i] = max[j | j <= i](x[j])", head=square)
    body("y[i] = max[j | j < i](x[j]) else -inf", head=square)
    assert codes(f"{square} {{ kernel k {{ y[i] = max[j | j < i](x[j]) }} }}") == ["OP302"]
    head = "op f[B, T](x: f32[B, T], len: i32[B]) -> y: f32[B]"
    body("y[b] = max[t | t < len[b]](x[b, t])", head=head, extra="assume 1 <= len[b] <= T")


def test_softmax_and_logsumexp_declare_theirs():
    op = body("y[m, n] = softmax[n](x[m, n]) + logsumexp[n](x[m, n])")
    maxima = [d.value for d in op.defines if isinstance(d.value, Reduce) and d.value.monoid == "max"]
    assert len(maxima) == 1  # the same maximum, named once
    for m in maxima:
        assert isinstance(m.empty, Literal) and m.empty.value == float("-inf")


def test_a_mean_divides_by_the_points_of_its_domain():
    tri = body("y[i] = mean[j | j <= i](x[i, j])", head="op f[N](x: f32[N, N]) -> y: f32[N]")
    assert "int(i + 1)" in shown(tri)[-1]
    ragged = body(
        "s[b, t] = x[b, t] for t < len[b]",
        "y[b] = mean[t](s[b, t])",
        head="op f[B, T](x: f32[B, T], len: i32[B]) -> y: f32[B]",
        extra="assume 0 <= len[b] <= T",
    )
    assert "int(len[b])" in shown(ragged)[-1]
    full = body("y[m, n] = x[m, n] - mean[n](x[m, n])")
    assert "int(N)" in shown(full)[-1]


def test_a_mean_over_several_indices():
    op = body(
        "y[n, g] = mean[c, h](x[n, g, c, h])", head="op f[N, G, C, H](x: f32[N, G, C, H]) -> y: f32[N, G]"
    )
    assert "int(C*H)" in shown(op)[-1]


# 6 -------------------------------------------------------------------------------
def test_an_index_parameter_binds_inside_its_arguments():
    op = body("y[m, n] = x[m, n] / sum[n](x[m, n])")
    assert "sum[n2 < N](x[m, n2])" in shown(op)[0]
    op = body("y[m, n] = softmax[n](x[m, n])")
    assert "max[n < N](x[m, n])" in shown(op)[0]


def test_bound_indices_are_renamed_away_from_those_of_the_statement():
    op = body("y[m, n] = sum[n](x[m, n])")
    root = named(op, "y").value
    assert isinstance(root, Reduce)
    assert root.ranges[0].index not in named(op, "y").indices


def test_an_index_may_be_called_like_a_tensor():
    head = "op f[A, B, K](a: f32[A, K], b: f32[B, K]) -> y: f32[A, B]"
    op = body("y[a, b] = sum[k](a[a, k] * b[b, k]) + b", head=head)
    assert "(a[a2, k] * b[b2, k])" in shown(op)[0] and "int(b2)" in shown(op)[1]
    assert set(named(op, "y").indices).isdisjoint({"a", "b"})


def test_functions_are_hygienic():
    text = "fn f(n) = sum[m | m < 4](n * m)\n"
    op = op_of(text + "op g[M, N](x: f32[M, N]) -> y: f32[M, N] {\n kernel k { y[m, n] = f(x[m, n]) }\n}")
    assert "sum[m2 < 4](" in shown(op)[0] and "x[m, n]" in shown(op)[0]


def test_derived_dims_are_substituted():
    op = op_of(
        "op f[D](x: f32[D]) -> y: f32[C] {\n  let C = D // 2\n  require D % 2 == 0\n  kernel k { y[c] = x[c + C] for c < C }\n}"
    )
    assert op.derived == (("C", op.tensors[1].extents[0]),)
    assert op.dims == ("D",)


# 7 -------------------------------------------------------------------------------
def test_segments_are_data():
    op = body(
        "y[n, f] = sum[k](x[n, k] * w[e, k, f]) for n in offs[e]..offs[e + 1]",
        head="op f[N, E, K, F](x: bf16[N, K], w: bf16[E, K, F], offs: i32[E + 1]) -> y: f32[N, F]",
    )
    assert named(op, "y").indices == ("n", "f", "e")
    assert [str(c) for c in named(op, "y").constraints] == ["n - offs[e]", "-n + offs[e + 1] - 1"]


# 8 -------------------------------------------------------------------------------
def test_storage_is_kept_and_its_absence_warned_about():
    text = (
        "op f[N](x: f32[N]) -> y: f32[N] {{\n  kernel a {{ s{}[i] = x[i] }}\n  kernel b {{ y[i] = s[i] }}\n}}"
    )
    module, warnings = text_with_warnings(text.format(": bf16"))
    assert named(module.ops[0], "s").storage.name == "bf16"
    assert warnings == ()
    assert [w.code.code for w in text_with_warnings(text.format(""))[1]] == ["OP501"]


def test_a_boundary_that_splits_a_value_off_warns_too():
    text = "op f[N](x: f32[N]) -> y: f32[N] {\n  kernel a {\n s[i] = x[i]\n y[i] = s[i]\n }\n}\n"
    assert text_with_warnings(text)[1] == ()
    warned = text_with_warnings(text + "boundary b of f { kernel one { s }  kernel two { y } }")[1]
    assert [w.code.code for w in warned] == ["OP501"]


def test_an_output_in_its_own_block_is_its_unrounded_value():
    op = body(
        "y[m, n] = x[m, n] * 2",
        "z[m] = sum[n](y[m, n])",
        head="op f[M, N](x: f32[M, N]) -> y: bf16[M, N], z: f32[M]",
    )
    root = named(op, "z").value
    assert isinstance(root, Reduce) and isinstance(root.body, Read) and root.body.name == "y"
    assert not any(isinstance(v, Cast) for v in walk(root))


# 9, 10 ----------------------------------------------------------------------------
def test_casts_name_their_mode_where_it_matters():
    op = body("y[m, n] = bf16(f8e4m3.sat(x[m, n])) + i8.wrap(round(x[m, n]))")
    modes = [(v.to.name, v.mode, v.implicit) for v in walk(named(op, "y").value) if isinstance(v, Cast)]
    assert ("f8e4m3", "sat", False) in modes and ("i8", "wrap", False) in modes
    assert ("bf16", "ieee", False) in modes and ("f32", "ieee", True) in modes


def test_using_is_kept_on_its_sum():
    op = body("y[m, n] = sum[k] using bf16 (x[m, k] * w[k])")
    root = named(op, "y").value
    assert isinstance(root, Reduce) and root.using == "bf16"


def test_a_contraction_that_stays_off_the_matrix_units_is_warned_about():
    text = "op f[M, N, K](a: {0}[M, K], b: {0}[K, N]) -> c: f32[M, N] {{\n kernel k {{ c[m, n] = sum[k]{1}(a[m, k] * b[k, n]) }}\n}}"
    assert [w.code.code for w in text_with_warnings(text.format("f32", ""))[1]] == ["OP505"]
    assert text_with_warnings(text.format("f32", " using tf32 "))[1] == ()
    assert text_with_warnings(text.format("bf16", ""))[1] == ()


@pytest.mark.parametrize(
    "body",
    [
        "sum[k](w[m, k] * e[at[m, k], d])",
        "sum[k](w[m, k] * exp(e[at[m, k], d] + s[k]))",
        "sum[k](s[k] * e[at[m, k] + k // 2, d])",
    ],
)
def test_a_product_that_no_unit_could_run_is_not_warned_about(body):
    text = f"""op f[M, K, N, D](w: f32[M, K], s: f32[K], e: f32[N, D], at: i32[M, K]) -> y: f32[M, D] {{
      require K <= N
      kernel k {{ y[m, d] = {body} }}
    }}"""
    assert text_with_warnings(text)[1] == ()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("bf16", "x[m, k] * w[k, n]"), ("f16", "x[m, k] * w[k, n]"), ("f32", "x[m, k] * w[k, 0]")],
)
def test_no_warning_where_nothing_is_lost_or_nothing_could_be_won(dtype: str, value: str):
    head = f"op f[M, N, K](x: {dtype}[M, K], w: i8[K, N]) -> c: f32[M, N] {{"
    assert (
        text_with_warnings(f"{head}\n require N >= 1\n kernel k {{ c[m, n] = sum[k]({value}) }}\n}}")[1] == ()
    )


# 11 -------------------------------------------------------------------------------
def test_inout_reads_the_old_value_before_and_the_new_one_after():
    op = body("x[i] = x[i] * 2", "y[i] = x[i] + 1", head="op f[N](inout x: f32[N]) -> y: f32[N]")
    assert shown(op)[0].startswith("x.new[i < N] = (x[i] * 2.0:f32) -> x[i]")
    assert "x.new[i]" in shown(op)[1]


def test_a_row_may_be_normalised_in_place():
    body(
        "x[m, n] = x[m, n] / sum[k](x[m, k])", "y[m] = 1", head="op f[M, N](inout x: f32[M, N]) -> y: f32[M]"
    )


def test_gathered_writes_need_the_promise():
    text = (
        "op f[B, S](k: f32[B], slot: i32[B], inout c: f32[S]) {{\n {}\n kernel w {{ c[slot[b]] = k[b] }}\n}}"
    )
    assert op_of(text.format("assume distinct(slot)")).results == ()
    assert codes(text.format("")) == ["OP306"]


@pytest.mark.parametrize(
    ("at", "promise", "fine"),
    [
        ("b, pos[b]", "", True),
        ("slot[b], d", "assume distinct(slot)", True),
        ("slot[b] + 1, d", "assume distinct(slot)", True),
        ("slot[b // 2], d", "assume distinct(slot)", False),
        ("slot[b] // 2, d", "assume distinct(slot)", False),
        ("table[b, pos[b] // 8], pos[b] % 8", "assume distinct(table)", True),
        ("table[b, pos[b] // 8], pos[b] % 8", "assume distinct(pos)", False),
        ("table[0, b], pos[b]", "", False),
        ("slot[b], b", "", True),
    ],
)
def test_points_that_write_through_data_must_not_meet(at: str, promise: str, fine: bool):
    value = "k[b, d]" if at.endswith("d") else "k[b, 0]"
    text = (
        "op f[B](k: f32[B, B], slot: i32[B], pos: i32[B], table: i32[B, B], inout c: f32[B, B]) {\n"
        f" {promise}\n require B >= 1\n kernel w {{ c[{at}] = {value} }}\n}}"
    )
    if fine:
        op_of(text)
    else:
        assert codes(text) == ["OP306"]


def test_writes_stay_inside():
    text = "op f[N](x: f32[N], inout y: f32[N]) {{ kernel k {{ y[{}] = x[i] }} }}"
    assert codes(text.format("i + 1")) == ["OP301"]
    op_of(text.format("N - 1 - i"))


# outputs ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("head", "lines"),
    [
        ("op f[N](x: f32[N]) -> y: f32[2 * N]", ("y[i] = x[i] for i < N", "y[i + N] = x[i]")),
        ("op f[N](x: f32[N]) -> y: f32[2 * N]", ("y[2 * i] = x[i]", "y[2 * i + 1] = -x[i]")),
        (
            "op f[N, R](x: f32[N]) -> y: f32[2 * N + R]",
            ("y[R + 2 * i + 1] = x[i]", "y[i] = 0 for i < R", "y[R + 2 * i] = x[i]"),
        ),
        ("op f[N](x: f32[N]) -> y: f32[N]", ("y[N - 1 - i] = x[i]",)),
        ("op f[M, N](x: f32[M, N]) -> y: f32[M * N]", ("y[m * N + n] = x[m, n]",)),
        ("op f[N](x: f32[N, N]) -> y: f32[N, N]", ("y[i, j] = x[i, j] for j <= i", "y[i, j] = 0 for j > i")),
        ("op f[N](x: f32[N]) -> y: f32[N + 1]", ("y[i] = x[i] for i < N", "y[N] = 0")),
        ("op f[N](x: f32[N]) -> y: f32[]", ("y = sum[i](x[i])",)),
        ("op f[M, N](x: f32[M, N]) -> y: f32[N, M]", ("y[n, m] = x[m, n]",)),
    ],
)
def test_outputs_that_are_covered_exactly(head: str, lines: tuple[str, ...]):
    body(*lines, head=head)


def test_several_statements_of_one_output_keep_its_name_as_origin():
    op = body("y[i] = x[i] for i < N", "y[i + N] = x[i]", head="op f[N](x: f32[N]) -> y: f32[2 * N]")
    assert [(d.name, d.origin, d.output.tensor) for d in op.defines] == [("y.1", "y", "y"), ("y.2", "y", "y")]


def test_temporaries_of_several_statements_of_one_output_have_names_of_their_own():
    op = body(
        "y[0, m] = sum[n](x[m, n]) + 1",
        "y[1, m] = sum[n](x[m, n] * w[n]) + 1",
        head="op f[M, N](x: f32[M, N], w: f32[N]) -> y: f32[2, M]",
    )
    names = [d.name for d in op.defines]
    assert names == ["y.1.sum.1", "y.1", "y.2.sum.1", "y.2"]
    assert {d.origin for d in op.defines} == {"y"}


@pytest.mark.parametrize(
    "lines",
    [
        ("y[2 * i] = x[i]", "y[2 * i] = x[i]"),
        ("y[2 * i] = x[i]", "y[2 * i + 2] = x[i]  for i < N - 1"),
        ("y[2 * i] = x[i]", "y[2 * i + 1] = x[i]  for i < N - 1"),
    ],
)
def test_interleaved_statements_that_leave_or_repeat_elements_are_refused(lines: tuple[str, ...]):
    inner = "; ".join(lines)
    found = codes(f"op f[N](x: f32[N]) -> y: f32[2 * N] {{ require N >= 1; kernel k {{ {inner} }} }}")
    assert found and set(found) <= {"OP303", "OP304"}


# 13 -------------------------------------------------------------------------------
def test_temporaries_follow_their_statement_into_other_boundaries():
    text = (
        "op f[M, N](x: f32[M, N]) -> y: f32[M, N] {\n kernel a {\n"
        "  p: bf16[m, n] = softmax[n](x[m, n])\n  y[m, n] = p[m, n] * 2\n }\n}\n"
        "boundary two of f analysis {\n kernel one { p }\n kernel two { y }\n}\n"
    )
    op = op_of(text)
    two = op.boundaries[1]
    assert two.analysis and [[d.name for d in k.body] for k in two.kernels] == [
        ["p.m.1", "p.e.1", "p.sum.1", "p"],
        ["y"],
    ]


def test_a_bound_beside_an_assumed_one_gives_an_extent():
    op = op_of(
        "op f[M, T](x: f32[M, T], pos: i32[M]) -> y: f32[M] {\n assume pos[m] < T\n kernel k {\n"
        "  s[m, t] = x[m, t + 0]  for t < pos[m] + 1\n  y[m] = sum[t](s[m, t])\n }\n}\n"
    )
    assert str(named(op, "s").ranges[1].upper) == "T"


def test_a_result_and_what_uses_it_may_share_a_kernel_of_another_boundary():
    text = (
        "op f[M, N](x: f32[M, N]) -> s: f32[M], y: f32[M, N] {\n kernel a {\n  e: f32[m, n] = exp(x[m, n])\n }\n"
        " kernel b {\n  s[m] = sum[n](e[m, n])\n  y[m, n] = e[m, n] / s[m]\n }\n}\n"
        "boundary one of f { kernel all { e, s, y } }\nboundary two of f { kernel a { e } kernel b { s, y } }\n"
    )
    assert [[k.name for k in b.kernels] for b in op_of(text).boundaries[1:]] == [["all"], ["a", "b"]]


def test_a_tensor_read_back_from_memory_cannot_join_its_writer():
    text = (
        "op f[N](x: f32[N]) -> y: f32[2 * N], z: f32[N] {\n kernel a {\n  y[i] = x[i] for i < N\n  y[i + N] = x[i]\n }\n"
        " kernel b { z[i] = y[2 * i] }\n}\nboundary one of f { kernel all { y, z } }\n"
    )
    assert codes(text) == ["OP503"]


# values -----------------------------------------------------------------------------
def test_literals_take_the_type_of_their_surroundings_and_nothing_folds():
    op = body("y[m, n] = (x[m, n] + 1) - 1 + 0 * x[m, n]")
    assert show_define(named(op, "y")).count("x[m, n]") == 2
    assert all(v.dtype.name == "f32" for v in walk(named(op, "y").value))


def test_dims_and_indices_are_values_too():
    op = body("y[m, n] = x[m, n] / sqrt(N) + (m - 2 * n)")
    extents = [str(v.value) for v in walk(named(op, "y").value) if isinstance(v, Extent)]
    assert extents == ["N", "m - 2*n"]


def test_integers_stay_integers():
    op = op_of(
        "op f[N](a: i8[N], b: i8[N], l: i64[N], t: i32 = -100) -> s: i32[], k: bool[N] {\n kernel k1 {\n"
        "  s = sum[i](a[i] * b[i])\n  k[i] = l[i] == t\n }\n}"
    )
    assert named(op, "s").value.dtype.name == "i32"
    assert "(l[i] == implicit i64(t))" in shown(op)[1]


def test_a_reduction_that_is_converted_to_be_stored_gets_a_name():
    op = op_of(
        "op f[N](x: f32[N], a: i32[N]) -> top: i32[], s: f32[], r: f32[N] {\n kernel k {\n"
        "  top = argmax[i](x[i])\n  s = sum[i](a[i])\n  r[i] = scan_sum[i](a[i])\n }\n}"
    )
    assert [d.name for d in op.defines] == ["top.argmax.1", "top", "s.sum.1", "s", "r.sum.1", "r"]


def test_a_scan_takes_a_decay_and_only_a_sum_does():
    assert "scan_sum[j](x[i, j], exp(x[i, j]))" in " ".join(
        shown(
            op_of(
                "op f[M, N](x: f32[M, N]) -> y: f32[M, N] { kernel k { y[i, j] = scan_sum[j](x[i, j], exp(x[i, j])) } }"
            )
        )
    )
    text = "op f[N](x: f32[N]) -> y: f32[N] { kernel k { y[i] = scan_max[i](x[i], 0.5) } }"
    with pytest.raises(Failure, match="1 argument"):
        op_of(text)


def test_a_reverse_scan_may_end_where_its_axis_does():
    op_of("op f[N](x: f32[N]) -> y: f32[N] { kernel k { y[i] = scan_sum[-i](x[i])  for i < N } }")


def test_an_identity_and_its_integers_compute_in_one_type():
    head = "op f[N](a: i32[N]) -> y: f32[N]"
    op = body("y[i] = max[j | j < i](a[j]) else -inf", head=head)
    assert "max[j < N | i - j - 1 >= 0](implicit f32(a[j])) else -inf:f32" in shown(op)[0]
    op = body("y[i] = max[j | j < i](a[j]) else -1", head=head)
    assert named(op, "y.max.1").value.dtype.name == "i32"


def test_powers_are_written_out():
    op = body("y[m, n] = (x[m, n] + 1) ** 3 + x[m, n] ** -2")
    assert "((y.base.1[m, n] * y.base.1[m, n]) * y.base.1[m, n])" in shown(op)[-1]
    assert "reciprocal((x[m, n] * x[m, n]))" in shown(op)[-1]


def test_a_let_is_evaluated_once():
    op = op_of(
        "fn twice(x) {\n let e = exp(x)\n e + e\n}\nop f[N](x: f32[N]) -> y: f32[N] { kernel k { y[i] = twice(x[i]) } }"
    )
    assert [d.name for d in op.defines] == ["y.e.1", "y"]


@pytest.mark.parametrize(
    "keyword", ["kernel", "schedule", "op", "fn", "workload", "of", "analysis", "dtype", "sum", "let"]
)
def test_most_words_of_the_language_are_names_where_only_a_name_can_stand(keyword: str):
    op = op_of(f"op f[N]({keyword}: f32[N]) -> y: f32[N] {{ kernel k {{ y[i] = {keyword}[i] * 2 }} }}")
    assert op.parameters == (keyword,)


NAMES = [
    "N",
    "S",
    "E",
    "I",
    "Q",
    "O",
    "beta",
    "gamma",
    "zeta",
    "pi",
    "lambda",
    "tl",
    "grid",
    "mask",
    "pid",
    "num_warps",
    "class",
    "def",
    "None",
    "exec",
    "eval",
    "self",
    "x__y",
    "oo",
    "Min",
    "Rational",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_mean_something_elsewhere(name: str):
    text = "op f[{0}](a: f32[{0}]) -> y: f32[{0}] {{ kernel k {{ y[i] = a[i] * {0} }} }}"
    plain = op_of(text.format("K"))
    op = op_of(text.format(name))
    assert show_define(op.defines[0]).replace(name, "K") == show_define(plain.defines[0]).replace(name, "K")
    op_of(f"op f[K]({name}: f32[K]) -> y: f32[K] {{ kernel {name} {{ y[i] = {name}[i] }} }}")
    op_of(f"op {name}[K](a: f32[K]) -> y: f32[K] {{ kernel k {{ s[{name}] = a[{name}]; y[i] = s[i] }} }}")
