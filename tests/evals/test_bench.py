"""A public benchmark by its own checker: gold passes, refusing and guessing do not, and a stopped run goes on."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trajsmith.cli.app import app
from trajsmith.evals.bench import BenchPlay, run_suite
from trajsmith.evals.suites import CallRecord, SuiteTask
from trajsmith.evals.suites.players import build_baseline, build_model_player
from trajsmith.models import CallableModel, ChatReply, Usage
from trajsmith.pipeline.bench import BenchConfig
from trajsmith.records import FunctionCall, InputError, Message, ModelFault, RunError, ToolCall
from trajsmith.records.journal import read_entries

BFCL = Path(os.environ.get("BFCL_ENVIRONMENT", Path(__file__).parents[2] / ".integrations" / "bfcl"))
needs_bfcl = pytest.mark.skipif(not BFCL.is_dir(), reason="needs `make .integrations/.bfcl`")
QUESTION = {"suite": "sums", "version": "1", "model": "m"}


class Sums:
    """A suite of one tool: `add` must be called with the task's number, and its result is shown."""

    version, categories = "1", ("one", "two")

    async def load_tasks(self, category):
        parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        tool = {"type": "function", "function": {"name": "add", "description": "", "parameters": parameters}}
        tasks = []
        for n in range(4):
            turns, gold = (
                ((Message(role="user", content=str(n)),),),
                (((CallRecord(name="add", arguments={"n": n}),),),),
            )
            name, live = f"{category}_{n}", category == "two"
            tasks.append(SuiteTask(id=name, category=category, turns=turns, tools=(tool,), live=live, gold=gold))
        return tasks

    async def execute(self, task, run, calls):
        return [f"sum {call.arguments['n']}" for call in calls]

    async def check(self, task, run, steps):
        return "" if steps == task.gold else "wrong_call"


def answers(dies_at=()):
    seen = []

    async def reply(request):
        last = request.messages[-1]
        seen.append(last.content)
        if last.role == "tool":
            return ChatReply(message=Message(role="assistant", content="done"))
        if last.content in dies_at:
            raise ModelFault("server", "m", "HTTP 500")
        call = ToolCall(id="c", function=FunctionCall(name="add", arguments={"n": int(last.content)}))
        usage = Usage(prompt_tokens=50, completion_tokens=10)
        return ChatReply(message=Message(role="assistant", tool_calls=(call,)), usage=usage)

    return CallableModel("m", reply), seen


async def load_all():
    return [task for category in Sums.categories for task in await Sums().load_tasks(category)]


async def test_an_endpoint_that_dies_leaves_tasks_unscored_and_the_same_command_plays_only_those(tmp_path):
    tasks = await load_all()
    model, _ = answers(dies_at={"3"})
    scores = await run_suite(Sums(), tasks, build_model_player(model), tmp_path, QUESTION)
    assert [(one.category, one.passed, one.unscored) for one in scores] == [("all", 6, 2), ("one", 3, 1), ("two", 3, 1)]
    with (tmp_path / "plays.jsonl").open("ab") as torn:
        torn.write(b'{"task": "one_')
    model, seen = answers()
    scores = await run_suite(Sums(), tasks, build_model_player(model), tmp_path, QUESTION)
    assert [(one.passed, one.unscored) for one in scores] == [(8, 0), (4, 0), (4, 0)]
    assert (scores[0].prompt_tokens, scores[0].tokens) == (50, 10)
    assert sorted(seen) == ["3", "3", "sum 3"]
    assert len({one.task for one in read_entries(tmp_path / "plays.jsonl", BenchPlay) if one.passed}) == 8
    with pytest.raises(InputError, match="another model or benchmark"):
        await run_suite(Sums(), tasks, build_model_player(model), tmp_path, QUESTION | {"model": "other"})


def test_results_of_shorter_messages_are_results_of_another_question():
    asked = {"suite": "bfcl", "model": "m", "out": Path("out")}
    usual, shorter = (BenchConfig(**asked, **more).question("1", False) for more in ({}, {"max_tokens": 160}))
    assert usual == {"suite": "bfcl", "version": "1", "model": "m"} and shorter == usual | {"max_tokens": "160"}


async def test_scripted_players_score_what_the_checker_gives_and_are_diagnosed(tmp_path):
    tasks = await load_all()
    passed = {}
    for name in ("gold", "refuse", "random"):
        scores = await run_suite(Sums(), tasks, build_baseline(name), tmp_path / name, QUESTION | {"model": name})
        passed[name] = scores[0].passed
    assert passed["gold"] == 8 and passed["refuse"] == 0 and passed["random"] < 8
    result = CliRunner().invoke(app, ["diagnose", str(tmp_path / "refuse"), "--out", str(tmp_path / "why")])
    assert result.exit_code == 0 and "8 failures in 8 episodes are too few" in result.output
    steps = json.loads((tmp_path / "why" / "diagnosis.json").read_text())["steps"]
    assert [(step["kind"], step["failed"]) for step in steps] == [("missing_call", 8)]


@needs_bfcl
@pytest.mark.parametrize(("model", "passed"), [("gold", [5, 5, 5]), ("refuse", [0, 5, 0]), ("random", [0, 0, 0])])
def test_bfcl_judges_gold_refusing_and_guessing(tmp_path, model, passed):
    arguments = ["bench", "bfcl", "--model", model, "--environment", str(BFCL), "--out", str(tmp_path), "--limit", "5"]
    arguments += ["--category", "simple_python,irrelevance", "--category", "multi_turn_miss_func"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    scores = json.loads((tmp_path / "results.json").read_text())["scores"]
    assert [score["passed"] for score in scores[1:]] == passed


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["bfcl", "--category", "simple_cobol"], "no category 'simple_cobol'"),
        (["gaia"], "no suite named 'gaia'"),
        (["bfcl", "--environment", "nowhere"], "nowhere is no virtual environment"),
    ],
    ids=["category", "suite", "environment"],
)
def test_wrong_input_is_one_line(tmp_path, arguments, text):
    with pytest.raises(InputError, match=text):
        CliRunner().invoke(
            app, ["bench", *arguments, "--model", "gold", "--out", str(tmp_path)],
            standalone_mode=False, catch_exceptions=False,
        )  # fmt: skip


@needs_bfcl
async def test_a_package_of_another_version_is_refused(monkeypatch):
    from trajsmith.evals.suites import bfcl

    monkeypatch.setattr(bfcl, "VERSION", "1999.1.1")
    suite = bfcl.Bfcl()
    with pytest.raises(InputError, match=r"has bfcl-eval 2026.3.23, and results are those of 1999.1.1"):
        await suite.open(BFCL, None)
    await suite.close()
    with pytest.raises(RunError, match="not open"):
        await suite.load_tasks("simple_python")
