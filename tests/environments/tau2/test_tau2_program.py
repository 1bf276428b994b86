"""A domain in the form of τ²-bench: tools of both sides, one state per play, gold actions."""

import sys
from importlib.machinery import PathFinder

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tau2_files import lending, play_of, session_of, settings

from trajsmith.environments.adapters.tau2.arithmetic import evaluate
from trajsmith.environments.adapters.tau2.program import load
from trajsmith.environments.adapters.tau2.settings import PRELOAD, Tau2Settings, build_payload, read_tasks
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.records import EnvironmentFault, RunError, canonical_json

LEND = {"member_id": "M1", "book_ids": ["B1"]}


@pytest.fixture(scope="module")
def program():
    return lending()


def test_the_spec_has_the_tools_of_both_sides(program):
    spec = program.spec
    assert (spec.name, spec.domain, spec.source) == ("tau2_lending", "tau2/lending", "tau2:lending")
    assert spec.policy == "# Lending desk\n\nLend no book twice.\n"
    writes = {tool.name for tool in spec.tools if tool.declares_write}
    assert {(tool.name, tool.actor) for tool in spec.tools} == {
        *((name, "assistant") for name in ("add_book", "broken", "calculate", "find_member", "journal", "lend")),
        ("secretive", "assistant"), ("hide", "user"), ("look", "user"),
    }  # fmt: skip
    assert writes == {"add_book", "hide", "lend"}
    lend = spec.tool("lend")
    assert lend.description == "Lend books to a member."
    assert lend.parameters["book_ids"] == {
        "type": "array", "items": {"type": "string"}, "description": "The books.",
    }  # fmt: skip
    assert lend.input_schema["additionalProperties"] is False
    assert spec.tool("find_member").output_schema["properties"]["name"] == {"type": "string"}


async def test_the_state_is_both_databases_and_what_the_toolkits_keep(program):
    session = await session_of(program)
    before = await session.snapshot()
    assert before.keys() == {"books", "members", "desk", "user_shelf", "toolkits"}
    assert before["toolkits"] == {
        "assistant": {"numbers": {"last": {}}, "stamp": {"member_id": "nobody", "books": []}},
    }  # fmt: skip
    result = await session.call("lend", LEND)
    assert result.content == "slip1: B1"
    after = await session.snapshot()
    assert after["books"]["B1"]["holder"] == "M1"
    assert after["toolkits"]["assistant"]["numbers"] == {"last": {"slip": 1}}
    assert before["books"]["B1"]["holder"] is None


async def test_results_are_objects_text_or_wrapped(program):
    session = await session_of(program, 1)
    found = await session.call("find_member", {"name": "Ida Berg"})
    assert found.content == {"member_id": "M1", "name": "Ida Berg", "loans": []}
    assert (await session.call("look", {}, "user")).content == {"result": ["B3"]}
    assert (await session.call("calculate", {"expression": "(1 + 2) * 4 / 8"})).content == "1.5"


REFUSED = [
    ("find_member", {"name": "Nobody"}, "assistant", "refused", "Member Nobody not found"),
    ("lend", {"member_id": "M9", "book_ids": []}, "assistant", "refused", "'M9'"),
    ("calculate", {"expression": "1 / 0"}, "assistant", "refused", "division by zero"),
    ("lend", {"member_id": "M1"}, "assistant", "invalid_arguments", "'book_ids' is a required property"),
    ("find_member", {"name": 3}, "assistant", "invalid_arguments", "name: 3 is not of type 'string'"),
    ("find_member", {"name": "x", "more": 1}, "assistant", "invalid_arguments", "Additional properties"),
    ("look", {}, "assistant", "unknown_tool", "unknown tool: look"),
    ("find_member", {"name": "x"}, "user", "unknown_tool", "unknown tool: find_member"),
    ("smudge", {"text": "x"}, "assistant", "unknown_tool", "unknown tool: smudge"),
    ("__init__", {"db": None}, "assistant", "unknown_tool", "unknown tool: __init__"),
]


@pytest.mark.parametrize(("tool", "arguments", "actor", "kind", "text"), REFUSED, ids=[row[4] for row in REFUSED])
def test_what_is_refused_and_why(program, tool, arguments, actor, kind, text):
    result = play_of(program).call(tool, arguments, actor)
    assert result.error == kind
    assert result.content["error"].startswith(text)


async def test_a_refused_call_leaves_everything_as_it_was(program):
    session = await session_of(program)
    await session.call("lend", LEND)
    before = await session.snapshot()
    refused = await session.call("lend", {"member_id": "M1", "book_ids": ["B2", "B3"]})
    assert refused.content == {"error": "Book B3 is lent"}
    assert await session.snapshot() == before
    assert (await session.call("lend", {"member_id": "M1", "book_ids": ["B2"]})).content == "slip2: B1, B2"


