"""Sessions of programs: when they ask for the state, and how they go back."""

from collections.abc import Sequence

import pytest
from drawers import Drawers, drawers_state

from trajsmith.environments.native_program import NativeProgram
from trajsmith.environments.program_sessions import LocalEpisodeLink, RestorableSession
from trajsmith.environments.programs import StateChange
from trajsmith.records import EnvironmentFault, JsonObject, compute_state_digest


class Counting(LocalEpisodeLink):
    """A link that notes what is asked of it."""

    def __init__(self) -> None:
        super().__init__(NativeProgram(Drawers))
        self.asked: list[str] = []

    async def start(self, state: bytes, changes: Sequence[StateChange]) -> None:
        self.asked.append(f"start {len(changes)}")
        await super().start(state, changes)

    restart = start

    async def changes(self) -> list[StateChange]:
        self.asked.append("changes")
        return await super().changes()


def state() -> JsonObject:
    return drawers_state().model_dump(mode="json")


@pytest.fixture
def link() -> Counting:
    return Counting()


@pytest.fixture
async def session(link: Counting) -> RestorableSession:
    made = RestorableSession(Drawers.describe(), link)
    await made.reset(state())
    return made


async def test_the_state_is_asked_for_only_where_somebody_looks(session: RestorableSession, link: Counting) -> None:
    for _ in range(3):
        await session.call("add", {"key": "x", "worth": 1})
    assert link.asked == ["start 0"]
    assert await session.state_hash() == compute_state_digest(await session.snapshot())
    await session.checkpoint()
    assert link.asked == ["start 0", "changes"]


async def test_going_back_costs_what_changed(session: RestorableSession, link: Counting) -> None:
    await session.call("add", {"key": "x", "worth": 1})
    mark, digest = await session.checkpoint(), await session.state_hash()
    for key in "pqrs":
        await session.call("add", {"key": key, "worth": 1})
    assert await session.state_hash() != digest
    await session.rollback(mark)
    assert link.asked[-1] == "start 2"  # the coin, and the counter of coins
    assert await session.state_hash() == digest
    assert (await session.call("add", {"key": "y", "worth": 1})).content["coin_id"] == "C2"


async def test_a_checkpoint_leads_another_session_there(session: RestorableSession) -> None:
    await session.call("to_the_end", {"key": "a"})
    other = RestorableSession(Drawers.describe(), Counting())
    await other.rollback(await session.checkpoint())
    assert list((await other.snapshot())["boxes"]) == ["b", "c", "a"]
    assert (await other.call("orders", {})).content == (await session.call("orders", {})).content


async def test_snapshots_stay_as_they_were(session: RestorableSession) -> None:
    before = await session.snapshot()
    await session.call("add", {"key": "x", "worth": 1})
    await session.snapshot()
    assert before == state()


async def test_what_the_class_fills_in_is_told() -> None:
    session = RestorableSession(Drawers.describe(), Counting())
    given = {"now": "2026-03-02T09:00:00", "coins": {"a": {"coin_id": "a", "worth": 1}}}
    await session.reset(given)
    snapshot = await session.snapshot()
    assert snapshot["coins"]["a"] == {"coin_id": "a", "worth": 1.0, "seen": None}
    assert snapshot["counters"] == {}
    assert await session.state_hash() == compute_state_digest(snapshot)
    await session.rollback(await session.checkpoint())
    assert await session.snapshot() == snapshot


async def test_a_session_that_was_not_reset_or_is_closed_has_no_state(session: RestorableSession) -> None:
    fresh = RestorableSession(Drawers.describe(), Counting())
    await session.close()
    for empty in (fresh, session):
        for ask in (empty.snapshot(), empty.state_hash(), empty.checkpoint(), empty.call("orders", {})):
            with pytest.raises(EnvironmentFault, match="drawers: state: session was used before reset"):
                await ask
