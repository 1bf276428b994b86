"""Native plays: whatever is called, they say and leave what the eager form says and leaves."""

import random
from datetime import UTC, datetime
from typing import Any, ClassVar

import orjson
import pytest
from drawers import Drawers, drawers_state
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.mirror import Mirror
from trajsmith.environments.native import Environment, EnvironmentState, tool
from trajsmith.environments.native_program import NativeEpisode, NativeProgram, NativeSession
from trajsmith.environments.programs import StateChange, apply_changes
from trajsmith.records import EnvironmentFault, InputError, JsonObject, JsonValue, RunError, compute_state_digest

each = pytest.mark.parametrize("name", ENVIRONMENTS.names())
fast = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))
Call = tuple[str, JsonObject]


class Eager:
    """The eager form: dumped and read again as a whole after every call."""

    def __init__(self, cls: type[Environment[Any]], state: bytes) -> None:
        self.environment = cls(cls.state_type().model_validate_json(state))

    def call(self, name: str, arguments: JsonObject) -> JsonValue:
        before = self.environment.dump()
        try:
            result = self.environment.call(name, arguments)
            self.environment.restore(self.environment.dump() if result.ok else before)
        except EnvironmentFault as fault:
            self.environment.restore(before)
            return fault.kind
        return [result.error, result.content]

    def state(self) -> JsonObject:
        parsed: JsonObject = orjson.loads(self.environment.dump())
        return parsed


class Followed:
    """A play, and the mirror that follows it."""

    def __init__(self, program: NativeProgram, state: bytes) -> None:
        self.program = program
        self.play: NativeEpisode = program.start(state)
        self.mirror = Mirror.of(orjson.loads(state), state)

    def call(self, name: str, arguments: JsonObject) -> JsonValue:
        try:
            result = self.play.call(name, arguments)
        except EnvironmentFault as fault:
            return fault.kind
        return [result.error, result.content]

    def look(self) -> list[StateChange]:
        told = self.play.changes()
        self.mirror = self.mirror.with_changes(told, "test")
        return told

    def state(self) -> JsonObject:
        self.look()
        return self.mirror.snapshot()

    def save_and_load(self) -> None:
        self.look()
        self.play = self.program.start(self.mirror.origin, self.mirror.delta)


def text(value: JsonValue) -> bytes:
    """JSON in the order in which the value has it."""
    return orjson.dumps(value)


def real_diff(before: JsonObject, after: JsonObject, tables: Any) -> set[tuple[str, str | None]]:
    found: set[tuple[str, str | None]] = set()
    for name, part in after.items():
        if name not in tables:
            found |= {(name, None)} if text(part) != text(before[name]) else set()
            continue
        for key in before[name].keys() | part.keys():
            if text(before[name].get(key)) != text(part.get(key)):
                found.add((name, key))
    return found


def assert_told_exactly(told: list[StateChange], before: JsonObject, after: JsonObject, tables: Any) -> None:
    """What is told is what differs, and nothing else but entries that were put in again at the end."""
    places = {(name, key) for name, key, _ in told}
    real = real_diff(before, after, tables)
    again = {(name, key) for name, key, now in told if now is None and key in after.get(name, {})}
    assert places - again <= real <= places
    assert text(apply_changes(text(before), told)) == text(after)


def assert_equal_to_eager(cls: type[Environment[Any]], state: bytes, calls: list[Call], loads: random.Random) -> None:
    """A play that nobody looks at, one that is looked at after each call, one that is saved and loaded now and then."""
    program = NativeProgram(cls)
    eager = Eager(cls, state)
    unseen, watched, moved = (Followed(program, state) for _ in range(3))
    before = eager.state()
    for name, arguments in calls:
        expected = text(eager.call(name, arguments))
        for play in (unseen, watched, moved):
            assert text(play.call(name, arguments)) == expected, (name, arguments)
        told, after = watched.look(), eager.state()
        assert_told_exactly(told, before, after, program.shape.tables)
        assert text(watched.mirror.snapshot()) == text(after)
        before = after
        if loads.random() < 0.3:
            moved.save_and_load()
    for play in (unseen, watched, moved):
        assert text(play.state()) == text(before)
        assert play.mirror.digest() == compute_state_digest(before)


# Arguments drawn from the state


def values_by_name(state: JsonObject) -> dict[str, list[JsonValue]]:
    """Every scalar in the state by the name of its field; keys of tables under None."""
    found: dict[str, list[JsonValue]] = {}

    def walk(value: JsonValue, name: str) -> None:
        if isinstance(value, dict):
            for key, child in value.items():
                walk(child, key)
        elif isinstance(value, list):
            for child in value:
                walk(child, name)
        elif value is not None:
            found.setdefault(name, []).append(value)

    walk(state, "")
    return found


