"""Refusals: when a tool refuses a call, and what it says then."""

import re
from collections import defaultdict
from typing import Any

from trajsmith.envgen.traces.expressions import Absent, At, Compare, Const, Expr, Lacks, Row, Scope, Var
from trajsmith.envgen.traces.linear import fit_linear
from trajsmith.envgen.traces.operations import Linear, Text
from trajsmith.envgen.traces.paths import NONE, replace_variables, try_value, walk_expressions, weigh_test
from trajsmith.envgen.traces.programs import CallExample, Refusal, ToolProgram, bind_anchors
from trajsmith.envgen.traces.search import Search
from trajsmith.envgen.traces.tables import find_scalars

FEWEST_SUMS = 4
"""Accepted calls that a sum needs."""
_NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w-])")


def find_refusals(
    search: Search, program: ToolProgram, good: list[CallExample], failed: list[CallExample]
) -> list[Refusal]:
    """Find out for each kind of refusal when it comes and what it says."""
    kinds: dict[str, list[CallExample]] = defaultdict(list)
    for one in failed:
        if isinstance(one.call.result, str):
            rows = [_lookup_row(row, one.scope) for row in program.anchors.values()]
            kinds[_outline(one.call.result, [one.call.arguments, *rows])].append(one)
    accepted = [bind_anchors(one.scope, program.anchors) for one in good]
    computed = (
        [e for e in walk_expressions(program.result) if isinstance(e, Linear)] if program.result is not None else []
    )
    search.extra = [
        e
        for e in dict.fromkeys(computed)
        if not any(isinstance(v, Var) and v.name.startswith("item") for v in walk_expressions(e))
    ]
    refusals = []
    for _, cases in sorted(kinds.items(), key=lambda item: -len(item[1])):
        refused = [bind_anchors(one.scope, program.anchors) for one in cases]
        texts = [str(one.call.result) for one in cases]
        refusal = _explain_refusal(search, refused, accepted, texts)
        if refusal is None:
            program.notes.append(f"refusal without a known reason, {len(cases)} calls: {texts[0][:120]}")
            continue
        refusals.append(refusal)
    return refusals


def find_missing_rows(search: Search, program: ToolProgram, accepted: list[Scope]) -> list[Refusal]:
    """Return refusals of identifiers that nothing has, where all or nearly all accepted calls name what is there.

    Recordings seldom show such calls; a service that takes any identifier is still the less likely one.
    """
    if len(accepted) < FEWEST_SUMS:
        return []
    tests: list[tuple[Expr, Expr]] = []
    for name, row in program.anchors.items():
        known = sum(scope.values.get(name) is not None for scope in accepted)
        if known * 10 >= len(accepted) * 9 and len(row.keys) == 1 and isinstance(row.keys[0], Var):
            tests.append((Var(name), row.keys[0]))
    for expr, shown in search.find_paths(accepted):
        if isinstance(expr, At) and isinstance(expr.key, Var):
            base = [try_value(expr.base, scope) is not NONE for scope in accepted]
            if sum(base) >= FEWEST_SUMS and all(v is not NONE for v, known in zip(shown, base, strict=True) if known):
                tests.append((expr, expr.key))
    stated = {refusal.test for refusal in program.refusals}
    return [Refusal(Lacks(expr), Text((key, " not found")), 0) for expr, key in tests if Lacks(expr) not in stated]


def _lookup_row(row: Row, scope: Scope) -> Any:
    """Return the plain values of a row; the keys of its anchor may be unknown."""
    try:
        value = row.eval(scope)
    except (Absent, TypeError):
        return None
    return {n: v for n, v in value.items() if not isinstance(v, dict | list)} if isinstance(value, dict) else None


def _outline(text: str, values: list[Any]) -> str:
    """Return a refusal without numbers, identifiers and what its call and the rows of its call hold."""
    outline = text.lower()
    for value in sorted({one.lower() for one in find_scalars(values) if len(one) > 2}, key=len, reverse=True):
        outline = outline.replace(value, "*")
    words = re.findall(r"[\w.*-]+", outline)
    return " ".join("*" if "*" in word or any(c.isdigit() for c in word) else word for word in words)


