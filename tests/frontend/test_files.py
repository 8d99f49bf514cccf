"""Files: imports, line ends, what a module holds."""

from pathlib import Path

import pytest

from opspec.diagnostics import Failure, render_text
from opspec.frontend import load, load_text, load_with_warnings
from opspec.frontend.loading import prelude
from opspec.frontend.parsing import parse
from opspec.frontend.show import show_syntax
from opspec.source import Source

OP = "op {0}[N](x: f32[N]) -> y: f32[N] {{\n  kernel k {{ y[i] = {1} }}\n}}\n"
SPECS = Path(__file__).parents[2] / "specs"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def failure(path: Path) -> Failure:
    with pytest.raises(Failure) as e:
        load(path)
    return e.value


def test_an_import_brings_functions(tmp_path):
    write(tmp_path, "lib/more.op", "fn twice(x) = x + x\n")
    path = write(tmp_path, "a.op", 'import "lib/more.op"\n' + OP.format("f", "twice(x[i])"))
    module = load(path)
    assert [Path(s.name).name for s in module.files] == ["a.op", "more.op", "prelude.op"]
    assert module.op("f") is not None


def test_imports_are_relative_to_the_file_that_imports(tmp_path):
    write(tmp_path, "lib/deep/base.op", "fn one(x) = x + 1\n")
    write(tmp_path, "lib/more.op", 'import "deep/base.op"\nfn two(x) = one(one(x))\n')
    load(write(tmp_path, "a.op", 'import "lib/more.op"\n' + OP.format("f", "two(x[i])")))


def test_an_imported_op_is_built_where_it_is_spoken_of(tmp_path):
    write(tmp_path, "other.op", OP.format("g", "x[i]") + "workload w for g { N = 4 }\n")
    own = 'import "other.op"\n' + OP.format("f", "x[i]")
    assert [o.name for o in load(write(tmp_path, "a.op", own)).ops] == ["f"]
    module = load(write(tmp_path, "b.op", own + "workload big for g { N = 8 }\n"))
    assert [o.name for o in module.ops] == ["f", "g"]
    assert [w.name for w in module.workloads] == ["big"]


def test_a_diamond_is_no_cycle(tmp_path):
    write(tmp_path, "base.op", "fn one(x) = x + 1\n")
    write(tmp_path, "l.op", 'import "base.op"\nfn l(x) = one(x)\n')
    write(tmp_path, "r.op", 'import "base.op"\nfn r(x) = one(x)\n')
    path = write(tmp_path, "a.op", 'import "l.op"\nimport "r.op"\n' + OP.format("f", "l(x[i]) + r(x[i])"))
    assert len(load(path).files) == 5


def test_a_cycle_is_diagnosed_at_the_import_that_closes_it(tmp_path):
    write(tmp_path, "b.op", 'import "a.op"\n')
    path = write(tmp_path, "a.op", 'import "b.op"\n')
    (d,) = failure(path).diagnostics
    assert d.code.code == "OP111" and d.span.source.name.endswith("b.op")
    assert "a.op imports" in d.notes[0].text


def test_faults_of_an_import_are_reported_in_its_file(tmp_path):
    write(tmp_path, "lib.op", "fn broken(x) = x +\n")
    path = write(tmp_path, "a.op", 'import "lib.op"\nimport "none.op"\n' + OP.format("f", "x[j]"))
    found = [(d.code.code, Path(d.span.source.name).name) for d in failure(path).diagnostics]
    assert set(found) == {("OP102", "lib.op"), ("OP110", "a.op"), ("OP206", "a.op")}


def test_a_broken_item_is_not_blamed_on_those_that_use_it(tmp_path):
    text = "op f[N](x: f32[N]) -> y: f32[N] {\n  kernel k { y[i] = = }\n}\nworkload w for f { N = 4 }\nexpect w { ai == 1 }\n"
    assert [d.code.code for d in failure(write(tmp_path, "a.op", text)).diagnostics] == ["OP102"]


@pytest.mark.parametrize("ending", ["\r\n", "\r", "mixed"])
def test_line_ends_and_byte_order_marks_make_no_difference(tmp_path, ending: str):
    plain = '"""Doc µ."""\n' + OP.format("f", "x[i]  # µ\n") + "workload w for f { N = 4\n}\n"
    lines = plain.split("\n")
    raw = (
        "".join(x + ("\r\n" if k % 2 else "\n") for k, x in enumerate(lines))
        if ending == "mixed"
        else plain.replace("\n", ending)
    )
    a = write(tmp_path, "a.op", plain)
    b = tmp_path / "b.op"
    b.write_bytes(b"\xef\xbb\xbf" + raw.encode())
    first, second = load(a), load(b)
    assert first.ops == second.ops and first.workloads == second.workloads
    assert (
        first.files[0].text == second.files[0].text.removesuffix("\n")
        or first.files[0].text == second.files[0].text
    )


