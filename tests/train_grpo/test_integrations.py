"""The same gold transcripts score the same through the session, the episodes of the trainer, and an MCP client."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from mcp import Client

from trajsmith.environments import ToolResult
from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.environments.serving import prepare_serving
from trajsmith.environments.serving.http import listen, serve_http
from trajsmith.environments.serving.protocol_keys import REFUSAL
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.eval_contexts import open_eval_contexts
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import compute_state_digest
from trajsmith.train_grpo.episodes import EpisodeSource
from trajsmith.train_grpo.factory import EpisodeFactory
from trajsmith.train_grpo.rewards import compute_episode_reward
from trajsmith.train_grpo.rollouts import Rollout, collect_next_steps, send_replies
from trajsmith.usersim import PlaySettings
from trajsmith.verify import verify_trajectory

CONFIG = """
name: integrations
seed: 9
run: {run}
environments: [{{library: smart_home, states: {{small: 2}}}}, {{library: bank, states: {{small: 1}}}}]
sample: {{count: 8, length: [2, 4]}}
ground: {{min_calls: 1}}
write: {{direct: 1.0}}
"""


class McpFace:
    """A session as a verifier wants it, through an MCP client of a served environment."""

    def __init__(self, client, spec):
        self.client = client
        self.spec = spec

    async def reset(self, state):
        await self.client.call_tool("load_state", {"state": state})

    async def call(self, tool, arguments, actor="assistant"):
        result = await self.client.call_tool(tool, arguments)
        refusal = (result.meta or {}).get(REFUSAL)
        (block,) = result.content
        return ToolResult({"error": block.text} if refusal else result.structured_content, refusal)

    async def snapshot(self):
        return (await self.client.call_tool("save_state", {})).structured_content

    async def state_hash(self):
        return compute_state_digest(await self.snapshot())

    async def close(self):
        """The client closes the connection."""


@asynccontextmanager
async def served(ground):
    with listen("127.0.0.1", 0) as where:
        serving = asyncio.create_task(serve_http(await prepare_serving(ground.source, admin=True), where))
        try:
            async with Client(f"http://127.0.0.1:{where.getsockname()[1]}/mcp") as client:
                yield McpFace(client, ground.spec)
        finally:
            serving.cancel()
            await asyncio.wait([serving])


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Task, trajectory and the line's own verdict, and what they were made on."""
    folder = tmp_path_factory.mktemp("integrations")
    (folder / "line.yaml").write_text(CONFIG.format(run=folder / "run"))
    settings = load_config(folder / "line.yaml")
    run = RunDirectory.create(settings.run, dump_settings(settings))
    asyncio.run(run_pipeline(run))
    return list(join_verdicts(run)), asyncio.run(open_eval_contexts(run))


async def through_mcp(task, record, ground):
    async with served(ground) as client:
        return await verify_trajectory(task, record, ground.state(task.initial_state), client)


def through_the_trainer(task, record, ground, background):
    return repeat_play(Rollout(task, ground, PlaySettings()), record, background)


def repeat_play(rollout, record, background):
    rollout.start(background)
    while (step := collect_next_steps(background, [rollout])[0]) is not None:
        from trajsmith.models import ChatReply

        send_replies(background, [(rollout, ChatReply(message=record.messages[len(step)]))])
    return rollout.verdict()[2]


def through_the_factory(task, record, ground, background):
    """As TRL's own loop of tool calls does: reset, one method per call, then the last message."""
    source = EpisodeSource([task], {task.environments[0]: ground}, background, PlaySettings())
    made = EpisodeFactory(lambda: source, "of the test", task.id)()
    made.reset(prompt=[], task_id=task.id)
    shown = {message.tool_call_id: message.content for message in record.messages if message.role == "tool"}
    for message in record.messages:
        for call in message.tool_calls or ():
            assert getattr(made, call.function.name)(**call.function.arguments) == shown[call.id]
        if message.role == "assistant" and not message.tool_calls:
            made._rollout.say(message.content)
    return made._rollout.verdict()[2]


def assert_every_interface_agrees(records, grounds):
    """Gold transcripts score the same through MCP, our trainer and TRL's environment class as they did in the run."""
    background = BackgroundLoop()
    try:
        for task, record, verdict in records:
            ground = grounds[record.environment]
            for other in (
                background.run(through_mcp(task, record, ground)),
                through_the_trainer(task, record, ground, background),
                through_the_factory(task, record, ground, background),
            ):
                assert (other.outcome, other.checks, other.rewards) == ("completed", verdict.checks, verdict.rewards)
                assert (other.state_match, other.replay_match, other.trajectory_match) == (True, True, 1.0)
    finally:
        background.close()


def test_every_interface_gives_the_same_verdict(known):
    records, grounds = known
    assert {record.environment for _, record, _ in records} == {"smart_home", "bank"}
    assert_every_interface_agrees(records, grounds)


@pytest.mark.parametrize(("rewards", "expected"), [(("steps",), 1.0), (("composite",), None)], ids=["asked", "not"])
def test_episodes_that_are_rewarded_by_their_calls_have_labels(known, rewards, expected):
    records, grounds = known
    task, record, _ = records[0]
    background = BackgroundLoop()
    try:
        ground = {task.environments[0]: grounds[record.environment]}
        source = EpisodeSource([task], ground, background, PlaySettings(), rewards=rewards)
        rollout = source.open_episode(task.id)
        verdict = repeat_play(rollout, record, background)
    finally:
        background.close()
    assert compute_episode_reward("steps", task, rollout.done[1], verdict) == expected


def test_an_interface_that_changes_a_result_is_noticed(known):
    records, grounds = known
    task, record, _ = records[0]
    first = next(event for event in record.events)
    changed = record.model_copy(
        update={"events": (first.model_copy(update={"result_hash": "0" * 16}), *record.events[1:])}
    )
    verdict = asyncio.run(through_mcp(task, changed, grounds[record.environment]))
    assert (verdict.outcome, verdict.replay_match) == ("environment_error", False)
