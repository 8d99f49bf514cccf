"""Text that is meant to hurt ends in a diagnostic, or is accepted, in 1 GB of memory and few seconds of work.

The limits are counts (characters, tokens, depth, digits, lines, steps of proofs), never a clock; the processor time
that a process may take here only shows that they are tight enough.
"""

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT

HEAD = "op f[N](x: f32[N]) -> y: f32[N] {\n  kernel k {\n    y[i] = "
TAIL = "\n  }\n}\n"
SIMPLE = HEAD + "x[i]" + TAIL
WORKLOAD = SIMPLE + "workload w for f { N = 4 }\nexpect w { bytes == "


def op(body: str, requires: str = "") -> str:
    return f"op f[N, M, K, L](x: f32[N]) -> y: f32[N] {{\n{requires}kernel k {{\n{body}}}\n}}\n"


TEXTS = {
    "10 MB of comments": ("# " + "x" * 10_000_000, "OP106"),
    "10 MB of ops": (SIMPLE * 180_000, "OP106"),
    "10 MB of doc string": ('"""' + "x" * 10_000_000 + '"""\n', "OP106"),
    "10,000 parentheses": (HEAD + "(" * 10_000 + "x[i]" + ")" * 10_000 + TAIL, "OP105"),
    "10,000 braces": ("op f[N](x: f32[N]) -> y: f32[N] " + "{" * 10_000 + "}" * 10_000, "OP105"),
    "10,000 calls": (HEAD + "exp(" * 10_000 + "x[i]" + ")" * 10_000 + TAIL, "OP105"),
    "10,000 signs": (HEAD + "-" * 10_000 + "x[i]" + TAIL, "OP105"),
    "8,000 defaults": (HEAD + "x[i] else " * 8_000 + "0" + TAIL, "OP105"),
    "8,000 terms": (HEAD + " + ".join(["x[i]"] * 8_000) + TAIL, "OP105"),
    "a million digits": (HEAD + "9" * 1_000_000 + TAIL, "OP106"),
    "390,000 digits": (HEAD + "9" * 390_000 + TAIL, "OP106"),
    "390,000 digits in a budget": (WORKLOAD + "9" * 390_000 + " }\n", "OP106"),
    "a tower of powers": (WORKLOAD + "9 ** 9 ** 9 ** 9 }\n", "OP721"),
    "a tower of powers in a workload": (SIMPLE + "workload w for f { N = 9 ** 9 ** 9 ** 9 }\n", "OP601"),
    "a budget that is nested deeply": (WORKLOAD + "(" * 10_000 + "1" + ")" * 10_000 + " }\n", "OP105"),
    "a million indices": (HEAD + "sum[" + ",".join(f"i{k}" for k in range(1_000_000)) + "](1)" + TAIL, "OP106"),
    "20,000 indices": (HEAD + "sum[" + ",".join(f"i{k}" for k in range(20_000)) + "](1)" + TAIL, "OP106"),
    "20,000 dims": ("op f[" + ",".join(f"D{k}" for k in range(20_000)) + "](x: f32[D0]) -> y: f32[D0] { }", "OP106"),
    "5,000 parameters": ("op f[N](" + ",".join(f"x{k}: f32[N]" for k in range(5_000)) + ") -> y: f32[N] { }", "OP106"),
    "4,000 statements": (op("".join(f"s{k}[i] = x[i]\n" for k in range(4_000))), "OP106"),
    "4,000 functions": ("".join(f"fn g{k}(x) = x\n" for k in range(4_000)) + SIMPLE, ""),
    "functions that double": (
        "fn g0(x) = x\n" + "".join(f"fn g{k}(x) = g{k - 1}(x) * g{k - 1}(x)\n" for k in range(1, 40))
        + HEAD + "g39(x[i])" + TAIL, "OP106",
    ),
    "lets that double": (
        op("y[i] = x[i]\n", "let C0 = N + 1\n" + "".join(f"let C{k} = C{k - 1} // 2 + C{k - 1} % 3\n" for k in range(1, 99))),
        "OP404",
    ),
    "proofs without end": (
        op("".join(f"s{k}[i] = x[i + {k} * M - K]  for i < L\n" for k in range(200)) + "y[i] = x[i]\n",
           "".join(f"require N >= {k} * M + K - L * {k}\n" for k in range(30))),
        "OP106",
    ),
    "1,000 unknown names": (op("".join(f"s{k}[i] = q{k}[i]\n" for k in range(250)) + "y[i] = x[i]\n"), "OP201"),
    "100,000 strange characters": ("ö " * 100_000, "OP101"),
    "50,000 closing brackets": (")" * 49_000, "OP104"),
    "a path of 390,000 characters": ('import "' + "a" * 390_000 + '"\n', "OP110"),
    "a name of 390,000 characters": (SIMPLE.replace("op f", "op " + "f" * 390_000), "OP106"),
    "9,000 budgets": (WORKLOAD + "32 }\nexpect w { " + ";".join(["bytes == 1"] * 9_000) + " }\n", "OP106"),
}  # fmt: skip


