"""A play of a generated server: requests on a database of its own."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from environments.awm.database import Database, copy_of
from environments.awm.kept import Kept, KeptValues
from environments.awm.rows import SEQUENCE, Row, Schema
from environments.awm.server import Response, Server
from environments.awm.tools import Route, Tools
from environments.hosting import Change
from environments.openapi.model import Checks
from environments.session import ToolResult
from trajectory import Actor, EnvironmentFault, JsonObject, JsonValue


@dataclass(frozen=True)
class Running:
    """What all plays of a program share."""

    name: str
    server: Server
    tools: Tools
    checks: Checks
    schema: Schema
    kept: Kept


class AwmPlay:
    """One play: a database of its own."""

    def __init__(
        self, running: Running, base: Database, rows: dict[str, dict[str, Row]], changes: Sequence[Change]
    ) -> None:
        self._program = running
        self._base = base
        self._base_rows = rows
        self._database: Database | None = None
        self._values: KeptValues = running.kept.fresh()
        self._told: dict[str, dict[str, Row]] = {}
        """Rows of tables as they were last told, where that is not as in the base."""
        if changes:
            self._apply(changes)

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Send the request that the tool stands for."""
        program = self._program
        route = program.tools.routes.get(tool)
        if route is None or actor != "assistant":
            return ToolResult.refusal("unknown_tool", f"unknown tool: {tool}")
        fault = program.checks.fault(route.inputs.schema, arguments, True) or route.unsendable(arguments)
        if fault is not None:
            return ToolResult.refusal("invalid_arguments", fault)
        program.server.switch(self._opened())
        with program.kept.swapped(self._values):
            response = self._send(route, arguments)
        return self._result(route, response)

    def _send(self, route: Route, arguments: JsonObject) -> Response:
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
            said = " ".join(str(error).partition("\n")[0].split())  # SQLAlchemy adds lines of its own
            raise EnvironmentFault("crash", name, f"{type(error).__name__}: {said}", tool) from error

    def _result(self, route: Route, response: Response) -> ToolResult:
        name, tool, content = self._program.name, route.spec.name, response.content
        if response.status >= 500 or response.status < 200 or 300 <= response.status < 400:
            raise EnvironmentFault("crash", name, f"it answered {response.status}: {_words(content)[:300]}", tool)
        if response.status >= 400:
            return ToolResult.refusal("invalid_arguments" if response.status == 422 else "refused", _words(content))
        if not response.body:
            return ToolResult(route.operation.answer.description or str(response.status))
        schema = route.operation.answer.schema
        fault = None if schema is None else self._program.checks.fault(schema, content, False)
        if fault is not None:
            raise EnvironmentFault("output_schema", name, fault, tool)
        return ToolResult({"result": content} if route.wrapped or not isinstance(content, dict | str) else content)

    # State

    def changes(self) -> list[Change]:
        """Rows that differ from those told last; only tables that a statement could have written are looked at."""
        if self._database is None or not self._database.touched:
            return []
        tables = self._program.schema.tables
        touched, self._database.touched = set(self._database.touched), self._database.touched
        self._database.touched.clear()
        if touched & {"sqlite_master", "sqlite_schema"}:
            raise EnvironmentFault("state", self._program.name, "a call changed the tables themselves")
        found: list[Change] = []
        for name in (table for table in tables if table in touched or table == SEQUENCE):
            try:
                now = tables[name].rows(self._database)
            except (ValueError, sqlite3.Error) as error:
                raise EnvironmentFault("state", self._program.name, f"{name}: {error}") from error
            old = self._known(name)
            found += [(name, key, row[1]) for key, row in now.items() if key not in old or old[key][1] != row[1]]
            found += [(name, key, None) for key in old if key not in now]
            self._told[name] = now
        return found

    def _known(self, name: str) -> dict[str, Row]:
        if name in self._told:
            return self._told[name]
        if name not in self._base_rows:
            self._base_rows[name] = self._program.schema.tables[name].rows(self._base)
        return self._base_rows[name]

    def _opened(self) -> Database:
        if self._database is None:
            self._database = copy_of(self._base)
        return self._database

    def _apply(self, changes: Sequence[Change]) -> None:
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
                    kept = {key: orjson.loads(row[1]) for key, row in self._known(name).items()}
                    kept.update({key or "": orjson.loads(text) for n, key, text in changes if n == name and text})
                    gone = {key for n, key, text in changes if n == name and text is None}
                    rows = [row for key, row in kept.items() if key not in gone]
                tables[name].insert(database, rows)
            database.commit()
            for name in {name for name, _, _ in changes}:
                self._told[name] = tables[name].rows(database)
            database.touched.clear()
        except (ValueError, sqlite3.Error) as error:
            raise EnvironmentFault("state", self._program.name, " ".join(str(error).split())) from error


def _words(content: JsonValue) -> str:
    """What a refusal says: FastAPI's detail, or the whole answer."""
    detail = content.get("detail", content) if isinstance(content, dict) else content
    if isinstance(detail, list) and detail and isinstance(detail[0], dict) and "msg" in detail[0]:
        where = ".".join(str(part) for part in detail[0].get("loc", ()))
        return f"{where}: {detail[0]['msg']}"
    return detail if isinstance(detail, str) else orjson.dumps(detail).decode()
