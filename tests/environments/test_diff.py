"""State differences: they lead from one document to the other, name every changed leaf, and mistake no type."""

from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trajsmith.environments.diff import diff, escape_pointer
from trajsmith.records import canonical_json

steady = settings(deadline=None, derandomize=True, max_examples=100)

SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 2.5]) | st.text("a~/-0", max_size=3)
)
KEYS = st.sampled_from(["a", "b", "a/b", "m~n", "-", "0", "", "~1"])
JSON = st.recursive(
    SCALARS,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(KEYS, children, max_size=4),
    max_leaves=12,
)


@steady
@given(JSON, JSON)
def test_the_patch_leads_from_before_to_after(before: Any, after: Any) -> None:
    assert canonical_json(jsonpatch.apply_patch(before, diff(before, after))) == canonical_json(after)


@steady
@given(JSON, JSON)
def test_the_patch_is_empty_only_for_the_same_document(before: Any, after: Any) -> None:
    assert (diff(before, after) == []) == (canonical_json(before) == canonical_json(after))


@steady
@given(JSON)
def test_nothing_differs_from_itself_in_another_order_of_keys(document: Any) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(item) for item in value] if isinstance(value, list) else value

    assert diff(document, turned(document)) == []


@steady
@given(JSON, JSON)
def test_only_add_remove_and_replace(before: Any, after: Any) -> None:
    assert {operation["op"] for operation in diff(before, after)} <= {"add", "remove", "replace"}


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        pytest.param({"a": True}, {"a": 1}, [("replace", "/a")], id="bool-is-no-int"),
        pytest.param({"a": {"b": [0]}}, {"a": {"b": [False]}}, [("replace", "/a/b/0")], id="bool-deep-in-a-list"),
        pytest.param([1, True], [1], [("remove", "/1")], id="shorter-list-of-bool-and-int"),
        pytest.param({"a": 1}, {"a": 1.0}, [("replace", "/a")], id="int-is-no-float"),
        pytest.param({"a": [[1, 2], [3]]}, {"a": [[1, 2], [3, 4]]}, [("add", "/a/1/-")], id="nested-list-grows"),
        pytest.param([1, 2, 3], [2, 3], [("remove", "/0")], id="the-first-is-taken"),
        pytest.param([1, 2, 3], [1], [("remove", "/2"), ("remove", "/1")], id="the-last-are-taken"),
        pytest.param({"a/b": 1}, {"a/b": 2}, [("replace", "/a~1b")], id="slash-in-a-key"),
        pytest.param({"x": None}, {}, [("remove", "/x")], id="null-is-not-absent"),
        pytest.param({"x": []}, {"x": {}}, [("replace", "/x")], id="another-container"),
        pytest.param(
            {"b": 1, "a": 1},
            {"c": 1, "d": 1},
            [("remove", "/a"), ("remove", "/b"), ("add", "/c"), ("add", "/d")],
            id="fixed-order",
        ),
    ],
)
def test_every_changed_leaf_is_named(before: Any, after: Any, patch: list[tuple[str, str]]) -> None:
    assert [(operation["op"], operation["path"]) for operation in diff(before, after)] == patch


def test_escaping_is_that_of_json_pointers() -> None:
    assert escape_pointer("a/b~c") == "a~1b~0c"
