"""The text of a program that somebody wrote, as a syntax tree."""

import ast
from types import CodeType
from typing import Any

from trajsmith.records import RecordDropped

DEEPEST = 100
"""Levels of a program's syntax tree: to write a deeper one as text again would exhaust the stack."""


def parse_source(source: str) -> ast.Module:
    """Parse a program.

    Raises:
        RecordDropped: It is no Python, or too deep.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RecordDropped("program_no_function", f"it is no Python: {error}") from error
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    raise RecordDropped("program_too_deep", f"an expression or statement of it has more than {DEEPEST} levels")


def list_literals(source: str) -> list[Any]:
    """List the values that stand in a program's text, also those that Python computes from them when it reads it.

    Raises:
        RecordDropped: It is no Python, or too deep.
    """
    tree = parse_source(source)
    try:
        values, left = list[Any](), [compile(source, "program.py", "exec", dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RecordDropped("program_no_function", f"it is no Python: {error}") from error
    while left:
        for value in left.pop().co_consts:
            if isinstance(value, CodeType):
                left.append(value)
            else:
                values += value if isinstance(value, tuple) else [value]
    return values + [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
