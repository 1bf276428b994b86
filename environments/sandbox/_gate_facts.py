"""What is known of the values of a program: which are shared, by name and without order."""

import ast
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from trajsmith.environments.sandbox import _gate_calls as calls
from trajsmith.environments.sandbox._gate_capabilities import Report
from trajsmith.environments.sandbox._scopes import FUNCTIONS, Function, NameScope, ScopedVisitor, list_parameters

Key = TypeVar("Key")


class ValueKind(NamedTuple):
    """Properties of a value that matter for sharing."""

    itself: bool = False
    """It is a shared object."""
    parts: bool = False
    """Objects that it holds are shared and can be changed."""
    iterator: bool = False
    """Looking at it changes it."""
    fixture: bool = False
    """A class, function or module: fine to use, not to write to."""
    origin: str = ""
    """What it was called where it was made."""

    def __or__(self, other: "ValueKind") -> "ValueKind":
        return ValueKind(
            self.itself or other.itself,
            self.parts or other.parts,
            self.iterator or other.iterator,
            self.fixture or other.fixture,
            self.origin or other.origin,
        )

    @property
    def matters(self) -> bool:
        return self.itself or self.parts

    @property
    def element(self) -> "ValueKind":
        return ValueKind(self.parts, self.parts, self.iterator, origin=self.origin) if self.parts else NONE

    @property
    def copy(self) -> "ValueKind":
        """A fresh container of the same elements."""
        return ValueKind(parts=True, origin=self.origin) if self.parts else NONE


NONE = ValueKind()
FIXTURE = ValueKind(fixture=True)


