"""Whether source text keeps something outside of its state: in module variables, classes, defaults, caches, closures.

A session of code that keeps everything in its state goes back by loading an earlier state. Other code goes back only
by a fresh process and the same calls, which is slower and just as exact. So this check is conservative: it parses the
text, follows nothing, and reports each use of what exists once per process that is not plainly a look at constants.
It protects nobody: every play has a process, whatever this says.
"""

import ast
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from trajsmith.environments.sandbox.serialization import split_words

LONGEST: Final = 300_000
"""Characters of source; longer ones are not read."""
_CONSTANT, _FLAT, _OPAQUE = 0, 1, 2
_VALUES = frozenset(
    split_words("""
    Annotated Decimal Field Fraction Literal NewType Path PurePosixPath TypeVar Union bool bytes compile date datetime
    field float frozenset getLogger int namedtuple str time timedelta timezone tuple
""")
)
"""Functions and classes whose results cannot be changed, or are each object's own."""
_LOOKS = frozenset(split_words("copy count get index items keys values isdisjoint issubset issuperset union"))
"""Methods that only look at a container of constants."""
_READERS = frozenset(
    split_words("""
    all any bool dict enumerate frozenset join len list max min range reversed set sorted str sum tuple zip choice
    choices sample deepcopy copy isinstance
""")
)
"""Functions and methods that only look at their arguments."""
_CHANGES = frozenset(
    split_words("""
    add append appendleft clear discard extend insert pop popitem popleft remove reverse setdefault shuffle sort
    update setattr delattr seed
""")
)
_REACHES = frozenset(split_words("__dict__ __class__ __defaults__ __kwdefaults__ __setattr__ globals vars"))
"""Names by which classes and modules are changed."""
_CACHES = frozenset({"cache", "lru_cache", "singledispatch"})
_OWN_FIELDS = frozenset(
    split_words("BaseModel EnvironmentState Enum Flag IntEnum NamedTuple StateModel StrEnum TypedDict")
)
"""Bases of classes whose class variables are declarations of fields, copied into each object."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True, order=True)
class OutsideState:
    """One place where code may keep something outside of its state."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


