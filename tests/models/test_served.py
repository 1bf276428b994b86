"""A model behind a real HTTP server that fails on purpose: every fault by its reason."""

import asyncio
from types import SimpleNamespace

import pytest
from chatting import board, calling, request, settings, usage_lines
from running_server import RunningServer

from trajsmith.models import ROLES, RoleSettings, RolesSettings, function_tool
from trajsmith.models.failures import FailedAttempt
from trajsmith.models.openai_server import OpenAIProvider, find_proxy
from trajsmith.models.registry import check_models
from trajsmith.models.retry import RetryingProvider
from trajsmith.records import InputError, ModelFault, RunError

pytestmark = pytest.mark.usefixtures("api")
TOOL = function_tool("look_up", "Look up a word.", {"type": "object", "properties": {"word": {"type": "string"}}})


# Failures that pass


@pytest.mark.parametrize(
    "fault", ["rate_limit", "server_error", "overloaded", "drop", "half", "garbage", "empty", "silent"]
)
async def test_a_failure_that_passes_is_waited_out(language_server, tmp_path, fault):
    before = language_server.stats()
    async with board(tmp_path, language_server.url) as models:
        reply = await models.role_model("agent").complete(request(f"once {fault}", fault, times=2))
    after = language_server.stats()
    assert reply.message.content.startswith("You said: once")
    assert after["requests"] - before["requests"] == 3
    assert after["faults"][fault] - before["faults"].get(fault, 0) == 2


async def test_a_stalled_request_costs_its_time_and_is_sent_again(language_server, tmp_path):
    async with board(tmp_path, language_server.url, timeout=0.2) as models:
        reply = await models.role_model("agent").complete(request("slow", "stall"))
    assert reply.message.content.startswith("You said: slow")


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ("rate_limit", "rate_limit", "HTTP 429: Rate limit reached."),
        ("server_error", "server", "HTTP 500: The server had an error."),
        ("overloaded", "server", "HTTP 503: Overloaded."),
        ("drop", "connection", "disconnected"),
        ("half", "connection", "not enough data"),
        ("garbage", "bad_reply", "the body is no JSON"),
        ("empty", "bad_reply", "the reply has no "),
        ("silent", "bad_reply", "the answer is empty"),
    ],
)
async def test_a_failure_that_stays_is_named_after_its_kind(language_server, tmp_path, fault, kind, said, caplog):
    caplog.set_level("INFO", "trajsmith.models")
    async with board(tmp_path, language_server.url, attempts=2) as models:
        with pytest.raises(ModelFault) as caught:
            await models.role_model("agent").complete(request(f"always {fault}", fault, times=9))
    assert caught.value.kind == kind
    assert said.lower() in caught.value.message.lower()
    retry, end = [record.getMessage() for record in caplog.records if record.name == "trajsmith.models.retry"]
    assert f": attempt 1 of 2 failed ({kind}: " in retry
    assert "request given up" in end and kind in end
    assert caught.value.message.endswith("(sent 2 times)")


async def test_a_stall_that_stays_ends_with_the_deadline(language_server, tmp_path):
    before = language_server.stats()["faults"].get("stall", 0)
    async with board(tmp_path, language_server.url, timeout=0.2, deadline=0.5, attempts=100) as models:
        with pytest.raises(ModelFault, match="no answer within") as caught:
            await models.role_model("agent").complete(request("always slow", "stall", times=200))
    assert caught.value.kind == "timeout"
    assert language_server.stats()["faults"]["stall"] - before <= 5


async def test_what_waited_for_its_turn_beyond_the_deadline_is_not_sent(language_server, tmp_path):
    waits = {"timeout": 3.0, "deadline": 2.0, "first_wait": 0.4, "longest_wait": 0.4}
    async with board(tmp_path, language_server.url, concurrency=1, **waits) as models:
        talker = models.role_model("agent")
        await talker.complete(request("warm"))  # connected, and everything imported
        before = language_server.stats()["requests"]
        late = asyncio.create_task(talker.complete(request("late", "server_error")))
        await asyncio.sleep(0.05)  # it has failed once and waits; the next one takes the only place
        with pytest.raises(ModelFault):
            await talker.complete(request("in the way", "stall"))
        with pytest.raises(ModelFault, match="no answer within 2 s") as caught:
            await late
    assert caught.value.kind == "timeout"
    assert language_server.stats()["requests"] == before + 2


async def test_what_a_server_asks_to_wait_is_waited(language_server, tmp_path):
    language_server.change(retry_after=3600)  # longer than the deadline: not waited for at all
    try:
        async with board(tmp_path, language_server.url, deadline=60) as models:
            with pytest.raises(ModelFault, match="429") as caught:
                await models.role_model("agent").complete(request("later", "rate_limit"))
        assert caught.value.kind == "rate_limit"
        language_server.change(retry_after=0.4)
        async with board(tmp_path, language_server.url) as models:
            assert (await models.role_model("agent").complete(request("later", "rate_limit"))).message.content
    finally:
        language_server.change(retry_after=0.05)