async def test_the_users_world_follows_that_of_the_agent(program):
    session = await session_of(program, 1)
    assert (await session.call("look", {}, "user")).content == {"result": ["B3"]}
    await session.call("lend", {"member_id": "M2", "book_ids": ["B2"]})
    assert (await session.call("look", {}, "user")).content == {"result": ["B3", "B2"]}


def test_plays_share_nothing(program):
    """Not the databases, not a list of a module, not a value on a class, not a counter."""

    def run(play, others):
        found = []
        for book in ("B1", "B2"):
            found.append(play.call("lend", {"member_id": "M1", "book_ids": [book]}))
            for other in others:
                other.call("lend", {"member_id": "M2", "book_ids": [book]})
            found.append(play.call("journal", {}))
        return found

    alone = run(play_of(program), [])
    among = run(play_of(program), [play_of(program), play_of(program, 1)])
    assert among == alone
    assert alone[-1].content == {"result": ["B1", "B2", "nobody"]}
    assert play_of(program, 1).call("journal", {}).content == {"result": ["smudged"]}
    assert play_of(program).call("journal", {}).content == {"result": ["nobody"]}


async def test_a_saved_play_goes_on_as_the_play_itself(program):
    one, two = await session_of(program), await session_of(program, 1)
    await one.call("lend", LEND)
    await two.reset(await one.snapshot())
    third = await session_of(program)
    await third.rollback(await one.checkpoint())
    later = {"member_id": "M2", "book_ids": ["B2"]}
    expected = await one.call("lend", later)
    assert expected.content == "slip2: B3, B2"
    for session in (two, third):
        assert await session.call("lend", later) == expected
        assert await session.state_hash() == await one.state_hash()


async def test_arguments_do_not_become_part_of_the_state_by_reference(program):
    session = await session_of(program)
    book = {"book_id": "B9", "title": "Romola", "holder": None}
    await session.call("add_book", {"book": book})
    book["title"] = "changed"
    assert (await session.snapshot())["books"]["B9"]["title"] == "Romola"


def test_an_output_that_breaks_its_hint_is_a_fault(program):
    with pytest.raises(EnvironmentFault, match=r"tau2_lending.broken: output_schema: "):
        play_of(program).call("broken", {})


async def test_a_tool_that_writes_though_it_says_it_reads_shows_in_the_state(program):
    session = await session_of(program)
    before = await session.state_hash()
    await session.call("secretive", {})
    assert await session.state_hash() != before


def test_no_state_is_a_fault_of_kind_state(program):
    for text, message in [(b'{"books": 3}', "books"), (b'{"nothing": 1}', "nothing: no such part")]:
        with pytest.raises(EnvironmentFault, match=rf"tau2_lending: state: .*{message}"):
            program.start(text)


def test_initial_states_are_those_of_the_tasks(program):
    own, second = program.states(3)
    assert own["members"]["M2"]["name"] == "Tom Okafor"
    assert second["members"]["M2"] == {"member_id": "M2", "name": "Tomi Okafor", "loans": ["B3"]}
    assert second["user_shelf"] == {"member_id": "M2", "books": ["B3"]}
    assert second["toolkits"]["assistant"]["stamp"]["member_id"] == "smudged"


def test_gold_actions_run_from_the_states_of_their_tasks(program):
    tasks = program.tasks()
    assert [(task["id"], len(task["calls"])) for task in tasks] == [("1", 2), ("2", 2), ("3", 0)]
    for task in tasks:
        play = program.start(canonical_json(task["state"]))
        assert [play.call(call["tool"], call["arguments"], call["actor"]).error for call in task["calls"]] == [
            None for _ in task["calls"]
        ]
    assert tasks[1]["calls"][0] == {"tool": "hide", "arguments": {"book_id": "B3"}, "actor": "user"}


START = [
    {"tool": "move_in", "arguments": {"member_id": "M2"}, "actor": "user"},
    {"tool": "add_book", "arguments": {"book": {"book_id": "B9", "title": "Romola"}}, "actor": "assistant"},
    {"tool": "smudge", "arguments": {"text": "smudged"}, "actor": "assistant"},
]


async def prepared_in(source) -> str:
    session = await source.open()
    await session.reset((await source.states(0))[0])
    assert await session.prepare(START) is None
    return await session.state_hash()


