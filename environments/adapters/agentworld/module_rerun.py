"""Foreign modules whose top level can run again for every episode.

Code of this form may read data at its top level (`DATA = json.load(open(...))`), so a play may need a run of its own,
over its own files. The module's body becomes a function that binds the same global names; it is compiled once.
"""

import ast
import symtable
from collections.abc import Callable
from types import ModuleType
from typing import Any

from trajsmith.records import InputError

BODY = "__body__"
REFUSE = "__refuse__"


def wrap_in_function(source: str, file: str) -> ast.Module:
    """The module's source as a module that defines its body as a function.

    Exceptions that a `raise` statement names pass through `REFUSE` on their way, so that they can be told from those
    that come out of operations.

    Raises:
        InputError: It does not parse, or imports `*`.
    """
    try:
        compile(source, file, "exec", dont_inherit=True)  # in a function more is allowed
        tree = ast.parse(source, file)
        names = sorted(
            symbol.get_name() for symbol in symtable.symtable(source, file, "exec").get_symbols() if _binds(symbol)
        )
    except (SyntaxError, ValueError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else 1
        raise InputError(f"{file}:{line or 1}: {type(error).__name__}: {error}") from error
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            raise InputError(f"{file}:{node.lineno}: import * cannot be loaded: name what is imported")
    tree = _Refusals().visit(_AnnotationStripper().visit(tree))
    first = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    rest: list[ast.stmt] = [node for node in tree.body if node not in first]
    body: list[ast.stmt] = [ast.Global(names)] if names else []
    function = ast.parse(f"def {BODY}(): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = body + rest or [ast.Pass()]
    return ast.fix_missing_locations(ast.Module([*first, function], []))


def _binds(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


class _AnnotationStripper(ast.NodeTransformer):
    """`x: int = 1` at the top level becomes `x = 1`: a global name cannot be annotated in a function."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if not isinstance(node.target, ast.Name):
            return node
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


class _Refusals(ast.NodeTransformer):
    """`raise X` becomes `raise REFUSE(X)`."""

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        self.generic_visit(node)
        if node.exc is not None:
            node.exc = ast.Call(ast.Name(REFUSE, ast.Load()), [node.exc], [])
        return node


Space = dict[str, Any]
"""What a module's namespace holds for one play."""


class RerunnableModule:
    """A module that is run for every episode. Its namespace is that of the episode that is being called, else bare."""

    def __init__(self, source: str, file: str, module: ModuleType, always: Space) -> None:
        """Compile it.

        Args:
            source: Python source.
            file: Name in error texts.
            module: An empty module.
            always: What is there before its body runs: built-ins and `__file__`.

        Raises:
            InputError: It does not parse.
        """
        self._space = vars(module)
        self._space.update(always)
        try:
            exec(compile(wrap_in_function(source, file), file, "exec", dont_inherit=True), self._space)
        except SyntaxError as error:
            raise InputError(f"{file}:{error.lineno or 1}: SyntaxError: {error.msg}") from error
        self._body: Callable[[], None] = self._space[BODY]
        self._bare = dict(self._space)

    def run(self) -> None:
        """Run the body; the namespace then has what it binds."""
        self._body()

    def enter(self, space: Space | None) -> None:
        """Put an episode's namespace in place; without one, a bare one."""
        self._space.clear()
        self._space.update(self._bare if space is None else space)

    def leave(self) -> Space:
        """Take the namespace away, and give it back as it has become."""
        space = dict(self._space)
        self.enter(None)
        return space
