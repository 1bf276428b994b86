"""Mutants of a program that somebody wrote: one comparison, filter, branch, aggregate, sign or loop is another."""

import ast
from itertools import islice

from trajsmith.querygen.programs.source_text import parse_source

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_SIGNS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
}  # fmt: skip
_AGGREGATES = {"sum": "max", "max": "min", "min": "max", "len": "bool"}


def list_mutants(source: str) -> list[tuple[int, str]]:
    """List the places where one change makes a wrong program: the number of the node as walked, and the kind of change.

    Raises:
        RecordDropped: The program is no Python, or too deep.
    """
    nodes = ast.walk(parse_source(source))
    return [(number, kind) for number, node in enumerate(nodes) for kind in _list_kinds(node)]


def mutate_source(source: str, number: int, kind: str) -> str:
    """Return the wrong program of a place.

    Raises:
        RecordDropped: The program is no Python, or too deep.
    """
    tree = parse_source(source)
    _CHANGES[kind](next(islice(ast.walk(tree), number, None)))
    return ast.unparse(ast.fix_missing_locations(tree))


def _list_kinds(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        return ["program_bound"]
    if isinstance(node, ast.comprehension):
        return ["program_skipped_row", *(["program_filter"] if node.ifs else [])]
    if isinstance(node, ast.If | ast.IfExp):
        return ["program_branch"]
    if isinstance(node, ast.For):
        return ["program_skipped_row"]
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        return ["program_arithmetic"]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _AGGREGATES:
        return ["program_aggregate"]
    if isinstance(node, ast.keyword) and node.arg == "reverse":
        return ["program_order"]
    return []


def _change_bound(node: ast.AST) -> None:
    assert isinstance(node, ast.Compare)
    node.ops[0] = _COMPARISONS[type(node.ops[0])]()


def _drop_filter(node: ast.AST) -> None:
    assert isinstance(node, ast.comprehension)
    node.ifs = node.ifs[1:]


def _skip_row(node: ast.AST) -> None:
    assert isinstance(node, ast.For | ast.comprehension)
    rows = ast.Call(func=ast.Name(id="list", ctx=ast.Load()), args=[node.iter], keywords=[])
    node.iter = ast.Subscript(
        value=rows, slice=ast.Slice(upper=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1))), ctx=ast.Load()
    )


def _turn_branch(node: ast.AST) -> None:
    assert isinstance(node, ast.If | ast.IfExp)
    node.test = ast.UnaryOp(op=ast.Not(), operand=node.test)


def _change_sign(node: ast.AST) -> None:
    assert isinstance(node, ast.BinOp)
    node.op = _SIGNS[type(node.op)]()


def _change_aggregate(node: ast.AST) -> None:
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    node.func = ast.Name(id=_AGGREGATES[node.func.id], ctx=ast.Load())


def _turn_order(node: ast.AST) -> None:
    assert isinstance(node, ast.keyword)
    node.value = ast.UnaryOp(op=ast.Not(), operand=node.value)


_CHANGES = {
    "program_bound": _change_bound,
    "program_filter": _drop_filter,
    "program_skipped_row": _skip_row,
    "program_branch": _turn_branch,
    "program_arithmetic": _change_sign,
    "program_aggregate": _change_aggregate,
    "program_order": _turn_order,
}


def list_operations(source: str, tools: int, writes: bool) -> tuple[str, ...]:
    """List what a program does, in the words of composed ones.

    Args:
        source: Python text.
        tools: Different tools that it reads from.
        writes: It changes the state.

    Raises:
        RecordDropped: The program is no Python, or too deep.
    """
    nodes = list(ast.walk(parse_source(source)))
    loops = any(isinstance(node, ast.For | ast.While | ast.comprehension) for node in nodes)
    branches = any(
        isinstance(node, ast.If | ast.IfExp) or (isinstance(node, ast.comprehension) and node.ifs) for node in nodes
    )
    aggregates = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    names = ["list", *(["loop"] if loops else []), *(["branch"] if branches else []), *(["join"] if tools > 1 else [])]
    return (*names, *(["write"] if writes else []), *sorted(aggregates & {"sum", "max", "min", "len", "sorted"}))
