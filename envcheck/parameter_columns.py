"""Maps parameters to columns and relations of the state, and finds related rows."""

import random
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from trajsmith.envcheck.facts.state_columns import StateColumns
from trajsmith.envcheck.state_shape import Key, Row
from trajsmith.envcheck.state_view import View
from trajsmith.grounding import SchemaField, is_identifier, split_name
from trajsmith.phrasing import singularize

NEAR = 2
"""References that are followed from a row to the rows near it."""
MANY = 24
"""Rows near a row, per relation."""


class ParameterColumns:
    """Maps parameters to columns, once per environment."""

    def __init__(self, data: StateColumns) -> None:
        self.data = data
        self._columns: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for relation, column in data.columns:
            self._columns[column.rsplit(".", 1)[-1]].append((relation, column))
        self._known: dict[tuple[str, str], list[tuple[str, str]]] = {}

    def entity(self, name: str) -> str:
        """The relation whose rows a parameter or field of this name identifies; empty if none."""
        exact = [relation for relation, column in self.data.identities.items() if column == name]
        if exact:
            return exact[0]
        parts = split_name(name)
        if not parts or not (is_identifier(name) or name.endswith("s")):
            return ""
        for relation in self.data.relations:
            noun = split_name(relation.rsplit(".", 1)[-1])
            if noun and self.data.nodes[relation].kind in ("table", "list") and singularize(noun[-1]) in parts[:-1]:
                return relation
        return ""

    def columns(self, tool: str, leaf: SchemaField) -> list[tuple[str, str]]:
        """Columns that may hold what a parameter wants, the likeliest first."""
        known = self._known.get((tool, leaf.path))
        if known is None:
            known = self._known[tool, leaf.path] = self._find(tool, leaf)
        return known

    def _find(self, tool: str, leaf: SchemaField) -> list[tuple[str, str]]:
        name = leaf.name
        entity = self.entity(name)
        if not entity and name in ("id", "key", "name"):
            nouns = set(split_name(tool))
            entity = next(
                (
                    r
                    for r in self.data.relations
                    if singularize(split_name(r)[-1] if split_name(r) else "") in nouns and name != "name"
                ),
                "",
            )
        if entity:
            identity = self.data.identities.get(entity)
            return [(entity, identity)] if identity else [(entity, "")]
        exact = [place for place in self._columns.get(name, []) if self._fits(place, leaf)]
        if exact:
            return exact
        parts = split_name(name)
        ending = [
            place
            for column, places in self._columns.items()
            for place in places
            if split_name(column)[-1:] == parts[-1:] and self._fits(place, leaf) and parts[-1:] not in _VAGUE
        ]
        near = [place for place in ending if set(split_name(place[0])) & set(parts)]
        return near or ending

    def _fits(self, place: tuple[str, str], leaf: SchemaField) -> bool:
        kinds = self.data.columns[place].kinds
        wanted = {"string": {"text", "day", "moment"}, "integer": {"number"}, "number": {"number"}, "array": {"list"}}
        allowed = set().union(*(wanted.get(kind, {kind}) for kind in leaf.types))
        allowed |= {"text"} if "array" in leaf.types else set()
        return not leaf.types or bool(kinds & allowed) or not kinds


_VAGUE = [("date",), ("time",), ("amount",), ("day",), ("count",), ("limit",), ("number",), ("type",), ("text",)]


class RelatedRows:
    """Rows of one state, and which are near which: joined by references, either way."""

    def __init__(self, view: View, data: StateColumns) -> None:
        self.view = view
        self._data = data
        self._back: dict[tuple[str, str], list[tuple[str, Key]]] = defaultdict(list)
        self._index: dict[str, dict[str, Key]] = {}
        for reference in data.references:
            for key, row in view.rows(reference.relation).items():
                value = row.get(reference.column)
                for item in value if isinstance(value, list) else [value]:
                    if item is not None:
                        self._back[reference.target, str(item)].append((reference.relation, key))

    def row(self, relation: str, name: str) -> tuple[Key, Row] | None:
        """A row by the last part of its key."""
        index = self._index.get(relation)
        if index is None:
            index = self._index[relation] = {key[-1]: key for key in self.view.rows(relation)}
        key = index.get(name)
        return None if key is None else (key, self.view.rows(relation)[key])

    def around(self, relation: str, key: Key) -> dict[str, list[Key]]:
        """Rows near a row, by relation; the row itself first."""
        rows_by_relation: dict[str, dict[Key, None]] = {relation: {key: None}}
        edge = [(relation, key)]
        for _ in range(NEAR):
            step: list[tuple[str, Key]] = []
            for name, place in edge:
                for other, there in self._steps(name, place):
                    rows = rows_by_relation.setdefault(other, {})
                    if there not in rows and len(rows) < MANY:
                        rows[there] = None
                        step.append((other, there))
            edge = step
        return {name: list(rows) for name, rows in rows_by_relation.items()}

    def _steps(self, relation: str, key: Key) -> list[tuple[str, Key]]:
        row = self.view.rows(relation).get(key, {})
        neighbours = list(self._back.get((relation, key[-1]), ()))
        for reference in self._data.references:
            if reference.relation != relation:
                continue
            value = row.get(reference.column)
            for item in value if isinstance(value, list) else [value]:
                target = None if item is None else self.row(reference.target, str(item))
                if target is not None:
                    neighbours.append((reference.target, target[0]))
        parent = relation.rpartition(".")[0]
        if parent and key[:-1] in self.view.rows(parent):
            neighbours.append((parent, key[:-1]))
        for child in self._data.relations:
            if child.startswith(f"{relation}."):
                neighbours += [(child, place) for place in self.view.rows(child) if place[: len(key)] == key]
        return neighbours


def pick_focus(nearby: RelatedRows, relations: list[str], rng: random.Random) -> Mapping[str, list[Key]]:
    """Rows around one random row of one of these relations."""
    filled = [name for name in relations if nearby.view.rows(name)]
    if not filled:
        return {}
    relation = rng.choice(filled)
    return nearby.around(relation, rng.choice(list(nearby.view.rows(relation))))


def flatten_lists(values: list[Any]) -> list[Any]:
    """Lists inside a list opened."""
    return [item for value in values for item in (value if isinstance(value, list) else [value])]
