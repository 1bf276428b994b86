"""Who calls a tool: settings before declarations, those before what a description says."""

import pytest

from trajsmith.environments import check_user_tools, find_tool_actor
from trajsmith.environments.signatures import read_signature
from trajsmith.environments.tool_metadata import merge_tool_metadata
from trajsmith.records import InputError


@pytest.mark.parametrize(
    ("description", "declared", "chosen", "actor"),
    [
        ("Once it is done, the user must\ncall this tool to approve.", {}, None, "user"),
        ("Only the customer can call this.", {}, None, "user"),
        ("Open a new tab in the user's browser", {}, None, "assistant"),
        ("Scale the font size on your device.", {}, None, "assistant"),
        ("Ask the user to call this number.", {}, None, "assistant"),
        ("Only the customer can use this coupon.", {}, None, "assistant"),
        ("The user must use this id.", {}, None, "assistant"),
        ("Only the user can run this function, on the phone.", {}, None, "user"),
        ("Restart it.", {"_meta": {"trajsmith/actor": "user"}}, None, "user"),
        ("Restart it.", {"x-trajsmith-actor": "user"}, None, "user"),
        ("Restart it.", {"_meta": None, "actor": "user"}, None, "user"),
        ("Only the user can call this.", {"actor": "assistant"}, None, "assistant"),
        ("Only the user can call this.", {}, [], "assistant"),
        ("Restart it.", {"actor": "assistant"}, ["restart"], "user"),
    ],
)
def test_settings_come_before_declarations_and_those_before_words(description, declared, chosen, actor):
    assert find_tool_actor("restart", description, declared, chosen) == actor


@pytest.mark.parametrize("actor", ["robot", ["user"], {}])
def test_an_unknown_actor_is_refused(actor):
    with pytest.raises(InputError, match=r"tool restart: the actor is .*; it must be one of assistant, user"):
        find_tool_actor("restart", "", {"_meta": {"trajsmith/actor": actor}})


@pytest.mark.parametrize(
    ("chosen", "actors", "reason"),
    [
        (
            ["fly"],
            {"swim": "assistant", "run": "assistant"},
            "pond: user tool 'fly' does not exist; there are run, swim",
        ),
        (["fly"], {}, "pond: user tool 'fly' does not exist; there are none"),
        (None, {"swim": "user"}, "pond: all tools are the user's; leave the agent at least one"),
    ],
)
def test_the_user_gets_tools_that_exist_and_not_all(chosen, actors, reason):
    with pytest.raises(InputError) as error:
        check_user_tools("pond", chosen, actors)
    assert str(error.value) == reason
    check_user_tools("pond", ["swim"], {"swim": "user", "run": "assistant"})


@pytest.mark.parametrize(
    ("metadata", "actor"),
    [(None, "assistant"), ({"actor": "user"}, "user"), ({"description": "Only the user may use this."}, "user")],
)
def test_metadata_beside_code_says_who_calls_its_tools(metadata, actor):
    def restart() -> None:
        """Restart it."""

    described = merge_tool_metadata("restart", read_signature(restart, "pond"), None, metadata)
    assert described.tool("pond", "restart").actor == actor
