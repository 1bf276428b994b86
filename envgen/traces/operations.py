"""Expressions that compute: sums, sentences, queries over tables, dates, mappings with another value."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from trajsmith.envgen.traces.expressions import Absent, Const, Expr, Scope, is_number


@dataclass(frozen=True)
class Linear(Expr):
    """Sum of products of numbers, each with a factor."""

    terms: tuple[tuple[float, tuple[Expr, ...]], ...]
    cost = 0.5

    def eval(self, scope: Scope) -> Any:
        total: float = 0
        for factor, parts in self.terms:
            product = factor
            for part in parts:
                value = part.eval(scope)
                if isinstance(value, bool):
                    value = int(value)
                if not isinstance(value, int | float):
                    raise Absent("number")
                product *= value
            total += product
        return tidy_number(total)

    def render(self) -> str:
        text = []
        for factor, parts in self.terms:
            factors = [part.render() for part in parts]
            if factor != 1 or not factors:
                factors.insert(0, repr(factor))
            text.append(" * ".join(factors))
        return f"_tidy({' + '.join(text)})"

    def children(self) -> Iterator[Expr]:
        for _, parts in self.terms:
            yield Const(0)
            yield from parts


def tidy_number(value: float) -> float:
    """Return a number without the noise of binary fractions; whole where it is whole."""
    value = round(value, 6)
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass(frozen=True)
class Text(Expr):
    """Text with values in it."""

    parts: tuple[str | Expr, ...]
    cost = 1.0

    def eval(self, scope: Scope) -> Any:
        return "".join(part if isinstance(part, str) else show_value(part.eval(scope)) for part in self.parts)

    def render(self) -> str:
        return "_text(" + ", ".join(repr(p) if isinstance(p, str) else p.render() for p in self.parts) + ")"


def show_value(value: Any) -> str:
    """Return a value as it stands inside a sentence."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


@dataclass(frozen=True)
class Arithmetic(Expr):
    """Value of arithmetic that stands in a text: numbers, signs and brackets, nothing else."""

    source: Expr
    cost = 1.5

    def eval(self, scope: Scope) -> Any:
        return compute_arithmetic(self.source.eval(scope))

    def render(self) -> str:
        return f"_compute({self.source.render()})"


def compute_arithmetic(text: Any) -> float:
    """Return the value of an arithmetic text.

    Raises:
        Absent: It is none.
    """
    tokens = re.findall(r"\d+\.?\d*|\.\d+|[-+*/()]", text) if isinstance(text, str) and len(text) < 500 else []
    if not tokens or "".join(tokens) != "".join(text.split()):
        raise Absent("arithmetic")
    values, signs = list[float](), list[str]()
    strength = {"+": 1, "-": 1, "*": 2, "/": 2}

    def apply() -> None:
        sign, right, left = signs.pop(), values.pop(), values.pop()
        if sign == "/" and right == 0:
            raise Absent("division by zero")
        results = {"+": left + right, "-": left - right, "*": left * right, "/": left / right if right else 0}
        values.append(results[sign])

    try:
        before = "("
        for token in tokens:
            if token == "(":
                signs.append(token)
            elif token == ")":
                while signs[-1] != "(":
                    apply()
                signs.pop()
            elif token in strength:
                if before == "(" and token in "+-":
                    values.append(0.0)
                while signs and signs[-1] != "(" and strength[signs[-1]] >= strength[token]:
                    apply()
                signs.append(token)
            else:
                values.append(float(token))
            before = token[-1]
        while signs:
            apply()
        (value,) = values
    except (IndexError, KeyError, ValueError, OverflowError) as error:
        raise Absent("arithmetic") from error
    return round(value, 2)


@dataclass(frozen=True)
class First(Expr):
    """First item of a list for which a test holds."""

    source: Expr
    var: str
    test: Expr
    cost = 1.5

    def eval(self, scope: Scope) -> Any:
        source = self.source.eval(scope)
        for item in source if isinstance(source, list) else ():
            try:
                if self.test.eval(scope.bind(self.var, item)):
                    return item
            except Absent:
                continue
        raise Absent("item")

    def render(self) -> str:
        return f"_first({self.source.render()}, lambda {self.var}: {self.test.render()})"


@dataclass(frozen=True)
class Preferred(Expr):
    """First value where a test holds and it is there, else the second one."""

    test: Expr
    first: Expr
    second: Expr
    cost = 2.0

    def eval(self, scope: Scope) -> Any:
        if holds(self.test, scope):
            try:
                return self.first.eval(scope)
            except Absent:
                pass
        return self.second.eval(scope)

    def render(self) -> str:
        first, second = self.first.render(), self.second.render()
        return f"_prefer(lambda: {self.test.render()}, lambda: {first}, lambda: {second})"


