"""Requests to the worker that interprets kernels, and what its answers must be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


class Worker:
    """One interpreting process, started with the first request."""

    def __init__(self) -> None:
        env = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(HERE / "worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=env,
            cwd=ROOT,
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the worker died"
        return json.loads(line)


@lru_cache(maxsize=1)
def worker() -> Worker:
    return Worker()


def ask(text: str, count: int = 2, **more: Any) -> dict[str, Any]:
    """The worker's answer to one spec."""
    return worker().ask({"text": text, "count": count, **more})


def faults(answer: dict[str, Any]) -> list[str]:
    """What is wrong with an answer that should be right or a refusal; empty if nothing is."""
    if "broken" in answer:
        return [answer["broken"]]
    if "refused" in answer:
        return [
            f"{r['code']} without a line or a reason"
            for r in answer["refused"]
            if r["line"] is None or len(r["message"]) < 10 or r["code"].startswith("OP9")
        ]
    return [f"{v['op']} {v['boundary']} {v['dtypes']}: {f}" for v in answer["verdicts"] for f in v["faults"]]
