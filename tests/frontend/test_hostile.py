"""Hostile text ends in a diagnostic, never in a traceback."""

import random

import pytest

from opspec.diagnostics import Failure, render_text
from opspec.frontend import load, load_text

HEAD = "op f[N](x: f32[N]) -> y: f32[N] {\n  kernel k {\n    y[i] = "
TAIL = "\n  }\n}\n"


def codes_of(text: str) -> set[str]:
    with pytest.raises(Failure) as e:
        load_text(text)
    assert render_text(e.value.diagnostics)
    return {d.code.code for d in e.value.diagnostics}


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 10_000 + "x[i]" + ")" * 10_000,
        "-" * 10_000 + "x[i]",
        "exp(" * 300 + "x[i]" + ")" * 300,
        " + ".join(["x[i]"] * 2_000),
        "x[i]" + " ** 2" * 2_000,
        "x[" * 500 + "i" + "]" * 500,
        "not " * 5_000 + "true",
        "x[i] else " * 5_000 + "0",
        " < ".join(["x[i]"] * 3_000),
    ],
)
def test_deep_nesting(expression: str):
    assert codes_of(HEAD + expression + TAIL) <= {"OP105", "OP401", "OP403", "OP109", "OP102"}


def test_functions_that_double():
    doubling = "fn g0(x) = x + 1\n" + "".join(
        f"fn g{k}(x) = g{k - 1}(x) * g{k - 1}(x)\n" for k in range(1, 40)
    )
    assert codes_of(doubling + HEAD + "g39(x[i])" + TAIL) <= {"OP105", "OP106"}


def test_a_deep_chain_of_functions():
    chain = "fn g0(x) = x + 1\n" + "".join(f"fn g{k}(x) = g{k - 1}(x) * 2\n" for k in range(1, 1500))
    assert codes_of(chain + HEAD + "g1499(x[i])" + TAIL) <= {"OP105", "OP106"}


def test_huge_numbers():
    assert codes_of(HEAD + "9" * 5_000 + TAIL) == {"OP106"}
    assert "OP108" in codes_of(HEAD + "9" * 100 + TAIL)
    assert "OP601" in codes_of(HEAD + "x[i]" + TAIL + "workload w for f { N = 2 ** 62 }")


def test_integers_that_explode():
    power = "(i + N + 1) ** 60"
    assert "OP404" in codes_of(HEAD + f"x[{power} * {power} * {power}]" + TAIL)


def test_size():
    assert codes_of("# " + "x" * 10_000_000) == {"OP106"}
    assert codes_of("y\n" * 160_000) & {"OP106"}


def test_many_indices():
    names = ", ".join(f"i{k}" for k in range(5_000))
    with pytest.raises(Failure):
        load_text(HEAD + f"sum[{names}](1)" + TAIL)


def test_null_bytes_and_other_characters():
    assert "OP101" in codes_of("op f\0[N](x: f32[N]) -> y: f32[N] { }")
    assert "OP101" in codes_of("op f[N](ö: f32[N]) -> y: f32[N] { }")


def test_invalid_utf8(tmp_path):
    path = tmp_path / "bad.op"
    path.write_bytes(b'"""ok"""\n\xff\xfe')
    with pytest.raises(Failure) as e:
        load(path)
    assert e.value.diagnostics[0].code.code == "OP110"
    assert "line 2" in e.value.diagnostics[0].message


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "none.op", tmp_path, "a\0b.op"):
        with pytest.raises(Failure) as e:
            load(path)
        assert e.value.diagnostics[0].code.code == "OP110"


def test_templates_and_format_strings_stay_text():
    module = load_text('"""{{ x }} {0} %s {% raw %} ${y}"""\n' + HEAD + "x[i]  # {{ 7*7 }}\n" + TAIL)
    assert module.doc == "{{ x }} {0} %s {% raw %} ${y}"


def test_control_characters_do_not_reach_the_terminal():
    with pytest.raises(Failure) as e:
        load_text(HEAD + "x[i] \x1b[31m" + TAIL)
    assert "\x1b" not in render_text(e.value.diagnostics)


def test_random_edits_never_crash():
    rng = random.Random(7)
    good = HEAD + "softmax[i](x[i] * 2) - sum[j | j <= i](x[j]) else 1 for i < N, i >= 0" + TAIL
    pieces = [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "for",
        "else",
        ",",
        "=",
        "..",
        "|",
        "i",
        "N",
        "x",
        "0",
        "1.5",
        "**",
        "-",
    ]
    for _ in range(400):
        text = list(good)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text))
            text[at : at + rng.randint(0, 3)] = rng.choice(pieces)
        try:
            load_text("".join(text))
        except Failure as failure:
            assert failure.diagnostics
            assert all(d.span is not None for d in failure.diagnostics)


def test_lets_that_a_guard_makes_safe_are_not_repeated_without_end():
    lets = "\n".join(f"let a{k} = a{k - 1} * a{k - 1}" for k in range(1, 40))
    text = f"fn g(x) {{\nlet a0 = x * x\n{lets}\na39\n}}\n"
    op = load_text(text + HEAD + "where(i >= 1, g(x[i - 1]), 0)" + TAIL).ops[0]
    assert len(op.defines) < 45
    assert all(str(d.constraints[0]) == "i - 1" for d in op.defines[:-1])


def test_values_that_are_deep_only_after_inlining():
    deep = "fn f(x) = x" + " + 1" * 60 + "\n"
    load_text(deep + HEAD + "f(" * 35 + "x[i]" + ")" * 35 + TAIL)


def test_many_conditions_and_axes():
    many = ", ".join(f"i < N + {k}" for k in range(500))
    assert codes_of(HEAD + f"x[i] for {many}" + TAIL) == {"OP106"}
    dims = ", ".join(f"D{k}" for k in range(40))
    assert "OP109" in codes_of(f"op f[{dims}](x: f32[{dims}]) -> y: f32[D0] {{ kernel k {{ y[i] = 0 }} }}")


def test_an_import_that_is_no_file(tmp_path):
    path = tmp_path / "a.op"
    path.write_text('import "/dev/zero"\nimport "."\n')
    with pytest.raises(Failure) as e:
        load(path)
    assert [d.code.code for d in e.value.diagnostics] == ["OP110", "OP110"]
