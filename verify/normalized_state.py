"""Normalized states for comparing two runs: values that the environment generates are renamed.

Two runs that do the same, in another order or at another time, get other ids, timestamps and random values. The
`Masks` of a task say where such values stand. Here they are replaced by what they mean: an id by a name made of the
content of what it identifies (and of what refers to it), a time by its distance from the clock at the start, a random
value by its type. Entities that were made in another order then have the same names, wrong ones another.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any

import orjson

from trajsmith.environments import diff, escape_pointer
from trajsmith.phrasing import parse_datetime
from trajsmith.records import JsonObject, JsonValue, NondeterminismMask, Origin, content_hash

ROUNDS = 3
"""How far a name sees: through references, and references of what refers. Where two things still look alike, one of
them is marked, and it goes on from there."""
_MISSING: Any = object()
ValuePath = tuple[str, ...]
"""A path as its parts."""


@dataclass(frozen=True)
class NormalizedState:
    """Normalized state as checks see it."""

    initial: JsonObject
    """The initial state in the same form."""
    document: JsonObject
    names: Mapping[str, str]
    """Id in this run to its name."""
    generated_values: Mapping[str, JsonValue]
    """Where a value that the environment gave out stands (RFC 6901, in the document) to what it is in this run."""

    @cached_property
    def changes(self) -> list[JsonObject]:
        """RFC 6902 from the initial to this state."""
        return diff(self.initial, self.document)

    @cached_property
    def hash(self) -> str:
        """Return a hash that is equal for equal normalized states reached from equal initial states."""
        return content_hash(self.changes)


def wrap_unmasked_state(initial: JsonObject, state: JsonObject) -> NormalizedState:
    """Wrap a state without nondeterminism masks."""
    return NormalizedState(initial, state, {}, {})


def normalize_state(initial: JsonObject, state: JsonObject, masks: NondeterminismMask) -> NormalizedState:
    """Normalize a state that was reached from `initial`."""
    if not (masks.counters or masks.clock or masks.tables or masks.leaves):
        return wrap_unmasked_state(initial, state)
    return _StateNormalizer(initial, state, masks).form()


def build_place_pattern(place: ValuePath, document: JsonObject) -> str:
    """A path with `*` for keys of tables and places in lists. A table is a part that holds objects by key."""
    node: Any = document
    parts: list[str] = []
    for depth, part in enumerate(place):
        row = isinstance(node, dict) and depth == 1 and isinstance(node.get(part), dict)
        parts.append("*" if row or isinstance(node, list) else part)
        node = get_child(node, part)
    return "/".join(parts)


def get_child(node: Any, part: str) -> Any:
    """Return the value at a key or index; a marker if there is none."""
    if isinstance(node, dict):
        return node.get(part, _MISSING)
    if isinstance(node, list) and part.isdigit() and int(part) < len(node):
        return node[int(part)]
    return _MISSING


def get_at_place(document: Any, place: ValuePath) -> Any:
    """Return the value at a path; a marker if there is none."""
    for part in place:
        document = get_child(document, part)
    return document


def is_there(document: Any, place: ValuePath) -> bool:
    return get_at_place(document, place) is not _MISSING


def iter_leaves(value: Any, place: ValuePath) -> Iterator[tuple[ValuePath, Any]]:
    """Yield all leaves of a value with their paths."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from iter_leaves(inner, (*place, key))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from iter_leaves(inner, (*place, str(index)))
    else:
        yield place, value


def find_changed_places(initial: JsonObject, state: JsonObject) -> list[ValuePath]:
    """Return the changed entries of object parts, and other changed parts; deleted ones are left out."""
    places: list[ValuePath] = []
    for name, part in state.items():
        before = initial.get(name, _MISSING)
        if before is part or before == part:
            continue
        if isinstance(part, dict):
            old = before if isinstance(before, dict) else {}
            places += [(name, key) for key, entry in part.items() if key not in old or old[key] != entry]
        else:
            places.append((name,))
    return places


