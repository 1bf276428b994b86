"""Classes for TRL's `environment_factory`: schemas that Transformers reads, and what a Python method cannot say."""

import inspect

import pytest

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.records import InputError, ToolSpec
from trajsmith.train_grpo.factory import build_method, check_tool

TOOLS = [
    pytest.param(tool, id=f"{name}.{tool.name}")
    for name in ("bank", "smart_home", "travel", "calendar", "file_store")
    for tool in ENVIRONMENTS.get(name).describe().tools
]


def build_tool(properties, required=(), name="send", description="Send something.", **schema):
    full = {"type": "object", "properties": properties, "required": list(required), **schema}
    return ToolSpec(name=name, description=description, input_schema=full, server="post")


@pytest.mark.train
def test_bundled_tools_keep_names_requirements_and_choices():
    utils = pytest.importorskip("transformers.utils", reason="transformers is missing: pip install -e '.[train]'")
    for tool in (param.values[0] for param in TOOLS):
        check_tool(tool)
        read = utils.get_json_schema(build_method(tool))["function"]
        parameters, own = read["parameters"], tool.input_schema
        assert read["name"] == tool.name and read["description"] == " ".join(tool.description.split())
        assert list(parameters["properties"]) == list(own["properties"])
        assert set(parameters.get("required", ())) == set(own.get("required", ()))
        for name, schema in own["properties"].items():
            if "enum" in schema:
                assert parameters["properties"][name]["enum"] == schema["enum"]
            assert parameters["properties"][name]["description"]


@pytest.mark.train
def test_what_annotations_cannot_say_is_in_the_description():
    utils = pytest.importorskip("transformers.utils", reason="transformers is missing: pip install -e '.[train]'")
    properties = {
        "to": {"type": "string", "format": "email", "description": "Who.\nReturns: nothing"},
        "kind": {"$ref": "#/$defs/Kind"},
        "weights": {"type": "array", "items": {"type": "number"}, "minItems": 1},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "box": {"type": "object", "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}}},
        "anything": {"description": 'One of them (choices: ["a"])'},
        "mixed": {"type": ["string", "integer"]},
    }
    kinds = {"$defs": {"Kind": {"enum": ["letter", "parcel"], "title": "Kind of post"}}}
    tool = build_tool(properties, ["to", "kind"], description="Send.\n\nArgs: are below", **kinds)
    read = utils.get_json_schema(build_method(tool))["function"]
    found = read["parameters"]["properties"]
    assert read["description"] == "Send. Args - are below"
    assert found["to"] == {"type": "string", "description": "Who. Returns - nothing (format email)"}
    assert found["kind"] == {"type": "string", "enum": ["letter", "parcel"], "description": "Kind of post"}
    assert found["weights"] == {
        "type": "array", "items": {"type": "number"}, "description": "weights (at least 1 entries)"
    }  # fmt: skip
    assert found["note"] == {"type": "string", "nullable": True, "description": "note"}
    assert found["box"] == {"type": "object", "description": "box (fields width, height)"}
    assert found["anything"]["description"] == 'One of them (choices ["a"])'
    assert found["mixed"]["type"] == ["integer", "string"]
    assert read["parameters"]["required"] == ["to", "kind"]


def test_signatures_have_defaults_and_pass_on_only_what_was_given():
    calls = []
    method = build_method(build_tool({"to": {"type": "string"}, "times": {"type": "integer", "default": 2}}, ["to"]))

    class Post:
        send = method

        def _call(self, tool, arguments):
            calls.append((tool, arguments))
            return "{}"

    assert str(inspect.signature(method)) == "(self, *, to: str, times: int = 2) -> str"
    assert Post().send(to="Ann") == "{}" and calls == [("send", {"to": "Ann"})]


WRONG = {
    "keyword": ({"from": {"type": "string"}}, "move", "'from'"),
    "hyphen": ({}, "create-issue", "'create-issue'"),
    "own method": ({}, "reset", "'reset'"),
    "hidden": ({}, "_send", "'_send'"),
}


@pytest.mark.parametrize(("properties", "name", "word"), WRONG.values(), ids=WRONG)
def test_tools_that_no_method_can_be_are_refused(properties, name, word):
    with pytest.raises(InputError, match=rf"tool {name}: {word} cannot be a name in Python.*rollout_func"):
        check_tool(build_tool(properties, name=name))
