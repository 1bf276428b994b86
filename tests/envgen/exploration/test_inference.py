"""What is inferred from single texts, names and results."""

import re

import pytest

from trajsmith.envgen.exploration.entry import infer_schema
from trajsmith.envgen.exploration.harvest import Harvest
from trajsmith.envgen.exploration.refusals import infer_refusals, looks_refused
from trajsmith.envgen.exploration.tool_kinds import classify_tool, find_open_world
from trajsmith.envgen.exploration.values import list_statements, propose_values, takes_sql
from trajsmith.grounding import list_input_fields
from trajsmith.records import ToolSpec


def make_tool(name, description="", **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ToolSpec(server="trial", name=name, description=description, input_schema=schema)


@pytest.mark.parametrize(
    "text",
    [
        "Database error: no such table: x",
        "Error: there is no task 7",
        '{"ok":false,"error":"not_found"}',
        '{"error": "No expense with id 4"}',
        "Task 99 not found",
        "❌ Unknown timezone: Mars",
    ],
)
def test_refusals_as_plain_texts_are_seen(text):
    assert looks_refused(text)


@pytest.mark.parametrize(
    "text", ["Table created successfully", '[{"name": "errors"}]', '{"error": null, "rows": []}', "3 tasks are open"]
)
def test_results_are_no_refusals(text):
    assert not looks_refused(text)


def test_the_pattern_of_a_refusal_takes_other_values():
    (pattern,) = infer_refusals([("Task 99 not found", ("99",))], [])
    assert re.match(pattern, "Task 7 not found")
    assert not re.match(pattern, "Task 7 is done")


def test_a_pattern_that_right_results_match_is_not_used():
    assert infer_refusals([("Error: x", ())], ["Error: 404 is what the log says"]) == []


@pytest.mark.parametrize(
    ("description", "kind"),
    [
        ("Execute a SELECT query on the SQLite database", "select"),
        ("Execute an INSERT, UPDATE, or DELETE query on the SQLite database", "write"),
        ("Create a new table in the SQLite database", "create"),
        ("Execute a query on the DuckDB database", "any"),
        ("Find notes by a word", None),
    ],
)
def test_sql_is_told_by_name_and_description(description, kind):
    tool = make_tool("run", description, query={"type": "string"})
    assert takes_sql(tool, list_input_fields(tool)[0]) == kind


def test_statements_fit_their_kind():
    assert all(text.startswith("SELECT") for text in list_statements("select"))
    assert all(text.startswith("CREATE TABLE") for text in list_statements("create"))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("list_tasks", "read"),
        ("add_task", "create"),
        ("complete_task", "change"),
        ("delete_task", "destroy"),
        ("get_current_time", "read"),
    ],
)
def test_kinds_of_tools(name, kind):
    assert classify_tool(make_tool(name)) == kind


def test_tools_of_the_web_are_told():
    assert find_open_world(make_tool("fetch_page"))
    assert find_open_world(make_tool("read_article", url={"type": "string"}))
    assert not find_open_world(make_tool("list_tasks"))


def test_timezones_and_titles_are_proposed_by_name():
    tool = make_tool("create_todo", title={"type": "string"}, timezone={"type": "string"})
    title, timezone = list_input_fields(tool)
    assert propose_values(tool, title, 0, (), None, True)[0].values[0] == "Water the plants on the balcony"
    assert "/" in propose_values(tool, timezone, 0, (), None, True)[0].values[0]


def test_an_identifier_is_taken_from_results():
    harvest = Harvest()
    harvest.add("list_orders", {"orders": [{"id": 17, "name": "lamp"}]})
    harvest.add("list_users", {"users": [{"id": 5}]})
    tool = make_tool("cancel_order", order_id={"type": "integer"})
    assert harvest.find(tool, list_input_fields(tool)[0])[0] == 17


def test_schemas_of_results_have_the_fields_of_all_samples():
    schema = infer_schema([{"rows": [{"id": 1}]}, {"rows": [{"id": 2, "due": "2026-03-02"}]}])
    assert schema is not None
    assert schema["properties"]["rows"]["items"]["properties"] == {"id": {"type": "integer"}, "due": {"type": "string"}}
    assert infer_schema(["text"]) is None
