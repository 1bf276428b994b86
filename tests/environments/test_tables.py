"""Tables are dicts, for all that one can see of them."""

import copy
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from drawers import Box, Coin, DrawersState, drawers_state
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter

from trajsmith.environments import StateModel
from trajsmith.environments.jsontypes import JsonType, StateError, build_model_type
from trajsmith.environments.native_layout import get_state_layout, join_parts, split_parts
from trajsmith.environments.native_state import LiveState
from trajsmith.environments.programs import apply_changes
from trajsmith.environments.table_records import FEW, CallMode
from trajsmith.environments.tables import RecordTable, get_records, replace_content, to_plain_containers

KEYS = "abcdfz"
fast = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))


def coins(count: int = 3) -> dict[str, Coin]:
    return {key: Coin(coin_id=key, worth=number) for number, key in enumerate("abcdefghijklmnopqrstuvwxyz"[:count])}


def table_of(records: Mapping[str, BaseModel], kind: type[BaseModel] = Coin) -> RecordTable[Any]:
    """A table in the middle of a call that writes."""
    mode = CallMode()
    mode.writing = True
    found: JsonType = build_model_type(kind)
    return RecordTable("coins", found, {key: found.write(record) for key, record in records.items()}, mode)


@pytest.fixture
def table() -> RecordTable[Coin]:
    return table_of(coins())


# One by one


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda t: dict(t), id="dict"),
        pytest.param(lambda t: {**t}, id="unpacked"),
        pytest.param(lambda t: list(t), id="list"),
        pytest.param(lambda t: len(t), id="len"),
        pytest.param(lambda t: bool(t), id="bool"),
        pytest.param(lambda t: t["b"].worth, id="item"),
        pytest.param(lambda t: (t.get("b"), t.get("q"), t.get("q", 7), t.get(3)), id="get"),
        pytest.param(lambda t: ("a" in t, "q" in t, 3 in t, None in t), id="in"),
        pytest.param(lambda t: sorted(t, reverse=True), id="sorted"),
        pytest.param(lambda t: max(t.values(), key=lambda coin: coin.worth), id="max"),
        pytest.param(lambda t: sum(coin.worth for coin in t.values()), id="sum"),
        pytest.param(lambda t: [key for key, coin in t.items() if coin.worth], id="items"),
        pytest.param(lambda t: list(reversed(t)), id="reversed"),
        pytest.param(lambda t: list(reversed(t.keys())), id="reversed-keys"),
        pytest.param(lambda t: list(reversed(t.values())), id="reversed-values"),
        pytest.param(lambda t: list(reversed(t.items())), id="reversed-items"),
        pytest.param(lambda t: (len(t.keys()), len(t.values()), len(t.items())), id="len-of-views"),
        pytest.param(lambda t: (t.keys() & {"a", "q"}, t.keys() - {"a"}, t.keys() | {"q"}), id="set-of-keys"),
        pytest.param(lambda t: t.keys() == {"a", "b", "c"}, id="equal-keys"),
        pytest.param(
            lambda t: (t["a"] in t.values(), ("a", t["a"]) in t.items(), ("a", 3) in t.items()), id="in-views"
        ),
        pytest.param(lambda t: t == coins(), id="equal"),
        pytest.param(lambda t: coins() == t, id="equal-from-the-right"),
        pytest.param(lambda t: t != coins(2), id="unequal"),
        pytest.param(lambda t: t == list(t), id="no-dict"),
        pytest.param(lambda t: t.copy(), id="method-copy"),
        pytest.param(lambda t: copy.copy(t), id="copy"),
        pytest.param(lambda t: copy.deepcopy(t), id="deepcopy"),
        pytest.param(lambda t: pickle.loads(pickle.dumps(t)), id="pickle"),
        pytest.param(lambda t: t | {"x": 1}, id="or"),
        pytest.param(lambda t: {"x": 1, "a": 2} | t, id="or-from-the-right"),
        pytest.param(lambda t: repr(t), id="repr"),
        pytest.param(lambda t: str(t), id="str"),
        pytest.param(lambda t: repr(t.keys()), id="repr-of-keys"),
        pytest.param(lambda t: repr(t.values()), id="repr-of-values"),
        pytest.param(lambda t: repr(t.items()), id="repr-of-items"),
        pytest.param(lambda t: isinstance(t, dict), id="isinstance-dict"),
        pytest.param(lambda t: isinstance(t, Mapping), id="isinstance-mapping"),
        pytest.param(lambda t: TypeAdapter(dict[str, Coin]).validate_python(t), id="validated"),
        pytest.param(lambda t: next(iter(t.items())), id="first"),
        pytest.param(lambda t: dict(zip(t, t.values(), strict=True)), id="zip"),
        pytest.param(lambda t: [*filter(None, t)], id="filter"),
        pytest.param(lambda t: _matched(t), id="match"),
    ],
)
def test_a_table_answers_as_a_dict(ask: Callable[[Any], Any], table: RecordTable[Coin]) -> None:
    expected = ask(coins())
    assert ask(table) == expected
    assert type(ask(table)) is type(expected)


