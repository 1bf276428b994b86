"""Metadata beside the code: it describes; where it disagrees, the code counts and the disagreement is told."""

import pytest
from envfactory_files import LIBRARY, STATE, loaded, scenario, started

from trajsmith.records import EnvironmentFault

GET_BOOK = {
    "name": "get_book",
    "description": "Find a book by number.",
    "input_schema": {
        "type": "object",
        "properties": {"number": {"type": "integer", "minimum": 1, "description": "Its number."}},
        "required": ["number"],
    },
    "output_schema": {
        "type": "object",
        "properties": {"title": {"type": "string"}, "copies": {"type": "integer"}, "note": {"type": "string"}},
    },
}


def with_metadata(*tools, source=LIBRARY):
    listed = [{"description": None, "input_schema": None, "output_schema": None} | tool for tool in tools]
    metadata = {"description": "The desk.", "tools": listed}
    return loaded(source, scenarios=[scenario(STATE)], metadata=metadata)


def without_absent(notes):
    return [
        note for note in notes if not note.endswith("is in the code, but not in the metadata") or "parameter" in note
    ]


def test_agreeing_metadata_is_taken():
    program = with_metadata(GET_BOOK)
    tool = program.spec.tool("get_book")
    assert program.spec.description == "The desk."
    assert tool.description == "Find a book by number."
    assert tool.input_schema["properties"]["number"] == {"type": "integer", "minimum": 1, "description": "Its number."}
    assert tool.output_schema["properties"]["title"] == {"type": "string"}
    assert without_absent(program.notes) == []
    assert started(program).call("get_book", {"number": 0}).error == "invalid_arguments"


def test_tools_on_one_side_only():
    program = with_metadata(GET_BOOK, GET_BOOK | {"name": "burn"})
    assert "burn" not in {tool.name for tool in program.spec.tools}
    assert "tool lend is in the code, but not in the metadata" in program.notes
    assert "tool burn is in the metadata, but not in the code: it is not offered" in program.notes


@pytest.mark.parametrize(
    ("schema", "note"),
    [
        (
            {"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]},
            "parameter number is integer in the code, but string in the metadata",
        ),
        (
            {"type": "object", "properties": {"number": {"type": "integer"}}},
            "parameter number is required in the code, but optional in the metadata",
        ),
        (
            {"type": "object", "properties": {"shelf": {"type": "string"}, "number": {}}, "required": ["number"]},
            "parameter shelf is in the metadata, but not in the code",
        ),
        ({"type": "object", "properties": {}}, "parameter number is in the code, but not in the metadata"),
        ({"type": "nonsense"}, "the metadata's input_schema is no valid JSON Schema"),
        ([], "the metadata's input_schema is no JSON Schema: it is no object"),
    ],
    ids=["type", "required", "more", "less", "invalid", "no object"],
)
def test_disagreements_are_told_and_the_code_counts(schema, note):
    program = with_metadata(GET_BOOK | {"input_schema": schema})
    found = without_absent(program.notes)
    assert len(found) == 1
    assert found[0].startswith("tool get_book:")
    assert note in found[0]
    own = program.spec.tool("get_book").input_schema
    assert own["properties"]["number"]["type"] == "integer"
    assert own["required"] == ["number"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"number": {}}, "required": ["number"]},
        {"type": "object", "properties": {"number": {"enum": [1, 2]}}, "required": ["number"]},
        {"type": "object", "properties": {"number": {"anyOf": [{"type": "integer"}]}}, "required": ["number"]},
    ],
)
def test_narrower_metadata_is_no_disagreement(schema):
    program = with_metadata(GET_BOOK | {"input_schema": schema})
    assert without_absent(program.notes) == []
    assert program.spec.tool("get_book").input_schema["properties"]["number"] == schema["properties"]["number"]


def test_an_output_that_violates_the_metadata_is_a_fault():
    wrong = GET_BOOK | {"output_schema": {"type": "object", "properties": {"title": {"type": "integer"}}}}
    with pytest.raises(EnvironmentFault) as caught:
        started(with_metadata(wrong)).call("get_book", {"number": 1})
    assert caught.value.kind == "output_schema"
    assert "$.title: 'Emma' is not" in str(caught.value)


def test_null_is_allowed_for_what_may_be_absent():
    program = with_metadata(GET_BOOK)
    assert program.spec.tool("get_book").output_schema["properties"]["note"] == {"type": "string"}
    assert started(program).call("get_book", {"number": 1}).content["note"] is None


def test_text_for_a_tool_that_returns_nothing():
    silent = {"name": "add_book", "output_schema": {"type": "object", "properties": {}}}
    program = with_metadata(silent)
    assert program.spec.tool("add_book").output_schema is None
    assert without_absent(program.notes) == []
    loud = {"name": "add_book", "output_schema": {"type": "object", "properties": {"number": {"type": "integer"}}}}
    assert without_absent(with_metadata(loud).notes) == [
        "tool add_book: the metadata says it returns an object with number, the code returns text"
    ]


def test_a_list_as_output():
    source = LIBRARY.replace("def last_reader() -> dict", "def last_reader() -> list").replace(
        'return {"reader": _reader}', "return [_reader]"
    )
    listed = {"name": "last_reader", "output_schema": {"type": "array", "items": {"type": "string"}}}
    program = with_metadata(listed, source=source)
    assert program.spec.tool("last_reader").output_schema["properties"]["result"]["type"] == "array"
    assert started(program).call("last_reader", {}).content == {"result": [None]}