def test_paths_with_spaces(tmp_path):
    load(write(tmp_path, "my ops/attn v2/a.op", OP.format("f", "x[i]")))


def test_workloads_and_budgets():
    module = load_text(
        OP.format("f", "x[i]")
        + "workload a for f { N ~ {4: 0.25, 8: 0.75}\n}\nworkload b for f { N = 2 * 1024 }\n"
        + "expect a {\n  ai ~ 1.0 within 1%\n  bound on h200 == memory; bytes == 3\n}\n"
    )
    assert module.workloads[0].cases == ((0.25, (("N", 4),)), (0.75, (("N", 8),)))
    assert module.workloads[1].cases == ((1.0, (("N", 2048),)),)
    assert [e.text for e in module.expectations] == [
        "ai ~ 1.0 within 1%",
        "bound on h200 == memory",
        "bytes == 3",
    ]
    assert all(e.span is not None and e.span.text == e.text for e in module.expectations)


def test_several_faults_come_sorted_and_once():
    with pytest.raises(Failure) as e:
        load_text(
            OP.format("f", "q[i] + exp(r[i])") + OP.format("g", "x[i + 1]") + "workload w for h { N = 1 }\n"
        )
    places = [d.span.start for d in e.value.diagnostics]
    assert [d.code.code for d in e.value.diagnostics] == ["OP201", "OP201", "OP301", "OP201"]
    assert places == sorted(places)


def test_separators():
    same = [
        "kernel k {\n s[i] = x[i]\n y[i] = s[i] *\n 2\n}",
        "kernel k { s[i] = x[i]; y[i] = s[i]\n * 2 }",
        "kernel k { s[i] = x[\ni\n]; let y[i] = (s[i]\n) * 2; }",
        "kernel k\n{\n\n\n s[i] = x[i] # c\n\n # c\n y[i] = s[i] * 2 ;\n}",
    ]
    ops = [load_text(f"op f[N](x: f32[N]) -> y: f32[N] {{ {text} }}").ops[0] for text in same]
    assert all(o == ops[0] for o in ops)


def test_docs():
    module = load_text('"""File."""\n\n"""Op."""\n' + OP.format("f", "x[i]"))
    assert (module.doc, module.ops[0].doc) == ("File.", "Op.")
    assert load_text('"""One."""\n' + OP.format("f", "x[i]")).ops[0].doc == "One."


def test_schedule_lines_are_kept_as_text():
    text = "op f[N](x: f32[N]) -> y: f32[N] { kernel k { y[i] = x[i]\n schedule { stream t  tile d, e\n rows = 4 } } }"
    assert load_text(text).ops[0].boundaries[0].kernels[0].schedule == (
        ("stream", "t"),
        ("tile", "d, e"),
        ("rows", "4"),
    )


def test_a_function_of_the_prelude_may_be_replaced():
    op = load_text("fn relu(x) = max(x, 1)\n" + OP.format("f", "relu(x[i])")).ops[0]
    assert "1.0" in str(op.defines[0].value)


def test_the_prelude_keeps_to_its_own_functions():
    own = "fn square(x) = exp(x)\nfn relu(x) = x\n"
    spec = "op f[N](x: f32[N]) -> y: f32[N] { kernel k { y[i] = norm[i](x[i]) * x[i] } }\n"
    assert load_text(own + spec).ops == load_text(spec).ops


def test_the_prelude_is_sound():
    source, functions = prelude()
    assert len(functions) > 10
    for f in functions:
        indices = ", ".join(f"i{k}" for k in range(len(f.indices)))
        at = ", ".join(["m", *(f"i{k}" for k in range(len(f.indices)))])
        arguments = ", ".join(f"x[{at}]" for _ in f.params)
        call = f"{f.name.text}[{indices}]({arguments})" if indices else f"{f.name.text}({arguments})"
        dims = ", ".join(["M", *(f"N{k}" for k in range(len(f.indices)))])
        load_text(f"op f[{dims}](x: f32[{dims}]) -> y: f32[{dims}] {{ kernel k {{ y[{at}] = {call} }} }}")
    assert source.name == "prelude.op"


def test_the_syntax_tree_can_be_shown():
    text = show_syntax(parse(Source("a.op", OP.format("f", "sum[j | j < 2](x[j]) else 0")), []))
    assert "OpDecl name=f  @1:1" in text
    assert "Call name=sum otherwise" not in text and "Call name=sum  @2:21" in text


@pytest.mark.parametrize("path", sorted(SPECS.rglob("*.op")), ids=lambda p: p.stem)
def test_shipped_specs_load_without_warnings(path: Path):
    module, warnings = load_with_warnings(path)
    assert module.ops and module.workloads and module.expectations
    assert render_text(w for w in warnings if w.code.code != "OP505") == ""
