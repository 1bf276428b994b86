"""Workers that lie about the plays they fork, and plays that lie at every step but calls.

`test_boundary.py` has the lies in answers to calls. Each of these ends as a fault of its environment, in time, with no
process left that nobody knows; an environment beside it does not notice.
"""

import asyncio
import time
from pathlib import Path

import psutil
import pytest
from evil_forks import FORKS, RACES, STEPS, WELL, evil_source
from evil_worker import EVIL
from shop import shop
from test_boundary import KINDS, LATE, MODES, STATE_BYTES, WALL, evil, opened, start_peak
from test_boundary import peak as read_peak

from trajsmith.environments.sandbox.forking import read_pid
from trajsmith.environments.sandbox.probe import probe
from trajsmith.environments.sandbox.solutions import SolutionSandbox
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.session import Session
from trajsmith.records import EnvironmentFault, InputError, JsonObject, RunError

pytestmark = pytest.mark.timeout(600)
LOAD = 2.0
CALL = 0.3
"""CPU seconds of a call, which each further request of a play may take in wall time."""


def source_of(code: str, mode: str = "default", **settings: object) -> SandboxSource:
    return evil(evil_source(code, WALL), mode=mode, load_seconds=LOAD, call_seconds=CALL, **settings)


def list_children(source: SandboxSource) -> list[int]:
    """Return the processes that the worker of a source has forked."""
    main = source.host._main
    if main is None or main.lost is not None:
        return []
    try:
        return [child.pid for child in psutil.Process(read_pid(main.forked)).children() if child.status() != "zombie"]
    except (psutil.NoSuchProcess, RunError):  # the worker ended, and its children with it
        return []


async def wait_for_children(source: SandboxSource, count: int) -> None:
    """Wait for the end of the processes that were killed."""
    for _ in range(100):
        await asyncio.sleep(0.05 if len(list_children(source)) > count else 0.0)
    assert len(list_children(source)) == count, "a process is left that nobody knows"


async def wait_for_end(session: Session) -> None:
    """Wait until the process of a play is known to have ended."""
    for _ in range(500):
        await asyncio.sleep(0.01 if session.link.ready() else 0.0)  # type: ignore[attr-defined]
    assert session.link.ready() is None  # type: ignore[attr-defined]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    if not probe().modes[request.param].works:
        pytest.skip(f"mode {request.param} does not work here")
    return str(request.param)


@pytest.mark.parametrize("name", FORKS)
async def test_a_lie_about_a_fork_is_a_fault_of_its_environment(name: str, mode: str) -> None:
    source, honest = source_of(FORKS[name], mode), shop(mode=mode)
    await source.spec()
    started = time.monotonic()
    fault: EnvironmentFault | None = None
    try:
        await opened(source, "A")
    except EnvironmentFault as error:
        fault = error
    assert time.monotonic() - started < WALL + LOAD + LATE, "initial states have `load_seconds` more"
    assert fault is not None or name in RACES
    assert fault is None or (fault.kind in {*KINDS, "start"} and str(fault).isprintable())
    await wait_for_children(source, 0)
    assert (await honest.spec()).name == "shop"
    source.close()
    honest.close()


@pytest.mark.parametrize("name", WELL)
async def test_a_fork_too_many_is_refused(name: str, mode: str) -> None:
    source = source_of(WELL[name], mode)
    try:
        session = await opened(source, "A")
    except EnvironmentFault as fault:  # the fork too many was the first, and there was no room for that of the play
        assert fault.kind == "limit" and "no process for the play" in str(fault)
        await wait_for_children(source, 0)
    else:
        await wait_for_children(source, 1)
        assert (await session.call("get", {})).content == {"token": "A", "counter": 0}
    source.close()


@pytest.mark.parametrize("name", STEPS)
async def test_a_lie_at_a_step_of_a_play_is_a_fault_of_its_environment(name: str) -> None:
    source = source_of(STEPS[name])
    await source.spec()
    before, started = start_peak(), time.monotonic()
    with pytest.raises((EnvironmentFault, InputError)) as caught:
        session = await opened(source, "A")
        await session.prepare([])
    assert time.monotonic() - started < WALL + LOAD + LATE
    assert read_peak() - before <= 3 * 2 * STATE_BYTES + (1 << 20)
    if isinstance(caught.value, InputError):
        assert name == "status of files to states" and str(caught.value).startswith("evil: ")
    else:
        assert caught.value.kind in {*KINDS, "start"}
    source.close()


