"""The state of one episode of a native environment. Between calls it is JSON, in all its parts."""

from collections.abc import Sequence
from typing import Any

from trajsmith.environments.jsontypes import JsonType, StateError, is_same_json
from trajsmith.environments.native import EnvironmentState
from trajsmith.environments.native_layout import InitialState, StateLayout, join_parts, split_parts
from trajsmith.environments.programs import StateChange
from trajsmith.environments.table_records import CallMode
from trajsmith.environments.tables import RecordTable, get_records, get_touched_records, replace_content

_MISSING: Any = object()


class _Parts:
    """JSON of parts, and which of them changed since somebody looked."""

    __slots__ = ("_told", "texts")

    def __init__(self, texts: dict[str, bytes]) -> None:
        self.texts = dict(texts)
        self._told: dict[str, bytes | None] = {}

    def put(self, name: str, text: bytes | None) -> None:
        before = self.texts.get(name)
        if text == before:
            return
        self._told.setdefault(name, before)
        if text is None:
            del self.texts[name]
        else:
            self.texts[name] = text

    def load(self, name: str, kind: JsonType, text: bytes) -> None:
        """Take over a change that is told already."""
        self.texts[name] = normal = kind.load(text, name)[0]
        if not is_same_json(normal, text):
            self._told[name] = text

    def changes(self) -> list[StateChange]:
        if not self._told:
            return []
        changes: list[StateChange] = [
            (name, None, self.texts.get(name)) for name, before in self._told.items() if self.texts.get(name) != before
        ]
        self._told.clear()
        return changes


class WholeState:
    """A state that is kept as a whole, because its class works on whole states only."""

    def __init__(self, shape: StateLayout, start: InitialState) -> None:
        self._shape = shape
        self._parts = _Parts(start.parts)
        self._unreported = start.unreported
        self._text = join_parts(start.parts)
        self._writing = False
        self.state: EnvironmentState = shape.whole.read(self._text)

    def begin(self, writing: bool) -> None:
        self._writing = writing

    def finish(self, state: EnvironmentState) -> None:
        """End a call that left this state.

        Raises:
            StateError: It is none; `revert` then.
        """
        if not self._writing and state is self.state and self._shape.whole.serializes_to(state, self._text):
            return
        text, self.state = self._shape.whole.seal(state, "state")
        if text != self._text:
            self._text, parts = text, split_parts(text)
            for name in [*parts, *(self._parts.texts.keys() - parts.keys())]:
                self._parts.put(name, parts.get(name))

    def revert(self) -> None:
        """End a call as if it had not been."""
        self.state = self._shape.whole.read(self._text)

    def changes(self) -> list[StateChange]:
        """Return the changes since the last call of this method."""
        untold, self._unreported = self._unreported, []
        return [*untold, *self._parts.changes()]


class LiveState:
    """A state of tables that are copied on touch, and small parts that are read at the start."""

    def __init__(self, shape: StateLayout, start: InitialState, changes: Sequence[StateChange]) -> None:
        self._kinds = shape.parts
        self._mode = CallMode()
        self._tables: dict[str, Any] = {
            name: RecordTable(name, kind, start.tables[name], self._mode) for name, kind in shape.tables.items()
        }
        self._parts = _Parts(start.parts)
        self._unreported = [change for change in start.unreported if not _is_covered(change, changes)]
        for name, key, text in changes:
            if key is not None:
                get_records(self._tables[name]).load(key, text)
            else:
                self._parts.load(name, self._kinds[name], text or b"")
        self._values = {name: kind.read(self._parts.texts[name]) for name, kind in self._kinds.items()}
        """The values of the parts after the last call."""
        self.state = _state(shape.cls, {**self._values, **self._tables})

    def begin(self, writing: bool) -> None:
        """Start a call; every call ends with `finish` or `revert`."""
        self._mode.writing = writing

    def finish(self, state: EnvironmentState) -> None:
        """End a call that left this state.

        Raises:
            StateError: It is none; `revert` then.
        """
        values = self.state.__dict__
        if state is not self.state:
            _adopt(values, state, type(self.state))
        for name, table in self._tables.items():
            if values.get(name) is not table:
                replace_content(table, values.get(name))
                values[name] = table
        parts = self._sealed_parts(values)
        called, writing = self._mode.touched, self._mode.writing
        sealed = {name: records.seal() for name, records in called.items() if writing or records.put}
        for name, records in called.items():
            if name in sealed:
                records.keep(sealed[name])
            else:
                records.leave()
        for name, (text, value) in parts.items():
            self._parts.put(name, text)
            self._values[name] = values[name] = value
        self._end(values)

    def revert(self) -> None:
        """End a call as if it had not been."""
        values = self.state.__dict__
        for records in self._mode.touched.values():
            records.revert()
        for name, kind in self._kinds.items():
            if not kind.scalar:
                self._values[name] = kind.read(self._parts.texts[name])
        values.update(self._values)
        values.update(self._tables)
        self._end(values)

    def changes(self) -> list[StateChange]:
        """Return the changes since the last call; at first, the parts that the class writes otherwise than given.

        Raises:
            StateError: A tool that only reads, as it says, has left what is no state.
        """
        changes, self._unreported = list(self._unreported), []
        for table in self._tables.values():
            records = get_touched_records(table)
            if records is not None:
                changes += records.changes()
        return changes + self._parts.changes()

    def _sealed_parts(self, values: dict[str, Any]) -> dict[str, tuple[bytes, Any]]:
        """Parts that are not what their JSON says, or that may share something with other parts."""
        sealed = {}
        for name, kind in self._kinds.items():
            value, known = values.get(name, _MISSING), self._values[name]
            if value is known:
                if kind.scalar:
                    continue
                if not self._mode.writing and kind.serializes_to(value, self._parts.texts[name]):
                    continue
            elif value is _MISSING:
                raise StateError(f"{name} is gone")
            sealed[name] = kind.seal(value, name)
        return sealed

    def _end(self, values: dict[str, Any]) -> None:
        self._mode.touched.clear()
        if len(values) > len(self._values) + len(self._tables):  # cached properties: not part of the JSON
            for name in values.keys() - self._values.keys() - self._tables.keys():
                del values[name]


def _adopt(values: dict[str, Any], state: object, cls: type[EnvironmentState]) -> None:
    """Take over the fields of a state that was put in place of the episode's own."""
    if not isinstance(state, cls):
        raise StateError(f"the state is a {type(state).__name__} now, no {cls.__name__}")
    values.update(state.__dict__)


def _state(cls: type[EnvironmentState], values: dict[str, Any]) -> EnvironmentState:
    """An instance of fields that are valid already, in the order of their definition."""
    state = cls.__new__(cls)
    object.__setattr__(state, "__dict__", {name: values[name] for name in cls.model_fields})
    object.__setattr__(state, "__pydantic_fields_set__", set(values))
    object.__setattr__(state, "__pydantic_extra__", None)
    object.__setattr__(state, "__pydantic_private__", None)
    return state


def _is_covered(change: StateChange, changes: Sequence[StateChange]) -> bool:
    """Return whether one of the changes has the same path."""
    return any(name == change[0] and key in (None, change[1]) for name, key, _ in changes)
