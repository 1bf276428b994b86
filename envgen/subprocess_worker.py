"""Worker process in which a native environment runs again; it answers JSON lines on its standard output."""

import asyncio
import importlib
import sys
from typing import Any

import orjson

from trajsmith.envgen.mutate.mutants import override_modules
from trajsmith.environments.native import Environment
from trajsmith.environments.native_program import NativeSession
from trajsmith.records import EnvironmentFault, InputError

YEARS = 10
"""By which one shift moves the clock."""


def shift_clock(shifts: int) -> None:
    """Make the clock of this process run some decades ahead, or behind."""
    import time

    import time_machine

    if shifts:
        time_machine.travel(time.time() + shifts * YEARS * 365 * 86400, tick=True).start()


class SubprocessWorker:
    """Sessions of one environment by number."""

    def __init__(self, request: dict[str, Any]) -> None:
        shift_clock(request["shift"])
        override_modules(request["texts"])

        cls = getattr(importlib.import_module(request["module"]), request["name"])
        self._cls: type[Environment[Any]] = cls
        self._sessions: dict[int, NativeSession] = {}

    async def answer(self, request: dict[str, Any]) -> Any:
        number = request["session"]
        if number not in self._sessions:
            self._sessions[number] = NativeSession(self._cls, self._cls.describe())
        session = self._sessions[number]
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
            case _:
                return self._sessions.pop(number, None) and None


async def serve() -> None:
    """Answer until the input ends."""
    worker: SubprocessWorker | None = None
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    for line in sys.stdin.buffer:
        request = orjson.loads(line)
        answer: dict[str, Any] = {"value": None}
        try:
            if worker is None:
                worker = SubprocessWorker(request)
            else:
                answer["value"] = await worker.answer(request)
        except EnvironmentFault as fault:
            answer = {"fault": [fault.kind, str(fault).split(": ", 2)[-1], fault.tool]}
        except InputError as error:
            answer = {"fault": ["start", str(error), None]}
        answers.write(orjson.dumps(answer) + b"\n")
        answers.flush()


if __name__ == "__main__":
    asyncio.run(serve())