def _explain_refusal(search: Search, refused: list[Scope], accepted: list[Scope], texts: list[str]) -> Refusal | None:
    by_sum = _explain_sums(search, refused, accepted, texts)
    if by_sum is not None:
        return by_sum
    known = [scope for scope in refused if _is_known(scope)]
    test = search.find_test(known or refused, accepted) if accepted else Const(True)
    if test is not None and (len(refused) > 1 or isinstance(test, Lacks)):
        text = search.explain(refused, texts, "", 3)
        if text is not None and text.share >= 0.8:
            return Refusal(test, text.expr, len(refused))
    return _explain_item(search, refused, accepted, texts)


def _is_known(scope: Scope) -> bool:
    return all(value is not None for name, value in scope.values.items() if name.endswith("_row"))


def _explain_item(search: Search, refused: list[Scope], accepted: list[Scope], texts: list[str]) -> Refusal | None:
    """Explain a refusal by one item of a list among the arguments."""
    names = [
        n for n, v in refused[0].values.items() if isinstance(v, list) and v and all(isinstance(i, dict) for i in v)
    ]
    for name in names:
        var = "item"
        lists = [[scope.bind(var, item) for item in scope.values.get(name) or []] for scope in (*refused, *accepted)]
        flat = [scope for inner in lists for scope in inner]
        joined = search.join_rows(flat, var)
        mapping = joined[0][1] if joined else {}
        if joined:
            bound = iter(scope for scope, _ in joined)
            lists = [[next(bound) for _ in inner] for inner in lists]
        yes, no = lists[: len(refused)], lists[len(refused) :]
        best: tuple[float, Expr] | None = None
        for test in search.list_tests([scope for inner in lists for scope in inner][:200]):
            if best is not None and weigh_test(test) >= best[0]:
                continue
            hits = sum(any(try_value(test, s) is True for s in inner) for inner in yes)
            if hits == len(yes) and not any(try_value(test, s) is True for inner in no for s in inner):
                best = (weigh_test(test), test)
        if best is None:
            continue
        chosen = [next(s for s in inner if try_value(best[1], s) is True) for inner in yes]
        text = search.explain(chosen, texts, "", 3)
        if text is not None and text.share >= 0.8:
            return Refusal(
                replace_variables(best[1], mapping),
                replace_variables(text.expr, mapping),
                len(refused),
                (Var(name), var),
            )
    return None


def _explain_sums(search: Search, refused: list[Scope], accepted: list[Scope], texts: list[str]) -> Refusal | None:
    """Explain a refusal that names two numbers which are equal in all calls that were accepted."""
    numbers = [_NUMBER.findall(text) for text in texts]
    if {len(one) for one in numbers} != {2} or len(accepted) < FEWEST_SUMS:
        return None
    everything = [*refused, *accepted]
    usable = [n for n, scope in enumerate(everything) if not search.lacks_rows(scope)]
    if sum(n >= len(refused) for n in usable) < FEWEST_SUMS:
        return None
    columns = search.find_numbers([everything[n] for n in usable])
    for place in (0, 1):
        for expr, shown in columns:
            if not all(try_value(expr, s) == float(numbers[n][place]) for n, s in enumerate(refused)):
                continue
            wanted = [float(numbers[n][1 - place]) if n < len(refused) else shown[at] for at, n in enumerate(usable)]
            others = [(e, v) for e, v in columns if e != expr]
            due = fit_linear(others, wanted, 1.0) or fit_linear(others, wanted)
            if due is None:
                continue
            slots: list[Expr] = [expr, due] if place == 0 else [due, expr]
            pieces = _NUMBER.split(texts[0])
            parts: list[str | Expr] = [pieces[0], slots[0], pieces[1], slots[1], pieces[2]]
            return Refusal(Compare(due, "!=", expr), Text(tuple(p for p in parts if p != "")), len(refused))
    return None
