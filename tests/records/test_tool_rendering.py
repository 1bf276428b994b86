"""Compact tools keep what a call needs: names, types, choices, limits, formats, and what is required."""

import copy

import pytest
from jsonschema import Draft202012Validator

from trajsmith.records.tool_rendering import compact_schema, render_tools, shorten

FULL = {
    "type": "function",
    "function": {
        "name": "create_ticket",
        "description": "Open a ticket. It is sent to the desk of the site.",
        "parameters": {
            "type": "object",
            "title": "CreateTicket",
            "additionalProperties": False,
            "properties": {
                "ticket_id": {"type": "string", "title": "Ticket Id", "description": "The ticket id."},
                "subject": {"type": "string", "minLength": 2, "examples": ["Printer"], "description": "One line."},
                "priority": {"type": "integer", "default": 3, "minimum": 1, "maximum": 5, "title": "Priority"},
                "notify": {"type": "boolean", "default": False, "description": "Tell the owner. By mail, too. " * 5},
                "day": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
                "owner": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Null for nobody."},
                "title": {"enum": ["Ms", "Mr"], "type": "string"},
                "tags": {"type": "array", "items": {"type": "string", "examples": ["vpn"]}},
            },
            "required": ["subject", "owner"],
        },
    },
}


def test_what_a_call_needs_stays_and_the_rest_goes():
    before = copy.deepcopy(FULL)
    (compact,) = render_tools([FULL], "compact")
    assert compact == {
        "type": "function",
        "function": {
            "name": "create_ticket",
            "description": "Open a ticket. It is sent to the desk of the site.",
            "parameters": {
                "type": "object",
                "properties": {
                    "ticket_id": {"type": "string"},
                    "subject": {"type": "string", "description": "One line."},
                    "priority": {"type": "integer", "default": 3, "minimum": 1, "maximum": 5},
                    "notify": {
                        "type": "boolean",
                        "description": "Tell the owner. By mail, too. Tell the owner. By mail, too. Tell the owner. By "
                        "mail, too.",
                    },
                    "day": {"type": "string", "format": "date"},
                    "owner": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Null for nobody."},
                    "title": {"type": "string", "enum": ["Ms", "Mr"]},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["subject", "owner"],
            },
        },
    }
    assert before == FULL, "the caller's schemas are shared and must not change"


def test_rendering_twice_is_rendering_once_and_full_is_as_given():
    once = render_tools([FULL], "compact")
    assert render_tools(once, "compact") == once
    assert render_tools([FULL], "full") == [FULL]


def test_a_parameter_that_has_the_name_of_a_keyword_stays():
    schema = {"type": "object", "properties": {"examples": {"type": "integer"}, "default": {"type": "string"}}}
    assert compact_schema(schema) == schema


@pytest.mark.parametrize("library", ["bank", "calendar", "mobile_care", "retail"])
def test_valid_calls_of_bundled_environments_stay_valid(library):
    import trajsmith

    with trajsmith.open_environment(library) as environment:
        specs = environment.spec.tools
    assert specs
    for tool in specs:
        full = tool.as_function()
        (compact,) = render_tools([full], "compact")
        parameters = compact["function"]["parameters"]
        Draft202012Validator.check_schema(parameters)
        assert set(parameters.get("properties", {})) == set(tool.parameters)
        assert set(parameters.get("required", ())) == set(tool.required)
        assert len(str(compact)) <= len(str(full))


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("One. Two.", "One. Two."),
        ("A first sentence that is longer than the limit. Two.", "A first sentence that is longer than the limit."),
        ("Costs 3.50 a day,  or more.\nAsk.", "Costs 3.50 a day, or more."),
        ("", ""),
    ],
)
def test_descriptions_end_with_a_sentence(text, short):
    assert shorten(text, 28) == short


@pytest.mark.parametrize(
    ("setting", "noted", "style"),
    [("compact", None, "compact"), (None, "compact", "compact"), ("full", "compact", "full"), (None, None, "full")],
    ids=["setting", "as it was trained", "the setting wins", "neither"],
)
def test_a_model_in_a_role_is_shown_tools_as_configured_or_as_it_was_trained(tmp_path, setting, noted, style):
    from types import SimpleNamespace

    from trajsmith.models import ChatRequest, ModelSettings, RoleSettings
    from trajsmith.models.checkpoint_info import CheckpointInfo, write_checkpoint_info
    from trajsmith.models.registry import RoleModel
    from trajsmith.records import Message

    if noted:
        write_checkpoint_info(tmp_path, CheckpointInfo(tools=noted))
    shared = SimpleNamespace(settings=ModelSettings(model=str(tmp_path), tools=setting))
    request = ChatRequest(messages=(Message(role="user", content="Hello"),), tools=(FULL,), purpose="agent")
    assert list(RoleModel("agent", RoleSettings(), shared).fill_request(request).tools) == render_tools([FULL], style)
