"""Formats of recordings: spans, HTTP archives, rollouts; and what is left out of them."""

import base64
import json
from pathlib import Path

import pytest

from trajsmith.envgen.traces.infer import infer_clone
from trajsmith.envgen.traces.reading import read_recording
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.records import InputError, RecordDropped
from trajsmith.verify.traces import read_dialogues


def write(path: Path, value) -> Path:
    path.write_text(json.dumps(value))
    return path


def span(name: str, arguments, result, number: int, trace: str = "t1", **more):
    attributes = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": f"c{number}",
        "gen_ai.tool.call.arguments": json.dumps(arguments), "gen_ai.tool.call.result": json.dumps(result),
    }  # fmt: skip
    listed = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    return {"traceId": trace, "startTimeUnixNano": str(number), "attributes": listed, **more}


def record_bank(dialogues: int) -> list[dict]:
    """Record a bundled environment as spans: cards are listed and frozen."""
    cls = ENVIRONMENTS.get("bank")
    spans = []
    for number in range(dialogues):
        play = cls(cls.seed_state("medium", 1))
        customers = sorted(play.state.customers)
        customer = customers[number % len(customers)]
        calls = [("list_cards", {"customer_id": customer})]
        calls += [("unfreeze_card", {"card_id": key}) for key, card in sorted(play.state.cards.items())][
            number % 7 :: 7
        ][:3]
        calls += [("list_accounts", {"customer_id": customer})]
        for tool, arguments in calls:
            result = play.call(tool, arguments)
            content = result.content
            content = content["result"] if isinstance(content, dict) and set(content) == {"result"} else content
            status = {} if result.ok else {"status": {"code": 2}}
            spans.append(span(tool, arguments, content, len(spans), f"trace{number}", **status))
    return spans


def test_a_bundled_environment_is_recorded_as_spans_and_cloned(tmp_path):
    exported = {"resourceSpans": [{"scopeSpans": [{"spans": record_bank(40)}]}]}
    recording = read_recording([write(tmp_path / "spans.json", exported)])
    assert len(recording.dialogues) == 40
    clone = infer_clone(recording)
    assert {"cards", "accounts"} <= set(clone.schema.tables)
    program = clone.programs["list_cards"]
    assert program.held_out == 1.0
    assert [one for one in clone.programs["unfreeze_card"].refusals if one.examples], "refused calls have a reason"
    row = next(iter(clone.rows["cards"].values()))
    truth = ENVIRONMENTS.get("bank").seed_state("medium", 1).cards[row["card_id"]]
    assert row["last_digits"] == truth.number[-4:] if hasattr(truth, "number") else row["card_id"] == truth.card_id


def test_messages_of_spans_are_a_dialogue_for_import(tmp_path):
    sent = [
        {"role": "user", "parts": [{"type": "text", "content": "Is it open?"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "a", "name": "get_hours", "arguments": {"day": "mon"}}],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "a", "response": {"open": True}}]},
    ]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}]
    attributes = {"gen_ai.input.messages": json.dumps(sent), "gen_ai.output.messages": json.dumps(answer)}
    file = write(tmp_path / "spans.json", {"traceId": "x", "attributes": attributes})
    ((_, dialogue),) = read_dialogues(file)
    assert [message.role for message in dialogue.messages] == ["user", "assistant", "assistant"]
    assert [(call.tool, call.arguments, call.output) for call in dialogue.calls] == [
        ("get_hours", {"day": "mon"}, '{"open":true}')
    ]


def test_rollouts_of_the_responses_api(tmp_path):
    row = {
        "responses_create_params": {"input": [{"role": "user", "content": "hi"}], "tools": [
            {"name": "get_dog", "description": "Show a dog.", "parameters": {"properties": {"dog_id": {}}}},
        ]},
        "response": {"model": "m", "output": [
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "name": "get_dog", "call_id": "1", "arguments": '{"dog_id": "d1"}'},
            {"type": "function_call_output", "call_id": "1", "output": '{"dog_id": "d1", "name": "Rex"}'},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rex"}]},
        ]},
        "reward": 0.0, "_ng_task_index": 4,
    }  # fmt: skip
    file = write(tmp_path / "rollouts.json", row)
    ((_, dialogue),) = read_dialogues(file)
    assert dialogue.recorded == {"reward": 0.0}
    assert dialogue.task.name == "4"
    recording = read_recording([file])
    assert recording.tools["get_dog"].description == "Show a dog."
    assert recording.dialogues[0].calls[0].result == {"dog_id": "d1", "name": "Rex"}


