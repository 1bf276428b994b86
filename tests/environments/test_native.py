"""The native form: what a call may do, whose fault a failure is, and what a session remembers."""

from datetime import datetime
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from trajsmith.environments import (
    Environment,
    EnvironmentState,
    NativeSession,
    StateModel,
    ToolError,
    diff,
    native_tools,
    tool,
)
from trajsmith.records import EnvironmentFault, InputError, JsonObject, compute_state_digest


class Jar(StateModel):
    jar_id: str
    sweets: int
    kind: Literal["mint", "toffee"] = "mint"


class ShelfState(EnvironmentState):
    jars: dict[str, Jar] = {}


class Shelf(Environment[ShelfState]):
    """Jars with sweets."""

    policy = "1. Never take more than there is."

    @tool(effect="read")
    def get_jar(self, jar_id: str) -> Jar:
        """Look into a jar.

        Args:
            jar_id: Which jar.
        """
        return self.lookup(self.state.jars, jar_id, "jar")

    @tool(effect="read")
    def list_jars(self) -> list[Jar]:
        """All jars."""
        return list(self.state.jars.values())

    @tool(effect="write", destructive=True)
    def take(self, jar_id: str, number: Annotated[int, Field(ge=1)], fast: bool = False) -> Jar:
        """Take sweets, one by one, until there are none left.

        Args:
            jar_id: Which jar.
            number: How many.
            fast: Whether to hurry.
        """
        jar = self.lookup(self.state.jars, jar_id, "jar")
        for _ in range(number):
            if jar.sweets == 0:
                raise ToolError("the jar is empty")
            jar.sweets -= 1
        return jar

    @tool(effect="read")
    def lie(self, jar_id: str) -> Jar:
        """Says that it reads, but takes a sweet and refuses."""
        self.state.jars[jar_id].sweets -= 1
        raise ToolError("caught")

    @tool(effect="write")
    def add_jar(self, kind: Literal["mint", "toffee"]) -> Jar:
        """Put a new jar on the shelf, with a random number of sweets."""
        jar = Jar(jar_id=self.new_id("jar", "J{:03d}"), sweets=self.random().randrange(1000), kind=kind)
        self.state.jars[jar.jar_id] = jar
        return jar

    @tool(effect="write")
    def drop(self, jar_id: str) -> Jar:
        """Crashes half way."""
        self.state.jars[jar_id].sweets = 0
        raise KeyError(jar_id)

    @tool(effect="write", actor="user")
    def eat(self) -> str:
        """Eat a sweet; only the user has a mouth."""
        self.state.jars["J1"].sweets -= 1
        return "yum"

    @tool(effect="read")
    def wrong_model(self) -> Jar:
        """Gives a text instead."""
        return "a jar"  # type: ignore[return-value]

    @tool(effect="read")
    def wrong_scalar(self) -> int:
        """Gives a text instead."""
        return "7"  # type: ignore[return-value]

    @tool(effect="read")
    def wrong_none(self) -> str:
        """Gives nothing instead."""
        return None  # type: ignore[return-value]

    @tool(effect="read")
    def wrong_item(self) -> list[int]:
        """Gives one wrong item."""
        return [1, "2"]  # type: ignore[list-item]

    @tool(effect="read")
    def wrong_choice(self) -> Literal["a", "b"]:
        """Gives another choice."""
        return "c"  # type: ignore[return-value]

    def helper(self) -> str:
        """No tool."""
        return "hidden"


def state() -> JsonObject:
    jars = {"J1": Jar(jar_id="J1", sweets=3), "J2": Jar(jar_id="J2", sweets=0, kind="toffee")}
    return ShelfState(now=datetime(2026, 3, 2, 9), counters={"jar": 2}, seed=5, jars=jars).model_dump(mode="json")


@pytest.fixture
async def session() -> NativeSession:
    opened = NativeSession(Shelf, Shelf.describe())
    await opened.reset(state())
    return opened


