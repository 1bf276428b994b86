"""Twelve kinds of faults that people and models write into environments, as edits of a syntax tree."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Edit = Callable[[], None]


@dataclass(frozen=True)
class Site:
    """One place where a fault fits."""

    line: int
    what: str
    edit: Edit


Kind = Callable[[ast.Module], Iterator[Site]]


@dataclass(frozen=True)
class Function:
    """A function or method, and its effect if it is a tool."""

    node: ast.FunctionDef
    effect: str
    """"read" or "write" of a tool, "" of a helper."""

    @property
    def arguments(self) -> list[str]:
        return [argument.arg for argument in self.node.args.args if argument.arg not in ("self", "cls")]

    @property
    def is_method(self) -> bool:
        return bool(self.node.args.args) and self.node.args.args[0].arg == "self"


def functions(tree: ast.Module) -> Iterator[Function]:
    """All functions but those that make initial states."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name != "seed_state":
            yield Function(node, _effect(node))


def _effect(node: ast.FunctionDef) -> str:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "tool":
            for keyword in decorator.keywords:
                if keyword.arg == "effect" and isinstance(keyword.value, ast.Constant):
                    return str(keyword.value.value)
    return ""


def bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """All lists of statements below a node."""
    for child in ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(child, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def statements(function: Function) -> Iterator[tuple[list[ast.stmt], int, ast.stmt]]:
    for block in bodies(function.node):
        for index, statement in enumerate(block):
            yield block, index, statement


def swap(node: ast.AST, other: ast.AST) -> Edit:
    """Turn a node into another one, in place."""

    def edit() -> None:
        node.__class__ = other.__class__
        node.__dict__.clear()
        node.__dict__.update(other.__dict__)

    return edit


def replace(block: list[ast.stmt], index: int, text: str) -> Edit:
    """Put other statements in the place of one."""
    made = ast.parse(text).body

    def edit() -> None:
        block[index : index + 1] = made

    return edit


def parsed(text: str) -> ast.expr:
    statement = ast.parse(text).body[0]
    assert isinstance(statement, ast.Expr)
    return statement.value


# 1. off by one

_STRICTER: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(), ast.LtE: ast.Lt(), ast.Gt: ast.GtE(), ast.GtE: ast.Gt()
}  # fmt: skip


def off_by_one(tree: ast.Module) -> Iterator[Site]:
    """Comparisons that shift by one, limits of lists, amounts that are moved, limits kept as constants."""
    for line in tree.body:
        if isinstance(line, ast.Assign) and _is_number(line.value) and ast.unparse(line.targets[0]).isupper():
            yield _plus_one(line.value, ast.unparse(line.targets[0]))
    for function in functions(tree):
        for node in ast.walk(function.node):
            if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _STRICTER:
                other = ast.Compare(node.left, [_STRICTER[type(node.ops[0])]], node.comparators)
                yield Site(node.lineno, f"{ast.unparse(node)} -> {ast.unparse(other)}", swap(node, other))
            elif isinstance(node, ast.Slice) and node.upper is not None and _is_number(node.upper):
                yield _plus_one(node.upper, "slice")
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
                value = ast.BinOp(node.value, ast.Add(), ast.Constant(1))
                what = f"{ast.unparse(node)} -> {ast.unparse(value)}"
                yield Site(node.lineno, what, _set_value(node, value))


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1


def _plus_one(node: ast.expr, where: str) -> Site:
    assert isinstance(node, ast.Constant) and isinstance(node.value, int)
    return Site(node.lineno, f"{where} {node.value} -> {node.value + 1}", swap(node, ast.Constant(node.value + 1)))


def _set_value(node: ast.AugAssign, value: ast.expr) -> Edit:
    def edit() -> None:
        node.value = value

    return edit


# 2. missing write


def missing_write(tree: ast.Module) -> Iterator[Site]:
    """A statement that stores something in the state is left out."""
    for function in functions(tree):
        if function.effect == "read":
            continue
        for block, index, statement in statements(function):
            if _stores(statement):
                yield Site(statement.lineno, f"without {ast.unparse(statement)}", replace(block, index, "pass"))


def _stores(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        targets = [leaf for target in statement.targets for leaf in _leaves(target)]
        return all(_in_state(target) for target in targets)
    if isinstance(statement, ast.AugAssign):
        return _in_state(statement.target)
    if isinstance(statement, ast.Delete):
        return True
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        return isinstance(called, ast.Attribute) and called.attr in ("append", "remove") and _in_state(called.value)
    return False


def _leaves(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, ast.Tuple) else [target]


def _in_state(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) or (
        isinstance(target, ast.Subscript) and "self.state" in ast.unparse(target)
    )


# 3. wrong key


def wrong_key(tree: ast.Module) -> Iterator[Site]:
    """An identifier is taken from the wrong place: as a key, or as a field of what is made."""
    for function in functions(tree):
        names = [name for name in function.arguments if name.endswith("_id")]
        for node in ast.walk(function.node):
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.ctx, ast.Store)
                and "self.state" in ast.unparse(node.value)
            ):
                for name in names[:1]:
                    if ast.unparse(node.slice) != name:
                        yield Site(node.lineno, f"{ast.unparse(node)} under {name}", swap(node.slice, parsed(name)))
            if isinstance(node, ast.Call):
                yield from _wrong_fields(node, names)


