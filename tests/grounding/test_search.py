"""Grounding: the search goes back where it must, leaves out what is hopeless, and says where every value is from."""

import random

import pytest
from cellar import Cellar, Restarting, cellar_state, chain_of
from upheld import assert_provenance_is_right, assert_runs_again

from trajsmith.environments import NativeSession, Session, ToolResult
from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.environments.native_source import build_library_source
from trajsmith.grounding import Grounder, GroundSettings, is_empty
from trajsmith.phrasing import Phrasebook
from trajsmith.records import (
    Actor,
    Chain,
    EnvironmentFault,
    GroundedChain,
    JsonObject,
    RecordDropped,
    compute_state_digest,
)
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, build_graph

SEEDS = range(8)


@pytest.fixture(autouse=True)
def forget_the_first_key() -> None:
    Cellar.first_key = None


def open_cellar() -> NativeSession:
    return NativeSession(Cellar, Cellar.describe())


async def ground(
    *tools: str, seed: int = 0, session: Session | None = None, boxes: int = 5, **more: float
) -> GroundedChain:
    settings = GroundSettings.model_validate({"min_calls": 1, **more})
    grounder = Grounder(Cellar.describe(), cellar_state(boxes), Phrasebook(), settings)
    return await grounder.ground(chain_of(*tools, seed=seed), session or open_cellar())


def called(grounded: GroundedChain) -> list[str]:
    return [call.tool for call in grounded.calls]


# Going back


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_wrong_choice_is_taken_back(seed: int) -> None:
    grounded = await ground("list_boxes", "get_key", "open_door", seed=seed)
    assert called(grounded) == ["list_boxes", "get_key", "open_door"]
    assert grounded.skipped == ()
    assert grounded.calls[1].result["key_id"] != Cellar.first_key
    assert grounded.attempts >= 5
    assert_provenance_is_right(grounded, Cellar.describe())
    await assert_runs_again(grounded, cellar_state(), open_cellar())


@pytest.mark.parametrize("seed", SEEDS)
async def test_going_back_jumps_over_what_is_not_to_blame(seed: int) -> None:
    """The bell between key and door has nothing to do with it; in the end it has rung once."""
    grounded = await ground("list_boxes", "get_key", "ring_bell", "open_door", seed=seed)
    assert called(grounded) == ["list_boxes", "get_key", "ring_bell", "open_door"]
    assert grounded.calls[3].result["rings"] == 1
    assert_provenance_is_right(grounded, Cellar.describe())
    await assert_runs_again(grounded, cellar_state(), open_cellar())


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_session_without_checkpoints_starts_anew(seed: int) -> None:
    session = Restarting()
    grounded = await ground("list_boxes", "get_key", "ring_bell", "open_door", seed=seed, session=session)
    assert called(grounded) == ["list_boxes", "get_key", "ring_bell", "open_door"]
    assert session.resets >= 2
    await assert_runs_again(grounded, cellar_state(), open_cellar())


class Clumsy(NativeSession):
    """Foreign tools may begin before they refuse: here every refusal rings the bell."""

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        result = await super().call(tool, arguments, actor)
        if not result.ok:
            await super().call("ring_bell", {"song": "ding"})
        return result


@pytest.mark.parametrize("seed", SEEDS)
async def test_what_a_refused_call_left_behind_is_undone(seed: int) -> None:
    session = Clumsy(Cellar, Cellar.describe())
    grounded = await ground("list_boxes", "get_key", "open_door", seed=seed, session=session)
    assert called(grounded) == ["list_boxes", "get_key", "open_door"]
    assert grounded.calls[2].result["rings"] == 0
    await assert_runs_again(grounded, cellar_state(), open_cellar())


async def test_with_one_box_the_door_stays_shut() -> None:
    grounded = await ground("list_boxes", "get_key", "open_door", "ring_bell", boxes=1)
    assert called(grounded) == ["list_boxes", "get_key", "ring_bell"]
    assert grounded.skipped == ("open_door",)
    await assert_runs_again(grounded, cellar_state(1), open_cellar())


async def test_the_same_seed_finds_the_same() -> None:
    found = []
    for _ in range(2):
        Cellar.first_key = None
        found.append(await ground("list_boxes", "get_key", "ring_bell", "open_door", seed=3))
    assert found[0].id == found[1].id
    assert found[0].to_line() == found[1].to_line()