async def test_initial_actions_are_methods_of_a_toolkit_whether_tools_or_not(program):
    session = await session_of(program)
    assert await session.prepare(START) is None
    state = await session.snapshot()
    assert state["user_shelf"] == {"member_id": "M2", "books": ["B3"]}, "the user's world follows at the end"
    assert "B9" in state["books"]
    assert (await session.call("journal", {})).content == {"result": ["smudged"]}
    refused = await session.call("move_in", {"member_id": "M1"}, "user")
    assert refused.error == "unknown_tool", "a user or an agent still has tools only"


@pytest.mark.parametrize(
    ("tool", "actor", "words"),
    [
        ("fly", "user", "the toolkit of the user has no method fly"),
        ("move_in", "assistant", "the toolkit of the assistant has no method move_in"),
        ("__init__", "assistant", "the toolkit of the assistant has no method __init__"),
        ("db", "assistant", "the toolkit of the assistant has no method db"),
    ],
)
async def test_an_initial_action_that_is_no_public_method_is_refused_and_nothing_is_done(program, tool, actor, words):
    session = await session_of(program)
    before = await session.state_hash()
    assert await session.prepare([*START, {"tool": tool, "arguments": {}, "actor": actor}]) == words
    assert await session.state_hash() == before


def test_tasks_can_be_read_without_running_anything():
    read = read_tasks(settings())
    assert [(task["id"], task["state"]) for task in read] == [("1", 0), ("2", 1), ("3", 0)]
    assert read[0]["calls"] == lending().tasks()[0]["calls"]
    assert "tau2.agent" not in sys.modules


SUMS = st.recursive(
    st.one_of(st.integers(0, 99).map(str), st.floats(0.01, 99).map(lambda value: f"{value:.2f}")),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", " * ", "/", "//"]), inner).map("".join),
        inner.map("({})".format),
        inner.map("-{}".format),
    ),
    max_leaves=8,
)


@given(SUMS)
def test_sums_are_those_of_python(text):
    try:
        expected = eval(text, {"__builtins__": None}, {})
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            evaluate(text)
    else:
        assert evaluate(text) == expected


@pytest.mark.parametrize("text", ["", "1 +", "(1", "1)", "1 2", "a", "1 +* 2", "2 ** 99999", "()"])
def test_what_is_no_sum_is_refused(text):
    with pytest.raises((SyntaxError, OverflowError)):
        evaluate(text)


async def test_it_runs_in_the_sandbox():
    source = SandboxSource("lending", "tau2", build_payload(settings()), SandboxSettings(imports=PRELOAD))
    try:
        spec = await source.spec()
    except RunError as error:
        pytest.skip(str(error))
    try:
        assert spec == lending().spec
        first, second = await source.states(0)
        session, other = await source.open(), await source.open()
        await session.reset(second)
        await other.reset(first)
        assert (await session.call("calculate", {"expression": "2 * (3 + 4)"})).content == "14.0"
        assert (await session.call("journal", {})).content == {"result": ["smudged"]}
        assert (await session.call("lend", {"member_id": "M2", "book_ids": ["B2"]})).content == "slip1: B3, B2"
        assert (await session.call("look", {}, "user")).content == {"result": ["B3", "B2"]}
        assert (await other.call("journal", {})).content == {"result": ["nobody"]}
        inside = await session_of(lending(), 1)
        await inside.call("lend", {"member_id": "M2", "book_ids": ["B2"]})
        await inside.call("look", {}, "user")
        assert await session.state_hash() == await inside.state_hash()
        await inside.reset(first)
        assert await inside.prepare(START) is None
        assert await prepared_in(source) == await inside.state_hash()
    finally:
        source.close()


INSTALLED = PathFinder.find_spec("tau2")  # a folder of that name on the path is a spec without origin


@pytest.mark.skipif(
    INSTALLED is None or INSTALLED.origin is None, reason="the package tau2 is not installed from its source"
)
def test_a_published_domain_loads_and_its_gold_actions_run():
    program = load(build_payload(Tau2Settings(domain="mock")))
    for task in program.tasks():
        play = program.start(canonical_json(task["state"]))
        assert all(play.call(call["tool"], call["arguments"], call["actor"]).ok for call in task["calls"])


async def test_plays_in_the_sandbox_leave_nothing_for_each_other():
    """Copying an object makes Python note the slots of its class there; that is no leak."""
    shared = SandboxSettings(imports=PRELOAD, plays="shared")
    source = SandboxSource("lending", "tau2", build_payload(settings()), shared)
    try:
        state = (await source.states(0))[0]
    except RunError as error:
        pytest.skip(str(error))
    for _ in range(2):
        session = await source.open()
        await session.reset(state)
        assert (await session.call("lend", LEND)).ok
        await session.close()
    assert await source.look() == ([], [])
    source.close()
