"""The changes that scripts/mutants.py may make in a file, as text replacements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

TURNED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip


class Mutant(NamedTuple):
    """One change: in ``file`` (below src/trimtab), from ``start`` to ``end``, in bytes."""

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        old, new = (" ".join(text.split())[:70] for text in (self.old, self.new))
        return f"{self.file}:{self.line}: {old}  →  {new}"


def mutants(source: str, file: str) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of its text."""
    lines = [0]
    for line in source.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    data, tree = source.encode(), ast.parse(source)

    def span(node: ast.AST) -> tuple[int, int]:
        start = lines[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return start, lines[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def change(node: ast.AST, new: str, old: ast.AST | None = None) -> Mutant:
        start, end = span(old or node)
        line = node.lineno  # type: ignore[attr-defined]
        return Mutant(file, line, start, end, data[start:end].decode(), new)

    def text(node: ast.AST) -> str:
        start, end = span(node)
        return data[start:end].decode()

    for node in _code(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            turned = TURNED[type(node.ops[0])]
            yield change(node, f"(({text(node.left)}) {turned} ({text(node.comparators[0])}))")
        elif isinstance(node, ast.BoolOp):
            word = " or " if isinstance(node.op, ast.And) else " and "
            yield change(node, f"({word.join(f'({text(value)})' for value in node.values)})")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield change(node, f"bool({text(node.operand)})")
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield change(node, f"({text(node)} + 1)")
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield change(node, str(not node.value))
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            if not _is_negated(node.test):
                yield change(node.test, f"(not ({text(node.test)}))")
        elif isinstance(node, ast.Return) and not _is_none(node.value):
            yield change(node, "return None")
        elif isinstance(node, (ast.AugAssign, ast.Continue, ast.Break)) or (
            isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Yield))
        ):
            yield change(node, "pass")


def _is_negated(test: ast.expr) -> bool:
    """Whether another mutant negates this condition: the turned comparison, the taken ``not``."""
    if isinstance(test, ast.Compare):
        opposite = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
        return len(test.ops) == 1 and isinstance(test.ops[0], opposite)
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _code(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run: no annotations, docstrings, subscripts of types or ``__all__``."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "type_comment"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not _is_typing(node):
                yield node
                yield from _code(node)


def _is_typing(node: ast.AST) -> bool:
    checks = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    return checks or isinstance(node, (ast.Import, ast.ImportFrom, ast.JoinedStr))
