"""Episode of a generated server: requests on its own database."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from trajsmith.environments.adapters.awm.database import SqliteDatabase, copy_database
from trajsmith.environments.adapters.awm.rows import SEQUENCE, DatabaseSchema, Row
from trajsmith.environments.adapters.awm.server import AwmResponse, AwmServer
from trajsmith.environments.adapters.awm.tools import AwmTools, ToolRoute
from trajsmith.environments.adapters.openapi.document_model import SchemaValidators
from trajsmith.environments.foreign import format_error
from trajsmith.environments.module_state import ModuleState, ModuleValues
from trajsmith.environments.programs import StateChange
from trajsmith.environments.session import ToolResult
from trajsmith.records import Actor, EnvironmentFault, JsonObject, JsonValue, to_one_line


@dataclass(frozen=True)
class AwmRuntime:
    """Objects that all episodes of a program share."""

    name: str
    server: AwmServer
    tools: AwmTools
    checks: SchemaValidators
    schema: DatabaseSchema
    module_state: ModuleState


class AwmEpisode:
    """One episode: a database of its own."""

    def __init__(
        self, running: AwmRuntime, base: SqliteDatabase, rows: dict[str, dict[str, Row]], changes: Sequence[StateChange]
    ) -> None:
        self._program = running
        self._base = base
        self._base_rows = rows
        self._database: SqliteDatabase | None = None
        self._values: ModuleValues = running.module_state.copy_initial_values()
        self._reported: dict[str, dict[str, Row]] = {}
        """Rows of tables as they were last told, where that is not as in the base."""
        if changes:
            self._apply(changes)

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Send the request that the tool stands for."""
        program = self._program
        route = program.tools.routes.get(tool)
        if route is None or route.spec.actor != actor:
            return ToolResult.refusal("unknown_tool", f"unknown tool: {tool}")
        fault = program.checks.find_fault(route.inputs.schema, arguments, True) or route.find_path_fault(arguments)
        if fault is not None:
            return ToolResult.refusal("invalid_arguments", fault)
        program.server.switch(self._opened())
        with program.module_state.swap_in(self._values):
            response = self._send(route, arguments)
        return self._result(route, response)

    def _send(self, route: ToolRoute, arguments: JsonObject) -> AwmResponse:
        from fastapi.exceptions import ResponseValidationError

        name, tool = self._program.name, route.spec.name
        try:
            return self._program.server.request(route.operation.method, *route.request(arguments))
        except ResponseValidationError as error:
            first = error.errors()[0] if error.errors() else {}
            where = ".".join(str(part) for part in first.get("loc", ()))
            raise EnvironmentFault("output_schema", name, f"{where}: {first.get('msg', 'invalid')}", tool) from error
        except EnvironmentFault:
            raise
        except Exception as error:  # its code may raise anything
            message = to_one_line(str(error).partition("\n")[0])  # SQLAlchemy adds lines of its own
            raise EnvironmentFault("crash", name, f"{type(error).__name__}: {message}", tool) from error

    def _result(self, route: ToolRoute, response: AwmResponse) -> ToolResult:
        name, tool, content = self._program.name, route.spec.name, response.content
        if response.status >= 500 or response.status < 200 or 300 <= response.status < 400:
            raise EnvironmentFault(
                "crash", name, f"it answered {response.status}: {_format_detail(content)[:300]}", tool
            )
        if response.status >= 400:
            return ToolResult.refusal(
                "invalid_arguments" if response.status == 422 else "refused", _format_detail(content)
            )
        if not response.body:
            return ToolResult(route.operation.answer.description or str(response.status))
        schema = route.operation.answer.schema
        fault = None if schema is None else self._program.checks.find_fault(schema, content, False)
        if fault is not None:
            raise EnvironmentFault("output_schema", name, fault, tool)
        return ToolResult({"result": content} if route.wrapped or not isinstance(content, dict | str) else content)

    # State

    def changes(self) -> list[StateChange]:
        """Rows that differ from those told last; only tables that a statement could have written are looked at."""
        if self._database is None or not self._database.touched:
            return []
        tables = self._program.schema.tables
        touched, self._database.touched = set(self._database.touched), self._database.touched
        self._database.touched.clear()
        if touched & {"sqlite_master", "sqlite_schema"}:
            raise EnvironmentFault("state", self._program.name, "a call changed the tables themselves")
        changes: list[StateChange] = []
        for name in (table for table in tables if table in touched or table == SEQUENCE):
            try:
                now = tables[name].rows(self._database)
            except (ValueError, sqlite3.Error) as error:
                raise EnvironmentFault("state", self._program.name, f"{name}: {error}") from error
            old = self._known(name)
            changes += [(name, key, row[1]) for key, row in now.items() if key not in old or old[key][1] != row[1]]
            changes += [(name, key, None) for key in old if key not in now]
            self._reported[name] = now
        return changes

    def _known(self, name: str) -> dict[str, Row]:
        if name in self._reported:
            return self._reported[name]
        if name not in self._base_rows:
            self._base_rows[name] = self._program.schema.tables[name].rows(self._base)
        return self._base_rows[name]

    def _opened(self) -> SqliteDatabase:
        if self._database is None:
            self._database = copy_database(self._base)
        return self._database

    def _apply(self, changes: Sequence[StateChange]) -> None:
        """Make the changes in a copy of the base: all that goes first, so that what comes finds its place."""
        database, tables = self._opened(), self._program.schema.tables
        try:
            for name, key, _ in changes:
                if key is None or name not in tables:
                    raise ValueError(f"{name}: there is no such row")
                old = self._known(name).get(key)
                if old is not None:
                    tables[name].delete(database, old)
            for name in sorted({name for name, _, _ in changes}, key=lambda name: name == SEQUENCE):
                rows = [orjson.loads(text) for other, _, text in changes if other == name and text is not None]
                if name == SEQUENCE:
                    database.execute("DELETE FROM sqlite_sequence")
                    merged = {key: orjson.loads(row[1]) for key, row in self._known(name).items()}
                    merged.update({key or "": orjson.loads(text) for n, key, text in changes if n == name and text})
                    gone = {key for n, key, text in changes if n == name and text is None}
                    rows = [row for key, row in merged.items() if key not in gone]
                tables[name].insert(database, rows)
            database.commit()
            for name in {name for name, _, _ in changes}:
                self._reported[name] = tables[name].rows(database)
            database.touched.clear()
        except (ValueError, sqlite3.Error) as error:
            raise EnvironmentFault("state", self._program.name, format_error(error)) from error


def _format_detail(content: JsonValue) -> str:
    """Return the text of a refusal: FastAPI's detail, or the whole answer."""
    detail = content.get("detail", content) if isinstance(content, dict) else content
    if isinstance(detail, list) and detail and isinstance(detail[0], dict) and "msg" in detail[0]:
        where = ".".join(str(part) for part in detail[0].get("loc", ()))
        return f"{where}: {detail[0]['msg']}"
    return detail if isinstance(detail, str) else orjson.dumps(detail).decode()
