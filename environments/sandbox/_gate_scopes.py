"""Whose name a name is: Python's scopes, read off a syntax tree."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from trajsmith.environments.sandbox._gate_names import find_submodule

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(eq=False)
class NameScope:
    """The module, or the inside of a class, function or comprehension."""

    node: ast.AST
    parent: "NameScope | None"
    names: set[str] = field(default_factory=set)
    """Names that are assigned, imported or defined here."""
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Imported names, with the module and the name there; "" for a module itself."""
    shared: dict[str, int] = field(default_factory=dict)
    """Variables that hold what exists once for all sessions, and how deep it can be changed."""

    def __post_init__(self) -> None:
        node, outside = self.node, set[str]()
        todo: list[ast.AST] = list(getattr(node, "body", [])) if not isinstance(node, ast.Lambda) else [node.body]
        if isinstance(node, COMPREHENSIONS):
            todo = [generator.target for generator in node.generators]
        if isinstance(node, FUNCTIONS):
            self.names.update(parameter.arg for parameter in list_parameters(node.args))
        while todo:
            part = todo.pop()
            if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
                self.names.add(part.id)
            elif isinstance(part, ast.Import):
                for alias in part.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    self.imports[name] = (alias.name if alias.asname else name, "")
            elif isinstance(part, ast.ImportFrom):
                for alias in part.names:
                    self.imports[alias.asname or alias.name] = ("." * part.level + (part.module or ""), alias.name)
            elif isinstance(part, ast.Global | ast.Nonlocal):
                outside.update(part.names)
            elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.names.add(part.name)
            if isinstance(part, COMPREHENSIONS):  # a walrus inside binds here, the targets do not
                todo += [walrus.target for walrus in ast.walk(part) if isinstance(walrus, ast.NamedExpr)]
            elif not isinstance(part, (*FUNCTIONS, ast.ClassDef)):
                todo += ast.iter_child_nodes(part)
        self.names = (self.names | self.imports.keys()) - outside

    def find_owner(self, name: str) -> "NameScope | None":
        """Return the scope that binds a name as seen from here; None if only the builtins may."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.names and (scope is self or not isinstance(scope.node, ast.ClassDef)):
                return scope
            scope = scope.parent
        return None

    def find_module(self, node: ast.expr) -> str | None:
        """Return the module that an expression is, if it plainly is one."""
        if isinstance(node, ast.Attribute):
            base = self.find_module(node.value)
            return None if base is None else find_submodule(base, node.attr)
        module, name = self.find_member(node)
        return (find_submodule(module, name) if name else module) or None

    def find_member(self, node: ast.expr) -> tuple[str, str]:
        """Return the module and the name that an expression is a member by; two empty texts if by none."""
        if isinstance(node, ast.Name):
            owner = self.find_owner(node.id)
            return owner.imports.get(node.id, ("", "")) if owner is not None else ("", "")
        module = self.find_module(node.value) if isinstance(node, ast.Attribute) else None
        return (module, node.attr) if module and isinstance(node, ast.Attribute) else ("", "")

    @property
    def runs_at_load(self) -> bool:
        """Return whether this is the module or a class in it, and no function."""
        return not isinstance(self.node, FUNCTIONS) and (self.parent is None or self.parent.runs_at_load)


class ScopedVisitor(ast.NodeVisitor):
    """A visitor that knows the scope of what it visits.

    Decorators, defaults, annotations and the first iterable of a comprehension belong to the scope around.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self._scopes: dict[ast.AST, NameScope] = {}
        self.scope = self.module_scope = self.enter(tree, None)

    def enter(self, node: ast.AST, parent: NameScope | None) -> NameScope:
        """Return the scope inside a node; made when first asked for."""
        if node not in self._scopes:
            self._scopes[node] = NameScope(node, parent)
        return self._scopes[node]

    def visit_all(self, nodes: Iterable[ast.AST | None], inside: ast.AST | None = None) -> None:
        """Visit nodes, in this scope or the one inside a node."""
        around = self.scope
        self.scope = around if inside is None else self.enter(inside, around)
        for node in nodes:
            if node is not None:
                self.visit(node)
        self.scope = around

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.visit_all([*node.decorator_list, node.args, node.returns])
        self.visit_all(node.body, node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self.visit_all([node.body], node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.visit_all([*node.decorator_list, *node.bases, *node.keywords])
        self.visit_all(node.body, node)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        self.visit(node.generators[0].iter)
        for number, part in enumerate(node.generators):
            self.visit_all([part.iter if number else None, part.target, *part.ifs], node)
        self.visit_all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt], node)

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_If(self, node: ast.If) -> None:
        """Skip the block that runs only when the file is a script."""
        tests = ("__name__ == '__main__'", "'__main__' == __name__")
        is_script = self.scope.parent is None and ast.unparse(node.test) in tests
        self.visit_all(node.orelse if is_script else [node.test, *node.body, *node.orelse])


def list_parameters(arguments: ast.arguments) -> list[ast.arg]:
    """Return all parameters of a function."""
    rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]