# The compiler is loaded once; each command runs in a process of its own that is forked from there.
FORKING = """
import json, os, resource, sys
import sympy
from opspec.analysis import query
from opspec.cli import build, check, explain, fmt, main, query
from opspec.frontend import load

for line in sys.stdin:
    folder, *arguments = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        for name, number in (("out", 1), ("err", 2)):
            os.dup2(os.open(f"{folder}/.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
        sys.argv[1:] = arguments
        status = 1
        try:
            status = main()
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@lru_cache(maxsize=1)
def forking() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", FORKING], env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    process = forking()
    print(json.dumps([str(cwd), *arguments]), file=process.stdin, flush=True)
    status = int(process.stdout.readline())
    out, err = ((cwd / f".{name}").read_text(encoding="utf-8") for name in ("out", "err"))
    return subprocess.CompletedProcess(arguments, status, out, err)


@pytest.mark.parametrize("title", TEXTS)
def test_hostile_text(tmp_path, title: str):
    text, code = TEXTS[title]
    path = tmp_path / "a.op"
    path.write_text(text, encoding="utf-8")
    ran = run("check", "a.op", cwd=tmp_path)
    assert "Traceback" not in ran.stderr
    assert ran.returncode == (2 if code else 0), (ran.returncode, ran.stderr[-2000:])
    assert code in ran.stdout
    assert len(ran.stdout) < 400_000


QUERIES = {
    "5,000 parentheses": ("(" * 5_000 + "flops" + ")" * 5_000, "OP721"),
    "100,000 digits": ("flops * " + "9" * 100_000, "OP721"),
    "a tower of powers": ("flops ** 9 ** 9 ** 9", "OP721"),
    "powers that expand without end": ("(N + 1) ** 64 * (N + 2) ** 64 * (N + flops / 1 FLOP) ** 64", ""),
    "code": ("__import__('os').system('touch pwned')", "OP721"),
    "a template": ("{{ 7 * 7 }}", "OP721"),
    "an attribute": ("flops.__class__.__mro__", "OP722"),
    "a name of 100,000 characters": ("a" * 100_000, "OP721"),
}


@pytest.mark.parametrize("title", QUERIES)
def test_hostile_queries(tmp_path, title: str):
    query, code = QUERIES[title]
    (tmp_path / "a.op").write_text(HEAD + "x[i] * 2" + TAIL)
    ran = run("query", "a.op", query, cwd=tmp_path)
    assert "Traceback" not in ran.stderr
    assert ran.returncode == (2 if code else 0), (ran.returncode, ran.stderr[-2000:])
    assert code in ran.stderr
    assert not list(tmp_path.rglob("pwned"))


HOSTILE_NAMES = '''"""{{ 7 * 7 }} {% for x in y %} ${HOME} %s {0.__class__} {% raw %} \\x00 \\N{BULLET} \\u0000"""

# {{ config }} {% endraw %} {# #} """ ' %d {} __import__("os").system("touch pwned")
op lambda[N, S](tl: f32[N, S], exec: f32[S]) -> None: f32[N] {
  kernel class {  # {{ 7 * 7 }} \\n """ + open("pwned", "w")
    None[i] = sum[j](tl[i, j] * exec[j]) + 1  # {0.__globals__} %(x)s
  }
}

workload __import__ for lambda { N = 4, S = 8 }

expect __import__ { flops > 1 }  # {{ self.__init__ }}
'''


def test_templates_format_strings_and_code_stay_text(tmp_path):
    (tmp_path / "a.op").write_text(HOSTILE_NAMES, encoding="utf-8")
    for arguments in (
        ("check", "a.op"),
        ("query", "a.op", "flops", "--at", "__import__"),
        ("fmt", "a.op"),
        ("build", "a.op", "--target", "none"),
        ("explain", "a.op"),
    ):
        ran = run(*arguments, cwd=tmp_path)
        assert ran.returncode == 0, (arguments, ran.stdout, ran.stderr)
    assert (tmp_path / "a.op").read_text(encoding="utf-8") == HOSTILE_NAMES
    kernel = (tmp_path / "generated" / "a" / "kernel.py").read_text(encoding="utf-8")
    compile(kernel, "kernel.py", "exec")
    assert "{{ 7 * 7 }}" in kernel and "49" not in kernel
    assert not list(tmp_path.rglob("pwned"))


def test_the_layout_of_a_large_file(tmp_path):
    text = "".join(SIMPLE.replace("op f", f"op f{k}") for k in range(1_000))
    (tmp_path / "a.op").write_text(text, encoding="utf-8")
    assert run("fmt", "a.op", cwd=tmp_path).returncode == 0


def test_running_out_of_stack_is_a_diagnostic(opspec, tmp_path, monkeypatch):
    from opspec.cli import check

    def deep(_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(check, "check_spec", deep)
    (tmp_path / "a.op").write_text(SIMPLE)
    ran = opspec("check", str(tmp_path / "a.op"))
    assert ran.status == 2 and "error[OP912]" in ran.err
