"""Programs that a model writes: repaired from what execution showed, proved, played; each bad input has its reason."""

import ast
import asyncio
import time
from typing import Any

import orjson
import pytest

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.models import CallableModel, ChatReply, ChatRequest
from trajsmith.models.prompts import load_builtin_prompts
from trajsmith.phrasing import Phrasebook
from trajsmith.pipeline.config import resolve_config
from trajsmith.pipeline.engine import summarize_stage
from trajsmith.pipeline.run_directory import TASKS, TRAJECTORIES, VERDICTS, RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.stages import RoleFactory
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.querygen.programs import ProgramSettings, ProgramWriter, ground_written_program
from trajsmith.querygen.programs.source_text import DEEPEST, list_literals
from trajsmith.querygen.programs.value_sources import UnknownValue, find_in_results, find_sources
from trajsmith.querygen.programs.written import load_written
from trajsmith.querygen.programs.written_execution import change_result
from trajsmith.querygen.programs.written_mutants import list_mutants, list_operations, mutate_source
from trajsmith.records import (
    Chain,
    Composite,
    Constant,
    FromDefault,
    FromOutput,
    FromUser,
    GoldCall,
    GroundedChain,
    JsonObject,
    Message,
    RecordDropped,
    Selector,
    Task,
    ToolSpec,
    Trajectory,
    Verdict,
    content_hash,
)
from trajsmith.records.journal import read_records

CLS = ENVIRONMENTS.get("smart_home")
SPEC = CLS.describe()
STATE: JsonObject = CLS.seed_state("small", 3).model_dump(mode="json")
LIMITS = SandboxSettings(call_seconds=0.5, wall_seconds=5.0, memory_mb=512)
EVERY = """
def solve(call):
    switched = []
    for room in call("list_rooms")["result"]:
        for device in call("list_devices", room_id=room["room_id"])["result"]:
            if device["kind"] == "light" and device["power"] == "on" and device["online"]:
                {step}
    return {answer}
"""
NAMES = EVERY.format(step='switched.append(device["device_name"])', answer="switched")
COUNT = EVERY.format(step='switched.append(device["device_name"])', answer="len(switched)")
SWITCH = EVERY.format(
    step='switched.append(call("switch_device", device_id=device["device_id"], power="off"))', answer="len(switched)"
)
WARM = """
def solve(call):
    rooms = call("list_rooms", floor="ground_floor")["result"]
    coldest = min(call("get_room_climate", room_id=room["room_id"])["temperature"] for room in rooms)
    room = max(rooms, key=lambda each: each["temperature"])
    call("set_temperature", room_id=room["room_id"], target_temperature=coldest - 1.5)
    return room["room_name"]
"""


def draft(python: str, question: str = "How many lights are still on in my home?", **more: Any) -> JsonObject:
    return {
        "question": question,
        "python": python,
        "user_values": [],
        "answer": "It is {answer}.",
        "ordered": False,
        **more,
    }


OFF = [{"value": "off", "words": "switch off"}]
SWITCHING = draft(SWITCH, "Please switch off every light that is on. How many were those?", user_values=OFF)


async def ground(*drafts: JsonObject, repairs: int = 0, most: int = 30) -> tuple[GroundedChain, list[str]]:
    """Ground what a model writes that gives one draft after the other; with what it was asked."""
    asked: list[str] = []

    async def reply(request: ChatRequest) -> ChatReply:
        asked.append(request.messages[-1].content)
        text = orjson.dumps(drafts[min(len(asked), len(drafts)) - 1]).decode()
        return ChatReply(message=Message(role="assistant", content=text))

    writer = ProgramWriter(CallableModel("m", reply), SPEC, load_builtin_prompts())
    grounder = Grounder(SPEC, STATE, Phrasebook(), GroundSettings())
    chain = Chain(
        index=0, environment="smart_home", tools=(), dependencies=(), state=content_hash(STATE), sampler={}, seed=4,
        source="program",
    )  # fmt: skip
    settings = ProgramSettings(calls=(2, most), repairs=repairs)
    session = NativeSession(CLS, SPEC)
    return await ground_written_program(chain, writer, grounder, session, settings, LIMITS), asked


