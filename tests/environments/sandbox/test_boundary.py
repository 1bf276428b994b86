"""Attacks on the parent, on other plays and on resources, by code that has taken over its own processes.

The environment of `evil_worker.py` changes its worker while it loads, so each of its plays answers the parent as it
likes. Every attack must end as a fault of that environment, with a name, in time, in little memory; another play that
is open all the while must not notice.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from evil_worker import CHANGES, EVIL, HARMLESS, LOAD, LOADS, REPLIES, SHARING, STALLS, sharing_source
from shop import SHOP, shop

from trajsmith.environments.sandbox.checks import SandboxedCheck
from trajsmith.environments.sandbox.probe import probe
from trajsmith.environments.sandbox.serialization import WorkerOp
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.session import Session
from trajsmith.records import EnvironmentFault

pytestmark = pytest.mark.timeout(600)
MODES = ("default", "strict")
WALL = 2.0
LATE = 60.0
"""Seconds by which the end of a limit may be late beside other attacks on a slow machine; a hang has no end."""
KINDS = {"protocol", "timeout", "crash", "limit", "state"}
STATE_BYTES = 1 << 20


@dataclass
class Outcome:
    """What came of an attack."""

    fault: EnvironmentFault | None
    seconds: float
    grown: int
    """Bytes by which this process was larger than before, at its largest."""
    other: object
    """What the play beside it said."""


@dataclass
class Campaign:
    """All attacks in a mode."""

    mode: str
    outcomes: dict[str, Outcome] = field(default_factory=dict)


def evil(source: str = EVIL, **settings: object) -> SandboxSource:
    chosen = {"wall_seconds": WALL, "kills": 100_000, "state_bytes": STATE_BYTES, "memory_mb": 512, **settings}
    return shop(source, **chosen)


async def opened(source: SandboxSource, token: str) -> Session:
    session = await source.open()
    (state,) = await source.states(0)
    await session.reset({**state, "token": token})
    return session


def peak() -> int:
    """Return the largest size that this process has had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def start_peak() -> int:
    """Let the peak start again from here."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


async def attack(source: SandboxSource, name: str, bystander: Session) -> Outcome:
    session = await opened(source, "A")
    before, start, fault = start_peak(), time.monotonic(), None
    try:
        await session.call("act", {"how": name})
        if name in CHANGES:
            await session.snapshot()
    except EnvironmentFault as error:
        fault = error
    seconds, grown = time.monotonic() - start, peak() - before
    other = (await bystander.call("get", {})).content
    await session.close()
    return Outcome(fault, seconds, grown, other)


async def run_campaign(mode: str) -> Campaign:
    campaign, source = Campaign(mode), evil(mode=mode)
    bystander = await opened(source, "B")
    waiting = [name for name in (*REPLIES, *CHANGES) if name in STALLS]  # each waits for the wall limit: all at once
    for name in (*REPLIES, *CHANGES):
        if name not in STALLS:
            campaign.outcomes[name] = await attack(source, name, bystander)
    outcomes = await asyncio.gather(*(attack(source, name, bystander) for name in waiting))
    campaign.outcomes |= dict(zip(waiting, outcomes, strict=True))
    source.close()
    return campaign


@pytest.fixture(scope="module", params=MODES)
def campaign(request: pytest.FixtureRequest) -> Campaign:
    if not probe().modes[request.param].works:
        pytest.skip(f"mode {request.param} does not work here")
    tries = 3  # a busy machine may not fork a play within the short limit of these tests
    while True:
        tries -= 1
        try:
            return asyncio.run(run_campaign(request.param))
        except EnvironmentFault as error:
            if not tries or error.kind != "timeout":
                raise


@pytest.mark.parametrize("name", [*REPLIES, *CHANGES])
def test_a_hostile_reply_is_a_fault_of_its_environment(campaign: Campaign, name: str) -> None:
    outcome = campaign.outcomes[name]
    assert outcome.other == {"token": "B", "counter": 0}
    assert outcome.seconds < WALL + LATE
    assert outcome.seconds >= (0.9 * WALL if name in STALLS else 0.0)
    operation = WorkerOp.CHANGES if name in CHANGES else WorkerOp.CALL
    legal = 2 * STATE_BYTES if operation == WorkerOp.CHANGES else 1 << 20
    assert outcome.grown <= 3 * legal + (1 << 20)
    if name in HARMLESS:
        assert outcome.fault is None
    else:
        assert outcome.fault is not None and outcome.fault.kind in KINDS
        assert outcome.fault.message.isprintable() and len(outcome.fault.message) < 2100


@pytest.mark.parametrize("name", LOADS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_hostile_description_is_a_fault_of_its_environment(name: str, mode: str) -> None:
    source = evil(SHOP + LOAD.replace("CONTENT", LOADS[name]), mode=mode)
    start = time.monotonic()
    with pytest.raises(EnvironmentFault, match="shop") as caught:
        await source.spec()
    assert caught.value.kind in {"protocol", "start", "limit"}
    assert time.monotonic() - start < 20  # a worker starts within it, on a busy machine
    source.close()


@pytest.mark.parametrize("name", SHARING)
@pytest.mark.parametrize("mode", MODES)
async def test_plays_have_nothing_in_common(name: str, mode: str) -> None:
    source = evil(sharing_source(name), mode=mode)
    first, second = await opened(source, "A"), await opened(source, "B")
    for session in (first, second):
        result = await session.call("act", {})
        assert result.content in (1, {"result": 1}), name
    source.close()


async def test_a_worker_that_ends_its_calls_late_is_killed_in_time_though_it_says_that_it_works() -> None:
    """In a shared worker the progress is the code's own to write; it is believed until the deadline only."""
    progress = EVIL.replace(
        '    "nothing": lambda rid: raw(b""),',
        '    "nothing": lambda rid: [MARK(n) for n in iter(int, 1)],',
    ).replace("KEPT = []", "KEPT = []\nimport sys\n" + _MARK)
    source = evil(progress, plays="shared")
    session = await opened(source, "A")
    start = time.monotonic()
    with pytest.raises(EnvironmentFault) as caught:
        await session.call("act", {"how": "nothing"})
    assert caught.value.kind == "timeout"
    assert WALL * 0.9 < time.monotonic() - start < WALL + LATE
    source.close()


