import json

from tests.cli.conftest import ROOT, SCALE, python


def test_every_shipped_spec_is_good(opspec):
    ran = opspec("check", str(ROOT / "specs"))
    assert ran.status == 0, ran.out
    assert ran.out.splitlines()[-1].endswith("all good")


def test_a_broken_budget_is_a_no(opspec, spec):
    spec.write_text(SCALE.replace("8000", "7999"))
    ran = opspec("check", str(spec))
    assert ran.status == 1
    assert "error[OP731]" in ran.out
    assert "8000" in ran.out
    assert "scale.op:10:3" in ran.out
    assert ran.out.splitlines()[-1] == "1 spec, 1 op, 1 budget: a budget does not hold"


def test_a_budget_that_cant_be_read_is_wrong_input(opspec, spec):
    spec.write_text(SCALE.replace("bytes == 8000", "byts == 8000"))
    ran = opspec("check", str(spec))
    assert ran.status == 2
    assert "error[OP722]" in ran.out


def test_a_broken_spec_is_wrong_input_and_hides_no_other(opspec, tmp_path, spec):
    (tmp_path / "bad.op").write_text(SCALE.replace("x[m]", "z[m]"))
    (tmp_path / "worse.op").write_text("op f[")
    spec.write_text(SCALE.replace("8000", "1"))
    ran = opspec("check", str(tmp_path))
    assert ran.status == 2
    assert "error[OP201]" in ran.out
    assert "worse.op" in ran.out
    assert "error[OP731]" in ran.out


def test_warnings_do_not_fail(opspec, tmp_path):
    path = tmp_path / "warned.op"
    path.write_text(
        "op f[M](x: f32[M]) -> y: f32[M] {\n"
        "  kernel a { t[m] = exp(x[m]) }\n"
        "  kernel b { y[m] = t[m] + 1 }\n"
        "}\n"
    )
    ran = opspec("check", str(path))
    assert ran.status == 0
    assert "warning[" in ran.out


def test_json(opspec, spec):
    assert json.loads(opspec("check", str(spec), "--format", "json").out) == []
    spec.write_text(SCALE.replace("8000", "7999"))
    ran = opspec("check", str(spec), "--format", "json")
    assert ran.status == 1
    found = json.loads(ran.out)
    assert [(d["code"], d["place"]["line"], d["place"]["column"]) for d in found] == [("OP731", 10, 3)]


def test_github(opspec, spec):
    spec.write_text(SCALE.replace("8000", "7999"))
    ran = opspec("check", str(spec), "--format", "github")
    assert ran.out.startswith("::error file=")
    assert "line=10,col=3" in ran.out.replace("column", "col")


def test_missing_paths(opspec, tmp_path):
    for path in (tmp_path / "no.op", tmp_path):
        ran = opspec("check", str(path))
        assert ran.status == 2
        assert "error[OP621]" in ran.err


def test_folders_and_pipes_called_like_specs_are_left_out(opspec, tmp_path, spec):
    import os

    (tmp_path / "folder.op").mkdir()
    os.mkfifo(tmp_path / "pipe.op")
    ran = opspec("check", str(tmp_path))
    assert ran.status == 0
    assert ran.out.startswith("1 spec, ")
    (tmp_path / "dangling.op").symlink_to("nowhere.op")
    ran = opspec("check", str(tmp_path))
    assert ran.status == 2
    assert "dangling.op" in ran.out
    assert opspec("check", "").status == 2


def test_unreadable_text(opspec, tmp_path):
    path = tmp_path / "latin.op"
    path.write_bytes(b"# caf\xe9\n")
    ran = opspec("check", str(path))
    assert ran.status == 2
    assert "UTF-8" in ran.out


def test_newlines_bom_and_locale_change_nothing(tmp_path):
    text = "# µs\n" + SCALE
    forms = {
        "lf": text.encode(),
        "crlf": text.replace("\n", "\r\n").encode(),
        "mixed": text.replace("\n", "\r\n", 3).encode(),
        "bom": b"\xef\xbb\xbf" + text.encode(),
    }
    for name, raw in forms.items():
        for folder, written in ((name, raw), (f"{name} bad", raw.replace(b"x[m]", b"z[m]"))):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "scale.op").write_bytes(written)
    # all in one process, which starts in that locale
    code = (
        "import os, sys; from opspec.cli import main\n"
        "for name in sys.argv[1:]:\n"
        "    os.chdir(f'{name} bad'); main(['check', 'scale.op']); os.chdir('..'); os.chdir(name)\n"
        "    assert main(['check', 'scale.op']) == main(['build', 'scale.op', '--target', 'none']) == 0\n"
        "    os.chdir('..')\n"
    )
    ran = python("-c", code, *forms, cwd=tmp_path, LC_ALL="C", PYTHONUTF8="0")
    assert ran.status == 0, ran.err
    assert ran.out.count("scale.op:4:16") == len(forms)
    seen = [
        {p.name: p.read_bytes() for p in (tmp_path / name / "generated/scale").iterdir()} for name in forms
    ]
    assert all(files == seen[0] for files in seen)


def test_a_block_that_no_launch_carries_is_not_good(opspec, tmp_path):
    path = tmp_path / "neighbours.op"
    path.write_text(
        "op f[N](x: f32[N]) -> y: f32[N] {\n  kernel k {\n    e[n] = exp(x[n])\n"
        "    y[n] = e[n] - (e[n - 1] else 0)\n  }\n}\n"
    )
    ran = opspec("check", str(path))
    assert ran.status == 2
    assert "error[OP641]: `e` is read at `n - 1` in the block that computes it" in ran.out
    assert "neighbours.op:4:" in ran.out
    assert "or write what `e` is at both points (a `fn` says it once)" in ran.out
