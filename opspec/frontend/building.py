"""Parse tree → syntax nodes: items. Shapes only: no name is looked up here."""

from __future__ import annotations

import textwrap

from lark import Token, Tree

from opspec.frontend import syntax as s
from opspec.frontend.composing import Composer
from opspec.frontend.expressions import ExpressionBuilder, Node, Rejected, nodes, span_of, tokens
from opspec.frontend.faults import syntax as faults


def doc_text(token: str) -> str:
    """The text of a doc string, without quotes and indentation."""
    return textwrap.dedent(token[3:-3]).strip()


MAX_DIMS = 64
MAX_PARAMETERS = 256
MAX_LINES = 256
MAX_CONDITIONS = 32


class Builder(ExpressionBuilder):
    """Builds the nodes of one item."""

    def item(self, tree: Tree[Token]) -> s.Item:
        """A top-level item."""
        children = list(tree.children)
        doc = doc_text(str(children.pop(0))) if isinstance(children[0], Token) else ""
        node = children[0]
        assert isinstance(node, Tree)
        match node.data:
            case "import_decl":
                return s.Import(path=str(_last(node))[1:-1], span=self.span(_last(node)))
            case "dtype_decl":
                return self.dtype_decl(node)
            case "fn":
                return self.function(node, doc)
            case "op":
                return self.op(node, doc)
            case "workload":
                return self.workload(node)
            case "expect":
                name, *budgets = _named(node)
                return s.ExpectDecl(
                    workload=self.ident(name),
                    budgets=tuple(self.span(b) for b in budgets),
                    span=self.span(node),
                )
            case "boundary":
                return self.boundary(node)
            case _:
                return Composer(self.source, self.report).composed(node, doc)

    def dtype_decl(self, node: Tree[Token]) -> s.DtypeDecl:
        """``dtype X in {…}``."""
        name, *choices = tokens(node, "NAME")
        return s.DtypeDecl(
            name=self.ident(name), choices=tuple(map(self.ident, choices)), span=self.span(node)
        )

    def function(self, node: Tree[Token], doc: str) -> s.Function:
        """``fn``."""
        name = tokens(node, "NAME")[0]
        indices: tuple[s.Ident, ...] = ()
        params: tuple[s.Ident, ...] = ()
        bindings: tuple[s.Binding, ...] = ()
        value: s.Expr | None = None
        for child in nodes(node):
            match child.data:
                case "index_params":
                    indices = tuple(map(self.ident, tokens(child, "NAME")))
                case "fn_params":
                    params = tuple(map(self.ident, tokens(child, "NAME")))
                case "fn_block":
                    *lets, last = nodes(child)
                    bindings = tuple(self.binding(b) for b in lets)
                    value = self.expr(last)
                case _:
                    value = self.expr(child)
        assert value is not None
        return s.Function(
            name=self.ident(name),
            indices=indices,
            params=params,
            bindings=bindings,
            value=value,
            doc=doc,
            span=self.span(node),
        )

    def binding(self, node: Tree[Token]) -> s.Binding:
        """``let name = value``."""
        return s.Binding(
            name=self.ident(tokens(node, "NAME")[0]), value=self.expr(nodes(node)[-1]), span=self.span(node)
        )

    def op(self, node: Tree[Token], doc: str) -> s.OpDecl:
        """``op``."""
        dims: tuple[s.Ident, ...] = ()
        parameters: list[s.Parameter] = []
        results: list[s.Parameter] = []
        items: list[s.OpItem] = []
        for child in nodes(node):
            match child.data:
                case "dims":
                    dims = tuple(map(self.ident, tokens(child, "NAME")))
                case "parameters":
                    parameters += [self.parameter(p) for p in nodes(child)]
                case "result":
                    results.append(self.parameter(child))
                case _:
                    items.append(self.op_item(child))
        name = self.ident(tokens(node, "NAME")[0])
        lines = sum(len(i.statements) if isinstance(i, s.KernelBlock) else 1 for i in items)
        facts = sum(len(i.conditions) for i in items if isinstance(i, s.RequireDecl | s.AssumeDecl))
        for count, what, limit in (
            (len(dims), "dims", MAX_DIMS),
            (len(parameters) + len(results), "parameters and results", MAX_PARAMETERS),
            (lines, "lines", MAX_LINES),
            (facts, "conditions", MAX_CONDITIONS),
        ):
            if count > limit:
                self.reject(faults.more_than(name.span, f"{what} in one op", limit, "write several ops"))
        return s.OpDecl(
            name=name,
            dims=dims,
            parameters=tuple(parameters),
            results=tuple(results),
            items=tuple(items),
            doc=doc,
            span=self.span(node),
        )

    def parameter(self, node: Tree[Token]) -> s.Parameter:
        """A tensor or scalar of the signature, or a result."""
        name, dtype = tokens(node, "NAME")
        extents: tuple[s.Expr, ...] | None = None
        default: s.Expr | None = None
        for child in nodes(node):
            if child.data == "extents":
                extents = self.exprs(child)
            else:
                default = self.expr(child)
        return s.Parameter(
            name=self.ident(name),
            dtype=self.ident(dtype),
            extents=extents,
            default=default,
            inout=bool(tokens(node, "INOUT")),
            span=self.span(node),
        )

    def op_item(self, node: Tree[Token]) -> s.OpItem:
        """A line of an op's body."""
        match node.data:
            case "require":
                return s.RequireDecl(conditions=self.exprs(node), span=self.span(node))
            case "assume":
                return s.AssumeDecl(conditions=self.exprs(node), span=self.span(node))
            case "let_statement":
                found = self.statement(nodes(node)[0])
                if found.at or found.storage is not None or found.conditions:
                    return found
                return s.Binding(name=found.name, value=found.value, span=self.span(node))
            case "dtype_decl":
                return self.dtype_decl(node)
            case "kernel":
                return self.kernel(node)
            case _:
                return self.statement(node)

    def kernel(self, node: Tree[Token]) -> s.KernelBlock:
        """``kernel name { … }``."""
        statements: list[s.Statement] = []
        schedule: list[tuple[str, str]] = []
        for child in nodes(node):
            match child.data:
                case "schedule":
                    schedule += [self.schedule_item(i) for i in nodes(child)]
                case "let_statement":
                    statements.append(self.statement(nodes(child)[0]))
                case _:
                    statements.append(self.statement(child))
        return s.KernelBlock(
            name=self.ident(tokens(node, "NAME")[0]),
            statements=tuple(statements),
            schedule=tuple(schedule),
            span=self.span(node),
        )

    def schedule_item(self, node: Tree[Token]) -> tuple[str, str]:
        """A line of a schedule block as (key, value) texts."""
        values = [" = ".join(map(str, v.children)) for v in nodes(node)]
        return str(tokens(node, "NAME")[0]), ", ".join(values)

    def statement(self, node: Tree[Token]) -> s.Statement:
        """``name[at] = value for …``."""
        names = tokens(node, "NAME")
        at: tuple[s.Expr, ...] = ()
        conditions: tuple[s.Expr | s.Interval, ...] = ()
        value: s.Expr | None = None
        for child in nodes(node):
            if child.data == "extents":
                at = self.exprs(child)
            elif child.data == "for_clause":
                conditions = tuple(self.condition(c) for c in nodes(child))
            else:
                value = self.expr(child)
        assert value is not None
        return s.Statement(
            name=self.ident(names[0]),
            storage=self.ident(names[1]) if len(names) > 1 else None,
            at=at,
            value=value,
            conditions=conditions,
            span=self.span(node),
        )

    def workload(self, node: Tree[Token]) -> s.WorkloadDecl:
        """``workload``."""
        name, op = tokens(node, "NAME")
        settings: list[s.Setting] = []
        for child in nodes(node):
            dim, *joint = map(self.ident, tokens(child, "NAME"))
            cases: list[tuple[s.Expr, s.Expr | None]] = []
            for inner in nodes(child):
                if child.data == "spread":
                    value, weight = self.exprs(inner)
                    cases.append((value, weight))
                else:
                    cases.append((self.expr(inner), None))
            settings.append(
                s.Setting(
                    name=dim,
                    cases=tuple(cases),
                    kind=child.data,  # type: ignore[arg-type]
                    joint=tuple(joint),
                    path="".join(str(t)[1:-1] for t in tokens(child, "STRING")),
                    span=self.span(child),
                )
            )
        return s.WorkloadDecl(
            name=self.ident(name), op=self.ident(op), settings=tuple(settings), span=self.span(node)
        )

    def boundary(self, node: Tree[Token]) -> s.BoundaryDecl:
        """``boundary``."""
        name, op = tokens(node, "NAME")
        groups: list[tuple[s.Ident, tuple[s.Ident, ...]]] = []
        for child in nodes(node):
            kernel, *members = tokens(child, "NAME")
            groups.append((self.ident(kernel), tuple(map(self.ident, members))))
        return s.BoundaryDecl(
            name=self.ident(name),
            op=self.ident(op),
            analysis=bool(tokens(node, "ANALYSIS")),
            groups=tuple(groups),
            span=self.span(node),
        )


def _last(node: Tree[Token]) -> Node:
    return node.children[-1]


def _named(node: Tree[Token]) -> list[Node]:
    return [c for c in node.children if isinstance(c, Tree) or c.type == "NAME"]


__all__ = ["Builder", "Rejected", "doc_text", "span_of"]
