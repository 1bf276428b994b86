"""One model on several servers: dialogues stay where they began, weights hold, and failing servers are left out."""

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest
from chatting import board, request, settings
from running_server import RunningServer

from trajsmith.models import ChatRequest
from trajsmith.models.failures import FailedAttempt
from trajsmith.models.model import ChatReply
from trajsmith.models.replicas import LOAD_FACTOR, ReplicatedProvider
from trajsmith.models.settings import ModelSettings
from trajsmith.records import InputError, Message, ModelFault, ModelFaultKind, RunError

URLS = tuple(f"http://gpu{number}:8000/v1" for number in range(3))


class FakeServer:
    """Notes what it is asked; fails by `kind` while that is set."""

    def __init__(self, settings: ModelSettings) -> None:
        self.settings = settings
        self.asked: list[ChatRequest] = []
        self.kind: ModelFaultKind | None = None
        self.gate: asyncio.Event | None = None
        self.wrong = ""
        self.after: float | None = None
        self.most = self.now = 0

    async def send(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.gate is not None:
                await self.gate.wait()
                if self.gate is None:
                    return self._answer()
        finally:
            self.now -= 1
        if self.wrong:
            raise InputError(self.wrong)
        if self.kind is not None:
            raise FailedAttempt(self.kind, "broken", retryable=True, after=self.after)
        return self._answer()

    def _answer(self) -> ChatReply:
        return ChatReply(message=Message(role="assistant", content=self.settings.base_url))

    async def check(self) -> bool:
        if self.wrong:
            raise InputError(self.wrong)
        return True

    async def close(self) -> None:
        self.asked.clear()


def open_servers(*replicas: object, **more: object) -> tuple[ReplicatedProvider, list[FakeServer]]:
    servers: list[FakeServer] = []

    def open_one(entry: str, one: ModelSettings) -> FakeServer:
        servers.append(FakeServer(one))
        return servers[-1]

    return ReplicatedProvider("main", settings(URLS[0], replicas=replicas or URLS[1:], **more), open_one), servers


def dialogue(number: int, turns: int = 1) -> ChatRequest:
    messages = [Message(role="system", content="policy"), Message(role="user", content=f"request {number}")]
    for turn in range(turns - 1):
        messages += [Message(role="assistant", content="done"), Message(role="user", content=f"and {turn}")]
    return ChatRequest(messages=tuple(messages))


async def ask(provider: ReplicatedProvider, one: ChatRequest) -> str | None:
    return (await provider.send(one)).message.content


async def test_a_dialogue_stays_on_one_server() -> None:
    provider, _ = open_servers()
    first = [await ask(provider, dialogue(number)) for number in range(30)]
    later = [await ask(provider, dialogue(number, turns=4)) for number in range(30)]
    assert first == later
    assert set(first) == set(URLS)


async def test_dialogues_are_spread_by_weight() -> None:
    provider, _ = open_servers(URLS[1], {"base_url": URLS[2], "weight": 2})
    counts = Counter([await ask(provider, dialogue(number)) for number in range(4000)])
    assert counts[URLS[2]] == pytest.approx(2000, abs=150)
    assert counts[URLS[0]] == pytest.approx(1000, abs=150)


async def test_no_server_gets_more_than_its_share_at_a_time() -> None:
    provider, servers = open_servers()
    for server in servers:
        server.gate = asyncio.Event()
    same = [
        asyncio.create_task(provider.send(dialogue(7, turns=turns))) for turns in range(1, 31)
    ]  # all want one server
    await asyncio.sleep(0)
    assert max(server.now for server in servers) <= LOAD_FACTOR * 31 / 3 + 1
    for server in servers:
        server.gate.set()
    await asyncio.gather(*same)


@pytest.mark.parametrize("kind", ["connection", "server", "rate_limit", "timeout"])
async def test_a_server_that_fails_is_left_out_until_it_is_back(kind: ModelFaultKind) -> None:
    provider, servers = open_servers(first_wait=0.05, longest_wait=0.05)
    servers[1].kind = kind
    answers = [await ask(provider, dialogue(number)) for number in range(30)]
    assert set(answers) == {URLS[0], URLS[2]}
    assert len(servers[1].asked) < 5, "once in a while, not with each dialogue"
    servers[1].kind = None
    await asyncio.sleep(0.06)
    assert URLS[1] in [await ask(provider, dialogue(number)) for number in range(30)]


async def test_a_failure_of_the_request_is_not_sent_on() -> None:
    provider, servers = open_servers()
    for server in servers:
        server.kind = "context_overflow"
    with pytest.raises(FailedAttempt, match="broken"):
        await provider.send(dialogue(1))
    assert sum(len(server.asked) for server in servers) == 1


async def test_when_all_fail_the_attempt_has_failed() -> None:
    provider, servers = open_servers()
    for server in servers:
        server.kind = "server"
    with pytest.raises(FailedAttempt):
        await provider.send(dialogue(1))
    assert [len(server.asked) for server in servers] == [1, 1, 1]
    with pytest.raises(FailedAttempt):
        await provider.send(dialogue(1))
    assert sum(len(server.asked) for server in servers) == 4, "the one that rests shortest"


async def test_a_server_that_gives_no_answer_in_time_is_left_out() -> None:
    provider, servers = open_servers(first_wait=5, longest_wait=5, timeout=0.05)
    asked = dialogue(1)
    address = await ask(provider, asked)
    stuck = next(server for server in servers if server.settings.base_url == address)
    stuck.gate = asyncio.Event()
    assert await ask(provider, asked) not in (None, address), "the next server, in the same attempt"
    stuck.asked.clear()
    assert await ask(provider, asked) != address
    assert stuck.asked == []


async def test_a_request_that_is_given_up_blames_no_server() -> None:
    provider, servers = open_servers(first_wait=5, longest_wait=5)
    address = await ask(provider, dialogue(1))
    slow = next(server for server in servers if server.settings.base_url == address)
    slow.gate = asyncio.Event()
    task = asyncio.create_task(provider.send(dialogue(1)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    slow.gate = None
    assert await ask(provider, dialogue(1)) == address


async def test_a_request_that_waits_long_goes_to_a_second_server() -> None:
    provider, servers = open_servers(hedge_after=0.05)
    address = await ask(provider, dialogue(1))
    slow = next(server for server in servers if server.settings.base_url == address)
    slow.gate = asyncio.Event()
    assert await ask(provider, dialogue(1)) not in (None, address)
    assert slow.now == 0, "it is given up"
    assert sum(len(server.asked) for server in servers) == 3
    slow.gate = None
    assert await ask(provider, dialogue(1)) == address, "being slow is no failure"


async def test_who_answers_soon_is_the_only_one_asked() -> None:
    provider, servers = open_servers(hedge_after=5)
    await asyncio.gather(*(ask(provider, dialogue(number)) for number in range(20)))
    assert sum(len(server.asked) for server in servers) == 20


async def test_the_slow_answer_counts_where_the_second_server_fails() -> None:
    provider, servers = open_servers(hedge_after=0.05, first_wait=5, longest_wait=5)
    address = await ask(provider, dialogue(1))
    slow = next(server for server in servers if server.settings.base_url == address)
    slow.gate = asyncio.Event()
    for server in servers:
        server.kind = None if server is slow else "connection"
    asked = asyncio.create_task(ask(provider, dialogue(1)))
    await asyncio.sleep(0.2)
    assert not asked.done() and sum(len(server.asked) for server in servers) == 3
    slow.gate.set()
    assert await asked == address


async def test_a_third_server_is_asked_when_two_have_failed() -> None:
    provider, servers = open_servers(hedge_after=0.05, timeout=0.2)
    first, second, third = provider._order(dialogue(1))
    by_address = {server.settings.base_url: server for server in servers}
    by_address[first.address].gate = by_address[second.address].gate = asyncio.Event()
    assert await ask(provider, dialogue(1)) == third.address
    assert all(len(server.asked) == 1 for server in servers)


async def test_a_hedged_request_that_is_given_up_is_given_up_everywhere() -> None:
    provider, servers = open_servers(hedge_after=0.02)
    for server in servers:
        server.gate = asyncio.Event()
    task = asyncio.create_task(provider.send(dialogue(1)))
    await asyncio.sleep(0.1)
    assert sum(server.now for server in servers) == 2
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert sum(server.now for server in servers) == 0


async def test_a_burst_that_fails_counts_once_and_a_long_outage_has_no_end() -> None:
    provider, servers = open_servers(first_wait=0.5, longest_wait=30)
    for server in servers:
        server.kind, server.gate = "connection", asyncio.Event()
    burst = [asyncio.create_task(provider.send(dialogue(number))) for number in range(60)]
    await asyncio.sleep(0)
    for server in servers:
        server.gate.set()
    await asyncio.gather(*burst, return_exceptions=True)
    assert max(replica.failures for replica in provider._replicas) <= 3
    for replica in provider._replicas:
        replica.failures, replica.rests_until = 5000, 0.0
    with pytest.raises(FailedAttempt):
        await provider.send(dialogue(1))


async def test_servers_that_all_ask_to_wait_are_waited_for() -> None:
    provider, servers = open_servers()
    for server in servers:
        server.kind, server.after = "rate_limit", 60.0
    with pytest.raises(FailedAttempt):
        await provider.send(dialogue(1))
    sent = sum(len(server.asked) for server in servers)
    with pytest.raises(FailedAttempt, match="all servers ask to wait") as caught:
        await provider.send(dialogue(2))
    assert sum(len(server.asked) for server in servers) == sent
    assert caught.value.after == pytest.approx(60, abs=2)


async def test_an_earlier_reply_does_not_end_a_rest() -> None:
    provider, servers = open_servers(first_wait=5, longest_wait=5)
    address = await ask(provider, dialogue(1))
    server = next(one for one in servers if one.settings.base_url == address)
    server.gate = gate = asyncio.Event()
    early = asyncio.create_task(provider.send(dialogue(1)))
    await asyncio.sleep(0)
    server.gate, server.kind = None, "rate_limit"
    with pytest.raises(FailedAttempt):
        await provider._ask(provider._replicas[URLS.index(address)], dialogue(2))
    server.kind = None
    gate.set()
    assert (await early).message.content == address
    assert await ask(provider, dialogue(1)) != address


async def test_a_server_with_a_wrong_key_is_left_out_and_the_others_answer() -> None:
    provider, servers = open_servers()
    servers[1].wrong = "the server refuses the key"
    assert await provider.check()
    answers = {await ask(provider, dialogue(number)) for number in range(30)}
    assert answers == {URLS[0], URLS[2]}
    assert servers[1].asked == []


async def test_auto_hears_of_failures_that_another_server_made_up_for() -> None:
    provider, servers = open_servers(concurrency="auto")
    heard: list[str] = []
    provider.note_failure = lambda sent, kind: heard.append(kind)
    servers[0].kind = servers[1].kind = "rate_limit"
    for number in range(10):
        await ask(provider, dialogue(number))
    assert heard and set(heard) == {"rate_limit"}


async def test_servers_that_cannot_be_used_are_a_warning_while_one_can(caplog: pytest.LogCaptureFixture) -> None:
    provider, servers = open_servers()
    servers[1].wrong = "gpu1 cannot be reached"
    assert await provider.check()
    assert "gpu1 cannot be reached; the other servers of models.main are used" in caplog.text
    servers[0].wrong = servers[2].wrong = "nothing there"
    with pytest.raises(InputError, match="nothing there"):
        await provider.check()


def test_each_server_has_its_own_key_and_no_other() -> None:
    _, servers = open_servers(URLS[1], {"base_url": URLS[2], "key_env": "KEY_TWO"}, key_env="KEY_ONE")
    assert [server.settings.key_env for server in servers] == ["KEY_ONE", None, "KEY_TWO"]
    assert not any(server.settings.replicas for server in servers)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"provider": "vllm"}, "for provider openai"),
        ({"batch": True}, "one server"),
        ({"replicas": (), "hedge_after": 2}, "a second server has to be there"),
        ({"replicas": [URLS[0]]}, "more than once"),
        ({"replicas": ["gpu1:8000"]}, "an address such as"),
        ({"replicas": [{"base_url": URLS[1], "weight": 0}]}, "greater than 0"),
        ({"replicas": [{"base_url": URLS[1], "key_env": "sk-live 1"}]}, "name an environment variable"),
    ],
)
def test_wrong_replicas_are_refused(more: dict[str, object], says: str) -> None:
    with pytest.raises((ValueError, InputError), match=says):
        settings(URLS[0], **{"replicas": URLS[1:], **more})


