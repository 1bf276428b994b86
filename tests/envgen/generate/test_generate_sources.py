"""What sources become before there is code: entities, references, tools, and what is left out with its reason."""

import json
import sqlite3
from pathlib import Path

import pytest
import yaml

from trajsmith.cli.env_gen import _tool_list
from trajsmith.envgen.generate.from_known_records import read_known_records
from trajsmith.envgen.generate.from_mcp import read_mcp
from trajsmith.envgen.generate.from_openapi import read_openapi
from trajsmith.envgen.generate.from_tables import read_tables
from trajsmith.envgen.generate.identifiers import to_class_name, to_identifier
from trajsmith.envgen.generate.phrasebooks import render_phrasebook
from trajsmith.envgen.generate.refinement import MAX_ENTITIES, refine_blueprint
from trajsmith.envgen.generate.rules import render_rules
from trajsmith.envgen.generate.tool_lists import ToolList, read_tool_list
from trajsmith.envgen.generate.tool_names import interpret_tool_name
from trajsmith.envgen.generate.value_types import infer_values
from trajsmith.environments.adapters.openapi import OpenApiSettings, build_payload
from trajsmith.environments.adapters.openapi.program import load
from trajsmith.records import InputError


@pytest.mark.parametrize(
    ("given", "expected"),
    [("class", "class_value"), ("2nd try", "field_2nd_try"), ("customerID", "customer_id"), ("now", "now_value")],
)
def test_names_become_identifiers(given, expected):
    assert to_identifier(given) == expected


def test_names_of_other_scripts_stay_apart():
    assert to_identifier("价格").isidentifier() and to_identifier("价格") != to_identifier("名称")


def test_class_names_hide_nothing():
    assert to_class_name("order_item") == "OrderItem"
    assert to_class_name("field") == "FieldRecord"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2", ""], "whole"),
        (["1.5", "2"], "number"),
        (["007", "008"], "text"),
        (["2024-01-02", "2024-02-03"], "date"),
        (["2024-01-02T10:00", "2024-02-03T11:00"], "moment"),
        (["yes", "no"], "flag"),
        (["a", "b"] * 6, "choice"),
    ],
)
def test_kinds_of_values(values, kind):
    found = infer_values(values)
    assert found is not None and found.kind == kind


def test_columns_without_values_have_no_kind():
    assert infer_values(["", None]) is None
    assert infer_values([{"a": 1}]) is None


# Tables


@pytest.fixture
def shop(tmp_path):
    database = sqlite3.connect(tmp_path / "shop.sqlite")
    database.executescript(
        """CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE "order"(id INTEGER PRIMARY KEY, buyer INTEGER REFERENCES customer(id), class TEXT);
        INSERT INTO customer VALUES (1, 'Ada'), (2, 'Ben');
        INSERT INTO "order" VALUES (1, 1, 'a'), (2, 2, NULL);"""
    )
    database.commit()
    database.close()
    return tmp_path / "shop.sqlite"


def test_sqlite_gives_keys_references_and_real_rows(shop):
    made = read_tables(shop)
    order = made.entity("order")
    assert order.key == "order_id" and order.start == 2
    assert order.column("buyer").references == "customer"
    assert order.column("class_value").label == "class" and not order.column("class_value").required
    assert made.entity("customer").rows == ((1, "Ada"), (2, "Ben"))


def test_users_ask_for_a_record_by_what_it_is_and_for_a_new_one_with_its_owners(shop):
    blueprint = refine_blueprint(read_tables(shop))
    asked = {name: one["ask"] for name, one in yaml.safe_load(render_phrasebook(blueprint))["tools"].items()}
    for operation in blueprint.operations:
        entity = blueprint.entity(operation.table)
        owners = [name for name in operation.needed if entity.column(name).references]
        slots = {"get": [entity.key], "update": [entity.key], "delete": [entity.key], "create": owners}
        wanted = slots.get(operation.action, [])
        assert all(f"{{{slot}}}" in ask for slot in wanted for ask in asked.get(operation.name, [""])), operation.name
        assert operation.name in asked or not wanted, operation.name
    assert any(one.startswith("add a") for one in asked["add_order"])


def test_tables_without_keys_are_numbered_and_broken_files_told(tmp_path):
    (tmp_path / "colours.csv").write_text("colour,warm\nred,yes\nred,yes\n")
    (tmp_path / "broken.csv").write_text("a,b\n1,2,3\n")
    made = read_tables(tmp_path)
    assert [entity.table for entity in made.entities] == ["colours"]
    assert made.entity("colours").key == "colour_id"
    assert {one.what: one.reason for one in made.left_out} == {
        "broken.csv": "cannot be read: row 2 has 3 values, the head has 2",
        "colours: key": "no column identifies the rows; they are numbered",
    }