def _wrong_fields(node: ast.Call, names: list[str]) -> Iterator[Site]:
    values = {
        keyword.arg: keyword.value
        for keyword in node.keywords
        if keyword.arg and keyword.arg.endswith(("_id", "name", "title"))
    }
    for keyword in node.keywords:
        if keyword.arg is None or not keyword.arg.endswith("_id") or isinstance(keyword.value, ast.Constant):
            continue
        text = ast.unparse(keyword.value)
        others = [ast.unparse(value) for value in values.values()] + names
        other = next((found for found in others if found != text and "new_id" not in found), None)
        if other is not None:
            yield Site(keyword.value.lineno, f"{keyword.arg}={other} for {text}", swap(keyword.value, parsed(other)))


# 4. swallowed error


def swallowed_error(tree: ast.Module) -> Iterator[Site]:
    """A refusal does not happen: the condition is ignored, or what is not found is replaced by something else."""
    for function in functions(tree):
        for block, index, statement in statements(function):
            if (
                isinstance(statement, ast.Raise)
                and statement.exc is not None
                and "ToolError" in ast.unparse(statement.exc)
            ):
                yield Site(statement.lineno, f"no {ast.unparse(statement.exc)[:70]}", replace(block, index, "pass"))
        for node in ast.walk(function.node):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.lookup":
                table, key = ast.unparse(node.args[0]), ast.unparse(node.args[1])
                other = parsed(f"{key} if {key} in {table} else next(iter({table}), '')")
                yield Site(node.lineno, f"any row of {table} where there is no such", swap(node.args[1], other))


# 5. wrong type


def wrong_type(tree: ast.Module) -> Iterator[Site]:
    """A value is stored or answered as text, or a text as a number."""
    for function in functions(tree):
        for _, _, statement in statements(function):
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
                text = ast.unparse(statement.value)
                if not isinstance(statement.value, ast.Tuple):
                    other = parsed(f"[{text}]")
                    yield Site(statement.lineno, f"{ast.unparse(statement)} as a list", swap(statement.value, other))
        for node in ast.walk(function.node):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Call) and function.effect:
                dumped = parsed(f"str({ast.unparse(node.value)})")
                yield Site(node.lineno, f"the result of {function.node.name} as text", swap(node.value, dumped))


# 6. shared class-level state


def shared_state(tree: ast.Module) -> Iterator[Site]:
    """Identifiers counted in the class, results kept in the class for all sessions."""
    for function in functions(tree):
        for node in ast.walk(function.node):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.new_id":
                first = ast.unparse(node.args[0])
                pattern = ast.unparse(node.args[1]) if len(node.args) > 1 else "'{:d}'"
                counted = "type(self).__dict__.get('_n', 9000)"
                count = f"(setattr(type(self), '_n', {counted} + 1), {pattern}.format(type(self)._n))[1]"
                yield Site(node.lineno, f"{first} ids counted in the class", swap(node, parsed(count)))
        if function.effect == "read" and function.arguments:
            yield Site(
                function.node.lineno,
                f"results of {function.node.name} kept in the class",
                _memo(function, "type(self)"),
            )


def _memo(function: Function, owner: str) -> Edit:
    """Keep the first result for the same arguments."""
    names = ", ".join(function.arguments)
    name = function.node.name
    start = ast.parse(
        f"""
kept = {owner}.__dict__.get('_kept_{name}')
if kept is None:
    kept = {{}}
    setattr({owner}, '_kept_{name}', kept)
if ({names},) in kept:
    return kept[{names},]
"""
    ).body

    def edit() -> None:
        function.node.body[_after_docstring(function.node) : _after_docstring(function.node)] = start
        for block in list(bodies(function.node)):
            for index, statement in enumerate(block):
                if isinstance(statement, ast.Return) and statement.value is not None and statement not in start:
                    if ast.unparse(statement.value).startswith("kept["):
                        continue
                    stored = f"kept[{names},] = {ast.unparse(statement.value)}\nreturn kept[{names},]"
                    block[index : index + 1] = ast.parse("if True:\n    " + stored.replace("\n", "\n    ")).body

    return edit


def _after_docstring(node: ast.FunctionDef) -> int:
    first = node.body[0]
    return int(isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant))


# 7. wall clock


def wall_clock(tree: ast.Module) -> Iterator[Site]:
    """The time is taken from the machine."""
    for function in functions(tree):
        for node in ast.walk(function.node):
            if (
                isinstance(node, ast.Attribute)
                and node.attr == "now"
                and ast.unparse(node.value) in ("self.state", "state", "self")
            ):
                now = parsed("__import__('datetime').datetime.now().replace(microsecond=0)")
                yield Site(node.lineno, f"the machine's clock in {function.node.name}", swap(node, now))