def _matched(value: Any) -> Any:
    match value:
        case {"a": coin, **rest}:
            return coin, rest
    return None


@pytest.mark.parametrize(
    "do",
    [
        pytest.param(lambda t: t["q"], id="item"),
        pytest.param(lambda t: t.pop("q"), id="pop"),
        pytest.param(lambda t: t.__delitem__("q"), id="del"),
        pytest.param(lambda t: (t.clear(), t.popitem()), id="popitem"),
        pytest.param(lambda t: t[["a"]], id="unhashable"),
        pytest.param(lambda t: hash(t), id="hash"),
        pytest.param(lambda t: t | 3, id="or"),
        pytest.param(lambda t: [t.pop("a") for _ in t], id="pop-while-iterating"),
        pytest.param(lambda t: [t.pop(key, None) for key in t.keys()], id="pop-while-iterating-keys"),  # noqa: SIM118
        pytest.param(lambda t: [t.update(q=coin) for coin in t.values()], id="insert-while-iterating-values"),
        pytest.param(lambda t: [t.popitem() for _ in t.items()], id="popitem-while-iterating"),
        pytest.param(lambda t: [t.clear() for _ in reversed(t)], id="clear-while-going-back"),
    ],
)
@pytest.mark.parametrize("writing", [True, False], ids=["writing", "reading"])
def test_a_table_refuses_as_a_dict(do: Callable[[Any], Any], table: RecordTable[Coin], writing: bool) -> None:
    get_records(table).mode.writing = writing
    with pytest.raises(Exception) as expected:
        do(coins())
    with pytest.raises(type(expected.value)) as caught:
        do(table)
    if isinstance(expected.value, KeyError):
        assert caught.value.args == expected.value.args


@pytest.mark.parametrize("view", ["keys", "values", "items"])
def test_a_reader_that_has_seen_all_cannot_change_the_order_while_it_iterates(
    view: str, table: RecordTable[Coin]
) -> None:
    get_records(table).mode.writing = False
    list(table.values())
    with pytest.raises(RuntimeError):
        for _ in getattr(table, view)():
            table["new"] = Coin(coin_id="new", worth=1)


def test_keys_are_texts(table: RecordTable[Coin]) -> None:
    class Name(str):
        pass

    with pytest.raises(TypeError, match="keys of coins are texts, not int"):
        table[3] = Coin(coin_id="3", worth=3)  # type: ignore[index]
    table[Name("x")] = Coin(coin_id="x", worth=1)
    assert [type(key) for key in table] == [str] * 4


# Any sequence of operations

Operation = tuple[str, str, int]
OPERATIONS: dict[str, Callable[[Any, str, int], Any]] = {
    "set": lambda t, key, n: t.__setitem__(key, Coin(coin_id=key, worth=n)),
    "get": lambda t, key, n: t.get(key, n),
    "item": lambda t, key, n: t[key],
    "in": lambda t, key, n: key in t,
    "del": lambda t, key, n: t.__delitem__(key),
    "pop": lambda t, key, n: t.pop(key),
    "pop-default": lambda t, key, n: t.pop(key, n),
    "popitem": lambda t, key, n: t.popitem(),
    "setdefault": lambda t, key, n: t.setdefault(key, Coin(coin_id=key, worth=n)),
    "update": lambda t, key, n: t.update({key: Coin(coin_id=key, worth=n), "a": Coin(coin_id="a", worth=n)}),
    "update-words": lambda t, key, n: t.update(b=Coin(coin_id=key, worth=n)),
    "or": lambda t, key, n: _or(t, key, n),
    "clear": lambda t, key, n: t.clear() if n == 0 else None,
    "move": lambda t, key, n: t.__setitem__(key, t.pop(key)),
    "change": lambda t, key, n: setattr(t[key], "worth", n),
    "change-all": lambda t, key, n: [setattr(coin, "worth", n) for coin in t.values() if coin.coin_id != key],
    "first": lambda t, key, n: next((k for k, coin in t.items() if coin.worth >= n), None),
    "order": lambda t, key, n: (list(t), list(reversed(t)), [k for k, _ in t.items()], list(reversed(t.values()))),
    "len": lambda t, key, n: (len(t), bool(t), t == dict(t)),
    "until": lambda t, key, n: _delete_while_iterating(t, n),
}


