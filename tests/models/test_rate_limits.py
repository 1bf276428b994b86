"""`concurrency: auto` against servers that have a capacity, in simulated time."""

import asyncio
import heapq
from collections.abc import Callable

import pytest
from chatting import settings

from trajsmith.models import rate_limits
from trajsmith.models.rate_limits import FIRST_CONCURRENCY, AdaptiveSlots, RateLimits
from trajsmith.models.settings import MOST_CONCURRENCY


class Simulation:
    """A server whose replies take `seconds(in_flight)`; one whose in-flight requests pass `most` refuses."""

    def __init__(self, seconds: Callable[[int], float], most: int = 10**6) -> None:
        self.now = 0.0
        self.slots = AdaptiveSlots()
        self.in_flight: list[tuple[float, float, bool]] = []
        self.limits: list[int] = []
        self.refused = 0
        self._seconds, self._most = seconds, most

    async def run(self, requests: int) -> None:
        sent = 0
        while sent < requests or self.in_flight:
            while sent < requests and len(self.in_flight) < int(self.slots.limit):
                await self.slots.__aenter__()
                refused = len(self.in_flight) >= self._most
                seconds = 0.01 if refused else self._seconds(len(self.in_flight) + 1)
                heapq.heappush(self.in_flight, (self.now + seconds, self.now, refused))
                sent += 1
            self.now, at, refused = heapq.heappop(self.in_flight)
            if refused:
                self.refused += 1
                self.slots.reduce(at, "rate_limit")
            else:
                self.slots.note_reply(at, 100)
            await self.slots.__aexit__()
            self.limits.append(int(self.slots.limit))


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Simulation]:
    def build(seconds: Callable[[int], float], most: int = 10**6) -> Simulation:
        simulation = Simulation(seconds, most)
        monkeypatch.setattr(rate_limits, "monotonic", lambda: simulation.now)
        return simulation

    return build


async def test_a_fast_server_gets_all_that_is_allowed(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate(lambda in_flight: 1.0)
    await simulation.run(20_000)
    assert simulation.limits[0] == FIRST_CONCURRENCY + 1
    assert simulation.limits[-1] == MOST_CONCURRENCY
    assert simulation.limits.index(MOST_CONCURRENCY) < 3 * MOST_CONCURRENCY  # slow start: doubled each round


async def test_a_server_that_refuses_is_asked_as_often_as_it_answers(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate(lambda in_flight: 1.0, most=100)
    await simulation.run(20_000)
    late = simulation.limits[5_000:]
    assert min(late) >= 45 and max(late) <= 101
    assert simulation.refused < 0.03 * len(simulation.limits)


async def test_a_queue_in_the_server_is_noticed_by_its_replies(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate(lambda in_flight: max(1.0, in_flight / 50))  # 50 at a time, the others wait
    await simulation.run(40_000)
    late = sorted(simulation.limits[10_000:])
    assert 50 <= late[len(late) // 2] <= 200, "busy, and not with a queue of a thousand"
    assert simulation.now < 1.1 * 40_000 / 50, "as fast as the server is"


async def test_a_server_that_is_back_is_used_as_before(simulate: Callable[..., Simulation]) -> None:
    simulation = simulate(lambda in_flight: 1.0)
    await simulation.run(2_000)
    before = int(simulation.slots.limit)
    for _ in range(6):  # an outage: round after round without a reply
        simulation.now += 10
        simulation.slots.reduce(simulation.now, "server")
    assert int(simulation.slots.limit) <= before // 32
    simulation.limits.clear()
    await simulation.run(3_000)
    assert simulation.limits.index(before // 2) < 2 * before


async def test_a_server_that_stays_slow_for_others_is_not_asked_one_by_one(simulate: Callable[..., Simulation]) -> None:
    seconds = 1.0
    simulation = simulate(lambda in_flight: seconds)
    await simulation.run(1_000)
    seconds = 8.0
    await simulation.run(20_000)
    assert simulation.limits[-1] > 100


async def test_those_who_give_up_waiting_take_no_slot() -> None:
    slots = AdaptiveSlots(first=1)
    async with slots:
        waiting = [asyncio.create_task(slots.__aenter__()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
    waiting[1].cancel()  # in the moment in which it has its turn
    await asyncio.wait(waiting[:2])
    await waiting[2]
    await slots.__aexit__()
    async with asyncio.timeout(5):
        async with slots:
            assert slots.limit == 1


def test_a_number_stays_a_number() -> None:
    limits = RateLimits(settings("http://localhost:1/v1", concurrency=3))
    for _ in range(100):
        limits.note_failure(0.0, "rate_limit")
        limits.note_reply(0.0, 1)
    assert limits._slots._value == 3


@pytest.mark.parametrize("more", [{"provider": "vllm"}, {"provider": "transformers"}, {"batch": True}])
def test_auto_is_for_servers(more: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="give a number"):
        settings("http://localhost:1/v1", concurrency="auto", **more)
