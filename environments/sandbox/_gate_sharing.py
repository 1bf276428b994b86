"""What exists once for all sessions: code may look at it where it stands, and do nothing else with it.

Whatever is made when a file is loaded exists once: values of module variables, class attributes and defaults. Each has
a level: CONSTANT, FLAT (a container of constants), or OPAQUE (anything else). A flat one may be indexed, searched,
iterated, copied and compared; every other use (as an argument, a result, an element, a target), and every use of an
opaque one, is refused, whether it changes something or not.
"""

import ast
from collections.abc import Iterable, Iterator

from trajsmith.environments.sandbox._gate_capabilities import Report
from trajsmith.environments.sandbox._gate_names import VALUE_MODULES
from trajsmith.environments.sandbox._gate_scopes import FUNCTIONS, ScopedVisitor
from trajsmith.environments.sandbox.serialization import split_words

CONSTANT, FLAT, OPAQUE = 0, 1, 2
_LOOKS = frozenset(
    split_words("copy count difference get index intersection isdisjoint issubset issuperset items keys union values")
)
"""Methods that only look at a container."""
_CALLS = frozenset(
    split_words("""
    .choice .choices .difference .extend .intersection .issubset .issuperset .join .sample .union .update abs all any
    bool bytes chr complex copy.copy copy.deepcopy dict dict.fromkeys enumerate filter float frozenset hash int
    isinstance issubclass json.dumps len list map max min object ord property random.choice random.choices
    random.sample range repr reversed round set sorted str sum super tuple type zip
""")
)
"""Builtins, functions and (with a dot) methods that only look at their arguments."""
_CHANGES = frozenset(
    split_words("add append clear discard extend insert pop popitem remove reverse setdefault sort update")
)
_ITERATORS = frozenset(split_words("enumerate filter iter map next reversed zip"))
_CONTAINERS = frozenset(
    split_words("copy.copy copy.deepcopy dict dict.fromkeys list random.choices random.sample set sorted")
)
_SETTINGS = frozenset(split_words("addFilter addHandler register removeFilter removeHandler setLevel"))
"""Methods of loggers, and of functions and classes, that change them for all."""
_MODELS = frozenset({"BaseModel", "EnvironmentState", "RootModel", "StateModel", "TypedDict"})
_ENUMERATIONS = frozenset({"Enum", "Flag", "IntEnum", "IntFlag", "NamedTuple", "StrEnum"})
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOKING = (
    ast.Assert, ast.AugAssign, ast.BinOp, ast.Compare, ast.Expr, ast.For, ast.FormattedValue, ast.If, ast.Starred,
    ast.UnaryOp, ast.While, ast.comprehension,
)  # fmt: skip
"""Nodes that only look at the values below them."""
_HOLDERS = (
    ast.Assign, ast.AnnAssign, ast.BoolOp, ast.Dict, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.Lambda, ast.List,
    ast.ListComp, ast.NamedExpr, ast.Return, ast.Set, ast.SetComp, ast.Yield,
)  # fmt: skip
"""Nodes that move the values below them on."""