async def test_a_right_program_is_grounded_with_the_source_of_every_value() -> None:
    grounded, asked = await ground(SWITCHING)
    assert len(asked) == 1
    written = load_written(grounded)
    assert written is not None and written.model == "m"
    writes = [call for call in grounded.calls if call.effect == "write"]
    assert written.answer == len(writes) > 0
    assert written.sentences == (f"It is {len(writes)}.",)
    for call in writes:
        source = call.provenance["device_id"]
        assert isinstance(source, FromOutput) and grounded.calls[source.call].tool == "list_devices"
        assert call.provenance["power"] == FromUser(known="said.0")
    assert [(fact.key, fact.label, fact.said) for fact in grounded.known] == [("said.0", "power", "switch off")]
    assert len(grounded.states) == len(grounded.calls)
    rooms = {written.groups[n] for n, call in enumerate(grounded.calls) if call.tool == "list_devices"}
    assert written.groups[0] not in rooms  # the list of rooms comes before what takes from it


async def test_numbers_may_be_computed_and_choices_said() -> None:
    said = [{"value": "ground_floor", "words": "ground floor"}]
    question = "Turn the warmest room on the ground floor down to 1.5 degrees below the coldest. Which one is it?"
    grounded, _ = await ground(draft(WARM, question, user_values=said))
    call = grounded.calls[-1]
    assert call.tool == "set_temperature" and call.provenance["target_temperature"] == Constant()
    written = load_written(grounded)
    assert written is not None and written.answer not in written.others and written.others


async def test_a_program_is_mended_from_what_execution_showed() -> None:
    wrong = draft(COUNT.replace('["device_name"]', '["name"]'))
    grounded, asked = await ground(wrong, draft(COUNT.replace("len(switched)", "{}")), draft(COUNT), repairs=2)
    assert load_written(grounded) is not None
    assert "program_crashed: KeyError: 'name'" in asked[1] and "list_rooms({}) -> " in asked[1]
    assert "program_wrong_answer: {} is no number" in asked[2]


BAD = {
    "never-ends": ("program_never_ends", draft("def solve(call):\n    while True: pass\n")),
    "calls-for-ever": ("program_too_many_calls", draft('def solve(call):\n    while True: call("list_rooms")\n')),
    "no-python": ("program_no_function", draft("def solve(call) return 1")),
    "no-function": ("program_no_function", draft("def answer(call):\n    return 1\n")),
    "deep": ("program_no_function", draft("def solve(call):\n    return " + "(" * 400 + "1" + ")" * 400)),
    "long-sum": ("program_too_deep", draft(COUNT.replace("len(switched)", "len(switched)" + " + 0" * 400))),
    "null-byte": ("program_no_function", draft(COUNT + "\0")),
    "other-tool": ("program_unknown_tool", draft(COUNT.replace('"list_rooms"', '"open_safe"'))),
    "refused": ("program_refused_call", draft(COUNT.replace('room["room_id"]', 'room["room_name"]'))),
    "guessed-id": ("program_unknown_value", draft(COUNT.replace('room["room_id"]', '"R" + str(91)'))),
    "literal-id": ("program_unknown_value", draft(COUNT.replace('room["room_id"]', '"R2"').replace("R2", "X9"))),
    "number-from-nowhere": (
        "program_unknown_value",
        draft(WARM.replace("coldest - 1.5", "15.5").replace(', floor="ground_floor"', ""), "Warm it up. Where?"),
    ),
    "computed-from-nowhere": (
        "program_unknown_value",
        draft(WARM.replace("coldest - 1.5", "12 + 3.5").replace(', floor="ground_floor"', ""), "Warm it up. Where?"),
    ),
    "reads-a-file": ("program_crashed", draft("def solve(call):\n    return open('/etc/passwd').read()\n")),
    "crashes": ("program_crashed", draft("def solve(call):\n    return 1 // 0\n")),
    "wrong-type": ("program_wrong_answer", draft(COUNT.replace("return len(switched)", "return {'a': 2}"))),
    "nothing": ("program_wrong_answer", draft(COUNT.replace("return len(switched)", "return None"), answer="Done.")),
    "unrounded": ("program_wrong_answer", draft(COUNT.replace("len(switched)", "len(switched) / 7"))),
    "twice-the-same": ("program_wrong_answer", draft(COUNT.replace("len(switched)", '["a", "a"]'))),
    "no-slot": ("program_wrong_answer", draft(COUNT, answer="I have counted them.")),
    "one-call": ("program_too_few_calls", draft('def solve(call):\n    return len(call("list_rooms")["result"])\n')),
    "ignores": ("program_ignores_results", draft(COUNT.replace("return len(switched)", "return 7"))),
    "draws-lots": (
        "program_ignores_results",
        draft("import random\n" + COUNT.replace("len(switched)", "random.randrange(10**9)")),
    ),
    "idle-write": ("program_idle_write", SWITCHING | {"python": SWITCH.replace('"light"', '"lamp"')}),
    "names-a-tool": ("query_names_a_tool", draft(COUNT, "Use list_devices to count my lights.")),
    "unsaid": ("program_words_not_said", SWITCHING | {"question": "Please make it dark. How many were on?"}),
    "said-otherwise": (
        "program_words_not_said",
        draft(COUNT, "How many lights are on?", user_values=[{"value": "R2", "words": "lights"}]),
    ),
}  # fmt: skip
"""Name to the reason of the drop and the draft."""


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_program_has_its_reason(name: str) -> None:
    reason, bad = BAD[name]
    with pytest.raises(RecordDropped) as dropped:
        await ground(bad)
    assert dropped.value.reason == reason, dropped.value.detail