def test_references_by_name_need_values_that_are_keys(tmp_path):
    (tmp_path / "towns.json").write_text(json.dumps([{"id": 1, "name": "York"}]))
    (tmp_path / "people.json").write_text(json.dumps([{"id": 1, "town_id": 1}, {"id": 2, "town_id": 9}]))
    assert read_tables(tmp_path).entity("people").column("town_id").references == ""


@pytest.mark.parametrize("content", ["", "only,a,head\n"])
def test_a_source_with_nothing_usable_is_refused(tmp_path, content):
    (tmp_path / "empty.csv").write_text(content)
    with pytest.raises(InputError, match="no table to make an environment of"):
        read_tables(tmp_path)


# Tool lists


def listed(*tools):
    return ToolList("demo", [{"name": name, "input_schema": schema(**fields)} for name, fields in tools])


def schema(**fields):
    return {"type": "object", "properties": {n: {"type": kind} for n, kind in fields.items()}, "required": list(fields)}


def test_nouns_become_entities_and_verbs_tools():
    given = listed(
        ("create_task", {"title": "string", "projectId": "string"}),
        ("complete_task", {"task_id": "string"}),
        ("list_tasks", {"projectId": "string"}),
        ("think", {"thought": "string"}),
        ("get_weather", {"city": "string"}),
    )
    made = read_mcp(given)
    assert {operation.name: operation.action for operation in made.operations} == {
        "create_task": "create",
        "complete_task": "move",
        "list_tasks": "list",
    }
    assert made.entity("tasks").status.choices == ("open", "completed")
    assert {one.what: one.reason for one in made.left_out} == {
        "think": "its name has no verb and noun",
        "get_weather": "nothing says where weather records come from",
    }


def test_words_that_all_names_begin_with_say_nothing():
    assert interpret_tool_name("notion_create_page", ("notion",)) == interpret_tool_name("create_page", ())


def test_tools_that_take_many_records_are_left_out():
    assert interpret_tool_name("batch_delete_notes", ()) == "it takes several records at once"


def test_a_list_without_records_is_refused():
    with pytest.raises(InputError, match="nothing usable"):
        read_mcp(listed(("think", {"thought": "string"})))


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["create_task", "complete_task"], "2 tools are left, fewer than 3"),
        (["create_task", "complete_task", "delete_task"], "no tool shows a record"),
    ],
)
def test_tools_that_no_task_can_be_made_of_are_refused(names, reason):
    made = read_mcp(listed(*((name, {"task_id": "string", "title": "string"}) for name in names)))
    with pytest.raises(InputError, match=reason):
        refine_blueprint(made)


@pytest.mark.parametrize("read", [read_mcp, read_known_records])
def test_tools_of_a_list_say_who_calls_them(read):
    names = ("create_ticket", "get_ticket", "list_tickets", "delete_ticket")
    tools = listed(*((name, {"ticket_id": "string", "title": "string"}) for name in names))
    tools.tools[0]["_meta"] = {"trajsmith/actor": "user"}
    tools.tools[3]["description"] = "Delete a ticket. Only the user may call this."
    made = refine_blueprint(read(tools))
    assert {one.name for one in made.operations if one.actor == "user"} == {"create_ticket", "delete_ticket"}
    assert "Only the user can do this, when asked to: create ticket, delete ticket." in set(render_rules(made))
    tools.tools[0]["_meta"] = {"trajsmith/actor": "robot"}
    with pytest.raises(InputError, match="tool create_ticket: the actor is 'robot'"):
        read(tools)


