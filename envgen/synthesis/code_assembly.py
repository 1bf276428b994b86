"""Assemble one formatted file from parts: text in, text out; nothing of it runs."""

import ast
from collections.abc import Sequence

from trajsmith.envgen.generate.formatting import fix_and_format_code
from trajsmith.envgen.synthesis.answer_schemas import TextList


def assemble_module(title: str, lists: Sequence[TextList], *blocks: str) -> str:
    """Return blocks of Python as one module: imports first, then the seed texts, then the blocks in order.

    Args:
        title: What the module is about.
    """
    imports: dict[str, None] = {}
    bodies = []
    for block in blocks:
        taken, body = _split_imports(block)
        imports |= dict.fromkeys(taken)
        bodies.append(body)
    words = "\n".join(f"{one.name} = {one.values!r}" for one in lists)
    head = f'"""{_escape_title(title)}."""'
    state, *rest = bodies
    return fix_and_format_code("\n\n\n".join([head, "\n".join(imports), state, *rest[:-1], words, *rest[-1:]]))


def _split_imports(block: str) -> tuple[list[str], str]:
    """The imports at the top level of a block, and the rest of its text."""
    tree = ast.parse(block)
    lines = _split_lines(block)
    taken = []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and not _shares_a_line(node, tree):
            taken.append(ast.unparse(node))
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    first = tree.body[0] if tree.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        for number in range(first.lineno - 1, first.end_lineno or first.lineno):
            lines[number] = ""  # a docstring of its own; the module has one
    return taken, "\n".join(lines).strip("\n")


def _split_lines(code: str) -> list[str]:
    """Lines as the parser counts them: `splitlines` also splits at signs that may stand in a text."""
    return code.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _shares_a_line(node: ast.stmt, tree: ast.Module) -> bool:
    """Return True if another statement stands on one of its lines, so that the line cannot be removed."""
    last = node.end_lineno or node.lineno
    return any(o is not node and o.lineno <= last and (o.end_lineno or o.lineno) >= node.lineno for o in tree.body)


def remove_tools(code: str, tools: Sequence[str]) -> str:
    """Return the module without these methods."""
    lines = _split_lines(code)
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef) and node.name in tools and node.decorator_list:
            first = min(decorator.lineno for decorator in node.decorator_list)
            for number in range(first - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return fix_and_format_code("\n".join(lines) + "\n")


def extract_method(code: str, name: str) -> str:
    """Return one method's source, with the class helpers and module constants that it uses."""
    tree = ast.parse(code)
    methods = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    wanted, helpers = [name], dict[str, ast.FunctionDef]()
    while wanted:
        node = methods.get(wanted.pop())
        if node is None or node.name in helpers:
            continue
        helpers[node.name] = node
        called = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
        wanted += sorted(method for method in called & methods.keys() if not methods[method].decorator_list)
    used = {part.id for node in helpers.values() for part in ast.walk(node) if isinstance(part, ast.Name)}
    constants = [node for node in tree.body if isinstance(node, ast.Assign) and _find_names(node) & used]
    return "\n\n".join(ast.get_source_segment(code, node) or "" for node in (*constants, *helpers.values()))


def _find_names(node: ast.Assign) -> set[str]:
    return {target.id for target in node.targets if isinstance(target, ast.Name)}


def _escape_title(text: str) -> str:
    return " ".join(text.replace("\\", "/").replace('"', "'").split()).rstrip(".")
