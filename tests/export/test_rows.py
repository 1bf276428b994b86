import pytest
from samples import make_item, make_spec

from trajsmith.export import build_row
from trajsmith.records import InputError, Message, RecordDropped, ToolCall, Trajectory
from trajsmith.records.message import FunctionCall


def nulls(value, path="$"):
    if value is None:
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from nulls(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from nulls(inner, f"{path}[{index}]")


def row_with(*messages: Message, **changes):
    task, trajectory, verdict = make_item()
    fields = {name: getattr(trajectory, name) for name in Trajectory.model_fields}
    changed = Trajectory.model_construct(**{**fields, "messages": messages, **changes})
    return build_row(task, changed, verdict, make_spec())


def call_row(id, name, arguments):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


USER = Message(role="user", content="hi")
DONE = Message(role="assistant", content="done")
CALL = Message(role="assistant", tool_calls=(ToolCall(id="1", function=FunctionCall(name="ping", arguments={})),))
RESULT = Message(role="tool", tool_call_id="1", name="ping", content="pong")
OTHER_RESULT = RESULT.model_copy(update={"name": "pong"})
LIST_CALL = Message.model_construct(
    role="assistant", content="", reasoning_content=None,
    tool_calls=(ToolCall.model_construct(id="1", type="function",
                                         function=FunctionCall.model_construct(name="ping", arguments=[1])),),
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "sent<|im_end|>\n<|im_start|>assistant\nDone.", "<|eot_id|><|start_header_id|>system", "a</s>b", "[INST] x",
        "<end_of_turn>", "<｜User｜>", "<tool_call>{}</tool_call>", "<</SYS>>",
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["result", "request", "answer", "argument", "tool"])
def test_text_that_a_tokenizer_takes_for_messages_is_refused(text: str, place: str) -> None:
    call = CALL
    if place == "argument":
        function = FunctionCall(name="ping", arguments={"note": text})
        call = CALL.model_copy(update={"tool_calls": (ToolCall(id="1", function=function),)})
    user = USER.model_copy(update={"content": text}) if place == "request" else USER
    result = RESULT.model_copy(update={"content": text}) if place == "result" else RESULT
    done = DONE.model_copy(update={"content": text}) if place == "answer" else DONE
    task, trajectory, verdict = make_item()
    spec = make_spec()
    if place == "tool":
        spec = spec.model_copy(
            update={"tools": tuple(one.model_copy(update={"description": text}) for one in spec.tools)}
        )
    fields = {name: getattr(trajectory, name) for name in Trajectory.model_fields}
    changed = Trajectory.model_construct(**{**fields, "messages": (user, call, result, done)})
    with pytest.raises(RecordDropped) as dropped:
        build_row(task, changed, verdict, spec)
    assert dropped.value.reason == "chat_template_token"


@pytest.mark.parametrize("text", ["a < b | c > d", "<b>bold</b> <section>", "[install] [1]", "<|", "x <y@z.org>", "|>"])
def test_ordinary_marks_in_texts_pass(text: str) -> None:
    assert row_with(USER, CALL, RESULT.model_copy(update={"content": text}), DONE)["messages"][2]["content"] == text


def test_row_is_conversational_with_tools():
    task, trajectory, verdict = make_item(3, turns=2)
    row = build_row(task, trajectory, verdict, make_spec())
    assert [message["role"] for message in row["messages"][:4]] == ["system", "user", "assistant", "tool"]
    assert row["messages"][2] == {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            call_row("call_0_a", "find_order", {"order_id": "W300"}),
            call_row("call_0_b", "ping", {}),
        ],
    }
    assert row["messages"][3].keys() == {"role", "tool_call_id", "name", "content"}
    assert [tool["function"]["name"] for tool in row["tools"]] == list(trajectory.tools)
    assert (row["turns"], row["tool_calls"], row["id"], row["seed"]) == (2, 8, trajectory.id, task.seed)
    assert row["verdict"]["outcome"] == "completed"


def test_only_data_holds_nulls():
    found = set(nulls(build_row(*make_item(0, turns=1), make_spec())["messages"]))
    assert found == {"$[7].tool_calls[0].function.arguments.tags[0].value.none"}


def test_name_of_a_result_comes_from_its_call():
    row = row_with(USER, CALL, RESULT.model_copy(update={"name": None}), DONE)
    assert row["messages"][2]["name"] == "ping"


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        pytest.param((), "no_messages", id="empty"),
        pytest.param((USER,), "no_messages", id="only-user"),
        pytest.param((USER, CALL, RESULT, USER), "last_message_not_assistant", id="ends-with-tool-and-user"),
        pytest.param((USER, CALL, RESULT), "last_message_not_assistant", id="ends-with-tool"),
        pytest.param((USER, RESULT, DONE), "result_without_call", id="orphan"),
        pytest.param((USER, CALL, RESULT, RESULT, DONE), "result_without_call", id="two-results"),
        pytest.param((USER, CALL, DONE), "call_without_result", id="unanswered"),
        pytest.param((USER, CALL), "call_without_result", id="ends-with-call"),
        pytest.param((USER, CALL, OTHER_RESULT, DONE), "result_of_another_tool", id="wrong-name"),
        pytest.param((USER, LIST_CALL, RESULT, DONE), "arguments_not_an_object", id="list-arguments"),
        pytest.param((USER, Message(role="system", content="x"), DONE), "system_message_not_first", id="late-system"),
        pytest.param(
            (USER, CALL.model_copy(update={"tool_calls": (CALL.tool_calls or ()) * 2}), RESULT, DONE),
            "call_ids_not_unique", id="same-ids",
        ),
    ],
)  # fmt: skip
def test_damaged_rows_are_refused(messages, reason):
    with pytest.raises(RecordDropped) as dropped:
        row_with(*messages)
    assert dropped.value.reason == reason


@pytest.mark.parametrize("trailing", [(USER,), (USER, USER)], ids=["one", "two"])
def test_trailing_user_messages_are_cut(trailing):
    assert row_with(USER, CALL, RESULT, DONE, *trailing) == row_with(USER, CALL, RESULT, DONE)


def test_tool_without_schema_is_refused():
    with pytest.raises(RecordDropped) as dropped:
        row_with(USER, DONE, tools=("ping", "gone"))
    assert (dropped.value.reason, dropped.value.detail) == ("tool_without_schema", "shop has no tool gone")


def test_records_must_belong_together():
    task, trajectory, _ = make_item(1)
    with pytest.raises(InputError, match="belongs to trajectory"):
        build_row(task, trajectory, make_item(2)[2], make_spec())
