"""Native environments reopened in another process with another hash seed or clock.

The process runs `serve`: it reads requests as JSON lines and answers each on its standard output. It needs nothing of
the sandbox, as bundled and installed code is trusted, and works on every system.
"""

import asyncio
import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson

from trajsmith.environments import Environment, EnvironmentSource, NativeSession, Session, ToolResult
from trajsmith.environments.native_source import NativeSource
from trajsmith.phrasing import Phrasebook, ScenarioBook
from trajsmith.records import Actor, EnvironmentFault, EnvironmentSpec, InputError, JsonObject

ROOT = Path(__file__).parents[2]
YEARS = 10
"""By which one shift moves the clock."""


class ReopenableNativeSource(NativeSource):
    """A native environment that can be started again in another process."""

    def build_command(self) -> list[str]:
        """Return the command of the other process."""
        return [sys.executable, "-c", f"from {__name__} import serve; serve()"]

    def reopen(self, hash_seed: int, shift: int) -> EnvironmentSource:
        """The same environment in a fresh process."""
        return SubprocessSource(self, hash_seed, shift)


def make_reopenable_source(source: NativeSource) -> ReopenableNativeSource:
    """A native source that can be started again in another process."""
    return source if isinstance(source, ReopenableNativeSource) else ReopenableNativeSource(source.cls, source.sizes)


class SubprocessSource:
    """An environment in a process of its own, driven by lines of JSON. It starts when it is first used."""

    def __init__(self, origin: ReopenableNativeSource, hash_seed: int, shift: int) -> None:
        self.name = origin.name
        self._origin = origin
        self._hash_seed = hash_seed
        self._shift = shift
        self._process: subprocess.Popen[bytes] | None = None
        self._sessions = 0

    @property
    def isolation(self) -> str:
        return "bundled or installed code, in another process"

    @property
    def notes(self) -> tuple[str, ...]:
        return self._origin.notes

    @property
    def phrasebook(self) -> Phrasebook:
        return self._origin.phrasebook

    @property
    def scenarios(self) -> ScenarioBook:
        return self._origin.scenarios

    async def spec(self) -> EnvironmentSpec:
        return await self._origin.spec()

    async def states(self, seed: int) -> list[JsonObject]:
        return await self._origin.states(seed)

    async def open(self) -> Session:
        self._sessions += 1
        return _ProcessSession(self, await self.spec(), self._sessions)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def ask(self, request: JsonObject) -> Any:
        """One request and its answer.

        Raises:
            EnvironmentFault: The environment broke, or its process ended.
        """
        if self._process is None:
            self._start()
        return self._exchange(request)

    def _start(self) -> None:
        environment = {**os.environ, "PYTHONHASHSEED": str(self._hash_seed)}
        command, pipe, null = self._origin.build_command(), subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=null, env=environment, cwd=ROOT)
        cls = self._origin.cls
        self._exchange({"module": cls.__module__, "name": cls.__qualname__, "shift": self._shift})

    def _exchange(self, request: JsonObject) -> Any:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        process.stdin.write(orjson.dumps(request) + b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise EnvironmentFault("server_exited", self.name, "its process has ended")
        answer = orjson.loads(line)
        if "fault" in answer:
            kind, message, tool = answer["fault"]
            raise EnvironmentFault(kind, self.name, message, tool)
        return answer["value"]


class _ProcessSession:
    def __init__(self, source: SubprocessSource, spec: EnvironmentSpec, number: int) -> None:
        self.spec = spec
        self._source = source
        self._number = number

    async def reset(self, state: JsonObject) -> None:
        self._source.ask({"do": "reset", "session": self._number, "state": state})

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        step = {"tool": tool, "arguments": arguments, "actor": actor}
        answer = self._source.ask({"do": "call", "session": self._number, **step})
        return ToolResult(answer["content"], answer["error"])

    async def snapshot(self) -> JsonObject:
        state: JsonObject = self._source.ask({"do": "snapshot", "session": self._number})
        return state

    async def state_hash(self) -> str:
        return str(self._source.ask({"do": "hash", "session": self._number}))

    async def close(self) -> None:
        self._source.ask({"do": "close", "session": self._number})


def serve() -> None:
    """Answer requests until the input ends; the first one names the environment and the shift of the clock."""
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    worker: _Worker | None = None
    for line in sys.stdin.buffer:
        answer: JsonObject = {"value": None}
        try:
            if worker is None:
                worker = _Worker(orjson.loads(line))
            else:
                answer["value"] = asyncio.run(worker.answer(orjson.loads(line)))
        except EnvironmentFault as fault:
            answer = {"fault": [fault.kind, fault.message, fault.tool]}
        except InputError as error:
            answer = {"fault": ["start", str(error), None]}
        answers.write(orjson.dumps(answer) + b"\n")
        answers.flush()


class _Worker:
    """Sessions of one environment by number, in the other process."""

    def __init__(self, request: JsonObject) -> None:
        if request["shift"]:
            import time

            import time_machine

            time_machine.travel(time.time() + request["shift"] * YEARS * 365 * 86400, tick=True).start()
        self._cls: type[Environment[Any]] = getattr(importlib.import_module(request["module"]), request["name"])
        self._sessions: dict[int, NativeSession] = {}

    async def answer(self, request: JsonObject) -> Any:
        number = request["session"]
        session = self._sessions.setdefault(number, NativeSession(self._cls, self._cls.describe()))
        match request["do"]:
            case "reset":
                return await session.reset(request["state"])
            case "call":
                result = await session.call(request["tool"], request["arguments"], request["actor"])
                return {"content": result.content, "error": result.error}
            case "snapshot":
                return await session.snapshot()
            case "hash":
                return await session.state_hash()
        del self._sessions[number]
        return None