_MARK = """
def find_memory():
    frame_ = sys._getframe()
    while frame_:
        if frame_.f_code.co_name == "run" and "progress" in frame_.f_locals:
            return frame_.f_locals["progress"]
        frame_ = frame_.f_back
COUNT = [0]
def MARK(n):
    COUNT[0] += 1
    struct.pack_into("<Q", find_memory(), 0, COUNT[0])
"""


async def test_memory_of_all_plays_together_is_limited() -> None:
    source = evil(total_memory_mb=150)
    sessions = [await opened(source, "A") for _ in range(4)]
    for session in sessions:
        with suppress(EnvironmentFault):
            await session.call("act", {"how": "keeps memory"})
    for _ in range(100):
        await asyncio.sleep(0.0 if source.host.kills else 0.1)
    assert source.host.kills >= 1
    lost = [session.link._connection.lost for session in sessions]  # type: ignore[attr-defined]
    assert any("more than 150 MB in all its processes" in str(reason) for reason in lost)
    assert None in lost, "all were killed, where one was enough"
    source.close()


async def test_repeated_faults_put_an_environment_into_quarantine() -> None:
    source, honest = evil(kills=3), shop()
    kinds = []
    for _ in range(5):
        try:
            session = await opened(source, "A")
            await session.call("act", {"how": "content int"})
        except EnvironmentFault as fault:
            kinds.append(fault.kind)
    assert kinds == [*["protocol"] * 3, *["quarantine"] * 2]
    assert (await honest.spec()).name == "shop"
    source.close()
    honest.close()


@pytest.mark.parametrize("mode", MODES)
async def test_nothing_is_left_when_a_source_closes_before_its_plays(mode: str) -> None:
    source = evil(mode=mode)
    sessions = [await opened(source, "A") for _ in range(20)]
    pids = [session.link._connection.forked.pid for session in sessions]  # type: ignore[attr-defined]
    source.close()
    for _ in range(100):
        await asyncio.sleep(0.1 if any(map(psutil.pid_exists, pids)) else 0.0)
    assert not any(map(psutil.pid_exists, pids)), "zombies count"


async def test_a_check_remembers_nothing_of_another_verdict() -> None:
    source = "SEEN = []\ndef passed(initial, final, answer):\n    SEEN.append(1)\n    return len(SEEN) > 3\n"
    check = SandboxedCheck("passed", source, "passed")
    assert [await check.verdict({}, {}, None) for _ in range(8)] == [False] * 8
    check.close()


async def test_an_input_error_of_a_tool_never_leaves_as_one() -> None:
    source = evil(
        EVIL.replace('return {"done": how}', "from trajsmith.records import InputError; raise InputError('x')")
    )
    session = await opened(source, "A")
    with pytest.raises(EnvironmentFault, match=r"\.act: crash: InputError: x"):
        await session.call("act", {"how": "not an attack"})
    source.close()


UNARMED = """
import sys
frame_ = sys._getframe()
while frame_:
    if "lockdown" in frame_.f_globals and "_play_main" in frame_.f_globals:
        lockdown = frame_.f_globals["lockdown"]
        lockdown.arm_parent_death = lambda *_: None
    frame_ = frame_.f_back
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_play_that_does_not_arm_its_end_ends_with_the_parent_all_the_same(mode: str, tmp_path: Path) -> None:
    script = tmp_path / "unarmed.py"
    script.write_text(
        "import asyncio, sys\nfrom test_boundary import UNARMED, evil, opened\nfrom evil_worker import EVIL\n"
        "async def main():\n"
        f"    source = evil(EVIL + UNARMED, mode={mode!r}, wall_seconds=600.0)\n"
        "    sessions = [await opened(source, 'A') for _ in range(3)]\n"
        "    print(*[session.link._connection.forked.pid for session in sessions], flush=True)\n"
        "    await asyncio.gather(*(session.call('act', {'how': 'nothing'}) for session in sessions))\n"
        "asyncio.run(main())\n"
    )
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    process = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}, text=True
    )
    try:
        assert process.stdout is not None
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 3 and all(psutil.pid_exists(pid) for pid in pids)
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 10
        while (left := [pid for pid in pids if psutil.pid_exists(pid)]) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert left == []
    finally:
        process.kill()
        process.communicate()


def test_there_are_attacks_enough() -> None:
    assert len(REPLIES) + len(CHANGES) + len(LOADS) + len(SHARING) >= 60
