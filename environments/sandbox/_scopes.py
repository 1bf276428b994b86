"""Whose name a name is: Python's scopes, read off a syntax tree."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from trajsmith.environments.sandbox._gate_names import find_submodule

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Part = ast.AST | Sequence[ast.AST | None] | None
"""A field of a node."""


@dataclass(eq=False)
class NameScope:
    """The module, or the inside of a class, function or comprehension."""

    node: ast.AST
    parent: "NameScope | None"
    bound: set[str] = field(default_factory=set)
    """Names that are assigned, imported or defined here."""
    outer: set[str] = field(default_factory=set)
    """Names that a `global` or `nonlocal` statement sends outside."""
    modules: dict[str, str] = field(default_factory=dict)
    """Names bound by `import`, with the module."""
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Names bound by `from ... import`, with the module and the name there."""
    definitions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = field(default_factory=dict)

    def owner(self, name: str) -> "NameScope | None":
        """The scope that binds a name as seen from here; None if only the builtins may."""
        scope: NameScope | None = self
        while scope is not None:
            visible = scope is self or not isinstance(scope.node, ast.ClassDef)
            if visible and name in scope.bound and name not in scope.outer:
                return scope
            scope = scope.parent
        return None

    def functions(self) -> "list[NameScope]":
        """The functions that this is in, the innermost first."""
        scopes: list[NameScope] = []
        scope: NameScope | None = self
        while scope is not None:
            if isinstance(scope.node, FUNCTIONS):
                scopes.append(scope)
            scope = scope.parent
        return scopes


class ScopedVisitor(ast.NodeVisitor):
    """A visitor that knows the scope of what it visits."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self._scopes: dict[ast.AST, NameScope] = {}
        self.scope = self.enter(tree, None)

    def enter(self, node: ast.AST, parent: NameScope | None) -> NameScope:
        """The scope inside a node; made when first asked for."""
        scope = self._scopes.get(node)
        if scope is None:
            scope = self._scopes[node] = NameScope(node, parent)
            _Binder(scope).collect()
        return scope

    def module(self, node: ast.expr) -> str | None:
        """The module that an expression is, if it plainly is one."""
        if isinstance(node, ast.Name):
            owner = self.scope.owner(node.id)
            if owner is None:
                return None
            if node.id in owner.modules:
                return owner.modules[node.id]
            return find_submodule(*owner.imports[node.id]) if node.id in owner.imports else None
        if isinstance(node, ast.Attribute):
            base = self.module(node.value)
            return None if base is None else find_submodule(base, node.attr)
        return None

    def member(self, node: ast.expr) -> tuple[str, str] | None:
        """The module and name that an expression is a member by, if it plainly is one."""
        if isinstance(node, ast.Name):
            owner = self.scope.owner(node.id)
            return None if owner is None else owner.imports.get(node.id)
        base = self.module(node.value) if isinstance(node, ast.Attribute) else None
        return None if base is None or not isinstance(node, ast.Attribute) else (base, node.attr)

    def inside(self, node: ast.AST, *parts: Part) -> None:
        """Visit nodes, or lists of them, in the scope inside a node."""
        around, self.scope = self.scope, self.enter(node, self.scope)
        try:
            self.each(*parts)
        finally:
            self.scope = around

    def each(self, *parts: Part) -> None:
        """Visit nodes, or lists of them; None is nothing."""
        for part in parts:
            for node in part if isinstance(part, Sequence) else (part,):
                if node is not None:
                    self.visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.each(node.decorator_list, node.bases, node.keywords)
        self.inside(node, node.body)


class ScopedWalk(ScopedVisitor):
    """Visits everything in its scope.

    Decorators, defaults, annotations and the first iterable of a comprehension belong to the scope around.
    """

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.each(node.decorator_list, node.args, node.returns)
        self.inside(node, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.each(node.args)
        self.inside(node, node.body)

    def visit_ListComp(self, node: Comprehension) -> None:
        self.each(node.generators[0].iter)
        for number, generator in enumerate(node.generators):
            self.inside(node, generator.iter if number else None, generator.target, generator.ifs)
        self.inside(node, *list_comprehension_elements(node))

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp


def list_parameters(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters of a function."""
    rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]


def list_comprehension_elements(node: Comprehension) -> list[ast.expr]:
    """Return the expressions that a comprehension evaluates in each iteration."""
    return [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]


def is_script(test: ast.expr, scope: NameScope) -> bool:
    """True for the test of what a file does as a script, which it never does when it is loaded."""
    return scope.parent is None and ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__")


class _Binder(ast.NodeVisitor):
    """Collects what one scope binds, without going into the scopes inside it."""

    def __init__(self, scope: NameScope) -> None:
        self._scope = scope
        self._bound = scope.bound

    def collect(self) -> None:
        node = self._scope.node
        if isinstance(node, FUNCTIONS):
            self._bound.update(parameter.arg for parameter in list_parameters(node.args))
        if isinstance(node, COMPREHENSIONS):
            for generator in node.generators:
                self.visit(generator.target)
        elif isinstance(node, ast.Lambda):
            self.visit(node.body)
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                self.visit(statement)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._bound.add(node.id)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self._scope.outer.update(node.names)

    visit_Nonlocal = visit_Global

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            self._bound.add(name)
            self._scope.modules[name] = alias.name if alias.asname else name

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            name = alias.asname or alias.name
            self._bound.add(name)
            self._scope.imports[name] = ("." * node.level + (node.module or ""), alias.name)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._bound.add(node.name)
        self._scope.definitions[node.name] = node
        outside = [*node.decorator_list, *(node.bases if isinstance(node, ast.ClassDef) else [node.args])]
        for part in outside:  # a walrus there binds here
            self.visit(part)

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)

    def visit_ListComp(self, node: Comprehension) -> None:
        """A walrus inside binds here, the targets do not."""
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                self.visit(part.target)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bound.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self._bound.add(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self._bound.add(node.rest)
        self.generic_visit(node)