# Leaving out


@pytest.mark.parametrize(
    ("tools", "made", "skipped"),
    [
        pytest.param(
            ("list_boxes", "request_ticket", "use_ticket", "ring_bell"),
            ["list_boxes", "ring_bell"],
            ("request_ticket", "use_ticket"),
            id="refused-with-what-hangs-on-it",
        ),
        pytest.param(("use_ticket", "ring_bell"), ["ring_bell"], ("use_ticket",), id="nothing-gives-its-id"),
        pytest.param(("list_spiders", "ring_bell"), ["ring_bell"], ("list_spiders",), id="read-that-gives-nothing"),
        pytest.param(("do_nothing", "ring_bell"), ["ring_bell"], ("do_nothing",), id="write-that-changes-nothing"),
        pytest.param(("clap", "ring_bell"), ["clap", "ring_bell"], (), id="tool-of-the-user"),
    ],
)
async def test_hopeless_steps_are_left_out(tools: tuple[str, ...], made: list[str], skipped: tuple[str, ...]) -> None:
    grounded = await ground(*tools)
    assert called(grounded) == made
    assert grounded.skipped == skipped
    await assert_runs_again(grounded, cellar_state(), open_cellar())


async def test_too_few_calls_are_dropped_with_the_names_of_what_is_missing() -> None:
    with pytest.raises(RecordDropped, match="2 of 4 tools could be called; not: request_ticket, use_ticket") as caught:
        await ground("list_boxes", "request_ticket", "use_ticket", "ring_bell", min_calls=3)
    assert caught.value.reason == "too_few_calls"


async def test_the_budget_bounds_the_search() -> None:
    with pytest.raises(RecordDropped) as caught:
        await ground("list_boxes", "get_key", "open_door", budget=2, min_calls=3)
    assert caught.value.reason == "too_few_calls"


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        pytest.param("crash", "crash", "ZeroDivisionError: of course", id="crash"),
        pytest.param("mumble", "output_schema", "valid integer", id="wrong-type-of-result"),
    ],
)
async def test_a_broken_environment_is_no_drop(name: str, kind: str, message: str) -> None:
    with pytest.raises(EnvironmentFault, match=message) as caught:
        await ground("ring_bell", name)
    assert (caught.value.kind, caught.value.environment, caught.value.tool) == (kind, "cellar", name)


@pytest.mark.parametrize(
    ("content", "empty"),
    [
        pytest.param({}, True, id="object"),
        pytest.param({"result": []}, True, id="list"),
        pytest.param({"result": {"rows": []}}, True, id="deep"),
        pytest.param("", True, id="text"),
        pytest.param(None, True, id="null"),
        pytest.param({"result": 0}, False, id="zero"),
        pytest.param({"result": False}, False, id="false"),
        pytest.param({"rows": [], "total": 0}, False, id="a-count"),
        pytest.param({"rows": [{}]}, False, id="a-row"),
    ],
)
def test_is_empty(content: object, empty: bool) -> None:
    assert is_empty(ToolResult(content)) is empty


# Bundled environments


@pytest.mark.parametrize("name", ["retail", "calendar", "travel"])
@pytest.mark.parametrize("checkpoints", [True, False], ids=["checkpoints", "restarts"])
async def test_provenance_in_real_environments(name: str, checkpoints: bool) -> None:
    cls = ENVIRONMENTS.get(name)
    spec, book = cls.describe(), build_library_source(name, {}).phrasebook
    state = cls.seed_state("small", 4).model_dump(mode="json")
    sampler = Sampler(GraphIndex(build_graph(spec.tools), name), SampleSettings())
    grounder = Grounder(spec, state, book, GroundSettings())
    assert get_phrases_path(cls).is_file()
    for seed in range(6):
        tools, dependencies = sampler.draw(random.Random(seed))
        chain = Chain(
            index=seed,
            environment=name,
            tools=tuple(tools),
            dependencies=tuple(dependencies),
            state=compute_state_digest(state),
            sampler={},
            seed=seed,
        )
        session: Session = NativeSession(cls, spec)
        if not checkpoints:
            restarting = Restarting()
            restarting.inner, restarting.spec = NativeSession(cls, spec), spec
            session = restarting
        grounded = await grounder.ground(chain, session)
        assert_provenance_is_right(grounded, spec)
        await assert_runs_again(grounded, state, NativeSession(cls, spec))