def _or(table: Any, key: str, number: int) -> None:
    table |= {key: Coin(coin_id=key, worth=number)}


def _delete_while_iterating(table: Any, number: int) -> int:
    seen = 0
    for key in table:
        seen += 1
        if seen > number:
            del table[key]
            break
    return seen


def outcome(do: Callable[[Any, str, int], Any], target: Any, key: str, number: int) -> Any:
    try:
        found = do(target, key, number)
    except (KeyError, RuntimeError) as error:
        return type(error), error.args
    return copy.deepcopy(found)


@settings(fast, max_examples=250)
@given(
    count=st.integers(0, 6),
    calls=st.lists(
        st.tuples(
            st.sampled_from(["write", "write", "read", "refuse", "look", "load"]),
            st.lists(
                st.tuples(st.sampled_from(sorted(OPERATIONS)), st.sampled_from(KEYS), st.integers(0, 5)), max_size=6
            ),
        ),
        min_size=3,
        max_size=15,
    ),
)
def test_any_sequence_of_operations_is_that_of_a_dict(count: int, calls: list[tuple[str, list[Operation]]]) -> None:
    expected = coins(count)
    start = DrawersState.model_validate({**drawers_state(0).model_dump(), "coins": expected})
    shape = get_state_layout(DrawersState)
    origin = start.model_dump_json().encode()
    state = LiveState(shape, shape.split_state(origin), ())
    told = apply_changes(origin, ())
    for kind, operations in calls:
        state.begin(writing=kind != "read")
        before = copy.deepcopy(expected)
        for name, key, number in operations:
            assert outcome(OPERATIONS[name], state.state.coins, key, number) == outcome(  # type: ignore[attr-defined]
                OPERATIONS[name], expected, key, number
            )
        if kind == "refuse":
            state.revert()
            expected = before
        else:
            state.finish(state.state)
        if kind in ("look", "load"):
            told = apply_changes(join_parts({name: _bytes(part) for name, part in told.items()}), state.changes())
            assert list(told["coins"].items()) == [(key, coin.model_dump()) for key, coin in expected.items()]
        if kind == "load":
            origin = join_parts({name: _bytes(part) for name, part in told.items()})
            state = LiveState(shape, shape.split_state(origin), ())
        expected = {key: Coin(**coin.model_dump()) for key, coin in expected.items()}


def _bytes(part: Any) -> bytes:
    found: bytes = TypeAdapter(Any).dump_json(part)
    return found


# What it costs


class Counted(StateModel):
    """A record that counts how often one is read from JSON."""

    key: str
    tags: list[str] = []


@pytest.fixture
def reads() -> Iterator[tuple[RecordTable[Any], list[bytes]]]:
    seen: list[bytes] = []
    kind = build_model_type(Counted)

    def read(text: bytes) -> Any:
        seen.append(text)
        return kind.read(text)

    base = {f"{number:04}": kind.write(Counted(key=f"{number:04}")) for number in range(1000)}
    yield RecordTable("counted", JsonType(read, kind.write, scalar=False, flat=False), base, CallMode()), seen


def finish(table: RecordTable[Any]) -> None:
    records = get_records(table)
    records.keep(records.seal()) if records.mode.writing or records.put else records.leave()


def test_only_what_is_touched_is_read(reads: tuple[RecordTable[Any], list[bytes]]) -> None:
    table, seen = reads
    assert len(table) == 1000
    assert "0500" in table
    assert next(iter(table)) == "0000"
    assert sorted(table)[-1] == "0999"
    assert seen == []
    assert table["0500"].key == "0500"
    assert table["0500"] is table["0500"]
    assert next(record for record in table.values() if record.key == "0002").key == "0002"
    assert len(seen) == 4