def test_a_list_of_a_running_server_keeps_who_calls_its_tools(tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text("name: care\nenvironments: [{library: mobile_care}]\n")
    users = {tool["name"] for tool in _tool_list(f"{config}:mobile_care").tools if tool["actor"] == "user"}
    assert "restart_router" in users


def test_a_file_of_several_servers_wants_one(tmp_path):
    file = tmp_path / "tools.jsonl"
    file.write_text('{"server": "a", "name": "get_x"}\n{"server": "b", "name": "get_y"}\n')
    with pytest.raises(InputError, match="holds 2 servers"):
        read_tool_list(str(file))
    assert read_tool_list(f"{file}:b").tools[0]["name"] == "get_y"


# OpenAPI documents


def document(count=1, **more):
    record = {"type": "object", "required": ["id", "name"], "properties": {
        "id": {"type": "integer"}, "name": {"type": "string"},
        "state": {"type": "string", "enum": ["new", "closed"]}, **more,
    }}  # fmt: skip
    content = {"application/json": {"schema": record}}
    paths = {}
    for number in range(count):
        name = f"{'abcdefghijklmnopqrstuvwxyz'[number]}ox"
        parameter = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
        answer = {"200": {"description": "ok", "content": content}}
        many = {"application/json": {"schema": {"type": "array", "items": record}}}
        paths[f"/{name}s"] = {
            "get": {"responses": {"200": {"description": "ok", "content": many}}},
            "post": {"requestBody": {"content": content}, "responses": answer},
        }
        paths[f"/{name}s/{{id}}"] = {"parameters": [parameter], "get": {"responses": answer}}
    return {"openapi": "3.0.0", "info": {"title": "Boxes", "version": "1"}, "paths": paths}


def test_documents_give_entities_with_their_rules(tmp_path):
    (tmp_path / "boxes.json").write_text(json.dumps(document()))
    made = read_openapi(tmp_path / "boxes.json")
    entity = made.entity("aoxs")
    assert (entity.key, entity.column("aox_id").kind) == ("aox_id", "whole")
    assert entity.column("state_value").choices == ("new", "closed")
    assert sorted(operation.action for operation in made.operations) == ["create", "get", "list"]


def test_operations_of_a_document_say_who_calls_them(tmp_path):
    given = document()
    given["paths"]["/aoxs"]["post"]["x-trajsmith-actor"] = "user"
    (tmp_path / "boxes.json").write_text(json.dumps(given))
    made = read_openapi(tmp_path / "boxes.json")
    assert {one.action: one.actor for one in made.operations} == {
        "list": "assistant", "create": "user", "get": "assistant",
    }  # fmt: skip


def test_of_a_large_document_a_part_is_taken_and_the_rest_told(tmp_path):
    (tmp_path / "boxes.json").write_text(json.dumps(document(MAX_ENTITIES + 2)))
    made = refine_blueprint(read_openapi(tmp_path / "boxes.json"))
    assert len(made.entities) == MAX_ENTITIES
    assert sum("beyond the" in one.reason for one in made.left_out) == 2


def test_a_document_without_schemas_is_refused(tmp_path):
    (tmp_path / "bare.json").write_text(
        json.dumps({"openapi": "3.0.0", "info": {}, "paths": {"/x": {"get": {"responses": {}}}}})
    )
    with pytest.raises(InputError, match="no operation can be played"):
        read_openapi(tmp_path / "bare.json")


SPECS = Path(__file__).parents[2] / "environments" / "openapi" / "specs"


def test_verbs_of_a_document_set_a_status_or_a_flag_and_may_change_more():
    made = refine_blueprint(read_openapi(SPECS / "desk.json"))
    moves = {one.name: (one.column, one.sets, one.fields) for one in made.operations if one.action == "move"}
    assert moves == {
        "tickets_close": ("state_value", "closed", ("resolution",)),
        "tickets_reopen": ("state_value", "open", ()),
        "tickets_lock": ("locked", True, ()),
        "tickets_unlock": ("locked", False, ()),
    }
    assert made.entity("tickets").reopens, "a closed ticket is not closed for good: a tool opens it again"


def test_lists_of_a_document_are_narrowed_by_bounds_tags_and_embedded_records():
    shop, desk = (refine_blueprint(read_openapi(SPECS / name)) for name in ("shop.yaml", "desk.json"))
    products = next(one for one in shop.operations if one.name == "search_products")
    assert [(one.name, one.column, one.sign) for one in products.ranges] == [
        ("min_price", "price", ">="),
        ("max_price", "price", "<="),
    ]
    assert "tags" in products.fields
    tickets = next(one for one in desk.operations if one.name == "tickets_list")
    assert {"state_value", "assignee_id"} <= set(tickets.fields)


@pytest.mark.parametrize("name", ["shop.yaml", "desk.json", "nullable.yaml", "awkward.yaml"])
def test_every_operation_that_the_adapter_plays_is_generated(name):
    played = load(build_payload(OpenApiSettings(spec=SPECS / name))).spec.tools
    made = refine_blueprint(read_openapi(SPECS / name))
    assert [one.name for one in made.operations] == [tool.name for tool in played]


def test_records_of_which_each_record_has_one_become_part_of_it():
    made = refine_blueprint(read_openapi(SPECS / "shop.yaml"))
    column = made.entity("customers").column("preferences")
    assert column.kind == "record" and [one.name for one in column.columns] == ["newsletter", "language"]
    tools = {one.name: (one.action, one.table, one.column, one.fields) for one in made.operations}
    assert tools["get_preferences"] == ("get", "customers", "preferences", ())
    assert tools["change_preferences"] == ("update", "customers", "preferences", ("newsletter", "language"))


def test_memberships_are_lists_of_keys_that_tools_add_to_and_take_from():
    made = refine_blueprint(read_openapi(SPECS / "desk.json"))
    assert made.entity("tickets").column("watcher_ids").references == "agents"
    tools = {one.name: (one.action, one.table, one.owner, one.column) for one in made.operations}
    assert tools["watchers_add"] == ("link", "tickets", "", "watcher_ids")
    assert tools["watchers_remove"] == ("unlink", "tickets", "", "watcher_ids")
    assert tools["watchers_list"] == ("list", "agents", "tickets", "watcher_ids")
