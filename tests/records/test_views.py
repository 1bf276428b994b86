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
    PrunedCall,
    StepLabel,
    ToolCall,
    Trajectory,
    TurnSpan,
    TurnVerdict,
    Verdict,
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
    content = orjson.loads(TRAJECTORY.to_line()) | change
    with pytest.raises(InputError, match=reason):
        read_view(Trajectory, orjson.dumps(content))


@pytest.mark.parametrize(
    "line",
    [TRAJECTORY.to_line()[:-20], TRAJECTORY.to_line().replace(b"Pay.", b"\xff"), b'{"diff": ' + b"[" * 100_000],
    ids=["torn", "no-utf-8", "deep"],
)
def test_what_is_no_json_is_refused(line: bytes) -> None:
    with pytest.raises(InputError, match="Invalid JSON"):
        read_view(Trajectory, line)
