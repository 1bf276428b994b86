"""A directory of data and functions on it: the functions are tools, the files are the state."""

import orjson
import pytest
from agentworld_files import FILES, HOTELS, STATE, loaded, started

from trajsmith.environments.programs import apply_changes
from trajsmith.records import EnvironmentFault, InputError, canonical_json


def test_spec_and_state():
    program = loaded()
    names = [tool.name for tool in program.spec.tools]
    assert names == ["get_card", "list_hotels", "book", "rates", "add_rate", "searches", "find", "broken"]
    assert program.states(0) == [STATE]
    assert program.spec.source == "agentworld:hotels"
    listed = program.spec.tool("list_hotels")
    assert listed.description == "List hotels."
    assert listed.input_schema["properties"]["page"] == {"type": "integer", "default": 1}
    assert listed.input_schema["properties"]["city"] == {"default": None, "description": "Only in this city."}
    assert program.notes == []


@pytest.mark.parametrize(
    ("tool", "arguments", "content", "error"),
    [
        ("get_card", {"card_id": "a"}, {"card_id": "a", "lines": ["# A", "Text"]}, None),
        ("get_card", {"card_id": "z"}, {"error": "no card z"}, "refused"),
        ("list_hotels", {"city": "Rome"}, {"total": 1, "hotels": [{"hotel_id": "H2", "city": "Rome"}]}, None),
        ("book", {"hotel_id": "H2", "user_id": "u"}, {"booking_id": "B1", "hotel_id": "H2", "user_id": "u"}, None),
        ("book", {"hotel_id": "H9", "user_id": "u"}, {"error": "no hotel H9"}, "refused"),
        (
            "book",
            {"hotel_id": 9, "user_id": "u"},
            {"error": "hotel_id: 9 is not of type 'string'"},
            "invalid_arguments",
        ),
        ("rates", {}, {"result": [{"hotel_id": "H1", "price": "80"}]}, None),
        ("add_rate", {"hotel_id": "H2", "price": 99}, {"result": None}, None),
        ("find", {"hotel_id": "H9"}, {"result": None}, None),
        ("_helper", {}, {"error": "unknown tool: _helper"}, "unknown_tool"),
    ],
)
def test_calls(tool, arguments, content, error):
    result = started(loaded()).call(tool, arguments)
    assert (result.content, result.error) == (content, error)


def test_an_error_object_is_a_refusal():
    play = started(loaded(HOTELS.replace('"hotels.json")\n    try', '"gone.json")\n    try')))
    result = play.call("list_hotels", {})
    assert result.error == "refused"
    assert result.content["error"].startswith("Failed to load hotels: [Errno 2] No such file or directory")


def test_what_operations_raise_is_a_crash():
    with pytest.raises(EnvironmentFault) as caught:
        started(loaded()).call("broken", {})
    assert (caught.value.kind, caught.value.message) == ("crash", "KeyError: 'nothing'")


def test_plays_have_their_own_files_and_variables():
    program = loaded()
    one, two = started(program), started(program)
    one.call("book", {"hotel_id": "H1", "user_id": "u"})
    one.call("list_hotels", {"city": "Rome"})
    assert two.changes() == []
    assert two.call("searches", {}).content == {}
    assert two.call("book", {"hotel_id": "H1", "user_id": "v"}).content["booking_id"] == "B1"
    assert one.call("book", {"hotel_id": "H1", "user_id": "v"}).content["booking_id"] == "B2"
    assert one.call("searches", {}).content == {"Rome": 1}


def test_changes_are_told_by_file_and_play_goes_on_from_them():
    program = loaded()
    text = canonical_json(STATE)
    play = program.start(text)
    play.call("book", {"hotel_id": "H1", "user_id": "u"})
    play.call("add_rate", {"hotel_id": "H2", "price": 9.5})
    changes = play.changes()
    assert changes == [
        ("bookings.json", None, b'[{"booking_id":"B1","hotel_id":"H1","user_id":"u"}]'),
        ("rates.csv", None, b'[{"hotel_id":"H1","price":"80"},{"hotel_id":"H2","price":"9.5"}]'),
    ]
    assert play.changes() == []
    for again in (program.start(text, changes), program.start(canonical_json(apply_changes(text, changes)))):
        assert again.changes() == []
        assert len(again.call("rates", {}).content["result"]) == 2
        assert again.call("book", {"hotel_id": "H1", "user_id": "u"}).content["booking_id"] == "B2"


def test_data_that_is_read_at_import_is_the_plays_own():
    program = loaded()
    play = started(program, STATE | {"hotels.json": [{"hotel_id": "H7", "city": "Oslo"}]})
    assert play.call("find", {"hotel_id": "H7"}).content == {"hotel_id": "H7", "city": "Oslo"}
    assert started(program).call("find", {"hotel_id": "H7"}).content == {"result": None}


def test_variables_of_files_that_read_nothing_at_import_are_the_plays_own_too():
    source = """
SEEN = []
last = None
class Desk:
    names = {}
def tool(name: str):
    global last
    SEEN.append(name)
    Desk.names[name], last = 1, name
    return {"seen": SEEN, "names": Desk.names, "last": last}
"""
    program = loaded(source, {})
    one, two = started(program), started(program)
    one.call("tool", {"name": "a"})
    assert two.call("tool", {"name": "b"}).content == {"seen": ["b"], "names": {"b": 1}, "last": "b"}
    assert one.call("tool", {"name": "c"}).content["seen"] == ["a", "c"]


