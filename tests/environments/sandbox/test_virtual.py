"""The virtual world: the same clock and chance for the same call, whatever happened before, in any process."""

import copy
import datetime
import json
import os
import pickle
import random
import secrets
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any

import numpy.random
import pytest
from contamination import CALLS, CASES, Case

from trajsmith.environments.foreign import run_source
from trajsmith.environments.sandbox.virtual import CALL_NS, EPOCH_NS, VirtualSources


@pytest.fixture
def world() -> Iterator[VirtualSources]:
    made = VirtualSources()
    made.install()
    yield made
    made.remove()


SOURCES = {
    "time.time": lambda: time.time(),
    "time.time_ns": lambda: time.time_ns(),
    "datetime.now": lambda: datetime.datetime.now().isoformat(),
    "datetime.utcnow": lambda: datetime.datetime.now(datetime.UTC).isoformat(),
    "date.today": lambda: datetime.date.today().isoformat(),
    "localtime": lambda: list(time.localtime()),
    "gmtime": lambda: list(time.gmtime()),
    "strftime": lambda: time.strftime("%c"),
    "ctime": lambda: time.ctime(),
    "asctime": lambda: time.asctime(),
    "perf_counter": lambda: [time.perf_counter(), time.perf_counter_ns()],
    "random": lambda: random.random(),
    "randint": lambda: [random.randint(1, 10**9), random.sample(range(100), 3), random.choices("abc", k=3)],
    "gauss": lambda: random.gauss(0, 1),
    "randbytes": lambda: random.randbytes(4).hex(),
    "getstate": lambda: hash(random.getstate()),
    "Random()": lambda: random.Random().random(),
    "SystemRandom": lambda: [random.SystemRandom().random(), random.SystemRandom().randint(1, 10**9)],
    "secrets": lambda: [secrets.token_hex(4), secrets.randbelow(10**9), secrets.choice(range(10**6))],
    "urandom": lambda: [os.urandom(8).hex(), os.getrandom(8).hex()],
    "uuid1": lambda: str(uuid.uuid1()),
    "uuid4": lambda: str(uuid.uuid4()),
    "numpy": lambda: float(numpy.random.random()),
    "numpy generator": lambda: float(numpy.random.default_rng().random()),
}
"""One reading of each source, as JSON."""
CLOCKS = {
    "time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "date.today", "localtime", "gmtime", "strftime",
    "ctime", "asctime", "perf_counter",
}  # fmt: skip


def readings() -> dict[str, Any]:
    return {name: read() for name, read in SOURCES.items()}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_depends_on_the_call_alone(world: VirtualSources, name: str) -> None:
    read = SOURCES[name]
    world.set(b"play", 3)
    first = [read(), read()]
    world.set(b"other", 9, 1)
    readings()
    world.set(b"play", 3)
    assert [read(), read()] == first, "what happened in between was noticed"
    world.set(b"play", 4)
    assert name == "date.today" or read() != first[0], "another number gives the same"
    world.set(b"other", 3)
    assert (read() == first[0]) == (name in CLOCKS), "the key is for chance alone"
    world.set(b"play", 3, 1)
    assert read() != first[0], "a shifted world gives the same"


OTHER_PROCESS = """
import json, os, resource, sys
sys.path[:0] = json.loads(sys.argv[1])
from test_virtual import VirtualSources, readings
world = VirtualSources()
world.install()
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
try:
    open("/etc/passwd")
except OSError:
    world.set(b"play", 5)
    for _ in range(int(sys.argv[2])):
        readings()
    world.set(b"play", 7)
    print(json.dumps(readings()))
"""


def test_it_is_the_same_in_another_process_that_can_open_no_file(world: VirtualSources) -> None:
    told = []
    for seed, before in (("1", "0"), ("2", "3")):
        command = [sys.executable, "-c", OTHER_PROCESS, json.dumps([p for p in sys.path if p]), before]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo"}
        told.append(json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout))
    world.set(b"play", 7)
    here = json.loads(json.dumps(readings()))
    assert told == [here, here]