@dataclass(frozen=True)
class Both(Expr):
    parts: tuple[Expr, ...]
    cost = 0.5

    def eval(self, scope: Scope) -> Any:
        return all(part.eval(scope) for part in self.parts)

    def render(self) -> str:
        return " and ".join(part.render() for part in self.parts) or "True"


@dataclass(frozen=True)
class Query(Expr):
    """Rows of a table, or chains of two of its rows, for which tests hold.

    Attributes:
        links: Tests between a row and the next one of a chain; None if single rows are wanted.
        needs: Fields that a row must have; a row that is known only in part is passed over.
    """

    table: str
    tests: Expr
    body: Expr
    order: tuple[str, bool] | None
    needs: tuple[str, ...]
    last: Expr | None = None
    links: Expr | None = None
    body2: Expr | None = None
    cost = 2.0

    def eval(self, scope: Scope) -> Any:
        rows = [row for row in scope.tables.get(self.table, {}).values() if all(name in row for name in self.needs)]
        if self.order is not None:
            name, down = self.order
            rows = sorted(rows, key=lambda row: sort_key(row.get(name)), reverse=down)
        first = [row for row in rows if holds(self.tests, scope.bind("one", row))]
        if self.links is None:
            return [self.body.eval(scope.bind("one", row)) for row in first]
        assert self.last is not None and self.body2 is not None
        second = [row for row in rows if holds(self.last, scope.bind("other", row))]
        return [
            [self.body.eval(pair), self.body2.eval(pair)]
            for one in first
            for other in second
            for pair in [scope.bind("one", one).bind("other", other)]
            if holds(self.links, pair)
        ]

    def render(self) -> str:
        rows = f"self._rows({self.table!r}, {self.needs!r}, {self.order!r})"
        if self.links is None:
            return f"[{self.body.render()} for one in {rows} if _holds(lambda one=one: {self.tests.render()})]"
        assert self.last is not None and self.body2 is not None
        return (
            f"[[{self.body.render()}, {self.body2.render()}]"
            f" for one in {rows} if _holds(lambda one=one: {self.tests.render()})"
            f" for other in {rows} if _holds(lambda other=other: {self.last.render()})"
            f" and _holds(lambda one=one, other=other: {self.links.render()})]"
        )


@dataclass(frozen=True)
class Fresh(Expr):
    """Identifier of a new record: those that recordings show in turn, then counted ones of the same form."""

    kind: str
    shown: tuple[str, ...] = field(default=())
    cost = 1.0

    def eval(self, scope: Scope) -> Any:
        value = scope.values.get(f"fresh:{self.kind}", Absent)
        if value is Absent:
            raise Absent("new key")
        return value

    def render(self) -> str:
        return "fresh_key"


@dataclass(frozen=True)
class SetAt(Expr):
    """Mapping with another value under one key; without the key if the value is None."""

    base: Expr
    key: Expr
    value: Expr | None
    cost = 1.5

    def eval(self, scope: Scope) -> Any:
        base, key = self.base.eval(scope), self.key.eval(scope)
        if not isinstance(base, dict) or not isinstance(key, str) or key not in base:
            raise Absent("key")
        if self.value is None:
            return {name: value for name, value in base.items() if name != key}
        return {**base, key: self.value.eval(scope)}

    def render(self) -> str:
        value = "None" if self.value is None else f"lambda: {self.value.render()}"
        return f"_set({self.base.render()}, {self.key.render()}, {value})"


@dataclass(frozen=True)
class Unless(Expr):
    """Test that holds also where an argument was not given."""

    argument: Expr
    test: Expr
    cost = 0.5

    def eval(self, scope: Scope) -> Any:
        try:
            if self.argument.eval(scope) is None:
                return True
        except Absent:
            return True
        return self.test.eval(scope)

    def render(self) -> str:
        return f"({self.argument.render()} is None or {self.test.render()})"


@dataclass(frozen=True)
class DateShift(Expr):
    """Date some days after another one."""

    base: Expr
    days: int
    cost = 1.0

    def eval(self, scope: Scope) -> Any:
        try:
            return (date.fromisoformat(str(self.base.eval(scope))) + timedelta(days=self.days)).isoformat()
        except (ValueError, OverflowError) as error:
            raise Absent("date") from error

    def render(self) -> str:
        return f"_day({self.base.render()}, {self.days})"


def holds(test: Expr, scope: Scope) -> bool:
    """Return True if a test holds; one that lacks a value does not."""
    try:
        return bool(test.eval(scope))
    except Absent:
        return False


def sort_key(value: Any) -> tuple[int, float, str]:
    """Order of values of any type: nothing, numbers, texts."""
    if value is None:
        return (0, 0.0, "")
    return (1, float(value), "") if is_number(value) else (2, 0.0, str(value))
