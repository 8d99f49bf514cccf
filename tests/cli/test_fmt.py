import subprocess
import sys

from tests.cli.conftest import ROOT, SCALE, shell

LOOSE = SCALE.replace("a * x[m]", "a*x[m]  # scaled")
TIDY = SCALE.replace("a * x[m]", "a * x[m]  # scaled")


def test_a_spec_is_laid_out_where_it_lies(opspec, spec):
    spec.write_text(LOOSE)
    ran = opspec("fmt", str(spec))
    assert ran.status == 0
    assert ran.out == "1 spec: 1 formatted, 0 unchanged\n"
    assert spec.read_text() == TIDY
    assert opspec("fmt", str(spec)).out == "1 spec: 0 formatted, 1 unchanged\n"


def test_check_and_diff_write_nothing(opspec, spec):
    spec.write_text(LOOSE)
    before = spec.stat().st_mtime_ns
    ran = opspec("fmt", str(spec), "--check")
    assert (ran.status, ran.out.splitlines()[0]) == (1, f"{spec} would change")
    ran = opspec("fmt", str(spec), "--diff")
    assert ran.status == 1
    assert "-    y[m] = a*x[m]  # scaled\n+    y[m] = a * x[m]  # scaled\n" in ran.out
    assert spec.read_text() == LOOSE and spec.stat().st_mtime_ns == before
    spec.write_text(TIDY)
    assert opspec("fmt", str(spec), "--check").status == 0
    assert opspec("fmt", str(spec), "--diff").status == 0


def test_line_ends_alone_are_a_change(opspec, spec):
    spec.write_bytes(SCALE.replace("\n", "\r\n").encode())
    ran = opspec("fmt", str(spec), "--diff")
    assert ran.status == 1 and "line ends" in ran.out
    assert opspec("fmt", str(spec)).status == 0
    assert spec.read_bytes() == SCALE.encode()


def test_a_broken_spec_is_left_and_the_others_are_laid_out(opspec, tmp_path):
    good, bad = tmp_path / "good.op", tmp_path / "bad.op"
    good.write_text(LOOSE)
    bad.write_text(LOOSE + "op f(\n")
    ran = opspec("fmt", str(tmp_path))
    assert ran.status == 2
    assert "error[OP103]" in ran.err and "1 with faults, left as they are" in ran.out
    assert (good.read_text(), bad.read_text()) == (TIDY, LOOSE + "op f(\n")


def test_the_mode_of_a_file_and_a_link_to_it_stay(opspec, spec, tmp_path):
    spec.write_text(LOOSE)
    spec.chmod(0o640)
    link = tmp_path / "link.op"
    link.symlink_to(spec)
    assert opspec("fmt", str(link)).status == 0
    assert link.is_symlink() and spec.read_text() == TIDY
    assert spec.stat().st_mode & 0o777 == 0o640


def filtered(text: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "opspec", "fmt", "-", *arguments]
    return subprocess.run(command, input=text.encode(), capture_output=True, cwd=ROOT, check=False)


def test_standard_input():
    assert filtered(LOOSE).stdout == TIDY.encode()
    assert filtered(LOOSE, "--check").returncode == 1
    assert filtered(TIDY, "--check").returncode == 0
    broken = filtered("op f(\n")
    assert (broken.returncode, broken.stdout) == (2, b"")
    assert b"<stdin>:1:" in broken.stderr


def test_no_path_means_this_folder(tmp_path):
    (tmp_path / "a.op").write_text(LOOSE)
    assert shell("fmt", cwd=tmp_path).status == 0
    assert (tmp_path / "a.op").read_text() == TIDY
