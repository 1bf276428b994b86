"""Lists of rows: which tests on rows and arguments give the recorded lists, in which order."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trajsmith.envgen.traces.expressions import Absent, Compare, Const, Expr, Get, If, Obj, Opt, Scope, Var, to_variable
from trajsmith.envgen.traces.operations import Both, DateShift, Query, Unless, holds, sort_key
from trajsmith.envgen.traces.paths import Solution, measure
from trajsmith.envgen.traces.recordings import freeze
from trajsmith.envgen.traces.tables import build_key

Keys = dict[str, tuple[str, ...]]
Explain = Callable[[list[Scope], list[Any], str, int], Solution | None]
"""Search for an expression: scopes, values, the value's name, depth."""


MOST_ROWS = 600
"""Rows that were not shown, of one example, against which tests are compared."""
SIGNS = ("==", "in", ">=", "<=")
Row = dict[str, Any]


def find_query(
    keys_by_table: Keys, explain: Explain, scopes: list[Scope], values: list[list[Any]]
) -> "Solution | None":
    """Return the query that gives recorded lists of rows, or of chains of two rows."""
    items = [item for value in values for item in value]
    if not items:
        return None
    best: Solution | None = None
    chains = all(isinstance(item, list) and len(item) == 2 for item in items)
    if not chains and not all(isinstance(item, dict) for item in items):
        return None
    for table, keys in keys_by_table.items():
        if chains:
            expr = _find_chains(explain, table, keys, scopes, values)
        else:
            expr = _find_rows(explain, table, keys, scopes, values)
        if expr is None:
            continue
        solution = Solution(expr, measure(expr, scopes, [freeze(value) for value in values]))
        if best is None or solution.rank > best.rank:
            best = solution
    return best


def _find_row(scope: Scope, table: str, keys: tuple[str, ...], item: Any) -> Row | None:
    if not isinstance(item, dict):
        return None
    key = build_key(keys, item, {part: scope.values.get(to_variable(part)) for part in keys})
    return None if key is None else scope.tables.get(table, {}).get(key)


def _find_rows(
    explain: Explain, table: str, keys: tuple[str, ...], scopes: list[Scope], values: list[list[Any]]
) -> Expr | None:
    pairs = [
        (scope, _find_row(scope, table, keys, item), item)
        for scope, value in zip(scopes, values, strict=True)
        for item in value
    ]
    if sum(row is None for _, row, _ in pairs) > len(pairs) * 0.1:
        return None
    known = [(scope, row, item) for scope, row, item in pairs if row is not None]
    shown = [
        {id(row) for row in (_find_row(scope, table, keys, item) for item in value)}
        for scope, value in zip(scopes, values, strict=True)
    ]
    body = explain([_narrow(scope, "one", row) for scope, row, _ in known], [item for _, _, item in known], "", 3)
    if body is None or body.share < 0.8:
        return None
    needs = _find_needs(body.expr, "one", known[0][1])
    rests = [
        [row for row in scope.tables[table].values() if id(row) not in seen and all(n in row for n in needs)][
            :MOST_ROWS
        ]
        for scope, seen in zip(scopes, shown, strict=True)
    ]
    positives = [(scope.bind("one", row)) for scope, row, _ in known]
    negatives = [scope.bind("one", row) for scope, rest in zip(scopes, rests, strict=True) for row in rest]
    tests = choose_tests(list_argument_tests(scopes, positives, "one"), positives, negatives)
    expr = Query(table, Both(tuple(tests)), body.expr, None, needs)
    looked_up = [[_find_row(s, table, keys, item) for item in value] for s, value in zip(scopes, values, strict=True)]
    order = _find_order([[row for row in rows if row is not None] for rows in looked_up], keys)
    return Query(expr.table, expr.tests, expr.body, order, needs)


