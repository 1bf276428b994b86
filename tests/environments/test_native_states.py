"""What a native program keeps one by one and what as a whole, whose fault a bad state is, and users' files."""

import functools
import types
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import orjson
import pytest
from drawers import Coin, Drawers, drawers_state
from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    computed_field,
    field_serializer,
    field_validator,
    model_validator,
)

from trajsmith.environments import Environment, EnvironmentState, StateModel, ToolError, recent_states, tool
from trajsmith.environments.jsontypes import build_model_type, build_value_type
from trajsmith.environments.native_layout import get_state_layout
from trajsmith.environments.native_program import NativeProgram
from trajsmith.environments.programs import apply_changes, load_program
from trajsmith.environments.recent_states import LEAST_STATES, RecentStates
from trajsmith.records import EnvironmentFault, InputError, JsonObject

NOW = datetime(2026, 3, 2, 9)


class ShelfState(EnvironmentState):
    coins: dict[str, Coin] = {}


class Acts:
    """Tools for any state with coins; refuse and crash leave a mess."""

    state: Any

    @tool(effect="write")
    def put(self, key: str, worth: float) -> Coin:
        """Put a coin there."""
        self.state.coins[key] = Coin(coin_id=key, worth=worth)
        return self.state.coins[key]  # type: ignore[no-any-return]

    @tool(effect="read")
    def total(self) -> float:
        """What all coins are worth."""
        return sum(coin.worth for coin in self.state.coins.values())

    @tool(effect="write")
    def refuse(self) -> str:
        """Mess up, then refuse."""
        self.state.coins.clear()
        self.state.counters["x"] = 1
        raise ToolError("no")


def environment_of(state: type[Any]) -> type[Environment[Any]]:
    made = types.new_class(f"Of{state.__name__}", (Acts, Environment[state]))
    made.__module__ = __name__
    return made


# States that are kept as a whole, because something in their class sees all of it


class Checked(ShelfState):
    @model_validator(mode="after")
    def _not_too_much(self) -> "Checked":
        if len(self.coins) > 2:
            raise ValueError("too many coins")
        return self


class FieldChecked(ShelfState):
    @field_validator("coins")
    @classmethod
    def _some(cls, coins: Any) -> Any:
        return coins


class Marked(ShelfState):
    limit: Annotated[int, AfterValidator(lambda number: number + 0)] = 3


class Written(ShelfState):
    @field_serializer("now")
    def _short(self, now: datetime) -> str:
        return now.isoformat(timespec="minutes")


class Private(ShelfState):
    _seen: int = PrivateAttr(0)


class Computed(ShelfState):
    @computed_field  # type: ignore[prop-decorator]
    @property
    def count(self) -> int:
        return len(self.coins)


class Renamed(ShelfState):
    limit: int = Field(3, exclude=True)


class Own(ShelfState):
    def __init__(self, **values: Any) -> None:
        super().__init__(**values)


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        pytest.param(Checked, "validators: _not_too_much", id="model-validator"),
        pytest.param(FieldChecked, "validators: _some", id="field-validator"),
        pytest.param(Marked, "fields with validators: limit", id="annotated-validator"),
        pytest.param(Written, "serializers: _short", id="serializer"),
        pytest.param(Private, "private attributes: _seen", id="private-attribute"),
        pytest.param(Computed, "computed fields: count", id="computed-field"),
        pytest.param(Renamed, "fields that are renamed or left out: limit", id="excluded-field"),
        pytest.param(Own, "methods: __init__", id="constructor"),
    ],
)
def test_a_class_that_works_on_whole_states_keeps_them_as_a_whole(cls: type[ShelfState], reason: str) -> None:
    program = NativeProgram(environment_of(cls))
    assert reason in program.shape.eager_reason
    assert not program.shape.tables
    state = cls(now=NOW, coins={"a": Coin(coin_id="a", worth=1)}).model_dump_json(exclude={"count"}).encode()
    play = program.start(state)
    assert play.changes() == []
    assert play.call("put", {"key": "b", "worth": 2}).ok
    assert play.call("refuse", {}).content == {"error": "no"}
    assert play.call("total", {}).content == {"result": 3.0}
    told = play.changes()
    assert [(name, key) for name, key, _ in told] == [("coins", None)]
    assert list(orjson.loads(told[0][2] or b"")) == ["a", "b"]
    again = program.start(state, told)
    assert again.call("total", {}).content == {"result": 3.0}
    assert again.changes() == []


