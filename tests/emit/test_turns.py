"""The lines of two steps of a stream in one."""

from __future__ import annotations

from opspec.emit.turns import in_turns

NONE: frozenset[str] = frozenset()


def test_what_depends_on_the_place_is_repeated_under_another_name():
    lines = in_turns([["k = (k_start + at).to(INDEX)"], ["x = x_desc.load([0, k_start]).T"]], "k_start", NONE)
    assert lines == (
        "k = (k_start + at).to(INDEX)",
        "k_next = (k_start_next + at).to(INDEX)",
        "x = x_desc.load([0, k_start]).T",
        "x_next = x_desc.load([0, k_start_next]).T",
    )


def test_what_does_not_depend_on_it_and_comments_are_not_repeated():
    lines = in_turns([["# k_start", "inside = n < N"], ["x = tl.load(p + k_start)"]], "k_start", NONE)
    assert lines == (
        "# k_start",
        "inside = n < N",
        "x = tl.load(p + k_start)",
        "x_next = tl.load(p + k_start_next)",
    )


def test_both_steps_add_to_one_sum():
    steps = [["x = tl.load(p + k_start)"], ["y = dot(x, w, y)"]]
    assert in_turns(steps, "k_start", frozenset({"y"}))[2:] == ("y = dot(x, w, y)", "y = dot(x_next, w, y)")


def test_keywords_and_attributes_keep_their_names():
    steps = [
        ["mask = k_start < K", "T = x.T + k_start"],
        ["y = tl.load(T.T, mask=mask, other=0 if T == 1 else 2)"],
    ]
    assert (
        in_turns(steps, "k_start", NONE)[-1]
        == "y_next = tl.load(T_next.T, mask=mask_next, other=0 if T_next == 1 else 2)"
    )


def test_several_names_at_once():
    steps = [["a, b = halves(k_start)"], ["c = a + b"]]
    assert in_turns(steps, "k_start", NONE)[1::2] == (
        "a_next, b_next = halves(k_start_next)",
        "c_next = a_next + b_next",
    )
