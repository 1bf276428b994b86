"""What code reaches for: imports, builtins, attributes by name or by text, exceptions that are not its own."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator

from trajsmith.environments.sandbox import _gate_names as names
from trajsmith.environments.sandbox._gate_scopes import ScopedVisitor

Report = Callable[[int, str, str], None]
"""Line, rule, message."""
_FIELD_PARTS = re.compile(r"\{[^{}:]*[.\[]")
"""Fields of a format that name attributes or items."""


class CapabilityChecker(ScopedVisitor):
    """Reports every capability beyond plain computation on a program's own objects."""

    def __init__(self, tree: ast.Module, report: Report) -> None:
        super().__init__(tree)
        self._report = report
        self._own = _own_names(tree)
        definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        self._definitions = {node.name for node in tree.body if isinstance(node, definitions)}
        self._in_text = False

    def run(self) -> None:
        self.visit_all(self.tree.body)

    # imports and names

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if not names.is_importable(alias.name) and alias.name not in names.PACKAGES:
                self._report(node.lineno, "import", f"imports {alias.name}, which may keep things that sessions share")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        if module == "__future__":
            return
        if not names.is_importable(module) and module not in names.PACKAGES:
            self._report(node.lineno, "import", f"imports from {module}, which may keep things that sessions share")
            return
        for alias in node.names:
            if not names.is_public_member(module, alias.name) and names.find_submodule(module, alias.name) is None:
                self._report(node.lineno, "import", f"imports {alias.name} from {module}: not one of its plain names")

    def visit_Name(self, node: ast.Name) -> None:
        name, owner = node.id, self.scope.find_owner(node.id)
        if _is_dunder(name):
            fixed = name in ("__name__", "__file__") and not isinstance(node.ctx, ast.Load)
            if fixed or name not in names.DUNDERS | names.MODULE_DUNDERS:
                self._report(node.lineno, "name", f"uses {name}")
        elif self.scope.find_module(node) is not None and isinstance(node.ctx, ast.Load):
            self._report(node.lineno, "module-value", f"hands the module {name} around, with all that it holds")
        elif isinstance(node.ctx, ast.Load) and self._may_be_builtin(name):
            self._builtin(node)
        if owner is not None and name in owner.imports:
            self._imported(node.lineno, *owner.imports[name])

    def _may_be_builtin(self, name: str) -> bool:
        """A variable of the module hides a builtin only once it is set."""
        owner = self.scope.find_owner(name)
        return owner is None or (owner.parent is None and name not in self._definitions)

    def _builtin(self, node: ast.Name) -> None:
        if node.id in names.BUILTINS:
            self._report(node.lineno, "name", f"uses {node.id}, by which code reaches anything")
        elif node.id == "BaseException":
            self._report(node.lineno, "swallow", "handles BaseException, which the time limit of a call is")
        elif node.id == "id" and not self._in_text and self.scope.find_owner("id") is None:
            self._report(node.lineno, "object-id", "uses id(), which depends on what other sessions hold in memory")

    def _imported(self, line: int, module: str, name: str) -> None:
        if (module, name) in names.CACHES:
            self._report(line, "cache", f"{name} keeps results across sessions")
        source = _source(module, name)
        if source is not None:
            self._report(line, *source)

    # attributes

    def visit_Attribute(self, node: ast.Attribute) -> None:
        base = self.scope.find_module(node.value)
        if base is not None:
            if self.scope.find_module(node) is not None:
                self._report(node.lineno, "module-value", f"hands the module {base}.{node.attr} around")
            elif names.is_importable(base) or base in names.PACKAGES:
                self._member(node, base)
            return
        self._attribute(node.lineno, node.attr, node.value)
        if node.attr in ("now", "utcnow", "today") and self.scope.find_member(node.value)[0] == "datetime":
            self._report(node.lineno, "clock", f"reads the clock by .{node.attr}()")
        self.visit(node.value)

    def _member(self, node: ast.Attribute, module: str) -> None:
        if not names.is_public_member(module, node.attr):
            self._report(node.lineno, "attribute", f"uses {module}.{node.attr}: not one of its plain names")
        elif not isinstance(node.ctx, ast.Load):
            self._report(node.lineno, "shared", f"replaces {module}.{node.attr} for all sessions")
        else:
            self._imported(node.lineno, module, node.attr)

    def _attribute(self, line: int, name: str, of: ast.expr | None) -> None:
        if name in names.ATTRIBUTES:
            self._report(line, "attribute", f"uses .{name}, which leads to frames, code or every class")
        elif _is_dunder(name):
            if name not in names.DUNDERS:
                self._report(line, "attribute", f"uses .{name}")
        elif name.startswith("_") and not (isinstance(of, ast.Name) and of.id in ("self", "cls")):
            if name not in self._own and name not in names.PRIVATE:
                self._report(line, "attribute", f"uses .{name}, which is private to code elsewhere")
        elif name == "format" and not (isinstance(of, ast.Constant) and not _FIELD_PARTS.search(str(of.value))):
            self._report(line, "format", "formats with a text that names attributes, or that is not written out")

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            self._attribute(node.lineno, name, None)
        self.generic_visit(node)

    # calls

    def visit_Call(self, node: ast.Call) -> None:
        callee = node.func.id if isinstance(node.func, ast.Name) and self.scope.find_owner(node.func.id) is None else ""
        if callee in ("getattr", "setattr", "delattr", "hasattr"):
            self._by_name(node, callee)
            self.visit_all([*node.args, *node.keywords])
            return
        if callee == "type" and (len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred)):
            self._report(node.lineno, "class", "makes a class by calling type()")
        self.generic_visit(node)

    def _by_name(self, node: ast.Call, callee: str) -> None:
        name = node.args[1] if len(node.args) > 1 and not any(isinstance(a, ast.Starred) for a in node.args) else None
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            self._attribute(node.lineno, name.value, node.args[0])
        elif callee != "hasattr":
            self._report(node.lineno, "dynamic-attribute", f"calls {callee} with a name that is not written out")

    # definitions

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if _is_dunder(node.name) and node.name not in names.DUNDERS:
            self._report(node.lineno, "dunder", f"defines {node.name}, which runs when code of others does")
        if node.name in ("__exit__", "__aexit__") and any(map(_returns_something, ast.walk(node))):
            self._report(node.lineno, "swallow", f"{node.name} may swallow the time limit of a call")
        super().visit_FunctionDef(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for keyword in node.keywords:
            if keyword.arg is None or (
                keyword.arg == "metaclass" and _last(keyword.value) not in ("ABCMeta", "EnumMeta")
            ):
                self._report(node.lineno, "class", f"the class {node.name} has a metaclass")
        super().visit_ClassDef(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        last = node.body[-1]
        raises = isinstance(last, ast.Raise) and last.exc is None and not any(_leaving(node.body))
        if node.type is None and not raises:
            self._report(node.lineno, "swallow", "a bare except swallows the time limit of a call")
        self.generic_visit(node)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        for statement in _leaving(node.finalbody):
            self._report(statement.lineno, "swallow", "leaving a finally block swallows the time limit of a call")
        self.generic_visit(node)

    visit_TryStar = visit_Try

    # texts

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        text = node.value
        if not isinstance(text, str):
            return
        for word in text.split(".") if all(part.isidentifier() for part in text.split(".")) else []:
            if word in names.ATTRIBUTES or (_is_dunder(word) and word not in names.DUNDERS | {"__main__"}):
                self._report(node.lineno, "text", f"has the text {word!r}, which may be used to name an attribute")
        if "(" in text and len(text) < 1000:
            self._evaluated(node, text)

    def _evaluated(self, node: ast.Constant, text: str) -> None:
        """Look at a text as the code that it would be."""
        try:
            expression = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            return
        for part in ast.walk(expression):
            if isinstance(part, ast.expr):
                part.lineno = node.lineno
        before, self._in_text = self._in_text, True
        self.visit(expression)
        self._in_text = before


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and len(name) > 4


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _own_names(tree: ast.Module) -> frozenset[str]:
    """Private names that the file itself gives to methods, attributes and fields."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return frozenset(name for name in names if name.startswith("_"))


def _source(module: str, name: str) -> tuple[str, str] | None:
    """The rule and message for a member that gives clock or chance."""
    if module == "time" and name in names.REAL_CLOCKS:
        return "real-clock", f"reads time.{name}, which stays real: replays differ"
    if module == "time" and name in names.CLOCKS:
        return "clock", f"reads the clock by time.{name}"
    if module == "random" and name != "Random":
        return ("entropy" if name == "SystemRandom" else "random"), f"draws random numbers by random.{name}"
    if module == "uuid" and name in ("uuid1", "uuid4"):
        return "uuid", f"makes ids by {name}"
    if module == "secrets":
        return "entropy", f"draws from the system by secrets.{name}"
    return None


def _returns_something(node: ast.AST) -> bool:
    if not isinstance(node, ast.Return) or node.value is None:
        return False
    return not (isinstance(node.value, ast.Constant) and not node.value.value)


def _leaving(nodes: Iterable[ast.AST], loops: bool = False) -> Iterator[ast.stmt]:
    """Statements that leave a block before its end."""
    for node in nodes:
        if isinstance(node, ast.Return) or (isinstance(node, ast.Break | ast.Continue) and not loops):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _leaving(
                ast.iter_child_nodes(node), loops or isinstance(node, ast.For | ast.AsyncFor | ast.While)
            )
