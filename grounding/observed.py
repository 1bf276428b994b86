"""Values in earlier results that no edge of the graph speaks of: found by the names under which they stand."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from grounding.fields import SchemaField
from grounding.names import tool_noun, words
from grounding.paths import join, split
from grounding.references import Unresolved, pick, resolve
from grounding.rows import likeness
from trajectory import FromOutput, GoldCall

ALIKE = 0.5
"""Likeness of names from which an earlier result may fill a parameter."""
DEEPEST = 6


def observed(
    field: SchemaField, calls: Sequence[GoldCall], rng: random.Random
) -> Iterator[tuple[float, Any, FromOutput]]:
    """(likeness, value, reference) of what earlier results hold under names alike, the latest result first."""
    name = words(field.name)
    for number in range(len(calls) - 1, -1, -1):
        call = calls[number]
        for path, around in leaf_paths(call.result, tool_noun(call.tool)):
            score = likeness(name, field.context, (*around[-1:], *words(split(path)[-1]))) if "." in path else 0.0
            score = max(score, likeness(name, field.context, words(_last(path))))
            if score < ALIKE:
                continue
            for value, selectors in pick(call.result, path, rng):
                reference = FromOutput(call=number, path=path, selectors=selectors)
                if not isinstance(value, list) and _leads_to(reference, call.result, value):
                    yield score, value, reference


def _last(path: str) -> str:
    return next((part for part in reversed(split(path)) if part != "*"), "")


def leaf_paths(content: Any, around: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """(general path of a scalar, words of what it belongs to) of a result, each path once."""
    found: dict[str, tuple[str, ...]] = {}

    def walk(node: Any, parts: tuple[str, ...], about: tuple[str, ...]) -> None:
        if len(parts) > DEEPEST:
            return
        if isinstance(node, dict):
            for key, child in node.items():
                if split(key) == (key,):
                    walk(child, (*parts, key), words(parts[-1]) if parts and parts[-1] != "*" else about)
        elif isinstance(node, list):
            for child in node[:20]:
                walk(child, (*parts, "*"), words(parts[-1]) if parts else about)
        elif node is not None and node != "" and parts:
            found.setdefault(join(parts), about)

    walk(content, (), around)
    return list(found.items())


def _leads_to(reference: FromOutput, result: Any, value: Any) -> bool:
    try:
        return bool(resolve(reference, result) == value)
    except Unresolved:
        return False
