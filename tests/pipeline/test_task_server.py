"""A task is played from outside by calls alone, and its transcript is judged like the play of the run."""

import asyncio
from pathlib import PurePosixPath

import orjson
import pytest
from mcp import Client

from trajsmith.environments.serving.mcp_server import build_mcp_server
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.task_bundle import find_environment_settings, write_task_bundle
from trajsmith.pipeline.task_server import (
    MESSAGE_USER,
    OVER,
    build_serving,
    build_transcript,
    judge_transcript,
    open_tasks,
)
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import InputError
from trajsmith.train_grpo import check_exported_reward, choose_reward
from trajsmith.verify.rewards import REWARDS

CONFIG = """
name: served
seed: 9
run: {run}
environments: [{{library: smart_home, states: {{small: 1}}}}, {{library: bank, states: {{small: 1}}}}]
sample: {{count: 10, length: [2, 4]}}
ground: {{min_calls: 1}}
write: {{direct: 0.7}}
play: {{candidates: 2, faulty: 1}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    (folder / "run.yaml").write_text(CONFIG.format(run=folder / "run"))
    settings = load_config(folder / "run.yaml")
    made = RunDirectory.create(settings.run, dump_settings(settings))
    asyncio.run(run_pipeline(made))
    return made


def test_transcripts_are_judged_like_the_plays_of_the_run(run):
    """Right plays and plays with mistakes; what the run left out beside a better play of the task is right, too."""
    judged = {True: 0, False: 0}
    with open_tasks(run) as source:
        for task, trajectory, verdict in join_verdicts(run):
            if verdict.outcome == "completed" and not verdict.accepted:
                continue
            _, again = judge_transcript(source, task, build_transcript(trajectory.messages))
            assert (again.accepted, again.outcome) == (verdict.accepted, verdict.outcome)
            assert again.checks == verdict.checks
            judged[verdict.accepted] += 1
    assert min(judged.values()) >= 5


def test_every_registered_reward_can_be_named(run):
    """Verdicts hold four; others, those of plug-ins too, are computed."""

    @REWARDS.register("call_thrift")
    def call_thrift(evidence, settings):
        return 1 / (1 + evidence.calls)

    task, trajectory, _ = next(iter(join_verdicts(run)))
    with open_tasks(run) as source:
        played, verdict = judge_transcript(source, task, build_transcript(trajectory.messages))
    names = ("accepted", "composite", "call_thrift", "trajectory")
    assert {"call_thrift", "trajectory"}.isdisjoint(verdict.rewards)
    assert {name: choose_reward(check_exported_reward(name), task, played, verdict) for name in names} == {
        "accepted": float(verdict.accepted),
        "composite": verdict.rewards["composite"],
        "call_thrift": round(1 / (1 + len(played.events)), 4),
        "trajectory": verdict.trajectory_match,
    }
    broken = verdict.model_copy(update={"outcome": "environment_error"})
    assert {choose_reward(name, task, played, broken) for name in names} == {None}
    with pytest.raises(InputError, match="no reward named 'gold'"):
        check_exported_reward("gold")
    with pytest.raises(InputError, match="reward steps needs labels of calls"):
        check_exported_reward("steps")


def test_silence_is_no_accepted_play(run):
    with open_tasks(run) as source:
        for task in source.tasks.values():
            _, verdict = judge_transcript(source, task, [])
            assert not verdict.accepted


def test_an_mcp_client_plays_a_task_with_the_user(run, tmp_path):
    """Tools and user are tools of one server; what was called and said is written down, and judged elsewhere."""
    accepted = {task.id: (task, trajectory) for task, trajectory, verdict in join_verdicts(run) if verdict.accepted}
    task, trajectory = next(pair for pair in accepted.values() if pair[0].mode == "conversation")
    lines = build_transcript(trajectory.messages)
    file = tmp_path / "transcript.jsonl"

    async def play(offer):
        replies = []
        async with Client(build_mcp_server(offer)) as client:
            shown = [tool.name for tool in (await client.list_tools()).tools]
            for line in lines:
                result = await client.call_tool(line["tool"], line["arguments"])
                replies.append((line["tool"], result))
            late = await client.call_tool(MESSAGE_USER.name, {"text": "And?"})
            assert late.is_error and OVER in late.content[0].text
        return shown, replies

    with open_tasks(run) as source:
        shown, replies = asyncio.run(play(build_serving(source, task, file)))
    assert shown == [*task.shown_tools, MESSAGE_USER.name]
    heard = [result.structured_content["user"] for tool, result in replies if tool == MESSAGE_USER.name]
    said = [message.content for message in trajectory.messages if message.role == "user"]
    assert heard == [*said[1:], OVER]
    results = [result.content[0].text for tool, result in replies if tool != MESSAGE_USER.name]
    assert results == [message.content for message in trajectory.messages if message.role == "tool"]
    written = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    assert written == lines
    with open_tasks(run) as source:
        assert judge_transcript(source, task, written)[1].accepted


def test_a_bundle_holds_one_task_and_is_judged_where_it_stands(run, tmp_path):
    task, trajectory, _ = next(judged for judged in join_verdicts(run) if judged.verdict.accepted)
    entries = asyncio.run(find_environment_settings(run))
    write_task_bundle(run, [task], entries, tmp_path / "task", PurePosixPath("/somewhere/else"))
    with open_tasks(RunDirectory.open(tmp_path / "task")) as source:
        assert list(source.tasks) == [task.id]
        assert judge_transcript(source, source.tasks[task.id], build_transcript(trajectory.messages))[1].accepted