# Refusals


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "message"),
    [
        pytest.param("fly", {}, "unknown_tool", "unknown tool: fly", id="no-such-tool"),
        pytest.param("eat", {}, "unknown_tool", "unknown tool: eat", id="tool-of-the-user"),
        pytest.param("helper", {}, "unknown_tool", "unknown tool: helper", id="method-that-is-no-tool"),
        pytest.param("__init__", {"state": {}}, "unknown_tool", "unknown tool: __init__", id="constructor"),
        pytest.param("restore", {"data": "{}"}, "unknown_tool", "unknown tool: restore", id="method-of-the-base"),
        pytest.param(
            "take",
            {"jar_id": "J1", "number": "5"},
            "invalid_arguments",
            "number: Input should be a valid integer",
            id="text-for-a-number",
        ),
        pytest.param(
            "take",
            {"jar_id": "J1", "number": True},
            "invalid_arguments",
            "number: Input should be a valid integer",
            id="bool-for-a-number",
        ),
        pytest.param(
            "take",
            {"jar_id": "J1", "number": 1, "fast": 1},
            "invalid_arguments",
            "fast: Input should be a valid boolean",
            id="number-for-a-bool",
        ),
        pytest.param(
            "take",
            {"jar_id": 1, "number": 1},
            "invalid_arguments",
            "jar_id: Input should be a valid string",
            id="number-for-a-text",
        ),
        pytest.param(
            "take",
            {"jar_id": "J1", "number": 0},
            "invalid_arguments",
            "number: Input should be greater than or equal to 1",
            id="out-of-bounds",
        ),
        pytest.param("take", {"jar_id": "J1"}, "invalid_arguments", "number: Field required", id="missing"),
        pytest.param(
            "take", {"jar_id": "J1", "number": 1, "x": 1}, "invalid_arguments", "x: Extra inputs", id="unknown-argument"
        ),
        pytest.param("take", {}, "invalid_arguments", "jar_id: Field required (and 1 more)", id="several"),
        pytest.param(
            "take", {"jar_id": "J1", "number": 2**70}, "invalid_arguments", "not JSON data", id="beyond-64-bits"
        ),
        pytest.param(
            "add_jar",
            {"kind": "gum"},
            "invalid_arguments",
            "kind: Input should be 'mint' or 'toffee'",
            id="no-such-choice",
        ),
        pytest.param("get_jar", {"jar_id": "J9"}, "refused", "jar not found: J9", id="not-found"),
        pytest.param("take", {"jar_id": "J1", "number": 9}, "refused", "the jar is empty", id="after-partial-mutation"),
        pytest.param("lie", {"jar_id": "J1"}, "refused", "caught", id="read-that-mutates-and-refuses"),
    ],
)
async def test_refusals_say_why_and_change_nothing(
    session: NativeSession, name: str, arguments: JsonObject, kind: str, message: str
) -> None:
    await session.call("get_jar", {"jar_id": "J1"})
    before = await session.snapshot()
    result = await session.call(name, arguments)
    assert not result.ok
    assert result.error == kind
    assert message in result.content["error"]
    assert diff(before, await session.snapshot()) == []
    assert (await session.call("get_jar", {"jar_id": "J1"})).content["sweets"] == 3


async def test_a_refusal_straight_after_a_reset_changes_nothing(session: NativeSession) -> None:
    await session.call("take", {"jar_id": "J1", "number": 9})
    assert await session.snapshot() == state()


async def test_the_user_has_only_the_tools_of_the_user(session: NativeSession) -> None:
    assert (await session.call("get_jar", {"jar_id": "J1"}, "user")).error == "unknown_tool"
    assert (await session.call("eat", {}, "user")).content == {"result": "yum"}
    assert (await session.snapshot())["jars"]["J1"]["sweets"] == 2


# Faults


async def test_a_crash_is_the_environments_fault(session: NativeSession) -> None:
    with pytest.raises(EnvironmentFault, match=r"shelf\.drop: crash: KeyError: 'J1'") as caught:
        await session.call("drop", {"jar_id": "J1"})
    assert (caught.value.kind, caught.value.tool) == ("crash", "drop")


@pytest.mark.parametrize("name", ["wrong_model", "wrong_scalar", "wrong_none", "wrong_item", "wrong_choice"])
async def test_a_result_against_its_own_hint_is_the_environments_fault(session: NativeSession, name: str) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        await session.call(name, {})
    assert (caught.value.kind, caught.value.tool) == ("output_schema", name)


async def test_a_session_must_be_reset_first() -> None:
    with pytest.raises(EnvironmentFault, match="session was used before reset"):
        await NativeSession(Shelf, Shelf.describe()).call("list_jars", {})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        pytest.param({"jars": {}}, "now: Field required", id="missing-clock"),
        pytest.param({**state(), "boxes": {}}, "boxes: Extra inputs", id="unknown-table"),
    ],
)
async def test_a_state_of_something_else_is_a_fault(given: JsonObject, reason: str) -> None:
    with pytest.raises(EnvironmentFault, match=reason) as caught:
        await NativeSession(Shelf, Shelf.describe()).reset(given)
    assert caught.value.kind == "state"