# Failures that stay


@pytest.mark.parametrize(("fault", "kind"), [("overflow", "context_overflow"), ("content_filter", "content_filter")])
async def test_what_will_not_pass_is_sent_once(language_server, tmp_path, fault, kind):
    before = language_server.stats()["requests"]
    async with board(tmp_path, language_server.url) as models:
        with pytest.raises(ModelFault) as caught:
            await models.role_model("agent").complete(request("never", fault, times=9))
    assert caught.value.kind == kind
    assert language_server.stats()["requests"] == before + 1


async def test_an_answer_that_cannot_be_used_is_kept_for_inspection_and_paid(language_server, tmp_path):
    async with board(tmp_path, language_server.url, attempts=2) as models:
        with pytest.raises(ModelFault) as caught:
            await models.role_model("agent").complete(request("inspect", "empty", times=9))
    assert '"model": "test-model"' in caught.value.reply
    assert [(row["usable"], row["prompt_tokens"] > 0) for row in usage_lines(tmp_path)] == [(False, True)] * 2


async def test_an_outage_stops_the_run_and_drops_nothing(tmp_path):
    with RunningServer() as server:
        async with board(tmp_path, server.url, attempts=1, outage_after=3, preflight=False) as models:
            talker = models.role_model("agent")
            server.stop()
            for number in range(2):
                with pytest.raises(ModelFault) as caught:
                    await talker.complete(request(f"gone {number}"))
                assert caught.value.kind == "connection"
            with pytest.raises(RunError, match=r"3 requests in a row without an answer.*resume"):
                await talker.complete(request("gone for good"))


# Calls


async def test_calls_of_tools_come_as_objects(language_server, tmp_path):
    async with board(tmp_path, language_server.url) as models:
        reply = await models.role_model("agent").complete(
            request("call", reply=calling("look_up", '{"word": "tree"}'), tools=(TOOL,))
        )
    assert reply.finish_reason == "tool_calls"
    assert [(call.id, call.function.name, call.function.arguments) for call in reply.message.tool_calls] == [
        ("c1", "look_up", {"word": "tree"})
    ]
    assert reply.malformed == ()


async def test_a_malformed_call_is_not_a_call(language_server, tmp_path):
    reply = calling("look_up", '{"word": "tree"}')
    async with board(tmp_path, language_server.url) as models:
        got = await models.role_model("agent").complete(request("bad", "bad_arguments", reply=reply, tools=(TOOL,)))
    assert got.message.tool_calls is None
    assert [(call.name, call.text) for call in got.malformed] == [("look_up", '{"unfinished": ')]
    assert "no JSON" in got.malformed[0].error


async def test_a_wrong_tool_name_is_the_models_own_mistake(language_server, tmp_path):
    reply = calling("look_up", '{"word": "tree"}')
    async with board(tmp_path, language_server.url) as models:
        got = await models.role_model("agent").complete(request("wrong", "wrong_tool", reply=reply, tools=(TOOL,)))
    assert got.message.tool_calls[0].function.name == "no_such_tool"


# What is wrong before any work

AGENT = RolesSettings(agent=RoleSettings(model="main"))
CANARY = "sk-canary-4711"


@pytest.mark.parametrize(
    ("server_settings", "model_settings", "said"),
    [
        ({"key": "right"}, {"key_env": "TEST_KEY"}, "the server refuses the key"),
        ({}, {"key_env": "NO_SUCH_KEY"}, "the environment variable NO_SUCH_KEY is not set"),
        ({}, {"model": "tset-model"}, 'the server has no such model; did you mean "test-model"?'),
        ({}, {"base_url": "http://127.0.0.1:9/v1"}, "cannot be reached"),
    ],
    ids=["wrong key", "no key", "unknown model", "wrong address"],
)
async def test_wrong_settings_are_known_before_any_request(monkeypatch, server_settings, model_settings, said):
    monkeypatch.setenv("TEST_KEY", CANARY)
    with RunningServer(**server_settings) as server:
        with pytest.raises(InputError, match=said) as caught:
            await check_models({"main": settings(server.url, **model_settings)}, AGENT, ROLES)
        assert server.stats()["requests"] == 0
    assert CANARY not in str(caught.value)
    assert "models.main" in str(caught.value)


@pytest.mark.parametrize(
    ("server_settings", "model_settings", "roles", "said"),
    [
        ({"refuses": ["tools", "models"]}, {}, ["agent"], "the server takes no tools .*--enable-auto-tool-choice"),
        ({"refuses": ["models"]}, {"model": "other"}, [], "the server has no such model"),
        ({"refuses": ["models"], "key": "right"}, {"key_env": "TEST_KEY"}, ["agent"], "the server refuses the key"),
    ],
    ids=["no tools", "unknown model", "wrong key"],
)
async def test_without_a_list_of_models_the_first_request_tells(
    monkeypatch, tmp_path, server_settings, model_settings, roles, said
):
    monkeypatch.setenv("TEST_KEY", CANARY)
    with RunningServer(**server_settings) as server:
        async with board(tmp_path, server.url, **model_settings) as models:
            with pytest.raises(InputError, match=said) as caught:
                await models.run_preflight(["writer", *roles])
        assert server.stats()["requests"] <= 1
    assert CANARY not in str(caught.value)


