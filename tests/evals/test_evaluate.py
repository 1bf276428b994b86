"""Episodes on live environments: the gold transcript passes, every kind of failure has its name."""

import asyncio
import shutil

import orjson
import pytest

from trajsmith.evals import EvalSettings, evaluate
from trajsmith.evals.evaluate import read_episodes
from trajsmith.models import CallableModel, ChatReply, MalformedCall
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.eval_contexts import open_eval_contexts, split_tasks
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import FunctionCall, Message, ModelFault, ToolCall, Trajectory
from trajsmith.records.journal import read_records
from trajsmith.usersim import ScriptedAgent

CONFIG = """
name: arena
seed: 5
run: {run}
environments: [{{library: smart_home, states: {{small: 2}}}}]
sample: {{count: 6, length: [1, 2], method: random_walk}}
ground: {{min_calls: 1}}
write: {{mean_calls: 3, direct: {direct}, shown_tools: 2, policy: false}}
"""


def line(folder, direct=1.0):
    folder.mkdir()
    (folder / "line.yaml").write_text(CONFIG.format(run=folder / "run", direct=direct))
    settings = load_config(folder / "line.yaml")
    run = RunDirectory.create(settings.run, dump_settings(settings))
    asyncio.run(run_pipeline(run))
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return line(tmp_path_factory.mktemp("arena") / "direct")


@pytest.fixture
def tasks(run):
    return list(split_tasks(run, "all"))


class Gold:
    """Answers with the gold transcript of the task whose request it sees."""

    def __init__(self, tasks, grounds):
        self.tasks = {task.turns[0].query: task for task in tasks}
        self.grounds = grounds
        self.asked = 0

    async def complete(self, request):
        messages = list(request.messages)
        self.asked += 1
        task = self.tasks[messages[1].content]
        agent = ScriptedAgent(task, self.grounds[task.environments[0]].wording, 0)
        sofar = messages[:2]
        for message in messages[2:]:
            if message.role == "assistant":
                await agent.act(sofar)
            elif message.role == "tool":
                agent.observe([message.name], [await self._result(message)], by_user=False)
            sofar = [*sofar, message]
        return ChatReply(message=(await agent.act(messages)).message)

    async def _result(self, message):
        import orjson

        from trajsmith.environments import ToolResult

        return ToolResult(orjson.loads(message.content))


def says(reply=None, **message):
    async def complete(request):
        if isinstance(reply, ModelFault):
            raise reply
        return ChatReply(message=Message(role="assistant", **message), **(reply or {}))

    return complete


async def test_the_gold_transcript_passes_every_task(run, tasks, tmp_path):
    grounds = await open_eval_contexts(run)
    gold = Gold(tasks, grounds)
    found = await evaluate(
        tasks, grounds, CallableModel("gold", gold.complete), EvalSettings(), tmp_path / "episodes.jsonl"
    )
    assert [(one.passed, one.error, one.checks) for one in found] == [(True, "", 1.0)] * len(tasks)


@pytest.mark.parametrize("calls", [True, False], ids=["right calls", "no call"])
async def test_calls_and_state_alone_can_decide(run, tasks, tmp_path, calls):
    grounds = await open_eval_contexts(run)
    gold = Gold(tasks, grounds)

    async def tell_nothing(request):
        reply = await gold.complete(request)
        if reply.message.tool_calls and calls:
            return reply
        return ChatReply(message=Message(role="assistant", content="Done."))

    model = CallableModel("gold", tell_nothing)
    strict = await evaluate(tasks, grounds, model, EvalSettings(), tmp_path / "all.jsonl")
    by_calls = await evaluate(tasks, grounds, model, EvalSettings(judge="calls"), tmp_path / "calls.jsonl")
    assert not any(one.passed for one in strict)
    assert [one.passed for one in by_calls] == [calls] * len(tasks)
    assert {one.error for one in by_calls} == ({""} if calls else {"no_call"})


CALL = ToolCall(id="call_1", function=FunctionCall(name="no_such_tool", arguments={}))
CUT = {"finish_reason": "length"}
MALFORMED = {"malformed": (MalformedCall(id="call_1", name="", text="{", error="no JSON"),)}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"content": "I do not know."}, "no_call"),
        ({"content": "<tool_call>", "reply": MALFORMED}, "malformed_call"),
        ({"content": "well, well", "reply": CUT}, "message_cut"),
        ({"tool_calls": (CALL,), "reply": CUT}, "message_cut"),
        ({"reply": ModelFault("context_overflow", "model", "too long")}, "message_cut"),
        ({"reply": ModelFault("bad_reply", "model", "empty")}, "no_answer"),
        ({"reply": ModelFault("server", "model", "HTTP 500")}, "model_server"),
        ({"tool_calls": (CALL,)}, "step_limit"),
    ],
    ids=["no call", "malformed", "cut", "cut after a call", "no room", "silent", "server", "endless"],
)
async def test_failures_have_names(run, tasks, tmp_path, fields, error):
    settings = EvalSettings(max_steps=3)
    grounds, file = await open_eval_contexts(run), tmp_path / "episodes.jsonl"
    (found,) = await evaluate(tasks[:1], grounds, CallableModel("model", says(**fields)), settings, file)
    assert (found.passed, found.error) == (None if error == "model_server" else False, error)


