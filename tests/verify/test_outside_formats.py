"""Recorded dialogues of each format are read into one form; what cannot be read is dropped with its reason."""

import json
from pathlib import Path

import pytest

from trajsmith.records import InputError, RecordDropped
from trajsmith.verify.traces import read_dialogues

CALL = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "W1"}'}}
DIALOGUE = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Where is W1?"},
    {"role": "assistant", "content": None, "reasoning_content": "look", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"status": "shipped"}'},
    {"role": "assistant", "content": "It is shipped."},
]


def write(path: Path, value) -> Path:
    text = "\n".join(json.dumps(one) for one in value) if path.suffix == ".jsonl" else json.dumps(value)
    path.write_text(text)
    return path


def read(path: Path, **options):
    return [one for _, one in read_dialogues(path, **options)]


def test_openai_messages(tmp_path: Path) -> None:
    (found,) = read(write(tmp_path / "a.jsonl", [{"id": "x", "messages": DIALOGUE}]))
    assert (found.format, found.dialogue) == ("openai", "x")
    assert [message.role for message in found.messages] == ["system", "user", "assistant", "assistant"]
    assert found.messages[2].reasoning_content == "look"
    (call,) = found.calls
    assert (call.tool, call.arguments, call.message) == ("get_order", {"order_id": "W1"}, 2)
    assert (call.output, call.failed) == ('{"status": "shipped"}', False)


def test_a_bare_list_of_messages_is_one_dialogue(tmp_path: Path) -> None:
    (found,) = read(write(tmp_path / "a.json", DIALOGUE))
    assert len(found.calls) == 1


def test_parallel_calls_keep_their_own_results(tmp_path: Path) -> None:
    second = {**CALL, "id": "c2", "function": {"name": "get_user", "arguments": "{}"}}
    results = [
        {"role": "tool", "tool_call_id": "c2", "content": "Error: no such user"},
        {"role": "tool", "tool_call_id": "c1", "content": "shipped"},
    ]
    messages = [DIALOGUE[1], {"role": "assistant", "tool_calls": [CALL, second]}, *results]
    (found,) = read(write(tmp_path / "a.json", {"messages": messages}))
    assert [(call.tool, call.output, call.failed) for call in found.calls] == [
        ("get_order", "shipped", False),
        ("get_user", "Error: no such user", True),
    ]


def atif(*steps: dict, **root) -> dict:
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    return {"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": numbered} | root


ASK = {"source": "user", "message": "Where is W1?"}
LOOK = {"tool_call_id": "c1", "function_name": "get_order", "arguments": {"order_id": "W1"}}


def test_atif(tmp_path: Path) -> None:
    """A result without the id of its call belongs to the only call of its step; parts of text are joined."""
    parts = [{"type": "text", "text": "It is "}, {"type": "text", "text": "shipped."}]
    document = atif(
        {"source": "system", "message": "Be kind."},
        ASK,
        {
            "source": "agent",
            "message": "",
            "reasoning_content": "look",
            "tool_calls": [LOOK],
            "observation": {"results": [{"content": "shipped"}]},
        },
        {"source": "agent", "message": parts},
        session_id="s",
    )
    (found,) = read(write(tmp_path / "trajectory.json", document))
    assert (found.format, found.dialogue) == ("atif", "s")
    assert [message.role for message in found.messages] == ["system", "user", "assistant", "assistant"]
    assert found.messages[2].reasoning_content == "look"
    assert found.messages[3].content == "It is shipped."
    assert [(call.tool, call.arguments, call.output) for call in found.calls] == [
        ("get_order", {"order_id": "W1"}, "shipped")
    ]


