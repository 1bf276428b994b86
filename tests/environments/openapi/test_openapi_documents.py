"""Documents of every shape: read, refused with a line that says what to do, or partly left out with the reason."""

import re
from pathlib import Path
from typing import Any

import pytest
from plays import SPECS, program, program_of

from trajsmith.environments.adapters.openapi import OpenApiSettings, build_payload
from trajsmith.environments.adapters.openapi.document_reading import read_document
from trajsmith.environments.adapters.openapi.program import load
from trajsmith.environments.programs import load_program
from trajsmith.records import InputError, canonical_json

OK = {"description": "ok"}
THING = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}, "size": {"type": "integer"}}}


def answering(schema: Any, **more: Any) -> dict[str, Any]:
    return {"responses": {"200": {"description": "ok", "content": {"application/json": {"schema": schema}}}}, **more}


def listing(schema: Any = THING, **more: Any) -> dict[str, Any]:
    return answering({"type": "array", "items": schema}, **more)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "an OpenAPI document is an object"),
        ("[]", "an OpenAPI document is an object, this is list"),
        ('{"openapi": "3.1.0",}', "x.yaml:1: not JSON"),
        ("openapi: 3.1.0\npaths: [", r"x.yaml:\d: not YAML"),
        ("swagger: '2.0'\npaths: {}", "Swagger 2.0 is not read; convert it"),
        ("openapi: 4.0.0\npaths: {/a: {}}", "must say 3.0.x or 3.1.x, it says '4.0.0'"),
        ("openapi: 3.1.0\ninfo: {}", "there are no paths"),
        ("openapi: 3.1.0\npaths: &a {b: *a}", "a YAML alias contains itself"),
        ("openapi: 3.1.0\npaths: !!python/object:os.system {}", "not YAML"),
        ("openapi: 3.1.0\npaths: {? [1]\n : 2}", "not YAML|no text"),
    ],
)
def test_what_is_no_document_is_named(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_document(text, "x.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        "openapi: 3.0.0\npaths: " + '{"a":' * 100_000 + "1" + "}" * 100_000,
        "openapi: 3.0.0\npaths:\n " + "- " * 100_000 + "1\n",
        '{"openapi":"3.0.0","paths":' + '{"a":' * 100_000 + "1" + "}" * 100_002,
    ],
    ids=["json list", "flow", "block", "json object"],
)
def test_a_document_that_is_nested_without_measure_is_refused_in_one_line(text: str) -> None:
    says = "nested more than 500 levels deep|not JSON: depth limit|not YAML: exceeded maximum nesting depth"
    with pytest.raises(InputError, match=f"x.yaml(:1)?: ({says})"):
        read_document(text, "x.yaml")


def test_a_document_may_be_nested_hundreds_of_levels_deep_and_have_any_number_of_values() -> None:
    deep = "openapi: 3.0.0\npaths:\n  /a: " + "[" * 250 + "]" * 250 + "\n"
    wide = "".join(f"  /b{number}: {{get: [1, 2]}}\n" for number in range(1000))
    assert len(read_document(deep + wide, "x.yaml")["paths"]) == 1001


def test_aliases_that_unfold_without_measure_are_refused() -> None:
    levels = "\n".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 10)}]" for n in range(1, 9))
    with pytest.raises(InputError, match="aliases unfold to more than"):
        read_document(f"openapi: 3.1.0\nk0: &k0 [1]\n{levels}\npaths: {{/a: {{}}}}", "x.yaml")


def test_yaml_is_read_as_json_means_it() -> None:
    document = read_document("openapi: 3.0.3\npaths: {/on: {no: 2020-01-01, 200: yes, 1: 0x10, x: 1e3, y: null}}", "x")
    assert document["paths"]["/on"] == {"no": "2020-01-01", "200": "yes", "1": "0x10", "x": 1000.0, "y": None}


def test_deep_documents_are_refused() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(400):
        schema = {"type": "object", "properties": {"a": schema}}
    try:
        program_of({"paths": {"/things": {"get": listing(schema)}}})
    except InputError as error:
        assert "deep" in str(error) or "no operation can be played" in str(error)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="OpenAPI document not found"):
        build_payload(OpenApiSettings(spec=tmp_path / "none.yaml"))
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        build_payload(OpenApiSettings(spec=tmp_path / "bytes.json"))
    assert build_payload(OpenApiSettings(spec=SPECS / "shop.yaml", name="My Shop"))["name"] == "my_shop"