async def test_it_goes_on_where_it_stopped_even_after_a_torn_line(run, tasks, tmp_path):
    grounds, file = await open_eval_contexts(run), tmp_path / "episodes.jsonl"
    gold = Gold(tasks, grounds)
    first = await evaluate(tasks[:3], grounds, CallableModel("gold", gold.complete), EvalSettings(), file)
    asked = gold.asked
    file.write_bytes(file.read_bytes() + b'{"task_id": "torn')
    assert await evaluate(tasks[:3], grounds, CallableModel("gold", gold.complete), EvalSettings(), file) == first
    assert gold.asked == asked
    await evaluate(tasks, grounds, CallableModel("gold", gold.complete), EvalSettings(), file)
    assert {one.task_id for one in read_episodes(file)} == {task.id for task in tasks}


async def test_transcripts_tell_what_was_said_and_which_checks_failed(run, tasks, tmp_path):
    import json

    from trajsmith.evals import evaluate

    grounds, settings = await open_eval_contexts(run), EvalSettings()
    file, transcripts = tmp_path / "episodes.jsonl", tmp_path / "transcripts.jsonl"
    model = CallableModel("model", says(content="I cannot help."))
    episodes = await evaluate(tasks[:2], grounds, model, settings, file, transcripts=transcripts)
    lines = [json.loads(line) for line in transcripts.read_text().splitlines()]
    assert {line["trajectory_id"] for line in lines} == {episode.trajectory_id for episode in episodes}
    for line in lines:
        roles = [message["role"] for message in line["messages"]]
        assert roles[:3] == ["system", "user", "assistant"] and line["messages"][2]["content"] == "I cannot help."
        assert line["passed"] is False and line["error"] == "no_call"
        assert line["failed_checks"] and all(check["passed"] is not True for check in line["failed_checks"])
    with transcripts.open("ab") as torn:
        torn.write(b'{"task_id": "to')
    await evaluate(tasks[:3], grounds, model, settings, file, transcripts=transcripts)
    assert len([json.loads(line) for line in transcripts.read_text().splitlines()]) == 3


def test_tasks_of_a_benchmark_are_not_used(run, tasks, tmp_path):
    bench, copied = tmp_path / "bench.jsonl", tmp_path / "run"
    bench.write_bytes(orjson.dumps({"text": "", "calls": [], "tools": ["none"]}) + b"\n")
    shutil.copytree(run.path, copied)
    settings = load_config(copied / "config.yaml", [f"decontaminate=[{bench}]"])
    (copied / "config.yaml").write_text(dump_settings(settings))
    clean = RunDirectory.open(copied)
    assert [task.id for task in split_tasks(clean, "all")] == [task.id for task in tasks]
    longest = max(tasks, key=lambda task: len(task.turns[0].query.split()))
    assert len(longest.turns[0].query.split()) >= 10
    bench.write_bytes(orjson.dumps({"text": f"Before it. {longest.turns[0].query}"}) + b"\n")
    left = [task.id for task in split_tasks(clean, "all")]
    assert longest.id not in left and left
    first = next(split_tasks(clean, "all"))
    record = next(one for one in read_records(copied / "trajectories.jsonl", Trajectory) if one.task_id == first.id)
    row = {"trajectory_id": record.id, "reason": "contaminated: text of bench.jsonl", "detail": ""}
    (copied / "selection.jsonl").write_bytes(orjson.dumps(row) + b"\n")
    assert first.id not in [task.id for task in split_tasks(clean, "all")]
    assert next(split_tasks(clean, "all", limit=1)).id == next(split_tasks(clean, "all")).id


async def test_shown_tools_hold_what_is_needed(tasks):
    for task in tasks:
        needed = {call.tool for call in task.gold_calls}
        assert needed <= set(task.exposed_tools)
        assert len(task.exposed_tools) == max(2, len(needed))
        assert task.policy == ""


async def test_episodes_of_an_evaluation_are_read_back_and_shown_as_pages(run, tasks, tmp_path):
    from typer.testing import CliRunner

    from trajsmith.cli.app import app
    from trajsmith.evals import read_transcripts, store_tasks

    grounds = await open_eval_contexts(run)
    gold = Gold(tasks, grounds)
    store_tasks(tmp_path, tasks[:2])
    store_tasks(tmp_path, tasks[:3])
    files = tmp_path / "episodes.jsonl", tmp_path / "transcripts.jsonl"
    model = CallableModel("gold", gold.complete)
    await evaluate(tasks[:3], grounds, model, EvalSettings(), files[0], transcripts=files[1])
    with files[1].open("ab") as again:  # played once more after its server failed: the last play counts
        again.write(files[1].read_bytes().splitlines(keepends=True)[0])
    played = list(read_transcripts(tmp_path))
    assert sorted(one.task.id for one in played) == sorted(task.id for task in tasks[:3])
    for one in played:
        assert one.trajectory.content_id() == one.trajectory.id and one.verdict.content_id() == one.verdict.id
        assert [event.tool for event in one.trajectory.events] == [call.tool for call in one.task.gold_calls]
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 0, result.output
    pages = list((tmp_path / "gallery").glob("smart_home-accepted-*.html"))
    assert len(pages) == 1 and all(one.trajectory.id in pages[0].read_text() for one in played)
    assert "../report.html" not in (tmp_path / "gallery" / "index.html").read_text()


async def test_an_evaluation_without_transcripts_says_what_to_do(tmp_path):
    from trajsmith.evals import read_transcripts
    from trajsmith.records import InputError

    with pytest.raises(InputError, match="is no evaluation"):
        list(read_transcripts(tmp_path))
    (tmp_path / "episodes.jsonl").touch()
    with pytest.raises(InputError, match=r"tasks.jsonl.*transcripts: true"):
        list(read_transcripts(tmp_path))
    (tmp_path / "tasks.jsonl").touch()
    (tmp_path / "transcripts.jsonl").write_text('{"task_id": "task_1", "sample": 0, "messages": []}\n')
    with pytest.raises(InputError, match="older version"):
        list(read_transcripts(tmp_path))
