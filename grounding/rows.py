"""What a state knows, row by row: every value under the names that a parameter could have for it.

`ValueSource.propose` takes values that stand under exactly the parameter's name. States of foreign environments are
not that kind: ids are keys of maps, a thing's parent is the key of a map around it, `repo` is `repository_name`. A row
here holds all that belongs together, under several names, so that several parameters of one call get values that fit.
"""

import functools
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trajsmith.grounding.names import GENERIC, split_name
from trajsmith.records import JsonObject

Alias = tuple[str, ...]
"""Words of a name."""
MOST_ROWS = 1500
"""Rows that are looked at, of one state."""
_JOINT = re.compile(r"(?:(?<!\s)\s+)?[_:|/,]\s*|(?<!\s)\s+-\s+|(?<=[A-Za-z])-(?=[A-Za-z])")
SPOKEN = 0.6
"""What a row gains for each of its values that the tool's name or refusals speak of, beside likenesses of 1."""
FAINT = 0.1
"""Likeness of a row's key to a parameter that nothing in the row is named like."""
NEAR = 0.2
"""Likeness from which a name may stand for another."""


@dataclass(frozen=True, slots=True)
class StateRow:
    """Values that belong together, by the words of the names that they might be asked for by."""

    values: dict[Alias, Any]
    lists: dict[Alias, Any]
    """Lists and objects in it."""

    @property
    def identity(self) -> tuple[float, Any] | None:
        """Key that identifies the row in its map; for parameters that no field is named like."""
        return (FAINT, self.values[("key",)]) if ("key",) in self.values else None


