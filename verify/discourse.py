"""What a reader of a dialogue knows: the entities that were named, shown, created and changed, and in which lists.

The model is built call by call and message by message, from the gold calls of a task or the recorded calls of a
trajectory. `trajsmith.verify.discourse_resolution` reads referring expressions by it.
"""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from trajsmith.grounding import get_tool_noun, is_extreme_certain, is_identifier, is_list_cut, join_path, split_path
from trajsmith.phrasing import NounLexicon, Wording
from trajsmith.records import FromOutput, JsonValue
from trajsmith.verify.discourse_entities import DiscourseEntity, Focus, ShownList

DEEPEST = 5
"""Levels of a result that are read."""
MOST_ROWS = 200
_SHORT_IDS = frozenset({"id", "code", "key", "number", "uuid"})
"""Fields that identify what a tool lists, without its noun: the `code` of a coupon is a `coupon_code` elsewhere."""


class DiscourseModel:
    """Entities of one dialogue up to now.

    Args:
        wording: Words and tools of the environment.
        initial: Text of the initial state, if it is known: an id that stands in it was not created in the dialogue.
        now: The clock, if it is known: people leave out the year of near dates.
    """

    def __init__(self, wording: Wording, initial: str | None = None, now: date | None = None) -> None:
        self.wording = wording
        self.initial = initial
        self.now = now if now and now.year > date.min.year else None
        self.subjects: dict[int, tuple[str, str]] = {}
        """Call to the entity that its whole result describes."""
        self.lexicon, self.kinds = get_lexicon(wording)
        self.entities: dict[str, dict[str, DiscourseEntity]] = {}
        self.lists: list[ShownList] = []
        self.turn = 0
        self.turn_start = 0
        """Index of the first call of this turn."""
        self.horizon: int | None = None
        """Index of the call that an expression is read for: what later calls show is not there yet; None: no bound."""
        self.clock = 0
        self.blurred: dict[str, int] = {}
        """Kind to the time at which several of it were shown: "that order" means none of them."""

    # What happens

    def begin_turn(self, turn: int, call: int) -> None:
        """A user message opens a turn; `call` is the index of its first call."""
        self.turn, self.turn_start = turn, call

    def observe_call(
        self, index: int, tool: str, arguments: Mapping[str, Any], result: JsonValue, effect: str, ok: bool = True
    ) -> None:
        """Take in a call and its result."""
        named = [(name, str(value)) for name, value in arguments.items() if name in self.kinds and _is_id(value)]
        for name, value in named:
            entity = self._entity(name, value, index)
            if ok and effect == "write":
                entity.changed = index
        if not ok:
            return
        plain = {name: value for name, value in arguments.items() if name not in self.kinds}
        context = _CallContext(index, tool, arguments, result, plain, effect == "write")
        self._read(context, result, (), frozenset(named))

    def _entity(self, kind: str, value: str, index: int) -> DiscourseEntity:
        known = self.entities.setdefault(kind, {})
        if value not in known:
            known[value] = DiscourseEntity(kind, value, index)
        return known[value]

    def _read(self, call: "_CallContext", node: Any, path: tuple[str, ...], owners: frozenset[tuple[str, str]]) -> None:
        """Take in a part of a result."""
        if len(path) > DEEPEST:
            return
        if isinstance(node, dict):
            self._read_row(call, node, path, owners)
        elif isinstance(node, list):
            rows = [self._read_row(call, row, (*path, "*"), owners) for row in node[:MOST_ROWS]]
            kind = next((row[0] for row in rows if row), "")
            if kind:
                where = join_path(path)
                cut = is_list_cut(self.wording.tools.get(call.tool), call.arguments, call.result, where)
                ids = tuple(row[1] for row in rows if row and row[0] == kind)
                self.lists.append(ShownList(call.index, call.tool, where, kind, ids, cut))

    def _read_row(
        self, call: "_CallContext", row: Any, path: tuple[str, ...], owners: frozenset[tuple[str, str]]
    ) -> tuple[str, str] | None:
        """Take in one object; return the kind and id of what it describes."""
        if not isinstance(row, dict):
            return None
        own = self.find_own_id(call.tool, row)
        if own:
            if not path:
                self.subjects[call.index] = own
            self._update(call, own, row, owners)
            owners = owners | {own}
        else:
            self._note_mention(call, row)
        for name, value in row.items():
            if isinstance(value, dict | list) and value:
                self._read(call, value, (*path, name), owners)
        return own

    def find_own_id(self, tool: str, row: Mapping[str, Any]) -> tuple[str, str] | None:
        """Return the kind and id of what an object describes: its first id, if tools take that; others point away."""
        for name, value in row.items():
            if not _is_id(value) or not (name in self.kinds or is_identifier(name) or name in _SHORT_IDS):
                continue
            longer = "_".join((*get_tool_noun(tool), name))
            kind = name if name in self.kinds else longer if name in _SHORT_IDS else ""
            return (kind, str(value)) if kind in self.kinds else None
        return None

    def _note_mention(self, call: "_CallContext", row: Mapping[str, Any]) -> None:
        """Take in what an object of a kind that no tool takes says of another one: the product that came back from an
        order may stand for the order.
        """
        ids = [(name, str(value)) for name, value in row.items() if _is_id(value) and is_identifier(name)]
        kind, value = next(((name, value) for name, value in ids if name in self.kinds), ("", ""))
        if not kind or ids[0][0] == kind:
            return
        entity = self._entity(kind, value, call.index)
        for name, content in _iterate_fields(row):
            values = entity.fields.setdefault(f"{ids[0][0]}:{name}", [])
            if content not in values and not name.endswith("_id"):
                values.append(content)

    def _update(
        self, call: "_CallContext", own: tuple[str, str], row: Mapping[str, Any], owners: frozenset[tuple[str, str]]
    ) -> None:
        new = own[1] not in self.entities.get(own[0], {})
        entity = self._entity(*own, call.index)
        if new and call.wrote and (self.initial is None or own[1] not in self.initial):
            entity.created = call.index
        entity.owners |= owners - {own}
        for name, value in (*call.plain.items(), *_iterate_fields(row)):
            values = entity.fields.setdefault(name, [])
            if not values or values[-1] != value:
                values.append(value)
                entity.shown.setdefault(name, []).append(call.index)

    def save_focus(self) -> Focus:
        """Return what is talked about now, to be restored when other words are tried."""
        active = {
            (entity.kind, entity.id): (entity.active, entity.active_turn, frozenset(entity.turns))
            for of_kind in self.entities.values()
            for entity in of_kind.values()
            if entity.active
        }
        return Focus(self.clock, active, dict(self.blurred))

    def restore_focus(self, focus: Focus) -> None:
        """Go back to what was talked about when the focus was saved."""
        self.clock, self.blurred = focus.clock, dict(focus.blurred)
        for of_kind in self.entities.values():
            for entity in of_kind.values():
                if entity.active:
                    before = focus.active.get((entity.kind, entity.id), (0, -1, frozenset()))
                    entity.active, entity.active_turn, entity.turns = before[0], before[1], set(before[2])

    def activate(self, kind: str, value: str) -> None:
        """Something is talked about, created or changed: it is what "that" stands for next."""
        entity = self._entity(kind, str(value), self.turn_start)
        self.clock += 1
        entity.active, entity.active_turn = self.clock, self.turn
        entity.turns.add(self.turn)

    def blur(self, kind: str) -> None:
        """Several things of a kind are shown: "that" means none of them."""
        self.clock += 1
        self.blurred[kind] = self.clock

    def observe_outcome(self, index: int, requested: bool) -> None:
        """A requested call is done: what it created is talked about, what it lists cannot be meant by "that"."""
        for of_kind in self.entities.values():
            for entity in list(of_kind.values()):
                if entity.created == index:
                    self.activate(entity.kind, entity.id)
        for shown in self.lists if requested else ():
            if shown.call == index and len(shown.ids) > 1:
                self.blur(shown.kind)
            elif shown.call == index and shown.ids and index not in self.subjects:
                self.activate(shown.kind, shown.ids[0])
        if requested and index in self.subjects:
            self.activate(*self.subjects[index])  # after what is in it: an order is more than its lines

    # What is known

    def candidates(self, kind: str) -> list[DiscourseEntity]:
        """Entities of a kind that were seen before the horizon, in the order in which they appeared."""
        known = self.entities.get(kind, {}).values()
        return list(known) if self.horizon is None else [entity for entity in known if entity.seen < self.horizon]

    def top(self, kind: str) -> DiscourseEntity | None:
        """Return what "that order" stands for: what was talked about last of its kind, if a single one was."""
        best = max(self.candidates(kind), key=lambda entity: entity.active, default=None)
        if best is None or not best.active or best.active < self.blurred.get(kind, 0):
            return None
        return best

    def latest(self) -> DiscourseEntity | None:
        """Return what was talked about last, of any kind: what "it" stands for; None after lists of several things."""
        everything = (entity for of_kind in self.entities.values() for entity in of_kind.values())
        best = max(everything, key=lambda entity: entity.active, default=None)
        return best if best is not None and best.active > max(self.blurred.values(), default=0) else None

    def find_list(self, kind: str, value: str | None = None, call: int | None = None) -> ShownList | None:
        """The latest list of a kind, optionally of one call, or with one thing in it."""
        for shown in reversed(self.lists):
            fits = shown.kind == kind and (call is None or shown.call == call)
            fits = fits and (self.horizon is None or shown.call < self.horizon)
            if fits and (value is None or value in shown.ids):
                return shown
        return None

    def is_extreme_certain(self, shown: ShownList, name: str, own: Any) -> bool:
        """Return whether a list shows the extreme of a field although it may be cut."""
        if not shown.cut:
            return True
        values = [self.entities[shown.kind][row].latest(name) for row in shown.ids]
        return is_extreme_certain(self.wording.tools.get(shown.tool), values, own)


