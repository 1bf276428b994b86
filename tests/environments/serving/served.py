"""What the tests of serving share: a server in this process, an environment that breaks, calls drawn from schemas."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from mcp import Client, MCPError
from mcp_types import CallToolResult

from trajsmith.environments import Environment, EnvironmentState, ToolError, tool
from trajsmith.environments.native_source import NativeSource
from trajsmith.environments.serving import ServingSpec, prepare_serving
from trajsmith.environments.serving.http import listen, serve_http
from trajsmith.environments.serving.protocol_keys import REFUSAL
from trajsmith.records import derive_seed


class ShelfState(EnvironmentState):
    books: dict[str, int] = {}


class Shelf(Environment[ShelfState]):
    """A shelf that breaks easily."""

    policy = "Never drop a book — bücher fallen nicht."

    @classmethod
    def seed_state(cls, size: str, seed: int) -> ShelfState:
        return ShelfState(now=datetime(2026, 1, 1), seed=seed, books={"a": 1, size: seed % 7})

    @tool(effect="write")
    def put(self, book: str, count: int = 1) -> dict[str, int]:
        """Put books on the shelf."""
        self.state.books[book] = self.state.books.get(book, 0) + count
        return self.state.books

    @tool(effect="read")
    def count(self, book: str) -> int:
        """How many there are."""
        if book not in self.state.books:
            raise ToolError(f"no such book: {book}")
        return self.state.books[book]

    @tool(effect="write")
    def topple(self) -> int:
        """Break it."""
        self.state.books.clear()
        print("the shelf is falling")  # noqa: T201 - code of an environment may print; nobody must see it
        return 1 // len(self.state.books)

    @tool(effect="read", actor="user")
    def look(self) -> str:
        """What the user sees."""
        return "books — bücher"


class Counted(NativeSource):
    """Counts sessions that are open; `slow` makes every call of them wait."""

    def __init__(self, cls: type[Environment[Any]] = Shelf, slow: float = 0.0) -> None:
        super().__init__(cls, {"small": 2})
        self.open_sessions = 0
        self.opened = 0
        self.slow = slow
        self.began = asyncio.Event()

    async def open(self):
        session = await super().open()
        self.open_sessions += 1
        self.opened += 1
        call, close = session.call, session.close

        async def slow_call(*arguments):
            self.began.set()
            await asyncio.sleep(self.slow)
            return await call(*arguments)

        async def counted_close():
            self.open_sessions -= 1
            await close()

        session.call, session.close = slow_call, counted_close
        return session

    async def all_closed(self) -> bool:
        for _ in range(500):
            if self.open_sessions == 0:
                return True
            await asyncio.sleep(0.01)
        return False


@asynccontextmanager
async def over_http(offer: ServingSpec, **settings: Any) -> AsyncIterator[str]:
    """Serve on a free port; gives the address."""
    with listen("127.0.0.1", 0) as where:
        serving = asyncio.create_task(serve_http(offer, where, **settings))
        try:
            yield f"http://127.0.0.1:{where.getsockname()[1]}/mcp"
        finally:
            serving.cancel()
            await asyncio.wait([serving])


@asynccontextmanager
async def client_of(source: NativeSource, **wanted: Any) -> AsyncIterator[Client]:
    async with over_http(await prepare_serving(source, **wanted)) as url, Client(url) as client:
        yield client


def seen(result: CallToolResult) -> tuple[str, Any, str | None]:
    """A result as (text, structured content, kind of refusal)."""
    (block,) = result.content
    assert result.is_error == (result.structured_content is None)
    return block.text, result.structured_content, (result.meta or {}).get(REFUSAL)


async def fault_of(client: Client, name: str, arguments: dict[str, Any]) -> MCPError:
    try:
        result = await client.call_tool(name, arguments)
    except MCPError as error:
        return error
    raise AssertionError(f"no protocol error but {result}")


def drawn_calls(spec, state, count: int) -> list[tuple[str, dict[str, Any]]]:
    """Calls with values of the state, values of the schema's types, and wrong ones."""
    rng = random.Random(derive_seed(spec.name, "serving"))
    values = list(_leaves(state))
    calls = []
    for number in range(count):
        chosen = spec.tools[number % len(spec.tools)]
        arguments = {
            name: _draw(rng, schema, values)
            for name, schema in chosen.parameters.items()
            if name in chosen.required or rng.random() < 0.3
        }
        if rng.random() < 0.1:
            arguments["unheard_of"] = 1
        calls.append((chosen.name if rng.random() < 0.97 else "no_such_tool", arguments))
    return calls


def _draw(rng: random.Random, schema: dict[str, Any], values: list[Any]) -> Any:
    if rng.random() < 0.05:
        return rng.choice([None, -1, "", [], {"x": 1.5}, "ü\u2028 \U0001f600"])
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "anyOf" in schema:
        return _draw(rng, rng.choice(schema["anyOf"]), values)
    kind = schema.get("type")
    if kind == "object":
        return {name: _draw(rng, inner, values) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [_draw(rng, schema.get("items", {}), values) for _ in range(rng.randint(1, 2))]
    types = {"string": str, "integer": int, "number": (int, float), "boolean": bool}.get(kind, object)
    fitting = [value for value in values if isinstance(value, types) and (kind == "boolean") == isinstance(value, bool)]
    return rng.choice(fitting) if fitting else None


def _leaves(value: Any):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value
