"""Sessions on servers written for the tests, which must never leave a process or a directory behind."""

import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from environments.mcp import McpSession, McpSettings, McpSource

SERVERS = Path(__file__).parent / "servers"
EMPTY: dict[str, Any] = {}


def settings(program: str, *arguments: str, **more: Any) -> McpSettings:
    return McpSettings(name="trial", command=[sys.executable, str(SERVERS / program), *arguments], **more)


def left_in(directory: str) -> list[str]:
    return [entry.name for entry in Path(directory).iterdir()]


def processes_in(directory: str) -> list[int]:
    """Processes that work below a directory; they are what a leaked server looks like."""
    found = []
    for process in psutil.process_iter(["cwd"]):
        if (process.info["cwd"] or "").startswith(directory):
            found.append(process.pid)
    return found


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