def read(tool: str, result: Any) -> GoldCall:
    return GoldCall(tool=tool, arguments={}, provenance={}, effect="read", result=result)


TOOL = ToolSpec(server="s", name="pay", input_schema={"type": "object", "properties": {"n": {"default": 4}, "ids": {}}})
ORDERS = read("orders", {"result": [{"id": "O1", "lines": [{"sku": "A"}, {"sku": "B"}]}, {"id": "O2", "lines": []}]})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"n": 4}, {"n": FromDefault()}),
        ({"n": 17.5}, {"n": Constant()}),
        ({"page": 3}, {"page": Constant()}),
        ({"x": "two"}, {"x": FromUser(known="k")}),
    ],
)
def test_sources_of_plain_values(arguments: JsonObject, expected: Any) -> None:
    assert find_sources(TOOL, arguments, [ORDERS], {"k": "two"}, [3]) == expected


def test_sources_lead_through_lists_in_lists_and_into_arguments() -> None:
    sources = find_sources(TOOL, {"sku": "B", "ids": ["O2", "O1"]}, [ORDERS], {}, [])
    inner = sources["sku"]
    assert isinstance(inner, FromOutput) and inner.path == "$.result[*].lines[*].sku"
    assert [selector.value for selector in inner.selectors] == ["O1", "B"]
    both = sources["ids"]
    assert isinstance(both, Composite) and set(both.leaves) == {"ids[0]", "ids[1]"}


@pytest.mark.parametrize(
    ("value", "name", "path", "row"),
    [
        ("O3999", "order", "$.result[*].id", "O3999"),
        ("open", "status", "$.result[*].status", "O0"),
        ("open", "state", "$.result[*].status", "O0"),
    ],
    ids=["one-row", "every-row", "every-row-by-another-name"],
)
def test_sources_in_long_lists_take_time_by_the_row(value: str, name: str, path: str, row: str) -> None:
    """Rows are counted once per field, and one reference is followed: 4,000 rows take no 4,000 walks over them."""
    orders = [{"status": "open", "id": f"O{number}", "n": number} for number in range(4000)]
    started = time.process_time()
    source = find_in_results(value, name, [read("orders", {"result": orders})])
    assert time.process_time() - started < 1
    assert source is not None and source.path == path
    assert source.selectors == (Selector(rows="$.result", how="each", field="id", value=row),)


@pytest.mark.parametrize("arguments", [{"x": "O9"}, {"x": 42}, {"x": 5}, {"x": True}, {"x": ["O1", "O9"]}])
def test_what_no_tool_and_nobody_said_is_unknown(arguments: JsonObject) -> None:
    literals = list_literals("a = 42\nb = 2 + 3\ndef f():\n    return 'O9'\n")
    with pytest.raises(UnknownValue, match="is in no earlier result"):
        find_sources(TOOL, arguments, [ORDERS], {}, literals)


def test_mutants_differ_in_one_place_each() -> None:
    source = (
        "def solve(call):\n    rows = sorted((r for r in call('a') if r > 1), reverse=True)\n    t = sum(rows) + 1\n"
    )
    source += "    for r in rows:\n        if t:\n            call('b')\n    return t\n"
    mutants = [(kind, mutate_source(source, number, kind)) for number, kind in list_mutants(source)]
    assert {kind for kind, _ in mutants} == {
        "program_bound", "program_filter", "program_skipped_row", "program_branch", "program_arithmetic",
        "program_aggregate", "program_order",
    }  # fmt: skip
    assert len({text for _, text in mutants}) == len(mutants)
    for _, text in mutants:
        compile(text, "mutant", "exec")
    assert list_operations(source, 2, True) == ("list", "loop", "branch", "join", "write", "sorted", "sum")


@pytest.mark.parametrize("read_source", [list_literals, list_mutants, lambda source: list_operations(source, 1, False)])
@pytest.mark.parametrize("terms", [400, 3000])
def test_a_program_too_deep_to_change_is_dropped(read_source: Any, terms: int) -> None:
    with pytest.raises(RecordDropped, match=r"program_(too_deep|no_function)"):
        read_source("def solve(call):\n    return call('a')" + " + 1" * terms)