def test_a_fork_goes_on_in_the_same_world(world: VirtualSources) -> None:
    world.set(b"play", 1)
    out, into = os.pipe()
    if os.fork() == 0:
        os.write(into, json.dumps(readings()).encode())
        os._exit(0)
    os.wait()
    assert json.loads(os.read(out, 1 << 16)) == json.loads(json.dumps(readings()))
    os.close(out)
    os.close(into)


def test_call_times_are_minutes_from_a_monday_and_readings_microseconds_apart(world: VirtualSources) -> None:
    world.set(b"", 0)
    assert datetime.datetime.now() == datetime.datetime(2025, 6, 2, 9, 0, 0, 1)
    assert datetime.datetime.now() == datetime.datetime(2025, 6, 2, 9, 0, 0, 2)
    world.set(b"", 90)
    assert time.time_ns() - EPOCH_NS == 90 * CALL_NS + 1000
    assert time.localtime().tm_zone == "UTC"
    world.set(b"", 0, 1)
    shifted = datetime.datetime.now()
    assert (shifted.year, shifted.month, shifted.weekday(), shifted.hour) == (2026, 7, 1, 16)


@pytest.mark.parametrize(
    ("code", "used"),
    [
        ("1 + 1", set()),
        ("datetime.datetime(2020, 1, 1)", set()),
        ("time.monotonic() + time.process_time()", set()),
        ("random.Random(1).random()", set()),
        ("[random.seed(1), random.random()]", set()),
        ("uuid.uuid5(uuid.NAMESPACE_DNS, 'x')", set()),
        ("time.sleep(1)", set()),
        ("datetime.date.today()", {"clock"}),
        ("time.ctime()", {"clock"}),
        ("time.perf_counter()", {"clock"}),
        ("random.shuffle([1, 2])", {"random"}),
        ("random.Random()", {"random"}),
        ("random.seed()", {"random"}),
        ("random.getstate()", {"random"}),
        ("numpy.random.random()", {"random"}),
        ("uuid.uuid4()", {"uuid"}),
        ("uuid.uuid1()", {"uuid", "clock"}),
        ("secrets.token_hex()", {"entropy"}),
        ("random.SystemRandom().random()", {"entropy"}),
        ("os.urandom(1)", {"entropy"}),
    ],
)
def test_it_knows_what_a_call_used(world: VirtualSources, code: str, used: set[str]) -> None:
    world.set(b"play", 1)
    eval(code)
    assert world.used_sources() == used
    world.set(b"play", 2)
    assert world.used_sources() == set()


def test_the_second_half_of_a_pair_of_numbers_stays_with_its_call(world: VirtualSources) -> None:
    world.set(b"play", 1)
    first = random.gauss(0, 1)
    world.set(b"play", 2)
    assert random.gauss(0, 1) != first
    world.set(b"play", 1)
    assert random.gauss(0, 1) == first


def test_a_state_or_seed_that_a_call_sets_counts_until_the_next_call(world: VirtualSources) -> None:
    world.set(b"play", 1)
    random.seed(5)
    drawn = random.random()
    world.set(b"other", 2)
    random.seed(5)
    assert random.random() == drawn == random.Random(5).random()
    world.set(b"other", 3)
    random.setstate(random.Random(5).getstate())
    assert random.random() == drawn
    world.set(b"other", 4)
    assert random.random() != drawn


def test_a_seed_that_a_play_gives_while_it_is_loaded_is_kept(world: VirtualSources) -> None:
    def draws(seed: int | None, key: bytes, shift: int) -> list[float]:
        world.set(key, 0, shift)
        random.seed(seed)
        own = world.own_seed()
        assert (own is None) == (seed is None)
        drawn = []
        for number in (1, 2):
            world.set(key, number, shift, own)
            drawn += [random.random(), random.gauss(0, 1)]
            assert ("random" in world.used_sources()) == (seed is None)
        return drawn

    assert draws(7, b"play", 0) == draws(7, b"other", 3), "it goes by the seed and the number of the call alone"
    assert draws(7, b"play", 0) != draws(8, b"play", 0)
    assert len(set(draws(7, b"play", 0))) == 4
    assert draws(None, b"play", 0) != draws(None, b"other", 0)
    world.set(b"play", 1)
    assert world.own_seed() is None


