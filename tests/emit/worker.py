"""A process that builds specs and runs their kernels in Triton's interpreter, one JSON line a request.

Triton decides when it is first imported whether kernels are interpreted, so that tests which
compile and tests which interpret can't share a process. A request has ``text`` (a spec),
``count``, ``seed``, ``limit`` (elements of the largest tensor), ``faults`` (after which no more are sought), ``dtypes``
(how many choices of them are tried), ``sizes`` ("both", "shipped", "tiny") and ``edits`` (pairs of a pattern and its replacement in the kernel file, each of which must match);
or ``exact``, a case of ``module`` (``exact_cases``).
The answer has ``refused`` (code, line, message), ``verdicts`` or ``broken`` (a traceback).
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

from opspec.diagnostics import Failure
from opspec.driver import verify
from opspec.driver.targets import limits


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if "exact" in request:
        try:
            importlib.import_module(request.get("module", "exact_cases")).CASES[request["exact"]]()
        except Exception:  # noqa: BLE001 - the answer is that something broke, and how
            return {"broken": traceback.format_exc()}
        return {"right": True}
    with tempfile.TemporaryDirectory(prefix="opspec-test-") as folder:
        try:
            return _answer(request, Path(folder))
        except Failure as failure:
            rows = [
                {
                    "code": d.code.code,
                    "line": d.span.source.position(d.span.start)[0] if d.span is not None else None,
                    "message": d.message,
                }
                for d in failure.diagnostics
            ]
            return {"refused": rows}
        except Exception:  # noqa: BLE001 - the answer is that something broke, and how
            return {"broken": traceback.format_exc()}


def _answer(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    from opspec.emit.configure import SMALL, Sizes
    from opspec.emit.package import build_package, prepare
    from opspec.frontend import load

    verify.SMALL, verify.ENOUGH = request.get("limit", 400), request.get("faults", 3)
    spec = folder / "spec.op"
    spec.write_text(request["text"], encoding="utf-8")
    module = load(spec)
    prepared = prepare(module)
    kernels, texts = [], []
    wanted = request.get("sizes", "both")
    chosen = {"both": (Sizes(), SMALL), "shipped": (Sizes(), Sizes()), "tiny": (SMALL, SMALL)}[wanted]
    for k, sizes in enumerate(chosen):
        package = build_package(module, "spec.op", limits(), sizes, prepared=prepared)
        files = package.files
        for name in ("kernel.py", "bench.py"):
            ast.parse(files[name])
        text = files["kernel.py"]
        for pattern, replacement in request.get("edits", ()):
            text, count = re.subn(pattern, replacement, text)
            assert count, f"nothing matches {pattern}"
        path = folder / f"kernel{k}.py"
        path.write_text(text, encoding="utf-8")
        texts.append(text)
        if request.get("count", 2):
            kernels.append(verify.load_module(path))
    rows = []
    if kernels:
        for op, boundary in verify.buildable(module):
            for dtypes in list(verify.assignments(op))[: request.get("dtypes", 99)]:
                v = verify._verify(
                    module,
                    op,
                    boundary,
                    dtypes,
                    kernels,
                    "cpu",
                    request["count"],
                    request.get("seed", 0),
                )
                rows.append(
                    {
                        "op": op.name,
                        "boundary": boundary.name,
                        "dtypes": v.dtypes,
                        "cases": v.cases,
                        "faults": v.faults,
                    }
                )
    return {"verdicts": rows, "kernel": texts[0], "tiny": texts[-1]}


def main() -> None:
    warnings.simplefilter("ignore")
    verify.prepare("cpu")
    import numpy as np

    np.seterr(all="ignore")
    # the protocol has stdout to itself
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