@dataclass(slots=True)
class _Leaf:
    """A leaf of an entry that changed."""

    where: ValuePath
    value: Any
    origin: Origin | None
    """What it was made of, if the environment gave it out since the start."""
    held: list[str]
    """Ids that it holds."""


class _StateNormalizer:
    def __init__(self, initial: JsonObject, state: JsonObject, masks: NondeterminismMask) -> None:
        self.initial = initial
        self.state = state
        self.masks = masks
        self.start = parse_datetime(initial.get(masks.clock)) if masks.clock else None
        self.places = [place for place in find_changed_places(initial, state) if place[0] != masks.counters]
        self.leaves = {
            place: [
                _Leaf(at_, value, self._origin(at_, value), [])
                for at_, value in iter_leaves(get_at_place(state, place), place)
            ]
            for place in self.places
        }
        self.generated_values: dict[str, JsonValue] = {}
        self.ids: dict[str, str] = {}
        """Id to the name that it has so far."""
        self.finder: re.Pattern[str] | None = None

    def form(self) -> NormalizedState:
        self._find_ids()
        if self.ids:
            self._name()
        document = {key: part for key, part in self.state.items() if key != self.masks.counters}
        initial = {key: part for key, part in self.initial.items() if key != self.masks.counters}
        if self.start is not None and self.masks.clock in document:
            document[self.masks.clock] = self._since(document[self.masks.clock])
            initial[self.masks.clock] = self._since(initial[self.masks.clock])
        for place in self.places:
            self._put(document, place)
        return NormalizedState(initial, document, self.ids, self.generated_values)

    def _origin(self, place: ValuePath, value: Any) -> Origin | None:
        if value is None or not self.masks.leaves:
            return None
        origin = self.masks.leaves.get(build_place_pattern(place, self.state))
        if origin is None or get_at_place(self.initial, place) == value:
            return None
        if origin == "clock" and isinstance(value, str) and parse_datetime(value) is None:
            return None
        return None if isinstance(value, str) and self._is_old(value) else origin

    def _is_old(self, value: str) -> bool:
        """True for a text that stood in the initial state: it was brought back or copied, not given out."""
        return value != self.initial.get(self.masks.clock) and orjson.dumps(value) in self.text

    @cached_property
    def text(self) -> bytes:
        return orjson.dumps(self.initial)

    def _find_ids(self) -> None:
        for place in self.places:
            new = len(place) == 2 and place[0] in self.masks.tables and not is_there(self.initial, place)
            if new and not self._is_old(place[1]):
                self.ids[place[1]] = "id"
        for leaf in self._all_leaves():
            if leaf.origin == "id" and isinstance(leaf.value, str) and leaf.value and not _has_space(leaf.value):
                self.ids.setdefault(leaf.value, "id")
        if not self.ids:
            return
        either = "|".join(re.escape(text) for text in sorted(self.ids, key=len, reverse=True))
        self.finder = re.compile(rf"(?<![A-Za-z0-9])(?:{either})(?![A-Za-z0-9])")
        for leaf in self._all_leaves():
            if isinstance(leaf.value, str):
                leaf.held = [leaf.value] if leaf.value in self.ids else self.finder.findall(leaf.value)

    def _all_leaves(self) -> Iterator[_Leaf]:
        for leaves in self.leaves.values():
            yield from leaves

    def _name(self) -> None:
        """Names by what they stand for: hashes of the entries that hold an id, refined through references."""
        holders: dict[str, list[tuple[ValuePath, list[ValuePath]]]] = {text: [] for text in self.ids}
        for place, leaves in self.leaves.items():
            own: dict[str, list[ValuePath]] = {text: [("*",)] for text in place[1:] if text in self.ids}
            for leaf in leaves:
                for text in leaf.held:
                    own.setdefault(text, []).append(leaf.where[len(place) :])
            for text, wheres in own.items():
                holders[text].append((place, wheres))
        involved = {place for held in holders.values() for place, _ in held}
        fixed = {place: self._fixed(place) for place in involved}
        moving = {
            place: sorted((leaf for leaf in self.leaves[place] if leaf.held), key=lambda leaf: leaf.where)
            for place in involved
        }
        marks: dict[str, int] = {}
        while True:
            for _ in range(ROUNDS):
                entries = {
                    place: content_hash(
                        [fixed[place], self.ids.get(place[-1]), [self._masked(leaf) for leaf in moving[place]]], 16
                    )
                    for place in involved
                }
                self.ids = {
                    text: content_hash([marks.get(text), sorted([entries[p], wheres] for p, wheres in held)], 12)
                    for text, held in holders.items()
                }
            alike = _find_ties(self.ids)
            if not alike:
                break
            marks[alike[0]] = len(marks)  # any of them will do: nothing tells them apart
        self.ids = {text: f"new:{colour}" for text, colour in self.ids.items()}

    def _fixed(self, place: ValuePath) -> str:
        """Hash of what an entry holds beside ids."""
        shown = [[leaf.where[len(place) :], self._masked(leaf)] for leaf in self.leaves[place] if not leaf.held]
        key = "" if place[-1] in self.ids else place[-1]
        return content_hash([place[0], key, sorted(shown, key=lambda leaf: leaf[0])], 16)

    def _masked(self, leaf: _Leaf) -> Any:
        value = leaf.value
        if leaf.held and self.finder is not None:
            return self.ids.get(value) or self.finder.sub(lambda match: self.ids[match.group(0)], value)
        if leaf.origin == "clock":
            return self._since(value)
        if leaf.origin == "chance":
            return f"<{type(value).__name__}>"
        return "<id>" if leaf.origin == "id" else value

    def _since(self, value: Any) -> Any:
        """A time by its distance from the clock at the start; only that it is one where there is no such clock."""
        moment = parse_datetime(value)
        if moment is None or self.start is None:
            return "<time>"
        if isinstance(moment, datetime) and isinstance(self.start, datetime):
            return f"start{(moment.replace(tzinfo=None) - self.start.replace(tzinfo=None)).total_seconds():+.0f}s"
        days = date(moment.year, moment.month, moment.day) - date(self.start.year, self.start.month, self.start.day)
        return f"start{days.days:+d}d"

    def _put(self, document: JsonObject, place: ValuePath) -> None:
        """Put the masked entry in the document, which shares the rest with the state."""
        name, key = place[0], place[-1]
        masked = {leaf.where: leaf for leaf in self.leaves[place] if leaf.held or leaf.origin}
        renamed = len(place) == 2 and key in self.ids and not is_there(self.initial, place)
        if not masked and not renamed:
            return
        if len(place) == 1:
            document[name] = self._copy(place, document[name], masked, (escape_pointer(name),))
            return
        if document[name] is self.state[name]:
            document[name] = dict(document[name])
        document[name].pop(key)
        shown = self.ids[key] if renamed else key
        document[name][shown] = self._copy(
            place, get_at_place(self.state, place), masked, (escape_pointer(name), escape_pointer(shown))
        )

    def _copy(self, place: ValuePath, value: Any, masked: Mapping[ValuePath, _Leaf], shown: ValuePath) -> Any:
        if isinstance(value, dict) and value:
            return {
                key: self._copy((*place, key), inner, masked, (*shown, escape_pointer(key)))
                for key, inner in value.items()
            }
        if isinstance(value, list) and value:
            return [self._copy((*place, str(n)), inner, masked, (*shown, str(n))) for n, inner in enumerate(value)]
        if place not in masked:
            return value
        self.generated_values["/" + "/".join(shown)] = value
        return self._masked(masked[place])


def _find_ties(colours: Mapping[str, str]) -> list[str]:
    """Ids of one colour, of the first colour that several have."""
    groups: dict[str, list[str]] = {}
    for text, colour in colours.items():
        groups.setdefault(colour, []).append(text)
    return next((groups[colour] for colour in sorted(groups) if len(groups[colour]) > 1), [])


def _has_space(text: str) -> bool:
    return any(character.isspace() for character in text)
