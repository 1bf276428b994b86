"""Sessions on servers written for the tests, which must never leave a process or a directory behind."""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from live import left_in, processes_in, settings

from trajsmith.environments.adapters.mcp import McpSession, McpSource

EMPTY: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """All workspaces of a test lie here."""
    directory = tmp_path / "workspaces"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return str(directory)


@pytest.fixture
async def start(scratch: str) -> AsyncIterator[Callable[..., Awaitable[McpSession]]]:
    """Open and reset a session; at the end nothing may be left of it."""
    opened: list[McpSession] = []
    sources: dict[str, McpSource] = {}

    async def begin(program: str, *arguments: str, state: dict[str, Any] = EMPTY, **more: Any) -> McpSession:
        wanted = settings(program, *arguments, **more)
        session = await sources.setdefault(repr(wanted), McpSource(wanted)).open()
        opened.append(session)
        await session.reset(state)
        return session

    yield begin
    for session in opened:
        await session.close()
    assert processes_in(scratch) == []
    assert left_in(scratch) == []
