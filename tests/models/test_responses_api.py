"""The Responses API: what is sent and read, checked by the openai package's own types and client."""

import asyncio
import json

import pytest
from chatting import board, calling, request, settings, usage_lines
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter
from running_server import RunningServer

from trajsmith.models import ChatRequest, ModelSettings, function_tool
from trajsmith.models.failures import FailedAttempt, HttpErrorResponse
from trajsmith.models.openai_server import OpenAIProvider
from trajsmith.models.responses_api import build_responses_body, parse_response
from trajsmith.records import FunctionCall, InputError, Message, ToolCall

TOOL = function_tool("look_up", "Look up a word.", {"type": "object", "properties": {"word": {"type": "string"}}})
API = {"api": "responses"}
THINKS = """
def answer(request):
    roles = [message["role"] for message in request["messages"]]
    turn, results = roles.count("user"), roles[::-1][: roles[::-1].index("user")].count("tool")
    thought = {"reasoning_content": f"Thought {results}."}
    if results:
        return {"content": f"Done with {results}.", **thought}
    calls = [
        {"id": f"{name}{turn}", "type": "function", "function": {"name": "look_up", "arguments": '{"word": 1}'}}
        for name in "ab"[:3 - turn]
    ]
    return {"content": "", "tool_calls": calls, **thought}
"""


def usage(**counts):
    return {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10, **counts}


def response(*output, **more):
    body = {"id": "r", "object": "response", "model": "m", "status": "completed", "output": list(output), **more}
    return json.dumps({"usage": usage(), **body}).encode()


def text(written):
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": written}]}


def refusal(why):
    return {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": why}]}


def call(arguments="{}", name="look_up", **more):
    return {"type": "function_call", "call_id": "c1", "name": name, "arguments": arguments, **more}


def thought(**more):
    return {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Hm."}], **more}


def conversation():
    calls = tuple(
        ToolCall(id=f"c{number}", function=FunctionCall(name="look_up", arguments={"word": "é"})) for number in (1, 2)
    )
    return (
        Message(role="system", content="Be kind."),
        Message(role="user", content="hello"),
        Message(role="assistant", content="One moment.", tool_calls=calls, reasoning_content="It is asked for."),
        Message(role="tool", content="1", tool_call_id="c1", name="look_up"),
        Message(role="tool", content="2", tool_call_id="c2", name="look_up"),
    )


# What is sent


def test_a_request_is_one_of_the_clients_own_type():
    asked = ChatRequest(
        messages=conversation(), tools=(TOOL,), reply_schema={"type": "object"}, schema_name="Order", temperature=0.5,
        top_p=0.9, max_tokens=50, seed=3,
    )  # fmt: skip
    model = settings("http://localhost:1/v1", extra_body={"text": {"verbosity": "low"}, "truncation": "auto"}, **API)
    body = build_responses_body(asked, model, native=True, encrypted=True)
    TypeAdapter(ResponseCreateParamsNonStreaming).validate_python(body)
    assert body == {
        "model": "test-model",
        "input": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "One moment."},
            {"type": "function_call", "call_id": "c1", "name": "look_up", "arguments": '{"word":"é"}'},
            {"type": "function_call", "call_id": "c2", "name": "look_up", "arguments": '{"word":"é"}'},
            {"type": "function_call_output", "call_id": "c1", "output": "1"},
            {"type": "function_call_output", "call_id": "c2", "output": "2"},
        ],
        "store": False,
        "stream": False,
        "tools": [{"type": "function", "strict": False, **TOOL["function"]}],
        "tool_choice": "auto",
        "include": ["reasoning.encrypted_content"],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 50,
        "truncation": "auto",
        "text": {
            "verbosity": "low",
            "format": {"type": "json_schema", "name": "Order", "schema": {"type": "object"}, "strict": True},
        },
    }


