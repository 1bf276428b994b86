"""The state of an episode: the databases of agent and user, and the attributes of their toolkits.

As JSON, the fields of the first database stand at the top, those of the second behind "user_", the rest in "toolkits".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from trajsmith.environments.jsontypes import StateError
from trajsmith.environments.native import EnvironmentState
from trajsmith.environments.native_layout import InitialState, StateLayout, get_state_layout
from trajsmith.environments.native_state import LiveState, WholeState
from trajsmith.environments.programs import StateChange, apply_changes
from trajsmith.records import InputError, JsonObject

USER = "user_"
TOOLKITS = "toolkits"
_STARTS = 64
"""Initial states that are kept taken apart."""
Live = LiveState | WholeState


@dataclass(frozen=True)
class ToolkitDatabase:
    """One of the two databases: its shape, and where it stands in the JSON."""

    shape: StateLayout
    prefix: str

    @property
    def fields(self) -> set[str]:
        return {self.prefix + name for name in self.shape.cls.model_fields}

    def own(self, parts: JsonObject) -> JsonObject:
        """Its fields, of the parts of a state."""
        return {name.removeprefix(self.prefix): part for name, part in parts.items() if name in self.fields}


@dataclass(frozen=True)
class InitialDatabases:
    """A state taken apart."""

    databases: tuple[InitialState, ...]
    toolkits: JsonObject


class DomainLayout:
    """Layout of the states of a domain: its databases and the attributes of its toolkits."""

    def __init__(self, databases: Sequence[Any], where: str) -> None:
        """Of fresh databases; a second one is the user's.

        Raises:
            InputError: Their fields would stand at the same place.
        """
        self.databases = tuple(
            ToolkitDatabase(get_state_layout(cast(type[EnvironmentState], type(database))), prefix)
            for database, prefix in zip(databases, ("", USER), strict=False)
        )
        taken = [name for database in self.databases for name in database.fields] + [TOOLKITS]
        twice = sorted({name for name in taken if taken.count(name) > 1})
        if twice:
            raise InputError(f"{where}: two parts of the state would be named {twice[0]}")
        self._starts: dict[bytes, InitialDatabases] = {}

    def state(self, databases: Sequence[Any], toolkits: JsonObject) -> JsonObject:
        """The JSON of databases."""
        state: JsonObject = {}
        for database, value in zip(self.databases, databases, strict=True):
            parts = orjson.loads(database.shape.whole.write(value))
            state |= {database.prefix + name: part for name, part in parts.items()}
        return {**state, TOOLKITS: toolkits} if toolkits else state

    def begin(self, state: bytes, changes: Sequence[StateChange]) -> tuple[list[Live], JsonObject]:
        """Databases of an episode, and what its toolkits keep.

        Raises:
            StateError: This is no state of the domain.
        """
        start = self._split_state(state)
        toolkits = start.toolkits
        for name, _, text in changes:
            if name == TOOLKITS and text is not None:
                toolkits = orjson.loads(text)
        if not all(self._is_direct(change) for change in changes):
            start = self._split_state(orjson.dumps(apply_changes(state, changes)))
            changes = ()
        return [
            LiveState(database.shape, initial, _own(database, changes))
            if not database.shape.eager_reason
            else WholeState(database.shape, initial)
            for database, initial in zip(self.databases, start.databases, strict=True)
        ], toolkits

    def _is_direct(self, change: StateChange) -> bool:
        """Return whether a change can be applied after the state is split."""
        name, key, text = change
        if name == TOOLKITS:
            return key is None and text is not None
        for database in self.databases:
            own = name.removeprefix(database.prefix)
            if name in database.fields and not database.shape.eager_reason:
                tables, parts = database.shape.tables, database.shape.parts
                return own in tables if key is not None else own in parts and text is not None
        return False

    def _split_state(self, text: bytes) -> InitialDatabases:
        initial = self._starts.pop(text, None)
        if initial is None:
            parts = orjson.loads(text)
            unknown = sorted(parts.keys() - {TOOLKITS}.union(*(database.fields for database in self.databases)))
            if unknown:
                raise StateError(f"{unknown[0]}: no such part")
            taken = [database.shape.split_state(orjson.dumps(database.own(parts))) for database in self.databases]
            initial = InitialDatabases(tuple(taken), parts.get(TOOLKITS, {}))
            if len(self._starts) >= _STARTS:
                del self._starts[next(iter(self._starts))]
        self._starts[text] = initial
        return initial


def _own(database: ToolkitDatabase, changes: Sequence[StateChange]) -> list[StateChange]:
    return [(name.removeprefix(database.prefix), key, text) for name, key, text in changes if name in database.fields]