@dataclass(frozen=True, slots=True)
class _CallContext:
    """One call whose result is being read."""

    index: int
    tool: str
    arguments: Mapping[str, Any]
    result: JsonValue
    plain: Mapping[str, Any]
    """Arguments that identify nothing: what the rows were looked up by, or created with."""
    wrote: bool


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _iterate_fields(row: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Scalars of an object, of the objects in it, and the items of its lists of texts."""
    for name, value in row.items():
        if isinstance(value, dict):
            for inner, deep in value.items():
                if deep is not None and not isinstance(deep, dict | list):
                    yield f"{name}.{inner}", deep
        elif isinstance(value, list):
            for number, item in enumerate(value[:8]):
                if isinstance(item, str | int | float):
                    yield f"{name}[{number}]", item
        elif value is not None:
            yield name, value


@functools.lru_cache(maxsize=64)
def get_lexicon(wording: Wording) -> tuple[NounLexicon, frozenset[str]]:
    """Return the nouns and the kinds of entities of an environment."""
    parameters = [name for tool in wording.tools.values() for name in tool.parameters if is_identifier(name)]
    kinds = frozenset({*wording.phrasebook.entities, *parameters})
    return NounLexicon.of(wording.phrasebook, sorted(kinds)), kinds


def get_entity_kind(name: str, source: FromOutput) -> str:
    """Return the kind of the entity that an argument takes from a result: the field's name, but the argument's for
    short names such as "id" and "code".
    """
    return _find_last_field(source, name) if is_named_apart(source) else name


def is_named_apart(source: FromOutput) -> bool:
    """Return whether the field of a value says by its name what it identifies; "id" and "code" do not."""
    return _find_last_field(source, "") not in _SHORT_IDS


def _find_last_field(source: FromOutput, default: str) -> str:
    return next((part for part in reversed(split_path(source.path)) if part != "*"), default)