def test_a_state_that_its_own_class_refuses_is_a_fault_and_changes_nothing() -> None:
    program = NativeProgram(environment_of(Checked))
    play = program.start(Checked(now=NOW).model_dump_json().encode())
    for key in "ab":
        play.call("put", {"key": key, "worth": 1})
    with pytest.raises(EnvironmentFault, match=r"put: state: state: \(top\): Value error, too many coins") as caught:
        play.call("put", {"key": "c", "worth": 1})
    assert (caught.value.kind, caught.value.tool) == ("state", "put")
    assert play.call("total", {}).content == {"result": 2.0}


def test_fields_of_most_classes_are_kept_one_by_one() -> None:
    class Mixed(ShelfState):
        """Only `coins` and `more` are dicts from text to model, and nothing else."""

        more: dict[str, StateModel] = {}
        few: Annotated[dict[str, Coin], Field(max_length=3)] = {}
        by_number: dict[int, Coin] = {}
        numbers: dict[str, int] = {}
        one: Coin | None = None

    shape = get_state_layout(Mixed)
    assert (shape.eager_reason, list(shape.tables)) == ("", ["coins", "more"])
    assert list(shape.parts) == ["now", "counters", "seed", "few", "by_number", "numbers", "one"]


def test_flat_records_hold_scalars_only() -> None:
    class Cached(Coin):
        @functools.cached_property
        def half(self) -> float:
            return self.worth / 2

    class Hidden(Coin):
        _seen: int = 0

    class Nested(StateModel):
        coin: Coin

    class Open(Coin):
        model_config = {"extra": "allow"}

    assert [build_model_type(cls).flat for cls in (Coin, Cached, Hidden, Nested, Open)] == [
        True,
        False,
        False,
        False,
        False,
    ]
    assert [build_value_type(hint).scalar for hint in (int | None, Annotated[str, 1], list[int], Any)] == [
        True,
        True,
        False,
        False,
    ]


# Initial states


def state_json(**changed: Any) -> bytes:
    return orjson.dumps({**drawers_state().model_dump(mode="json"), **changed})


@pytest.mark.parametrize(
    ("state", "message"),
    [
        pytest.param(b"{", r"\(top\): Invalid JSON", id="no-json"),
        pytest.param(b"[]", r"\(top\): Input should be an object", id="no-object"),
        pytest.param(b"{}", "now: Field required", id="empty"),
        pytest.param(state_json(coins={"a": {"coin_id": "a"}}), r"coins\.a\.worth: Field required", id="bad-record"),
        pytest.param(state_json(coins=[]), "coins: Input should be an object", id="no-table"),
        pytest.param(state_json(jars={}), "jars: Extra inputs are not permitted", id="unknown-field"),
    ],
)
def test_what_is_no_state_is_refused_at_the_start(state: bytes, message: str) -> None:
    with pytest.raises(EnvironmentFault, match=rf"drawers: state: {message}") as caught:
        NativeProgram(Drawers).start(state)
    assert caught.value.kind == "state"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(("coins", "q", b'{"coin_id":"q"}'), r"coins\.q: worth: Field required", id="record"),
        pytest.param(("notes", None, b"3"), "notes: .*Input should be a valid array", id="part"),
        pytest.param(("coins", None, b'{"q":1}'), r"coins\.q: Input should be an object", id="table"),
        pytest.param(("now", None, None), "now: Field required", id="gone"),
        pytest.param(("jars", None, b"1"), "jars: Extra inputs", id="unknown-part"),
    ],
)
def test_changes_that_lead_to_no_state_are_refused_at_the_start(change: Any, message: str) -> None:
    with pytest.raises(EnvironmentFault, match=message) as caught:
        NativeProgram(Drawers).start(state_json(), [change])
    assert caught.value.kind == "state"


def test_what_the_class_says_otherwise_is_told_first_and_once() -> None:
    given: JsonObject = {"now": "2026-03-02T09:00:00", "coins": {"a": {"coin_id": "a", "worth": 1}}, "seed": 0}
    state, program = orjson.dumps(given), NativeProgram(Drawers)
    play = program.start(state)
    told = play.changes()
    coin = b'{"coin_id":"a","worth":1.0,"seen":null}'
    assert sorted(told, key=str) == sorted(
        [("coins", "a", coin), ("boxes", None, b"{}"), ("notes", None, b"[]"), ("counters", None, b"{}")], key=str
    )
    assert play.changes() == []
    assert program.start(state, told).changes() == []
    assert program.start(state, told[:2]).changes() == [
        change for change in play_untold(program, state) if change not in told[:2]
    ]
    assert apply_changes(state, told) == orjson.loads(drawers_state(1, 0).model_dump_json()) | {
        "coins": {"a": orjson.loads(coin)},
        "notes": [],
    }


