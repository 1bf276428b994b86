"""Value flow is counted as the open sets define it, and moves scores and kinds."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from harbour import Harbour, HarbourSource
from typer.testing import CliRunner

from trajsmith.cli.app import app
from trajsmith.environments import NativeSession
from trajsmith.records import InputError, ToolSpec
from trajsmith.toolgraph import ToolGraph, build_graph
from trajsmith.toolgraph.evidence import (
    GraphEvidence,
    RecordedEvidence,
    apply_evidence,
    compute_schema_scores,
    mine_recordings,
    read_recordings,
)
from trajsmith.toolgraph.evidence.missing_lookups import add_lookups
from trajsmith.toolgraph.evidence.recorded_flows import ValueFlow
from trajsmith.toolgraph.evidence.recordings import RecordedCall, Recording
from trajsmith.toolgraph.evidence.value_leaves import contains_value, is_id_like, is_specific_match, walk_leaves

TEXT = {"type": "string"}


def tool(name: str, inputs: dict[str, Any], outputs: dict[str, Any] | None = None) -> ToolSpec:
    spec = {
        "server": "shop",
        "name": name,
        "inputSchema": {"type": "object", "properties": inputs, "required": list(inputs)},
        "outputSchema": {"type": "object", "properties": outputs} if outputs else None,
    }
    return ToolSpec.model_validate(spec)


LIST = tool("list_things", {"email": TEXT}, {"rows": {"type": "array", "items": {"properties": {"code": TEXT}}}})
SHOW = tool("show_thing", {"code": TEXT}, {"code": TEXT, "colour": TEXT})
MOVE = tool("move_thing", {"what": TEXT, "mode": {"type": "string", "enum": ["fast", "slow"]}})
TOOLS = [LIST, SHOW, MOVE]


def made(name: str, arguments: dict[str, Any], output: Any, ok: bool = True) -> RecordedCall:
    return RecordedCall(name, "", arguments, output, ok)


def flow(mined: RecordedEvidence, source: str, target: str, parameter: str) -> ValueFlow:
    found = [
        f for (s, t, _, p), f in mined.flows.items() if (s, t, p) == (f"shop.{source}", f"shop.{target}", parameter)
    ]
    return found[0] if found else ValueFlow()


LISTED = made("list_things", {"email": "a@b.org"}, {"rows": [{"code": "T-17"}, {"code": "T-18"}]})
SHOWN = made("show_thing", {"code": "T-17"}, {"code": "T-17", "colour": "red"})
MOVED = made("move_thing", {"what": "T-17", "mode": "fast"}, {})


def test_the_earliest_result_that_shows_the_value_gave_it() -> None:
    mined = mine_recordings([Recording("1", ("Move my first thing.", LISTED, SHOWN, MOVED))], TOOLS)
    given = flow(mined, "list_things", "move_thing", "what")
    assert (given.first, given.later, given.tasks, given.id_like) == (1, 0, {"1"}, True)
    assert flow(mined, "show_thing", "move_thing", "what").echo == 1
    assert ("shop.list_things", "shop.move_thing", "$.rows[*].code", "what") in mined.flows
    assert mined.origins["shop.move_thing", "what"].internal == 1


def test_what_the_user_said_needs_nobody_to_give_it() -> None:
    mined = mine_recordings([Recording("1", ("Move t-17, please.", LISTED, MOVED))], TOOLS)
    given = flow(mined, "list_things", "move_thing", "what")
    assert (given.first, given.known) == (0, 1)
    assert mined.origins["shop.move_thing", "what"].both == 1


def test_a_choice_is_no_value_that_flows() -> None:
    before = made("show_thing", {"code": "T-1"}, {"code": "T-1", "colour": "fast"})
    mined = mine_recordings([Recording("1", ("Go.", before, MOVED))], TOOLS)
    assert flow(mined, "show_thing", "move_thing", "mode") == ValueFlow()
    assert mined.origins["shop.move_thing", "mode"].choice == 1


def test_refused_calls_and_unknown_tools_say_nothing() -> None:
    refused = made("move_thing", {"what": "T-17", "mode": "fast"}, "Error: no", ok=False)
    mined = mine_recordings([Recording("1", ("Go.", LISTED, refused, made("fly", {}, {})))], TOOLS)
    assert not mined.flows
    assert mined.unknown == {"fly"}


def test_a_value_out_of_the_state_is_held_and_unseen() -> None:
    state = '{"things": {"T-17": {}}}'
    mined = mine_recordings([Recording("1", ("Go.", MOVED), state)], TOOLS)
    origins = mined.origins["shop.move_thing", "what"]
    assert (origins.unseen, origins.held) == (1, 1)


@pytest.mark.parametrize(
    ("text", "given", "taken", "expected"),
    [
        ("T-17", "a", "b", True),
        ("ok", "a", "b", False),
        ("all", "a", "b", False),
        ("12", "count", "amount", False),
        ("12", "count", "count", True),
        ("250", "count", "amount", True),
    ],
)
def test_specific(text: str, given: str, taken: str, expected: bool) -> None:
    assert is_specific_match(text, given, taken) is expected


@pytest.mark.parametrize(
    ("text", "expected"), [("T-17", True), ("gift_card_1", True), ("20481", True), ("red", False), ("12", False)]
)
def test_id_like(text: str, expected: bool) -> None:
    assert is_id_like(text) is expected


def test_short_values_are_said_as_whole_words_only() -> None:
    assert contains_value("order 12 of JFK", "12") and contains_value("order 12 of JFK", "jfk")
    assert not contains_value("order 123", "12")


def test_keys_of_a_map_become_a_star() -> None:
    schema = {"type": "object", "properties": {"users": {"type": "object", "additionalProperties": {}}}}
    leaves = list(walk_leaves({"users": {"u1": {"name": "Ann"}}}, schema, keys=True))
    assert [(leaf.path, leaf.value) for leaf in leaves] == [("$.users{}", "u1"), ("$.users.*.name", "Ann")]


MESSAGES = [
    {"role": "user", "content": "Move my first thing."},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "function": {"name": "list_things", "arguments": '{"email": "a@b.org"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": '{"rows": [{"code": "T-17"}]}'},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c2", "function": {"name": "move_thing", "arguments": {"what": "T-17", "mode": "slow"}}}],
    },
    {"role": "tool", "tool_call_id": "c2", "content": "moved"},
]
EXECUTED = {
    "task_id": "7",
    "user_turns": [["Move my first thing."], ["Thanks."]],
    "calls": [
        {"turn": 0, "server": "shop", "tool": "list_things", "arguments": {}, "output": LISTED.output, "error": None},
        {"turn": 0, "server": "shop", "tool": "move_thing", "arguments": MOVED.arguments, "output": {}, "error": None},
    ],
}
SIMULATED = {"tasks": [{"id": "7", "user_scenario": {"x": 1}}], "simulations": [{"task_id": "7", "messages": MESSAGES}]}


@pytest.mark.parametrize(
    "data",
    [
        orjson.dumps({"messages": MESSAGES}) + b"\n" + orjson.dumps({"messages": []}) + b"\n",
        orjson.dumps([MESSAGES]),
        orjson.dumps(EXECUTED),
        orjson.dumps(SIMULATED),
    ],
    ids=["lines of conversations", "a list", "executed calls", "simulations"],
)
def test_forms_of_recordings(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "calls.jsonl"
    file.write_bytes(data)
    mined = mine_recordings(read_recordings(file), TOOLS)
    assert flow(mined, "list_things", "move_thing", "what").first == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"messages": []}\n{"b":', ":2: not JSON"),
        (b"3\n", ":1: no conversation"),
        (b'{"a": 1}', "neither `messages` nor"),
    ],
    ids=["torn", "a number", "something else"],
)
def test_what_is_no_recording_is_one_line(tmp_path: Path, data: bytes, message: str) -> None:
    file = tmp_path / "calls.jsonl"
    file.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_recordings(file)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recorded calls .*No such file"):
        read_recordings(tmp_path / "none.jsonl")


def graph_of(recordings: list[Recording]) -> ToolGraph:
    return apply_evidence(
        build_graph(TOOLS), GraphEvidence(recorded=mine_recordings(recordings, TOOLS)), compute_schema_scores(TOOLS)
    )


def test_a_recorded_flow_makes_an_edge_and_an_internal_parameter() -> None:
    assert not [e for e in build_graph(TOOLS).edges if e.target == "shop.move_thing" and e.weight > 1]
    graph = graph_of([Recording(str(number), ("Go.", LISTED, MOVED)) for number in range(4)])
    edge = next(e for e in graph.edges if e.target == "shop.move_thing" and e.source == "shop.list_things")
    assert (edge.weight, "recorded" in edge.evidence) == (3, True)
    node = next(node for node in graph.parameters if node.parameter == "what")
    assert node.kind == "internal"
    assert node.evidence[-1] == "recorded: of 4 calls the user had said it in 0, only a result had shown it in 4"


def test_what_the_user_always_says_is_external() -> None:
    graph = graph_of([Recording(str(number), ("Show T-17.", SHOWN)) for number in range(4)])
    assert next(node.kind for node in graph.parameters if node.tool == "shop.show_thing") == "external"


def test_evidence_survives_the_file(tmp_path: Path) -> None:
    graph = graph_of([Recording("1", ("Go.", LISTED, MOVED))])
    assert [(row.by, row.worked) for row in graph.evidence] == [("recorded", 1)]
    graph.save(tmp_path / "graph.json")
    assert ToolGraph.load(tmp_path / "graph.json") == graph
    assert graph.parts is None


async def test_a_look_up_that_nobody_made_is_found_by_playing_again() -> None:
    state = (await HarbourSource().states(0))[0]
    boat = RecordedCall("get_boat", "harbour", {"boat_id": "B12"}, {"boat_id": "B12", "name": "Lady 12"}, True)
    session = NativeSession(Harbour, Harbour.describe())
    found = await add_lookups(Recording("1", ("Show me a boat.", boat)), state, session)
    probed = [step for step in found.steps if isinstance(step, RecordedCall) and step.probed]
    assert {step.tool for step in probed} == {"list_boats", "read_plates"}
    mined = mine_recordings([found], Harbour.describe().tools)
    givers = {source for (source, _, _, _), one in mined.flows.items() if one.first}
    assert givers == {"harbour.list_boats", "harbour.read_plates"}
    assert mined.called == {"harbour.get_boat": 1}


def test_the_command_line_learns_from_recordings(tmp_path: Path) -> None:
    tools, calls, target = tmp_path / "tools.jsonl", tmp_path / "calls.jsonl", tmp_path / "graph.json"
    tools.write_bytes(b"\n".join(orjson.dumps(one.model_dump(mode="json", by_alias=True)) for one in TOOLS))
    calls.write_bytes(b"\n".join(orjson.dumps({**EXECUTED, "task_id": str(task)}) for task in range(4)))
    build = ["graph", "build", "--tools", str(tools), "--recorded", str(calls), "--out", str(target)]
    result = CliRunner().invoke(app, build)
    assert result.exit_code == 0, result.output
    edge = next(edge for edge in ToolGraph.load(target).edges if edge.target == "shop.move_thing" and edge.weight == 3)
    assert edge.source == "shop.list_things"
    assert "recorded" in edge.evidence
