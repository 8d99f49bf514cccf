"""Checks of pipelines and their variants; what they name must exist."""

from __future__ import annotations

from opspec import resources
from opspec.diagnostics import Note
from opspec.frontend import syntax as s
from opspec.frontend.faults import composition as faults
from opspec.frontend.faults import names
from opspec.frontend.faults.naming import nearest
from opspec.frontend.measures import duration
from opspec.frontend.stages import Scope, check_machine, stages
from opspec.ir.composition import Pipeline, Variant
from opspec.source import Span


def shipped() -> set[str]:
    """Names of the machines that ship."""
    return {p.stem for p in resources.machines().glob("*.toml")}


def pipeline(node: s.PipelineDecl, scope: Scope) -> None:
    """Check a pipeline and add it; None stands for one that was refused."""
    name = node.name.text
    if name in scope.pipelines:
        scope.report.append(names.duplicate(node.name.span, name, None))
        return
    scope.pipelines[name] = None
    before = len(scope.report)
    found = stages(node.stages, scope, None)
    for d in node.stages:
        if d.new:
            scope.report.append(faults.stage(d.span, "only a variant adds a new stage", "leave out `new`"))
    if not node.stages:
        scope.report.append(
            faults.stage(node.name.span, f"pipeline `{name}` has no stage", "add `stage mlp = 24.0 ms`")
        )
    for machine in node.machines[1:]:
        scope.report.append(faults.stage(machine.span, f"pipeline `{name}` names two machines"))
    for wall in node.walls[1:]:
        scope.report.append(faults.stage(wall.span, f"pipeline `{name}` has two wall times"))
    for machine in node.machines:
        check_machine(machine, scope)
    walls = [duration(w, scope.report, positive=True) for w in node.walls]
    overlaps = _overlaps(node, scope)
    spanned = [d for d in node.stages if d.kind == "span"]
    if spanned and len(spanned) != len(node.stages):
        other = next(d for d in node.stages if d.kind != "span")
        scope.report.append(
            faults.stage(
                other.span,
                f"stage `{other.name.text}` has no recorded span, and others of the pipeline have",
                "give every stage a span `3 ms .. 6 ms`, or none",
            )
        )
    elif spanned and overlaps:
        scope.report.append(
            faults.stage(node.overlaps[0][0].span, "recorded spans say themselves what overlaps")
        )
    elif spanned and not walls:
        scope.report.append(
            faults.stage(
                node.name.span, f"pipeline `{name}` has recorded spans and no wall time", "add `wall 10 ms`"
            )
        )
    if len(scope.report) == before:
        scope.pipelines[name] = Pipeline(
            name=name,
            doc=node.doc,
            stages=found,
            overlaps=overlaps,
            wall=walls[0] if walls else None,
            machine=node.machines[0].text if node.machines else "",
            span=node.span,
        )


def _overlaps(node: s.PipelineDecl, scope: Scope) -> tuple[tuple[str, ...], ...]:
    known = [d.name.text for d in node.stages]
    seen: dict[str, Span] = {}
    for group in node.overlaps:
        for member in group:
            if member.text not in known:
                scope.report.append(names.unknown(member.span, member.text, known, "stage"))
            elif member.text in seen:
                scope.report.append(
                    faults.stage(
                        member.span,
                        f"stage `{member.text}` overlaps twice",
                        "put all that run side by side on one line",
                        Note("first here", seen[member.text]),
                    )
                )
            seen.setdefault(member.text, member.span)
    return tuple(tuple(m.text for m in group) for group in node.overlaps)


def variant(node: s.VariantDecl, scope: Scope) -> None:
    """Check a variant of a pipeline and add it."""
    name, owner = node.name.text, node.pipeline.text
    if owner not in scope.pipelines:
        if scope.complete:
            scope.report.append(names.unknown(node.pipeline.span, owner, scope.pipelines, "pipeline"))
        return
    if (owner, name) in scope.variants:
        scope.report.append(names.duplicate(node.name.span, name, None))
        return
    scope.variants[owner, name] = None
    base = scope.pipelines[owner]
    before = len(scope.report)
    found = stages(node.stages, scope, base)
    if not node.stages:
        scope.report.append(
            faults.stage(
                node.name.span, f"variant `{name}` restates no stage", "add the stage that it changes"
            )
        )
    if base is not None:
        _against(base, node, scope)
    if len(scope.report) == before and base is not None:
        scope.variants[owner, name] = Variant(
            name=name, pipeline=owner, doc=node.doc, stages=found, span=node.span
        )


def _against(base: Pipeline, node: s.VariantDecl, scope: Scope) -> None:
    """A variant keeps to the kind of times that its pipeline has."""
    own = {x.name: x for x in base.stages}
    recorded = any(x.start is not None for x in base.stages)
    for d in node.stages:
        if d.kind == "span":
            scope.report.append(
                faults.stage(
                    d.span, "a variant gives a stage its new time, not a span", "write `stage a = 2 ms`"
                )
            )
        elif recorded and d.name.text not in own:
            scope.report.append(
                faults.stage(d.name.span, f"stage `{d.name.text}` has no recorded span in `{base.name}`")
            )
        elif not d.new and d.name.text not in own:
            help_ = nearest(d.name.text, own) or f"write `new stage {d.name.text} = …` if the variant adds it"
            scope.report.append(
                faults.stage(d.name.span, f"`{base.name}` has no stage `{d.name.text}`", help_)
            )
        elif d.new and d.name.text in own:
            note = Note("it stands here", own[d.name.text].span)
            message = f"`{base.name}` has a stage `{d.name.text}` already"
            scope.report.append(faults.stage(d.name.span, message, "leave out `new`", note))
