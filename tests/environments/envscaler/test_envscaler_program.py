"""A class with a configuration: its methods are tools, its attributes are the state."""

import orjson
import pytest
from envscaler_files import CONFIG, MESSAGES, loaded, started

from trajsmith.environments.programs import apply_changes
from trajsmith.records import EnvironmentFault, InputError, canonical_json


def test_spec():
    program = loaded()
    assert [tool.name for tool in program.spec.tools] == ["get_user", "send", "block", "crash"]
    assert program.spec.description == "A message center."
    assert program.spec.source == "envscaler:messages.py"
    tool = program.spec.tool("get_user")
    assert tool.description == "Look a user up."
    assert tool.input_schema["properties"]["user_id"] == {"type": "string", "description": "Whose."}
    assert program.notes == []


def test_the_state_is_the_attributes():
    assert loaded().states(0) == [
        CONFIG | {"messages": {}, "unread": {}, "blocked": [], "recent": [], "config": CONFIG}
    ]


def test_calls():
    play = started(loaded())
    assert play.call("get_user", {"user_id": "U1"}).content == {"success": True, "data": CONFIG["users"]["U1"]}
    refused = play.call("get_user", {"user_id": "U9"})
    assert (refused.content, refused.error) == ({"success": False, "error": "User not found"}, "refused")
    assert play.call("get_user", {}).error == "invalid_arguments"
    assert play.call("_secret", {}).error == "unknown_tool"
    assert play.call("__init__", {"config": {}}).error == "unknown_tool"
    assert play.call("get_user", {"user_id": "U1"}, "user").error == "unknown_tool"


def test_every_exception_is_a_crash():
    with pytest.raises(EnvironmentFault) as caught:
        started(loaded()).call("crash", {})
    assert (caught.value.kind, caught.value.tool) == ("crash", "crash")


def test_containers_stay_what_the_class_made_them():
    program = loaded()
    text = canonical_json(program.states(0)[0])
    play = program.start(text)
    for number in range(3):
        assert play.call("send", {"user_id": "U1", "text": f"t{number}"}).ok
    play.call("block", {"user_id": "U2"})
    changes = play.changes()
    state = apply_changes(text, changes)
    assert state["unread"] == {"U1": 3}
    assert state["recent"] == ["M2", "M3"]
    assert state["blocked"] == ["U2"]
    for again in (program.start(text, changes), program.start(orjson.dumps(state))):
        assert again.changes() == []
        assert again.call("send", {"user_id": "U2", "text": "x"}).content["error"] == "User is blocked"
        assert again.call("send", {"user_id": "U1", "text": "x"}).content["message"] == "sent M4"
        assert apply_changes(text, changes + again.changes())["recent"] == ["M3", "M4"]


def test_plays_share_nothing():
    source = MESSAGES.replace("def __init__", "log = []\n    def __init__").replace(
        'return {"success": True, "message": "blocked"}',
        'self.log.append(user_id); return {"success": True, "data": self.log}',
    )
    program = loaded(source)
    one, two = started(program), started(program)
    assert one.call("block", {"user_id": "U1"}).content["data"] == ["U1"]
    assert two.call("block", {"user_id": "U2"}).content["data"] == ["U2"]
    assert two.call("send", {"user_id": "U1", "text": "x"}).ok


def test_the_configuration_is_not_the_attributes():
    play = started(loaded(), CONFIG)
    play.call("send", {"user_id": "U1", "text": "x"})
    state = apply_changes(orjson.dumps(CONFIG), play.changes())
    assert state["messages"]["M1"]["to"] == "U1"
    assert state["config"] == CONFIG


def test_a_class_that_takes_nothing():
    source = MESSAGES.replace("(self, config: dict)", "(self)").replace("self.config = config", "")
    assert started(loaded(source)).call("get_user", {"user_id": "U2"}).ok


def test_without_states_the_class_starts_as_it_starts():
    program = loaded(states=())
    assert program.states(0)[0]["users"] == {}


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"get_user": 1}, "get_user is no attribute of a state"),
        ({"__class__": "x"}, "__class__ is no attribute of a state"),
        ({"blocked": [{}]}, "no MessageCenter can be made of it: TypeError: unhashable type: 'dict'"),
    ],
)
def test_states_of_which_no_object_can_be_made(state, reason):
    with pytest.raises(EnvironmentFault) as caught:
        started(loaded(), state)
    assert caught.value.kind == "state"
    assert reason in str(caught.value)


