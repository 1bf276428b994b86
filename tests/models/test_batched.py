"""Requests through the batch API: collected, found again after a kill, failures told apart."""

import asyncio
import json

import pytest
from chatting import board, request, usage_lines
from running_server import RunningServer

from trajsmith.models import ModelSettings, RoleSettings, RolesSettings
from trajsmith.records import InputError, ModelFault, RunError

QUICK = {"batch": True, "batch_quiet": 0.05, "batch_poll": 0.05, "attempts": 2}


async def ask(models, *names, **more):
    talker = models.role_model("writer")
    asked = (talker.complete(request(name, **more)) for name in names)
    return await asyncio.gather(*asked, return_exceptions=True)


def files(folder):
    notes = [path.read_bytes().splitlines() for path in (folder / "cache").glob("batches-*.jsonl")]
    return [{row["label"]: row for row in map(json.loads, lines)} for lines in notes]


async def test_what_is_asked_at_a_time_goes_in_one_batch(tmp_path):
    with RunningServer(batch_seconds=0.1) as server:
        async with board(tmp_path, server.url, **QUICK) as models:
            replies = await ask(models, *"abcde")
            again = await ask(models, *"abcde")
        paths = server.stats()["paths"]
    assert [reply.message.content for reply in replies] == [f"You said: {name}" for name in "abcde"]
    assert all(reply.cached for reply in again)
    assert (paths["/files"], paths["/batches"]) == (1, 1)
    assert "/chat/completions" not in paths
    assert len(usage_lines(tmp_path)) == 5
    assert files(tmp_path) == [{}]


async def test_a_run_that_was_stopped_finds_its_batch_again(tmp_path):
    with RunningServer(batch_seconds=0.4) as server:
        async with board(tmp_path, server.url, **QUICK) as models:
            asked = asyncio.create_task(ask(models, *"abc"))
            while not any(batch["id"] for noted in files(tmp_path) for batch in noted.values()):  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.005)
            asked.cancel()
        assert len(files(tmp_path)[0]) == 1
        async with board(tmp_path, server.url, **QUICK) as models:
            (first,) = await ask(models, "b")  # the others ask after the batch was fetched
            others = await ask(models, *"ac")
        assert server.stats()["paths"]["/batches"] == 1
        assert server.stats()["requests"] == 3
    assert [reply.message.content for reply in (first, *others)] == ["You said: b", "You said: a", "You said: c"]
    assert files(tmp_path) == [{}]


async def test_answers_that_nobody_asked_for_yet_stay_noted(tmp_path):
    with RunningServer(batch_seconds=1.0) as server:
        async with board(tmp_path, server.url, **QUICK) as models:
            shared = models.role_model("writer")._shared
            asked = asyncio.create_task(ask(models, *"ab"))
            while not any(batch["id"] for found in files(tmp_path) for batch in found.values()):  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.005)
            shared.provider._work.cancel()
            asked.cancel()
        for part in range(2):
            async with board(tmp_path, server.url, **QUICK) as models:
                await ask(models, "a" if part == 0 else "b")
            assert len(files(tmp_path)[0]) == 1 - part
        assert server.stats()["paths"]["/batches"] == 1


async def test_a_batch_whose_name_was_lost_is_found_by_its_label(tmp_path):
    with RunningServer(refuses=["batch_name"]) as server:
        async with board(tmp_path, server.url, **QUICK) as models:
            (reply,) = await ask(models, "lost")
        paths = server.stats()["paths"]
    assert reply.message.content == "You said: lost"
    assert paths["/files"] == 1
    assert files(tmp_path) == [{}]


async def test_failures_inside_a_batch_keep_their_kind(tmp_path):
    with RunningServer() as server:
        async with board(tmp_path, server.url, **QUICK) as models:
            talker = models.role_model("writer")
            asked = (talker.complete(request("x", fault, 9)) for fault in ("overflow", "content_filter", "empty"))
            faults = await asyncio.gather(*asked, return_exceptions=True)
    assert [fault.kind for fault in faults] == ["context_overflow", "content_filter", "bad_reply"]


async def test_what_an_expired_batch_left_out_is_sent_again(tmp_path):
    with RunningServer(batch_ends_as="expired") as server:
        async with board(tmp_path, server.url, **{**QUICK, "attempts": 5}) as models:
            replies = await ask(models, *"abcd")
            answered = [reply for reply in replies if not isinstance(reply, ModelFault)]
        assert server.stats()["paths"]["/batches"] > 1
    assert len(answered) == 3  # the last one alone is always the half that is left out
    assert [fault.kind for fault in replies if isinstance(fault, ModelFault)] == ["timeout"]


async def test_a_file_that_the_server_does_not_take_is_a_bad_request(tmp_path):
    with RunningServer(batch_ends_as="failed") as server:
        async with board(tmp_path, server.url, **QUICK) as models:
            (fault,) = await ask(models, "x")
    assert fault.kind == "bad_request"
    assert "the file is wrong" in fault.message


async def test_a_wrong_key_and_a_dead_server_stop_the_run(monkeypatch, tmp_path):
    monkeypatch.setenv("TEST_KEY", "wrong")
    with RunningServer(key="right") as server:
        async with board(tmp_path, server.url, **QUICK, key_env="TEST_KEY") as models:
            (error,) = await ask(models, "x")
            assert isinstance(error, InputError)
            server.stop()
            models.role_model("writer")._shared.provider._settings = ModelSettings(
                model="m", outage_after=2, batch_poll=0.01
            )
            (error,) = await ask(models, "y")
    assert isinstance(error, RunError)
    assert "resume" in str(error)


def test_a_dialogue_is_not_played_in_batches():
    models = {"slow": ModelSettings(model="m", batch=True)}
    RolesSettings(writer=RoleSettings(model="slow")).check(models)
    with pytest.raises(InputError, match=r"roles\.user: models\.slow answers in batches"):
        RolesSettings(user=RoleSettings(model="slow")).check(models)