def test_a_program_of_the_deepest_levels_can_be_changed() -> None:
    source = "def solve(call):\n    return call('a')" + " + 1" * (DEEPEST - 6)
    for number, kind in list_mutants(source):
        compile(mutate_source(source, number, kind), "mutant", "exec")
    with pytest.raises(RecordDropped, match="program_too_deep"):
        list_mutants(source + " + 1")


def test_only_drawn_mutants_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant costs a tree and its text, and a program may have hundreds."""
    written: list[ast.AST] = []

    def unparse(tree: ast.AST) -> str:
        written.append(tree)
        return ""

    monkeypatch.setattr(ast, "unparse", unparse)
    source = "def solve(call):\n" + "    x = 1 + 2\n" * 500
    places = list_mutants(source)
    assert len(places) == 500 and not written
    mutate_source(source, *places[7])
    assert len(written) == 1


def test_long_requests_have_limits_of_their_own() -> None:
    settings = ProgramSettings(calls=(2, 9), tries=5, long_calls=(20, 100))
    assert settings.for_source("program") is settings
    assert (settings.for_source("long").calls, settings.for_source("long").tries) == ((20, 100), 60)
    with pytest.raises(ValueError, match="less than or equal to 100"):
        ProgramSettings(long_calls=(20, 101))
    for name in ("calls", "long_calls"):
        with pytest.raises(ValueError, match="it goes from 50 to 15: the smaller number comes first"):
            ProgramSettings(**{name: (50, 15)})


def test_other_results_are_other_throughout() -> None:
    result: JsonObject = {"a": 1, "b": [{"c": "x"}, {"c": "y"}], "d": True, "e": None}
    assert change_result(result) == {"a": 4, "b": [{"c": "other x"}, {"c": "other y"}], "d": True, "e": None}
    assert change_result(result, shorten=True) == result | {"b": [{"c": "y"}]}


def make_run(folder: Any, answer: Any, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    monkeypatch.setattr(RoleFactory, "proposer", CallableModel("writer", answer))
    config = resolve_config(
        {
            "name": "written", "seed": 5, "run": str(folder / "run"), "sample": {"count": 2},
            "environments": [{"library": "smart_home", "states": {"small": 1}}],
            "sources": {"chains": 0.0, "programs": 1.0}, "engine": {"workers": 1},
            "programs": {"calls": [2, 30], "repairs": 1},
        }
    )  # fmt: skip
    run = RunDirectory.create(config.run, dump_settings(config))
    asyncio.run(run_pipeline(run))
    return run


def test_written_programs_become_proved_tasks(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(request: ChatRequest) -> ChatReply:
        fits = "What was wrong: program_never_ends" in request.messages[-1].content
        python = NAMES if fits else "def solve(call):\n    while True: pass\n"
        reply = draft(python, "Which lights are on in my home?", answer="{answer}.")
        return ChatReply(message=Message(role="assistant", content=orjson.dumps(reply).decode()))

    run = make_run(tmp_path, answer, monkeypatch)
    tasks = list(read_records(run.file(TASKS), Task))
    assert len(tasks) == 2
    for task in tasks:
        assert task.source == "program" and task.language == "writer"
        assert task.prompts.keys() == {"querygen/write_program"}
        assert task.solution is not None and task.solution.python == NAMES
        assert task.solution.operations == ("list", "loop", "branch", "join")
        assert task.audit is not None and task.audit.discrimination == 1.0
        assert task.audit.accepted == task.audit.equivalent > 0
        assert {"program_bound", "program_skipped_row", "program_branch"} & task.audit.made.keys()
        assert next(criterion.about for criterion in task.rubric) == "answer"
    assert all(one.accepted and one.replay_match for one in read_records(run.file(VERDICTS), Verdict))
    for trajectory in read_records(run.file(TRAJECTORIES), Trajectory):
        assert len(trajectory.events) == len(tasks[0].gold_calls)  # the ReAct episode makes the program's calls


def test_programs_that_never_fit_are_counted(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def answer(request: ChatRequest) -> ChatReply:
        asked.append(request.messages[-1].content)
        bad = draft(COUNT.replace('room["room_id"]', '"X9"'))
        return ChatReply(message=Message(role="assistant", content=orjson.dumps(bad).decode()))

    with pytest.raises(Exception, match="program_unknown_value"):
        make_run(tmp_path, answer, monkeypatch)
    run = RunDirectory.open(tmp_path / "run")
    assert summarize_stage(run, "ground").dropped == {"program_unknown_value": 2}
    assert len(asked) == 4