def test_copies_of_the_shared_generator_are_plain_ones(world: VirtualSources) -> None:
    world.set(b"play", 1)
    own = copy.deepcopy(random._inst), pickle.loads(pickle.dumps(random._inst))
    drawn = random.random()
    assert [type(one) for one in own] == [random.Random] * 2
    assert [one.random() for one in own] == [drawn] * 2


def test_sleep_takes_no_time_and_moves_the_clock(world: VirtualSources) -> None:
    world.set(b"play", 1)
    start, real = time.time_ns(), time.monotonic()
    time.sleep(3600)
    assert time.time_ns() - start == 3600 * 10**9 + 1000
    assert time.monotonic() - real < 600
    for wrong, error in ((-1, ValueError), (float("nan"), ValueError), (1e10, OverflowError), ("1", TypeError)):
        with pytest.raises(error):
            time.sleep(wrong)  # type: ignore[arg-type]


def test_wrong_sizes_are_refused_as_by_the_system(world: VirtualSources) -> None:
    with pytest.raises(ValueError, match="negative"):
        os.urandom(-1)
    with pytest.raises(TypeError):
        os.urandom("1")  # type: ignore[arg-type]


def test_timers_go_on(world: VirtualSources) -> None:
    fired: list[int] = []
    before = signal.signal(signal.SIGPROF, lambda number, frame: fired.append(number))
    try:
        signal.setitimer(signal.ITIMER_PROF, 0.01)
        while not fired and time.process_time() < 600:
            world.set(b"play", 1)
            readings()
        assert fired == [signal.SIGPROF]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def test_there_is_one_world_and_it_can_be_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    names = [
        (os, "urandom"),
        (random, "random"),
        (random, "_inst"),
        (random.Random, "seed"),
        (time, "sleep"),
        (uuid, "uuid4"),
    ]
    real = [vars(owner)[name] for owner, name in names]
    world = VirtualSources()
    world.install()
    try:
        with pytest.raises(RuntimeError, match="already"):
            VirtualSources().install()
        assert all(vars(owner)[name] is not one for (owner, name), one in zip(names, real, strict=True))
    finally:
        world.remove()
    assert [vars(owner)[name] for owner, name in names] == real
    assert time.time_ns() > EPOCH_NS + 10**9 * 86400
    assert os.environ["TZ"] == "Asia/Tokyo"


def alone(source: str, world: VirtualSources) -> list[Any]:
    desk = run_source(source, "desk.py").Desk()
    return [played(desk, world, b"a", number, argument) for number, argument in enumerate(CALLS)]


def among_others(source: str, world: VirtualSources) -> list[Any]:
    module = run_source(source, "desk.py")
    desk, others, results = module.Desk(), [module.Desk() for _ in range(3)], []
    for number, argument in enumerate(CALLS):
        for which, other in enumerate(others):
            played(other, world, b"other %d" % which, number, argument + which)
        results.append(played(desk, world, b"a", number, argument))
    return results


def played(desk: Any, world: VirtualSources, key: bytes, number: int, argument: int) -> Any:
    world.set(key, number)
    return desk.act(argument)


@pytest.mark.parametrize("case", [c for c in CASES if c.rule != "object-id"], ids=lambda case: case.name)
def test_other_sessions_change_results_only_of_code_that_the_gate_refuses(world: VirtualSources, case: Case) -> None:
    results = alone(case.source, world)
    assert (among_others(case.source, world) != results) == case.differs
    assert alone(case.source, world) == results, "the same calls gave something else the second time"
    assert case.rule or not case.differs
