"""Templates of others: what could run without end, or make a text of any length, is refused or stops.

Most of it is refused when a template is parsed, from its syntax tree; loops count their turns while it is rendered.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from jinja2 import TemplateSyntaxError, nodes, pass_context, pass_eval_context
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS, make_attrgetter
from jinja2.sandbox import ImmutableSandboxedEnvironment

MOST_LOOPS = 2
"""Loops inside each other."""
MOST_TURNS = 200_000
"""Turns of all loops of one rendering."""
LONGEST_OUTPUT = 8 << 20
"""Characters of a rendered text."""
DEEPEST = 60
"""Levels of expressions and blocks inside each other."""
_NODES = frozenset({
    "Template", "Output", "TemplateData", "Name", "NSRef", "Const", "Getattr", "Getitem", "Slice", "Tuple",
    "List", "Dict", "Pair", "Keyword", "Filter", "Test", "Call", "If", "For", "Block", "CondExpr", "Compare",
    "Operand", "And", "Or", "Not", "Neg", "Pos", "Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Concat",
    "Assign",
})  # fmt: skip
"""What a bounded template may consist of: no macros, imports, powers, nor anything that calls itself."""
_METHODS = frozenset({
    "items", "keys", "values", "get", "split", "rsplit", "splitlines", "partition", "strip", "lstrip", "rstrip",
    "lower", "upper", "title", "capitalize", "startswith", "endswith", "count", "index", "find", "isdigit",
    "changed", "cycle",
})  # fmt: skip
"""Methods that a bounded template may call; none makes a text longer than its own."""
_FILTERS = frozenset({
    "abs", "attr", "capitalize", "default", "d", "dictsort", "e", "escape", "first", "float", "format",
    "groupby", "int", "items", "join", "last", "length", "count", "list", "lower", "map", "max", "min",
    "reject", "rejectattr", "replace", "reverse", "round", "safe", "select", "selectattr", "sort", "string",
    "striptags", "sum", "title", "tojson", "trim", "truncate", "unique", "upper", "wordcount",
})  # fmt: skip
_GROWING = frozenset({"join", "replace", "format", "string", "tojson"})
"""Filters whose result may be longer than what they are given."""
_to_text = FILTERS["string"]
"""As text, and one that is marked as safe stays so."""
_WIDE = re.compile(r"\d{3}|\*")


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Environment for templates of others. Its globals are empty; add what they may call to `filters`.

    A template that may have no end is a `TemplateSyntaxError`; one that goes on too long a `SecurityError`.
    """

    intercepted_binops = frozenset({"*", "%"})

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.globals.clear()
        for name in self.filters.keys() - _FILTERS:
            del self.filters[name]
        self.filters |= {
            "_bounded": _count_turns,
            "replace": _replace,
            "join": _join,
            "format": _format,
            "tojson": _write_json,
        }

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        try:
            tree = super()._parse(source, name, filename)
        except RecursionError as error:
            raise TemplateSyntaxError("nested too deeply", 1, name, filename) from error
        fault = find_unbounded(tree)
        if fault is not None:
            raise TemplateSyntaxError(fault, 1, name, filename)
        return tree

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Multiply and divide numbers only: a text times a number is as long as one likes."""
        if not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise SecurityError(f"{operator} is for numbers only")
        return super().call_binop(context, operator, left, right)

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """Join the parts of an output."""
        whole = list(parts)
        if sum(map(len, whole)) > LONGEST_OUTPUT:
            raise SecurityError(f"more than {LONGEST_OUTPUT} characters")
        return "".join(whole)


@pass_context
def _count_turns(context: Any, values: Any) -> Iterator[Any]:
    turns = context.parent.setdefault("_turns", [0])
    for value in values:
        turns[0] += 1
        if turns[0] > MOST_TURNS:
            raise SecurityError(f"more than {MOST_TURNS} turns of loops")
        yield value


def _check_length(length: int) -> None:
    if length > LONGEST_OUTPUT:
        raise SecurityError(f"a filter makes more than {LONGEST_OUTPUT} characters")


@pass_eval_context
def _replace(context: Any, text: Any, old: str, new: str, count: int | None = None) -> Any:
    text, old, new = _to_text(text), _to_text(old), _to_text(new)
    times = text.count(old) if count is None or count < 0 else min(text.count(old), count)
    _check_length(len(text) + times * max(0, len(new) - len(old)))
    return FILTERS["replace"](context, text, old, new, count)


@pass_eval_context
def _join(context: Any, values: Iterable[Any], d: Any = "", attribute: Any = None) -> Any:
    read = make_attrgetter(context.environment, attribute) if attribute is not None else _to_text
    parts, d, length = [], _to_text(d), 0
    for value in values:
        parts.append(_to_text(read(value)))
        length += len(parts[-1]) + len(d)
        _check_length(length - len(d))
    return FILTERS["join"](context, parts, d)


def _format(form: str, *args: Any, **named: Any) -> Any:
    longest = max((len(_to_text(value)) for value in (*args, *named.values())), default=0)
    _check_length(len(form) + form.count("%") * longest)
    return FILTERS["format"](form, *args, **named)


@pass_eval_context
def _write_json(context: Any, value: Any) -> Any:
    text = FILTERS["tojson"](context, value)  # at most six times as long as its text
    _check_length(len(text))
    return text


def find_unbounded(tree: nodes.Template) -> str | None:
    """Return why a template may have no end, or None; its loops are made to count their turns."""
    whole = list(walk_tree(tree))
    assigned = {name.name for node, _, _ in whole if isinstance(node, nodes.Assign) for name in _targets(node.target)}
    for node, depth, loops in whole:
        fault = _find_fault(node, assigned)
        if fault is not None:
            return fault
        if depth > DEEPEST:
            return f"nested deeper than {DEEPEST} levels"
        if loops > MOST_LOOPS:
            return f"more than {MOST_LOOPS} loops inside each other"
    for node, _, _ in whole:
        if isinstance(node, nodes.For):
            node.iter = nodes.Filter(node.iter, "_bounded", [], [], None, None, lineno=node.lineno)
    return None


def walk_tree(tree: nodes.Template) -> Iterator[tuple[nodes.Node, int, int]]:
    """Yield each node with its depth and the loops that it stands in, itself included.

    Written out, since `iter_child_nodes` takes four times as long, and most of a phrase's compilation was this.
    """
    rest: list[tuple[nodes.Node, int, int]] = [(tree, 0, 0)]
    while rest:
        node, depth, loops = rest.pop()
        loops += isinstance(node, nodes.For)
        yield node, depth, loops
        for name in node.fields:
            child = getattr(node, name, None)
            if isinstance(child, nodes.Node):
                rest.append((child, depth + 1, loops))
            elif isinstance(child, list):
                rest += [(one, depth + 1, loops) for one in child if isinstance(one, nodes.Node)]


def _targets(target: nodes.Node) -> Iterator[nodes.Name]:
    yield from [target] if isinstance(target, nodes.Name) else target.find_all(nodes.Name)


def _find_fault(node: nodes.Node, assigned: set[str]) -> str | None:
    kind = type(node).__name__
    if kind not in _NODES or (isinstance(node, nodes.For) and node.recursive):
        return f"{kind.lower()} is not for such templates"
    if isinstance(node, nodes.Name) and node.name in ("self", "super", "caller"):
        return f"{node.name} is not for such templates"
    if isinstance(node, nodes.Call):
        if not (isinstance(node.node, nodes.Getattr) and node.node.attr in _METHODS):
            return "only methods that read may be called"
    elif isinstance(node, nodes.Filter):
        return _find_filter_fault(node)
    elif isinstance(node, nodes.Assign):
        grows = any(_all(node.node, (nodes.Concat, nodes.Add, nodes.List, nodes.Tuple, nodes.Dict)))
        grows = grows or any(one.name in _GROWING for one in _all(node.node, nodes.Filter))
        if grows and any(name.name in assigned for name in _all(node.node, nodes.Name)):
            return "a name is set to a text that grows"
    return None


def _all(node: nodes.Node, kind: Any) -> Iterator[Any]:
    if isinstance(node, kind):
        yield node
    yield from node.find_all(kind)


def _find_filter_fault(node: nodes.Filter) -> str | None:
    arguments = [*node.args, *(keyword.value for keyword in node.kwargs)]
    if node.name == "format" and not (isinstance(node.node, nodes.Const) and not _WIDE.search(str(node.node.value))):
        return "write the form of |format as text, with widths below 100"
    if node.name == "replace" and not all(_is_short(one) for one in arguments):
        return "write what |replace takes as short texts"
    if node.name == "tojson" and arguments:
        return "|tojson takes nothing here"
    if node.name in ("map", "select", "reject") and arguments and not _names_filter(node, arguments[0]):
        return f"|{node.name} takes an attribute, or a filter without arguments"
    return None


def _is_short(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Const) and len(str(node.value)) <= 100


def _names_filter(node: nodes.Filter, first: nodes.Node) -> bool:
    if node.name != "map" or not node.args:
        return True
    if not isinstance(first, nodes.Const):
        return False
    return first.value not in _GROWING or (len(node.args) == 1 and first.value in ("string", "tojson"))
