"""Mirrors follow a state by what is told of it, and share what did not change."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trajsmith.environments.mirror import Mirror
from trajsmith.environments.programs import StateChange, apply_changes
from trajsmith.records import EnvironmentFault, JsonObject, compute_state_digest

STATE: JsonObject = {"now": "2026-03-02", "jars": {key: {"n": number} for number, key in enumerate("abc")}, "tags": {}}


def mirror_of(state: JsonObject) -> Mirror:
    text = orjson.dumps(state)
    return Mirror.of(orjson.loads(text), text)


def text(value: Any) -> bytes | None:
    return None if value is None else orjson.dumps(value)


def assert_is(mirror: Mirror, state: JsonObject) -> None:
    """The snapshot in its order, the digest, and the way from the origin."""
    assert orjson.dumps(mirror.snapshot()) == orjson.dumps(state)
    assert mirror.digest() == compute_state_digest(state)
    assert orjson.dumps(apply_changes(mirror.origin, mirror.delta)) == orjson.dumps(state)


def test_a_mirror_is_the_state_it_is_made_of() -> None:
    assert_is(mirror_of(STATE), STATE)
    assert mirror_of(STATE).delta == []


def test_what_did_not_change_is_shared() -> None:
    first = mirror_of(STATE)
    second = first.with_changes([("now", None, b"1")], "shelf")
    assert second.snapshot()["jars"] is first.snapshot()["jars"]
    third = second.with_changes([("jars", "a", b"3")], "shelf")
    assert third.snapshot()["jars"]["b"] is first.snapshot()["jars"]["b"]
    assert_is(first, STATE)


@pytest.mark.parametrize(
    ("changes", "keys", "delta"),
    [
        pytest.param([("jars", "b", b"9")], "abc", [("jars", "b", b"9")], id="changed"),
        pytest.param([("jars", "b", None)], "ac", [("jars", "b", None)], id="gone"),
        pytest.param(
            [("jars", "b", None), ("jars", "b", b"9")],
            "acb",
            [("jars", "b", None), ("jars", "b", b"9")],
            id="taken-out-and-put-in-again",
        ),
        pytest.param(
            [("jars", "x", b"1"), ("jars", "y", b"1"), ("jars", "x", b"2")],
            "abcxy",
            [("jars", "x", b"2"), ("jars", "y", b"1")],
            id="new-then-changed",
        ),
        pytest.param(
            [("jars", "x", b"1"), ("jars", "x", None), ("jars", "y", b"1")],
            "abcy",
            [("jars", "x", None), ("jars", "y", b"1")],
            id="new-then-gone",
        ),
        pytest.param(
            [("jars", "x", b"1"), ("jars", None, b'{"q":1}'), ("jars", "r", b"2")],
            "qr",
            [("jars", None, b'{"q":1}'), ("jars", "r", b"2")],
            id="as-a-whole",
        ),
    ],
)
def test_the_order_is_that_of_the_state(changes: list[StateChange], keys: str, delta: list[StateChange]) -> None:
    expected = apply_changes(orjson.dumps(STATE), changes)
    at_once, one_by_one = mirror_of(STATE).with_changes(changes, "shelf"), mirror_of(STATE)
    for change in changes:
        one_by_one = one_by_one.with_changes([change], "shelf")
    for mirror in (at_once, one_by_one):
        assert "".join(mirror.snapshot()["jars"]) == keys
        assert mirror.delta == delta
        assert_is(mirror, expected)


VALUES = st.one_of(st.integers(0, 3), st.none(), st.lists(st.integers(0, 1), max_size=2))
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("jars"), st.sampled_from("abcdef"), VALUES),
        st.tuples(st.just("jars"), st.none(), st.dictionaries(st.sampled_from("abq"), st.integers(0, 2))),
        st.tuples(st.just("now"), st.none(), st.integers(0, 2)),
    ),
    max_size=4,
)


@settings(deadline=None, database=None, max_examples=150)
@given(count=st.integers(0, 60), looks=st.lists(CHANGES, max_size=25))
def test_any_changes(count: int, looks: list[list[tuple[str, str | None, Any]]]) -> None:
    state: JsonObject = {"now": 0, "jars": {f"k{number}": number for number in range(count)}}
    mirror = mirror_of(state)
    history = [(mirror, state)]
    for look in looks:
        changes = [(name, key, text(value)) for name, key, value in look]
        mirror, state = mirror.with_changes(changes, "shelf"), apply_changes(orjson.dumps(state), changes)
        history.append((mirror, state))
    for known, expected in history:
        assert_is(known, expected)


def test_a_change_that_does_not_fit_is_a_fault() -> None:
    with pytest.raises(EnvironmentFault, match="shelf: protocol: an entry of 'now' changed, which is no object"):
        mirror_of(STATE).with_changes([("now", "a", b"1")], "shelf")