def test_what_the_api_does_not_have_is_refused_and_not_left_out():
    asked = request("x", stop=("end",))
    with pytest.raises(FailedAttempt, match="no stop sequences") as caught:
        build_responses_body(asked, settings("http://localhost:1/v1", **API), native=True, encrypted=True)
    assert (caught.value.kind, caught.value.retryable) == ("bad_request", False)
    own = settings("http://localhost:1/v1", wire_names={"stop": "stop", "seed": "seed"}, **API)
    body = build_responses_body(request("x", stop=("end",), seed=3), own, native=True, encrypted=True)
    assert (body["stop"], body["seed"]) == (["end"], 3)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"provider": "vllm"}, "api: responses is for provider openai"),
        ({"reasoning_key": "reasoning_content"}, "reasoning_key is for api: chat_completions"),
        ({"wire_names": {"max_tokens": "max_completion_tokens"}}, "the Responses API calls it max_output_tokens"),
        ({"api": "completions"}, "chat_completions"),
    ],
    ids=["provider", "reasoning", "name of the other api", "unknown"],
)
def test_settings_that_do_not_go_with_it_are_refused(more, said):
    with pytest.raises((InputError, ValueError), match=said):
        ModelSettings(**{"model": "m", **API, **more})


# The client of the openai package


async def test_the_client_of_the_openai_package_reads_what_the_test_server_says(tmp_path):
    (tmp_path / "thinks.py").write_text(THINKS)
    asked = ChatRequest(messages=conversation()[:2], tools=(TOOL,), max_tokens=50)
    with RunningServer(script=str(tmp_path / "thinks.py")) as server:
        model = settings(server.url, **API)
        client = AsyncOpenAI(api_key="none", base_url=server.url)
        theirs = await client.responses.create(**build_responses_body(asked, model, native=True, encrypted=True))
        provider = OpenAIProvider("main", model)
        ours = await provider.send(asked)
        Response.model_validate(theirs.to_dict(), strict=True)
        calls = [item for item in theirs.output if item.type == "function_call"]
        again = [
            *theirs.output,
            *({"type": "function_call_output", "call_id": c.call_id, "output": "1"} for c in calls),
        ]
        tools = [{"type": "function", "strict": False, **TOOL["function"]}]
        more = await client.responses.create(model="test-model", store=False, tools=tools, input=[
            {"role": "system", "content": "Be kind."}, {"role": "user", "content": "hello"},
            *(item if isinstance(item, dict) else item.to_dict() for item in again)])  # fmt: skip
        await asyncio.gather(provider.close(), client.close())
    assert [(c.call_id, c.name, json.loads(c.arguments)) for c in calls] == [
        (c.id, c.function.name, c.function.arguments) for c in ours.message.tool_calls
    ]
    assert ours.message.reasoning_content == "Thought 0."
    assert (ours.usage.prompt_tokens, ours.usage.completion_tokens) == (
        theirs.usage.input_tokens, theirs.usage.output_tokens,
    )  # fmt: skip
    assert more.output_text == "Done with 2."


# Reasoning that goes back


async def play_turn(model, messages, names):
    """Let the model answer until it calls no tool, each call with a result."""
    while True:
        reply = await model.complete(ChatRequest(messages=tuple(messages), tools=(TOOL,), seed=5))
        names.append((reply.message.content, reply.cached))
        messages.append(reply.message)
        if not reply.message.tool_calls:
            return
        messages += [Message(role="tool", content="1", tool_call_id=c.id) for c in reply.message.tool_calls]


