"""The cache of answers and the ledger of what they cost: counted on the server, killed and taken up again."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from chatting import board, request, usage_lines
from running_server import RunningServer

from trajsmith.models import Price, Usage
from trajsmith.models.usage import compute_cost, summarize_usage
from trajsmith.records import BudgetExceeded, ModelFault, RunError

PRICE = {"prompt": 1_000_000.0, "cached": 500_000.0, "completion": 2_000_000.0}
"""A token costs 1, a cached one half, one of the answer 2."""


async def test_the_same_request_is_sent_once_ever(tmp_path):
    with RunningServer() as server:
        for part in range(3):
            async with board(tmp_path, server.url) as models:
                talker = models.role_model("agent")
                replies = [await talker.complete(request("again", record=f"r{part}")) for _ in range(2)]
            assert [reply.cached for reply in replies] == ([False, True] if part == 0 else [True, True])
            assert replies[1].usage == Usage()
        assert server.stats()["requests"] == 1
    assert len(usage_lines(tmp_path)) == 1


async def test_equal_requests_at_a_time_are_sent_once(tmp_path):
    with RunningServer(latency=0.05) as server:
        async with board(tmp_path, server.url) as models:
            talker = models.role_model("agent")
            replies = await asyncio.gather(*(talker.complete(request("together")) for _ in range(8)))
        assert server.stats()["requests"] == 1
    assert sorted(reply.cached for reply in replies) == [False] + [True] * 7
    assert len({reply.message.content for reply in replies}) == 1


@pytest.mark.parametrize(
    ("one", "other", "sent"),
    [
        ({"purpose": "agent"}, {"purpose": "writer"}, 1),
        ({"record": "a"}, {"record": "b"}, 1),
        ({"seed": 1}, {"seed": 2}, 2),
        ({"temperature": 0.0}, {"temperature": 1.0}, 2),
        ({"max_tokens": 10}, {"max_tokens": 20}, 2),
        ({"stop": ("a",)}, {}, 2),
    ],
    ids=["purpose", "record", "seed", "temperature", "max_tokens", "stop"],
)
async def test_the_key_is_what_decides_the_answer(language_server, tmp_path, one, other, sent):
    before = language_server.stats()["requests"]
    async with board(tmp_path, language_server.url) as models:
        for more in (one, other):
            await models.role_model("agent").complete(request(f"key {tmp_path.name}", **more))
    assert language_server.stats()["requests"] - before == sent


async def test_a_failure_is_never_kept(language_server, tmp_path):
    async with board(tmp_path, language_server.url, attempts=1) as models:
        talker = models.role_model("agent")
        with pytest.raises(ModelFault):
            await talker.complete(request("fails once", "empty"))
        assert not (await talker.complete(request("fails once", "empty"))).cached


async def test_a_paid_answer_lands_although_nobody_waits_for_it(tmp_path):
    with RunningServer(latency=0.1) as server:
        async with board(tmp_path, server.url) as models:
            asked = asyncio.create_task(models.role_model("agent").complete(request("left alone")))
            await asyncio.sleep(0.03)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
        async with board(tmp_path, server.url) as models:
            assert (await models.role_model("agent").complete(request("left alone"))).cached
        assert server.stats()["requests"] == 1


KILLS = 1
ASKER = """
import asyncio, sys
sys.path[:0] = sys.argv[3:]
from pathlib import Path
from chatting import board, request

async def main():
    async with board(Path(sys.argv[1]), sys.argv[2], concurrency=4) as models:
        agent = models.role_model("agent")
        await asyncio.gather(*(agent.complete(request(f"kill {number}")) for number in range(80)))

