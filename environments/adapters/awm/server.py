"""A generated server in this process: its code loaded over our database, its requests answered without a port.

`create_engine` is redirected while the code is loaded: whatever address it names, its connections are those of the
play that is being called. Requests go straight to the ASGI application, on a loop without sockets and threads.
"""

import os
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from trajsmith.environments.adapters.awm.database import SqliteDatabase
from trajsmith.environments.adapters.awm.event_loop import IsolatedEventLoop, disable_threads
from trajsmith.environments.foreign import format_error, run_source
from trajsmith.records import EnvironmentFault, InputError, JsonObject, JsonValue

_SUPPORTED_OPTIONS = ("json_serializer", "json_deserializer", "execution_options")
"""What `create_engine` is told that does not concern the connection."""
_URL = "sqlite:///:memory:"


@dataclass(frozen=True)
class AwmResponse:
    """Response of the application."""

    status: int
    body: bytes

    @property
    def content(self) -> JsonValue:
        """The body as JSON, or as text where it is none."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return self.body.decode("utf-8", "replace")


class AwmServer:
    """The application of one program."""

    def __init__(self, code: str, file: str, database: SqliteDatabase) -> None:
        """Load the code, and start the application as a web server would.

        Args:
            database: What its engine connects to from now on.

        Raises:
            InputError: The code does not run, has no application, or the application does not start.
        """
        self.database = database
        """The database of the play that is being called."""
        self.notes: list[str] = []
        self.module = self._loaded(code, file)
        self._loop = IsolatedEventLoop()  # type: ignore[abstract] # what it leaves out needs sockets or threads
        self._app = _application(self.module, file)
        self._lifespan: Any = None
        self._start(file)

    def describe(self) -> JsonObject:
        """The application's own OpenAPI document."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            document: JsonObject = orjson.loads(orjson.dumps(self._app.openapi()))
        return document

    def list_shadowed_operations(self) -> list[str]:
        """Describe operations that another one of the same path and method shadows."""
        from starlette.routing import Route

        seen: set[tuple[str, str]] = set()
        notes = []
        for route in (route for route in self._app.routes if isinstance(route, Route)):
            for place in [(method, route.path) for method in sorted(route.methods or ())]:
                if place in seen:
                    notes.append(f"{' '.join(place)}: there are two, and only the first is ever called")
                seen.add(place)
        return notes

    def request(self, method: str, path: str, query: list[tuple[str, JsonValue]], body: JsonValue) -> AwmResponse:
        """Send a request to the application.

        Raises:
            Exception: Whatever the application's code raises and does not turn into an answer.
        """
        with self._patched():
            try:
                return self._loop.run(_exchange(self._app, method, path, query, body))
            finally:
                if self.database.in_transaction:
                    self.database.rollback()  # of a session that nobody closed

    def switch(self, database: SqliteDatabase) -> None:
        """From now on requests are about this database; sessions that the code left open are closed."""
        if database is not self.database:
            from sqlalchemy.orm import close_all_sessions

            close_all_sessions()
            self.database = database

    # Loading

    def _loaded(self, code: str, file: str) -> ModuleType:
        os.environ["DATABASE_PATH"] = _URL
        with self._patched(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as the reference does: published code is full of what is deprecated
            return run_source(code, file, "environment_code")

    def _start(self, file: str) -> None:
        """Run what the application does at its start, and what SQLAlchemy would do at the first query."""
        from sqlalchemy.orm import configure_mappers

        self._lifespan = self._app.router.lifespan_context(self._app)
        try:
            with self._patched():
                configure_mappers()
                self._loop.run(_entered(self._lifespan))
        except EnvironmentFault:
            raise
        except Exception as error:
            raise InputError(f"{file}: does not start: {type(error).__name__}: {format_error(error)}") from error
        if self.database.in_transaction:
            self.database.commit()

    @contextmanager
    def _patched(self) -> Iterator[None]:
        """Inside, engines, connections and threads are ours."""
        import sqlalchemy
        import sqlalchemy.engine

        places: list[tuple[Any, str, Any]] = [
            (sqlalchemy, "create_engine", self._create_engine),
            (sqlalchemy.engine, "create_engine", self._create_engine),
            (sqlite3, "connect", lambda *_args, **_options: self.database),
        ]
        real = [(place, name, getattr(place, name)) for place, name, _ in places]
        for place, name, value in places:
            setattr(place, name, value)
        try:
            with disable_threads():
                yield
        finally:
            for place, name, value in real:
                setattr(place, name, value)

    def _create_engine(self, url: Any, **options: Any) -> Any:
        from sqlalchemy.engine.create import create_engine
        from sqlalchemy.pool import NullPool

        if not str(url).startswith("sqlite"):
            self.notes.append(f"its engine for {str(url).split(':')[0]} is one for SQLite here")
        supported = {name: value for name, value in options.items() if name in _SUPPORTED_OPTIONS}
        return create_engine(_URL, creator=lambda: self.database, poolclass=NullPool, **supported)


def _application(module: ModuleType, file: str) -> Any:
    from fastapi import FastAPI

    app = vars(module).get("app")
    if isinstance(app, FastAPI):
        return app
    others = [value for value in vars(module).values() if isinstance(value, FastAPI)]
    if len(others) != 1:
        raise InputError(f"{file}: there is no FastAPI application named `app`")
    return others[0]


async def _entered(lifespan: Any) -> None:
    await lifespan.__aenter__()


async def _exchange(
    app: Callable[..., Any], method: str, path: str, query: list[tuple[str, JsonValue]], body: JsonValue
) -> AwmResponse:
    sent = b"" if body is None else orjson.dumps(body)
    headers = [(b"host", b"localhost"), (b"accept", b"application/json")]
    if body is not None:
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(sent)).encode())]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method.upper(),
        "scheme": "http",
        "path": path,
        "raw_path": quote(path).encode(),
        "query_string": urlencode([(name, _text(value)) for name, value in query]).encode(),
        "root_path": "",
        "headers": headers,
        "server": ("localhost", 80),
        "client": ("localhost", 1),
        "state": {},
    }
    incoming = iter([{"type": "http.request", "body": sent, "more_body": False}])
    status, parts = 500, [b""]

    async def receive() -> JsonObject:
        return next(incoming, {"type": "http.disconnect"})

    async def send(message: JsonObject) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message["type"] == "http.response.body":
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    return AwmResponse(status, b"".join(parts))


def _text(value: JsonValue) -> str:
    """A value as a query writes it."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
