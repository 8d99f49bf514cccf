"""Parse tree → syntax nodes: pipelines, variants, evidence, machines and ledgers."""

from __future__ import annotations

from typing import Literal as L

from lark import Token, Tree

from opspec.frontend import syntax as s
from opspec.frontend.expressions import ExpressionBuilder, nodes, tokens

_KINDS: dict[str, L["plain", "each", "span", "op"]] = {
    "duration": "plain",
    "repeated": "each",
    "spanned": "span",
    "op_time": "op",
}


class Composer(ExpressionBuilder):
    """Builds the items that put ops together."""

    def composed(self, node: Tree[Token], doc: str) -> s.Composed:
        """One of the items."""
        match node.data:
            case "pipeline":
                return self.pipeline(node, doc)
            case "variant":
                name, pipeline = map(self.ident, tokens(node, "NAME"))
                stages = tuple(map(self.stage, nodes(node)))
                return s.VariantDecl(
                    name=name, pipeline=pipeline, stages=stages, doc=doc, span=self.span(node)
                )
            case "evidence":
                return self.evidence(node, doc)
            case "machine":
                return self.machine(node, doc)
            case _:
                name, workload, dim = map(self.ident, tokens(node, "NAME"))
                entries = tuple(
                    (self.ident(tokens(e, "NAME")[0]), self.expr(nodes(e)[0])) for e in nodes(node)
                )
                return s.LedgerDecl(
                    name=name, workload=workload, dim=dim, entries=entries, doc=doc, span=self.span(node)
                )

    def pipeline(self, node: Tree[Token], doc: str) -> s.PipelineDecl:
        """``pipeline``."""
        stages: list[s.StageDecl] = []
        overlaps: list[tuple[s.Ident, ...]] = []
        walls: list[s.Measure] = []
        machines: list[s.Ident] = []
        for child in nodes(node):
            match child.data:
                case "stage":
                    stages.append(self.stage(child))
                case "overlap":
                    overlaps.append(tuple(map(self.ident, tokens(child, "NAME"))))
                case "wall":
                    walls.append(self.duration(nodes(child)[0]))
                case _:
                    machines.append(self.ident(tokens(child, "NAME")[0]))
        return s.PipelineDecl(
            name=self.ident(tokens(node, "NAME")[0]),
            stages=tuple(stages),
            overlaps=tuple(overlaps),
            walls=tuple(walls),
            machines=tuple(machines),
            doc=doc,
            span=self.span(node),
        )

    def stage(self, node: Tree[Token]) -> s.StageDecl:
        """``stage``."""
        time, *rest = nodes(node)
        sign = tokens(node, "TIMES")
        if sign and str(sign[0]) != "*":
            self.reject_sign(sign[0])
        counts = [s.Measure(number=str(t), unit="", span=self.span(t)) for t in tokens(node, "NUMBER")]
        run = time if time.data == "op_time" else next((c for c in nodes(time) if c.data == "op_time"), None)
        inner = {c.data: c for c in nodes(run)} if run is not None else {}
        named = [self.ident(t) for t in tokens(run, "NAME")] if run is not None else []
        times = [time] if time.data == "duration" else [c for c in nodes(time) if c.data == "duration"]
        if run is not None and run is not time:
            times += [c for c in nodes(run) if c.data == "duration"]
        return s.StageDecl(
            name=self.ident(tokens(node, "NAME")[0]),
            new=bool(tokens(node, "NEW")),
            kind=_KINDS[time.data],
            count=counts[0] if counts else None,
            times=tuple(map(self.duration, times)),
            op=named[0] if named else None,
            workload=named[1] if named else None,
            boundary=self._inner(inner.get("in_boundary")),
            machine=self._inner(inner.get("on_machine")),
            origin=self.origin(rest[0]) if rest else None,
            span=self.span(node),
        )

    def reject_sign(self, token: Token) -> None:
        """Only ``*`` stands between a count and a time."""
        from opspec.frontend.faults import syntax as faults

        self.reject(
            faults.form(
                self.span(token),
                f"a count is multiplied, not `{token}`",
                "write `32 * 0.55 ms`, for instance",
            )
        )

    def _inner(self, node: Tree[Token] | None) -> s.Ident | None:
        return None if node is None else self.ident(tokens(node, "NAME")[0])

    def duration(self, node: Tree[Token]) -> s.Measure:
        """A number with its unit."""
        return s.Measure(
            number=str(tokens(node, "NUMBER")[0]),
            unit="".join(tokens(node, "NAME")),
            span=self.span(node),
        )

    def origin(self, node: Tree[Token]) -> s.Origin:
        """Where a number is from."""
        text = "".join(str(t)[1:-1] for t in tokens(node, "STRING"))
        word = (
            "from"
            if node.data == "from_file"
            else next(str(t) for t in node.children if isinstance(t, Token) and t.type != "STRING")
        )
        return s.Origin(word=word, text=text, span=self.span(node))

    def evidence(self, node: Tree[Token], doc: str) -> s.EvidenceDecl:
        """``evidence``."""
        rows: list[s.RowDecl] = []
        numbers: list[s.RecomputedDecl] = []
        gate: list[s.GateLine] = []
        for child in nodes(node):
            match child.data:
                case "evidence_row" | "numbers_row":
                    name = tokens(child, "NAME")
                    rows.append(
                        s.RowDecl(
                            name=self.ident(name[0]) if name else s.Ident("numbers", self.span(child)),
                            world=bool(tokens(child, "WORLD")),
                            texts=tuple(str(t)[1:-1] for t in tokens(child, "STRING")),
                            span=self.span(child),
                        )
                    )
                case "numbers":
                    for line in nodes(child):
                        op, workload = map(self.ident, tokens(line, "NAME"))
                        query = self.span(nodes(line)[0])
                        numbers.append(
                            s.RecomputedDecl(op=op, workload=workload, query=query, span=self.span(line))
                        )
                case _:
                    gate += [
                        s.GateLine(
                            condition=self.expr(nodes(line)[0]),
                            label="".join(str(t)[1:-1] for t in tokens(line, "STRING")),
                            span=self.span(line),
                        )
                        for line in nodes(child)
                    ]
        title, pipeline, variant = map(self.ident, tokens(node, "NAME"))
        return s.EvidenceDecl(
            name=title,
            pipeline=pipeline,
            variant=variant,
            rows=tuple(rows),
            numbers=tuple(numbers),
            gate=tuple(gate),
            doc=doc,
            span=self.span(node),
        )

    def machine(self, node: Tree[Token], doc: str) -> s.MachineDecl:
        """``machine``."""
        name, *like = map(self.ident, tokens(node, "NAME"))
        values: list[s.MachineValueDecl] = []
        for child in nodes(node):
            rate = next((c for c in nodes(child) if c.data == "rate"), None)
            number = tokens(child, "NUMBER")[0]
            values.append(
                s.MachineValueDecl(
                    key=".".join(tokens(child, "NAME")),
                    value=s.Measure(
                        number=str(number),
                        unit="".join(str(t) for t in rate.children) if rate is not None else "",
                        span=self.span(number).to(self.span(rate)) if rate is not None else self.span(number),
                    ),
                    dense=bool(tokens(child, "DENSE")),
                    origin=self.origin(nodes(child)[-1]),
                    span=self.span(child),
                )
            )
        return s.MachineDecl(
            name=name, like=like[0] if like else None, values=tuple(values), doc=doc, span=self.span(node)
        )