# State


async def test_snapshot_and_hash_follow_the_calls(session: NativeSession) -> None:
    hashes = [await session.state_hash()]
    mark = await session.checkpoint()
    for _ in range(2):
        await session.call("take", {"jar_id": "J1", "number": 1})
        hashes.append(await session.state_hash())
        assert hashes[-1] == compute_state_digest(await session.snapshot())
    assert len(set(hashes)) == 3
    await session.rollback(mark)
    assert await session.state_hash() == hashes[0] == compute_state_digest(state())
    assert await session.snapshot() == state()


async def test_a_checkpoint_leads_another_session_there(session: NativeSession) -> None:
    await session.call("take", {"jar_id": "J1", "number": 1})
    other = NativeSession(Shelf, Shelf.describe())
    await other.rollback(await session.checkpoint())
    assert await other.state_hash() == await session.state_hash()


async def test_sessions_do_not_share_their_state(session: NativeSession) -> None:
    other = NativeSession(Shelf, Shelf.describe())
    await other.reset(state())
    await other.call("take", {"jar_id": "J1", "number": 2})
    assert await session.snapshot() == state()


async def test_ids_and_random_draws_are_part_of_the_state(session: NativeSession) -> None:
    mark = await session.checkpoint()
    first = [(await session.call("add_jar", {"kind": "mint"})).content for _ in range(3)]
    await session.rollback(mark)
    assert [(await session.call("add_jar", {"kind": "mint"})).content for _ in range(3)] == first
    assert [jar["jar_id"] for jar in first] == ["J003", "J004", "J005"]
    assert len({jar["sweets"] for jar in first}) > 1


# Specs


def test_specs_come_from_hints_and_docstrings() -> None:
    spec = Shelf.describe().tool("take")
    assert spec.description == "Take sweets, one by one, until there are none left."
    assert spec.required == ("jar_id", "number")
    assert spec.parameters["number"] == {"description": "How many.", "minimum": 1, "type": "integer"}
    assert spec.input_schema["additionalProperties"] is False
    assert (spec.annotations.read_only_hint, spec.annotations.destructive_hint) == (False, True)
    assert Shelf.describe().tool("get_jar").annotations.read_only_hint is True


def test_results_that_are_no_objects_are_wrapped() -> None:
    output = Shelf.describe().tool("list_jars").output_schema
    assert output is not None
    assert output["required"] == ["result"]
    assert output["properties"]["result"]["type"] == "array"
    assert "$defs" not in output


def test_the_order_of_tools_is_that_of_their_definition() -> None:
    assert list(native_tools(Shelf))[:4] == ["get_jar", "list_jars", "take", "lie"]


class NoTools(Environment[ShelfState]):
    """Nothing to call."""


class NoHint(Environment[ShelfState]):
    @tool(effect="read")
    def look(self, where) -> str:
        """Look."""
        return str(where)


class NoResult(Environment[ShelfState]):
    @tool(effect="read")
    def look(self):
        """Look."""


class NoState(Environment):  # type: ignore[type-arg]
    @tool(effect="read")
    def look(self) -> str:
        """Look."""
        return ""


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        pytest.param(NoTools, "class NoTools has no tools", id="no-tools"),
        pytest.param(NoHint, "NoHint.look: parameter where has no type hint", id="no-hint"),
        pytest.param(NoResult, "NoResult.look: the result has no type hint", id="no-result-hint"),
        pytest.param(NoState, "class NoState must name its state", id="no-state"),
    ],
)
def test_a_class_that_cannot_be_used_says_why(cls: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        cls.describe()


def test_a_class_without_states_of_its_own() -> None:
    with pytest.raises(InputError, match=r"environment shelf has no seed_state\(\)"):
        Shelf.seed_state("small", 1)


@pytest.mark.parametrize(
    ("mark", "reason"),
    [
        ({"effect": "wirte"}, '@tool(effect="wirte"): it is "read" or "write"'),
        ({"effect": "read", "actor": "usr"}, '@tool(actor="usr"): it is "assistant" or "user"'),
    ],
)
def test_a_misspelt_mark_of_a_tool_is_refused(mark: Any, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        tool(**mark)
    assert str(caught.value) == reason
