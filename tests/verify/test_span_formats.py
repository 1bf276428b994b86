"""Dialogues in OpenTelemetry spans and in rollouts of the Responses API."""

import json
from pathlib import Path

from trajsmith.records import RecordDropped
from trajsmith.verify.traces import read_dialogues


def write(path: Path, value) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_messages_of_spans_are_a_dialogue(tmp_path):
    call = {"type": "tool_call", "id": "a", "name": "get_hours", "arguments": {"day": "mon"}}
    sent = [
        {"role": "user", "parts": [{"type": "text", "content": "Is it open?"}]},
        {"role": "assistant", "parts": [call]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "a", "response": {"open": True}}]},
    ]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}]
    attributes = {"gen_ai.input.messages": json.dumps(sent), "gen_ai.output.messages": json.dumps(answer)}
    ((_, dialogue),) = read_dialogues(write(tmp_path / "spans.json", {"traceId": "x", "attributes": attributes}))
    assert [message.role for message in dialogue.messages] == ["user", "assistant", "assistant"]
    assert [(one.tool, one.arguments, one.output) for one in dialogue.calls] == [
        ("get_hours", {"day": "mon"}, '{"open":true}')
    ]


def test_spans_in_which_no_user_speaks_are_dropped(tmp_path):
    attributes = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_hours", "gen_ai.tool.call.arguments": "{}",
        "gen_ai.tool.call.result": "5",
    }  # fmt: skip
    file = write(tmp_path / "spans.json", {"traceId": "x", "attributes": attributes})
    ((_, dropped),) = read_dialogues(file)
    assert isinstance(dropped, RecordDropped)
    assert dropped.reason == "no_user_message"
    ((_, dialogue),) = read_dialogues(file, needs_user=False)
    assert dialogue.calls[0].output == "5"


def test_rollouts_of_the_responses_api(tmp_path):
    row = {
        "responses_create_params": {"input": [{"role": "user", "content": "hi"}]},
        "response": {"model": "m", "output": [
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "name": "get_dog", "call_id": "1", "arguments": '{"dog_id": "d1"}'},
            {"type": "function_call_output", "call_id": "1", "output": '{"name": "Rex"}'},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rex"}]},
        ]},
        "reward": 0.0, "_ng_task_index": 4,
    }  # fmt: skip
    ((_, dialogue),) = read_dialogues(write(tmp_path / "rollouts.json", row))
    assert dialogue.recorded == {"reward": 0.0}
    assert dialogue.task.name == "4"
    assert dialogue.calls[0].output == '{"name": "Rex"}'
    assert [message.content for message in dialogue.messages] == ["hi", "", "Rex"]
