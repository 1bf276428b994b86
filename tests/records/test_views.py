"""Views have what records have, and refuse what records refuse."""

import pickle
from typing import Any

import orjson
import pytest

from trajsmith.records import (
    CallEvent,
    CheckOutcome,
    FunctionCall,
    InjectedFault,
    InputError,
    JudgeOpinion,
    Message,
    Persona,
    PrunedCall,
    StepLabel,
    Task,
    TaskHeader,
    ToolCall,
    ToolSearch,
    ToolSpec,
    Trajectory,
    TurnSpan,
    TurnVerdict,
    Verdict,
    add_checksum,
    read_view,
)
from trajsmith.records.record import FrozenModel, Record

CALL = ToolCall(id="c1", function=FunctionCall(name="pay", arguments={"amount": 1.84, "note": None, "list": [1]}))
TRAJECTORY = Trajectory(
    task_id="task_1", environment="bank", candidate=1,
    messages=(
        Message(role="user", content="Pay."), Message(role="assistant", reasoning_content="why", tool_calls=(CALL,)),
        Message(role="tool", content="{}", tool_call_id="c1", name="pay"), Message(role="assistant", content="Done."),
    ),
    tools=("pay",),
    events=(
        CallEvent(actor="assistant", tool="pay", arguments={"amount": 1.84}, ok=True, result_hash="h", message=1,
                  effect=[{"op": "add", "path": "/x", "value": 1}]),
        CallEvent(actor="user", tool="pay", arguments={}, ok=False, error="malformed", result_hash="h", message=2),
    ),
    turns=(TurnSpan(start=0, stop=4, state_hash="s"),), initial_state="a", final_state="b",
    diff=({"op": "add", "path": "/x", "value": 1},), models={"agent": "scripted"}, stop_reason="user_stop",
    injected=(InjectedFault(kind="wrong_entity", message=1),), recorded={"file": "x"},
)  # fmt: skip
VERDICT = Verdict(
    trajectory_id=TRAJECTORY.id, task_id="task_1", environment="bank", outcome="partial",
    checks=(CheckOutcome(says="x", kind="state"), CheckOutcome(says="y", kind="answer", passed=False)),
    state_match=True, trajectory_match=1, rewards={"pass": 1.0}, accepted=False, reasons=("check failed: answer",),
    judge=JudgeOpinion(model="m", outcome="partial", questions=("q",), decisive=False),
    turns=(
        TurnVerdict(outcome="partial", state_match=False, checks=2, passed=1),
        TurnVerdict(outcome="partial", checks=0, passed=0),
    ),
    pruned=(PrunedCall(event=0, tool="pay", arguments={"a": 1}, why="w"),),
    step_labels=(StepLabel(event=0, label="needed", why="w"),),
)  # fmt: skip


def compare(record: Any, view: Any) -> None:
    if isinstance(record, FrozenModel):
        names = [*type(record).model_fields, *(name for name, one in vars(type(record)).items() if _is_property(one))]
        for name in names:
            compare(getattr(record, name), getattr(view, name))
        with pytest.raises(AttributeError):
            view.id = "other"
    elif isinstance(record, tuple):
        assert type(view) is tuple and len(view) == len(record)
        for one, other in zip(record, view, strict=True):
            compare(one, other)
    else:
        assert (type(view), view) == (type(record), record)


def _is_property(value: object) -> bool:
    return isinstance(value, property)


@pytest.mark.parametrize("record", [TRAJECTORY, VERDICT], ids=["trajectory", "verdict"])
def test_a_view_has_all_fields_and_properties_of_the_record(record: Record) -> None:
    view = read_view(type(record), record.to_line())
    assert not isinstance(view, Record)
    compare(record, view)
    compare(record, pickle.loads(pickle.dumps(view)))


@pytest.mark.parametrize("record", [TRAJECTORY, VERDICT], ids=["trajectory", "verdict"])
def test_a_line_of_an_older_version_gives_the_same_view(record: Record) -> None:
    assert read_view(type(record), record.to_json()) == read_view(type(record), record.to_line())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"candidate": 2}, "changed by hand", id="content"),
        pytest.param({"kandidate": 1}, "Extra inputs", id="unknown-key"),
        pytest.param({"candidate": "many"}, "candidate: ", id="type"),
        pytest.param({"stop_reason": "other"}, "stop_reason: ", id="choice"),
        pytest.param({"events": [{}]}, r"events\.0\.", id="inside"),
    ],
)
def test_a_changed_line_is_refused_as_that_of_a_record(change: dict[str, Any], reason: str) -> None:
    content = orjson.dumps(orjson.loads(TRAJECTORY.to_json()) | change)
    for line in (content, TRAJECTORY.to_line().replace(TRAJECTORY.to_json()[:-1], content[:-1])):
        with pytest.raises(InputError, match=reason):
            read_view(Trajectory, line)


def test_a_line_is_typed_also_under_a_checksum_that_somebody_made() -> None:
    content = orjson.dumps(orjson.loads(TRAJECTORY.to_json()) | {"candidate": "many"})
    with pytest.raises(InputError, match="candidate: "):
        read_view(Trajectory, add_checksum(content))


@pytest.mark.parametrize(
    "line",
    [TRAJECTORY.to_line()[:-20], TRAJECTORY.to_line().replace(b"Pay.", b"\xff"), b'{"diff": ' + b"[" * 100_000],
    ids=["torn", "no-utf-8", "deep"],
)
def test_what_is_no_json_is_refused(line: bytes) -> None:
    with pytest.raises(InputError, match="Invalid JSON"):
        read_view(Trajectory, line)


TOOL = ToolSpec(server="bank", name="pay", description="Pay.", input_schema={"type": "object"})
TASK = Task(
    grounded_id="grounded_1", environments=("bank",), initial_state="a", persona=Persona(name="n", role="r", style="s"),
    scenario="x", policy="", exposed_tools=("pay",), turns=(), mode="direct", difficulty=0.5, language="en", seed=3,
    distractors=(TOOL,), search=ToolSearch(results=3, queries={"pay": ("pay a bill",)}),
)  # fmt: skip


@pytest.mark.parametrize("line", [TASK.to_line(), TASK.to_line().rstrip(), TASK.to_json()])
def test_a_header_has_the_fields_of_its_task(line: bytes) -> None:
    header = TaskHeader.from_line(line)
    assert {name: getattr(header, name) for name in TaskHeader.model_fields} == {
        name: getattr(TASK, name) for name in TaskHeader.model_fields
    }
    assert header.whole() == TASK


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"mode": "other"}, "mode: "), ({"seed": "many"}, "seed: "), ({"distractors": [{}]}, r"distractors\.0\.")],
)
def test_a_header_is_typed_whoever_made_the_line(change: dict[str, Any], reason: str) -> None:
    content = orjson.dumps(orjson.loads(TASK.to_json()) | change)
    for line in (content, add_checksum(content)):
        with pytest.raises(InputError, match=reason):
            TaskHeader.from_line(line)
    with pytest.raises(InputError, match="changed by hand"):
        TaskHeader.from_line(TASK.to_line().replace(b'"seed":3', b'"seed":4'))
