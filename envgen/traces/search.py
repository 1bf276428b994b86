"""Search for expressions that give recorded values: the smallest one that explains nearly all examples."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from trajsmith.envgen.traces.expressions import (
    At,
    Compare,
    Concat,
    Const,
    Expr,
    Get,
    If,
    ListOf,
    MapOver,
    Obj,
    Opt,
    Scope,
    Var,
    Without,
    is_number,
    to_variable,
)
from trajsmith.envgen.traces.linear import fit_linear
from trajsmith.envgen.traces.operations import Arithmetic, Fresh, Linear, Preferred, SetAt, Text
from trajsmith.envgen.traces.paths import (
    NONE,
    Frozen,
    PathFinder,
    Solution,
    evaluate,
    measure,
    replace_variables,
    thaw,
    try_value,
)
from trajsmith.envgen.traces.queries import find_query
from trajsmith.envgen.traces.recordings import freeze
from trajsmith.envgen.traces.templates import split_template

ACCEPTED = 0.96
"""Share of examples that an expression must explain for the search to end."""
MOST_EXAMPLES = 80
"""Examples that the search looks at; all are used to compare what it has solution."""
DEEPEST = 4


class Search(PathFinder):
    """Search over the examples of one value.

    Args:
        keys: Tables with the names of their key parts.
        started: Number that new variables count from, so that nested lists do not share one.
    """

    def __init__(self, keys: dict[str, tuple[str, ...]], fresh: "dict[str, Fresh] | None" = None) -> None:
        super().__init__(keys)
        self.fresh = fresh or {}
        self._numbers = itertools.count()

    def explain(self, scopes: list[Scope], values: list[Any], name: str = "", depth: int = 0) -> Solution | None:
        """Return the best expression for the values, or None if nothing explains any of them."""
        if not scopes or depth > DEEPEST:
            return None
        step = max(1, len(scopes) // MOST_EXAMPLES)
        few, few_values = scopes[::step][:MOST_EXAMPLES], values[::step][:MOST_EXAMPLES]
        targets = [freeze(value) for value in few_values]
        best: Solution | None = None
        for make in self._strategies(few, few_values, targets, name, depth):
            solution = make()
            if solution is not None and (best is None or solution.rank > best.rank):
                best = solution
            if best is not None and best.share >= ACCEPTED:
                break
        if best is not None and 0.3 <= best.share < 1 and (depth < 2 or not isinstance(values[0], dict | list)):
            best = self._split(best, few, few_values, targets, name, depth) or best
        if best is None or not few or step == 1:
            return best
        return Solution(best.expr, measure(best.expr, scopes, [freeze(value) for value in values]))

    def _strategies(
        self, scopes: list[Scope], values: list[Any], targets: list[Frozen], name: str, depth: int
    ) -> Iterator[Callable[[], Solution | None]]:
        yield lambda: self._pick_path(scopes, targets, name, depth)
        if all(isinstance(value, dict) for value in values):
            yield lambda: self._build_object(scopes, values, targets, depth)
            yield lambda: self._change_mapping(scopes, values, targets, depth)
        if all(isinstance(value, list) for value in values):
            if depth < 3:
                yield lambda: find_query(self.keys, self.explain, scopes, values)
            yield lambda: self._extend_list(scopes, values, targets, depth)
            yield lambda: self._map_list(scopes, values, targets, depth)
        if all(is_number(value) for value in values):
            yield lambda: self._combine_numbers(scopes, values, targets)
        if all(isinstance(value, str | int | float) and not isinstance(value, bool) for value in values):
            yield lambda: self._compute(scopes, targets)
        if all(isinstance(value, str) for value in values):
            yield lambda: self._fill_text(scopes, values, targets)

    # paths -------------------------------------------------------------------------------------------------------

    def _pick_path(self, scopes: list[Scope], targets: list[Frozen], name: str, depth: int) -> Solution | None:
        best: Solution | None = None
        best_rank: tuple[float, float] = (0.0, 0.0)
        candidates: list[tuple[Expr, list[Frozen]]] = [
            (expr, [one if one is NONE else freeze(one) for one in shown]) for expr, shown in self.find_paths(scopes)
        ]
        candidates += [(one, [evaluate(one, scope) for scope in scopes]) for one in self.fresh.values()]
        for expr, shown in candidates:
            share = sum(a == b for a, b in zip(shown, targets, strict=True)) / len(targets)
            bonus = 2.0 if name and isinstance(expr, Get) and expr.key == name else 0.0
            bonus = 2.5 if name and isinstance(expr, Var) and expr.name == name else bonus
            rank = (round(share, 2), bonus - expr.size())
            if share > 0 and rank > best_rank:
                best, best_rank = Solution(expr, share), rank
        constant, number = Counter(targets).most_common(1)[0]
        share = number / len(targets)
        value = thaw(constant)
        plain = not isinstance(value, dict | list) or not value or depth == 0 or number >= 5
        if plain and (round(share, 2), -Const.cost - 1.5 * (len(targets) < 3)) > best_rank:
            best = Solution(Const(value), share)
        return best

    # composed values ------------------------------------------------------------------------------------------------

    def _build_object(
        self, scopes: list[Scope], values: list[Any], targets: list[Frozen], depth: int
    ) -> Solution | None:
        names = list(dict.fromkeys(key for value in values for key in value))
        often = Counter(key for value in values for key in value)
        if not names or len(names) > 60 or (len(values) > 3 and max(often.values()) == 1):
            return None
        fields: list[tuple[str, Expr]] = []
        inner_scopes = list(scopes)
        for name in _order_fields(names, values):
            holders = [place for place, value in enumerate(values) if name in value]
            solution = self.explain(
                [inner_scopes[p] for p in holders], [values[p][name] for p in holders], name, depth + 1
            )
            if solution is None:
                return None
            expr: Expr = solution.expr if often[name] == len(values) else Opt(solution.expr)
            fields.append((name, expr))
            if depth == 0 and isinstance(expr, MapOver | Linear):
                inner_scopes = [
                    s.bind(f"new_{to_variable(name)}", None if (v := try_value(expr, s)) is NONE else v)
                    for s in inner_scopes
                ]
        order = {name: place for place, name in enumerate(names)}
        whole = Obj(tuple(sorted(fields, key=lambda one: order[one[0]])))
        whole = _inline_new(whole)
        return Solution(whole, measure(whole, scopes, targets))

    def _extend_list(
        self, scopes: list[Scope], values: list[Any], targets: list[Frozen], depth: int
    ) -> Solution | None:
        """Explain a list as one that was there, with more at its end or without an item."""
        best: Solution | None = None
        for base, shown in self.find_paths(scopes):
            pairs = [(p, old) for p, old in enumerate(shown) if isinstance(old, list)]
            extended = [(p, old) for p, old in pairs if freeze(values[p])[1][: len(old)] == freeze(old)[1]]
            if len(extended) * 10 >= len(scopes) * 8 and any(old for _, old in extended):
                solution = self._explain_addition(base, extended, scopes, values, targets, depth)
                if solution is not None and (best is None or solution.rank > best.rank):
                    best = solution
            gone = [(p, [o for o in old if o not in values[p]]) for p, old in pairs if len(old) == len(values[p]) + 1]
            if gone and len(gone) * 10 >= len(scopes) * 8 and all(len(items) == 1 for _, items in gone):
                item = self.explain([scopes[p] for p, _ in gone], [items[0] for _, items in gone], "", depth + 1)
                if item is not None:
                    expr = Without(base, item.expr)
                    solution = Solution(expr, measure(expr, scopes, targets))
                    best = solution if best is None or solution.rank > best.rank else best
        return best

    def _explain_addition(
        self,
        base: Expr,
        extended: list[tuple[int, Any]],
        scopes: list[Scope],
        values: list[Any],
        targets: list[Frozen],
        depth: int,
    ) -> Solution | None:
        added = [(p, values[p][len(old) :]) for p, old in extended]
        longer = [(p, more) for p, more in added if more]
        if not longer:
            return None
        best: Solution | None = None
        if all(len(more) == 1 for _, more in longer):
            item = self.explain([scopes[p] for p, _ in longer], [more[0] for _, more in longer], "", depth + 1)
            if item is not None:
                whole: Expr = Concat(base, ListOf((item.expr,)))
                equal = [p for p, more in added if not more]
                test = self._find_switch(item.expr, [scopes[p] for p, _ in longer], [scopes[p] for p in equal])
                whole = If(test, whole, base) if equal and test is not None else whole
                best = Solution(whole, measure(whole, scopes, targets))
        if best is None or best.share < ACCEPTED:
            mapped = self._map_list(
                [scopes[p] for p, _ in longer], [m for _, m in longer], [freeze(m) for _, m in longer], depth
            )
            if mapped is not None:
                whole = Concat(base, mapped.expr)
                share = measure(whole, scopes, targets)
                if best is None or share > best.share:
                    best = Solution(whole, share)
        return best

    def _find_switch(self, item: Expr, yes: list[Scope], no: list[Scope]) -> Expr | None:
        """Return a test that tells when an item is added: one of its numbers is not zero, or a predicate."""
        for _, part in item.fields if isinstance(item, Obj) else ():
            if isinstance(part, Linear | Get | Var):
                test = Compare(part, "!=", Const(0))
                if all(try_value(test, s) is True for s in yes) and all(try_value(test, s) is not True for s in no):
                    return test
        for test in (
            Compare(part, ">", Const(0))
            for _, part in (item.fields if isinstance(item, Obj) else ())
            if isinstance(part, Linear)
        ):
            if all(try_value(test, s) is True for s in yes) and all(try_value(test, s) is not True for s in no):
                return test
        return self.find_test(yes, no)

    def _map_list(self, scopes: list[Scope], values: list[Any], targets: list[Frozen], depth: int) -> Solution | None:
        """Explain a list item by item, from another list of the same length."""
        best: Solution | None = None
        sources = [
            (expr, shown)
            for expr, shown in self.find_paths(scopes)
            if sum(isinstance(old, list) and len(old) == len(v) for old, v in zip(shown, values, strict=True)) * 10
            >= len(scopes) * 9
        ]
        for source, shown in sources[:6]:
            var = f"item{next(self._numbers)}" if depth else "item"
            inner, items = list[Scope](), list[Any]()
            for place, old in enumerate(shown):
                if isinstance(old, list) and len(old) == len(values[place]):
                    for one, target in zip(old, values[place], strict=True):
                        inner.append(scopes[place].bind(var, one))
                        items.append(target)
            if not inner:
                continue
            joined = self.join_rows(inner, var)
            solution = self.explain([scope for scope, _ in joined] if joined else inner, items, "", depth + 1)
            if solution is None:
                continue
            expr = MapOver(source, var, replace_variables(solution.expr, joined[0][1] if joined else {}))
            outcome = Solution(expr, measure(expr, scopes, targets))
            if best is None or outcome.rank > best.rank:
                best = outcome
            if best.share >= ACCEPTED:
                break
        return best

    def _change_mapping(
        self, scopes: list[Scope], values: list[Any], targets: list[Frozen], depth: int
    ) -> Solution | None:
        """Explain a mapping as one that was there with one value changed, or taken out."""
        best: Solution | None = None
        for base, shown in self.find_paths(scopes):
            changed = []
            for place, old in enumerate(shown):
                if isinstance(old, dict):
                    names = [
                        n
                        for n in {**old, **values[place]}
                        if freeze(old.get(n, NONE)) != freeze(values[place].get(n, NONE))
                    ]
                    if len(names) == 1 and names[0] in old:
                        changed.append((place, names[0]))
            if len(changed) < 2 or len(changed) * 10 < len(scopes) * 8:
                continue
            key = self.explain([scopes[p] for p, _ in changed], [name for _, name in changed], "", DEEPEST)
            if key is None or key.share < 0.8 or isinstance(key.expr, Const):
                continue
            for stays in (True, False):
                part = [(p, name) for p, name in changed if (name in values[p]) is stays]
                if not part:
                    continue
                value: Expr | None = None
                if stays:
                    bound = [scopes[p].bind("before", shown[p][name]) for p, name in part]
                    solution = self.explain(bound, [values[p][name] for p, name in part], "", depth + 1)
                    if solution is None:
                        continue
                    value = replace_variables(solution.expr, {"before": At(base, key.expr)})
                expr = SetAt(base, key.expr, value)
                outcome = Solution(expr, measure(expr, scopes, targets))
                if best is None or outcome.rank > best.rank:
                    best = outcome
        return best

    # numbers and texts ------------------------------------------------------------------------------------------------

    def _combine_numbers(self, scopes: list[Scope], values: list[Any], targets: list[Frozen]) -> Solution | None:
        subset = self._pick_known(scopes)
        if len(subset) < 3:
            return None
        numbers = self.find_numbers([scopes[p] for p in subset])
        expr = fit_linear(numbers, [float(values[p]) for p in subset])
        return None if expr is None else Solution(expr, measure(expr, scopes, targets))

    def _pick_known(self, scopes: list[Scope]) -> list[int]:
        """Return the examples in which all rows are known: a sum over rows that nobody saw says nothing."""
        places = [
            p for p, s in enumerate(scopes) if all(v is not None for n, v in s.values.items() if n.endswith("_row"))
        ]
        known = [p for p in places if not self.lacks_rows(scopes[p])]
        return known if len(known) >= 3 else places

    def _compute(self, scopes: list[Scope], targets: list[Frozen]) -> Solution | None:
        best: Solution | None = None
        for expr, shown in self.find_paths(scopes):
            if all(isinstance(one, str) for one in shown):
                test = Arithmetic(expr)
                share = measure(test, scopes, targets)
                if share > 0.5 and (best is None or share > best.share):
                    best = Solution(test, share)
        return best

    def _fill_text(self, scopes: list[Scope], values: list[str], targets: list[Frozen]) -> Solution | None:
        """Explain texts as one sentence with values in it."""
        paths = [
            (expr, shown)
            for expr, shown in self.find_paths(scopes)
            if all(one is NONE or isinstance(one, str | int | float) for one in shown)
        ]
        number_paths = self.find_numbers(scopes)[:40]
        parts = split_template(values, paths, [(e, [float(x) for x in v]) for e, v in number_paths])
        if parts is None:
            return None
        expr = Text(tuple(parts))
        return Solution(expr, measure(expr, scopes, targets))

    # tests and cases ------------------------------------------------------------------------------------------------

    def _split(
        self, best: Solution, scopes: list[Scope], values: list[Any], targets: list[Frozen], name: str, depth: int
    ) -> Solution | None:
        """Explain what an expression leaves open by another one, and tell the cases apart."""
        hits = [evaluate(best.expr, s) == t for s, t in zip(scopes, targets, strict=True)]
        rest = [p for p, hit in enumerate(hits) if not hit]
        if len(rest) < 2 or isinstance(best.expr, Obj):
            return None
        other = self.explain([scopes[p] for p in rest], [values[p] for p in rest], name, depth + 1)
        if other is None or other.share < ACCEPTED:
            return None
        shown = [evaluate(other.expr, s) for s in scopes]
        harmed = [s for s, v, t in zip(scopes, shown, targets, strict=True) if v not in (t, NONE)]
        preferred = self.find_test([scopes[p] for p in rest], harmed) if harmed else Const(True)
        if preferred is not None:
            expr: Expr = Preferred(preferred, other.expr, best.expr)
            better = Solution(expr, measure(expr, scopes, targets))
            if better.share > best.share:
                return better
        test = self.find_test([scopes[p] for p, hit in enumerate(hits) if hit], [scopes[p] for p in rest])
        if test is None:
            return None
        expr = If(test, best.expr, other.expr)
        solution = Solution(expr, measure(expr, scopes, targets))
        return solution if solution.share > best.share else None


def _order_fields(names: list[str], values: list[Any]) -> list[str]:
    """Return lists of records before numbers and lists that may be computed from them."""

    def weight(name: str) -> int:
        lists = any(isinstance(value.get(name), list) for value in values)
        return 1 if lists else 0

    return sorted(names, key=weight)


def _inline_new(whole: Obj) -> Obj:
    """Return an object whose fields name no other field of it: computed fields are written out."""
    known = {f"new_{to_variable(name)}": expr for name, expr in whole.fields if isinstance(expr, MapOver | Linear)}
    return Obj(tuple((name, replace_variables(expr, known)) for name, expr in whole.fields))