class RowIndex:
    """The rows of one state."""

    def __init__(self, state: JsonObject, before: "RowIndex | None" = None) -> None:
        """`before` is another index whose rows come too, such as that of the state before results are added."""
        self.rows: list[StateRow] = []
        self._owners: dict[Any, set[Alias]] = defaultdict(set, before._owners if before else {})
        for name, content in state.items():
            self._own(split_name(name), content)
        top = {split_name(name): value for name, value in state.items() if _scalar(value)}
        lists = {split_name(name): value for name, value in state.items() if isinstance(value, dict | list) and value}
        if top or lists:
            self.rows.append(StateRow(top, lists))
        for name, content in state.items():
            self._walk(content, split_name(name), {}, 0)
        self.rows += before.rows if before else []
        self.aliases = sorted({alias for row in self.rows for alias in row.values})
        self.list_aliases = sorted({alias for row in self.rows for alias in row.lists})
        self._ranked: dict[tuple[Alias, Alias, bool], list[tuple[float, Alias]]] = {}

    def ranked(self, name: Alias, context: Alias, lists: bool = False) -> list[tuple[float, Alias]]:
        """Names of the state that may stand for a parameter's, likest first."""
        key = (name, context, lists)
        if key not in self._ranked:
            aliases = self.list_aliases if lists else self.aliases
            scored = [(score_likeness(name, context, alias), alias) for alias in aliases]
            self._ranked[key] = sorted(
                (pair for pair in scored if pair[0] >= NEAR), key=lambda pair: (-pair[0], pair[1])
            )
        return self._ranked[key]

    def values(self, name: Alias, context: Alias, lists: bool = False) -> Iterator[tuple[float, Any]]:
        """(likeness, value), likest first; a value may come several times."""
        for score, alias in self.ranked(name, context, lists):
            for row in self.rows:
                value = (row.lists if lists else row.values).get(alias)
                if value is not None:
                    yield score, value

    def of_row(self, row: StateRow, name: Alias, context: Alias) -> tuple[float, Any] | None:
        """The value of a row that fits a parameter's name best."""
        for score, alias in self.ranked(name, context):
            if alias in row.values:
                return score, row.values[alias]
        return None

    def _own(self, name: Alias, content: Any, depth: int = 0) -> None:
        """Note which values identify rows of which kind."""
        if depth > 4:
            return
        if isinstance(content, dict):
            if _is_map(content):
                for key, child in content.items():
                    if isinstance(child, dict) and name:
                        self._owners[key].add(name)
                    self._own((), child, depth + 1)
                return
            for key, child in content.items():
                self._own(split_name(key), child, depth + 1)
        elif isinstance(content, list):
            for item in content[:200]:
                if isinstance(item, dict):
                    for key, value in item.items():
                        if split_name(key) in (("id",), (*name, "id")) and _scalar(value):
                            self._owners[value].add(name)

    def _walk(self, node: Any, name: Alias, around: dict[Alias, Any], depth: int) -> None:
        if depth > 6 or len(self.rows) >= MOST_ROWS:
            return
        if isinstance(node, dict) and _is_map(node):
            for key, child in node.items():
                self._entry(key, child, name, around, depth)
        elif isinstance(node, dict):
            self._record(node, name, around, depth)
        elif isinstance(node, list):
            for item in node:
                if isinstance(item, dict):
                    self._record(item, name, around, depth)
                elif _scalar(item) and len(self.rows) < MOST_ROWS:
                    self.rows.append(StateRow({**around, name: item, **self._owned(item)}, {}))

    def _entry(self, key: str, child: Any, name: Alias, around: dict[Alias, Any], depth: int) -> None:
        """One entry of a map: its key identifies it, unless it is known to identify something else.

        Of a map in a map, the name stands for the outer keys, unless those are known to be something else.
        """
        owned = self._owned(key)
        own: dict[Alias, Any] = {("key",): key, ("id",): key}
        if name:
            own |= {name: key, (*name, "id"): key, (*name, "name"): key}
        if isinstance(child, dict) and not _is_map(child):
            self._record(child, name, {**around, **owned, **own}, depth + 1)
        elif isinstance(child, dict | list):
            others = self._owners.get(key, set()) - {name}
            inner = name if others or isinstance(child, list) else ()
            self._walk(child, inner, {**around, **own, **owned}, depth + 1)
        else:
            self.rows.append(StateRow({**around, **own, **owned, ("value",): child, (*name, "value"): child}, {}))

    def _record(self, node: dict[str, Any], name: Alias, around: dict[Alias, Any], depth: int) -> None:
        if len(self.rows) >= MOST_ROWS:
            return
        own: dict[Alias, Any] = {}
        for value in node.values():
            if _scalar(value):
                own.update(self._owned(value))
        for key, value in node.items():
            if _scalar(value):
                own[(*name, *split_name(key))] = value
                own[split_name(key)] = value
            elif isinstance(value, dict) and not _is_map(value):
                inner = {(*split_name(key), *split_name(sub)): deep for sub, deep in value.items() if _scalar(deep)}
                own = {**inner, **own}
        lists = {split_name(key): value for key, value in node.items() if isinstance(value, dict | list) and value}
        self.rows.append(StateRow({**around, **own}, lists))
        passed = {
            alias: value for alias, value in own.items() if len(alias) > 1 or (alias[:1] and alias[0] not in GENERIC)
        }
        for key, value in node.items():
            if isinstance(value, dict | list):
                self._walk(value, split_name(key), {**around, **passed}, depth + 1)

    def _owned(self, value: Any) -> dict[Alias, Any]:
        return {alias: value for name in self._owners.get(value, ()) for alias in (name, (*name, "id"))}


def _scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and value != ""


def _is_map(node: dict[str, Any]) -> bool:
    """True for an object whose keys are data: all its values are of one form, and its keys are not that of a record."""
    values = list(node.values())
    if not values:
        return False
    if all(isinstance(value, dict) for value in values):
        first = set(values[0])
        alike = all(first & set(value) or not value for value in values)
        return alike or len(values) > 3 or all(_is_map(value) for value in values)
    if all(isinstance(value, list) for value in values):
        return True
    kinds = {type(value) for value in values}
    return len(kinds) == 1 and not all(key.replace("_", "").isalpha() and key.islower() for key in node)