def test_a_constructor_that_refuses():
    program = loaded(MESSAGES.replace("self.config = config", 'self.config = config["must"]'), states=({}, {"must": 1}))
    assert len(program.states(0)) == 1
    assert program.notes == ["state 1 does not load: no MessageCenter can be made of it: KeyError: 'must'"]
    with pytest.raises(InputError, match=r"no initial state: state 1 does not load"):
        loaded(MESSAGES.replace("self.config = config", "raise ValueError('no')")).states(0)


def test_attributes_that_are_no_json_are_not_state():
    source = MESSAGES.replace("self.config = config", "self.lock = object(); self.groups = {'a': {1}}")
    program = loaded(source)
    assert program.notes == [
        "attribute lock is not part of the state: $: a object is no JSON",
        "attribute groups is not part of the state: $.a: a set does not come back from JSON as it was",
    ]
    assert "lock" not in program.states(0)[0]
    assert started(program).call("block", {"user_id": "U1"}).ok


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("self.messages[1] = 'x'", "attribute messages: $: the key 1 is no text"),
        ("self.users['U1']['seen'] = {1}", "attribute users: $.U1.seen: a set does not come back"),
        ("self.score = float('nan')", "attribute score: $: nan is no JSON"),
        ("self.users['me'] = self.users", "attribute users: $.me: a cycle"),
        ("self.raw = b'x'", "attribute raw: $: a bytes is no JSON"),
    ],
)
def test_a_state_that_stops_being_json_is_a_fault(statement, reason):
    play = started(loaded(MESSAGES.replace("self.blocked.add(user_id)", statement)))
    assert play.call("block", {"user_id": "U1"}).ok
    with pytest.raises(EnvironmentFault) as caught:
        play.changes()
    assert caught.value.kind == "state"
    assert reason in str(caught.value)


@pytest.mark.parametrize("value", ["float('inf')", "b'x'", "[object()]"])
def test_outputs_that_are_no_json(value):
    source = MESSAGES.replace('{"success": True, "message": "blocked"}', f'{{"success": True, "data": {value}}}')
    with pytest.raises(EnvironmentFault) as caught:
        started(loaded(source)).call("block", {"user_id": "U1"})
    assert caught.value.kind == "output_schema"


@pytest.mark.parametrize(
    ("source", "more", "reason"),
    [
        ("class X(:\n", {}, "messages.py:1: SyntaxError"),
        ("\nimport nowhere_to_be_found\n", {}, "messages.py:2: ModuleNotFoundError"),
        ("x = 1", {}, "messages.py:1: no class with public methods; classes there: none"),
        (MESSAGES, {"class_name": "Other"}, "messages.py:1: no class Other; classes there: User, MessageCenter"),
        (MESSAGES, {"tools": [{"name": "x"}]}, "messages.py:1: class MessageCenter has no method that can be a tool"),
    ],
)
def test_code_that_cannot_be_loaded(source, more, reason):
    with pytest.raises(InputError) as caught:
        loaded(source, **more)
    assert reason in str(caught.value)


def test_listed_tools_with_schemas_and_effects():
    schema = {"type": "object", "properties": {"user_id": {"type": "string"}}, "required": ["user_id"]}
    send = {"type": "object", "properties": {"user_id": {"type": "string"}, "text": {"type": "integer"}}}
    tools = [
        {"name": "get_user", "description": "Find.", "input_schema": schema},
        {"name": "send", "description": "Send.", "input_schema": send},
        {"name": "_secret", "description": "No.", "input_schema": schema},
    ]
    program = loaded(tools=tools, reads={"get_user": True, "send": False})
    assert [tool.name for tool in program.spec.tools] == ["get_user", "send"]
    assert [tool.annotations.read_only_hint for tool in program.spec.tools] == [True, False]
    assert program.spec.tool("get_user").description == "Find."
    assert program.spec.tool("send").required == ("user_id", "text")
    assert program.notes == [
        "tool _secret is no public method of MessageCenter: it is not offered",
        "tool send: parameter tags is in the code, but not in the metadata",
        "tool send: parameter text is required in the code, but optional in the metadata",
        "tool send: parameter text is string in the code, but integer in the metadata",
        "tool send: parameter user_id is required in the code, but optional in the metadata",
    ]


def test_a_method_that_no_tool_can_be():
    program = loaded(MESSAGES.replace("def block(self, user_id: str)", "def block(self, *user_ids)"))
    assert "block" not in {tool.name for tool in program.spec.tools}
    assert "tool block: parameter *user_ids cannot be given by name; name every parameter" in program.notes[0]
