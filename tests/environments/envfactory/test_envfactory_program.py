"""A tool file is loaded as it is: its tools, its refusals, its state, and plays that share nothing."""

import sys

import orjson
import pytest
from envfactory_files import LIBRARY, STATE, loaded, scenario, started

from trajsmith.environments.adapters.envfactory.program import EnvFactoryProgram
from trajsmith.environments.programs import apply_changes
from trajsmith.records import EnvironmentFault, InputError, canonical_json


@pytest.fixture
def library() -> EnvFactoryProgram:
    return loaded(LIBRARY, scenarios=[scenario(STATE)])


def test_spec(library):
    assert [tool.name for tool in library.spec.tools] == ["get_book", "lend", "last_reader", "add_book"]
    assert library.spec.description == "Desk of a small library."
    assert library.spec.source == "envfactory:Library.py"
    tool = library.spec.tool("get_book")
    assert tool.description == "Look a book up."
    assert tool.input_schema["properties"]["number"] == {"type": "integer", "description": "Number on its label."}
    assert library.spec.state_schema["required"] == ["current_time"]
    assert library.notes == []


def test_version_is_that_of_the_source(library):
    assert loaded(LIBRARY).spec.version == library.spec.version
    assert loaded(LIBRARY.replace("Look a book up", "Look up a book")).spec.version != library.spec.version


@pytest.mark.parametrize(
    ("tool", "arguments", "content", "error"),
    [
        ("get_book", {"number": 1}, {"title": "Emma", "copies": 2, "note": None}, None),
        ("get_book", {"number": 7}, {"error": "Book 7 not found"}, "refused"),
        ("get_book", {"number": "one"}, {"error": "number: 'one' is not of type 'integer'"}, "invalid_arguments"),
        ("get_book", {}, {"error": "'number' is a required property"}, "invalid_arguments"),
        ("lend", {"number": 1}, {"number": 1, "left": 1}, None),
        ("lend", {"number": 1, "reader": None}, {"number": 1, "left": 1}, None),
        ("add_book", {"title": "Ivanhoe", "copies": 1}, "Successfully added book", None),
        ("add_book", {"title": "Ivanhoe", "copies": -1}, None, "refused"),
        ("load_scenario", {"scenario": {}}, {"error": "unknown tool: load_scenario"}, "unknown_tool"),
        ("__init__", {}, {"error": "unknown tool: __init__"}, "unknown_tool"),
    ],
)
def test_calls(library, tool, arguments, content, error):
    result = started(library).call(tool, arguments)
    assert result.error == error
    if content is not None:
        assert result.content == content
    else:
        assert result.content == {"error": "copies: Input should be greater than or equal to 0"}


def test_other_exceptions_are_crashes(library):
    with pytest.raises(EnvironmentFault) as caught:
        started(library).call("lend", {"number": 7})
    assert (caught.value.kind, caught.value.tool) == ("crash", "lend")
    assert "KeyError: 7" in str(caught.value)


def test_tools_belong_to_the_assistant(library):
    assert started(library).call("get_book", {"number": 1}, "user").error == "unknown_tool"


def test_plays_share_nothing(library):
    one, two = started(library), started(library)
    one.call("lend", {"number": 1, "reader": "Ann"})
    assert two.call("last_reader", {}).content == {"reader": None}
    assert two.call("get_book", {"number": 1}).content["copies"] == 2
    assert one.call("last_reader", {}).content == {"reader": "Ann"}
    assert one.call("get_book", {"number": 1}).content["copies"] == 1


def test_changes_tell_what_became_of_the_state(library):
    play = started(library)
    play.changes()
    play.call("lend", {"number": 1})
    assert play.changes() == [("books", None, b'{"1":{"title":"Emma","copies":1,"note":null}}')]
    assert play.changes() == []


def test_a_play_goes_on_from_changes(library):
    text = canonical_json(STATE)
    play = library.start(text)
    play.call("lend", {"number": 1})
    play.call("add_book", {"title": "Ivanhoe", "copies": 3})
    changes = play.changes()
    assert library.start(text, changes).call("get_book", {"number": 2}).content["title"] == "Ivanhoe"
    assert library.start(text, changes).changes() == []
    again = library.start(canonical_json(apply_changes(text, changes)))
    assert apply_changes(text, changes) == apply_changes(canonical_json(apply_changes(text, changes)), again.changes())


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"books": []}, "load_scenario refuses it: books: Input should be a valid dictionary (and 1 more)"),
        (STATE | {"current_time": "noon"}, "load_scenario refuses it: current_time: String should match pattern"),
    ],
)
def test_states_that_the_file_refuses(library, state, reason):
    with pytest.raises(EnvironmentFault) as caught:
        library.start(orjson.dumps(state))
    assert caught.value.kind == "state"
    assert reason in str(caught.value)


def test_the_real_server_library_is_left_alone():
    import mcp.server

    before = dict(sys.modules)
    loaded(LIBRARY)
    assert sys.modules["mcp.server"] is before["mcp.server"] is mcp.server
    assert {name for name in sys.modules.keys() - before.keys() if name.startswith(("mcp", "fastmcp"))} == set()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def broken(:\n", "Library.py:1: SyntaxError:"),
        (
            "\n\nimport no_such_module_here\n",
            "Library.py:3: ModuleNotFoundError: No module named 'no_such_module_here'",
        ),
        ("x = 1\nraise RuntimeError('no key')\n", "Library.py:2: RuntimeError: no key"),
        ("import sys\nsys.exit(3)\n", "Library.py:2: SystemExit: 3"),
        ("x = 1\n", "Library.py:1: no tools: functions under @mcp.tool()"),
        (LIBRARY.replace("save_scenario", "store"), "Library.py:1: it has load_scenario, but no save_scenario"),
        (
            LIBRARY.replace("number: int", "*number: int"),
            "tool get_book: parameter *number: int cannot be given by name",
        ),
        (LIBRARY + "\n\nmcp.add_tool(5)\n", "TypeError: a tool is a function, this one is of type int"),
        (LIBRARY + "\n\nmcp.tool('sum')(sum)\n", "a tool is a function, this one is of type builtin"),
        (LIBRARY + "\n\nmcp.tool(name=5)(print_it := lambda: 1)\n", "name and description of a tool are texts"),
    ],
    ids=["syntax", "missing module", "raises", "exits", "no tools", "no save", "starred", "number", "builtin", "name"],
)
def test_files_that_cannot_be_loaded(source, reason):
    with pytest.raises(InputError) as caught:
        loaded(source)
    assert reason in str(caught.value)


def test_hidden_tools():
    program = loaded(LIBRARY, scenarios=[scenario(STATE)], hide=["lend"])
    assert "lend" not in {tool.name for tool in program.spec.tools}
    with pytest.raises(InputError, match="`hide` names burn, which are no tools"):
        loaded(LIBRARY, hide=["burn"])
