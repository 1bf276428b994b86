"""Expressions over a call's arguments and the state: evaluated during the search, rendered as Python afterwards."""

import keyword
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trajsmith.phrasing import word_set

Rows = dict[str, dict[str, Any]]
Tables = dict[str, Rows]


class Absent(Exception):
    """A value that an expression needs is not there."""


@dataclass(slots=True)
class Scope:
    """Values by variable name, and the tables."""

    values: dict[str, Any]
    tables: Tables

    def bind(self, name: str, value: Any) -> "Scope":
        return Scope({**self.values, name: value}, self.tables)


def join_key(parts: list[Any]) -> str:
    """Return the key of a row as text; a whole number and its float are the same key."""
    return "|".join(str(int(one)) if isinstance(one, float) and one.is_integer() else str(one) for one in parts)


RESERVED = word_set(
    "self now seed counters state one other item each before result fresh_key schema copy json validate construct "
    "str int float bool list dict len sum sorted any all tool datetime re any annotated field"
)
"""Names that the code uses itself."""


def to_variable(name: str) -> str:
    """Return the name of an argument or field as a name in the code: letters, digits and underscores only."""
    text = re.sub(r"[^0-9a-zA-Z_]", "_", name)[:60].strip("_") or "value"
    text = f"n_{text}" if text[0].isdigit() else text
    clash = (
        keyword.iskeyword(text) or keyword.issoftkeyword(text) or text.lower() in RESERVED or text.startswith("model_")
    )
    return f"{text}_value" if clash or text.endswith("_row") or re.match(r"item\d", text) else text


class Expr:
    """An expression; subclasses are frozen and compare by content."""

    cost: float = 1.0

    def eval(self, scope: Scope) -> Any:
        raise NotImplementedError

    def render(self) -> str:
        raise NotImplementedError

    def children(self) -> "Iterator[Expr]":
        """Yield the expressions that are fields, or stand in fields that are tuples."""
        for value in vars(self).values():
            if isinstance(value, Expr):
                yield value
            elif isinstance(value, tuple):
                yield from (one for one in value if isinstance(one, Expr))

    def size(self) -> float:
        return self.cost + sum(child.size() for child in self.children())