asyncio.run(main())
"""


def test_kills_lose_and_double_nothing(tmp_path):
    root = Path(__file__).parent
    paths = [str(root), str(root.parent / "language_server"), str(root.parent.parent)]
    with RunningServer(latency=0.01) as server:
        killed = 0
        while True:
            process = subprocess.Popen([sys.executable, "-c", ASKER, str(tmp_path), server.url, *paths])
            lines = len(usage_lines(tmp_path)) if (tmp_path / "usage.jsonl").is_file() else 0
            while process.poll() is None and killed < KILLS:
                time.sleep(0.01)
                if (tmp_path / "usage.jsonl").is_file() and len(usage_lines(tmp_path)) > lines + 30:
                    os.kill(process.pid, signal.SIGKILL)
                    killed += 1
                    break
            if process.wait() == 0:
                break
        stats = server.stats()
    assert killed == KILLS
    assert len(usage_lines(tmp_path)) == 80  # each answer once, although some requests were cut off by a kill
    assert stats["requests"] <= 80 + killed * 4  # at most what was in flight is sent again


async def test_usage_is_mended_after_a_kill_between_answer_and_line(language_server, tmp_path):
    async with board(tmp_path, language_server.url) as models:
        for number in range(3):
            await models.role_model("agent").complete(request(f"mend {number}", record=f"r{number}"))
    file = tmp_path / "usage.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[: whole.rfind(b"\n", 0, -1) + 9])  # the last line is torn
    async with board(tmp_path, language_server.url) as models:
        assert models.ledger.spent.requests == 3
    assert file.read_bytes() == whole


async def test_what_was_spent_is_known_without_the_cache(language_server, tmp_path):
    async with board(tmp_path, language_server.url) as models:
        await models.role_model("agent").complete(request("forgotten"))
    for file in (tmp_path / "cache").iterdir():
        file.unlink()
    async with board(tmp_path, language_server.url) as models:
        assert models.ledger.spent.requests == 1
        await models.role_model("agent").complete(request("forgotten"))
        assert models.ledger.spent.requests == 2
    assert len(usage_lines(tmp_path)) == 2


async def test_a_new_run_in_the_same_place_pays_nothing_twice_and_starts_at_zero(language_server, tmp_path):
    async with board(tmp_path, language_server.url) as models:
        await models.role_model("agent").complete(request("kept"))
    (tmp_path / "usage.jsonl").unlink()
    async with board(tmp_path, language_server.url) as models:
        assert models.ledger.spent.requests == 0
        assert (await models.role_model("agent").complete(request("kept"))).cached
    assert usage_lines(tmp_path) == []


async def test_a_line_tells_who_asked_and_what_it_cost(language_server, tmp_path):
    more = {"purpose": "goal", "record": "task_1"}
    async with board(tmp_path, language_server.url, price=PRICE) as models:
        reply = await models.role_model("writer").complete(request("priced", **more))
    (line,) = usage_lines(tmp_path)
    usage = reply.usage
    assert (line["record"], line["purpose"], line["model"]) == ("task_1", "writer.goal", "test-model")
    assert line["prompt_tokens"] == usage.prompt_tokens > 0
    assert line["cost"] == usage.prompt_tokens + 2 * usage.completion_tokens
    assert list(summarize_usage(tmp_path / "usage.jsonl")) == ["writer"]


def test_cached_tokens_have_their_own_price():
    usage = Usage(prompt_tokens=1_000_000, cached_tokens=400_000, completion_tokens=100_000)
    assert compute_cost(usage, Price(prompt=2.0, cached=0.5, completion=10.0)) == pytest.approx(1.2 + 0.2 + 1.0)
    assert compute_cost(usage, Price(prompt=2.0, completion=10.0)) == pytest.approx(3.0)


# The budget


@pytest.mark.parametrize("budget", [{"max_cost": 0}, {"max_tokens": 0}])
async def test_a_budget_of_zero_sends_nothing(language_server, tmp_path, budget):
    before = language_server.stats()["requests"]
    async with board(tmp_path, language_server.url, budget=budget) as models:
        with pytest.raises(BudgetExceeded, match=r"trajsmith resume runs/here --set budget\.max_"):
            await models.role_model("agent").complete(request("nothing"))
    assert language_server.stats()["requests"] == before


async def test_a_budget_stops_and_a_higher_one_goes_on(tmp_path):
    async def ask(budget):
        answered = 0
        async with board(tmp_path, server.url, budget={"max_tokens": budget}, max_tokens=40) as models:
            for number in range(30):
                try:
                    await models.role_model("agent").complete(request(f"costs {number}"))
                    answered += 1
                except BudgetExceeded:
                    break
            return answered, models.ledger.spent.tokens

    with RunningServer() as server:
        first, spent = await ask(300)
        assert 0 < first < 30
        assert spent <= 300
        assert await ask(300) == (first, spent)  # what earlier parts spent counts
        more, spent = await ask(450)
        assert first < more < 30
        assert spent <= 450
        assert server.stats()["answered_twice"] == 0


async def test_requests_in_flight_count_for_the_budget(tmp_path):
    with RunningServer(latency=0.05) as server:
        async with board(tmp_path, server.url, budget={"max_tokens": 400}, max_tokens=40) as models:
            talker = models.role_model("agent")
            asked = (talker.complete(request(f"flies {number}")) for number in range(40))
            outcomes = await asyncio.gather(*asked, return_exceptions=True)
            spent = models.ledger.spent
        assert server.stats()["requests"] == spent.requests < 20
    assert spent.tokens <= 400
    assert any(isinstance(outcome, BudgetExceeded) for outcome in outcomes)


async def test_an_answer_that_cannot_be_kept_stops_the_run(language_server, tmp_path):
    async with board(tmp_path, language_server.url) as models:
        models._answers._file.execute("DROP TABLE answers")
        with pytest.raises(RunError, match=r"answers\.sqlite.*resume"):
            await models.role_model("agent").complete(request("nowhere"))


def test_a_line_that_was_changed_by_hand_is_named(tmp_path):
    (tmp_path / "usage.jsonl").write_text(json.dumps({"purpose": "agent"}) + "\n")
    with pytest.raises(RunError, match="changed by hand"):
        summarize_usage(tmp_path / "usage.jsonl")