@pytest.mark.parametrize(
    ("result", "output", "failed"),
    [
        ({"content": json.dumps({"type": "text", "text": '{"status": "shipped"}'})}, '{"status": "shipped"}', False),
        ({"content": '{"type": "text", "size": 2}'}, '{"type": "text", "size": 2}', False),
        ({"content": "{shipped}"}, "{shipped}", False),
        ({"content": "No such order", "extra": {"tool_result_is_error": True}}, "No such order", True),
        ({"content": "Error: none", "extra": {"tool_result_is_error": False}}, "Error: none", False),
        ({"content": "Error: none", "extra": {"tool_result_is_error": None}}, "Error: none", True),
    ],
)
def test_atif_of_a_converted_session(tmp_path: Path, result: dict, output: str, failed: bool) -> None:
    """Results of MCP are JSON of their text block, and a mark beside a result says whether its call failed."""
    step = {"source": "agent", "message": "", "tool_calls": [LOOK], "observation": {"results": [result]}}
    (found,) = read(write(tmp_path / "trajectory.json", atif(ASK, step)))
    assert [(call.output, call.failed) for call in found.calls] == [(output, failed)]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (atif(ASK, continued_trajectory_ref="b.json"), "continued_in_another_file"),
        (atif(ASK | {"is_copied_context": True}), "copied_context"),
        (
            atif(
                ASK, {"source": "agent", "message": "", "observation": {"results": [{"subagent_trajectory_ref": [{}]}]}}
            ),
            "calls_of_subagents",
        ),
        (atif(ASK, {"source": "agent", "message": "", "tool_calls": [{"arguments": {}}]}), "call_without_name"),
        (atif(), "no_messages"),
    ],
)
def test_atif_that_does_not_hold_all_calls_is_dropped(tmp_path: Path, document: dict, reason: str) -> None:
    (dropped,) = read(write(tmp_path / "a.jsonl", [document]))
    assert isinstance(dropped, RecordDropped)
    assert dropped.reason == reason


SESSION = {"type": "session", "harness": "my-agent", "id": "s1", "name": "an order"}
LOOK_UP = {"id": "c1", "function": {"name": "get_order", "arguments": '{"order_id": "W1"}'}}
ASKED = {"role": "user", "content": "Where is W1?"}
CALLED = {"role": "assistant", "content": "", "reasoningContent": "look", "toolCalls": [LOOK_UP], "model": "m"}
RETURNED = {"role": "tool", "toolCallId": "c1", "content": "shipped"}
TOLD = {"role": "assistant", "content": "It is shipped.", "timestamp": 1780000000000}


def session(*messages: dict, **header) -> list[dict]:
    return [SESSION | header, *({"type": "message", "message": message} for message in messages)]


def test_a_session_of_the_hub(tmp_path: Path) -> None:
    (found,) = read(write(tmp_path / "a.jsonl", session(ASKED, CALLED, RETURNED, TOLD)))
    assert (found.format, found.dialogue, found.models, found.task) == ("hub_traces", "s1", {"agent": "m"}, None)
    assert [message.role for message in found.messages] == ["user", "assistant", "assistant"]
    assert found.messages[1].reasoning_content == "look"
    assert [(call.tool, call.arguments, call.output) for call in found.calls] == [
        ("get_order", {"order_id": "W1"}, "shipped")
    ]


def test_lines_of_several_sessions_in_a_file_or_in_a_list_are_one_dialogue_each(tmp_path: Path) -> None:
    broken = session({"role": "robot", "content": "hi"}, id="s2")
    lines = [*session(ASKED, TOLD), *broken, *session(ASKED, CALLED, RETURNED, id="s3")]
    for name in ("a.jsonl", "a.json"):
        first, second, third = read(write(tmp_path / name, lines))
        assert (first.dialogue, second.reason, third.dialogue) == ("s1", "unknown_role", "s3")


