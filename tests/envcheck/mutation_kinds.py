"""Twelve kinds of mutations that people and models write into environments, as edits of a syntax tree."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Edit = Callable[[], None]


@dataclass(frozen=True)
class MutationSite:
    """Place in the code where a mutation applies."""

    line: int
    description: str
    edit: Edit


MutationKind = Callable[[ast.Module], Iterator[MutationSite]]


@dataclass(frozen=True)
class ToolFunction:
    """Function or method, and its effect if it is a tool."""

    node: ast.FunctionDef
    effect: str
    """"read" or "write" of a tool, "" of a helper."""

    @property
    def arguments(self) -> list[str]:
        return [argument.arg for argument in self.node.args.args if argument.arg not in ("self", "cls")]

    @property
    def is_method(self) -> bool:
        return bool(self.node.args.args) and self.node.args.args[0].arg == "self"


def find_functions(tree: ast.Module) -> Iterator[ToolFunction]:
    """Return all functions but those that build initial states."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name != "seed_state":
            yield ToolFunction(node, _read_effect(node))


def _read_effect(node: ast.FunctionDef) -> str:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "tool":
            for keyword in decorator.keywords:
                if keyword.arg == "effect" and isinstance(keyword.value, ast.Constant):
                    return str(keyword.value.value)
    return ""