def _find_chains(
    explain: Explain, table: str, keys: tuple[str, ...], scopes: list[Scope], values: list[list[Any]]
) -> Expr | None:
    """Find chains of two rows of a table: routes with a change, handovers."""
    chains = []
    for scope, value in zip(scopes, values, strict=True):
        for item in value:
            pair = (_find_row(scope, table, keys, item[0]), _find_row(scope, table, keys, item[1]))
            if pair[0] is not None and pair[1] is not None:
                chains.append((scope, pair, item))
    if not chains or len(chains) * 10 < sum(map(len, values)) * 9:
        return None
    bodies = []
    for place, var in ((0, "one"), (1, "other")):
        body = explain(
            [_narrow(scope, var, pair[place]) for scope, pair, _ in chains],
            [item[place] for _, _, item in chains],
            "",
            3,
        )
        if body is None or body.share < 0.8:
            return None
        bodies.append(body.expr)
    needs = tuple(
        dict.fromkeys(
            (*_find_needs(bodies[0], "one", chains[0][1][0]), *_find_needs(bodies[1], "other", chains[0][1][1]))
        )
    )
    positives = [scope.bind("one", pair[0]).bind("other", pair[1]) for scope, pair, _ in chains]
    ends = []
    for place, var in ((0, "one"), (1, "other")):
        valid = [t for t in list_argument_tests(scopes, positives, var) if all(holds(t, s) for s in positives)]
        named = [t for t in valid if _names_argument(t)]
        shown = {id(pair[place]) for _, pair, _ in chains}
        negatives = [
            scope.bind(var, row)
            for scope in scopes[:20]
            for row in scope.tables[table].values()
            if all(n in row for n in needs)
            and id(row) not in shown
            and all(holds(t, scope.bind(var, row)) for t in named)
        ][:MOST_ROWS]
        extra = [
            t
            for t in choose_tests([t for t in valid if t not in named], list(positives), negatives)
            if not _is_order(t)
        ]
        ends.append(Both(tuple(dict.fromkeys([*named, *extra]))))
    shown_pairs = {
        (n, id(pair[0]), id(pair[1])) for n, scope in enumerate(scopes) for s, pair, _ in chains if s is scope
    }
    negatives = []
    for number, scope in enumerate(scopes):
        rows = [row for row in scope.tables[table].values() if all(n in row for n in needs)]
        first = [row for row in rows if holds(ends[0], scope.bind("one", row))]
        last = [row for row in rows if holds(ends[1], scope.bind("other", row))]
        negatives += [
            scope.bind("one", a).bind("other", b)
            for a in first
            for b in last
            if (number, id(a), id(b)) not in shown_pairs
        ]
    possible = [*_list_links(positives), *_list_cases(positives)]
    links = choose_tests(possible, positives, negatives[:4000])
    firsts = [[pair[0] for s, pair, _ in chains if s is scope and pair[0] is not None] for scope in scopes]
    order = _find_order(firsts, keys)
    return Query(table, ends[0], bodies[0], order, needs, ends[1], Both(tuple(links)), bodies[1])


def _narrow(scope: Scope, var: str, row: Any) -> Scope:
    """Return a scope with the arguments and one row, no other rows."""
    values = {
        name: value
        for name, value in scope.values.items()
        if not name.endswith("_row") and not isinstance(value, list | dict)
    }
    return Scope({**values, var: row}, {})


def _find_needs(body: Expr, var: str, row: Any) -> tuple[str, ...]:
    """Return the fields of a row without which it cannot be shown."""
    if isinstance(body, Var):
        return tuple(row)
    needs = []
    for _, expr in body.fields if isinstance(body, Obj) else ():
        if isinstance(expr, Get) and expr.base == Var(var) and not isinstance(expr, Opt):
            needs.append(expr.key)
    return tuple(needs)


def _find_order(lists: list[list[Row]], keys: tuple[str, ...]) -> tuple[str, bool] | None:
    """Return the column that all lists are sorted by, and whether downwards."""
    longer = [rows for rows in lists if len(rows) > 1]
    if not longer:
        return None
    columns = Counter(
        name for rows in longer for row in rows for name, value in row.items() if not isinstance(value, list | dict)
    )
    for name in sorted(columns, key=lambda n: (n not in keys, n)):
        for down in (False, True):
            if all(
                [sort_key(r.get(name)) for r in rows] == sorted((sort_key(r.get(name)) for r in rows), reverse=down)
                for rows in longer
            ) and any(sort_key(rows[0].get(name)) != sort_key(rows[-1].get(name)) for rows in longer):
                return (name, down)
    return None


