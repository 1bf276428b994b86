"""Distractors and few tools: which are shown, the same everywhere, and a call to another environment's tool fails."""

import asyncio
import random

import orjson
import pytest

from trajsmith import export_dataset, load_run, run
from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.evals.episodes import play_episode
from trajsmith.models import CallableModel, ChatReply
from trajsmith.pipeline.eval_contexts import open_eval_contexts
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.querygen.shown_tools import ShownToolsSettings, select_distractors
from trajsmith.records import FunctionCall, Message, ToolCall
from trajsmith.train_grpo.episodes import EpisodeSource, build_class_name
from trajsmith.usersim import PlaySettings

OWN = ENVIRONMENTS.get("smart_home").describe().tools
OTHERS = [tool for name in ("helpdesk", "bank", "retail") for tool in ENVIRONMENTS.get(name).describe().tools]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown") / "run"
    run(
        {
            "name": "shown",
            "run": str(folder),
            "environments": [{"library": "smart_home", "states": {"small": 1}}],
            "sample": {"count": 12, "length": [3, 5]},
            "write": {"tools": {"distractors": 0.6, "few": 0.4}},
            "vary": {"rates": {"missing_function": 0.5, "refused_call": 0.5}},
        }
    )
    return RunDirectory.open(folder)


def test_names_that_clash_are_left_out():
    drawn = select_distractors(OWN, OTHERS)
    names = [tool.name for tool in drawn]
    assert len(names) == len(set(names)) > 20
    assert "list_devices" in {tool.name for tool in OWN} & {tool.name for tool in OTHERS}
    assert not {tool.name for tool in OWN} & set(names)
    assert all(tool.output_schema is None and tool.confirm is None and tool.description for tool in drawn)


def test_shares_are_kept_and_needed_tools_always_shown():
    settings, needed = ShownToolsSettings(distractors=0.3, few=0.3), {"list_rooms", "set_temperature"}
    drawn = [
        settings.draw(OWN, needed, lambda: select_distractors(OWN, OTHERS), random.Random(seed)) for seed in range(300)
    ]
    foreign = [others for _, others, _ in drawn if others]
    few = [names for names, others, _ in drawn if not others and len(names) < len(OWN)]
    assert not any(searched for *_, searched in drawn)
    assert 60 <= len(foreign) <= 120 and 60 <= len(few) <= 120
    assert all(5 <= len(others) <= 15 for others in foreign)
    assert all(needed <= set(names) and 4 <= len(names) <= 8 for names in few)
    with pytest.raises(ValueError, match="more than 1"):
        ShownToolsSettings(distractors=0.4, few=0.4, search=0.4)


def test_other_environments_are_described_only_for_tasks_that_show_their_tools():
    def describe():
        raise AssertionError("nothing shows a tool of another environment")

    for seed in range(50):
        names, others, _ = ShownToolsSettings(few=0.5).draw(OWN, set(), describe, random.Random(seed))
        assert names and not others


def test_rows_show_what_the_task_shows(made, tmp_path):
    kinds = set()
    rows = {row["task_id"]: row["tools"] for row in load_run(made.path).rows()}
    export_dataset(made.path, "openai", tmp_path / "openai")
    for task, trajectory, verdict in join_verdicts(made):
        assert trajectory.tools == task.shown_tools
        assert {call.tool for call in task.gold_calls if call.actor == "assistant"} <= set(task.exposed_tools)
        foreign = {tool.name for tool in task.distractors}
        assert not foreign & {tool.name for tool in OWN}
        if foreign:
            assert sorted(task.shown_tools) == sorted({*task.exposed_tools, *foreign})
            assert task.shown_tools != (*task.exposed_tools, *(tool.name for tool in task.distractors))
        if task.variant == "missing_function":
            assert not foreign
        if verdict.accepted and task.id in rows:
            assert [tool["function"]["name"] for tool in rows[task.id]] == list(task.shown_tools)
        kinds.add("foreign" if foreign else "few" if len(task.exposed_tools) < len(OWN) - 4 else "all")
    assert {"foreign", "few"} <= kinds
    lines = [orjson.loads(line) for path in tmp_path.rglob("*.jsonl") for line in path.open("rb")]
    own = {tool.name for tool in OWN}
    assert any({tool["function"]["name"] for tool in line["tools"]} - own for line in lines)


def test_evaluation_and_training_show_the_same_and_a_foreign_call_is_rejected(made):
    task, _, verdict = next(item for item in join_verdicts(made) if item[0].distractors and item[2].accepted)
    assert "the agent calls no tool of another environment" in {check.says for check in verdict.checks}
    grounds = asyncio.run(open_eval_contexts(made))
    foreign, seen = task.distractors[0], []

    async def answer(request):
        seen.append([tool["function"]["name"] for tool in request.tools])
        if len(seen) > 1:
            return ChatReply(message=Message(role="assistant", content="I could not do that."))
        call = ToolCall(id="call_1", function=FunctionCall(name=foreign.name, arguments={}))
        return ChatReply(message=Message(role="assistant", tool_calls=(call,)))

    model = CallableModel("foreign", answer)
    _, played, judged = asyncio.run(play_episode(task, grounds[task.environments[0]], model, PlaySettings(), 0))
    assert set(map(tuple, seen)) == {task.shown_tools}
    assert played.events[0].error == "unknown_tool" and "unknown tool" in played.messages[3].content
    wrong = {check.says for check in judged.checks if check.passed is False}
    assert "the agent calls no tool of another environment" in wrong and not judged.accepted
    background = BackgroundLoop()
    try:
        functions = EpisodeSource([task], grounds, background, PlaySettings()).render_tools(task)
    finally:
        background.close()
    name = build_class_name(task)
    assert [function["function"]["name"] for function in functions] == list(task.shown_tools)
    assert f"{foreign.server}.{foreign.name}" in name
