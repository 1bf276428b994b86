"""Foreign values as JSON: exactly, or refused with the place."""

import collections
import datetime
import enum
import uuid
from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from trajsmith.environments.json_data import NotJsonError, to_exact_json, to_plain_json


class Point(BaseModel):
    x: float = 1.0


@dataclass
class Pair:
    left: int
    right: object


class Color(enum.Enum):
    RED = "red"


def cycle() -> list[object]:
    made: list[object] = [1]
    made.append(made)
    return made


def deep() -> list[object]:
    made: list[object] = []
    for _ in range(5000):
        made = [made]
    return made


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "$: nan is no JSON"),
        ({"a": [1, float("inf")]}, "$.a[1]: inf is no JSON"),
        ({"a": {"b": b"x"}}, "$.a.b: a bytes is no JSON"),
        (cycle(), "$[1]: a cycle"),
        ({(1, 2): 3}, "$: the key (1, 2) is no text"),
        ([10**30], "$[0]: an integer beyond 64 bits"),
        ("\ud800", "$: text with lone surrogates"),
        ([object()], "$[0]: a object is no JSON"),
        ([Point(x=float("nan"))], "$[0].x: nan is no JSON"),
        ((number for number in ()), "$: a generator is no JSON"),
    ],
    ids=["nan", "inf", "bytes", "cycle", "key", "integer", "surrogate", "object", "model", "generator"],
)
def test_what_json_cannot_carry_is_refused_with_its_place(value, reason):
    with pytest.raises(NotJsonError) as caught:
        to_plain_json(value)
    assert str(caught.value) == reason


def test_deep_nesting_is_refused():
    with pytest.raises(NotJsonError, match="nested too deeply"):
        to_plain_json(deep())


def test_usual_types_become_json():
    value = {
        1: Point(),
        "pair": Pair(1, (2, {3})),
        "when": datetime.datetime(2026, 1, 2, 3, 4, 5),
        "color": Color.RED,
        "id": uuid.UUID(int=7),
        "price": Decimal("1.50"),
        "wait": datetime.timedelta(minutes=1),
        "table": collections.OrderedDict(a=1),
    }
    assert to_plain_json(value) == {
        "1": {"x": 1.0},
        "pair": {"left": 1, "right": [2, [3]]},
        "when": "2026-01-02T03:04:05",
        "color": "red",
        "id": "00000000-0000-0000-0000-000000000007",
        "price": "1.50",
        "wait": 60.0,
        "table": {"a": 1},
    }


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"a": {1: 2}}, "$.a: the key 1 is no text"),
        ({"a": [(1,)]}, "$.a[0]: a tuple does not come back from JSON as it was"),
        ({"a": {1}}, "$.a: a set does not come back from JSON as it was"),
        ([Point()], "$[0]: a Point does not come back from JSON as it was"),
    ],
)
def test_exact_refuses_what_would_come_back_different(value, reason):
    with pytest.raises(NotJsonError) as caught:
        to_exact_json(value)
    assert str(caught.value) == reason


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_json_comes_back_equal_and_fresh(value):
    made = to_plain_json(value)
    assert made == value == to_exact_json(value)
    if isinstance(value, list | dict):
        assert made is not value
