"""Random valid calls: answers fit the document, references hold, plays are alone, a state is all there is."""

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plays import Judge, lost_references, program, random_call, state_of

from trajsmith.environments.adapters.openapi.program import OpenApiProgram
from trajsmith.environments.program_sessions import LocalEpisodeLink, RestorableSession
from trajsmith.environments.programs import apply_changes
from trajsmith.records import canonical_json, compute_state_digest

NAMES = ("shop.yaml", "desk.json", "awkward.yaml", "nullable.yaml")
PROGRAMS: dict[str, tuple[OpenApiProgram, list[bytes], Judge | None]] = {}


def loaded(name: str) -> tuple[OpenApiProgram, list[bytes], Judge | None]:
    if name not in PROGRAMS:
        made = program(name)
        judge = Judge(name) if name != "nullable.yaml" else None
        PROGRAMS[name] = made, [canonical_json(state) for state in made.states(3)], judge
    return PROGRAMS[name]


def outcome(play: Any, tool: str, arguments: dict[str, Any]) -> tuple[Any, str | None]:
    result = play.call(tool, arguments)
    return result.content, result.error


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(numbers=st.lists(st.integers(0, 10**9), min_size=1, max_size=15), split=st.integers(0, 14))
def test_random_calls(name: str, numbers: list[int], split: int) -> None:
    made, starts, judge = loaded(name)
    start = starts[numbers[0] % len(starts)]
    play, other = made.start(start), made.start(start)
    saved = None
    state = orjson.loads(start)
    told: list[Any] = []
    for number, seed in enumerate(numbers):
        if number == split:
            saved = made.start(canonical_json(state))
        call = random_call(made, state, seed)
        if call is None:
            continue
        tool, arguments = call
        before = canonical_json(state)
        content, error = outcome(play, tool, arguments)
        told.extend(play.changes())
        state = apply_changes(start, told)
        assert error in (None, "refused"), (tool, arguments, content)
        assert error is None or canonical_json(state) == before, f"{tool} was refused and changed the state"
        assert lost_references(made, state) == []
        if error is None and judge is not None:
            assert judge.find_fault(made.built.derived[tool].operation.label, content) is None, (
                tool,
                arguments,
                content,
            )
        if saved is not None:
            assert outcome(saved, tool, arguments) == (content, error), "a loaded state plays differently"
    assert other.changes() == [], "a play saw what another did"
    assert state_of(other, start) == orjson.loads(start)
    made.start(canonical_json(state))  # every state that calls lead to is a state


@pytest.mark.parametrize("name", NAMES)
async def test_a_hosted_session_follows_the_play_and_rolls_back(name: str) -> None:
    made, starts, _ = loaded(name)
    session = RestorableSession(made.spec, LocalEpisodeLink(made))
    await session.reset(orjson.loads(starts[0]))
    first = await session.checkpoint()
    begun = await session.state_hash()
    results = []
    for seed in range(30):
        call = random_call(made, await session.snapshot(), seed)
        if call is not None:
            results.append((call, await session.call(*call)))
    assert await session.state_hash() == compute_state_digest(await session.snapshot()) != begun
    await session.rollback(first)
    assert await session.state_hash() == begun
    for call, result in results:
        assert await session.call(*call) == result, call