@pytest.mark.parametrize(
    ("lines", "reason", "detail"),
    [
        (session(ASKED)[1:], "no_session_header", "message"),
        (session(), "no_messages", ""),
        ([*session(ASKED), {"type": "model_change", "to": "m"}], "unknown_line_type", "model_change"),
        ([*session(ASKED), 7], "unknown_line_type", "7"),
        ([*session(ASKED), {"type": "message", "message": "hi"}], "not_a_message", "str"),
        (session(ASKED, {"role": "toolResult", "content": []}), "unknown_role", "toolResult"),
        (session(ASKED, RETURNED), "orphan_tool_result", "c1"),
        (session(ASKED, CALLED, RETURNED, RETURNED), "orphan_tool_result", "c1"),
        (session(ASKED, CALLED | {"toolCalls": [{"id": "c1"}]}), "call_without_name", "c1"),
        (
            session(ASKED, CALLED | {"toolCalls": [{"function": {"name": "f", "arguments": "{no"}}]}),
            "arguments_not_json",
            "f: ",
        ),
        (session(ASKED, CALLED | {"toolCalls": 7}), "unreadable", "TypeError"),
        (session({"role": "user", "content": "x" * 10_000_000}), "message_too_long", "10000000 characters"),
        (session(ASKED, {"role": "assistant", "content": [{"type": "toolCall"}]}), "content_not_text", ""),
        (session(TOLD), "no_user_message", ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_session_that_cannot_be_read_is_dropped_with_its_reason(tmp_path: Path, lines, reason, detail) -> None:
    (dropped,) = read(write(tmp_path / "a.jsonl", lines), name="hub_traces")
    assert isinstance(dropped, RecordDropped)
    assert dropped.reason == reason and detail in str(dropped)
    assert len(str(dropped).splitlines()) == 1


def test_a_session_with_a_broken_line_is_dropped_whole(tmp_path: Path) -> None:
    """A file that was cut off misses calls; the sessions before it stay."""
    path = write(tmp_path / "a.jsonl", [*session(ASKED, TOLD), *session(ASKED, CALLED, id="s2")])
    path.write_text(path.read_text() + '\n{"type":"mess')
    whole, cut = read(path)
    assert (whole.dialogue, cut.reason) == ("s1", "not_json")


def test_a_session_without_a_header_is_in_no_known_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none of the known formats .*hub_traces"):
        read(write(tmp_path / "a.jsonl", session(ASKED, TOLD)[1:]))
    assert read(write(tmp_path / "b.json", []), name="hub_traces") == []


def test_sharegpt(tmp_path: Path) -> None:
    conversations = [
        {"from": "human", "value": "Where is W1?"},
        {"from": "function_call", "value": json.dumps({"name": "get_order", "arguments": {"order_id": "W1"}})},
        {"from": "observation", "value": "shipped"},
        {"from": "gpt", "value": "It is shipped."},
    ]
    (found,) = read(write(tmp_path / "a.json", [{"conversations": conversations, "system": "Be kind."}]))
    assert [message.role for message in found.messages] == ["system", "user", "assistant", "assistant"]
    assert (found.calls[0].tool, found.calls[0].output) == ("get_order", "shipped")


def simulations(messages, task_id="7"):
    task = {
        "id": "7",
        "user_scenario": {"instructions": {"reason_for_call": "ask for W1"}},
        "evaluation_criteria": {
            "actions": [{"name": "get_order", "arguments": {"order_id": "W1"}}],
            "communicate_info": ["shipped"],
        },
    }
    simulation = {
        "id": "s1",
        "task_id": task_id,
        "messages": messages,
        "reward_info": {"reward": 1.0, "db_check": {"db_match": True}},
    }
    info = {"environment_info": {"policy": "Be kind."}, "agent_info": {"llm": "m"}, "user_info": {"llm": "u"}}
    return {"info": info, "tasks": [task], "simulations": [simulation]}


def test_tau2_with_a_call_of_the_user(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "Where is W1?"},
        {"role": "assistant", "tool_calls": [{"id": "a", "name": "get_order", "arguments": {"order_id": "W1"}}]},
        {"role": "tool", "id": "a", "content": "shipped", "error": False},
        {"role": "user", "content": None, "tool_calls": [{"id": "b", "name": "restart", "arguments": {}}]},
        {"role": "tool", "id": "b", "content": "Error: off", "error": True},
        {"role": "user", "content": "###STOP###"},
    ]
    (found,) = read(write(tmp_path / "a.json", simulations(messages)))
    assert [(call.actor, call.tool, call.failed) for call in found.calls] == [
        ("assistant", "get_order", False),
        ("user", "restart", True),
    ]
    assert found.messages[0].content == "Be kind."
    assert found.recorded == {"reward": 1.0, "state_match": True}
    assert found.models == {"agent": "m", "user": "u"}
    assert found.task.scenario == "ask for W1"
    assert (found.task.gold[0].tool, found.task.facts) == ("get_order", ("shipped",))


def test_a_simulation_of_a_task_that_the_file_lacks_is_dropped(tmp_path: Path) -> None:
    (found,) = read(write(tmp_path / "a.json", simulations([{"role": "user", "content": "hi"}], task_id="8")))
    assert isinstance(found, RecordDropped)
    assert found.reason == "unknown_task"


def test_tau_bench_results(tmp_path: Path) -> None:
    task = {
        "instruction": "ask for W1",
        "actions": [{"name": "get_order", "kwargs": {"order_id": "W1"}}],
        "outputs": [],
    }
    row = {"task_id": 3, "trial": 2, "reward": 0.0, "info": {"task": task}, "traj": DIALOGUE}
    (found,) = read(write(tmp_path / "a.json", [row]))
    assert (found.format, found.dialogue, found.recorded) == ("taubench", "3.2", {"reward": 0.0})
    assert found.task.gold[0].arguments == {"order_id": "W1"}


@pytest.mark.parametrize(
    "step",
    ["[get_order(order_id='W1')]", [{"get_order": '{"order_id": "W1"}'}], ["get_order(order_id='W1')"]],
    ids=["text", "objects", "texts"],
)
def test_bfcl_results_with_their_questions(tmp_path: Path, step) -> None:
    questions = write(
        tmp_path / "questions.jsonl",
        [
            {
                "id": "m_0",
                "question": [[{"role": "user", "content": "Where is W1?"}]],
                "ground_truth": [["get_order(order_id='W1')"]],
            }
        ],
    )
    results = write(tmp_path / "a.jsonl", [{"id": "m_0", "result": [[step, "It is shipped."]]}])
    (found,) = read(results, tasks=questions)
    assert [call.arguments for call in found.calls] == [{"order_id": "W1"}]
    assert found.messages[-1].content == "It is shipped."
    assert [call.tool for call in found.task.gold] == ["get_order"]
    (alone,) = read(results)
    assert alone.reason == "no_question"


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "no_messages"),
        ([{"role": "robot", "content": "hi"}], "unknown_role"),
        (["hi"], "not_a_message"),
        ([DIALOGUE[1], {"role": "tool", "tool_call_id": "x", "content": "y"}], "orphan_tool_result"),
        ([DIALOGUE[1], {"role": "assistant", "tool_calls": [{"id": "c"}]}], "call_without_name"),
        (
            [DIALOGUE[1], {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{no"}}]}],
            "arguments_not_json",
        ),
        ([{"role": "user", "content": "x" * 10_000_000}], "message_too_long"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "content_not_text"),
        ([{"role": "assistant", "content": "hello"}], "no_user_message"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_fault_has_its_reason_and_the_others_go_on(tmp_path: Path, messages, reason: str) -> None:
    path = write(tmp_path / "a.jsonl", [{"messages": DIALOGUE}, {"messages": messages}, {"messages": DIALOGUE}])
    first, broken, last = read(path)
    assert isinstance(broken, RecordDropped)
    assert broken.reason == reason
    assert first.calls[0].tool == last.calls[0].tool == "get_order"


def test_a_broken_line_is_dropped_and_a_broken_file_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [{"messages": DIALOGUE}])
    path.write_text(path.read_text() + "\n{half")
    assert [getattr(one, "reason", "read") for one in read(path)] == ["read", "not_json"]
    (tmp_path / "b.json").write_text("{half")
    with pytest.raises(InputError, match="neither JSON nor JSON Lines"):
        read(tmp_path / "b.json")
    write(tmp_path / "c.json", {"rows": [1]})
    with pytest.raises(InputError, match="none of the known formats"):
        read(tmp_path / "c.json")
    with pytest.raises(InputError, match="unknown format 'x'"):
        read(path, name="x")
