"""A state in the form in which two runs can be compared: what the environment gives out itself has other names.

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

from chatmodel.surface import as_moment
from environments.diff import diff, escape
from trajectory import JsonObject, JsonValue, Masks, Origin, content_hash

ROUNDS = 3
"""How far a name sees: through references, and references of what refers. Where two things still look alike, one of
them is marked, and it goes on from there."""
_GONE: Any = object()
Place = tuple[str, ...]
"""A path as its parts."""


@dataclass(frozen=True)
class Form:
    """A state as checks see it."""

    initial: JsonObject
    """The initial state in the same form."""
    document: JsonObject
    names: Mapping[str, str]
    """Id in this run to its name."""
    given: Mapping[str, JsonValue]
    """Where a value that the environment gave out stands (RFC 6901, in the document) to what it is in this run."""

    @cached_property
    def changes(self) -> list[JsonObject]:
        """RFC 6902 from the initial to this state."""
        return diff(self.initial, self.document)

    @cached_property
    def hash(self) -> str:
        """Equal for two states that were reached from equal initial states and are equal in this form."""
        return content_hash(self.changes)


def plain_form(initial: JsonObject, state: JsonObject) -> Form:
    """The form of a state of which nothing is masked: itself."""
    return Form(initial, state, {}, {})


def masked_form(initial: JsonObject, state: JsonObject, masks: Masks) -> Form:
    """The form of a state that was reached from `initial`."""
    if not (masks.counters or masks.clock or masks.tables or masks.leaves):
        return plain_form(initial, state)
    return _Former(initial, state, masks).form()


def pattern_of(place: Place, document: JsonObject) -> str:
    """A path with `*` for keys of tables and places in lists. A table is a part that holds objects by key."""
    node: Any = document
    parts: list[str] = []
    for depth, part in enumerate(place):
        row = isinstance(node, dict) and depth == 1 and isinstance(node.get(part), dict)
        parts.append("*" if row or isinstance(node, list) else part)
        node = child(node, part)
    return "/".join(parts)


def child(node: Any, part: str) -> Any:
    """What stands under a key or at a place; a marker if nothing does."""
    if isinstance(node, dict):
        return node.get(part, _GONE)
    if isinstance(node, list) and part.isdigit() and int(part) < len(node):
        return node[int(part)]
    return _GONE


def at(document: Any, place: Place) -> Any:
    """What stands at a place; a marker if nothing does."""
    for part in place:
        document = child(document, part)
    return document


def is_there(document: Any, place: Place) -> bool:
    return at(document, place) is not _GONE


def leaves_of(value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    """Everything in a value that holds nothing else."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves_of(inner, (*place, key))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from leaves_of(inner, (*place, str(index)))
    else:
        yield place, value


def changed_places(initial: JsonObject, state: JsonObject) -> list[Place]:
    """Entries of parts that are objects, and other parts, that are not as they were; what is gone is left out."""
    found: list[Place] = []
    for name, part in state.items():
        before = initial.get(name, _GONE)
        if before is part or before == part:
            continue
        if isinstance(part, dict):
            old = before if isinstance(before, dict) else {}
            found += [(name, key) for key, entry in part.items() if key not in old or old[key] != entry]
        else:
            found.append((name,))
    return found


@dataclass(slots=True)
class _Leaf:
    """A leaf of an entry that changed."""

    where: Place
    value: Any
    origin: Origin | None
    """What it was made of, if the environment gave it out since the start."""
    held: list[str]
    """Ids that it holds."""


