"""Parse tree → syntax nodes. Shapes only: no name is looked up here."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import NoReturn

from lark import Token, Tree

from opspec.diagnostics import Diagnostic
from opspec.frontend import syntax as s
from opspec.frontend.faults import syntax as faults
from opspec.source import Source, Span

Node = Tree[Token] | Token
MAX_HEIGHT = 100


class Rejected(Exception):
    """The item was reported and is dropped."""


def span_of(source: Source, node: Node) -> Span:
    """The characters that a node covers."""
    if isinstance(node, Token):
        return Span(source, node.start_pos or 0, node.end_pos or 0)
    if node.meta.empty:
        return Span(source, 0, 0)
    return Span(source, node.meta.start_pos, node.meta.end_pos)


def doc_text(token: str) -> str:
    """The text of a doc string, without quotes and indentation."""
    return textwrap.dedent(token[3:-3]).strip()


class Builder:
    """Builds the nodes of one item."""

    def __init__(self, source: Source, report: list[Diagnostic]) -> None:
        self.source = source
        self.report = report
        self.height = 0

    def reject(self, diagnostic: Diagnostic) -> NoReturn:
        """Report and give up on the item."""
        self.report.append(diagnostic)
        raise Rejected

    def span(self, node: Node) -> Span:
        """Where it stands."""
        return span_of(self.source, node)

    def ident(self, node: Node) -> s.Ident:
        """A name token."""
        return s.Ident(str(node), self.span(node))

    # items ----------------------------------------------------------------------
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
            case _:
                return self.boundary(node)

    def dtype_decl(self, node: Tree[Token]) -> s.DtypeDecl:
        """``dtype X in {…}``."""
        name, *choices = _tokens(node, "NAME")
        return s.DtypeDecl(
            name=self.ident(name), choices=tuple(map(self.ident, choices)), span=self.span(node)
        )

    def function(self, node: Tree[Token], doc: str) -> s.Function:
        """``fn``."""
        name = _tokens(node, "NAME")[0]
        indices: tuple[s.Ident, ...] = ()
        params: tuple[s.Ident, ...] = ()
        bindings: tuple[s.Binding, ...] = ()
        value: s.Expr | None = None
        for child in _nodes(node):
            match child.data:
                case "index_params":
                    indices = tuple(map(self.ident, _tokens(child, "NAME")))
                case "fn_params":
                    params = tuple(map(self.ident, _tokens(child, "NAME")))
                case "fn_block":
                    *lets, last = _nodes(child)
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
            name=self.ident(_tokens(node, "NAME")[0]), value=self.expr(_nodes(node)[-1]), span=self.span(node)
        )

    def op(self, node: Tree[Token], doc: str) -> s.OpDecl:
        """``op``."""
        dims: tuple[s.Ident, ...] = ()
        parameters: list[s.Parameter] = []
        results: list[s.Parameter] = []
        items: list[s.OpItem] = []
        for child in _nodes(node):
            match child.data:
                case "dims":
                    dims = tuple(map(self.ident, _tokens(child, "NAME")))
                case "parameters":
                    parameters += [self.parameter(p) for p in _nodes(child)]
                case "result":
                    results.append(self.parameter(child))
                case _:
                    items.append(self.op_item(child))
        return s.OpDecl(
            name=self.ident(_tokens(node, "NAME")[0]),
            dims=dims,
            parameters=tuple(parameters),
            results=tuple(results),
            items=tuple(items),
            doc=doc,
            span=self.span(node),
        )

    def parameter(self, node: Tree[Token]) -> s.Parameter:
        """A tensor or scalar of the signature, or a result."""
        name, dtype = _tokens(node, "NAME")
        extents: tuple[s.Expr, ...] | None = None
        default: s.Expr | None = None
        for child in _nodes(node):
            if child.data == "extents":
                extents = self.exprs(child)
            else:
                default = self.expr(child)
        return s.Parameter(
            name=self.ident(name),
            dtype=self.ident(dtype),
            extents=extents,
            default=default,
            inout=bool(_tokens(node, "INOUT")),
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
                found = self.statement(_nodes(node)[0])
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
        for child in _nodes(node):
            match child.data:
                case "schedule":
                    schedule += [self.schedule_item(i) for i in _nodes(child)]
                case "let_statement":
                    statements.append(self.statement(_nodes(child)[0]))
                case _:
                    statements.append(self.statement(child))
        return s.KernelBlock(
            name=self.ident(_tokens(node, "NAME")[0]),
            statements=tuple(statements),
            schedule=tuple(schedule),
            span=self.span(node),
        )

    def schedule_item(self, node: Tree[Token]) -> tuple[str, str]:
        """A line of a schedule block as (key, value) texts."""
        return str(_tokens(node, "NAME")[0]), ", ".join(self.span(v).text for v in _nodes(node))

    def statement(self, node: Tree[Token]) -> s.Statement:
        """``name[at] = value for …``."""
        names = _tokens(node, "NAME")
        at: tuple[s.Expr, ...] = ()
        conditions: tuple[s.Expr | s.Interval, ...] = ()
        value: s.Expr | None = None
        for child in _nodes(node):
            if child.data == "extents":
                at = self.exprs(child)
            elif child.data == "for_clause":
                conditions = tuple(self.condition(c) for c in _nodes(child))
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
        name, op = _tokens(node, "NAME")
        settings: list[s.Setting] = []
        for child in _nodes(node):
            dim = self.ident(_tokens(child, "NAME")[0])
            cases: list[tuple[s.Expr, s.Expr | None]] = []
            for inner in _nodes(child):
                if child.data == "spread":
                    value, weight = self.exprs(inner)
                    cases.append((value, weight))
                else:
                    cases.append((self.expr(inner), None))
            settings.append(s.Setting(name=dim, cases=tuple(cases), span=self.span(child)))
        return s.WorkloadDecl(
            name=self.ident(name), op=self.ident(op), settings=tuple(settings), span=self.span(node)
        )

    def boundary(self, node: Tree[Token]) -> s.BoundaryDecl:
        """``boundary``."""
        name, op = _tokens(node, "NAME")
        groups: list[tuple[s.Ident, tuple[s.Ident, ...]]] = []
        for child in _nodes(node):
            kernel, *members = _tokens(child, "NAME")
            groups.append((self.ident(kernel), tuple(map(self.ident, members))))
        return s.BoundaryDecl(
            name=self.ident(name),
            op=self.ident(op),
            analysis=bool(_tokens(node, "ANALYSIS")),
            groups=tuple(groups),
            span=self.span(node),
        )

    # expressions ------------------------------------------------------------------
    def exprs(self, node: Tree[Token]) -> tuple[s.Expr, ...]:
        """Each child as an expression."""
        return tuple(self.expr(c) for c in _nodes(node))

    def condition(self, node: Tree[Token]) -> s.Expr | s.Interval:
        """A comparison or ``n in lo..hi``."""
        if node.data != "interval":
            return self.expr(node)
        index, lower, upper = self.exprs(node)
        return s.Interval(index=index, lower=lower, upper=upper, span=self.span(node))

    def expr(self, node: Tree[Token]) -> s.Expr:
        """Any expression."""
        self.height += 1
        if self.height > MAX_HEIGHT:
            self.reject(faults.too_deep(self.span(node), MAX_HEIGHT))
        try:
            return self._expr(node)
        finally:
            self.height -= 1

    def _expr(self, node: Tree[Token]) -> s.Expr:
        span = self.span(node)
        match node.data:
            case "number":
                return self.number(node.children[0], span)
            case "name":
                return s.Name(name=str(node.children[0]), span=span)
            case "parenthesised":
                return replace(self.expr(_nodes(node)[0]), span=span)
            case "signed":
                sign = str(_tokens(node, "SIGN")[0])
                x = self.expr(_nodes(node)[0])
                return s.Prefix(op="-" if sign == "-" else "+", x=x, span=span)
            case "negated":
                return s.Prefix(op="not", x=self.expr(_nodes(node)[0]), span=span)
            case "raised":
                base, power = _nodes(node)
                return s.Infix(op="**", a=self.expr(base), b=self.expr(power), span=span)
            case "chain":
                return self.chain(node)
            case "any_of" | "all_of":
                first, *rest = self.exprs(node)
                for x in rest:
                    op = "or" if node.data == "any_of" else "and"
                    first = s.Infix(op=op, a=first, b=x, span=first.span.to(x.span))  # type: ignore[arg-type]
                return first
            case "compared":
                first, *rest = self.exprs(node)
                signs = map(str, _tokens(node, "COMPARE"))
                return s.Chain(first=first, rest=tuple(zip(signs, rest, strict=True)), span=span)
            case "read":
                return self.read(node, span)
            case _:
                return self.call(node, span)

    def chain(self, node: Tree[Token]) -> s.Expr:
        """Left-associative sums and products."""
        total: s.Expr | None = None
        op = ""
        terms = 0
        for child in node.children:
            if isinstance(child, Token):
                op = str(child)
            elif total is None:
                total = self.expr(child)
            else:
                x = self.expr(child)
                total = s.Infix(op=op, a=total, b=x, span=total.span.to(x.span))  # type: ignore[arg-type]
                terms += 1
        assert total is not None
        if terms + self.height > MAX_HEIGHT:
            self.reject(faults.too_deep(self.span(node), MAX_HEIGHT))
        return total

    def number(self, token: Node, span: Span) -> s.Number:
        """A literal."""
        text = str(token)
        try:
            digits = text.replace("_", "")
            if digits.isdigit():
                if len(digits) > 19 or int(digits) >= 2**63:
                    self.reject(faults.bad_number(span, text, "does not fit in 64 bits"))
                return s.Number(value=int(digits), span=span)
            value = float(text)
        except ValueError:
            self.reject(faults.bad_number(span, text, "is not a number"))
        if value in (float("inf"), float("-inf")):
            self.reject(faults.bad_number(span, text, "does not fit in a float; infinity is written `inf`"))
        return s.Number(value=value, span=span)

    def read(self, node: Tree[Token], span: Span) -> s.Subscript:
        """``x[i]`` with an optional ``else``."""
        indices, *rest = _nodes(node)
        return s.Subscript(
            name=self.ident(_tokens(node, "NAME")[0]),
            indices=self.exprs(indices),
            otherwise=self.expr(_nodes(rest[0])[0]) if rest else None,
            span=span,
        )

    def call(self, node: Tree[Token], span: Span) -> s.Call:
        """Any of the call forms."""
        name, *others = _tokens(node, "NAME")
        binders: tuple[s.Expr, ...] | None = None
        conditions: tuple[s.Expr | s.Interval, ...] = ()
        arguments: tuple[s.Expr, ...] = ()
        otherwise: s.Expr | None = None
        for child in _nodes(node):
            match child.data:
                case "extents":
                    binders = self.exprs(child)
                case "binders":
                    at = child.children
                    bar = next(i for i, c in enumerate(at) if isinstance(c, Token) and c.type == "VBAR")
                    binders = tuple(self.expr(c) for c in at[:bar] if isinstance(c, Tree))
                    conditions = tuple(self.condition(c) for c in at[bar:] if isinstance(c, Tree))
                case "arguments":
                    arguments = self.exprs(child)
                case _:
                    otherwise = self.expr(_nodes(child)[0])
        other = self.ident(others[0]) if others else None
        return s.Call(
            name=self.ident(name),
            binders=binders,
            conditions=conditions,
            using=other if node.data == "using_call" else None,
            mode=other if node.data == "moded" else None,
            arguments=arguments,
            otherwise=otherwise,
            span=span,
        )


def _tokens(node: Tree[Token], kind: str) -> list[Token]:
    return [c for c in node.children if isinstance(c, Token) and c.type == kind]


def _nodes(node: Tree[Token]) -> list[Tree[Token]]:
    return [c for c in node.children if isinstance(c, Tree)]


def _last(node: Tree[Token]) -> Node:
    return node.children[-1]


def _named(node: Tree[Token]) -> list[Node]:
    return [c for c in node.children if isinstance(c, Tree) or c.type == "NAME"]