@functools.lru_cache(maxsize=100_000)
def score_likeness(name: Alias, context: Alias, alias: Alias) -> float:
    """Score from 0 to 1 how well a name of the state may stand for a parameter's.

    Args:
        name: Words of the parameter's name.
        context: Words of what it belongs to, such as the noun of the tool's name.
        alias: Words of the state's name.
    """
    if not name or not alias:
        return 0.0
    if name == alias:
        return 1.0
    if alias == (*context[-1:], *name):
        return 0.95
    if sorted(name) == sorted(alias):
        return 0.8
    same = [_is_same_word(one, other) for one, other in zip(reversed(name), reversed(alias), strict=False)]
    run = next((number for number, score in enumerate(same) if not score), len(same))
    if run == len(name) == len(alias):
        return 0.85
    if len(name) == 1 and _is_abbreviation(name[0], alias):
        return 0.6
    if run:
        about = 0.1 if set(context) & set(alias[: len(alias) - run]) else 0.0
        generic = 0.15 if run == 1 and alias[-1] in GENERIC else 0.0
        return 0.3 + 0.4 * run / max(len(name), len(alias)) + about - generic
    if len(name) < len(alias) and all(_is_same_word(one, other) for one, other in zip(name, alias, strict=False)):
        return 0.4
    if len(name) > len(alias) and all(_is_same_word(one, other) for one, other in zip(name, alias, strict=False)):
        return 0.6 if GENERIC.issuperset(name[len(alias) :]) else 0.35
    return 0.0


def _is_same_word(one: str, other: str) -> bool:
    """The same word, or one is short for the other: repo, repository."""
    short, long = sorted((one, other), key=len)
    return one == other or (len(short) >= 3 and long.startswith(short))


def _is_abbreviation(word: str, alias: Alias) -> bool:
    """Return whether a word abbreviates a name: pid, product id."""
    return len(alias) > 1 and word == "".join(part[0] for part in alias[:-1]) + alias[-1]


def rank_rows(
    index: RowIndex, leaves: Sequence[tuple[Any, Alias, Alias]], rng: random.Random, most: int, spoken: set[str]
) -> list[tuple[float, dict[Any, Any]]]:
    """Rows that say something of several leaves: (weight, leaf to value), best first.

    Args:
        leaves: (leaf, words of its name, words of its context).
        most: How many rows are given back; equals are chosen at random.
        spoken: Words of the tool's name and of its refusals; rows with one of them as a value come first, such as a
            row whose status is pending.
    """
    weighted: list[tuple[float, float, dict[Any, Any]]] = []
    for row in index.rows:
        values, total = {}, 0.0
        for leaf, name, context in leaves:
            match = index.of_row(row, name, context) or row.identity
            if match is not None:
                values[leaf], total = match[1], total + match[0]
        if values:
            total += SPOKEN * len(spoken.intersection(_states_of(row))) if spoken else 0.0
            weighted.append((total, rng.random(), values))
    weighted.sort(key=lambda entry: (-entry[0], entry[1]))
    return [(total**3, values) for total, _, values in weighted[:most]]


def split_joined_keys(index: RowIndex, parts: int, rng: random.Random, most: int) -> list[tuple[str, ...]]:
    """Split keys of maps that several values were joined to, such as "2026-03-02_LON_PAR", into so many parts."""
    keys = dict.fromkeys(row.identity[1] for row in index.rows if row.identity is not None)
    split = (tuple(_JOINT.split(key)) for key in keys if isinstance(key, str))
    parts_of_keys = [tuple(part for part in key_parts if part) for key_parts in split]
    fitting = [key_parts for key_parts in parts_of_keys if len(key_parts) == parts > 1]
    return rng.sample(fitting, min(len(fitting), most))


def _states_of(row: StateRow) -> set[str]:
    """Single words that are values of a row."""
    return {value.lower() for value in row.values.values() if isinstance(value, str) and value.isalpha()}


def sample_texts(index: RowIndex, rng: random.Random, most: int) -> list[str]:
    """Sample texts that a person might search for: short texts of the state, and single words of them."""
    texts = _short(
        value for row in index.rows for alias, value in row.values.items() if alias[-1:] and alias[-1] in _TELLING
    )
    chosen = rng.sample(texts, min(len(texts), most))
    phrases = [part for text in chosen for part in (text, max(text.split(), key=len).strip(".,;:!?"))]
    return list(dict.fromkeys(phrases))


_TELLING = frozenset(
    {
        "name",
        "title",
        "subject",
        "label",
        "headline",
        "keyword",
        "description",
        "content",
        "text",
        "topic",
        "body",
        "city",
    }
)


def _short(values: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(value for value in values if isinstance(value, str) and 2 < len(value) <= 80))