def play_untold(program: NativeProgram, state: bytes) -> list[Any]:
    return program.start(state).changes()


def test_a_whole_table_in_the_changes_is_taken_apart() -> None:
    program = NativeProgram(Drawers)
    play = program.start(state_json(), [("coins", None, b'{"q":{"coin_id":"q","worth":7}}')])
    assert play.call("table", {}).content == {"q": {"coin_id": "q", "worth": 7.0, "seen": None}}
    assert play.call("remove", {"key": "q"}).ok
    assert play.changes()[-1] == ("coins", "q", None)


def test_plays_share_nothing_but_the_base() -> None:
    program, state = NativeProgram(Drawers), state_json()
    one, other = program.start(state), program.start(state)
    one.call("spend", {"key": "d", "number": 2})
    one.call("tag", {"key": "a", "text": "x"})
    assert other.call("coin", {"key": "d"}).content["worth"] == 7.5
    assert other.call("box", {"key": "a"}).content["tags"] == ["a"]
    assert program.start(state).call("coin", {"key": "d"}).content["worth"] == 7.5


def test_initial_states_are_kept_while_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used = state_json()
    monkeypatch.setattr(recent_states, "MOST_BYTES", 10 * len(used))
    program = NativeProgram(Drawers)
    for seed in range(40):
        program.start(used)
        program.start(state_json(seed=seed))
    assert len(program._initial) <= 10  # those of variants go, or a run would grow with its tasks
    kept = program._initial.get(used)
    assert kept is not None
    program.start(bytes(bytearray(used)))  # equal, but not the same object
    assert program._initial.get(used) is kept


def test_states_of_any_size_are_kept_while_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_states, "MOST_BYTES", 10)
    states: RecentStates[int] = RecentStates()
    for number in range(LEAST_STATES + 1):
        states.put(b"%d" % number * 20, number)
    assert [states.get(b"%d" % number * 20) for number in range(LEAST_STATES + 1)] == [None, 1, 2, 3, 4]


# What a call leaves


def test_a_lying_reader_is_noticed() -> None:
    play = NativeProgram(Drawers).start(state_json())
    assert play.call("count_views", {"key": "a"}).ok
    assert [(name, key) for name, key, _ in play.changes()] == [("coins", "a")]
    assert play.call("leave_trace", {"key": "a"}).ok
    assert {(name, key) for name, key, _ in play.changes()} == {
        ("coins", "a"), ("coins", "a3"), ("boxes", "a"), ("boxes", "b"), ("boxes", "c"), ("notes", None),
    }  # fmt: skip


def test_nonsense_is_the_fault_of_the_call_that_leaves_it() -> None:
    play = NativeProgram(Drawers).start(state_json())
    with pytest.raises(EnvironmentFault, match=r"drawers\.nonsense: state: coins\.b: worth: Input should be a valid n"):
        play.call("nonsense", {"key": "a"})
    assert play.changes() == []
    assert play.call("coin", {"key": "b"}).content["worth"] == 2.5


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_call_leaves_nothing(error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Drawers, kind: str, pattern: str = "") -> str:
        self.state.coins["b"].worth = 0
        raise error

    monkeypatch.setattr(Drawers, "new_id", stop)
    play = NativeProgram(Drawers).start(state_json())
    with pytest.raises(error):
        play.call("add", {"key": "x", "worth": 1})
    assert play.changes() == []
    assert play.call("coin", {"key": "b"}).content["worth"] == 2.5


def test_a_state_of_another_class_is_a_fault() -> None:
    class Wrong(Acts, Environment[ShelfState]):
        """Replaces its state."""

        @tool(effect="write")
        def swap(self, kind: str) -> str:
            """Put something else there."""
            self.state = drawers_state() if kind == "other" else None
            return kind

        @tool(effect="write")
        def lose(self) -> str:
            """Delete a field."""
            del self.state.seed
            return "lost"

    play = NativeProgram(Wrong).start(ShelfState(now=NOW).model_dump_json().encode())
    with pytest.raises(EnvironmentFault, match="the state is a DrawersState now, no ShelfState"):
        play.call("swap", {"kind": "other"})
    with pytest.raises(EnvironmentFault, match="the state is a NoneType now"):
        play.call("swap", {"kind": "none"})
    with pytest.raises(EnvironmentFault, match="state: seed is gone"):
        play.call("lose", {})
    assert play.call("put", {"key": "a", "worth": 1}).ok


