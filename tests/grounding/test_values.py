"""Values for one parameter: by its schema alone, and from a state."""

import random
from typing import Any

import pytest

from trajsmith.grounding import ListLevel, ValueSource, generate_text, replace_value_at
from trajsmith.grounding.argument_paths import build_arguments, get_argument_name, get_leaf_name, get_value_at
from trajsmith.grounding.assign import Assigner
from trajsmith.grounding.fields import SchemaField, get_types
from trajsmith.grounding.names import is_removal
from trajsmith.grounding.schema_values import fits_schema, has_format, list_boundary_values, list_invalid_values
from trajsmith.grounding.text_generation import list_matching_texts
from trajsmith.phrasing import Phrasebook
from trajsmith.records import GoldCall, JsonObject, ToolSpec

STATE: JsonObject = {
    "now": "2026-03-02T09:00:00",
    "rooms": {
        "R1": {"room_id": "R1", "colour": "red", "seats": 4},
        "R2": {"room_id": "R2", "colour": "blue", "seats": 6},
    },
}


def field(name: str, **schema: Any) -> SchemaField:
    return SchemaField(name, name, (), get_types(schema), True, schema)


# Schemas


@pytest.mark.parametrize(
    "pattern", [r"^\d{8}$", r"^([01]\d|2[0-3]):[0-5]\d$", r"^[A-Z]{2}-\d+$", r"^(a|b[^x])\w*?-\1$"]
)
def test_texts_for_patterns(pattern: str) -> None:
    schema = {"type": "string", "pattern": pattern}
    texts = {generate_text(field("code", **schema), random.Random(seed)) for seed in range(8)}
    assert len(texts) > 1
    assert all(fits_schema(text, schema, frozenset({"string"})) for text in texts)
    assert texts <= set(list_matching_texts(pattern))


@pytest.mark.timeout(20)
def test_a_pattern_that_backtracks_without_end_holds_no_search() -> None:
    schema: JsonObject = {"type": "string", "pattern": "^(a|a)*$"}
    assert not fits_schema("a" * 40 + "!", schema, frozenset({"string"}))
    assert fits_schema("a" * 40, schema, frozenset({"string"}))


def test_no_text_is_made_for_a_broken_pattern() -> None:
    assert list_matching_texts("(") == ("",)


def test_texts_keep_the_lengths_of_the_schema() -> None:
    assert len(generate_text(field("note", type="string", minLength=80), random.Random(0))) == 80
    assert len(generate_text(field("note", type="string", maxLength=3), random.Random(0))) == 3


def test_boundaries_lie_within_and_invalid_values_without() -> None:
    schema: JsonObject = {"type": "integer", "minimum": 1, "maximum": 10}
    assert set(list_boundary_values(schema, frozenset({"integer"}))) == {1, 10}
    invalid = list_invalid_values(schema, frozenset({"integer"}))
    assert {0, 11} <= {value for value in invalid if isinstance(value, int)}
    assert not has_format("2026-13-01", "date")


# A source of values


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        pytest.param(field("x", enum=["a", None, "b"]), {"a", "b"}, id="choices"),
        pytest.param(field("x", type="boolean", default=True), {False}, id="not-the-default"),
        pytest.param(field("colour", type="string", examples=["green"]), {"green"}, id="examples-before-the-state"),
        pytest.param(field("colour", type="string"), {"red", "blue"}, id="the-state"),
        pytest.param(field("seats", type="string"), set(), id="not-of-another-type"),
        pytest.param(field("level", type="integer", minimum=3, maximum=4), {3, 4}, id="bounds"),
        pytest.param(field("x", type="string", description="Such as 'one two'."), {"one two"}, id="quoted-example"),
    ],
)
def test_likely_values(parameter: SchemaField, expected: set[Any]) -> None:
    assert set(ValueSource(STATE).propose(parameter, random.Random(0))) == expected


def test_wide_values_have_names_alike_and_patterns() -> None:
    source = ValueSource(STATE)
    rooms = {value for _, value in source.propose_widely(field("room"), random.Random(0), {})}
    assert {"R1", "R2"} <= rooms
    code = field("code", type="string", pattern="^[A-Z]{2}-[0-9]{3}$")
    assert len(source.propose_widely(code, random.Random(0), {})) > 1


def test_wide_values_are_the_examples_rather_than_any_text_of_the_state() -> None:
    remark = field("remark", type="string", examples=["Second version.", "Without the annex."])
    weights = {value: weight for weight, value in ValueSource(STATE).propose_widely(remark, random.Random(0), {})}
    others = [weight for value, weight in weights.items() if value not in remark.schema["examples"]]
    assert others
    assert sum(others) < 0.1 * (weights["Second version."] + weights["Without the annex."])


