"""Which objects are made once, when a file is loaded, and whether a call changes one or lets it out of sight.

An object is *shared* if it is made by code of the module, of a class body or a default: there is one for all sessions.
The analysis follows shared objects through variables, attributes, parameters and results, by name and without order:
it sees too many changes rather than too few.
"""

import ast

from trajsmith.environments.sandbox._gate_facts import NONE
from trajsmith.environments.sandbox._gate_values import ValueEvaluator, is_generator_function
from trajsmith.environments.sandbox._scopes import is_script

PASSES = 12
"""Rounds after which it stops waiting for the facts to settle, and refuses."""


class SharedStateChecker(ValueEvaluator):
    """Reports changes of shared objects, and calls that may change or keep one."""

    def run(self) -> None:
        for number in range(PASSES):
            self._changed = number == 0  # the first round does not know yet where functions are
            self._found.clear()
            self.each(self.tree.body)
            if not self._changed:
                break
        else:
            self._report(self.tree.body[0], "shared-write", "is too entangled to tell what sessions would share")
        for finding in self._found:
            self._send(*finding)

    def visit_Assign(self, node: ast.Assign) -> None:
        if self._is_per_play(node.targets):
            return
        kind = self._evaluate(node.value)
        self._uncopied(node.value)
        values = node.value.elts if isinstance(node.value, ast.Tuple) else []
        for target in node.targets:
            if isinstance(target, ast.Tuple) and len(target.elts) == len(values):
                for one, value in zip(target.elts, values, strict=True):
                    self._bind(one, self._evaluate(value))
            else:
                self._bind(target, kind)

    def _uncopied(self, value: ast.expr) -> None:
        """Of all that a module keeps, generators cannot be copied for an episode."""
        own = self._definition(value.func) if isinstance(value, ast.Call) else None
        if (
            self._everything
            and self._loading
            and (isinstance(value, ast.GeneratorExp) or (own and is_generator_function(own)))
        ):
            self._report(value, "shared-iterator", "makes a generator, of which there is one for all sessions")

    def _is_per_play(self, targets: list[ast.expr]) -> bool:
        named = (target.id in self._per_play for target in targets if isinstance(target, ast.Name))
        return self.scope.parent is None and sum(named) == len(targets)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and not self._is_per_play([node.target]):
            inside = self.scope.node
            fields = isinstance(inside, ast.ClassDef) and inside.name in self._models
            is_field = fields and "ClassVar" not in ast.unparse(node.annotation)
            self._bind(node.target, self._evaluate(node.value), is_field)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        added = self._evaluate(node.value)
        if isinstance(node.target, ast.Name):
            held = self._variables.get((self.scope.owner(node.target.id), node.target.id), NONE)
            self._change(node.target, held._replace(fixture=False))
            self._bind(node.target, added.copy)
        else:
            self._bind(node.target, added)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Attribute | ast.Subscript):
                attribute = target.attr if isinstance(target, ast.Attribute) else ""
                self._change(target.value, self._evaluate(target.value), attribute)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self._bind(node.target, self._evaluate(node.iter).element)
        self.each(node.body, node.orelse)

    visit_AsyncFor = visit_For

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            kind = self._evaluate(item.context_expr)
            if item.optional_vars is not None:
                self._bind(item.optional_vars, kind | kind.element)
        self.each(node.body)

    visit_AsyncWith = visit_With

    def visit_Match(self, node: ast.Match) -> None:
        kind = self._evaluate(node.subject)
        for part in ast.walk(node):
            name = part.name if isinstance(part, ast.MatchAs | ast.MatchStar) else None
            name = part.rest if isinstance(part, ast.MatchMapping) else name
            if name:
                self._learn(self._variables, (self.scope.owner(name), name), kind | kind.element)
        for case in node.cases:
            self.each(case.guard, case.body)

    def visit_Return(self, node: ast.Return) -> None:
        self._result(self._evaluate(node.value))

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        for name in node.names:
            owner = self.scope.owner(name)
            if owner is not None and owner.node in self._at_load:
                self._report(node, "shared-write", f"keeps {name} between calls, for all sessions")

    def visit_If(self, node: ast.If) -> None:
        self._evaluate(node.test)
        if not is_script(node.test, self.scope):
            self.each(node.body)
        self.each(node.orelse)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self._evaluate(decorator)
            if isinstance(decorator, ast.Name) and self._loading:
                self._loads(self._definition(decorator))
        self._defaults(node)
        self.inside(node, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef
