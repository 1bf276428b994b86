"""What expressions give, where shared objects go in: the second half of the analysis is in `_gate_sharing`."""

import ast
from collections.abc import Sequence

from trajsmith.environments.sandbox import _gate_calls as calls
from trajsmith.environments.sandbox._gate_facts import FIXTURE, NONE, SharingFacts, ValueKind
from trajsmith.environments.sandbox._gate_names import is_importable
from trajsmith.environments.sandbox._scopes import (
    FUNCTIONS,
    Comprehension,
    Function,
    NameScope,
    list_comprehension_elements,
)


class ValueEvaluator(SharingFacts):
    """Visiting an expression gives its kind."""

    def visit_Name(self, node: ast.Name) -> ValueKind:
        owner = self.scope.owner(node.id)
        if owner is None:
            return FIXTURE
        if owner.parent is None and node.id in self._per_play:
            return NONE
        held = self._variables.get((owner, node.id), NONE)
        definition = owner.definitions.get(node.id)
        if definition is not None:
            return held | FIXTURE | self._join_results([definition])
        return held | FIXTURE if node.id in owner.modules or node.id in owner.imports else held

    def _join_results(self, functions: Sequence[ast.AST]) -> ValueKind:
        """Functions as values: whoever calls them gets what they give."""
        result = _join_kinds([self._results.get(function, NONE) for function in functions])
        return ValueKind(parts=result.matters, origin=result.origin)

    def visit_Attribute(self, node: ast.Attribute) -> ValueKind:
        of = self._evaluate(node.value)
        if of.itself and node.attr in calls.MUTATORS and node.attr not in self._methods:
            self._change(node.value, of)  # a method that changes its object, as a value
        held = self._attributes.get(node.attr, NONE) | self._join_results(self._methods.get(node.attr, []))
        on_class = self._class_attributes.get(node.attr, NONE)
        if of.fixture:
            on_class |= self._hidden_attributes.get(node.attr, NONE)
            return held | on_class if on_class.matters else FIXTURE
        return (of if node.attr == "value" else of.element) | held | on_class

    def visit_Subscript(self, node: ast.Subscript) -> ValueKind:
        of = self._evaluate(node.value)
        self._evaluate(node.slice)
        if of.fixture and not of.matters:
            return NONE
        return of.copy if isinstance(node.slice, ast.Slice) else of.element

    def visit_List(self, node: ast.List | ast.Set) -> ValueKind:
        return self._new_container(self._join(node.elts))

    visit_Set = visit_List

    def visit_Dict(self, node: ast.Dict) -> ValueKind:
        self._join(node.keys)
        spread = [value for key, value in zip(node.keys, node.values, strict=True) if key is None]
        direct = [value for key, value in zip(node.keys, node.values, strict=True) if key is not None]
        return self._new_container(self._join(direct) | self._join(spread).copy)

    def visit_Tuple(self, node: ast.Tuple) -> ValueKind:
        container = self._new_container(self._join(node.elts))
        return container._replace(itself=container.iterator)

    def visit_ListComp(self, node: Comprehension) -> ValueKind:
        around, inner = self.scope, self.enter(node, self.scope)
        for number, generator in enumerate(node.generators):
            self.scope = inner if number else around
            source = self._evaluate(generator.iter)
            self.scope = inner
            self._bind(generator.target, source.element)
            self.each(generator.ifs)
        elements = self._join(list_comprehension_elements(node))
        self.scope = around
        container = self._new_container(elements)
        return container._replace(iterator=container.itself) if isinstance(node, ast.GeneratorExp) else container

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ValueKind:
        kind = self._evaluate(node.value)
        self._bind(node.target, kind)
        return kind

    def visit_Starred(self, node: ast.Starred) -> ValueKind:
        return self._evaluate(node.value)

    def visit_Await(self, node: ast.Await) -> ValueKind:
        return self._evaluate(node.value)

    def visit_Yield(self, node: ast.Yield | ast.YieldFrom) -> ValueKind:
        self._result(ValueKind(parts=self._evaluate(node.value).matters))
        return NONE

    visit_YieldFrom = visit_Yield

    def visit_Lambda(self, node: ast.Lambda) -> ValueKind:
        self._defaults(node)
        around, self.scope = self.scope, self.enter(node, self.scope)
        self._result(self._evaluate(node.body))
        self.scope = around
        return self._join_results([node])

    def visit_BoolOp(self, node: ast.BoolOp) -> ValueKind:
        return self._join(node.values)

    def visit_IfExp(self, node: ast.IfExp) -> ValueKind:
        self._evaluate(node.test)
        return self._evaluate(node.body) | self._evaluate(node.orelse)

    def visit_BinOp(self, node: ast.BinOp) -> ValueKind:
        kind = self._evaluate(node.left) | self._evaluate(node.right)
        if isinstance(node.op, ast.Mod):
            return NONE
        return kind.copy | (ValueKind(itself=True, origin=kind.origin) if kind.itself and self._loading else NONE)

    # calls

    def visit_Call(self, node: ast.Call) -> ValueKind:
        positional = [self._evaluate(argument) for argument in node.args]
        named = {keyword.arg or "**": self._evaluate(keyword.value) for keyword in node.keywords}
        everything = _join_kinds([*positional, *named.values()])
        self._callbacks(node, everything)
        definition = self._definition(node.func)
        if definition is not None:
            return self._call_own(node, definition, positional, named)
        member = self.member(node.func)
        if member is not None:
            return self._call_member(node, *member, positional, everything)
        if isinstance(node.func, ast.Attribute):
            return self._call_method(node, node.func, positional, named, everything)
        if isinstance(node.func, ast.Name) and self.scope.owner(node.func.id) is None:
            return self._call_builtin(node, node.func.id, positional, named, everything)
        called = self._evaluate(node.func)
        self._escape(node, everything)
        return ValueKind(True, True) if self._loading else called.element

    def _callbacks(self, node: ast.Call, everything: ValueKind) -> None:
        """Functions that are passed along with shared objects may be given these."""
        if not everything.parts:
            return
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            callback = argument if isinstance(argument, ast.Lambda) else self._definition(argument)
            if isinstance(callback, FUNCTIONS):
                self._pass(callback, [everything.element] * len(callback.args.args), {}, 0)

    def _pass(
        self, function: Function, positional: Sequence[ValueKind], named: dict[str, ValueKind], skip: int
    ) -> ValueKind:
        """Parameters get what is given; returns what the function does."""
        arguments, scope = function.args, self._known_scope(function)
        if scope is not None:
            parameters = [*arguments.posonlyargs, *arguments.args][skip:]
            for parameter, kind in zip(parameters, positional, strict=False):
                self._learn(self._variables, (scope, parameter.arg), kind._replace(fixture=False))
            if arguments.vararg is not None:
                rest = _join_kinds(positional[len(parameters) :])
                kind = ValueKind(parts=rest.matters, origin=rest.origin)
                self._learn(self._variables, (scope, arguments.vararg.arg), kind)
            for name, kind in named.items():
                if name not in {parameter.arg for parameter in [*parameters, *arguments.kwonlyargs]}:
                    self._spread(function, scope, kind)
                else:
                    self._learn(self._variables, (scope, name), kind._replace(fixture=False))
        return self._results.get(function, NONE)

    def _spread(self, function: Function, scope: NameScope, kind: ValueKind) -> None:
        """`**kind` may reach any parameter."""
        arguments, spread = function.args, kind.element | ValueKind(parts=True, origin=kind.origin)
        for parameter in [*arguments.args, *arguments.kwonlyargs, arguments.kwarg]:
            if parameter is not None and kind.matters and parameter.arg not in ("self", "cls"):
                self._learn(self._variables, (scope, parameter.arg), spread)

    def _call_own(
        self, node: ast.Call, definition: ast.AST, positional: list[ValueKind], named: dict[str, ValueKind]
    ) -> ValueKind:
        """A function or class of the file."""
        if isinstance(definition, FUNCTIONS):
            if self._loading:
                self._loads(definition)
            if any(isinstance(argument, ast.Starred) for argument in node.args):
                positional = [_join_kinds(positional).element] * len(definition.args.args)
            result = self._pass(definition, positional, named, 0)
            return (
                result | ValueKind(iterator=True, itself=True)
                if self._loading and is_generator_function(definition)
                else result
            )
        assert isinstance(definition, ast.ClassDef)
        held = _join_kinds([*positional, *named.values()])
        if definition.name in self._models:
            held = held if self._loose else NONE
        elif "Enum" in " ".join(calls.find_base_names(definition)):
            return NONE
        for function in self._methods.get("__init__", []):
            if function in definition.body:
                self._pass(function, positional, named, 1)
        if self._loading and not self._everything:
            self._share(definition)
        return ValueKind(self._loading, self._loading or held.matters, origin=held.origin)

    def _share(self, definition: ast.ClassDef) -> None:
        """One instance is shared: so is what methods see as `self` that run without being called by name."""
        names = {definition.name, *calls.find_base_names(definition)}
        for name, functions in self._methods.items():
            for function in functions:
                implicit = name.startswith("__") or function.decorator_list
                scope = self._known_scope(function)
                if name in ("__init__", "__new__", "__post_init__") or not implicit or scope is None:
                    continue
                owner = scope.parent.node if scope.parent is not None else None
                if isinstance(owner, ast.ClassDef) and owner.name in names and function.args.args:
                    this = ValueKind(True, True, origin=f"the {definition.name} made when the file is loaded")
                    if function.args.args[0].arg != "cls" and not _is_static(function):
                        self._learn(self._variables, (scope, function.args.args[0].arg), this)

    def _call_member(
        self, node: ast.Call, module: str, name: str, positional: list[ValueKind], everything: ValueKind
    ) -> ValueKind:
        """A member of a module."""
        if name in calls.FIRST_ARGUMENT and node.args:
            self._change(node.args[0], positional[0]._replace(fixture=False))
            self._absorb(node.args[0], _join_kinds(positional[1:]))
        if module == "itertools" or (module, name) in (("random", "Random"), ("random", "SystemRandom")):
            return self._new_container(everything, iterator=True)
        if name in calls.CONTAINERS:
            return self._new_container(everything.copy)
        if name == "deepcopy":
            return ValueKind(everything.matters, everything.parts) if self._loading else NONE
        if name == "partial" and node.args:
            target = self._definition(node.args[0])
            if isinstance(target, FUNCTIONS):
                self._pass(target, positional[1:], {}, 0)
            return ValueKind(parts=everything.matters, origin=everything.origin)
        if name in calls.PASSED_ON:
            return everything.element | (everything if name == "cast" else everything.copy)
        if name == "getLogger":
            return FIXTURE
        if module in calls.PLAIN_MODULES:
            return NONE
        if not is_importable(module):
            self._escape(node, everything)
            return NONE
        return everything.copy

    def _call_method(
        self,
        node: ast.Call,
        func: ast.Attribute,
        positional: list[ValueKind],
        named: dict[str, ValueKind],
        everything: ValueKind,
    ) -> ValueKind:
        holder, name = self._evaluate(func.value), func.attr
        own = self._methods.get(name, [])
        result = self._attributes.get(name, NONE).element | self._class_attributes.get(name, NONE).element
        for function in own:
            if self._loading and holder.fixture:
                self._loads(function)
            bound = not _is_static(function)
            if bound and holder.itself and function.args.args:
                scope = self._known_scope(function)
                self._learn(self._variables, (scope, function.args.args[0].arg), holder._replace(fixture=False))
            result |= self._pass(
                function, positional, named, 1 if bound and not _is_class_call(holder, function) else 0
            )
        if holder.fixture and not holder.matters:
            return result | self._call_on_class(node, name, positional, everything)
        if name in calls.MUTATORS:
            self._change(func.value, holder)
        elif holder.itself and not own and name not in calls.READERS:
            label = holder.origin or ast.unparse(func.value)
            self._report(node, "shared-write", f"calls .{name}() of {label}, of which there is one for all sessions")
        elif not own and name not in calls.READERS | calls.TO_TEXT | calls.ABSORBERS:
            self._escape(node, everything)
        if name in calls.ABSORBERS and not holder.itself:
            self._absorb(func.value, everything.copy if name in ("extend", "update") else everything)
        return result | self._method_result(name, holder, positional)

    def _method_result(self, name: str, holder: ValueKind, positional: list[ValueKind]) -> ValueKind:
        if name in calls.ELEMENTS | {"pop", "popitem", "setdefault"}:
            return holder.element | _join_kinds(positional[1:])
        if name in calls.TO_TEXT:
            return ValueKind(itself=True) if self._loading and name in ("split", "splitlines", "findall") else NONE
        if name in ("copy", "items", "keys", "values", "most_common", "elements"):
            return holder.copy | ValueKind(itself=self._loading and holder.itself, origin=holder.origin)
        return holder.element

    def _call_on_class(
        self, node: ast.Call, name: str, positional: list[ValueKind], everything: ValueKind
    ) -> ValueKind:
        """`list.append(x, 1)`, `Model.model_validate(x)`, `dict.fromkeys(x)`."""
        if name in calls.MUTATORS and node.args:
            self._change(node.args[0], positional[0]._replace(fixture=False))
            self._absorb(node.args[0], _join_kinds(positional[1:]))
        if name in ("addFilter", "addHandler", "register", "setLevel"):
            self._change(node.func, FIXTURE)
        if name == "fromkeys":
            return self._new_container(_join_kinds(positional[1:]))
        if name.startswith(("model_", "parse_")):
            held = everything if self._loose else NONE
            return ValueKind(self._loading, self._loading or held.matters, origin=held.origin)
        return ValueKind(parts=everything.parts, origin=everything.origin)

    def _call_builtin(
        self, node: ast.Call, name: str, positional: list[ValueKind], named: dict[str, ValueKind], everything: ValueKind
    ) -> ValueKind:
        if name in ("next", "setattr", "delattr") and node.args:
            named_by = node.args[1] if len(node.args) > 1 else None
            attribute = str(named_by.value) if isinstance(named_by, ast.Constant) and name != "next" else ""
            self._change(node.args[0], positional[0], attribute)
        if name == "setattr" and node.args:
            self._absorb(node.args[0], _join_kinds(positional[1:]))
            return NONE
        if name == "type":
            return FIXTURE
        if name == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            written = ast.Attribute(node.args[0], str(node.args[1].value), ast.Load())
            return self._evaluate(ast.copy_location(written, node)) | _join_kinds(positional[2:])
        if name in calls.PICKERS:
            return (
                everything
                if len(node.args) > 1 and name != "next"
                else everything.element | _join_kinds(positional[1:])
            )
        if name in calls.COPIERS:
            container = self._new_container(_join_kinds(positional).copy | _join_kinds(list(named.values())))
            if name in ("tuple", "frozenset"):
                return container._replace(itself=False, iterator=False)
            return container._replace(iterator=container.itself and name in calls.ITERATORS)
        return NONE


def _join_kinds(kinds: Sequence[ValueKind]) -> ValueKind:
    joined = NONE
    for kind in kinds:
        joined |= kind._replace(fixture=False)
    return joined


def is_generator_function(function: ast.AST) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))


def _is_static(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "staticmethod" for node in function.decorator_list)


def _is_class_call(holder: ValueKind, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True for `Owner.method(self, ...)`."""
    arguments = function.args.args
    return holder.fixture and not (arguments and arguments[0].arg == "cls")
