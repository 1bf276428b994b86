"""Who gets in: names and origins of requests, tokens, sessions of one address."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from served import Counted, over_http

from trajsmith.cli.env_serve import _announce, check_exposure, read_token
from trajsmith.environments.serving import prepare_serving
from trajsmith.environments.serving.access import AccessControl, AccessSettings
from trajsmith.environments.serving.http import Connections, build_application
from trajsmith.environments.serving.mcp_server import build_mcp_server
from trajsmith.records import InputError

TOKEN = "0123456789abcdef0123"
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
PUBLIC = AccessSettings.for_address("0.0.0.0")
NAMED = AccessSettings.for_address("0.0.0.0", hosts=["env.example"])
LOCAL = AccessSettings.for_address("127.0.0.1")


async def status_of(settings: AccessSettings, kind: str = "http", **headers: str) -> int:
    """The status of an answer, or the code with which a WebSocket is closed; 200 where the request gets through."""
    sent: list[Any] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        sent.append({"status": 200})

    async def send(message: Any) -> None:
        sent.append(message)

    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "headers": encoded, "method": "POST", "path": "/"}
    await AccessControl(inner, settings)(scope, None, send)
    return sent[0].get("status") or sent[0]["code"]


@pytest.mark.parametrize(
    ("settings", "headers", "status"),
    [
        (LOCAL, {"host": "127.0.0.1:80"}, 200),
        (LOCAL, {"host": "localhost:80", "origin": "http://localhost:3000"}, 200),
        (LOCAL, {"host": "[::1]:80"}, 200),
        (LOCAL, {"host": "evil.example:80"}, 421),
        (LOCAL, {"host": "127.0.0.1.evil.example"}, 421),
        (LOCAL, {"host": "[::1"}, 421),
        (LOCAL, {}, 421),
        (LOCAL, {"host": "127.0.0.1:80", "origin": "http://evil.example"}, 403),
        (LOCAL, {"host": "127.0.0.1:80", "origin": "null"}, 403),
        (LOCAL, {"host": "127.0.0.1:80", "origin": "http://127.0.0.1.evil.example"}, 403),
        (PUBLIC, {"host": "env.example"}, 200),
        (PUBLIC, {"host": "env.example", "origin": "http://env.example"}, 200),
        (PUBLIC, {"host": "env.example", "origin": "http://localhost"}, 403),
        (PUBLIC, {"host": "env.example", "origin": "http://evil.example"}, 403),
        (NAMED, {"host": "ENV.example:8000"}, 200),
        (NAMED, {"host": "evil.example"}, 421),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_names_and_origins(settings: AccessSettings, headers: dict[str, str], status: int, kind: str) -> None:
    wanted = status if kind == "http" or status == 200 else 1008
    assert await status_of(settings, kind, **headers) == wanted


@pytest.mark.parametrize(
    ("brought", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer  {TOKEN} ", 200),
        ("", 401),
        ("Bearer ", 401),
        (TOKEN, 401),
        (f"Basic {TOKEN}", 401),
        (f"Bearer {TOKEN[:-1]}", 401),
        (f"Bearer {TOKEN}x", 401),
        ("Bearer \xe9", 401),
    ],
)
async def test_a_token_is_asked_for(brought: str, status: int) -> None:
    settings = AccessSettings.for_address("127.0.0.1", TOKEN)
    assert await status_of(settings, host="localhost", authorization=brought) == status


@pytest.fixture
async def guarded() -> AsyncIterator[str]:
    access = AccessSettings.for_address("127.0.0.1", TOKEN)
    async with over_http(await prepare_serving(Counted()), access=access) as url:
        yield url


async def test_a_served_environment_asks_for_its_token(guarded: str) -> None:
    async with httpx2.AsyncClient(headers=HEADERS) as raw:
        refused = await raw.post(guarded, json=HELLO)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        accepted = await raw.post(guarded, json=HELLO, headers={"authorization": f"Bearer {TOKEN}"})
        assert accepted.status_code == 200


async def test_one_address_cannot_take_all_sessions() -> None:
    connections = Connections(build_mcp_server(await prepare_serving(Counted())), most=3, idle=60, most_by_address=2)
    async with connections.running():
        application = build_application(connections)
        statuses = []
        for address in ("10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3"):
            transport = httpx2.ASGITransport(app=application, client=(address, 1))
            async with httpx2.AsyncClient(transport=transport, headers=HEADERS, base_url="http://x") as raw:
                statuses.append((await raw.post("/mcp", json=HELLO)).status_code)
        assert statuses == [200, 200, 503, 200, 503]


async def test_a_thousand_sessions_at_once_and_one_client_that_wants_them_all(full: bool) -> None:
    most, clients = (1000, 5) if full else (150, 5)
    share = most // clients
    source = Counted()
    connections = Connections(build_mcp_server(await prepare_serving(source)), most, 600, most_by_address=share)
    async with connections.running():
        application = build_application(connections)
        opened: dict[str, list[str]] = {}
        for number in range(clients):
            address = f"10.0.0.{number}"
            async with _client(application, address) as raw:
                answers = [await raw.post("/mcp", json=HELLO) for _ in range(share + (share if number == 0 else 0))]
            assert [one.status_code for one in answers] == [200] * share + [503] * (len(answers) - share)
            opened[address] = [one.headers["mcp-session-id"] for one in answers[:share]]
        names = [name for some in opened.values() for name in some]
        assert len(set(names)) == len(connections) == source.open_sessions == most
        async with _client(application, "10.0.0.9") as raw:
            assert (await raw.post("/mcp", json=HELLO)).status_code == 503, "all are taken, and nobody was put out"
            for guess in (names[0][:-1] + "0" * 2, "", "x" * 5000, names[0].upper() + "0"):
                answer = await raw.post("/mcp", json=_put(1), headers={"mcp-session-id": guess} if guess else {})
                assert answer.status_code in (400, 404, 503)
        async with _client(application, "10.0.0.1") as raw:
            for count, name in enumerate(names[::7], 1):
                answer = await raw.post("/mcp", json=_put(count), headers={"mcp-session-id": name})
                assert answer.json()["result"]["structuredContent"]["n"] == count, "it has its own shelf"
            for name in names:
                assert (await raw.delete("/mcp", headers={"mcp-session-id": name})).status_code == 200
        assert await source.all_closed()


def _client(application: Any, address: str) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=application, client=(address, 1))
    return httpx2.AsyncClient(transport=transport, headers=HEADERS, base_url="http://x")


def _put(count: int) -> dict[str, Any]:
    arguments = {"name": "put", "arguments": {"book": "n", "count": count}}
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": arguments}


def test_admin_tools_for_everybody_need_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r"--admin at 0\.0\.0\.0 without --token-env"):
        check_exposure("0.0.0.0", None, admin=True)
    check_exposure("0.0.0.0", TOKEN, admin=True)
    check_exposure("127.0.0.1", None, admin=True)
    check_exposure("0.0.0.0", None, admin=False)
    _announce("serving", "127.0.0.1", None)
    _announce("serving", "0.0.0.0", TOKEN)
    assert "warning" not in capsys.readouterr().err
    _announce("serving", "0.0.0.0", None)
    assert "warning: everybody who reaches 0.0.0.0" in capsys.readouterr().err


def test_a_token_is_read_from_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVE_TOKEN", TOKEN)
    assert read_token("SERVE_TOKEN") == TOKEN
    assert read_token(None) is None
    monkeypatch.setenv("SERVE_TOKEN", "short")
    with pytest.raises(InputError, match="no token of 16 characters") as refusal:
        read_token("SERVE_TOKEN")
    assert "short" not in str(refusal.value)