def test_what_a_constructor_does_is_part_of_the_start() -> None:
    class Starting(Acts, Environment[ShelfState]):
        """Adds a coin when it starts."""

        def __init__(self, state: ShelfState) -> None:
            super().__init__(state)
            if state.seed < 0:
                raise ValueError("negative")
            self.state.coins.setdefault("first", Coin(coin_id="first", worth=1))

    program = NativeProgram(Starting)
    state = ShelfState(now=NOW).model_dump_json().encode()
    play = program.start(state)
    told = play.changes()
    assert [(name, key) for name, key, _ in told] == [("coins", "first")]
    assert program.start(state, told).changes() == []
    with pytest.raises(EnvironmentFault, match="starting: crash: ValueError: negative"):
        program.start(ShelfState(now=NOW, seed=-1).model_dump_json().encode())


def test_what_a_state_remembers_beside_its_fields_is_forgotten() -> None:
    class Remembering(ShelfState):
        @functools.cached_property
        def total(self) -> float:
            return sum(coin.worth for coin in self.coins.values())

    class Remembers(Acts, Environment[Remembering]):
        """Has a cached property."""

        @tool(effect="read")
        def cached(self) -> float:
            """The total."""
            return self.state.total  # type: ignore[no-any-return]

    play = NativeProgram(Remembers).start(Remembering(now=NOW).model_dump_json().encode())
    assert play.call("cached", {}).content == {"result": 0.0}
    play.call("put", {"key": "a", "worth": 5})
    assert play.call("cached", {}).content == {"result": 5.0}


# Users' files

SOURCE = '''
from datetime import datetime
from trajsmith import Environment, EnvironmentState, StateModel, tool

class Lamp(StateModel):
    lit: bool = False

class LampState(EnvironmentState):
    lamps: dict[str, Lamp] = {}

class Lamps(Environment[LampState]):
    """Lamps."""

    @classmethod
    def seed_state(cls, size: str, seed: int) -> LampState:
        count = {"small": 1, "medium": 2}[size]
        return LampState(now=datetime(2026, 1, 1), seed=seed, lamps={str(n): Lamp() for n in range(count)})

    @tool(effect="write")
    def light(self, lamp: str) -> Lamp:
        """Light a lamp."""
        found = self.lookup(self.state.lamps, lamp, "lamp")
        found.lit = True
        return found
'''


def payload(source: str = SOURCE, cls: str = "", **sizes: int) -> JsonObject:
    return {"source": source, "file": "lamps.py", "cls": cls, "sizes": sizes}


def test_a_file_is_a_program() -> None:
    program = load_program("native", payload(small=1, medium=2))
    assert (program.spec.name, program.spec.source) == ("lamps", "native:lamps.py")
    states = program.states(3)
    assert [len(state["lamps"]) for state in states] == [1, 2, 2]
    assert states == program.states(3) != program.states(4)
    play = program.start(orjson.dumps(states[1]))
    assert play.call("light", {"lamp": "1"}).content == {"lit": True}
    assert play.call("light", {"lamp": "7"}).content == {"error": "lamp not found: 7"}
    assert play.changes() == [("lamps", "1", b'{"lit":true}')]


def test_the_version_is_that_of_the_text(tmp_path: Path) -> None:
    one, same, other = (load_program("native", payload(text)) for text in (SOURCE, SOURCE, SOURCE + "\n"))
    assert one.spec == same.spec
    assert one.spec.version != other.spec.version


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(payload("x = 1\ny = x.z\n"), r"lamps\.py:2: AttributeError", id="raises"),
        pytest.param(payload("def f(:\n"), r"lamps\.py:1: SyntaxError", id="no-python"),
        pytest.param(payload(cls="Sun"), r"lamps\.py: there is no Environment class named 'Sun'", id="no-such-class"),
        pytest.param(payload(cls="Lamp"), r"lamps\.py: there is no Environment class named 'Lamp'", id="other-class"),
        pytest.param(payload("x = 1\n"), "expected one Environment class, found none", id="none"),
        pytest.param(
            payload(SOURCE + "class More(Lamps):\n    pass\n"),
            r"^lamps\.py: expected one Environment class, found Lamps, More; choose one as lamps\.py:Lamps$",
            id="two",
        ),
    ],
)
def test_a_file_that_is_no_program_says_why(given: JsonObject, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_program("native", given)