def test_readers_pay_for_a_scan_once(reads: tuple[RecordTable[Any], list[bytes]]) -> None:
    table, seen = reads
    for _ in range(3):
        assert sum(1 for record in table.values() if not record.tags) == 1000
        finish(table)
    assert len(seen) == 1000
    assert get_records(table).changes() == []


def test_a_writer_pays_for_what_it_touches(reads: tuple[RecordTable[Any], list[bytes]]) -> None:
    table, seen = reads
    list(table.values())
    finish(table)
    seen.clear()
    get_records(table).mode.writing = True
    table["0003"].tags.append("x")
    finish(table)
    assert len(seen) == 2  # its own object, and the one that is made of the new JSON
    assert get_records(table).changes() == [("counted", "0003", b'{"key":"0003","tags":["x"]}')]


def test_what_many_readers_had_is_compared_at_the_next_look(reads: tuple[RecordTable[Any], list[bytes]]) -> None:
    table, _ = reads
    for record in table.values():
        record.tags.append("seen")
    finish(table)
    assert len(get_records(table).loose) == 1000 > FEW
    assert len(get_records(table).changes()) == 1000
    assert get_records(table).changes() == []


# Between calls


def test_records_share_nothing_after_a_call() -> None:
    table = table_of({key: Box(box_id=key, tags=["same"]) for key in "abc"}, Box)
    table["a"].tags = table["b"].tags  # equal to what it was: its JSON does not change
    table["c"] = table["b"]
    finish(table)
    table["b"].tags.append("more")
    finish(table)
    assert [box.tags for box in table.values()] == [["same"], ["same", "more"], ["same"]]


def test_a_number_that_is_equal_is_not_the_same() -> None:
    table = table_of(coins())
    table["b"].worth = 1
    assert str(table["b"].worth) == "1"
    finish(table)
    assert str(table["b"].worth) == "1.0"
    assert get_records(table).changes() == []


def test_nonsense_is_refused_where_it_is_left() -> None:
    table = table_of(coins())
    table["b"].worth = None  # type: ignore[assignment]
    with pytest.raises(StateError, match=r"coins\.b: worth: Input should be a valid number"):
        finish(table)
    get_records(table).revert()
    assert table == coins()


def test_what_has_no_json_is_refused() -> None:
    table = table_of({"a": Box(box_id="a")}, Box)
    table["a"].tags.append(object())
    with pytest.raises(StateError, match=r"coins\.a: Unable to serialize unknown type"):
        finish(table)


def test_a_dict_in_place_of_a_table_changes_only_what_differs() -> None:
    table = table_of(coins(5))
    replace_content(table, {key: coin for key, coin in table.items() if key != "c"} | {"n": Coin(coin_id="n", worth=1)})
    finish(table)
    new = b'{"coin_id":"n","worth":1.0,"seen":null}'
    assert get_records(table).changes() == [("coins", "c", None), ("coins", "n", new)]
    replace_content(table, dict(reversed(list(table.items()))))
    finish(table)
    assert list(table) == ["n", "e", "d", "b", "a"]


@pytest.mark.parametrize("value", [None, 3, [], {3: 4}])
def test_what_is_no_dict_from_texts_cannot_be_in_place_of_a_table(value: Any, table: RecordTable[Coin]) -> None:
    with pytest.raises(StateError, match="coins is no dict from texts now"):
        replace_content(table, value)


def test_plain_containers_of_tables(table: RecordTable[Coin]) -> None:
    assert to_plain_containers(table) == coins()
    assert type(to_plain_containers([1, {"x": (table,)}])[1]["x"][0]) is dict
    same = [1, {"x": (2,)}]
    assert to_plain_containers(same) is same


def test_a_state_with_tables_is_written_as_one_with_dicts() -> None:
    shape, eager = get_state_layout(DrawersState), drawers_state()
    text = eager.model_dump_json().encode()
    state = LiveState(shape, shape.split_state(text), ()).state
    assert type(state.coins) is RecordTable  # type: ignore[attr-defined]
    assert state == eager
    assert state.model_dump() == eager.model_dump()
    assert state.model_dump_json().encode() == text
    assert state.model_dump(include={"coins"}) == eager.model_dump(include={"coins"})
    assert state.model_copy(deep=True) == eager
    assert DrawersState.model_validate(state.model_dump()) == eager
    assert join_parts(split_parts(text)).replace(b" ", b"") == text
    assert DrawersState.model_json_schema(mode="serialization").keys() == DrawersState.model_json_schema().keys()
