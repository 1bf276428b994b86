"""Sentences with values in them."""

import re
from typing import Any

from trajsmith.envgen.traces.expressions import Expr
from trajsmith.envgen.traces.operations import show_value
from trajsmith.envgen.traces.paths import NONE

_FIRST_MARK = 0xE000
"""First character of the private use area of Unicode; recorded texts seldom have any of them."""
AGREEING = 0.96
"""Share of texts that must show a value."""


def split_template(
    values: list[str], paths: list[tuple[Expr, list[Any]]], numbers: list[tuple[Expr, list[float]]]
) -> list[str | Expr] | None:
    """Return a sentence as fixed texts and values, if all texts are that sentence; None otherwise."""
    values, marked = _mark_values(values, paths)
    tokens = [_tokenize(value) for value in values]
    if len({len(one) for one in tokens}) != 1:
        return None
    parts: list[str | Expr] = []
    for column in zip(*tokens, strict=True):
        options = [
            (expr, shown)
            for expr, shown in [*paths, *numbers]
            if sum(_shows(one, text) for one, text in zip(shown, column, strict=True)) >= AGREEING * len(column)
        ]
        if column[0] in marked and len(set(column)) == 1:
            parts.append(marked[column[0]])
            continue
        fixed = len(set(column)) == 1
        named = [
            one
            for one in options
            if not fixed or (len(column) < 3 and isinstance(one[1][0], str) and len(one[1][0]) > 3)
        ]
        if named:
            parts.append(min(named, key=lambda one: one[0].size())[0])
        elif fixed:
            parts.append(column[0])
        else:
            return None
    joined: list[str | Expr] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def _mark_values(values: list[str], paths: list[tuple[Expr, list[Any]]]) -> tuple[list[str], dict[str, Expr]]:
    """Put a mark in place of values of several words, such as names and telephone numbers, that texts repeat."""
    marked: dict[str, Expr] = {}
    usable = [(expr, shown) for expr, shown in paths if sum(isinstance(one, str) and len(one) > 2 for one in shown)]
    for expr, shown in sorted(usable, key=lambda one: -sum(len(v) for v in one[1] if isinstance(v, str))):
        hits = [isinstance(v, str) and len(v) > 2 and v in text for v, text in zip(shown, values, strict=True)]
        if sum(hits) < AGREEING * len(values) or len(set(map(str, shown))) < 2:
            continue
        mark = chr(_FIRST_MARK + len(marked))
        marked[mark] = expr
        values = [text.replace(str(v), mark, 1) for v, text in zip(shown, values, strict=True)]
    return values, marked


def _shows(value: Any, text: str) -> bool:
    return value is not NONE and show_value(value) == text


def _tokenize(text: str) -> list[str]:

    return re.findall(r"[\w@+-]+(?:[.:,'][\w@+-]+)*|\s+|[^\w\s]", text)