def find_bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Return all lists of statements below a node."""
    for child in ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(child, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def find_statements(function: ToolFunction) -> Iterator[tuple[list[ast.stmt], int, ast.stmt]]:
    for block in find_bodies(function.node):
        for index, statement in enumerate(block):
            yield block, index, statement


def swap_node(node: ast.AST, other: ast.AST) -> Edit:
    """Turn a node into another one, in place."""

    def edit() -> None:
        node.__class__ = other.__class__
        node.__dict__.clear()
        node.__dict__.update(other.__dict__)

    return edit


def replace_statement(block: list[ast.stmt], index: int, text: str) -> Edit:
    """Put other statements in the place of one."""
    statements_parsed = ast.parse(text).body

    def edit() -> None:
        block[index : index + 1] = statements_parsed

    return edit


def parse_statements_text(text: str) -> ast.expr:
    statement = ast.parse(text).body[0]
    assert isinstance(statement, ast.Expr)
    return statement.value


# 1. off by one

_STRICTER: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(), ast.LtE: ast.Lt(), ast.Gt: ast.GtE(), ast.GtE: ast.Gt()
}  # fmt: skip


def off_by_one(tree: ast.Module) -> Iterator[MutationSite]:
    """Comparisons that shift by one, limits of lists, amounts that are moved, limits kept as constants."""
    for line in tree.body:
        if isinstance(line, ast.Assign) and _is_number(line.value) and ast.unparse(line.targets[0]).isupper():
            yield _add_one(line.value, ast.unparse(line.targets[0]))
    for function in find_functions(tree):
        for node in ast.walk(function.node):
            if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _STRICTER:
                other = ast.Compare(node.left, [_STRICTER[type(node.ops[0])]], node.comparators)
                yield MutationSite(node.lineno, f"{ast.unparse(node)} -> {ast.unparse(other)}", swap_node(node, other))
            elif isinstance(node, ast.Slice) and node.upper is not None and _is_number(node.upper):
                yield _add_one(node.upper, "slice")
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
                value = ast.BinOp(node.value, ast.Add(), ast.Constant(1))
                edit_text = f"{ast.unparse(node)} -> {ast.unparse(value)}"
                yield MutationSite(node.lineno, edit_text, _set_value(node, value))


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1


def _add_one(node: ast.expr, where: str) -> MutationSite:
    assert isinstance(node, ast.Constant) and isinstance(node.value, int)
    return MutationSite(
        node.lineno, f"{where} {node.value} -> {node.value + 1}", swap_node(node, ast.Constant(node.value + 1))
    )


def _set_value(node: ast.AugAssign, value: ast.expr) -> Edit:
    def edit() -> None:
        node.value = value

    return edit


# 2. missing write


def missing_write(tree: ast.Module) -> Iterator[MutationSite]:
    """A statement that stores something in the state is left out."""
    for function in find_functions(tree):
        if function.effect == "read":
            continue
        for block, index, statement in find_statements(function):
            if _is_state_write(statement):
                yield MutationSite(
                    statement.lineno, f"without {ast.unparse(statement)}", replace_statement(block, index, "pass")
                )


def _is_state_write(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        targets = [leaf for target in statement.targets for leaf in _find_leaf_targets(target)]
        return all(_is_in_state(target) for target in targets)
    if isinstance(statement, ast.AugAssign):
        return _is_in_state(statement.target)
    if isinstance(statement, ast.Delete):
        return True
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        return isinstance(called, ast.Attribute) and called.attr in ("append", "remove") and _is_in_state(called.value)
    return False


def _find_leaf_targets(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, ast.Tuple) else [target]


def _is_in_state(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) or (
        isinstance(target, ast.Subscript) and "self.state" in ast.unparse(target)
    )


# 3. wrong key


def wrong_key(tree: ast.Module) -> Iterator[MutationSite]:
    """An identifier is taken from the wrong place: as a key, or as a field of what is made."""
    for function in find_functions(tree):
        names = [name for name in function.arguments if name.endswith("_id")]
        for node in ast.walk(function.node):
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.ctx, ast.Store)
                and "self.state" in ast.unparse(node.value)
            ):
                for name in names[:1]:
                    if ast.unparse(node.slice) != name:
                        yield MutationSite(
                            node.lineno,
                            f"{ast.unparse(node)} under {name}",
                            swap_node(node.slice, parse_statements_text(name)),
                        )
            if isinstance(node, ast.Call):
                yield from _wrong_fields(node, names)


def _wrong_fields(node: ast.Call, names: list[str]) -> Iterator[MutationSite]:
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
        other = next((candidate for candidate in others if candidate != text and "new_id" not in candidate), None)
        if other is not None:
            yield MutationSite(
                keyword.value.lineno,
                f"{keyword.arg}={other} for {text}",
                swap_node(keyword.value, parse_statements_text(other)),
            )


# 4. swallowed error


def swallowed_error(tree: ast.Module) -> Iterator[MutationSite]:
    """A refusal does not happen: the condition is ignored, or what is not found is replaced by something else."""
    for function in find_functions(tree):
        for block, index, statement in find_statements(function):
            if (
                isinstance(statement, ast.Raise)
                and statement.exc is not None
                and "ToolError" in ast.unparse(statement.exc)
            ):
                yield MutationSite(
                    statement.lineno, f"no {ast.unparse(statement.exc)[:70]}", replace_statement(block, index, "pass")
                )
        for node in ast.walk(function.node):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.lookup":
                table, key = ast.unparse(node.args[0]), ast.unparse(node.args[1])
                other = parse_statements_text(f"{key} if {key} in {table} else next(iter({table}), '')")
                yield MutationSite(
                    node.lineno, f"any row of {table} where there is no such", swap_node(node.args[1], other)
                )


# 5. wrong type


def wrong_type(tree: ast.Module) -> Iterator[MutationSite]:
    """A value is stored or answered as text, or a text as a number."""
    for function in find_functions(tree):
        for _, _, statement in find_statements(function):
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
                text = ast.unparse(statement.value)
                if not isinstance(statement.value, ast.Tuple):
                    other = parse_statements_text(f"[{text}]")
                    yield MutationSite(
                        statement.lineno, f"{ast.unparse(statement)} as a list", swap_node(statement.value, other)
                    )
        for node in ast.walk(function.node):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Call) and function.effect:
                dumped = parse_statements_text(f"str({ast.unparse(node.value)})")
                yield MutationSite(
                    node.lineno, f"the result of {function.node.name} as text", swap_node(node.value, dumped)
                )


# 6. shared class-level state


def shared_state(tree: ast.Module) -> Iterator[MutationSite]:
    """Identifiers counted in the class, results kept in the class for all sessions."""
    for function in find_functions(tree):
        for node in ast.walk(function.node):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.new_id":
                first = ast.unparse(node.args[0])
                pattern = ast.unparse(node.args[1]) if len(node.args) > 1 else "'{:d}'"
                counted = "type(self).__dict__.get('_n', 9000)"
                count = f"(setattr(type(self), '_n', {counted} + 1), {pattern}.format(type(self)._n))[1]"
                yield MutationSite(
                    node.lineno, f"{first} ids counted in the class", swap_node(node, parse_statements_text(count))
                )
        if function.effect == "read" and function.arguments:
            yield MutationSite(
                function.node.lineno,
                f"results of {function.node.name} kept in the class",
                _memoize_result(function, "type(self)"),
            )


def _memoize_result(function: ToolFunction, owner: str) -> Edit:
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
        function.node.body[_find_first_statement(function.node) : _find_first_statement(function.node)] = start
        for block in list(find_bodies(function.node)):
            for index, statement in enumerate(block):
                if isinstance(statement, ast.Return) and statement.value is not None and statement not in start:
                    if ast.unparse(statement.value).startswith("kept["):
                        continue
                    stored = f"kept[{names},] = {ast.unparse(statement.value)}\nreturn kept[{names},]"
                    block[index : index + 1] = ast.parse("if True:\n    " + stored.replace("\n", "\n    ")).body

    return edit


def _find_first_statement(node: ast.FunctionDef) -> int:
    first = node.body[0]
    return int(isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant))


# 7. wall clock


def wall_clock(tree: ast.Module) -> Iterator[MutationSite]:
    """The time is taken from the machine."""
    for function in find_functions(tree):
        for node in ast.walk(function.node):
            if (
                isinstance(node, ast.Attribute)
                and node.attr == "now"
                and ast.unparse(node.value) in ("self.state", "state", "self")
            ):
                now = parse_statements_text("__import__('datetime').datetime.now().replace(microsecond=0)")
                yield MutationSite(node.lineno, f"the machine's clock in {function.node.name}", swap_node(node, now))


# 8. unsaved field


def unsaved_field(tree: ast.Module) -> Iterator[MutationSite]:
    """Something that matters later is kept beside the state."""
    for function in find_functions(tree):
        if function.effect != "write" or not function.arguments:
            continue
        names = ", ".join(function.arguments)
        guard = f"""
