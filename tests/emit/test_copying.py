"""Copies of operands with odd rows, see ``copying_cases``; and what the launchers and kernels say."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from checking import compiled, interpreter

from opspec.driver.targets import limits
from opspec.emit.package import build_package
from opspec.frontend import load
from opspec.runtime import copying
from opspec.runtime.calls import Call

SOURCE = (Path(__file__).parent / "copying_cases.py").read_text(encoding="utf-8")
NAMES = re.findall(r"^@case\ndef (\w+)", SOURCE, re.MULTILINE)
PRODUCT = """op f[M, N, K](a: bf16[M, K], b: bf16[N, K]) -> c: bf16[M, N] {
  kernel k { c[m, n] = sum[k](a[m, k] * b[n, k]) }
}
"""


@pytest.mark.parametrize("name", NAMES)
def test_copies_and_their_products_are_right(name: str):
    answer = interpreter().ask({"exact": name, "module": "copying_cases"})
    assert answer == {"right": True}, answer.get("broken")


def test_there_are_cases():
    assert len(NAMES) > 7


def test_programs_of_many_rows_stand_along_one_axis(monkeypatch):
    started = []

    class Kernel:
        def __getitem__(self, grid):
            return lambda *args, **options: started.append((grid, args, options))

    monkeypatch.setattr(copying, "copy_rows", Kernel())
    many, wide = torch.empty(70_000, 3, dtype=torch.bfloat16), torch.empty(5, 4099, dtype=torch.bfloat16)
    copying.all_aligned_rows(Call(torch.device("cpu"), [many, wide], recording=False), many, wide)
    ((grid, args, options),) = started
    assert grid == (70_000 + 5 * 3, 1, 1)
    assert args[2] == 70_000
    assert args[14] == 15
    assert args[24:26] == (None, None)
    assert (options["MANY"], options["AXES"], options["BLOCK"]) == (2, 1, 2048)


def test_a_launcher_copies_its_operands_at_once(tmp_path):
    spec = tmp_path / "spec.op"
    spec.write_text(PRODUCT, encoding="utf-8")
    text = build_package(load(spec), "spec.op", limits()).files["kernel.py"]
    assert text.count("copying.") == 2
    assert "a, b = copying.all_aligned_rows(call, a, b)" in text
    described = text[text.index("_described(") :]
    assert described.index("mask = ") < described.index("c_at = ")


@pytest.mark.parametrize("columns", [4095, 515])
def test_a_result_with_odd_rows_spills_nothing(columns: int):
    answer = compiled(PRODUCT, {"M": 4097, "N": columns, "K": 4096})
    rows = [r for r in answer["compiled"] if r["kernel"].endswith("_described")]
    assert rows
    assert not any(r["spills"] for r in rows)


def test_copies_pay_by_how_often_their_elements_are_used():
    def operand(rows: int, columns: int) -> torch.Tensor:
        return torch.empty(rows, columns, dtype=torch.bfloat16)

    odd, even = operand(4096, 301), operand(4096, 512)
    assert copying.copies_pay(4096, 301, operand(4096, 4096), operand(4096, 301))  # the larger one stays
    assert copying.copies_pay(600, 500, operand(600, 101), operand(101, 500))
    assert not copying.copies_pay(401, 401, operand(401, 101), operand(101, 401))
    assert not copying.copies_pay(8192, 100, even, odd)


def test_nothing_is_copied_for_a_device_without_descriptors(monkeypatch):
    monkeypatch.setattr(copying, "launch", SimpleNamespace(has_tensor_memory=lambda _: False))
    assert not copying.copies_pay(600, 600, torch.empty(600, 601, dtype=torch.bfloat16))