async def test_reasoning_goes_back_within_its_turn_also_after_a_stop(tmp_path):
    (tmp_path / "thinks.py").write_text(THINKS)
    messages, said = list(conversation()[:2]), []
    with RunningServer(script=str(tmp_path / "thinks.py")) as server:
        async with board(tmp_path, server.url, **API) as models:
            await play_turn(models.role_model("agent"), messages, said)
            assert server.stats()["paths"]["reasoning"] == 1
            messages.append(Message(role="user", content="and more?"))
            await play_turn(models.role_model("agent"), messages[:2], said)  # from the cache
            asked = ChatRequest(messages=tuple(messages), tools=(TOOL,), seed=5)
            first = (await models.role_model("agent").complete(asked)).message
            messages += [first, Message(role="tool", content="1", tool_call_id="a2")]
            assert server.stats()["paths"]["reasoning"] == 1  # nothing of the turn before
        async with board(tmp_path, server.url, **API) as models:  # a resumed run
            await models.role_model("agent").complete(asked.model_copy(update={"messages": tuple(messages)}))
        stats = server.stats()
    assert said == [("", False), ("Done with 2.", False), ("", True), ("Done with 2.", True)]
    assert stats["paths"]["reasoning"] == 2
    assert stats["paths"]["/responses"] == 4


async def test_a_message_that_was_changed_is_sent_as_it_is_now(tmp_path):
    (tmp_path / "thinks.py").write_text(THINKS)
    messages = list(conversation()[:2])
    with RunningServer(script=str(tmp_path / "thinks.py")) as server:
        async with board(tmp_path, server.url, **API) as models:
            reply = await models.role_model("agent").complete(ChatRequest(messages=tuple(messages), tools=(TOOL,)))
            cut = reply.message.model_copy(update={"tool_calls": reply.message.tool_calls[:1]})
            messages += [cut, Message(role="tool", content="1", tool_call_id="a1")]
            again = await models.role_model("agent").complete(ChatRequest(messages=tuple(messages), tools=(TOOL,)))
        assert server.stats()["paths"].get("reasoning", 0) == 0
    assert again.message.content == "Done with 1."


async def test_a_model_without_encrypted_reasoning_is_asked_without_from_then_on(tmp_path):
    (tmp_path / "thinks.py").write_text(THINKS)
    messages, said = list(conversation()[:2]), []
    with RunningServer(script=str(tmp_path / "thinks.py"), refuses=["encryption"]) as server:
        async with board(tmp_path, server.url, **API) as models:
            await play_turn(models.role_model("agent"), messages, said)
        stats = server.stats()
    assert [content for content, _ in said] == ["", "Done with 2."]
    assert stats["paths"]["/responses"] == 3  # one refused
    assert stats["paths"].get("reasoning", 0) == 0
    assert messages[2].reasoning_content == "Thought 0."


# What is read


def test_the_parts_of_a_response_become_one_message():
    shown = thought(content=[{"type": "reasoning_text", "text": "Let me see."}])
    reply = parse_response(response(
        shown, text("One "), text("moment."), call('{"word": "a"}'), call('{"word": "b"}', call_id="c2"),
        {"type": "web_search_call", "id": "w"},
        usage=usage(input_tokens_details={"cached_tokens": 5}, output_tokens_details={"reasoning_tokens": 2}),
    ))  # fmt: skip
    assert reply.message.content == "One moment."
    assert reply.message.reasoning_content == "Let me see."
    assert [(c.id, c.function.arguments) for c in reply.message.tool_calls] == [
        ("c1", {"word": "a"}),
        ("c2", {"word": "b"}),
    ]
    assert reply.usage.model_dump() == {
        "requests": 1, "prompt_tokens": 7, "cached_tokens": 5, "completion_tokens": 3, "reasoning_tokens": 2,
    }  # fmt: skip
    assert (reply.finish_reason, reply.model) == ("tool_calls", "m")
    assert [item["type"] for item in reply.items] == [
        "reasoning",
        "message",
        "message",
        "function_call",
        "function_call",
    ]


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("Encrypted content is not supported with this model.", True),
        ("Unknown include value: reasoning.encrypted_content", True),
        ("Unknown parameter: 'include[0]'.", True),
        ("unknown field 'temperature', please include model", False),
        ("extra inputs are not permitted; include a model", False),
    ],
)
def test_only_a_refusal_of_encryption_turns_it_off(said, refused):
    assert (
        HttpErrorResponse.read(400, json.dumps({"error": {"message": said}}).encode(), {}).about_encryption() is refused
    )