def entry(method: str, url: str, answer, status: int = 200, sent=None, **headers):
    body = {"postData": {"mimeType": "application/json", "text": json.dumps(sent)}} if sent is not None else {}
    return {
        "startedDateTime": f"2026-01-01T00:00:{len(url) % 60:02d}Z",
        "request": {
            "method": method,
            "url": url,
            "headers": [{"name": k, "value": v} for k, v in headers.items()],
            **body,
        },
        "response": {"status": status, "content": {"mimeType": "application/json", "text": json.dumps(answer)}},
    }


def test_http_archives_give_tools_named_after_their_paths(tmp_path):
    entries = [
        entry("GET", "https://x.example/api/v1/orders?status=open&limit=2", [{"id": 1, "status": "open"}]),
        entry("GET", "https://x.example/api/v1/orders/1", {"id": 1, "status": "open"}),
        entry("POST", "https://x.example/api/v1/orders/1/cancel", {"id": 1, "status": "void"}, sent={"why": "late"}),
        entry("GET", "https://x.example/api/v1/orders/9", {"error": {"message": "no such order"}}, 404),
        entry("DELETE", "https://x.example/api/v1/orders/17", {}, 200),
        {
            "request": {"method": "GET", "url": "https://x.example/logo"},
            "response": {"status": 200, "content": {"mimeType": "image/png", "text": "x"}},
        },
    ]  # fmt: skip
    recording = read_recording([write(tmp_path / "a.har", {"log": {"entries": entries}})])
    calls = {(call.tool, call.failed): call for call in recording.dialogues[0].calls}
    assert calls["list_orders", False].arguments == {"status": "open", "limit": 2}
    assert calls["get_order", True].result == "no such order"
    assert calls["cancel_order", False].arguments == {"order_id": "1", "why": "late"}
    assert calls["delete_order", False].arguments == {"order_id": "17"}
    assert recording.tools["get_order"].reads is True
    assert recording.tools["cancel_order"].reads is False
    assert any("not JSON" in reason for _, reason in recording.left_out)


def test_bodies_in_base64(tmp_path):
    one = entry("GET", "https://x.example/cats/1", {})
    one["response"]["content"] |= {"encoding": "base64", "text": base64.b64encode(b'{"id": 1, "name": "Tom"}').decode()}
    recording = read_recording([write(tmp_path / "a.har", {"log": {"entries": [one]}})])
    assert recording.dialogues[0].calls[0].result == {"id": 1, "name": "Tom"}


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", "", "neither JSON nor JSON Lines"),
        ("a.json", '{"messages": [{"role": "us', "neither JSON nor JSON Lines"),
        ("a.json", '{"log": {"entries": []}}', "no call with a result"),
        ("a.json", '[{"role": "user", "content": "hi"}]', "no call with a result"),
        ("a.json", '{"spam": 1}', "none of the known formats"),
    ],
)  # fmt: skip
def test_files_without_calls_are_refused_in_one_line(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=says) as error:
        read_recording([tmp_path / name])
    assert "\n" not in str(error.value)


def test_a_broken_line_drops_one_dialogue(tmp_path):
    good = {"messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "get_x", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "5"},
    ]}  # fmt: skip
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(good) + "\n" + json.dumps(good)[:40] + "\n")
    recording = read_recording([file])
    assert len(recording.dialogues) == 1
    assert any("not_json" in reason for _, reason in recording.left_out)
    assert sum(isinstance(one, RecordDropped) for _, one in read_dialogues(file)) == 1