async def test_requests_that_are_late_together_are_too_late() -> None:
    """Each step is in time; a play gets the time of one request, and `call_seconds` for each further one."""
    source = source_of(FORKS["late"].replace("{1, 4}", "{4}"))
    await source.spec()  # a worker starts slowly on a busy machine
    started = time.monotonic()
    with pytest.raises(EnvironmentFault, match="timeout"):
        await opened(source, "A")
    assert time.monotonic() - started < WALL + LOAD + LATE
    source.close()


async def test_calls_that_are_made_again_share_their_time() -> None:
    source = source_of("Server._answer = answer_late({0}); Server._answer = die_in_turn()")
    session = await opened(source, "A")
    with pytest.raises(EnvironmentFault) as caught:
        for calls in range(9):
            number, started = calls + 1, time.monotonic()
            await session.call("get", {})
            await wait_for_end(session)
    assert caught.value.kind == "timeout"
    assert 2 <= number <= 4
    assert time.monotonic() - started < WALL + number * CALL + LATE
    source.close()


async def test_plays_that_end_after_each_answer_are_counted() -> None:
    source = source_of("Server._answer = die_in_turn()", kills=3)
    session = await opened(source, "A")
    with pytest.raises(EnvironmentFault, match="quarantine"):
        for _ in range(9):
            await session.call("get", {})
            await wait_for_end(session)
    assert source.host.kills == 3
    source.close()


async def test_a_worker_that_ends_between_plays_is_counted_once() -> None:
    source = source_of("", kills=3)
    sessions = [await opened(source, "A") for _ in range(3)]
    main = await source.host.main()
    psutil.Process(read_pid(main.forked)).kill()
    for session in sessions:
        await wait_for_end(session)
    for session in sessions:
        assert (await session.call("get", {})).content == {"token": "A", "counter": 0}
    assert source.host.kills == 1
    source.close()


async def test_without_a_list_of_children_the_worker_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    source, read = source_of(FORKS["made and refused"]), Path.read_text

    def read_text(path: Path, encoding: str | None = None) -> str:
        if path.name == "children":
            raise FileNotFoundError(path)
        return read(path, encoding)

    monkeypatch.setattr(Path, "read_text", read_text)
    with pytest.raises(EnvironmentFault, match="limit"):
        await opened(source, "A")
    assert source.host._main is not None and source.host._main.lost == "it forked a process that is no play"
    source.close()


async def test_the_name_of_a_tool_in_a_fault_drives_no_terminal() -> None:
    lie = r'REPLIES = {"escapes": fault("crash", "x", "\x1b[2J\nINFO forged"),'
    source = evil(EVIL.replace("REPLIES = {", lie, 1))
    session = await opened(source, "A")
    with pytest.raises(EnvironmentFault) as caught:
        await session.call("act", {"how": "escapes"})
    assert str(caught.value).isprintable() and str(caught.value.tool).isprintable()
    source.close()


SOLUTION = """
import orjson
Server = next(one for one in object.__subclasses__() if one.__name__ == "WorkerServer")
ORIGINAL = Server._answer
def answer(self, request):
    return [request[0], 0, orjson.dumps(CONTENT)] if request[1] == 0 else ORIGINAL(self, request)
Server._answer = answer
def solve(call):
    return 1
"""
LIES: dict[str, object] = {
    "nothing": {},
    "a list": [1],
    "a number to make": {"pending": 5, "calls": [], "answer": 1},
    "a call without a name": {"pending": {"arguments": {}}, "calls": [], "answer": 1},
    "a call of no name": {"pending": {"tool": 5, "arguments": {}}, "calls": [], "answer": 1},
    "arguments in a list": {"pending": {"tool": "x", "arguments": []}, "calls": [], "answer": 1},
    "calls that are a number": {"pending": None, "calls": 5, "answer": 1},
    "calls of numbers": {"pending": None, "calls": [5], "answer": 1},
    "no answer": {"pending": None, "calls": []},
    "more than asked for": {"pending": None, "calls": [], "answer": 1, "extra": 1},
}


@pytest.mark.parametrize("name", LIES)
async def test_a_solution_that_lies_about_its_run_is_a_fault(name: str) -> None:
    async def make_call(tool: str, arguments: JsonObject) -> None:
        raise AssertionError(f"{tool} was called with {arguments}")

    sandbox = SolutionSandbox(SOLUTION.replace("CONTENT", repr(LIES[name])))
    with pytest.raises(EnvironmentFault, match=r"solution\.solve: protocol: the program gave no result"):
        await sandbox.replay([])
    with pytest.raises(EnvironmentFault, match=r"solution\.solve: protocol: the program gave no result"):
        await sandbox.run(make_call)  # type: ignore[arg-type]
    sandbox.close()