@dataclass(frozen=True)
class Const(Expr):
    value: Any
    cost = 2.5

    def eval(self, scope: Scope) -> Any:
        return self.value

    def render(self) -> str:
        return repr(self.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@dataclass(frozen=True)
class Var(Expr):
    name: str
    cost = 1.0

    def eval(self, scope: Scope) -> Any:
        value = scope.values.get(self.name, Absent)
        if value is Absent or (value is None and self.name.endswith("_row")):
            raise Absent(self.name)
        return value

    def render(self) -> str:
        return self.name


@dataclass(frozen=True)
class Get(Expr):
    """Field of a record."""

    base: Expr
    key: str
    cost = 0.5

    def eval(self, scope: Scope) -> Any:
        value = self.base.eval(scope)
        if not isinstance(value, dict) or self.key not in value:
            raise Absent(self.key)
        return value[self.key]

    def render(self) -> str:
        return f"_get({self.base.render()}, {self.key!r})"


@dataclass(frozen=True)
class At(Expr):
    """Value of a mapping under a computed key, or the record of a list that has the key in one of its fields."""

    base: Expr
    key: Expr
    cost = 1.0

    def eval(self, scope: Scope) -> Any:
        value, key = self.base.eval(scope), self.key.eval(scope)
        if not isinstance(value, dict) or not isinstance(key, str) or key not in value:
            raise Absent("key")
        return value[key]

    def render(self) -> str:
        return f"_get({self.base.render()}, {self.key.render()})"


@dataclass(frozen=True)
class Row(Expr):
    """Row of a table by its key."""

    table: str
    keys: tuple[Expr, ...]
    cost = 1.5

    def eval(self, scope: Scope) -> Any:
        row = scope.tables.get(self.table, {}).get(join_key([key.eval(scope) for key in self.keys]))
        if row is None:
            raise Absent(self.table)
        return row

    def render(self) -> str:
        return f"self._row({self.table!r}, {', '.join(key.render() for key in self.keys)})"


@dataclass(frozen=True)
class Opt(Expr):
    """Field of an object that is left out where its value is absent."""

    inner: Expr
    cost = 0.1

    def eval(self, scope: Scope) -> Any:
        return self.inner.eval(scope)

    def render(self) -> str:
        return self.inner.render()


@dataclass(frozen=True)
class Obj(Expr):
    fields: tuple[tuple[str, Expr], ...]
    cost = 0.5

    def eval(self, scope: Scope) -> Any:
        value = {}
        for name, expr in self.fields:
            try:
                value[name] = expr.eval(scope)
            except Absent:
                if not isinstance(expr, Opt):
                    raise
        return value

    def render(self) -> str:
        parts = []
        for name, expr in self.fields:
            if isinstance(expr, Opt):
                parts.append(f"**_present({name!r}, lambda: {expr.render()})")
            else:
                parts.append(f"{name!r}: {expr.render()}")
        return "{" + ", ".join(parts) + "}"

    def children(self) -> Iterator[Expr]:
        yield from (expr for _, expr in self.fields)


@dataclass(frozen=True)
class ListOf(Expr):
    items: tuple[Expr, ...]
    cost = 0.5

    def eval(self, scope: Scope) -> Any:
        return [item.eval(scope) for item in self.items]

    def render(self) -> str:
        return "[" + ", ".join(item.render() for item in self.items) + "]"


@dataclass(frozen=True)
class MapOver(Expr):
    """List of what an expression gives for each item of a list."""

    source: Expr
    var: str
    body: Expr
    cost = 1.5

    def eval(self, scope: Scope) -> Any:
        source = self.source.eval(scope)
        if not isinstance(source, list):
            raise Absent("list")
        return [self.body.eval(scope.bind(self.var, item)) for item in source]

    def render(self) -> str:
        return f"[{self.body.render()} for {self.var} in {self.source.render()}]"


@dataclass(frozen=True)
class Concat(Expr):
    left: Expr
    right: Expr
    cost = 1.0

    def eval(self, scope: Scope) -> Any:
        left, right = self.left.eval(scope), self.right.eval(scope)
        if not isinstance(left, list) or not isinstance(right, list):
            raise Absent("list")
        return left + right

    def render(self) -> str:
        return f"[*{self.left.render()}, *{self.right.render()}]"


@dataclass(frozen=True)
class Without(Expr):
    """List without the items that equal a value."""

    source: Expr
    item: Expr
    cost = 1.5

    def eval(self, scope: Scope) -> Any:
        source, item = self.source.eval(scope), self.item.eval(scope)
        if not isinstance(source, list) or item not in source:
            raise Absent("item")
        return [one for one in source if one != item]

    def render(self) -> str:
        return f"[_one for _one in {self.source.render()} if _one != {self.item.render()}]"


@dataclass(frozen=True)
class Count(Expr):
    source: Expr
    cost = 1.0

    def eval(self, scope: Scope) -> Any:
        source = self.source.eval(scope)
        if not isinstance(source, list | dict):
            raise Absent("list")
        return len(source)

    def render(self) -> str:
        return f"len({self.source.render()})"


@dataclass(frozen=True)
class Sum(Expr):
    """Sum of an expression over the items of a list."""

    source: Expr
    var: str
    body: Expr
    cost = 1.5

    def eval(self, scope: Scope) -> Any:
        source = self.source.eval(scope)
        if not isinstance(source, list):
            raise Absent("list")
        total: float = 0
        for item in source:
            value = self.body.eval(scope.bind(self.var, item))
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise Absent("number")
            total += value
        return total

    def render(self) -> str:
        return f"sum({self.body.render()} for {self.var} in {self.source.render()})"


@dataclass(frozen=True)
class If(Expr):
    test: "Expr"
    then: Expr
    other: Expr
    cost = 1.5

    def eval(self, scope: Scope) -> Any:
        return self.then.eval(scope) if self.test.eval(scope) else self.other.eval(scope)

    def render(self) -> str:
        return f"({self.then.render()} if {self.test.render()} else {self.other.render()})"


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
    "in": lambda a, b: bool(str(a).lower() in str(b).lower()),
}


@dataclass(frozen=True)
class Compare(Expr):
    left: Expr
    sign: str
    right: Expr
    cost = 1.0

    def eval(self, scope: Scope) -> Any:
        left, right = self.left.eval(scope), self.right.eval(scope)
        if self.sign not in ("==", "!=", "in") and not have_order(left, right):
            raise Absent("order")
        if self.sign == "in" and (left is None or right is None):
            raise Absent("text")
        return _COMPARE[self.sign](left, right)

    def render(self) -> str:
        if self.sign == "in":
            return f"_contains({self.right.render()}, {self.left.render()})"
        return f"{self.left.render()} {self.sign} {self.right.render()}"


def have_order(left: Any, right: Any) -> bool:
    """Return True for two numbers or two texts."""
    return (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class Lacks(Expr):
    """Test for a value that is absent: an unknown key, a field that a record does not have."""

    inner: Expr
    cost = 0.5

    def eval(self, scope: Scope) -> Any:
        if isinstance(self.inner, Get | At):
            self.inner.base.eval(scope)
        try:
            self.inner.eval(scope)
        except Absent:
            return True
        return False

    def render(self) -> str:
        base = self.inner.base if isinstance(self.inner, Get | At) else Const(None)
        value = self.inner.render()
        value = f"_have({value})" if isinstance(self.inner, Var) and self.inner.name.endswith("_row") else value
        return f"_lacks(lambda: {base.render()}, lambda: {value})"
