"""What a command line means by ``SPEC[:OP]``, ``T=8192,B=8`` and ``X=bf16``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from opspec.diagnostics import Code, Diagnostic, Failure, register
from opspec.driver.files import NOT_FOUND, Spec, find_specs
from opspec.ir.program import Module, Op
from opspec.source import Source, Span

LONGEST_NUMBER = 30

NO_SUCH_OP = register(
    Code(
        code="OP626",
        title="the spec has no such op",
        why="`SPEC:OP` names an op that the file does not define, or leaves out which one of several is meant.",
        example="opspec query specs/reduce/softmax.op:softmx flops",
        fix="Name one of the ops listed behind the colon.",
    )
)
BAD_SETTING = register(
    Code(
        code="OP627",
        title="an option is not NAME=VALUE",
        why="`--set` takes dims with integers and `--dtype` takes dtype parameters with types, separated by commas.",
        example="opspec query specs/reduce/softmax.op bytes --set M:8192",
        fix="Write `--set M=8192,N=4096` or `--dtype X=bf16`.",
    )
)


@dataclass(frozen=True, slots=True)
class Target:
    """A file and, where one is named, an op in it."""

    spec: Spec
    op: str


def split_target(text: str) -> Target:
    """The file and op of ``SPEC[:OP]``; a file whose name holds a colon is found too.

    Raises: Failure if there is no such file.
    """
    path, colon, op = text.rpartition(":")
    if Path(text).is_file() or not colon:
        return Target(_one(text), "")
    return Target(_one(path), op)


def _one(text: str) -> Spec:
    if Path(text).is_dir():
        fault = Diagnostic(
            code=NOT_FOUND,
            message=f"`{text}` is a folder; this command takes one spec",
            span=None,
            help=f"name a file: {_listed(_inside(Path(text))) or 'it holds none'}",
        )
        raise Failure(fault)
    return find_specs([text])[0]


def _inside(folder: Path) -> list[str]:
    return [p.as_posix() for p in sorted(folder.rglob("*.op"))[:8]]


def choose_op(module: Module, target: Target, *, workload: str | None = None) -> Op:
    """The op that is meant: the named one, the only one, the one that the workload is for, or the one
    that bears the name of the file.

    Raises: Failure if there is none of that name, or the choice is open.
    """
    names = [o.name for o in module.ops]
    if target.op or not names:
        found = module.op(target.op)
        if found is None:
            raise Failure(no_such_op(target, names))
        return found
    if len(names) == 1:
        return module.ops[0]
    owner = next((w.op for w in module.workloads if w.name == workload), target.spec.path.stem)
    chosen = module.op(owner)
    if chosen is None:
        message = f"`{target.spec.shown}` defines {len(names)} ops; say which"
        shown = f"write `{target.spec.path}:{names[0]}`, or another of {_listed(names)}"
        raise Failure(Diagnostic(code=NO_SUCH_OP, message=message, span=None, help=shown))
    return chosen


def choose_ops(module: Module, target: Target) -> tuple[Op, ...]:
    """The named op, or all of the file's.

    Raises: Failure if there is none of that name, or none at all.
    """
    return (choose_op(module, target),) if target.op or not module.ops else module.ops


def no_such_op(target: Target, names: list[str]) -> Diagnostic:
    """The diagnostic for an op that the file does not define."""
    if not names:
        message = f"`{target.spec.shown}` defines no op"
        return Diagnostic(code=NO_SUCH_OP, message=message, span=None, help="add an `op` to the file")
    near = get_close_matches(target.op[:60], names, n=1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    return Diagnostic(
        code=NO_SUCH_OP,
        message=f"`{target.spec.shown}` defines no op `{target.op}`",
        span=_written("spec", target.op),
        help=f"{hint}known: {_listed(names)}",
    )


def settings(texts: Iterable[str]) -> dict[str, int]:
    """``["T=8192,B=8"]`` as numbers, the last one of a name counts. Digits may be grouped by ``_``.

    Raises: Failure for what is not NAME=INTEGER.
    """
    found: dict[str, int] = {}
    for name, value, text in _pairs("set", texts):
        digits = value.removeprefix("-").replace("_", "")
        if not (digits.isascii() and digits.isdigit()) or len(digits) > LONGEST_NUMBER:
            raise Failure(_bad("set", text, f"`{name}` needs an integer, not `{value[:LONGEST_NUMBER]}`"))
        found[name] = int(value)
    return found


def dtypes(texts: Iterable[str]) -> dict[str, str]:
    """``["X=bf16"]`` as names.

    Raises: Failure for what is not NAME=TYPE.
    """
    return {name: value for name, value, _ in _pairs("dtype", texts)}


def _pairs(option: str, texts: Iterable[str]) -> Iterable[tuple[str, str, str]]:
    for text in texts:
        for part in _split(text):
            name, equals, value = (p.strip() for p in part.partition("="))
            if not (name and equals and value):
                raise Failure(_bad(option, text, f"`{part.strip()}` is not NAME=VALUE"))
            yield name, value, text


def _split(text: str) -> list[str]:
    """Parts between commas that stand outside parentheses: moments are called ``sum(a, b)``."""
    parts, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def _bad(option: str, text: str, message: str) -> Diagnostic:
    return Diagnostic(code=BAD_SETTING, message=message, span=_written(option, text), help=BAD_SETTING.fix)


def _written(option: str, text: str) -> Span:
    return Span(Source(f"<{option}>", text), 0, len(text))


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{n}`" for n in names)