if ({names},) in self.__dict__.setdefault('_done', set()):
    raise ToolError('this was done before')
"""
        keep = f"self.__dict__.setdefault('_done', set()).add(({names},))"
        yield MutationSite(
            function.node.lineno,
            f"{function.node.name} remembers its calls beside the state",
            _guard_statements(function, guard, keep),
        )
        for block, index, statement in find_statements(function):
            if (
                isinstance(statement, ast.Assign)
                and isinstance(statement.targets[0], ast.Subscript)
                and _is_in_state(statement.targets[0])
            ):
                target = statement.targets[0]
                table, key, value = ast.unparse(target.value), ast.unparse(target.slice), ast.unparse(statement.value)
                text = f"self.__dict__.setdefault('_rows', {{}})[{key}] = {value}"
                yield MutationSite(
                    statement.lineno, f"rows of {table} kept beside the state", replace_statement(block, index, text)
                )


def _guard_statements(function: ToolFunction, guard: str, keep: str) -> Edit:
    def edit() -> None:
        place = _find_first_statement(function.node)
        function.node.body[place:place] = ast.parse(guard).body
        for block in list(find_bodies(function.node)):
            for index, statement in enumerate(block):
                if isinstance(statement, ast.Return):
                    block[index:index] = ast.parse(keep).body
                    break

    return edit


# 9. output missing a field


def output_missing(tree: ast.Module) -> Iterator[MutationSite]:
    """A result is made without one of its fields."""
    for function in find_functions(tree):
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
                    keywords_left = ", ".join(ast.unparse(other) for other in call.keywords if other is not keyword)
                    replacement = parse_statements_text(f"{ast.unparse(call.func)}.model_construct({keywords_left})")
                    yield MutationSite(
                        node.lineno, f"{ast.unparse(call.func)} without {keyword.arg}", swap_node(call, replacement)
                    )


# 10. effect undeclared


def effect_undeclared(tree: ast.Module) -> Iterator[MutationSite]:
    """A tool that writes is declared as reading, or the other way round."""
    for function in find_functions(tree):
        for decorator in function.node.decorator_list:
            for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
                if keyword.arg == "effect" and isinstance(keyword.value, ast.Constant):
                    other = {"write": "read", "read": "write"}[str(keyword.value.value)]
                    edit_text = f"{function.node.name} declared as {other}"
                    yield MutationSite(function.node.lineno, edit_text, swap_node(keyword.value, ast.Constant(other)))


# 11. refusal without reason


def refusal_without_reason(tree: ast.Module) -> Iterator[MutationSite]:
    """A refusal says nothing."""
    for number, node in enumerate(node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if ast.unparse(node.func) == "ToolError" and node.args:
            text = ("", "error")[number % 2]
            edit_text = f"ToolError({text!r}) for {ast.unparse(node.args[0])[:60]}"
            yield MutationSite(node.lineno, edit_text, swap_node(node.args[0], ast.Constant(text)))


# 12. stale index


def stale_index(tree: ast.Module) -> Iterator[MutationSite]:
    """A reading tool goes by a list that was made at its first call, or answers the same again."""
    for function in find_functions(tree):
        if function.effect != "read" or not function.is_method:
            continue
        for node in ast.walk(function.node):
            text = ast.unparse(node) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and text.startswith("self.state.") and text.endswith(".values()"):
                table = text.removeprefix("self.state.").removesuffix(".values()")
                if table.isidentifier():
                    cached_rows = parse_statements_text(f"self.__dict__.setdefault('_index_{table}', list({text}))")
                    yield MutationSite(
                        node.lineno, f"{function.node.name} by an old list of {table}", swap_node(node, cached_rows)
                    )
        if function.arguments:
            yield MutationSite(
                function.node.lineno,
                f"{function.node.name} answers as it did before",
                _memoize_result(function, "self"),
            )


KINDS: dict[str, MutationKind] = {
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