def test_nothing_is_fetched() -> None:
    remote = {"$ref": "https://example.com/pets.json#/Pet"}
    with pytest.raises(InputError, match=r"leads out of the document, and nothing is fetched; bundle"):
        program_of({"paths": {"/things": {"get": listing(remote)}}})


def test_a_document_of_which_nothing_can_be_played_says_why() -> None:
    with pytest.raises(InputError, match=r"no operation can be played: GET /: the root path names no resource"):
        program_of({"paths": {"/": {"get": {"responses": {"200": OK}}}}})


def test_what_is_awkward_is_read_or_left_out_with_the_reason() -> None:
    made = program("awkward.yaml")
    reasons = made.built.left_out
    assert reasons["GET /lost"] == "Nowhere: $ref '#/components/schemas/Nowhere' leads nowhere"
    assert reasons["GET /circle"] == "a $ref leads in a circle"
    assert reasons["GET /mixed/{a}-{b}"] == "segment '{a}-{b}' mixes text and parameters"
    assert reasons["GET /undeclared/{thing}"] == "path parameter 'thing' is not declared"
    assert "contains itself without end" in reasons["GET /endless"]
    assert reasons["GET /impossible"] == "no impossible can be made: a: no number between 5 and 3"
    assert set(made.built.derived) == {
        *("get_nodes", "post_nodes", "get_nodes_by_node_id", "patch_nodes_by_node_id", "shapes", "shapes_2"),
        *("op_2_get_a_shape", "put_shape", "label_with_clash", "get_label"),
    }
    assert "POST /shapes: operationId 'shapes' is not usable as it is; the tool is called shapes_2" in made.notes
    assert set(made.spec.tool("patch_nodes_by_node_id").parameters) == {"nodeId", "label", "parent", "body_nodeId"}
    assert "$defs" in str(made.spec.tool("get_nodes").output_schema), "a circle keeps its definitions"


def test_a_choice_of_shapes_is_one_of_them() -> None:
    made = program("awkward.yaml")
    play = made.start(canonical_json(made.states(0)[0]))
    shape = play.call("shapes_2", {"body": {"kind": "circle", "radius": 2}})
    assert shape.content == {"id": 1006, "kind": "circle", "radius": 2}
    assert play.call("op_2_get_a_shape", {"id": 1006}).content == shape.content
    assert play.call("shapes_2", {"body": {"kind": "circle", "width": 2}}).error == "invalid_arguments"
    assert play.call("shapes", {"kind": "circle"}).content["result"][-1] == shape.content


def test_nullable_of_3_0() -> None:
    made = program("nullable.yaml")
    properties = made.spec.tool("update_employee").input_schema["properties"]
    assert properties["manager_id"]["type"] == ["string", "null"]
    assert properties["salary"] == {"type": ["number", "null"], "exclusiveMinimum": 0}
    state = made.states(0)[0]
    play = made.start(canonical_json(state))
    key = next(iter(state["employees"]))
    assert play.call("update_employee", {"id": key, "manager_id": None}).content["manager_id"] is None
    assert play.call("update_employee", {"id": key, "salary": 0}).error == "invalid_arguments"
    missing = {"id": "00000000-0000-4000-8000-000000000000"}
    assert play.call("get_employee", missing).content == {"error": f"employee not found: {missing['id']}"}
    hired = play.call("hire", {"name": "Bo", "department_id": "none"})
    assert hired.content == {"error": "department not found: none"}
    assert (
        play.call("hire", {"name": "B", "department_id": "dep-01"}).content["errors"][0]["message"].startswith("name")
    )


def test_include_and_exclude_by_any_name() -> None:
    made = program("shop.yaml", include=["listCustomers", "get_customer", "POST /customers"], exclude=["get_customer"])
    assert set(made.built.derived) == {"list_customers", "create_customer"}
    with pytest.raises(InputError, match="there is no operation 'buy'; there are list_customers"):
        program("shop.yaml", include=["buy"])


