"""Values in earlier results that no edge of the graph speaks of: found by the names under which they stand."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from trajsmith.grounding.fields import SchemaField
from trajsmith.grounding.names import get_tool_noun, split_name
from trajsmith.grounding.paths import iterate_nodes, join_path, split_path
from trajsmith.grounding.references import leads_to, pick_values
from trajsmith.grounding.rows import score_likeness
from trajsmith.records import FromOutput, GoldCall

ALIKE = 0.5
"""Likeness of names from which an earlier result may fill a parameter."""
DEEPEST = 6


def find_observed_values(
    field: SchemaField, calls: Sequence[GoldCall], rng: random.Random
) -> Iterator[tuple[float, Any, FromOutput]]:
    """(likeness, value, reference) of what earlier results hold under names alike, the latest result first."""
    name = split_name(field.name)
    for number in range(len(calls) - 1, -1, -1):
        call = calls[number]
        for path, around in list_leaf_paths(call.result, get_tool_noun(call.tool)):
            score = (
                score_likeness(name, field.context, (*around[-1:], *split_name(split_path(path)[-1])))
                if "." in path
                else 0.0
            )
            score = max(score, score_likeness(name, field.context, split_name(_last(path))))
            if score < ALIKE:
                continue
            for value, selectors in pick_values(call.result, path, rng):
                reference = FromOutput(call=number, path=path, selectors=selectors)
                if not isinstance(value, list) and leads_to(reference, call.result, value):
                    yield score, value, reference


def _last(path: str) -> str:
    return next((part for part in reversed(split_path(path)) if part != "*"), "")


def list_leaf_paths(content: Any, around: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    """(general path of a scalar, words of what it belongs to) of a result, each path once."""
    paths: dict[str, tuple[str, ...]] = {}
    for parts, node in iterate_nodes(content, rows=20, deepest=DEEPEST):
        if parts and not isinstance(node, dict | list) and node is not None and node != "":
            owner = next((part for part in reversed(parts[:-1]) if part != "*"), None)
            paths.setdefault(join_path(parts), around if owner is None else split_name(owner))
    return list(paths.items())