@pytest.mark.parametrize(
    "item", [thought(), thought(encrypted_content=None), thought(encrypted_content="")], ids=["none", "null", "empty"]
)
def test_reasoning_that_only_the_server_has_does_not_go_back(item):
    assert parse_response(response(item, call())).items == ()


@pytest.mark.parametrize(
    "details", [{"reason": "max_output_tokens"}, {"reason": "max_tokens"}, {"reason": None}, {}, None, "cut"], ids=str
)
@pytest.mark.parametrize(
    ("output", "finish", "malformed"),
    [
        ([text("Once upon")], "length", ()),
        ([call('{"word": "tr', status="incomplete")], "length", ('{"word": "tr',)),
    ],
    ids=["text", "call"],
)
def test_a_response_that_was_cut_says_so(output, finish, malformed, details):
    reply = parse_response(response(*output, status="incomplete", incomplete_details=details))
    assert reply.finish_reason == finish and reply.cut
    assert tuple(one.text for one in reply.malformed) == malformed


CUT = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
FILTERED = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}


def failed(code):
    return response(status="failed", error={"code": code, "message": "no"})


@pytest.mark.parametrize(
    ("body", "kind", "retryable", "said"),
    [
        (b"<html>", "bad_reply", True, "the body is no JSON"),
        (b"[]", "bad_reply", True, "the body is no JSON object"),
        (b"{}", "bad_reply", True, "the reply has no output"),
        (b'{"output": {}}', "bad_reply", True, "the reply has no output"),
        (b'{"error": "busy"}', "bad_reply", True, "the reply has an error in place of an answer"),
        (response(), "bad_reply", True, "the answer is empty"),
        (response(5, None, [], {"type": 5}), "bad_reply", True, "the answer is empty"),
        (response(text("")), "bad_reply", True, "the answer is empty"),
        (response(thought(encrypted_content="x")), "bad_reply", True, "the answer is empty"),
        (response(thought(), **CUT), "bad_reply", False, "cut at max_tokens before its first word"),
        (response(text("a"), status="in_progress"), "bad_reply", True, "the response is not finished (in_progress)"),
        (response(text("a"), **FILTERED), "content_filter", False, "incomplete: content_filter"),
        (response(refusal("I will not.")), "content_filter", False, "I will not."),
        (failed("server_error"), "server", True, "the response failed: server_error: no"),
        (failed("rate_limit_exceeded"), "rate_limit", True, "the response failed: rate_limit_exceeded: no"),
        (failed("invalid_prompt"), "bad_request", False, "the response failed: invalid_prompt: no"),
        (failed(["x"]), "bad_reply", True, "the response failed: ['x']: no"),
        (b'{"output": [' + b"[]," * 600_000 + b"[]]}", "bad_reply", True, "more than 1000000 values"),
    ],
    ids=lambda value: value[:40].decode() if isinstance(value, bytes) else "",
)
def test_a_reply_that_cannot_be_used_is_a_failed_attempt(body, kind, retryable, said):
    with pytest.raises(FailedAttempt) as caught:
        parse_response(body)
    assert (caught.value.kind, caught.value.retryable) == (kind, retryable)
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("item", "error"),
    [
        (call('{"a": '), "the arguments are no JSON"),
        (call("[]"), "the arguments are no JSON object"),
        (call("{}", name=None), "the call names no tool"),
        (call('{"a":' * 300 + "1" + "}" * 300), "nest deeper than 100 levels"),
        (call(5), "the arguments are no JSON object"),
    ],
    ids=["cut", "a list", "no name", "deep", "a number"],
)
def test_a_call_that_cannot_be_made_is_malformed_and_never_goes_back(item, error):
    reply = parse_response(response(thought(encrypted_content="x"), item))
    assert not reply.message.tool_calls
    assert [error in one.error for one in reply.malformed] == [True]
    assert reply.model_dump_json()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