@lru_cache(maxsize=16)
def find_outside_state(source: str, own_variables: bool = False) -> tuple[OutsideState, ...]:
    """Find what may be kept outside of the state; it is parsed, never run.

    Args:
        source: Python source.
        own_variables: True if an adapter gives every play its own variables of the module and of its classes.
    """
    try:
        if len(source) > LONGEST:
            return (OutsideState(1, f"has more than {LONGEST} characters"),)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        return tuple(sorted(_Finder(tree, own_variables).run()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return (OutsideState(1, "cannot be read"),)


class _Finder:
    """One reading of a file."""

    def __init__(self, tree: ast.Module, own_variables: bool) -> None:
        self._tree = tree
        self._own_variables = own_variables
        self._found: set[OutsideState] = set()
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._field_classes = self._find_field_classes()
        self._levels: dict[str, int] = {}
        """What each variable that is bound while the file loads may hold."""
        self._attributes: dict[str, int] = {}
        """The same of variables of classes."""
        self._classes: set[str] = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        self._once = set[str]()
        """Names of what exists once: variables, functions, classes and modules."""

    def run(self) -> set[OutsideState]:
        for _ in range(3):  # levels of names that are made of names
            for node in ast.walk(self._tree):
                if self._runs_at_load(node):
                    self._bind(node)
        for node in ast.walk(self._tree):
            self._check_definition(node)
            if not self._runs_at_load(node):
                self._check(node)
        return self._found

    def _report(self, node: ast.AST, message: str) -> None:
        self._found.add(OutsideState(getattr(node, "lineno", 1), message))

    def _find_field_classes(self) -> frozenset[str]:
        names = set(_OWN_FIELDS)
        for _ in range(3):
            for node in ast.walk(self._tree):
                if isinstance(node, ast.ClassDef):
                    bases = {_last_name(base) for base in (*node.bases, *node.decorator_list)}
                    if bases & names or "dataclass" in bases:
                        names.add(node.name)
        return frozenset(names)

    def _runs_at_load(self, node: ast.AST) -> bool:
        while node in self._parents:
            parent = self._parents[node]
            inside = getattr(parent, "body", ())
            if isinstance(parent, _FUNCTIONS) and (node is inside or (isinstance(inside, list) and node in inside)):
                return False
            node = parent
        return True

    # What is made when the file is loaded

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, _DEFINITIONS):
            self._once.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._once.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            fields = self._owner(node) in self._field_classes
            level = _CONSTANT if fields else self._level(node.value)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._bind_target(target, level)
        elif isinstance(node, ast.For | ast.NamedExpr | ast.AugAssign):
            self._bind_target(node.target, _OPAQUE)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
            self._bind_target(node.func.value, _OPAQUE)
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            self._levels[node.name] = _OPAQUE
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._bind_target(node.optional_vars, _OPAQUE)

    def _owner(self, node: ast.AST) -> str:
        parent = self._parents.get(node)
        return parent.name if isinstance(parent, ast.ClassDef) else ""

    def _bind_target(self, target: ast.expr, level: int) -> None:
        plain = isinstance(target, ast.Name | ast.Attribute)
        if not plain and (level or any(isinstance(one, ast.Starred) for one in ast.walk(target))):
            level = _OPAQUE
        for one in ast.walk(target):
            if isinstance(one, ast.Name):
                in_class = isinstance(self._parents.get(self._parents[target]), ast.ClassDef)
                names, name = (self._attributes if in_class else self._levels), one.id
            elif isinstance(one, ast.Attribute):
                names, name = self._attributes, one.attr
            else:
                continue
            names[name] = max(names.get(name, 0), level)

    def _level(self, value: ast.expr) -> int:
        if isinstance(value, ast.Constant | ast.JoinedStr | ast.Compare | ast.Lambda):
            return _OPAQUE if isinstance(value, ast.Lambda) else _CONSTANT
        if isinstance(value, ast.Name | ast.Attribute):
            return self._levels.get(_last_name(value), self._attributes.get(_last_name(value), _CONSTANT))
        if isinstance(value, ast.Tuple):
            return max((self._level(item) for item in value.elts), default=_CONSTANT)
        if isinstance(value, ast.List | ast.Set | ast.Dict):
            items = value.values if isinstance(value, ast.Dict) else value.elts
            keys = [key for key in value.keys if key is not None] if isinstance(value, ast.Dict) else []
            return _OPAQUE if any(self._level(item) for item in (*items, *keys)) else _FLAT
        if isinstance(value, ast.Call):
            inner = max(map(self._level, [*value.args, *(word.value for word in value.keywords)]), default=_CONSTANT)
            return inner if _last_name(value.func) in _VALUES else _OPAQUE
        if isinstance(value, ast.Subscript):
            return _OPAQUE if self._level(value.value) == _OPAQUE else _CONSTANT
        if isinstance(value, ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.IfExp):
            return max(self._level(part) for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr))
        return _OPAQUE

    # What is done with it

    def _check_definition(self, node: ast.AST) -> None:
        if isinstance(node, ast.Global) and not self._own_variables:
            self._report(node, f"rebinds {', '.join(node.names)} for all calls to come")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(_last_name(one) in _CACHES for one in node.decorator_list):
                self._report(node, f"{node.name} keeps results in a cache")
            if self._runs_at_load(node):
                self._check_defaults(node)
        if isinstance(node, ast.Nonlocal) and not self._is_nested_twice(node):
            self._report(node, f"rebinds {', '.join(node.names)} in a closure")

    def _check_defaults(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
        pairs = list(zip(reversed(names), reversed(node.args.defaults), strict=False))
        pairs += [
            (one.arg, value)
            for one, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            if value is not None
        ]
        for name, value in pairs:
            level = self._level(value)
            uses = [one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id == name]
            if level == _OPAQUE or (level == _FLAT and not all(map(self._is_look, uses))):
                self._report(value, f"{node.name} changes the default of {name}, or may")

    def _is_nested_twice(self, node: ast.AST) -> bool:
        """Return whether a closure is made in a call of a method: it lives no longer than that."""
        chain = [node]
        while chain[-1] in self._parents:
            chain.append(self._parents[chain[-1]])
        return any(isinstance(one, ast.ClassDef) for one in chain)

    def _check(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name) and node.id in _REACHES:
            self._report(node, f"uses {node.id}")
        if isinstance(node, ast.Attribute) and node.attr in _REACHES:
            self._report(node, f"uses {node.attr}")
        if isinstance(node, ast.Call) and _last_name(node.func) in {"setattr", "delattr", "type", "getattr"}:
            first = node.args[0] if node.args else None
            named = len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
            if not (_last_name(node.func) == "getattr" and named) and not self._is_type_question(node):
                self._report(node, f"uses {_last_name(node.func)} of {_last_name(first) or 'a value'}")
            elif named and not self._own_variables and self._attributes.get(str(_constant(node.args[1])), 0):
                self._report(node, f"does more than look at {_constant(node.args[1])}")
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            root = _root(node)
            outlives = root in self._once or (not self._own_variables and root in self._levels)
            if outlives and not self._is_local(node, root):
                self._report(node, f"changes {root}")
        if isinstance(node, ast.Name) and node.id in self._classes and not self._is_class_use(node):
            self._report(node, f"hands on the class {node.id}")
        if isinstance(node, ast.Attribute) and node.attr in _CHANGES and self._is_once(node):
            self._report(node, f"changes {_root(node)}")
        if not self._own_variables:
            self._check_variable(node)

    def _is_class_use(self, node: ast.Name) -> bool:
        """Return whether a class is called, asked for a member, or names a type."""
        parent = self._parents[node]
        if isinstance(parent, ast.Call):
            return parent.func is node or _last_name(parent.func) in {"isinstance", "issubclass", "cast"}
        if isinstance(parent, ast.Tuple):
            call = self._parents[parent]
            return isinstance(call, ast.ExceptHandler | ast.Subscript) or _last_name(call) in {
                "isinstance",
                "issubclass",
            }
        kinds = ast.Attribute | ast.Subscript | ast.arg | ast.AnnAssign | ast.BinOp | ast.Raise | ast.ExceptHandler
        return isinstance(parent, kinds | ast.MatchClass | ast.FunctionDef | ast.Compare)

    def _is_type_question(self, node: ast.Call) -> bool:
        """Return whether it is `type(x).__name__` or a comparison of types."""
        parent = self._parents.get(node)
        name = isinstance(parent, ast.Attribute) and parent.attr in {"__name__", "__qualname__"}
        return _last_name(node.func) == "type" and len(node.args) == 1 and (name or isinstance(parent, ast.Compare))

    def _is_once(self, node: ast.Attribute) -> bool:
        root = _root(node)
        return root in self._once and root not in _VALUES and not self._is_local(node, root)

    def _check_variable(self, node: ast.AST) -> None:
        """A variable of the module, or one of a class, may be looked at where it holds constants."""
        if isinstance(node, ast.Name):
            name, level = node.id, self._levels.get(node.id, _CONSTANT)
        elif isinstance(node, ast.Attribute):
            name, level = node.attr, self._attributes.get(node.attr, _CONSTANT)
        else:
            return
        if isinstance(node, ast.Name) and self._is_local(node, name):
            return
        if level == _CONSTANT or (level == _FLAT and self._is_look(node)):
            return
        self._report(node, f"does more than look at {name}")

    def _is_look(self, node: ast.AST) -> bool:
        parent = self._parents[node]
        if isinstance(parent, ast.Subscript) and parent.value is node:
            return isinstance(parent.ctx, ast.Load)
        if isinstance(parent, ast.Attribute):
            call = self._parents[parent]
            return parent.attr in _LOOKS and isinstance(call, ast.Call) and call.func is parent
        if isinstance(parent, ast.Call):
            return node is not parent.func and _last_name(parent.func) in _READERS
        if isinstance(parent, ast.Dict):
            return None in parent.keys and parent.values[parent.keys.index(None)] is node
        return isinstance(parent, ast.Compare | ast.comprehension | ast.For | ast.If | ast.IfExp | ast.Starred)

    def _is_local(self, node: ast.AST, name: str) -> bool:
        """Return whether a function around a node binds a name."""
        while node in self._parents:
            node = self._parents[node]
            if isinstance(node, _FUNCTIONS) and name in _bound_names(node):
                return True
        return False


@lru_cache(maxsize=4096)
def _bound_names(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """Return parameters and local variables of a function."""
    names = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    outside = {name for one in ast.walk(function) if isinstance(one, ast.Global) for name in one.names}
    for one in ast.walk(function):
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load):
            names.add(one.id)
        elif isinstance(one, ast.MatchAs | ast.MatchStar | ast.ExceptHandler) and one.name:
            names.add(one.name)
    return frozenset(names - outside)


def _last_name(node: ast.AST | None) -> str:
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None