def test_writing_the_same_is_no_change():
    source = (
        "import json\ndef tool():\n    d = json.load(open('a.json'))\n    json.dump(d, open('a.json', 'w'), indent=4)\n"
    )
    play = started(loaded(source, {"a.json": '{"x": [1, 2]}'}))
    assert play.call("tool", {}).content == {"result": None}
    assert play.changes() == []


def test_several_directories_are_several_states():
    program = loaded(states=[FILES, FILES | {"bookings.json": '[{"booking_id": "B1"}]'}])
    assert [len(state["bookings.json"]) for state in program.states(0)] == [0, 1]


def test_fixed_files_are_read_but_are_no_state():
    source = "def tool():\n    return open('big.txt').read()\ndef write():\n    open('big.txt', 'w')\n"
    play = started(loaded(source, {}, fixed={"big.txt": "much"}))
    assert play.call("tool", {}).content == "much"
    with pytest.raises(EnvironmentFault, match="PermissionError"):
        play.call("write", {})
    assert play.changes() == []


def test_tool_files_import_one_another():
    sources = [
        {
            "name": "a_tools",
            "file": "a_tools.py",
            "source": "from z_helpers import load\ndef tool():\n    return load()\n",
        },
        {
            "name": "z_helpers",
            "file": "z_helpers.py",
            "source": "N = 3\n__all__ = []\ndef load():\n    return {'n': N}\n",
        },
    ]
    program = loaded(sources=sources, states=[{}])
    assert [tool.name for tool in program.spec.tools] == ["tool"]
    assert started(program).call("tool", {}).content == {"n": 3}


def test_a_list_of_tools_says_what_is_offered():
    schema = {"type": "object", "properties": {"card_id": {"type": "string"}}, "required": ["card_id"]}
    output = {"type": "object", "properties": {"card_id": {"type": "integer"}}}
    entry = {"name": "get_card", "description": "Read a card.", "input_schema": schema, "output_schema": output}
    program = loaded(tools=[entry, entry | {"name": "gone"}])
    assert [tool.name for tool in program.spec.tools] == ["get_card"]
    assert program.spec.tool("get_card").input_schema["properties"]["card_id"] == {"type": "string"}
    assert program.notes == ["tool gone is listed, but it is no public function: it is not offered"]
    with pytest.raises(EnvironmentFault) as caught:
        started(program).call("get_card", {"card_id": "a"})
    assert caught.value.kind == "output_schema"


@pytest.mark.parametrize("value", ["float('nan')", "{'a': b'x'}", "{(1,): 2}"])
def test_outputs_that_are_no_json(value):
    with pytest.raises(EnvironmentFault) as caught:
        started(loaded(f"def tool():\n    return {value}", {})).call("tool", {})
    assert caught.value.kind == "output_schema"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def x(:\n", "tools.py:1: SyntaxError"),
        ("x = 1\nraise KeyError('a')\n", "tools.py:2: KeyError: 'a'"),
        ("\nopen('/etc/hostname')\n", "tools.py:2: FileNotFoundError: [Errno 2] No such file or directory"),
        ("import sys\nsys.exit()\n", "tools.py:2: SystemExit"),
        ("from json import *\ndef tool(): pass\n", "tools.py:1: import * cannot be loaded: name what is imported"),
        ("def _tool(): pass\n", "hotels: no tools: public functions of tools.py are tools"),
        ("def tool():\n    return\nreturn 3\n", "tools.py:3: SyntaxError"),
    ],
    ids=["syntax", "raises", "outside", "exits", "star", "none", "return"],
)
def test_tool_files_that_cannot_be_loaded(source, reason):
    with pytest.raises(InputError) as caught:
        loaded(source, {})
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"../x": "a"}, "'../x' is no name of a file"),
        ({"/x": "a"}, "'/x' is no name of a file"),
        ({"": "a"}, "'' is no name of a file"),
        ({"a.md": 3}, "the content of a.md must be text"),
        ({"a.csv": [1]}, "the content of a.csv must be a list of objects"),
        ({"a.csv": [{"x": "1"}, {"y": "2"}]}, "dict contains fields not in fieldnames: 'y'"),
    ],
)
def test_states_that_are_no_directory(state, reason):
    with pytest.raises(EnvironmentFault) as caught:
        started(loaded("def tool(): pass", {}), state)
    assert caught.value.kind == "state"
    assert reason in str(caught.value)


def test_raising_again_is_no_refusal():
    source = "def tool():\n    try:\n        {}['x']\n    except KeyError as e:\n        raise e\n"
    with pytest.raises(EnvironmentFault, match="KeyError"):
        started(loaded(source, {})).call("tool", {})
    source = "def tool():\n    raise NotImplementedError('later')\n"
    with pytest.raises(EnvironmentFault, match="NotImplementedError"):
        started(loaded(source, {})).call("tool", {})


def test_a_state_survives_any_bytes():
    state = orjson.loads(orjson.dumps(STATE | {"odd.json": {"$text": "{broken"}, "empty/": ""}))
    play = started(loaded(), state)
    assert play.changes() == []