def write_shop(folder: Path, actor: str) -> Path:
    """The shop's document, in which an operation says who calls it."""
    mark = f"operationId: changeOrder\n      x-trajsmith-actor: {actor}"
    file = folder / "shop.yaml"
    file.write_text((SPECS / "shop.yaml").read_text().replace("operationId: changeOrder", mark))
    return file


@pytest.mark.parametrize(
    ("actor", "chosen", "users"),
    [
        ("user", None, ["change_order"]),
        ("assistant", None, []),
        ("user", [], []),
        ("user", ["get_order", "get_product"], ["get_order", "get_product"]),
    ],
)
def test_who_calls_an_operation(actor: str, chosen: list[str] | None, users: list[str], tmp_path: Path) -> None:
    made = load(build_payload(OpenApiSettings(spec=write_shop(tmp_path, actor), user=chosen)))
    assert sorted(tool.name for tool in made.spec.tools if tool.actor == "user") == users
    play = made.start(canonical_json(made.states(1)[0]))
    for tool in made.built.derived:
        mine, other = ("user", "assistant") if tool in users else ("assistant", "user")
        assert play.call(tool, {"nonsense": 1}, mine).error == "invalid_arguments"
        assert play.call(tool, {"nonsense": 1}, other).error == "unknown_tool"


@pytest.mark.parametrize(
    ("actor", "chosen", "reason"),
    [
        ("robot", None, "tool change_order: the actor is 'robot'; it must be one of assistant, user"),
        ("user", ["fly"], "shop.yaml: user tool 'fly' does not exist; there are add_address"),
    ],
)
def test_who_calls_an_operation_must_make_sense(
    actor: str, chosen: list[str] | None, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=reason):
        load(build_payload(OpenApiSettings(spec=write_shop(tmp_path, actor), user=chosen)))


def test_the_version_follows_document_and_choice() -> None:
    one, two = program("shop.yaml"), program("shop.yaml", exclude=["get_order"])
    assert one.spec.version == program("shop.yaml").spec.version != two.spec.version
    assert one.spec.source == "openapi:shop.yaml" and one.spec.name == "shop"
    assert load_program("openapi", build_payload(OpenApiSettings(spec=SPECS / "shop.yaml"))).spec == one.spec


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "#/components/schemas/Gone"}, "leads nowhere"),
        ({"type": "object", "properties": {"a": {"$dynamicRef": "#x"}}}, "dynamicRef is not understood"),
        ({"type": "object", "properties": {"a": 5}}, "a schema is an object, this is int"),
        ({"type": "object", "required": ["a"], "properties": {"a": {"type": "wrong"}}}, "schema"),
        (
            {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "pattern": "^(?=b)a$"}}},
            "no text",
        ),
    ],
    ids=["nowhere", "dynamic", "number", "type", "pattern"],
)
def test_an_unusable_schema_leaves_out_only_what_needs_it(schema: Any, words: str) -> None:
    made = program_of({"paths": {"/things": {"get": listing()}, "/others": {"get": listing(schema)}}})
    assert set(made.built.derived) == {"get_things"}
    assert re.search(words, made.built.left_out["GET /others"])


def test_broken_keywords_are_noted() -> None:
    thing = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "("}, "b": {"type": "integer", "minimum": "1"}},
    }
    made = program_of({"paths": {"/things": {"get": listing(thing)}}})
    assert any("pattern '(' is not understood" in note for note in made.notes)
    assert any("minimum '1' is no number and not checked" in note for note in made.notes)


def test_three_hundred_operations() -> None:
    paths: dict[str, Any] = {}
    body = {"content": {"application/json": {"schema": THING}}}
    parameters = [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}]
    for number in range(60):
        paths[f"/kind{number}s"] = {"get": listing(), "post": answering(THING, requestBody=body)}
        paths[f"/kind{number}s/{{id}}"] = {
            "parameters": parameters,
            "get": answering(THING),
            "patch": answering(THING, requestBody=body),
            "delete": {"responses": {"204": OK}},
        }
    made = program_of({"paths": paths})
    assert len(made.spec.tools) == 300 and made.built.left_out == {}