class _Former:
    def __init__(self, initial: JsonObject, state: JsonObject, masks: Masks) -> None:
        self.initial = initial
        self.state = state
        self.masks = masks
        self.start = as_moment(initial.get(masks.clock)) if masks.clock else None
        self.places = [place for place in changed_places(initial, state) if place[0] != masks.counters]
        self.leaves = {
            place: [
                _Leaf(at_, value, self._origin(at_, value), []) for at_, value in leaves_of(at(state, place), place)
            ]
            for place in self.places
        }
        self.given: dict[str, JsonValue] = {}
        self.ids: dict[str, str] = {}
        """Id to the name that it has so far."""
        self.finder: re.Pattern[str] | None = None

    def form(self) -> Form:
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
        return Form(initial, document, self.ids, self.given)

    def _origin(self, place: Place, value: Any) -> Origin | None:
        if value is None or not self.masks.leaves:
            return None
        found = self.masks.leaves.get(pattern_of(place, self.state))
        if found is None or at(self.initial, place) == value:
            return None
        if found == "clock" and isinstance(value, str) and as_moment(value) is None:
            return None
        return None if isinstance(value, str) and self._is_old(value) else found

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
        holders: dict[str, list[tuple[Place, list[Place]]]] = {text: [] for text in self.ids}
        for place, leaves in self.leaves.items():
            own: dict[str, list[Place]] = {text: [("*",)] for text in place[1:] if text in self.ids}
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
            alike = _alike(self.ids)
            if not alike:
                break
            marks[alike[0]] = len(marks)  # any of them will do: nothing tells them apart
        self.ids = {text: f"new:{colour}" for text, colour in self.ids.items()}

    def _fixed(self, place: Place) -> str:
        """Hash of what an entry holds beside ids."""
        shown = [[leaf.where[len(place) :], self._masked(leaf)] for leaf in self.leaves[place] if not leaf.held]
        key = "" if place[-1] in self.ids else place[-1]
        return content_hash([place[0], key, sorted(shown, key=lambda leaf: leaf[0])], 16)

    def _masked(self, leaf: _Leaf) -> Any:
        value = leaf.value
        if leaf.held and self.finder is not None:
            return self.ids.get(value) or self.finder.sub(lambda found: self.ids[found.group(0)], value)
        if leaf.origin == "clock":
            return self._since(value)
        if leaf.origin == "chance":
            return f"<{type(value).__name__}>"
        return "<id>" if leaf.origin == "id" else value

    def _since(self, value: Any) -> Any:
        """A time by its distance from the clock at the start; only that it is one where there is no such clock."""
        moment = as_moment(value)
        if moment is None or self.start is None:
            return "<time>"
        if isinstance(moment, datetime) and isinstance(self.start, datetime):
            return f"start{(moment.replace(tzinfo=None) - self.start.replace(tzinfo=None)).total_seconds():+.0f}s"
        days = date(moment.year, moment.month, moment.day) - date(self.start.year, self.start.month, self.start.day)
        return f"start{days.days:+d}d"

    def _put(self, document: JsonObject, place: Place) -> None:
        """Put the masked entry in the document, which shares the rest with the state."""
        name, key = place[0], place[-1]
        masked = {leaf.where: leaf for leaf in self.leaves[place] if leaf.held or leaf.origin}
        renamed = len(place) == 2 and key in self.ids and not is_there(self.initial, place)
        if not masked and not renamed:
            return
        if len(place) == 1:
            document[name] = self._copy(place, document[name], masked, (escape(name),))
            return
        if document[name] is self.state[name]:
            document[name] = dict(document[name])
        document[name].pop(key)
        shown = self.ids[key] if renamed else key
        document[name][shown] = self._copy(place, at(self.state, place), masked, (escape(name), escape(shown)))

    def _copy(self, place: Place, value: Any, masked: Mapping[Place, _Leaf], shown: Place) -> Any:
        if isinstance(value, dict) and value:
            return {
                key: self._copy((*place, key), inner, masked, (*shown, escape(key))) for key, inner in value.items()
            }
        if isinstance(value, list) and value:
            return [self._copy((*place, str(n)), inner, masked, (*shown, str(n))) for n, inner in enumerate(value)]
        if place not in masked:
            return value
        self.given["/" + "/".join(shown)] = value
        return self._masked(masked[place])


def _alike(colours: Mapping[str, str]) -> list[str]:
    """Ids of one colour, of the first colour that several have."""
    groups: dict[str, list[str]] = {}
    for text, colour in colours.items():
        groups.setdefault(colour, []).append(text)
    return next((groups[colour] for colour in sorted(groups) if len(groups[colour]) > 1), [])


def _has_space(text: str) -> bool:
    return any(character.isspace() for character in text)