class SharedStateChecker(ScopedVisitor):
    """Reports uses of shared objects that are more than a look."""

    def __init__(self, tree: ast.Module, report: Report, own_variables: bool) -> None:
        """With `own_variables` every episode has its own variables of the module and of its classes."""
        super().__init__(tree)
        self._send = report
        self._own_variables = own_variables
        self._parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        self._methods = {node.name for node in ast.walk(tree) if isinstance(node, _DEFINITIONS)}
        self._objects = {node.name for node in tree.body if isinstance(node, _DEFINITIONS)}
        self._attributes: dict[str, int] = {}
        """Levels of what classes hold, by the attribute's name."""
        self._declared: set[str] = set()
        self._reported: set[tuple[int, str]] = set()
        self._changed = True

    def run(self) -> None:
        while self._changed:  # levels only rise
            self._changed = False
            self._reported.clear()
            self.visit_all(self.tree.body)
        self._check_closures()
        for line, message in self._reported:
            self._send(line, "shared", message)

    def _report(self, node: ast.AST, subject: str) -> None:
        message = f"does more than look at {subject}, of which there is one for all sessions"
        self._reported.add((getattr(node, "lineno", 1), message))

    # what is made when the file is loaded

    def visit_Assign(self, node: ast.Assign | ast.AnnAssign) -> None:
        self.generic_visit(node)
        if self.scope.runs_at_load and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._keep(node, target, node.value)

    visit_AnnAssign = visit_Assign

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self._bind(node.target, OPAQUE if self._level_of_items(node.iter) == OPAQUE else CONSTANT)
        self.generic_visit(node)

    visit_AsyncFor = visit_For

    def visit_withitem(self, node: ast.withitem) -> None:
        self._bind(node.optional_vars, OPAQUE)
        self.generic_visit(node)

    def visit_Match(self, node: ast.Match) -> None:
        if self.scope.runs_at_load:
            self._report(node, "what a pattern takes apart")
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._bind(node.target, self._level(node.value))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        name = node.target.id if isinstance(node.target, ast.Name) else getattr(node.target, "attr", "")
        owner = self.scope.find_owner(name) if isinstance(node.target, ast.Name) else None
        level = owner.shared.get(name) if owner is not None else self._attributes.get(name)
        if level and not self.scope.runs_at_load:
            self._report(node, ast.unparse(node.target))
        self._bind(node.target, self._level(node.value))
        self.generic_visit(node)

    def _keep(self, node: ast.Assign | ast.AnnAssign, target: ast.expr, value: ast.expr) -> None:
        """Code that runs at load puts a value into a variable of the module or the class."""
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, part in zip(target.elts, value.elts, strict=True):
                self._keep(node, one, part)
            return
        level, inside = self._level(value), self.scope.node
        if isinstance(value, ast.GeneratorExp):
            self._report(node, f"the generator {ast.unparse(target)}")
        if not isinstance(inside, ast.ClassDef) or not isinstance(target, ast.Name):
            self._bind(target, level)
            return
        bases = self._find_bases(inside)
        if bases & _ENUMERATIONS and level:
            self._report(node, f"the member {target.id}")
        elif bases & _MODELS and isinstance(node, ast.AnnAssign) and "ClassVar" not in ast.unparse(node.annotation):
            if not self._is_copied(value):
                self._report(node, f"the default of {target.id}")
        elif self._own_variables and inside in self.tree.body:
            self._declared.add(target.id)
        else:
            self._learn(self.scope.shared, target.id, level)
            self._learn(self._attributes, target.id, level)

    def _is_copied(self, value: ast.expr) -> bool:
        """Return whether every instance of a model gets its own copy of a default: models copy containers, whole."""
        if isinstance(value, ast.Call) and self.scope.find_member(value.func) == ("pydantic", "Field"):
            return all(map(self._is_copied, [*value.args, *(keyword.value for keyword in value.keywords)]))
        return isinstance(value, ast.Dict | ast.List | ast.Set) or self._level(value) < OPAQUE

    def _bind(self, target: ast.expr | None, level: int) -> None:
        """Code that runs at load puts something of this level into variables and attributes."""
        if not self.scope.runs_at_load or target is None:
            return
        if any(isinstance(part, ast.Starred) for part in ast.walk(target)):
            level = max(level, FLAT)
        if isinstance(target, ast.Attribute):
            self._learn(self._attributes, target.attr, level)
        for part in ast.walk(target):
            owner = self.scope.find_owner(part.id) if isinstance(part, ast.Name) else None
            if owner is None or not isinstance(part, ast.Name) or isinstance(part.ctx, ast.Load):
                continue
            if not (self._own_variables and owner is self.module_scope):
                self._learn(owner.shared, part.id, level)

    def _learn(self, table: dict[str, int], name: str, level: int) -> None:
        if level > table.get(name, CONSTANT):
            table[name] = level
            self._changed = True

    def _find_bases(self, node: ast.ClassDef, seen: tuple[str, ...] = ()) -> set[str]:
        """Return the last words of the names of all bases; those of the file are replaced by their own."""
        names: set[str] = set()
        for base in node.bases:
            name = _last_word(base.value if isinstance(base, ast.Subscript) else base)
            own = self._classes.get(name)
            names |= {name} if own is None or name in seen else self._find_bases(own, (*seen, name))
        return names

    def _level(self, node: ast.expr | None) -> int:
        """Return the level of a value that is made when the file is loaded."""
        match node:
            case None | ast.Constant() | ast.JoinedStr() | ast.Compare() | ast.Lambda():
                return CONSTANT
            case ast.UnaryOp(operand=inner) | ast.NamedExpr(value=inner):
                return self._level(inner)
            case ast.Subscript(value=inner) | ast.Starred(value=inner):
                return OPAQUE if self._level(inner) == OPAQUE else CONSTANT
            case ast.Tuple(elts=parts):
                return OPAQUE if self._highest(parts) else CONSTANT
            case ast.List(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
                return OPAQUE if self._highest(parts) else FLAT
            case ast.ListComp() | ast.SetComp() | ast.DictComp():
                return OPAQUE if self._level_of_elements(node) else FLAT
            case ast.BinOp(left=one, right=other) | ast.IfExp(body=one, orelse=other):
                return self._highest([one, other])
            case ast.BoolOp(values=parts):
                return self._highest(parts)
            case ast.Name(id=name):
                owner = self.scope.find_owner(name)
                return owner.shared.get(name, CONSTANT) if owner is not None else CONSTANT
            case ast.Attribute(value=inner):
                return CONSTANT if self._is_object(_find_root(inner)) else OPAQUE
            case ast.Call():
                return self._level_of_call(node)
        return OPAQUE

    def _highest(self, nodes: Iterable[ast.expr]) -> int:
        return max((self._level(node) for node in nodes), default=CONSTANT)

    def _level_of_elements(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> int:
        around, self.scope = self.scope, self.enter(node, self.scope)
        level = self._level(node.value if isinstance(node, ast.DictComp) else node.elt)
        opaque = any(self._level_of_items(part.iter) == OPAQUE for part in node.generators)
        self.scope = around
        return OPAQUE if opaque else level

    def _level_of_items(self, node: ast.expr) -> int:
        """Return the level of an argument or iterable that is used up at once, as an iterator may be."""
        if isinstance(node, ast.GeneratorExp):
            return OPAQUE if self._level_of_elements(node) else CONSTANT
        if isinstance(node, ast.Call) and self._find_callee(node.func) in ("enumerate", "reversed", "zip"):
            return max((self._level_of_items(argument) for argument in node.args), default=CONSTANT)
        return self._level(node)

    def _level_of_call(self, node: ast.Call) -> int:
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        inside = max((self._level_of_items(argument) for argument in arguments), default=CONSTANT)
        called = self._find_callee(node.func)
        if isinstance(node.func, ast.Attribute) and self._level(node.func.value) < OPAQUE and called[1:] in _LOOKS:
            return max(self._level(node.func.value), inside)
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant):
            return CONSTANT if node.func.attr in ("format", "join") else FLAT  # of a text
        if called in _ITERATORS or called == "typing.cast":
            return OPAQUE
        if called in _CALLS and not called.startswith(".") and inside < OPAQUE:
            several = called in ("max", "min", "sum") and len(node.args) > 1
            return FLAT if called in _CONTAINERS else inside if several else CONSTANT
        own = self._classes.get(called.removeprefix("#"))
        if own is not None and self._is_frozen(own):
            return OPAQUE if inside else CONSTANT
        module = self.scope.find_member(node.func)[0]
        if not module and isinstance(node.func, ast.Attribute):
            module = self.scope.find_member(node.func.value)[0]
        return CONSTANT if module in VALUE_MODULES and inside < OPAQUE else OPAQUE

    def _is_frozen(self, node: ast.ClassDef) -> bool:
        """Return whether objects of a class cannot be changed: named tuples and frozen dataclasses that do nothing."""
        frozen = any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list)
        simple = not any(isinstance(part, _DEFINITIONS) and part.name.startswith("__") for part in node.body)
        return simple and (frozen or self._find_bases(node) == {"NamedTuple"})

    # what is done with it later

    def visit_Name(self, node: ast.Name) -> None:
        owner = self.scope.find_owner(node.id)
        if owner is None or not isinstance(node.ctx, ast.Load):
            return
        level = owner.shared.get(node.id, CONSTANT)
        if level and not self._only_looks(node, level):
            if self.scope.runs_at_load:  # no harm, but after it nothing is known of the variable
                self._learn(owner.shared, node.id, OPAQUE)
            else:
                self._report(node, node.id)
        if self._is_object(node):
            self._check_object(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        level = self._attributes.get(node.attr, CONSTANT)
        if level and isinstance(node.ctx, ast.Load) and not self._only_looks(node, level):
            self._report(node, ast.unparse(node))
        if not isinstance(node.ctx, ast.Load) and not self.scope.runs_at_load:
            root, above = _find_root(node), node.value
            owner = self.scope.find_owner(root.id) if isinstance(root, ast.Name) else None
            variable = owner is self.module_scope and not self._own_variables and not self._is_object(root)
            if variable or (isinstance(above, ast.Attribute) and above.attr in self._methods):
                self._report(node, ast.unparse(above))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called, name = self._find_callee(node.func), node.args[1] if len(node.args) > 1 else None
        by_text = called == "getattr" and isinstance(name, ast.Constant) and self._attributes.get(str(name.value))
        if by_text or (called in ("delattr", "setattr") and self.scope.runs_at_load):
            self._report(node, ast.unparse(node))
        if called == "type":
            self._check_object(node)
        if called[1:] in _SETTINGS and called.startswith(".") and not self.scope.runs_at_load:
            self._report(node, ast.unparse(node.func))
        self.generic_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            if self._attributes.get(name):
                self._report(node, name)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        if not self._own_variables and not self.scope.runs_at_load:
            message = f"sets {', '.join(node.names)}, which exists once for all sessions"
            self._send(node.lineno, "global", message)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        is_for_class = "classmethod" in [_last_word(decorator) for decorator in node.decorator_list]
        if is_for_class and node.args.args[:1] and node.args.args[0].arg != "cls":
            self._report(node, f"the class, which is called {node.args.args[0].arg},")
        self._learn_defaults(node)
        super().visit_FunctionDef(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._learn_defaults(node)
        super().visit_Lambda(node)

    def _learn_defaults(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """A default exists as often as its function: once, but for a function that is made in a call."""
        if not self.scope.runs_at_load:
            return
        arguments, inside = node.args, self.enter(node, self.scope)
        positional = [*arguments.posonlyargs, *arguments.args]
        pairs = list(zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True))
        for argument, default in [*pairs, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]:
            self._learn(inside.shared, argument.arg, self._level(default))

    def _only_looks(self, node: ast.expr, level: int) -> bool:
        """Return whether the code around a use of a shared object only looks at it."""
        parent = self._parents[node]
        if isinstance(parent, ast.Call) and node in parent.args:
            called = self._find_callee(parent.func)
            return called == "copy.deepcopy" or (called in _CALLS and level == FLAT)
        while isinstance(parent, ast.BoolOp | ast.IfExp):
            node, parent = parent, self._parents[parent]
        match parent:
            case _ if level == OPAQUE:
                return False
            case ast.Subscript(value=value, ctx=ast.Load()):
                return value is node
            case ast.Attribute(attr=name):
                call = self._parents[parent]
                return name in _LOOKS and isinstance(call, ast.Call) and call.func is parent
            case ast.Dict(keys=keys, values=values):
                return node in values and keys[values.index(node)] is None
            case ast.Call(args=arguments):
                return node in arguments and self._find_callee(parent.func) in _CALLS
        return isinstance(parent, _LOOKING)

    # functions, classes and members of modules

    def _is_object(self, node: ast.AST) -> bool:
        """Return whether an expression names a function, a class or a member of a module: these exist once."""
        owner = self.scope.find_owner(node.id) if isinstance(node, ast.Name) else None
        if owner is None or not isinstance(node, ast.Name):
            return False
        return node.id in owner.imports or (owner is self.module_scope and node.id in self._objects) or node.id == "cls"

    def _check_object(self, node: ast.expr) -> None:
        """It may be called, compared, and named as a type; not be written to, and not move into variables."""
        if self.scope.runs_at_load:
            return
        subject, parent, imported = ast.unparse(node), self._parents[node], bool(self.scope.find_member(node)[0])
        moves = isinstance(parent, _HOLDERS) and getattr(parent, "annotation", None) is not node and not imported
        if isinstance(parent, ast.Tuple):  # as in `isinstance(x, (A, B))`
            moves = not isinstance(self._parents[parent], ast.Call | ast.ExceptHandler | ast.Subscript) and not imported
        call = self._parents[parent] if isinstance(parent, ast.keyword) else parent
        if isinstance(call, ast.Call) and call.func is not node:
            called = self._find_callee(call.func)
            moves = called in ("delattr", "setattr") or called.startswith("#")
        first = ""
        while isinstance(parent, ast.Attribute | ast.Subscript | ast.Call):
            if node is not (parent.func if isinstance(parent, ast.Call) else parent.value):
                break
            if isinstance(parent, ast.Call) and not (imported or isinstance(node, ast.Call)):
                break  # a new object, or one that the function was allowed to give back
            name = getattr(parent, "attr", "")
            first = first or name
            written = not isinstance(getattr(parent, "ctx", None) or ast.Load(), ast.Load)
            moves |= written and not (self._own_variables and first in self._declared)
            moves |= imported and name in _CHANGES
            node, parent = parent, self._parents[parent]
        if moves:
            self._report(node, subject)

    def _check_closures(self) -> None:
        """Functions that run at load may not make functions or generators: these would keep variables for all."""
        functions: dict[str, list[ast.AST]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.setdefault(node.name, []).append(node)
        called = {name for node in _load_nodes(self.tree) for name in _called_names(node)}
        for node in _load_nodes(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Lambda):
                self._report(node, "what a function makes")
        starts = {"__init__", "__post_init__"} if called & self._classes.keys() else set()
        todo, seen = [*called, *starts], set[str]()
        while todo:
            name = todo.pop()
            for function in functions.get(name, []) if name not in seen else []:
                for node in ast.walk(function):
                    todo += _called_names(node)
                    inner = isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node is not function
                    if inner or isinstance(node, ast.Yield | ast.YieldFrom):
                        self._report(node, f"what {name} makes")
            seen.add(name)

    def _find_callee(self, node: ast.expr) -> str:
        """Return the builtin, the member of a module, after a dot the method, or after # the file's own function."""
        if isinstance(node, ast.Name) and self.scope.find_owner(node.id) is None:
            return node.id
        module, member = self.scope.find_member(node)
        if module:
            return f"{module}.{member}"
        if isinstance(node, ast.Attribute) and not isinstance(node.value, ast.Constant):
            receiver = node.value.func if isinstance(node.value, ast.Call) else node.value
            if isinstance(receiver, ast.Name) and (self.scope.find_owner(receiver.id) is None):
                return f"{receiver.id}.{node.attr}"  # list.extend
            if not isinstance(node.value, ast.Call) and self._is_object(receiver):
                return f"#{node.attr}"
        own = self._is_object(node) or _last_word(node) in self._methods
        return f"#{_last_word(node)}" if own else f".{_last_word(node)}"


def _load_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run when the file is loaded; of a function these are its decorators and defaults."""
    for child in ast.iter_child_nodes(node):
        yield child
        if isinstance(child, FUNCTIONS):
            for part in [*getattr(child, "decorator_list", []), child.args]:
                yield from ast.walk(part)
        else:
            yield from _load_nodes(child)


def _called_names(node: ast.AST) -> list[str]:
    """Return the names of functions that a node may call."""
    if isinstance(node, ast.Call):
        return [_last_word(one) for one in (node.func, *node.args)]
    return [_last_word(one) for one in getattr(node, "decorator_list", [])]


def _find_root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node


def _last_word(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