class SharingFacts(ScopedVisitor):
    """Facts about the values of a program, collected while its syntax tree is visited."""

    def __init__(self, tree: ast.Module, report: Report, per_play: frozenset[str]) -> None:
        super().__init__(tree)
        self._send = report
        self._per_play = per_play
        self._models = calls.find_pydantic_classes(tree)
        self._loose = calls.has_loose_fields(tree, self._models)
        self._methods = _methods(tree)
        self._named_lambdas = _named_lambdas(tree)
        self._setup = _only_decorators(tree)
        self._set_at_start = _set_at_start(tree)
        self._everything = "*" in per_play
        self._declared = _declared(tree)
        self._found: set[tuple[int, str, str]] = set()
        self._changed = True
        self._variables: dict[tuple[NameScope | None, str], ValueKind] = {}
        self._attributes: dict[str, ValueKind] = {}
        self._class_attributes: dict[str, ValueKind] = {}
        self._hidden_attributes: dict[str, ValueKind] = {}
        """Those of classes that set an attribute of the same name on every new object."""
        self._results: dict[ast.AST, ValueKind] = {}
        self._at_load: set[ast.AST] = set()
        """Functions that run when the file is loaded: what they make is shared."""

    def _report(self, node: ast.expr | ast.stmt | ast.arg, rule: str, message: str) -> None:
        self._found.add((node.lineno, rule, message))

    def _learn(self, table: dict[Key, ValueKind], key: Key, kind: ValueKind) -> None:
        known = table.get(key, NONE)
        if known | kind != known:
            table[key] = known | kind
            self._changed = True

    @property
    def _loading(self) -> bool:
        """True in code that runs when the file is loaded."""
        functions = self.scope.functions()
        return not functions or functions[0].node in self._at_load

    def _new_container(self, elements: ValueKind = NONE, iterator: bool = False) -> ValueKind:
        """A new object that can be changed, made by the code being visited."""
        loading = self._loading
        return ValueKind(loading, elements.matters, loading and (iterator or elements.iterator), origin=elements.origin)

    def _evaluate(self, node: ast.AST | None) -> ValueKind:
        kind = self.visit(node) if node is not None else NONE
        return kind if isinstance(kind, ValueKind) else NONE

    def _join(self, nodes: Iterable[ast.AST | None]) -> ValueKind:
        kind = NONE
        for node in nodes:
            kind |= self._evaluate(node)
        return kind

    # changes

    def _change(self, node: ast.expr, kind: ValueKind, attribute: str = "") -> None:
        """The object that an expression gave is changed, or an attribute of it is set."""
        if not (kind.itself or kind.fixture) or self._is_setup(node):
            return
        if self._everything and not kind.itself and attribute in self._declared:
            return
        label = kind.origin or ast.unparse(node)
        if kind.itself:
            self._report(node, "shared-write", f"changes {label}, of which there is one for all sessions")
        else:
            self._report(node, "shared-write", f"writes to {label}, which all sessions use")

    def _is_setup(self, node: ast.expr) -> bool:
        """True for code that only runs while the file is loaded, and for a function's work on its own variables."""
        functions = self.scope.functions()
        if all(scope.node in self._setup for scope in functions):
            return True
        root = node
        while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
            root = root.func if isinstance(root, ast.Call) else root.value
        inner = functions[0].node
        if not isinstance(root, ast.Name) or not isinstance(inner, FUNCTIONS) or inner not in self._at_load:
            return False
        arguments = {parameter.arg for parameter in list_parameters(inner.args)}
        return self.scope.owner(root.id) is functions[0] and root.id not in arguments

    def _escape(self, node: ast.Call, kind: ValueKind) -> None:
        if kind.matters:
            label, callee = kind.origin or "a shared object", ast.unparse(node.func)
            self._report(node, "shared-escape", f"hands {label} to {callee}, which may keep or change it")

    def _absorb(self, holder: ast.expr, kind: ValueKind) -> None:
        """An object now holds something."""
        if not kind.matters:
            return
        held = ValueKind(parts=True, origin=kind.origin)
        if isinstance(holder, ast.Name):
            self._learn(self._variables, (self.scope.owner(holder.id), holder.id), held)
        elif isinstance(holder, ast.Attribute):
            self._learn(self._attributes, holder.attr, held)
        elif isinstance(holder, ast.Subscript):
            self._absorb(holder.value, kind)
        elif isinstance(holder, ast.Call):
            self._absorb(holder.func.value if isinstance(holder.func, ast.Attribute) else holder.func, kind)

    def _bind(self, target: ast.expr, kind: ValueKind, field: bool = False) -> None:
        if isinstance(target, ast.Name):
            self._bind_name(target, kind, field)
        elif isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._bind(element, kind.element, field)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, kind.copy, field)
        elif isinstance(target, ast.Attribute | ast.Subscript):
            holder = self._evaluate(target.value)
            self._change(target.value, holder, target.attr if isinstance(target, ast.Attribute) else "")
            if isinstance(target, ast.Subscript):
                self._evaluate(target.slice)
                self._absorb(target.value, kind)
            elif kind.matters:
                self._learn(self._class_attributes if holder.fixture else self._attributes, target.attr, kind)

    def _bind_name(self, target: ast.Name, kind: ValueKind, field: bool) -> None:
        name, scope = target.id, self.scope
        if self._everything and (scope.parent is None or self._is_copied(scope.node)):
            return
        if kind.matters and not kind.origin:
            kind = kind._replace(origin=name)
        if kind.iterator and not scope.functions():
            self._report(target, "shared-iterator", f"{name} gives each its next value: there is one for all sessions")
        self._learn(self._variables, (scope.owner(name), name), kind)
        if isinstance(scope.node, ast.ClassDef) and not field:
            hidden = name in self._set_at_start.get(scope.node, ())
            self._learn(self._hidden_attributes if hidden else self._class_attributes, name, kind)

    def _defaults(self, node: Function) -> None:
        scope, arguments = self.enter(node, self.scope), node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        pairs = zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
        for argument, default in [*pairs, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]:
            kind = self._evaluate(default)
            if kind.iterator:
                self._report(argument, "shared-iterator", f"{argument.arg} gives each its next value, for all sessions")
            if kind.matters:
                kind = kind._replace(origin=f"the default of {argument.arg}")
                self._learn(self._variables, (scope, argument.arg), kind)
        if positional and positional[0].arg == "cls":
            self._learn(self._variables, (scope, "cls"), FIXTURE)

    def _is_copied(self, node: ast.AST) -> bool:
        """Return whether the attributes of a class are copied for each episode, as they are where `EVERYTHING` is."""
        if not isinstance(node, ast.ClassDef) or node not in self.tree.body:
            return False
        return not any(base == "NamedTuple" or "Enum" in base for base in calls.find_base_names(node))

    def _known_scope(self, node: ast.AST) -> NameScope | None:
        """The scope inside a function; None as long as it was not visited."""
        return self._scopes.get(node)

    def _result(self, kind: ValueKind) -> None:
        """The function around gives this back."""
        functions = self.scope.functions()
        if functions:
            self._learn(self._results, functions[0].node, kind._replace(fixture=False))

    def _loads(self, definition: ast.AST | None) -> None:
        """A function runs when the file is loaded."""
        if isinstance(definition, FUNCTIONS) and definition not in self._at_load:
            self._at_load.add(definition)
            self._changed = True

    def _definition(self, node: ast.expr) -> ast.AST | None:
        """The function or class of the file that a name stands for."""
        if not isinstance(node, ast.Name):
            return None
        owner = self.scope.owner(node.id)
        if owner is None:
            return None
        return owner.definitions.get(node.id) or self._named_lambdas.get(node.id)


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _names(node: ast.Assign | ast.AnnAssign) -> set[str]:
    return {target.id for target in _targets(node) if isinstance(target, ast.Name)}


def _methods(tree: ast.Module) -> dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The methods of all classes of the file, by name."""
    methods: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                    methods.setdefault(statement.name, []).append(statement)
    return methods


def _named_lambdas(tree: ast.Module) -> dict[str, ast.Lambda]:
    return {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _only_decorators(tree: ast.Module) -> set[ast.AST]:
    """Functions of the module that are named nowhere but in decorators: their own code runs at load only."""
    decorators: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            decorators.update(d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in decorators}
    used = {node.id for node in decorators if isinstance(node, ast.Name)} - named
    return {
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in used and not node.decorator_list
    }


def _declared(tree: ast.Module) -> set[str]:
    """Attributes that the classes of the module begin with."""
    names: set[str] = set()
    for node in tree.body:
        for statement in node.body if isinstance(node, ast.ClassDef) else []:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                names |= _names(statement)
    return names


def _set_at_start(tree: ast.Module) -> dict[ast.AST, set[str]]:
    """Attributes that a class sets on every new object, which hide its own of the same name."""
    attributes: dict[ast.AST, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            starts = (
                s for s in node.body if isinstance(s, ast.FunctionDef) and s.name in ("__init__", "__post_init__")
            )
            plain = (s for start in starts for s in start.body if isinstance(s, ast.Assign | ast.AnnAssign))
            targets = (target for statement in plain for target in _targets(statement))
            attributes[node] = {
                t.attr for t in targets if isinstance(t, ast.Attribute) and ast.unparse(t.value) == "self"
            }
    return attributes