def list_argument_tests(scopes: Sequence[Scope], positives: Sequence[Scope], var: str) -> list[Expr]:
    """Return tests of a row's columns against arguments and constants that hold in all rows that were shown."""
    names = dict.fromkeys(n for s in scopes for n, v in s.values.items() if isinstance(v, str | int | float))
    columns = dict.fromkeys(
        n for s in positives[:50] for n, v in s.values[var].items() if not isinstance(v, dict | list)
    )
    tests: list[Expr] = []
    for name in names:
        passed = [s for s in positives if s.values.get(name) is not None]
        if not passed:
            continue
        optional = any(s.values.get(name) is None for s in scopes)
        for column in columns:
            for sign in SIGNS:
                left, right = (Var(name), Get(Var(var), column)) if sign == "in" else (Get(Var(var), column), Var(name))
                test: Expr = Compare(left, sign, right)
                if all(holds(test, s) for s in passed):
                    tests.append(Unless(Var(name), test) if optional else test)
                    if sign == "==":
                        break
    for column in columns:
        values = Counter(freeze(s.values[var].get(column)) for s in positives)
        if len(values) == 1 and sum(values.values()) > 2:
            value = next(iter(values))
            if isinstance(value, str | int) or value == ("b", True) or value == ("b", False):
                tests.append(
                    Compare(Get(Var(var), column), "==", Const(value if not isinstance(value, tuple) else value[1]))
                )
    return tests


def _list_links(positives: Sequence[Scope]) -> Iterator[Expr]:
    """Yield comparisons of two rows that hold in all chains."""
    columns = [n for n, v in positives[0].values["one"].items() if isinstance(v, str | int | float)]
    for first in columns:
        for second in columns:
            for sign in ("==", "<", "<=", "!="):
                test = Compare(Get(Var("one"), first), sign, Get(Var("other"), second))
                if all(holds(test, s) for s in positives):
                    yield test
                    if sign in ("==", "<"):
                        break


def _list_cases(positives: Sequence[Scope]) -> Iterator[Expr]:
    """Yield tests with two cases: equal columns, or a date some days later where a text of the first row has a mark."""
    columns = [n for n, v in positives[0].values["one"].items() if isinstance(v, str)]
    usual = [(c, Compare(Get(Var("other"), c), "==", Get(Var("one"), c))) for c in columns]
    for column, same in usual:
        rest = [s for s in positives if not holds(same, s)]
        if not rest or len(rest) * 2 > len(positives):
            continue
        hits = [s for s in positives if holds(same, s)]
        for days in (1, 2, -1):
            later = Compare(Get(Var("other"), column), "==", DateShift(Get(Var("one"), column), days))
            if not all(holds(later, s) for s in rest):
                continue
            for other in columns:
                shown = [str(s.values["one"].get(other)) for s in rest]
                for mark in {shown[0][-n:] for n in (1, 2, 3)}:
                    test = Compare(Const(mark), "in", Get(Var("one"), other))
                    if all(holds(test, s) for s in rest) and not any(holds(test, s) for s in hits):
                        yield If(test, later, same)
                        return


def _names_argument(test: Expr) -> bool:
    """Return True if a test compares an argument with the column of the same name."""
    inner = test.test if isinstance(test, Unless) else test
    return (
        isinstance(inner, Compare)
        and inner.sign == "=="
        and isinstance(inner.left, Get)
        and isinstance(inner.right, Var)
        and to_variable(inner.left.key) == inner.right.name
    )


def _is_order(test: Expr) -> bool:
    inner = test.test if isinstance(test, Unless) else test
    return isinstance(inner, Compare) and inner.sign not in ("==", "in")


def choose_tests(tests: list[Expr], positives: Sequence[Scope], negatives: Sequence[Scope]) -> list[Expr]:
    """Return the fewest tests that rule out rows which were not shown: those named alike first, then greedily."""
    chosen = [test for test in tests if _names_argument(test)]
    left = [s for s in negatives if all(_passes(test, s) for test in chosen)]
    waiting = [test for test in tests if test not in chosen]
    while left and waiting:
        ruled = [(sum(not _passes(test, s) for s in left), -_weigh(test), -n) for n, test in enumerate(waiting)]
        most = max(ruled)
        if most[0] == 0:
            break
        test = waiting.pop(-most[2])
        chosen.append(test)
        left = [s for s in left if _passes(test, s)]
    return chosen


def _weigh(test: Expr) -> float:
    return test.size() + (2 if _is_order(test) else 0)


def _passes(test: Expr, scope: Scope) -> bool:
    try:
        return bool(test.eval(scope))
    except Absent:
        return False