WHOLE = json.loads(response(
    thought(encrypted_content="x", content=[{"type": "reasoning_text", "text": "a"}]), text("b"), call(),
    error=None, incomplete_details={"reason": "max_output_tokens"}, status="incomplete",
    usage=usage(input_tokens_details={"cached_tokens": 5}, output_tokens_details={"reasoning_tokens": 2}),
))  # fmt: skip


def list_places(value, path=()):
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from list_places(inner, (*path, key))


@given(st.sampled_from(list(list_places(WHOLE))[1:]), JSON)
def test_any_value_in_any_place_gives_a_reply_or_a_failed_attempt(path, value):
    body = json.loads(json.dumps(WHOLE))
    inner = body
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    try:
        reply = parse_response(json.dumps(body).encode())
    except FailedAttempt:
        return
    assert reply.model_dump_json()


# Costs and batches


async def test_tokens_are_counted_and_paid_as_everywhere(language_server, tmp_path):
    price = {"prompt": 1_000_000.0, "completion": 1_000_000.0}
    said = {"content": "hi", "usage": [10, 4]}
    async with board(tmp_path, language_server.url, price=price, **API) as models:
        await models.role_model("agent").complete(request("count", reply=said))
    (line,) = usage_lines(tmp_path)
    assert (line["prompt_tokens"], line["completion_tokens"], line["cost"]) == (10, 4, 14.0)


async def test_the_answers_of_one_api_are_not_those_of_the_other(language_server, tmp_path):
    before = language_server.stats()["requests"]
    for api in ("chat_completions", "responses", "responses"):
        async with board(tmp_path, language_server.url, api=api) as models:
            await models.role_model("agent").complete(request("either"))
    assert language_server.stats()["requests"] == before + 2


async def test_a_batch_is_one_of_this_api(tmp_path):
    batch = {"batch": True, "batch_quiet": 0.05, "batch_poll": 0.05}
    with RunningServer() as server:
        async with board(tmp_path, server.url, **batch, **API) as models:
            writer = models.role_model("writer")
            replies = await asyncio.gather(*(writer.complete(request(name)) for name in "ab"))
        paths = server.stats()["paths"]
    assert [reply.message.content for reply in replies] == ["You said: a", "You said: b"]
    assert (paths["/files"], paths["/batches"]) == (1, 1)
    assert "/responses" not in paths


async def test_after_a_malformed_call_nothing_goes_back_that_a_server_could_not_read(language_server, tmp_path):
    said = {**calling("look_up", '{"unfinished": '), "reasoning_content": "Hm."}
    asked = request("bad", reply=said, tools=(TOOL,))
    async with board(tmp_path, language_server.url, **API) as models:
        reply = await models.role_model("agent").complete(asked)
        (broken,) = reply.malformed
        mended = ToolCall(id=broken.id, function=FunctionCall(name=broken.name, arguments={}))
        message = reply.message.model_copy(update={"tool_calls": (mended,)})
        told = Message(role="tool", content=broken.error, tool_call_id=broken.id)
        after = asked.model_copy(update={"messages": (*asked.messages, message, told)})
        again = await models.role_model("agent").complete(after)
    assert again.message.content == f"You said: {broken.error}"


@pytest.mark.parametrize("place", ["text", "arguments", "summary"])
async def test_a_key_that_the_server_repeats_is_taken_out(monkeypatch, language_server, tmp_path, place):
    monkeypatch.setenv("SHOP_KEY", "swordfish-99")
    said = {
        "text": {"content": "swordfish-99"},
        "arguments": calling("look_up", '{"word": "swordfish-99"}'),
        "summary": {"content": "hi", "reasoning_content": "swordfish-99"},
    }[place]
    async with board(tmp_path, language_server.url, key_env="SHOP_KEY", **API) as models:
        reply = await models.role_model("agent").complete(request(place, reply=said, tools=(TOOL,)))
    assert "[redacted]" in reply.message.model_dump_json()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"swordfish-99" in path.read_bytes()]
