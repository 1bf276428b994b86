"""Paths into the values of a call: what expressions can name, which numbers there are, which tests tell calls apart."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trajsmith.envgen.traces.expressions import (
    Absent,
    At,
    Compare,
    Const,
    Count,
    Expr,
    Get,
    If,
    Lacks,
    Row,
    Scope,
    Sum,
    Var,
    is_number,
    to_variable,
)
from trajsmith.envgen.traces.operations import Both, First
from trajsmith.envgen.traces.recordings import freeze
from trajsmith.envgen.traces.tables import is_identifier

MOST_PATHS = 160
FEWEST_PAIRS = 3
"""Examples that a pair of tests needs."""
MOST_PAIRED = 60
DATE = re.compile(r"\d{4}-\d\d-\d\d")
NONE = ("none",)
"""Frozen value of an expression that has none."""
Frozen = Any


class PathFinder:
    """Finds expressions over the variables of examples.

    Args:
        keys: Tables with the names of their key parts.
    """

    def __init__(self, keys: dict[str, tuple[str, ...]]) -> None:
        self.keys = keys
        self.extra: list[Expr] = []
        """Numbers beside the paths that tests may compare."""

    def find_paths(self, scopes: list[Scope]) -> list[tuple[Expr, list[Frozen]]]:
        """Return the paths into the variables with what they give in each example."""
        paths: list[tuple[Expr, list[Any]]] = []
        names = dict.fromkeys(n for scope in scopes[:20] for n in scope.values if not n.startswith("fresh:"))
        waiting: list[tuple[Expr, int]] = [(Var(name), 0) for name in names]
        while waiting and len(paths) < MOST_PATHS:
            expr, depth = waiting.pop(0)
            shown = [try_value(expr, scope) for scope in scopes]
            present = [one for one in shown if one is not NONE]
            if len(present) * 4 < len(scopes) or not present:
                continue
            paths.append((expr, shown))
            if depth < 2 and all(isinstance(one, dict) for one in present):
                fields = Counter(key for one in present for key in one)
                if len(fields) <= 40:
                    waiting += [(Get(expr, key), depth + 1) for key, n in fields.items() if n * 2 >= len(present)]
        texts = [(e, v) for e, v in paths if all(isinstance(x, str) or x is NONE for x in v)]
        for expr, shown in [p for p in paths if any(isinstance(x, dict) for x in p[1])]:
            for key, names_shown in texts:
                both = [
                    (d, k)
                    for d, k in zip(shown, names_shown, strict=True)
                    if isinstance(d, dict) and isinstance(k, str)
                ]
                if both and sum(k in d for d, k in both) * 10 >= len(both) * 6 and len({k for _, k in both}) > 1:
                    at = At(expr, key)
                    values = [try_value(at, scope) for scope in scopes]
                    paths.append((at, values))
                    inner = Counter(n for one in values if isinstance(one, dict) for n in one)
                    paths += [
                        (Get(at, n), [try_value(Get(at, n), scope) for scope in scopes])
                        for n, many in inner.items()
                        if many * 2 >= sum(isinstance(one, dict) for one in values) and len(inner) <= 12
                    ]
        return paths

    def join_rows(self, scopes: list[Scope], var: str) -> list[tuple[Scope, dict[str, Expr]]]:
        """Bind rows that the fields of an item, or the arguments, are the keys of."""
        joined: dict[str, Expr] = {}
        for table, parts in self.keys.items():
            keys = list[Expr]()
            for part in parts:
                own, outer = Get(Var(var), part), Var(to_variable(part))
                if sum(try_value(own, s) is not NONE for s in scopes) * 10 >= len(scopes) * 9:
                    keys.append(own)
                elif sum(try_value(outer, s) is not NONE for s in scopes) * 10 >= len(scopes) * 9:
                    keys.append(outer)
            if len(keys) == len(parts) and any(isinstance(key, Get) for key in keys):
                joined[f"{table}_of_{var}_row"] = Row(table, tuple(keys))
        joined |= self._match_items(scopes, var)
        if not joined:
            return []
        bound = []
        for scope in scopes:
            for name, row in joined.items():
                value = try_value(row, scope)
                scope = scope.bind(name, None if value is NONE else value)
            bound.append((scope, joined))
        return bound

    def _match_items(self, scopes: list[Scope], var: str) -> dict[str, Expr]:
        """Return items of other lists with the same identifiers: the one that was there before."""
        matches: dict[str, Expr] = {}
        for name in dict.fromkeys(n for scope in scopes[:20] for n in scope.values if n.endswith("_row")):
            rows = [value for s in scopes if isinstance(value := s.values.get(name), dict)]
            fields = Counter(f for row in rows for f, v in row.items() if isinstance(v, list) and v)
            for field in fields:
                items = [item for row in rows for item in row.get(field) or () if isinstance(item, dict)]
                for parts in self.keys.values():
                    if items and all(part in item for item in items for part in parts):
                        same = [Compare(Get(Var("each"), part), "==", Get(Var(var), part)) for part in parts]
                        if all(try_value(Get(Var(var), part), s) is not NONE for s in scopes[:20] for part in parts):
                            key = f"{to_variable(field)}_like_{var}_row"
                            matches[key] = First(Get(Var(name), field), "each", Both(tuple(same)))
        return matches

    def find_numbers(self, scopes: list[Scope]) -> list[tuple[Expr, list[float]]]:
        """Return expressions that give a number in every example, without repetitions."""
        numbers_by_values: dict[Frozen, tuple[Expr, list[float]]] = {}

        def add(expr: Expr) -> None:
            shown = [try_value(expr, scope) for scope in scopes]
            numbers = [float(v) if is_number(v) else None for v in shown]
            if all(n is not None for n in numbers):
                key = tuple(numbers)
                if key not in numbers_by_values or numbers_by_values[key][0].size() > expr.size():
                    numbers_by_values[key] = (expr, [n for n in numbers if n is not None])

        for expr, shown in self.find_paths(scopes):
            present = [one for one in shown if one is not NONE]
            if present and all(is_number(one) for one in present):
                add(expr)
            elif present and all(isinstance(one, list) for one in present):
                add(Count(expr))
                items = [item for one in present for item in one if isinstance(item, dict)]
                fields = Counter(n for item in items for n, v in item.items() if is_number(v))
                for name in fields:
                    add(Sum(expr, "each", Get(Var("each"), name)))
                for body in self._join_bodies(expr, scopes):
                    add(Sum(expr, "each", body))
            elif present and all(isinstance(one, str | bool) for one in present) and _is_choice(expr, present):
                for value in sorted({freeze(o) for o in present}, key=str):
                    add(If(Compare(expr, "==", Const(thaw(value))), Const(1), Const(0)))
        return list(numbers_by_values.values())

    def _join_bodies(self, source: Expr, scopes: list[Scope]) -> list[Expr]:
        """Return numbers of the rows that the items of a list refer to."""
        lists = [(scope, try_value(source, scope)) for scope in scopes]
        inner = [scope.bind("each", item) for scope, shown in lists if isinstance(shown, list) for item in shown]
        if not inner or not all(isinstance(s.values["each"], dict) for s in inner):
            return []
        joined = self.join_rows(inner, "each")
        if not joined:
            return []
        mapping = joined[0][1]
        bound = [scope for scope, _ in joined]
        return [
            replace_variables(expr, mapping)
            for expr, shown in self.find_paths(bound)
            if any(isinstance(v, Var) and v.name in mapping for v in walk_expressions(expr))
            and sum(is_number(one) for one in shown) * 10 >= len(shown) * 8
        ][:12]

    def lacks_rows(self, scope: Scope) -> bool:
        for value in scope.values.values():
            if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
                for table, parts in self.keys.items():
                    if all(part in item for item in value for part in parts):
                        rows = [
                            scope.tables.get(table, {}).get("|".join(str(item[p]) for p in parts)) for item in value
                        ]
                        if not all(rows) or any(len(row or {}) <= len(parts) + 2 for row in rows):
                            return True
        return False

    def find_test(self, yes: list[Scope], no: list[Scope]) -> Expr | None:
        """Return the smallest test, or pair of tests, that holds in the first examples and in none of the others."""
        fitting = [
            test for test in [*self.list_tests([*yes, *no]), *self._list_bounds(yes, no)] if _fits_examples(test, yes)
        ]
        fitting.sort(key=weigh_test)
        wrong = [{n for n, scope in enumerate(no) if try_value(test, scope) is True} for test in fitting]
        for test, hits in zip(fitting, wrong, strict=True):
            if not hits:
                return test
        if len(yes) < FEWEST_PAIRS:
            return None
        pairs = itertools.combinations(range(min(len(fitting), MOST_PAIRED)), 2)
        both = [(weigh_test(fitting[a]) + weigh_test(fitting[b]), a, b) for a, b in pairs if not wrong[a] & wrong[b]]
        return Both((fitting[min(both)[1]], fitting[min(both)[2]])) if both else None

    def _list_bounds(self, yes: list[Scope], no: list[Scope]) -> Iterator[Expr]:
        """Yield bounds of numbers and dates that lie between the two kinds of examples."""
        if len(yes) < 3 or len(no) < 3:
            return
        for expr, shown in self.find_paths([*yes, *no])[:60]:
            known = [one for one in shown if one is not NONE and one is not None]
            dated = all(isinstance(one, str) and DATE.match(one) for one in known)
            if not known or not (dated or all(is_number(one) for one in known)):
                continue
            first = [one for one in shown[: len(yes)] if one in known]
            second = [one for one in shown[len(yes) :] if one in known]
            if first and second and max(first) < min(second):
                yield Compare(expr, "<", Const(min(second)))
            if first and second and min(first) > max(second):
                yield Compare(expr, ">", Const(max(second)))

    def list_tests(self, scopes: list[Scope]) -> Iterator[Expr]:
        paths = self.find_paths(scopes)[:80]
        for expr, shown in paths:
            values = Counter(freeze(one) for one in shown if one is not NONE and not isinstance(one, dict | list))
            name = expr.key if isinstance(expr, Get) else expr.name if isinstance(expr, Var) else ""
            if 1 < len(values) + (NONE in shown) <= 6 and not is_identifier(name):
                for value in values:
                    yield Compare(expr, "==", Const(thaw(value)))
                    yield Compare(expr, "!=", Const(thaw(value)))
            if NONE in shown:
                yield Lacks(expr)
        counts = [
            Count(expr) for expr, shown in paths if all(isinstance(one, list) for one in shown if one is not NONE)
        ]
        numbers = [(expr, [try_value(expr, scope) for scope in scopes]) for expr in [*counts, *self.extra]]
        for (first, a), (second, b) in itertools.combinations([*paths[:40], *numbers], 2):
            kinds = {type(x) for x in (*a, *b) if x is not NONE}
            if kinds <= {int, float} or kinds == {str}:
                yield Compare(first, "==", second)
                yield Compare(first, "!=", second)
                if kinds <= {int, float}:
                    yield Compare(first, "<", second)
                    yield Compare(second, "<", first)


@dataclass
class Solution:
    """An expression and the share of the examples that it explains."""

    expr: Expr
    share: float

    @property
    def rank(self) -> tuple[float, float]:
        return (round(self.share, 3), -self.expr.size())


def evaluate(expr: Expr, scope: Scope) -> Frozen:
    try:
        return freeze(expr.eval(scope))
    except Absent:
        return NONE


def measure(expr: Expr, scopes: Sequence[Scope], targets: Sequence[Frozen]) -> float:
    hits = [bool(evaluate(expr, scope) == target) for scope, target in zip(scopes, targets, strict=True)]
    return sum(hits) / max(1, len(hits))


def _fits_examples(test: Expr, scopes: list[Scope]) -> bool:
    """Return True if a test holds wherever its values are known, which they are in at least half of the examples."""
    shown = [try_value(test, scope) for scope in scopes]
    known = [one for one in shown if one is not NONE]
    return len(known) * 2 >= len(shown) and all(one is True for one in known)


def weigh_test(test: Expr) -> float:
    """Return the size of a test; one that compares two values of the same name counts as smaller."""
    size: float = test.size()
    if isinstance(test, Compare) and isinstance(test.right, Get | Var) and isinstance(test.left, Get | Var):
        names = [one.key if isinstance(one, Get) else one.name for one in (test.left, test.right)]
        return size - 1.5 * (names[0] == names[1])
    return size


def try_value(expr: Expr, scope: Scope) -> Any:
    try:
        return expr.eval(scope)
    except (Absent, TypeError):
        return NONE


def _is_choice(expr: Expr, values: Sequence[Any]) -> bool:
    """Return True for a value that has few forms and identifies nothing."""
    name = expr.key if isinstance(expr, Get) else expr.name if isinstance(expr, Var) else "id"
    return 2 <= len({freeze(one) for one in values}) <= 3 and not is_identifier(name)


def thaw(frozen: Frozen) -> Any:
    """Return the value that `freeze` was made of."""
    if isinstance(frozen, tuple):
        kind, inner = frozen if len(frozen) == 2 else ("", ())
        if kind == "{":
            return {key: thaw(value) for key, value in inner}
        if kind == "[":
            return [thaw(value) for value in inner]
        if kind == "b":
            return inner
    return frozen


def walk_expressions(expr: Expr) -> Iterator[Expr]:
    """Yield an expression and all in it."""
    yield expr
    for child in expr.children():
        yield from walk_expressions(child)


def replace_variables(expr: Expr, mapping: Mapping[str, Expr]) -> Expr:
    """Return an expression with variables replaced by expressions."""
    if not mapping:
        return expr
    if isinstance(expr, Var):
        return mapping.get(expr.name, expr)
    import dataclasses

    if not dataclasses.is_dataclass(expr):
        return expr
    changes: dict[str, Any] = {}
    for one in dataclasses.fields(expr):
        value = getattr(expr, one.name)
        changes[one.name] = _replace_value(value, mapping)
    return dataclasses.replace(expr, **changes)


def _replace_value(value: Any, mapping: Mapping[str, Expr]) -> Any:
    if isinstance(value, Expr):
        return replace_variables(value, mapping)
    if isinstance(value, tuple):
        return tuple(_replace_value(one, mapping) for one in value)
    return value
