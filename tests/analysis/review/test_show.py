"""The review as Markdown, text and JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from opspec.analysis.codes import BUDGET
from opspec.analysis.review.data import to_json
from opspec.analysis.review.escape import code, one_line, words
from opspec.analysis.review.markdown import LONGEST, to_markdown
from opspec.analysis.review.model import (
    BudgetChange,
    Crossing,
    Flip,
    FormChange,
    NumberChange,
    OpReview,
    PipelineChange,
    Review,
    SpecReview,
)
from opspec.analysis.review.plain import to_text
from opspec.analysis.review.policy import status
from opspec.diagnostics import Diagnostic

EMPTY = Review(base="main", head="working tree", looked_at=14, machines=("h200",))
EVIL = [
    "<script>alert(1)</script>", "`x` | y", "[a](javascript:b)", "@everyone", "a\n\n# heading", "</details>",
    "![i](http://e)", "www.example.com", "| --- |", "\\`", "<!-- x -->", "&lt;b&gt;", "\u202eabc",
]  # fmt: skip


def op(**more) -> OpReview:
    number = NumberChange(
        workload="w", machine="h200", boundary="", quantity="time", unit="s", before=1e-3, after=5e-4
    )
    form = FormChange(quantity="bytes", unit="B", boundary="", before="4 * T", after="2 * T", growth=())
    return OpReview(
        **{"op": "f", "kind": "changed", "forms": (form,), "numbers": (number,), "edited": True, **more}
    )


def review(*ops: OpReview, **more) -> Review:
    return replace(EMPTY, specs=(SpecReview(path="specs/f.op", ops=ops, **more),))


def test_nothing_to_say_is_one_line():
    text = to_markdown(EMPTY)
    assert (
        text
        == "<!-- opspec diff -->\n**opspec**: no change of cost (14 specs looked at), `main` → `working tree`\n"
    )
    assert to_text(EMPTY) == "opspec: no change of cost (14 specs looked at), main → working tree\n"
    quiet = review(OpReview(op="f", kind="same", edited=True))
    assert "<details>" not in to_markdown(quiet)


def test_a_change_is_folded_and_the_heartbeat_is_not():
    text = to_markdown(review(op()))
    assert text.splitlines()[1].startswith("**opspec**: 1 op changed (14 specs looked at)")
    assert text.count("<details>") == text.count("</details>") == 1
    assert "| `bytes` | `4 * T` | `2 * T` |" in text
    assert "| time on | `w` |\n| --- | --- |\n| `h200` | 1 ms → 500 µs (−50%) |" in text


def test_what_matters_stands_outside_of_the_fold():
    budget = BudgetChange(workload="w", text="bytes == 1", standing="broken", message="the left side is 2 B")
    flip = Flip(workload="w", machine="h200", boundary="", before="memory", after="tensor")
    top = to_markdown(review(op(flips=(flip,)), budgets=(budget,))).partition("<details>")[0]
    assert "budget broken: `bytes == 1` at `w` in `specs/f.op`: the left side is 2 B" in top
    assert "bound of `f` at `w`: memory → tensor on `h200`" in top


def test_code_that_differs_at_equal_cost_is_said():
    text = to_markdown(review(op(kind="same", forms=(), numbers=(), recoded=True)))
    assert "1 op with other code at equal cost" in text
    assert "the generated code differs, the closed forms do not" in text


@pytest.mark.parametrize("evil", EVIL)
def test_no_name_becomes_markup(evil: str):
    full = op(
        op=evil,
        notes=(evil,),
        renamed=((evil, evil),),
        crossings=(Crossing(workload=evil, machine=evil, boundary=evil, dim=evil, before="1", after="2"),),
        flips=(Flip(workload=evil, machine=evil, boundary=evil, before="memory", after="sfu"),),
        forms=(
            FormChange(
                quantity=evil,
                unit="B",
                boundary=evil,
                before=evil,
                after=evil,
                dominant_before=evil,
                growth=((evil, 1, 2),),
            ),
        ),
        numbers=(
            NumberChange(
                workload=evil, machine=evil, boundary=evil, quantity=evil, unit="B", before=1, after=2
            ),
        ),
    )
    budget = BudgetChange(workload=evil, text=evil, standing="broken", message=evil)
    text = to_markdown(replace(review(full, budgets=(budget,), moved_from=evil), base=evil))
    bare = re.sub(r"`[^`\n]*`", "", text).replace("<!-- opspec diff -->", "")
    assert set(re.findall(r"<[^>]*>", bare)) <= {
        "<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>", "<i>", "</i>",
    }  # fmt: skip
    assert text.count("</details>") - text.count("`</details>`") == 1
    assert "javascript" not in bare or "(javascript:" not in bare
    assert "@everyone" not in bare
    assert "\n# heading" not in text
    assert "www.example" not in bare
    columns = {row.replace("\\|", "").count("|") for row in bare.splitlines() if row.startswith("| ")}
    assert columns <= {3, 5, 6}
    assert "\u202e" not in text


def test_escaping():
    assert code("a * b") == "`a * b`"
    assert code("a`b") == "<code>a&#96;b</code>"
    assert code("") == ""
    assert one_line("a\x00\n b") == "a b"
    assert len(one_line("x" * 9999)) == 400
    assert words("at 1.5 <b>") == "at 1.5 &#60;b&#62;"


def test_a_comment_fits_github():
    spread = tuple(
        replace(op().numbers[0], workload=f"w{k}", machine=m) for k in range(30) for m in ("a", "b")
    )
    counts = tuple(
        replace(spread[0], workload=f"w{k}", machine="", quantity="bytes", unit="B") for k in range(60)
    )
    many = tuple(op(op=f"op_{k}", numbers=(*spread, *counts)) for k in range(60))
    text = to_markdown(review(*many))
    assert len(text) < LONGEST + 500
    assert re.search(r"… and \d+ more; see", text)
    assert "… and 20 more numbers." in text


def test_end_to_end_stands_beside_the_kernel():
    change = PipelineChange(pipeline="step", variant="fp8", before=58e-3, after=50.96e-3)
    text = to_markdown(review(op(), pipelines=(change,)))
    assert "- end to end of `step.fp8`: 58 ms → 50.96 ms, 1.138×" in text.partition("<details>")[0]
    assert "1 end-to-end time changed" in text
    assert "end to end of step.fp8: 58 ms → 50.96 ms, 1.138×" in to_text(review(op(), pipelines=(change,)))


def test_json_holds_everything():
    record = json.loads(to_json(review(op()), 0))
    assert record["schema"] == "opspec.diff/1"
    assert record["specs"][0]["ops"][0]["numbers"][0]["after"] == 5e-4
    assert record["specs"][0]["quiet"] is False


def test_text_names_every_number():
    text = to_text(review(op(renamed=(("T", "S"),), notes=("a note",))))
    assert "    w on h200: time 1 ms → 500 µs  −50%" in text
    assert "renamed dims: T → S" in text


def test_policies():
    slower = op(numbers=(replace(op().numbers[0], after=2e-3),))
    broken = BudgetChange(workload="w", text="x", standing="still broken")
    fault = Diagnostic(code=BUDGET, message="m", span=None)
    cases = {
        "nothing": (EMPTY, (0, 0, 0, 0)),
        "faster": (review(op()), (0, 0, 0, 1)),
        "slower": (review(slower), (0, 0, 1, 1)),
        "budget": (review(op(), budgets=(broken,)), (0, 1, 1, 1)),
        "spec": (review(faults_after=(fault,)), (0, 2, 2, 2)),
        "was": (review(faults_before=(fault,)), (0, 0, 0, 0)),
    }
    for name, (found, wanted) in cases.items():
        assert tuple(status(found, p) for p in ("never", "budget", "cost", "change")) == wanted, name


def test_machines_with_the_same_fate_share_a_line():
    flips = tuple(
        Flip(workload="w", machine=m, boundary="", before="memory", after="tensor") for m in ("a", "b")
    )
    crossings = tuple(
        Crossing(
            workload="w",
            machine=m,
            boundary="",
            dim="T",
            before="never compute-bound",
            after="compute-bound from 9",
        )
        for m in ("a", "b")
    )
    text = to_markdown(review(op(flips=flips, crossings=crossings)))
    assert "bound of `f` at `w`: memory → tensor on `a`, `b`" in text
    assert (
        "| on | `w` along `T` |\n| --- | --- |\n| `a` | never compute-bound → compute-bound from 9 |" in text
    )
    moved = replace(crossings[0], before="compute-bound from 212")
    assert "| `a` | compute-bound from 212 → 9 |" in to_markdown(review(op(crossings=(moved,))))
    assert "bound at w: memory → tensor on a, b" in to_text(review(op(flips=flips)))


def test_times_stand_by_machine_and_workload():
    one = op().numbers[0]
    times = tuple(replace(one, workload=w, machine=m) for w in ("v", "w") for m in ("a", "b"))
    gone = replace(one, workload="w", machine="c", after=None)
    lines = to_markdown(review(op(numbers=(*times, gone)))).splitlines()
    assert "| time on | `v` | `w` |" in lines
    assert "| `a` | 1 ms → 500 µs (−50%) | 1 ms → 500 µs (−50%) |" in lines
    assert "| `c` | – | 1 ms |" in lines