@pytest.mark.parametrize(
    ("parameter", "value", "first"),
    [
        pytest.param(field("colour", type="string"), "red", "blue", id="the-state"),
        pytest.param(field("size", enum=["s", "m"]), "s", "m", id="choices"),
        pytest.param(field("seats", type="integer", minimum=5), 6, 7, id="number"),
        pytest.param(field("day", type="string"), "2026-03-04", "2026-03-05", id="day"),
    ],
)
def test_a_changed_value_is_another_valid_one(parameter: SchemaField, value: Any, first: Any) -> None:
    source = ValueSource(STATE if parameter.name == "colour" else {})
    others = source.change(parameter, value, random.Random(0))
    assert first in others
    assert value not in others
    assert all(fits_schema(other, parameter.schema, parameter.types) for other in others)


# Paths


def test_a_value_is_replaced_without_touching_the_rest() -> None:
    arguments = {"items": [{"sku": "A", "count": 1}, {"sku": "B"}], "note": {"text": "x"}}
    replaced = replace_value_at(arguments, "items[1].sku", "C")
    assert replaced == {"items": [{"sku": "A", "count": 1}, {"sku": "C"}], "note": {"text": "x"}}
    assert get_value_at(arguments, "items[1].sku") == "B"
    assert replaced["note"] is arguments["note"]


def test_arguments_are_built_from_leaves() -> None:
    leaves = {"id": 1, "items[*].sku": "A", "items[1].sku": "B", "items[*].count": 2, "to.city": "Rome", "tags[*]": "x"}
    assert build_arguments(leaves) == {
        "id": 1,
        "items": [{"sku": "A", "count": 2}, {"sku": "B"}],
        "to": {"city": "Rome"},
        "tags": ["x"],
    }


@pytest.mark.parametrize(
    ("path", "argument", "leaf"),
    [("id", "id", "id"), ("items[*].sku", "items", "sku"), ("to.tags[0]", "to", "tags")],
)
def test_names_on_a_path(path: str, argument: str, leaf: str) -> None:
    assert (get_argument_name(path), get_leaf_name(path)) == (argument, leaf)


TABLES = [
    {"table_id": number, "name": name, "project_id": project}
    for number, name, project in ((1, "events", "A"), (2, "events", "B"), (3, "users", "A"))
]


def read_row_words(rows: list[JsonObject], most: int, arguments: JsonObject, later: JsonObject | None = None) -> Any:
    """Return the words for rows of a list of tables, after which a write had a result."""
    schema = {"type": "object", "properties": {"project_id": {"type": "string"}}}
    tool = ToolSpec(
        server="desk", name="list_tables", description=f"Return at most {most} tables.", input_schema=schema
    )
    values = ValueSource(
        {"tables": {str(row["table_id"]): row for row in TABLES}, "people": {"P1": {"name": "users", "role": "admin"}}}
    )
    listing = GoldCall(tool="list_tables", arguments=arguments, provenance={}, effect="read", result={"result": rows})
    write = GoldCall(tool="change_table", arguments={}, provenance={}, effect="write", result=later or {})
    return Assigner({"list_tables": tool}, values, Phrasebook(), 0.5).list_row_words("table_id", 0, [listing, write])


@pytest.mark.parametrize(
    ("most", "arguments", "shown", "only"),
    [
        (2, {}, 0, False),  # the other table called events is not shown
        (9, {}, 0, True),  # the list shows all
        (2, {"project_id": "A"}, 0, True),  # the other one is of another project
        (2, {}, 2, True),  # what else is called users is no table
    ],
)
def test_a_row_of_a_cut_list_is_told_by_what_no_hidden_row_has(
    most: int, arguments: JsonObject, shown: int, only: bool
) -> None:
    rows = [TABLES[0], TABLES[2]]
    words = read_row_words(rows, most, arguments)
    assert words.is_only(ListLevel("$.result", rows, rows.index(TABLES[shown])), "name") is only


@pytest.mark.parametrize(
    ("later", "grown"),
    [
        ({"table_id": 9, "name": "orders"}, True),
        ({"table_id": 2, "name": "events", "project_id": "A"}, False),  # it was there before
        ({"project_id": "C", "table_id": 9}, False),  # the project is what was made
        ({}, False),
    ],
)
def test_a_list_has_grown_once_a_row_of_its_kind_was_made(later: JsonObject, grown: bool) -> None:
    words = read_row_words(TABLES[:1], 9, {}, later)
    assert words.is_grown(ListLevel("$.result", TABLES[:1], 0)) is grown


@pytest.mark.parametrize(
    ("tool", "removes"),
    [
        ("delete_chat", True), ("ChatsController_deleteMessage", True), ("crm_archive_object", True),
        ("compute_delete_disk", True), ("move_list_item", True), ("list_deleted_chats", False),
        ("drive_get_trash", False), ("restore_from_trash", False), ("stock_move_create", False), ("play_move", False),
    ],
)  # fmt: skip
def test_a_tool_that_takes_away_is_told_by_its_verb(tool: str, removes: bool) -> None:
    assert is_removal(tool) is removes
