"""A generated server and its database as a program: requests are the calls, rows are the state."""

import os
import sqlite3
from collections.abc import Sequence
from types import FunctionType, ModuleType

import orjson

from trajsmith.environments.adapters.awm.database import (
    SqliteDatabase,
    connect,
    execute_all,
    restore_database,
    split_statements,
)
from trajsmith.environments.adapters.awm.episode import AwmEpisode, AwmRuntime
from trajsmith.environments.adapters.awm.rows import DatabaseSchema, Row
from trajsmith.environments.adapters.awm.server import AwmServer
from trajsmith.environments.adapters.awm.tools import AwmTools
from trajsmith.environments.adapters.openapi.document_model import SchemaValidators
from trajsmith.environments.foreign import format_error
from trajsmith.environments.module_state import ModuleState
from trajsmith.environments.programs import StateChange
from trajsmith.records import EnvironmentFault, EnvironmentSpec, InputError, JsonObject, content_hash

_LIBRARIES = ("fastapi", "starlette", "sqlalchemy", "pydantic", "typing", "logging", "threading", "asyncio", "anyio")
_FIXED = ("builtins", "_typing", "types", "re", "decimal", "datetime", "os")
_BASES = 16
"""Initial states that are kept as databases."""


def load(payload: JsonObject) -> "AwmProgram":
    """Make the database, load the server over it, start it.

    Raises:
        InputError: The code does not run or has no application, or the SQL makes no table.
    """
    before = os.environ.get("DATABASE_PATH")
    try:
        return AwmProgram(payload)
    finally:
        if before is None:
            os.environ.pop("DATABASE_PATH", None)
        else:
            os.environ["DATABASE_PATH"] = before


class AwmProgram:
    """A loaded server.

    Attributes:
        notes: SQL that failed, operations that are no tools, and what else was decided; one line each.
    """

    def __init__(self, payload: JsonObject) -> None:
        self._name: str = payload["name"]
        self.notes: list[str] = []
        database = self._build_database(payload)
        self.server = AwmServer(payload["code"], payload["file"], database)
        self._fill_late(payload, database)
        self.module_state = ModuleState(self.server.module, payload["code"], _can_change, with_classes=False)
        self.tools = AwmTools(self.server.describe(), self._name, payload["file"])
        self.checks = SchemaValidators(self.tools.requests, self.tools.responses)
        self.schema = self._schema(database, payload["file"])
        self._running = AwmRuntime(self._name, self.server, self.tools, self.checks, self.schema, self.module_state)
        self.notes += [
            *self.server.notes,
            *self.server.list_shadowed_operations(),
            *self.tools.notes,
            *self.module_state.notes,
        ]
        self._first: JsonObject = self._snapshot(database)
        self._bases: dict[bytes, tuple[SqliteDatabase, dict[str, dict[str, Row]]]] = {}
        self.spec = self._describe(payload)

    def states(self, seed: int) -> list[JsonObject]:
        """The one state that the data make, whatever the seed."""
        return [self._first]

    def start(self, state: bytes, changes: Sequence[StateChange] = ()) -> AwmEpisode:
        """An episode at a state: a copy of its database, made at the first call."""
        base, rows = self._base(state)
        return AwmEpisode(self._running, base, rows, changes)

    # Making

    def _build_database(self, payload: JsonObject) -> SqliteDatabase:
        """The database before the server is loaded, as the reference makes it."""
        ddl, data = payload["ddl"], payload["data"]
        if data is not None and "database" in data:
            try:
                return restore_database(data["database"])
            except sqlite3.DatabaseError as error:
                raise InputError(f"{data['file']}: no SQLite file: {format_error(error)}") from error
        database = connect()
        if ddl is not None:
            self.notes += execute_all(database, _statements(ddl))
            if not database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table'").fetchone():
                raise InputError(f"{ddl['file']}: makes no table: {'; '.join(self.notes[:2]) or 'there is no SQL'}")
            self._fill(data, database)
        return database

    def _fill_late(self, payload: JsonObject, database: SqliteDatabase) -> None:
        """Without a schema of its own, the server has made the tables: now they can be filled."""
        if payload["ddl"] is None and payload["data"] is not None and "database" not in payload["data"]:
            self._fill(payload["data"], database)

    def _fill(self, data: JsonObject | None, database: SqliteDatabase) -> None:
        if data is not None:
            self.notes += execute_all(database, _statements(data))

    def _schema(self, database: SqliteDatabase, file: str) -> DatabaseSchema:
        schema = DatabaseSchema(database)
        if not schema.tables:
            raise InputError(f"{file}: its database has no tables; give `ddl`")
        return schema

    def _snapshot(self, database: SqliteDatabase) -> JsonObject:
        tables: JsonObject = {}
        for name, shape in self.schema.tables.items():
            try:
                rows = shape.rows(database)
            except (ValueError, sqlite3.Error) as error:
                raise InputError(f"table {name}: its rows are no JSON: {error}") from error
            tables[name] = {key: orjson.loads(text) for key, (_, text) in rows.items()}
        return tables

    def _base(self, state: bytes) -> tuple[SqliteDatabase, dict[str, dict[str, Row]]]:
        """A state as a database that is only copied, and its rows as far as anybody asked."""
        known = self._bases.get(state)
        if known is not None:
            return known
        try:
            parts = orjson.loads(state)
            if not isinstance(parts, dict):
                raise ValueError("a state is an object of tables")
            database = self.schema.create_filled(parts)
        except (ValueError, OverflowError, sqlite3.Error) as error:
            raise EnvironmentFault("state", self._name, format_error(error)) from error
        if len(self._bases) >= _BASES:
            self._bases.clear()
        self._bases[state] = database, {}
        return self._bases[state]

    def _describe(self, payload: JsonObject) -> EnvironmentSpec:
        document = self.server.describe()
        words = [str(document["info"].get(key) or "").strip() for key in ("title", "description")]
        tools = tuple(route.spec for route in self.tools.routes.values())
        shapes = [tool.model_dump(mode="json") for tool in tools]
        sources = [payload["code"], payload["ddl"], payload["data"]]
        return EnvironmentSpec(
            name=self._name,
            version=content_hash([sources, shapes], 16),
            description=payload["description"] or "\n".join(filter(None, words)),
            domain=payload["domain"],
            policy=payload["policy"],
            tools=tools,
            state_schema=self._state_schema(),
            source=f"awm:{payload['file']}",
        )

    def _state_schema(self) -> JsonObject:
        properties: JsonObject = {}
        for name, shape in self.schema.tables.items():
            row = {"type": "object", "properties": {column: {} for column in shape.columns}}
            properties[name] = {"type": "object", "additionalProperties": row}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }


def _statements(source: JsonObject) -> list[tuple[str, str]]:
    if "sql" in source:
        return list(split_statements(source["sql"], source["file"]))
    return [(where, sql) for where, sql in source["statements"]]


def _can_change(value: object) -> bool:
    """Return whether episodes get copies of a value that a server keeps beside its database.

    These are containers and objects of the server's own classes. What libraries own - the application, engines,
    models - stays where it is.
    """
    if isinstance(value, type | FunctionType | ModuleType) or _is_library(value):
        return False
    if isinstance(value, dict | list | set | bytearray):
        return not value or not _is_library(next(iter(value)))
    return type(value).__module__ not in _FIXED


def _is_library(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in _LIBRARIES