@pytest.fixture
def second_server() -> Iterator[RunningServer]:
    with RunningServer() as server:
        yield server


async def test_a_run_goes_on_when_one_of_two_servers_dies(language_server, second_server, tmp_path) -> None:  # type: ignore[no-untyped-def]
    async with board(tmp_path, language_server.url, replicas=[second_server.url], concurrency="auto") as models:
        await models.run_preflight(["agent"])
        agent = models.role_model("agent")
        before = second_server.stats()["requests"]
        await asyncio.gather(*(agent.complete(request(f"one {number}")) for number in range(40)))
        assert second_server.stats()["requests"] - before >= 10
        second_server.__exit__(None, None, None)
        replies = await asyncio.gather(*(agent.complete(request(f"two {number}")) for number in range(40)))
        assert all(reply.message.content for reply in replies)


async def test_two_dead_servers_are_an_outage(tmp_path) -> None:  # type: ignore[no-untyped-def]
    dead = ("http://127.0.0.1:9/v1", "http://127.0.0.1:11/v1")
    async with board(tmp_path, dead[0], replicas=dead[1:], outage_after=2, attempts=1) as models:
        agent = models.role_model("agent")
        with pytest.raises(ModelFault):
            await agent.complete(request("one"))
        with pytest.raises(RunError, match="requests in a row without an answer"):
            await agent.complete(request("two"))


async def test_what_a_slow_server_would_answer_is_answered_by_the_other(
    language_server, second_server, tmp_path
) -> None:  # type: ignore[no-untyped-def]
    second_server.change(latency=300)
    before = language_server.stats()["requests"]
    async with board(tmp_path, language_server.url, replicas=[second_server.url], hedge_after=0.2) as models:
        agent = models.role_model("agent")
        replies = await asyncio.gather(*(agent.complete(request(f"one {number}")) for number in range(20)))
    assert all(reply.message.content for reply in replies)
    assert language_server.stats()["requests"] - before == 20
    assert second_server.stats()["requests"] > 0
