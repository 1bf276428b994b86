"""Several environments played as one."""

from typing import Any

import pytest

from trajsmith.environments.composite import CompositePart, CompositeSession, CompositeSource, compose_tool_name
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.native_source import build_library_source
from trajsmith.environments.replaying import ReplayingSession
from trajsmith.phrasing import Phrasebook
from trajsmith.records import EnvironmentSpec, InputError, ToolSpec, content_hash


async def source_of(*names: str) -> CompositeSource:
    sources = [build_library_source(name, {"small": 1}) for name in names]
    return CompositeSource([CompositePart(source, await source.spec()) for source in sources])


@pytest.fixture
async def both() -> CompositeSource:
    return await source_of("travel", "bank")


async def played(source: CompositeSource) -> tuple[Any, dict[str, Any]]:
    (state,) = await source.states(3)
    session = await source.open()
    await session.reset(state)
    return session, state


async def test_the_spec_has_the_tools_and_the_rules_of_all(both: CompositeSource) -> None:
    spec = await both.spec()
    bank, travel = (ENVIRONMENTS.get(name).describe() for name in ("bank", "travel"))
    assert spec.name == both.name == "bank+travel"
    assert [tool.name for tool in spec.tools] == [
        *(f"bank__{tool.name}" for tool in bank.tools),
        *(f"travel__{tool.name}" for tool in travel.tools),
    ]
    assert spec.tool("bank__list_accounts").input_schema == bank.tool("list_accounts").input_schema
    assert {tool.server for tool in spec.tools} == {"bank+travel"}
    assert spec.policy.index(bank.policy) < spec.policy.index("## travel") < spec.policy.index(travel.policy)
    assert spec == await (await source_of("bank", "travel")).spec()


async def test_calls_change_the_state_of_their_environment_only(both: CompositeSource) -> None:
    session, state = await played(both)
    assert state.keys() == {"bank", "travel"}
    assert await session.snapshot() == state
    assert await session.state_hash() == content_hash(state)
    card = next(name for name, card in state["bank"]["cards"].items() if card["status"] == "active")
    result = await session.call("bank__freeze_card", {"card_id": card, "reason": "lost"})
    assert result.ok, result.text
    after = await session.snapshot()
    assert after["travel"] == state["travel"]
    assert after["bank"]["cards"][card]["status"] != state["bank"]["cards"][card]["status"]
    await session.close()


async def test_it_goes_back_in_all_environments_at_once(both: CompositeSource) -> None:
    session, state = await played(both)
    assert isinstance(session, CompositeSession)
    point = await session.checkpoint()
    card = next(iter(state["bank"]["cards"]))
    await session.call("bank__freeze_card", {"card_id": card, "reason": "lost"})
    await session.rollback(point)
    assert await session.snapshot() == state
    await session.close()


async def test_sessions_without_checkpoints_go_back_too(both: CompositeSource) -> None:
    class Plain:
        """A session that can only be reset."""

        def __init__(self, inner: Any) -> None:
            self.spec, self.reset, self.call = inner.spec, inner.reset, inner.call
            self.snapshot, self.state_hash, self.close = inner.snapshot, inner.state_hash, inner.close

    session, state = await played(both)
    inner = {name: Plain(one) for name, one in session._sessions.items()}
    plain = CompositeSession(session.spec, inner, both.homes, session._stack)
    assert all(isinstance(one, ReplayingSession) for one in plain._sessions.values())
    await plain.reset(state)
    point = await plain.checkpoint()
    card = next(iter(state["bank"]["cards"]))
    await plain.call("bank__freeze_card", {"card_id": card, "reason": "lost"})
    await plain.rollback(point)
    assert await plain.snapshot() == state
    await plain.close()


@pytest.mark.parametrize("tool", ["list_accounts", "bank.list_accounts", "bank__nothing", "travel__list_accounts"])
async def test_only_joined_names_can_be_called(both: CompositeSource, tool: str) -> None:
    session, _ = await played(both)
    result = await session.call(tool, {})
    assert (result.error, result.content) == ("unknown_tool", {"error": f"unknown tool: {tool}"})
    await session.close()


async def test_every_tool_keeps_its_own_words(both: CompositeSource) -> None:
    words = both.phrasebook
    bank, travel = (part.source.phrasebook for part in both.parts)
    assert words.tools["bank__list_accounts"] == bank.tools["list_accounts"]
    assert words.tools["travel__list_trips"] == travel.tools["list_trips"]
    assert words.parameters["travel__find_traveller.email"] == travel.parameters["email"]
    assert set(words.name_from) == {f"bank.{path}" for path in bank.name_from} | {
        f"travel.{path}" for path in travel.name_from
    }
    for name, entity in bank.entities.items():
        assert words.entities.get(name, entity) == entity
        assert name in words.entities or travel.entities[name] != entity


def test_names_fit_endpoints() -> None:
    assert compose_tool_name("bank", "list_accounts") == "bank__list_accounts"
    assert compose_tool_name("@owner/my.server", "get") == "_owner_my_server__get"


class Silent:
    """A source that is only looked at."""

    isolation, notes, phrasebook = "nowhere", (), Phrasebook()


def part(name: str, tool: str) -> CompositePart:
    spec = ToolSpec(server=name, name=tool, input_schema={"type": "object"})
    return CompositePart(
        Silent(),  # type: ignore[arg-type]
        EnvironmentSpec(name=name, version="1", description="", tools=(spec,), source="python"),
    )


def test_environments_whose_names_are_too_long_together_are_refused() -> None:
    parts = [part(letter * 53, "get") for letter in "abc"]
    with pytest.raises(InputError, match=r"the name is longer than 120 characters: .* lower sample\.servers"):
        CompositeSource(parts)
    assert len(CompositeSource(parts[:2]).name) == 107


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([part("a.b", "get"), part("a_b", "get")], "the tool a_b__get is there twice"),
        ([part("a", "x" * 70), part("b", "get")], "is longer than 64 characters"),
    ],
    ids=["twice", "too-long"],
)
def test_names_that_cannot_be_told_apart_are_refused(parts: list[CompositePart], said: str) -> None:
    with pytest.raises(InputError, match=f"{said}.*set sample.servers to 1"):
        CompositeSource(parts)
