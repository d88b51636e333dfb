"""Turn an instruction of the user's code into what the user wrote: line, expression, variable.

Since Python 3.11 each instruction knows the columns of its expression, so two calls on one line
are told apart. The source comes from linecache, where IPython puts notebook cells too.
"""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from types import CodeType

from autograd_lab.errors import file_label
from autograd_lab.recording import SourceLine, SourceText

__all__ = ["argument_name", "callee", "source_line", "source_text", "target_name"]

CELL_LINES = 200
Span = tuple[int, int, int, int]


def callee(code: CodeType, instruction: int) -> str | None:
    """What the call at an instruction calls: "net" for `net(x)`; None where it is no plain name."""
    node, _ = _expression(code, instruction)
    if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
        return ast.unparse(node.func).removeprefix("self.")
    return None


def target_name(code: CodeType, instruction: int) -> str | None:
    """The variable that takes the expression's value: "h" for `h = x @ w`; None for a mere part."""
    node, parents = _expression(code, instruction)
    if node is None:
        return None
    parent = parents.get(node)
    if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
        target = parent.targets[0] if isinstance(parent, ast.Assign) else parent.target
        return (
            ast.unparse(target)
            if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript))
            else None
        )
    if isinstance(node, ast.AugAssign):  # `x += y`: the instruction spans the whole statement
        return ast.unparse(node.target)
    return None


def argument_name(
    code: CodeType,
    instruction: int,
    position: tuple[int | str, ...],
    *,
    is_method: bool = False,
    is_reflected: bool = False,
) -> str | None:
    """What the user wrote for an argument of an operation; None where it is no plain name.

    position      (0,) first argument, or the tensor whose method is called; (0, 1) second item of
                  a list in it; ("out",) by keyword
    is_method     the call is a method's: what stands before the dot is the first argument
    is_reflected  torch was called with the operands swapped (`__radd__`)
    """
    node, _ = _expression(code, instruction)
    first, *rest = position
    found: ast.AST | None = None
    if isinstance(node, ast.Call):
        arguments = [
            *([node.func.value] if is_method and isinstance(node.func, ast.Attribute) else []),
            *node.args,
        ]
        by_keyword = {keyword.arg: keyword.value for keyword in node.keywords}
        found = (
            by_keyword.get(first)
            if isinstance(first, str)
            else (arguments[first] if first < len(arguments) else None)
        )
    elif isinstance(first, int):
        operands = _operands(node)
        operands = operands[::-1] if is_reflected else operands
        found = operands[first] if first < len(operands) else None
    for index in rest:
        items = found.elts if isinstance(found, (ast.List, ast.Tuple)) else []
        found = items[index] if isinstance(index, int) and index < len(items) else None
    return (
        ast.unparse(found) if isinstance(found, (ast.Name, ast.Attribute, ast.Subscript)) else None
    )


def _operands(node: ast.AST | None) -> list[ast.expr]:
    match node:
        case ast.BinOp():
            return [node.left, node.right]
        case ast.Compare():
            return [node.left, *node.comparators]
        case ast.UnaryOp():
            return [node.operand]
        case ast.Subscript():
            return [node.value]
        case ast.AugAssign():
            return [node.target, node.value]
        case _:
            return []


def source_line(code: CodeType, instruction: int) -> SourceLine:
    """The line on which the expression ends up being evaluated, with its text."""
    span = _span(code, instruction)
    line = span[0] if span else code.co_firstlineno
    text = linecache.getline(code.co_filename, line).strip()
    return SourceLine(
        file=file_label(code.co_filename), line=line, function=code.co_qualname, text=text
    )


def source_text(code: CodeType, lines: set[int]) -> SourceText | None:
    """The function or notebook cell around recorded lines; at a file's top level, a few lines."""
    every = linecache.getlines(code.co_filename)
    if not every:
        return None
    label = file_label(code.co_filename)
    if code.co_name == "<module>" and not label.startswith("In["):
        first, last = max(1, min(lines) - 3), min(len(every), max(lines) + 3)
    elif code.co_name == "<module>":
        first, last = 1, min(len(every), CELL_LINES)
    else:
        used = [line for _, _, line in code.co_lines() if line]
        first, last = code.co_firstlineno, max([*used, *lines])
        last = min(last, first + CELL_LINES)
    return SourceText(
        file=label,
        function=code.co_qualname,
        first_line=first,
        lines=tuple(line.rstrip("\n") for line in every[first - 1 : last]),
    )


def _span(code: CodeType, instruction: int) -> Span | None:
    spans = _spans(code)
    index = instruction // 2
    if index >= len(spans):
        return None
    line, end_line, column, end_column = spans[index]
    if line is None or end_line is None or column is None or end_column is None:
        return None
    return line, end_line, column, end_column


@lru_cache(maxsize=64)
def _spans(code: CodeType) -> list[tuple[int | None, int | None, int | None, int | None]]:
    return list(code.co_positions())


def _expression(code: CodeType, instruction: int) -> tuple[ast.AST | None, dict[ast.AST, ast.AST]]:
    """The syntax node that the instruction evaluates, and the parents of all nodes of its file."""
    span = _span(code, instruction)
    by_span, parents = _tree("".join(linecache.getlines(code.co_filename)))
    return (by_span.get(span) if span else None), parents


@lru_cache(maxsize=16)
def _tree(source: str) -> tuple[dict[Span, ast.AST], dict[ast.AST, ast.AST]]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # a cell with magics, a file changed since
        return {}, {}
    by_span: dict[Span, ast.AST] = {}
    parents: dict[ast.AST, ast.AST] = {}
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            parents[child] = node
        if (
            isinstance(node, (ast.expr, ast.AugAssign))
            and node.end_lineno
            and node.end_col_offset is not None
        ):
            span = node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
            by_span.setdefault(span, node)
    return by_span, parents