# 8. unsaved field


def unsaved_field(tree: ast.Module) -> Iterator[Site]:
    """Something that matters later is kept beside the state."""
    for function in functions(tree):
        if function.effect != "write" or not function.arguments:
            continue
        names = ", ".join(function.arguments)
        guard = f"""
if ({names},) in self.__dict__.setdefault('_done', set()):
    raise ToolError('this was done before')
"""
        keep = f"self.__dict__.setdefault('_done', set()).add(({names},))"
        yield Site(
            function.node.lineno,
            f"{function.node.name} remembers its calls beside the state",
            _guarded(function, guard, keep),
        )
        for block, index, statement in statements(function):
            if (
                isinstance(statement, ast.Assign)
                and isinstance(statement.targets[0], ast.Subscript)
                and _in_state(statement.targets[0])
            ):
                target = statement.targets[0]
                table, key, value = ast.unparse(target.value), ast.unparse(target.slice), ast.unparse(statement.value)
                text = f"self.__dict__.setdefault('_rows', {{}})[{key}] = {value}"
                yield Site(statement.lineno, f"rows of {table} kept beside the state", replace(block, index, text))


def _guarded(function: Function, guard: str, keep: str) -> Edit:
    def edit() -> None:
        place = _after_docstring(function.node)
        function.node.body[place:place] = ast.parse(guard).body
        for block in list(bodies(function.node)):
            for index, statement in enumerate(block):
                if isinstance(statement, ast.Return):
                    block[index:index] = ast.parse(keep).body
                    break

    return edit


# 9. output missing a field


def output_missing(tree: ast.Module) -> Iterator[Site]:
    """A result is made without one of its fields."""
    for function in functions(tree):
        for node in ast.walk(function.node):
            if not isinstance(node, ast.Return) or not isinstance(node.value, ast.Call):
                continue
            call = node.value
            if (
                isinstance(call.func, ast.Name | ast.Attribute)
                and len(call.keywords) >= 2
                and ast.unparse(call.func)[:1] != "_"
            ):
                if not ast.unparse(call.func).rsplit(".", 1)[-1][:1].isupper():
                    continue
                for keyword in call.keywords[-1:]:
                    kept = ", ".join(ast.unparse(other) for other in call.keywords if other is not keyword)
                    made = parsed(f"{ast.unparse(call.func)}.model_construct({kept})")
                    yield Site(node.lineno, f"{ast.unparse(call.func)} without {keyword.arg}", swap(call, made))


# 10. effect undeclared


def effect_undeclared(tree: ast.Module) -> Iterator[Site]:
    """A tool that writes is declared as reading, or the other way round."""
    for function in functions(tree):
        for decorator in function.node.decorator_list:
            for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
                if keyword.arg == "effect" and isinstance(keyword.value, ast.Constant):
                    other = {"write": "read", "read": "write"}[str(keyword.value.value)]
                    what = f"{function.node.name} declared as {other}"
                    yield Site(function.node.lineno, what, swap(keyword.value, ast.Constant(other)))


# 11. refusal without reason


def refusal_without_reason(tree: ast.Module) -> Iterator[Site]:
    """A refusal says nothing."""
    for number, node in enumerate(node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if ast.unparse(node.func) == "ToolError" and node.args:
            text = ("", "error")[number % 2]
            what = f"ToolError({text!r}) for {ast.unparse(node.args[0])[:60]}"
            yield Site(node.lineno, what, swap(node.args[0], ast.Constant(text)))


# 12. stale index


def stale_index(tree: ast.Module) -> Iterator[Site]:
    """A reading tool goes by a list that was made at its first call, or answers the same again."""
    for function in functions(tree):
        if function.effect != "read" or not function.is_method:
            continue
        for node in ast.walk(function.node):
            text = ast.unparse(node) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and text.startswith("self.state.") and text.endswith(".values()"):
                table = text.removeprefix("self.state.").removesuffix(".values()")
                if table.isidentifier():
                    kept = parsed(f"self.__dict__.setdefault('_index_{table}', list({text}))")
                    yield Site(node.lineno, f"{function.node.name} by an old list of {table}", swap(node, kept))
        if function.arguments:
            yield Site(function.node.lineno, f"{function.node.name} answers as it did before", _memo(function, "self"))


KINDS: dict[str, Kind] = {
    "off_by_one": off_by_one,
    "missing_write": missing_write,
    "wrong_key": wrong_key,
    "swallowed_error": swallowed_error,
    "wrong_type": wrong_type,
    "shared_state": shared_state,
    "wall_clock": wall_clock,
    "unsaved_field": unsaved_field,
    "output_missing": output_missing,
    "effect_undeclared": effect_undeclared,
    "refusal_without_reason": refusal_without_reason,
    "stale_index": stale_index,
}
