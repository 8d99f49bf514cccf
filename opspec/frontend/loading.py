"""Files → checked modules: imports, the prelude, and everything at the top level."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import assert_never

from opspec import resources
from opspec.diagnostics import Diagnostic, Failure
from opspec.frontend import (
    boundaries,
    building,
    contractions,
    expressions,
    lexing,
    parsing,
    signature,
    workloads,
)
from opspec.frontend import syntax as s
from opspec.frontend.builtins import RESERVED, function_names
from opspec.frontend.compose import compose
from opspec.frontend.faults import names
from opspec.frontend.faults import syntax as faults
from opspec.frontend.faults.naming import nearest
from opspec.frontend.files import read_source
from opspec.frontend.functions import check_parameters, check_recursion
from opspec.frontend.operators import operator
from opspec.frontend.parsing import parse
from opspec.frontend.scope import OpScope
from opspec.frontend.traffic import Rows, read_traffic
from opspec.ir.bounds import Exhausted, allowance, remaining
from opspec.ir.dtypes import DTypeParam
from opspec.ir.program import Expectation, Module, Op, Workload
from opspec.parsers import cached_value
from opspec.source import Source, Span

MAX_BUDGETS = 1_000
MAX_STEPS = 200_000  # of all proofs about one file

Checked = tuple[Module, tuple[Diagnostic, ...]]


def load(path: Path | str) -> Module:
    """The checked module of a spec file; raises Failure with every diagnostic."""
    return load_with_warnings(path)[0]


def load_text(text: str, name: str = "<text>") -> Module:
    """The checked module of a text; imports are relative to the working directory."""
    return text_with_warnings(text, name)[0]


def load_with_warnings(path: Path | str, shown: str = "") -> Checked:
    """The checked module and its warnings; raises Failure if there are errors.

    ``shown``: what the file is called in messages, if not by its path.
    """
    source = read_source(Path(path), shown or str(path), None)
    return _check(source, Path(path).resolve())


def text_with_warnings(text: str, name: str = "<text>") -> Checked:
    """Like ``load_with_warnings``, for a text."""
    return _check(Source.normalised(name, text), None)


@lru_cache(maxsize=1)
def prelude() -> tuple[Source, tuple[s.Function, ...]]:
    """The functions that every spec may use."""
    text = resources.prelude().read_text(encoding="utf-8")
    made_by = [Path(m.__file__ or "").read_text("utf-8") for m in (parsing, building, expressions, s, lexing)]
    key = "\0".join([text, resources.grammar(), *made_by])
    found = cached_value("prelude", key, s.File, lambda: _parsed_prelude(text))
    return found.source, tuple(i for i in found.items if isinstance(i, s.Function))


def _parsed_prelude(text: str) -> s.File:
    report: list[Diagnostic] = []
    parsed = parse(Source.normalised("prelude.op", text), report)
    if report:
        raise Failure(*report)
    return parsed


@dataclass(slots=True)
class _Loader:
    """What has been gathered from a file and its imports."""

    report: list[Diagnostic] = field(default_factory=list)
    files: dict[Path | None, Source] = field(default_factory=dict)
    functions: dict[str, s.Function] = field(default_factory=dict)
    dtypes: dict[str, DTypeParam] = field(default_factory=dict)
    ops: list[tuple[s.OpDecl, dict[str, DTypeParam]]] = field(default_factory=list)
    workloads: list[s.WorkloadDecl] = field(default_factory=list)
    expects: list[s.ExpectDecl] = field(default_factory=list)
    boundaries: list[s.BoundaryDecl] = field(default_factory=list)
    composed: list[s.Composed] = field(default_factory=list)
    traffic: dict[str, Source] = field(default_factory=dict)
    complete: bool = True
    main: Source | None = None

    def wanted(self) -> set[str]:
        """Names of the ops to check: those of the main file, and imported ones that it speaks of."""
        spoken = {w.op.text for w in self.workloads if w.span.source is self.main}
        spoken |= {b.op.text for b in self.boundaries if b.span.source is self.main}
        own = {n.name.text for n, _ in self.ops if n.span.source is self.main}
        return spoken | own

    def read(self, source: Source, path: Path | None, chain: tuple[tuple[Path | None, str], ...]) -> str:
        """Gather a file and, before it, what it imports; returns its doc string."""
        self.files[path] = source
        self.main = self.main or source
        parsed = parse(source, self.report)
        self.complete = self.complete and parsed.complete
        chain = (*chain, (path, source.name))
        for item in parsed.items:
            if isinstance(item, s.Import):
                self.follow(item, path, chain)
        own: dict[str, DTypeParam] = {}
        scope = OpScope("", self.report, {})
        for item in parsed.items:
            match item:
                case s.DtypeDecl():
                    param = signature.dtype_param(item, scope)
                    if param is not None and param.name in own:
                        self.report.append(names.duplicate(item.name.span, param.name, None))
                    elif param is not None:
                        own[param.name] = param
                case s.Function():
                    self.function(item)
                case s.OpDecl():
                    self.ops.append((item, own))
                case s.WorkloadDecl():
                    self.workloads.append(item)
                case s.ExpectDecl():
                    self.expects.append(item)
                case s.BoundaryDecl():
                    self.boundaries.append(item)
                case s.Import():
                    pass
                case _:
                    self.composed.append(item)
        return parsed.doc

    def linked(self) -> set[str]:
        """Names of the ops that stages and evidence of the main file run and that it does not define."""
        found: set[str] = set()
        for item in self.own():
            match item:
                case s.PipelineDecl() | s.VariantDecl():
                    found |= {d.op.text for d in item.stages if d.op is not None}
                case s.EvidenceDecl():
                    found |= {d.op.text for d in item.numbers}
                case s.LedgerDecl():
                    found |= {w.op.text for w in self.workloads if w.name.text == item.workload.text}
                case s.MachineDecl():
                    pass
                case _:
                    assert_never(item)
        return found - self.wanted()

    def own(self) -> list[s.Composed]:
        """Pipelines and evidence of the main file, and machines of every file."""
        return [c for c in self.composed if c.span.source is self.main or isinstance(c, s.MachineDecl)]

    def recorded(self, setting: s.Setting, given: tuple[str, ...]) -> Rows:
        """The rows of a traffic file, beside the file that names it."""
        home = next((p for p, f in self.files.items() if f is setting.span.source), None)
        folder = home.parent if home is not None else Path.cwd()
        rows, source = read_traffic(folder, setting, given, self.report)
        if source is not None:
            base = setting.span.source.name.rpartition("/")[0]
            shown = (
                f"{base}/{setting.path}" if base and not Path(setting.path).is_absolute() else setting.path
            )
            self.traffic[shown] = Source(shown, source.text)
        return rows

    def function(self, item: s.Function) -> None:
        """Declare a function; one of the prelude may be replaced, one of the language not."""
        name = item.name.text
        if name in RESERVED or name in function_names():
            self.report.append(faults.reserved(item.name.span, name, "a function"))
            return
        first = self.functions.get(name)
        if first is not None and first.span.source.name != "prelude.op":
            self.report.append(names.duplicate(item.name.span, name, first.name.span))
            return
        self.functions[name] = item

    def follow(self, item: s.Import, path: Path | None, chain: tuple[tuple[Path | None, str], ...]) -> None:
        """Gather an imported file."""
        base = path.parent if path is not None else Path.cwd()
        if len(item.path) > 1_000:
            self.report.append(faults.unreadable(item.span, f"{item.path[:60]}…", "it is no path"))
            return
        try:
            target = (base / item.path).resolve()
            missing = not target.exists()
            other = not missing and not target.is_file()
        except (OSError, ValueError, RuntimeError):
            self.report.append(faults.unreadable(item.span, item.path, "it is no path"))
            return
        if other:
            self.report.append(faults.unreadable(item.span, item.path, "it is no file"))
            return
        if missing:
            near = [p.name for p in islice(target.parent.glob("*.op"), 200)] if target.parent.is_dir() else []
            help_ = nearest(target.name, near)
            self.report.append(faults.unreadable(item.span, item.path, "no such file or directory", help_))
            self.complete = False
            return
        if target in {p for p, _ in chain}:
            first = next(k for k, (p, _) in enumerate(chain) if p == target)
            loop = (*(n for _, n in chain[first:]), chain[first][1])
            self.report.append(faults.cycle(item.span, loop))
            return
        if target in self.files:
            return
        if len(self.files) > 200:
            self.report.append(faults.unreadable(item.span, item.path, "more than 200 files are imported"))
            return
        folder = chain[-1][1].rpartition("/")[0]
        shown = f"{folder}/{item.path}" if folder and not Path(item.path).is_absolute() else item.path
        try:
            source = read_source(target, shown, item.span)
        except Failure as failure:
            self.report += failure.diagnostics
            self.complete = False
            return
        self.read(source, target, chain)


def _check(source: Source, path: Path | None) -> Checked:
    loader = _Loader()
    base, functions = prelude()
    library = {f.name.text: f for f in functions}
    loader.functions.update(library)
    doc = loader.read(source, path, ())
    own = {name: f for name, f in loader.functions.items() if f.span.source is not base}
    for function in own.values():
        check_parameters(function, loader.report)
    check_recursion(own, loader.report)
    ops: dict[str, Op | None] = {}
    places: dict[str, Span] = {}
    wanted = loader.wanted()
    linked = loader.linked()
    spent = 0
    loader.ops.sort(key=lambda pair: pair[0].span.source is not source)
    for node, dtypes in loader.ops:
        name = node.name.text
        if name not in wanted and name not in linked:
            continue
        if name in ops:
            loader.report.append(names.duplicate(node.name.span, name, places[name]))
            continue
        places[name] = node.name.span
        try:
            with allowance(left := MAX_STEPS - spent):
                ops[name] = operator(node, loader.functions, library, dtypes, loader.report)
                spent += left - remaining()
        except Exhausted:
            loader.report.append(faults.too_hard(node.name.span, name))
            loader.complete = False
            break
    for boundary in loader.boundaries:
        if boundary.op.text not in wanted and boundary.op.text not in linked:
            continue
        boundaries.add(boundary, ops, loader.report, complete=loader.complete)
    made: dict[str, Workload | None] = {}
    for workload in (w for w in loader.workloads if w.span.source is source):
        workloads.add(workload, ops, made, loader.report, loader.recorded, complete=loader.complete)
    borrowed: dict[str, Workload | None] = {}
    for workload in (w for w in loader.workloads if w.op.text in linked):
        workloads.add(workload, ops, borrowed, loader.report, loader.recorded, complete=loader.complete)
    expectations: list[Expectation] = []
    for expect in (e for e in loader.expects if e.span.source is source):
        if len(expectations) + len(expect.budgets) > MAX_BUDGETS:
            loader.report.append(faults.more_than(expect.workload.span, "budgets in one file", MAX_BUDGETS))
            break
        expectations += workloads.budgets(expect, made, loader.report, complete=loader.complete)
    composition = compose(loader.own(), ops, {**borrowed, **made}, loader.report, complete=loader.complete)
    for name, op in ops.items():
        if op is not None and name in wanted:
            loader.report += boundaries.crossings(op)
            loader.report += boundaries.unused(op)
            loader.report += contractions.off_the_matrix_units(op)
    warnings = tuple(d for d in loader.report if d.severity != "error")
    if len(warnings) != len(loader.report):
        raise Failure(*ordered(loader.report))
    checked = [o for name, o in ops.items() if o is not None and name in wanted]
    lent = [o for name, o in ops.items() if o is not None and name in linked]
    module = Module(
        doc=doc,
        ops=tuple(_documented(o, doc, len(checked)) for o in checked),
        workloads=tuple(w for w in made.values() if w is not None),
        expectations=tuple(expectations),
        files=(*loader.files.values(), *loader.traffic.values(), base),
        pipelines=composition.pipelines,
        variants=composition.variants,
        evidence=composition.evidence,
        machines=composition.machines,
        ledgers=composition.ledgers,
        linked=tuple(
            (o, tuple(w for w in borrowed.values() if w is not None and w.op == o.name)) for o in lent
        ),
    )
    return module, ordered(warnings)


def _documented(op: Op, doc: str, count: int) -> Op:
    from dataclasses import replace

    return replace(op, doc=doc) if not op.doc and count == 1 else op


def ordered(report: list[Diagnostic] | tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """By file and place, each fault once."""
    seen: dict[tuple[str, str, int, int], Diagnostic] = {}
    for d in report:
        name = d.span.source.name if d.span is not None else ""
        start, end = (d.span.start, d.span.end) if d.span is not None else (0, 0)
        seen.setdefault((name, d.code.code, start, end), d)
    return tuple(
        sorted(
            seen.values(), key=lambda d: (d.span.source.name, d.span.start) if d.span is not None else ("", 0)
        )
    )
