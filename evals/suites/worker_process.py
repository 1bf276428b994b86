"""A program that answers questions of a suite in another Python environment, one JSON object per line each way."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from trajsmith.records import InputError, JsonObject, RunError

LINE_LIMIT = 1 << 28
"""Bytes of one answer: all tasks of a category."""
CACHE = Path("~/.cache/trajsmith/benchmarks").expanduser()
"""Where environments are made that no `--environment` names."""

Completer = Callable[[JsonObject], Awaitable[JsonObject]]
"""Answers what the program asks while it works on a question."""


class WorkerProcess:
    """The running program; questions may overlap, and each may ask back.

    A line `{"id": 7, "ask": {...}}` asks back within question 7 and gets `{"id": 7, "reply": {...}}`;
    `{"id": 7, "answer": ...}` or `{"id": 7, "error": "..."}` ends it.
    """

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self._process = process
        self._waiting: dict[int, tuple[asyncio.Future[Any], Completer | None]] = {}
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._count = 0
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, name: str, python: Path, script: Path, arguments: Sequence[str] = ()) -> "WorkerProcess":
        """Start a script in isolated mode."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            str(python), "-I", str(script), *arguments,
            stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, limit=LINE_LIMIT,
        )  # fmt: skip
        return cls(name, process)

    async def ask(self, question: Mapping[str, Any], completer: Completer | None = None) -> Any:
        """Return the answer to a question.

        Raises:
            RunError: The program ended, or its package raised an error.
        """
        self._count += 1
        number = self._count
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._reader.done():
            raise self._build_end_error()
        self._waiting[number] = (future, completer)
        try:
            await self._write({"id": number, **question})
            return await future
        finally:
            del self._waiting[number]
            asking = self._asking.pop(number, None)
            if asking is not None:
                asking.cancel()

    async def _write(self, line: JsonObject) -> None:
        if self._process.stdin is None:
            raise self._build_end_error()
        try:
            self._process.stdin.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            await self._process.stdin.drain()
        except (ConnectionError, RuntimeError) as error:
            raise self._build_end_error() from error

    async def _read(self) -> None:
        while self._process.stdout is not None and (line := await self._process.stdout.readline()):
            entry = orjson.loads(line)
            future, completer = self._waiting.get(entry["id"], (None, None))
            if future is None or future.done():
                continue
            if "ask" in entry:
                self._asking[entry["id"]] = asyncio.create_task(
                    self._reply(entry["id"], entry["ask"], future, completer)
                )
            elif "error" in entry:
                future.set_exception(RunError(f"{self.name}: {entry['error']}"))
            else:
                future.set_result(entry["answer"])
        for future, _ in self._waiting.values():
            if not future.done():
                future.set_exception(self._build_end_error())

    async def _reply(
        self, number: int, asked: JsonObject, future: asyncio.Future[Any], completer: Completer | None
    ) -> None:
        """Reply to what the program asks back; an error ends the question here and there."""
        try:
            if completer is None:
                raise RunError(f"{self.name}: asked for a reply that nobody gives")
            await self._write({"id": number, "reply": await completer(asked)})
        except Exception as error:  # noqa: BLE001 - the error of the completer is the error of the question
            if not future.done():
                future.set_exception(error)
            await self._write({"id": number, "reply": {"fault": type(error).__name__}})

    def _build_end_error(self) -> RunError:
        return RunError(f"{self.name} ended unexpectedly: give the same command again; finished tasks are stored")

    async def close(self) -> None:
        """Stop the program."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()
        await self._reader


def make_environment(folder: Path, installs: Sequence[Sequence[str]], label: str) -> None:
    """Make a virtual environment, unless it is there; one that was made halfway is finished.

    Args:
        folder: Where it is.
        installs: Arguments of `pip install`, one call after the other.
        label: Name for errors.

    Raises:
        InputError: Something cannot be installed.
    """
    if (folder / ".installed").is_file():
        return
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([sys.executable, "-m", "venv", str(folder)], *([*pip, *install] for install in installs)):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise InputError(f"{label} cannot be installed into {folder}: {reason}; or use --environment")
    (folder / ".installed").touch()