async def test_the_key_stands_nowhere(monkeypatch, tmp_path, caplog):
    caplog.set_level("DEBUG")
    monkeypatch.setenv("TEST_KEY", CANARY)
    with RunningServer(key=CANARY) as server:
        async with board(tmp_path, server.url, key_env="TEST_KEY") as models:
            await models.role_model("agent").complete(request("secret"))
            server.change(key="changed")
            with pytest.raises(InputError) as caught:
                await models.role_model("agent").complete(request("secret too"))
    assert "[key]" in str(caught.value)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 2
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []
    assert CANARY not in caplog.text


@pytest.mark.parametrize("value", [CANARY, "a b"])
def test_a_key_in_the_place_of_its_name_is_refused_unseen(value):
    with pytest.raises(InputError, match="must name an environment variable") as caught:
        settings("http://127.0.0.1:9/v1", key_env=value)
    assert value not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, None),
        ({"https_proxy": "http://there:3128"}, "http://there:3128"),
        ({"all_proxy": "http://there:3128"}, "http://there:3128"),
        ({"http_proxy": "http://there:3128"}, None),
        ({"https_proxy": "http://there:3128", "no_proxy": "example.org"}, None),
    ],
    ids=["none", "for https", "for all", "for http only", "but not there"],
)
def test_the_proxy_of_the_environment_is_used(monkeypatch, environment, found):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert find_proxy("https://api.example.org/v1") == found


# Limits


async def test_no_more_requests_are_in_flight_than_allowed(tmp_path):
    with RunningServer(latency=0.02) as server:
        async with board(tmp_path, server.url, concurrency=4) as models:
            talker = models.role_model("agent")
            await asyncio.gather(*(talker.complete(request(f"many {number}")) for number in range(20)))
        assert server.stats()["most_in_flight"] == 4


async def test_requests_per_minute_are_spread(language_server, tmp_path):
    async with board(tmp_path, language_server.url, requests_per_minute=1200) as models:
        talker = models.role_model("agent")
        loop = asyncio.get_running_loop()
        start = loop.time()
        await asyncio.gather(*(talker.complete(request(f"spread {number}")) for number in range(30)))
        assert loop.time() - start >= 0.45  # 20 at once, then 20 a second


async def test_a_request_of_more_tokens_than_a_minute_has_still_goes(language_server, tmp_path):
    async with board(tmp_path, language_server.url, tokens_per_minute=600) as models:
        assert (await models.role_model("agent").complete(request("long " * 2000))).usage.prompt_tokens > 600


def test_waits_grow_with_jitter_up_to_the_longest(language_server):
    model = settings(language_server.url, first_wait=1.0, longest_wait=8.0)
    persistent = RetryingProvider("main", OpenAIProvider("main", model), model, "once more")
    failed = FailedAttempt("server", "no", retryable=True)
    for attempt, span in [(1, 1.0), (2, 2.0), (4, 8.0), (9, 8.0)]:
        state = SimpleNamespace(attempt_number=attempt, outcome=SimpleNamespace(exception=lambda: failed))
        waits = [persistent._wait(state) for _ in range(50)]
        assert span / 2 <= min(waits) < max(waits) <= span


def test_a_role_goes_before_its_model_and_a_request_before_both(language_server, tmp_path):
    async def seen(**more):
        async with board(
            tmp_path, language_server.url, role={"temperature": 0.7}, temperature=0.1, top_p=0.5
        ) as models:
            shared = models.role_model("agent")._shared
            asked = []

            async def complete(request):
                asked.append(request)

            shared.complete = complete
            await models.role_model("agent").complete(request("x", **more))
            return asked[0]

    plain, own = asyncio.run(seen()), asyncio.run(seen(temperature=0.0, purpose="agent.plan"))
    assert (plain.temperature, plain.top_p, plain.max_tokens, plain.purpose) == (0.7, 0.5, None, "agent")
    assert (own.temperature, own.purpose) == (0.0, "agent.plan")


def test_keys_that_a_server_repeats_are_taken_out(monkeypatch):
    monkeypatch.setenv("SHOP_KEY", "swordfish-99")
    monkeypatch.setenv("OTHER_TOKEN", "marlin-12345")
    model = OpenAIProvider("big", settings("http://localhost:1/v1", key_env="SHOP_KEY"))
    content = b'{"content": "swordfish-99 and marlin-12345 \xff"}'
    assert model.hide_keys(content) == b'{"content": "[redacted] and [redacted] \xff"}'
