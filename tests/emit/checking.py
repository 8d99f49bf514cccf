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
    """One process that answers requests, with Triton's interpreter on or off."""

    def __init__(self, script: str, interpret: str) -> None:
        self.script, self.interpret = script, interpret
        self.start()

    def start(self) -> None:
        interpret, script = self.interpret, self.script
        env = os.environ | {"TRITON_INTERPRET": interpret, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(HERE / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if os.environ.get("OPSPEC_TEST_STDERR") else subprocess.DEVNULL,
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
        if not line:
            self.process.wait()
            self.start()
            return {"broken": "the process died"}
        return json.loads(line)


@lru_cache(maxsize=1)
def interpreter() -> Worker:
    return Worker("worker.py", "1")


@lru_cache(maxsize=1)
def compiler() -> Worker:
    return Worker("compiling.py", "0")


def ask(text: str, count: int = 2, **more: Any) -> dict[str, Any]:
    """What the interpreting process says of one spec."""
    return interpreter().ask({"text": text, "count": count, **more})


def compiled(text: str, *extents: int | dict[str, int], **more: Any) -> dict[str, Any]:
    """What the compiling process says of one spec."""
    return compiler().ask({"text": text, "extents": list(extents), **more})


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
