"""What is said to a slip of the pen: on the command line, in names of files, in their encoding."""

import pytest

from opspec.cli import main
from tests.cli.conftest import ROOT, SCALE

SOFTMAX = str(ROOT / "specs" / "reduce" / "softmax.op")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("chek", "specs"), "check"),
        (("check", "specs", "--fromat", "text"), "--format"),
        (("check", "specs", "--format", "jsn"), "json"),
        (("explain", SOFTMAX, "--stage", "tle"), "tile"),
        (("new", "x", "--kind", "reducton"), "reduction"),
        (("machine", "sohw"), "show"),
        (("diff", "HEAD", "--polcy", "never"), "--policy"),
        (("--versoin",), "--version"),
    ],
)
def test_commands_and_options(capsys, arguments, meant: str):
    with pytest.raises(SystemExit) as e:
        main(arguments)
    assert e.value.code == 2
    assert f"did you mean `{meant}`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("query", SOFTMAX, "flosp", "--at", "rows_4k"), "flops"),
        (("query", SOFTMAX, "ai", "--at", "rows_4"), "rows_4k"),
        (("query", SOFTMAX, "ai", "--set", "MM=3"), "M"),
        (("query", SOFTMAX, "ai", "--dtype", "X=bf61"), "bf16"),
        (("query", SOFTMAX, "time", "--at", "rows_4k", "--machine", "h10O"), "h100"),
        (("query", f"{SOFTMAX}:softmx", "ai"), "softmax"),
        (("build", SOFTMAX, "--target", "sm90"), "sm_90"),
        (("check", SOFTMAX.replace("softmax.op", "sofmax.op")), "softmax.op"),
    ],
)
def test_names(opspec, arguments, meant: str):
    ran = opspec(*arguments)
    assert ran.status == 2
    assert f"did you mean `{meant}`?" in ran.err


def test_a_misspelt_import(opspec, tmp_path):
    (tmp_path / "library.op").write_text("fn g(x) = x\n")
    (tmp_path / "a.op").write_text('import "libary.op"\n' + SCALE)
    ran = opspec("check", str(tmp_path / "a.op"))
    assert ran.status == 2
    assert "error[OP110]" in ran.out and "did you mean `library.op`?" in ran.out


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (SCALE.encode("utf-16"), "it is UTF-16"),
        (SCALE.encode().replace(b"op scale", b"# \xe9\nop scale"), "line 1 is not UTF-8"),
        (SCALE.encode().replace(b"scale", b"sc\0ale", 1), "unexpected character `U+0000`"),
        (SCALE.encode().replace(b"a * x", b"a \x1b[31m* x"), "unexpected character `U+001B`"),
        (SCALE.replace("a * x", "a \ufeff* x").encode(), "U+FEFF ZERO WIDTH NO-BREAK SPACE cannot be seen"),
        (SCALE.replace("a * x", "a \u202e* x").encode(), "U+202E RIGHT-TO-LEFT OVERRIDE cannot be seen"),
    ],
)
def test_encodings(opspec, tmp_path, raw: bytes, said: str):
    path = tmp_path / "a.op"
    path.write_bytes(raw)
    ran = opspec("check", str(path))
    assert ran.status == 2
    assert said in ran.out


@pytest.mark.parametrize("raw", [b"\xef\xbb\xbf" + SCALE.encode(), SCALE.replace("\n", "\r\n").encode(), b""])
def test_encodings_that_make_no_difference(opspec, tmp_path, raw: bytes):
    path = tmp_path / "a.op"
    path.write_bytes(raw)
    assert opspec("check", str(path)).status == 0
