"""Parse tree → syntax nodes: expressions."""

from __future__ import annotations

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


class ExpressionBuilder:
    """Builds the expressions of one item."""

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

    def exprs(self, node: Tree[Token]) -> tuple[s.Expr, ...]:
        """Each child as an expression."""
        return tuple(self.expr(c) for c in nodes(node))

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
                return replace(self.expr(nodes(node)[0]), span=span)
            case "signed":
                sign = str(tokens(node, "SIGN")[0])
                x = self.expr(nodes(node)[0])
                return s.Prefix(op="-" if sign == "-" else "+", x=x, span=span)
            case "negated":
                return s.Prefix(op="not", x=self.expr(nodes(node)[0]), span=span)
            case "raised":
                base, power = nodes(node)
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
                signs = map(str, tokens(node, "COMPARE"))
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
        indices, *rest = nodes(node)
        return s.Subscript(
            name=self.ident(tokens(node, "NAME")[0]),
            indices=self.exprs(indices),
            otherwise=self.expr(nodes(rest[0])[0]) if rest else None,
            span=span,
        )

    def call(self, node: Tree[Token], span: Span) -> s.Call:
        """Any of the call forms."""
        name, *others = tokens(node, "NAME")
        binders: tuple[s.Expr, ...] | None = None
        conditions: tuple[s.Expr | s.Interval, ...] = ()
        arguments: tuple[s.Expr, ...] = ()
        otherwise: s.Expr | None = None
        for child in nodes(node):
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
                    otherwise = self.expr(nodes(child)[0])
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


def tokens(node: Tree[Token], kind: str) -> list[Token]:
    """The tokens of one kind directly below."""
    return [c for c in node.children if isinstance(c, Token) and c.type == kind]


def nodes(node: Tree[Token]) -> list[Tree[Token]]:
    """The trees directly below."""
    return [c for c in node.children if isinstance(c, Tree)]