def argument(schema: JsonObject, name: str, values: dict[str, list[JsonValue]], rng: random.Random) -> JsonValue:
    choices = schema.get("anyOf", [schema])
    schema = rng.choice(choices)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if schema.get("type") == "array":
        return [argument(schema.get("items", {}), name, values, rng) for _ in range(rng.randrange(1, 3))]
    if schema.get("type") == "object":
        return {key: argument(child, key, values, rng) for key, child in schema.get("properties", {}).items()}
    known = values.get(name) or values.get(name.removesuffix("s")) or schema.get("examples")
    if known and rng.random() < 0.95:
        return rng.choice(known)
    if schema.get("examples"):
        return rng.choice(schema["examples"])
    made: dict[str, JsonValue] = {"integer": 1, "number": 5.0, "boolean": True, "null": None}
    if schema.get("format") in ("date", "date-time", "time"):
        return {"date": "2026-06-01", "date-time": "2026-06-01T10:00:00", "time": "10:00:00"}[schema["format"]]
    return made.get(schema.get("type", ""), "x")


def drawn_calls(cls: type[Environment[Any]], state: JsonObject, rng: random.Random, count: int) -> list[Call]:
    values = values_by_name(state)
    tools = [tool for tool in cls.describe().tools if tool.actor == "assistant"]
    calls = []
    for _ in range(count):
        tool = rng.choice(tools)
        given = {
            name: argument(schema, name, values, rng)
            for name, schema in tool.parameters.items()
            if name in tool.required or rng.random() < 0.5
        }
        calls.append((tool.name, given))
    return calls


@each
@settings(fast, max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_bundled_environments_are_as_if_eager(name: str, seed: int) -> None:
    cls = ENVIRONMENTS.get(name)
    state = cls.seed_state("small", seed % 5).model_dump_json().encode()
    rng = random.Random(seed)
    calls = drawn_calls(cls, orjson.loads(state), rng, 60)
    assert_equal_to_eager(cls, state, calls, rng)


KEYS = "abcdfz"
TOOLS = {tool.name: tool.parameters for tool in Drawers.describe().tools}


def drawers_call(name: str, numbers: tuple[int, int]) -> Call:
    drawn = {"string": KEYS[numbers[0] % len(KEYS)], "integer": numbers[1], "number": numbers[1]}
    first = {parameter: drawn[schema["type"]] for parameter, schema in TOOLS[name].items()}
    if "other" in first or "coin" in first:
        first["other" if "other" in first else "coin"] = KEYS[numbers[1] % len(KEYS)]
    return name, first


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of the eager form, after `raw`
@settings(fast, max_examples=250)
@given(
    drawn=st.lists(
        st.tuples(st.sampled_from(sorted(TOOLS)), st.tuples(st.integers(0, 5), st.integers(0, 5))),
        min_size=10,
        max_size=40,
    ),
    seed=st.integers(0, 1000),
)
def test_whatever_is_done_to_a_state_is_as_if_eager(drawn: Any, seed: int) -> None:
    calls = [drawers_call(name, numbers) for name, numbers in drawn]
    state = drawers_state().model_dump_json().encode()
    assert_equal_to_eager(Drawers, state, calls, random.Random(seed))


class Blaming(Environment[EnvironmentState]):
    """An environment whose code raises the errors of trajsmith itself."""

    blame: ClassVar[type[Exception]] = InputError
    start_fails: ClassVar[bool] = False

    def __init__(self, state: EnvironmentState) -> None:
        super().__init__(state)
        if self.start_fails:
            raise self.blame("not mine")

    @classmethod
    def seed_state(cls, size: str, seed: int) -> EnvironmentState:
        raise cls.blame("not mine")

    @tool(effect="write")
    def touch(self) -> str:
        """Change the state, then blame the user."""
        self.new_id("touch")
        raise self.blame("not mine")


@pytest.mark.parametrize("blame", [InputError, RunError], ids=["input", "run"])
async def test_our_errors_raised_by_an_environment_are_its_faults(
    blame: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Blaming, "blame", blame)
    state = EnvironmentState(now=datetime(2026, 1, 1, tzinfo=UTC)).model_dump_json().encode()
    said = rf"crash: {blame.__name__}: not mine"
    with pytest.raises(EnvironmentFault, match=rf"blaming: {said}"):
        NativeProgram(Blaming, {"small": 1}).states(1)
    with pytest.raises(EnvironmentFault, match=rf"blaming\.touch: {said}"):
        Blaming(EnvironmentState.model_validate_json(state)).call("touch", {})
    session = NativeSession(Blaming, Blaming.describe())
    await session.reset(orjson.loads(state))
    with pytest.raises(EnvironmentFault, match=rf"blaming\.touch: {said}"):
        await session.call("touch", {})
    assert (await session.snapshot())["counters"] == {}
    monkeypatch.setattr(Blaming, "start_fails", True)
    with pytest.raises(EnvironmentFault, match=rf"blaming: {said}"):
        await NativeSession(Blaming, Blaming.describe()).reset(orjson.loads(state))
