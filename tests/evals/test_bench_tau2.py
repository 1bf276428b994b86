"""τ²-bench by its own orchestrator and evaluators, with scripted speakers and with models that misbehave.

The first part needs no τ²-bench. The second part runs where its requirements (`make .integrations/.tau2`, or
`TAU2_ENVIRONMENT`) and a checkout (`TAU2_CHECKOUT`) are at hand.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from trajsmith.cli.app import app
from trajsmith.evals.bench import BenchPlay, run_suite
from trajsmith.evals.suites import CallRecord, ConversationSuite, SuitePlay, SuiteTask
from trajsmith.evals.suites.conversations import (
    ScenarioUser,
    build_baseline_script,
    build_conversation_player,
    build_model_script,
)
from trajsmith.evals.suites.tau2 import Tau2
from trajsmith.evals.suites.worker_process import WorkerProcess
from trajsmith.models import CallableModel, ChatReply, MalformedCall
from trajsmith.records import FunctionCall, InputError, Message, ModelFault, RunError, ToolCall, read_entries

ENVIRONMENT = Path(os.environ.get("TAU2_ENVIRONMENT", Path(__file__).parents[2] / ".integrations" / "tau2"))
CHECKOUT = Path(os.environ.get("TAU2_CHECKOUT", Path(__file__).parents[3] / "tau2-bench"))
needs_tau2 = pytest.mark.skipif(
    not (ENVIRONMENT.is_dir() and CHECKOUT.is_dir()),
    reason="needs `make .integrations/.tau2` and a checkout of tau2-bench, named by TAU2_CHECKOUT",
)
QUESTION = {"suite": "talks", "version": "1", "model": "m"}


class Talks:
    """A suite of conversations: the agent must call `open` and the user `press`, and the agent says "42"."""

    version, categories = "1", ("talks",)

    async def open(self, environment, path):
        """Nothing to open."""

    async def close(self):
        """Nothing to close."""

    def needs_judge(self, task):
        return False

    async def load_tasks(self, category):
        return []

    async def converse(self, task, run, trial, respond, judged):
        from trajsmith.models import ChatRequest

        steps, messages, role = [], [Message(role="assistant", content="Hi")], "user"
        while len(messages) < 30:
            reply = await respond(role, ChatRequest(messages=tuple(messages)))
            actor = "user" if role == "user" else "assistant"
            if reply.message.tool_calls:
                function = reply.message.tool_calls[0].function
                steps.append((CallRecord(name=function.name, arguments=function.arguments, actor=actor),))
                messages.append(Message(role="tool", content="ok"))
                continue
            messages.append(Message(role=actor, content=reply.message.content))
            if "###STOP###" in reply.message.content:
                break
            role = "agent" if role == "user" else "user"
        said = any("42" in one.content for one in messages)
        right = (tuple(steps),) == task.gold and said
        return SuitePlay(steps=(tuple(steps),), messages=tuple(messages), error="" if right else "db")


def build_talks(number=3):
    gold = (
        (CallRecord(name="open", arguments={"n": 1}),),
        (CallRecord(name="press", arguments={}, actor="user"),),
        (CallRecord(name="open", arguments={"n": 2}),),
    )
    tool = {"type": "function", "function": {"name": "open", "parameters": {"type": "object", "properties": {}}}}
    turns = ((Message(role="user", content="Open it."),),)
    return [
        SuiteTask(
            id=f"talks:{n}", category="talks", turns=turns, tools=(tool,), live=True, gold=(gold,), says=("42",),
            scenario="You want it open.",
        )
        for n in range(number)
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "passed"), [("gold", 3), ("refuse", 0), ("random", 0)])
async def test_scripted_speakers_make_each_their_own_calls(tmp_path, name, passed):
    assert isinstance(Talks(), ConversationSuite)
    player = build_conversation_player(build_baseline_script(name), judged=False)
    scores = await run_suite(Talks(), build_talks(), player, tmp_path, QUESTION)
    assert [(one.tasks, one.passed) for one in scores] == [(3, passed)]


async def test_several_plays_of_a_task_give_pass_hat_k_and_only_missing_ones_are_played(tmp_path):
    played = []

    async def play(suite, task, run, trial):
        played.append((task.id, trial))
        return SuitePlay(steps=(), error="" if trial < 2 or task.id == "talks:0" else "db")

    tasks = build_talks(2)
    await run_suite(Talks(), tasks, play, tmp_path, QUESTION, trials=2)
    (score,) = await run_suite(Talks(), tasks, play, tmp_path, QUESTION, trials=4)
    assert sorted(played) == [(f"talks:{n}", trial) for n in range(2) for trial in range(4)]
    # talks:0 passes 4 of 4, talks:1 passes 2 of 4: pass^2 is (1 + 1/6) / 2
    assert (score.tasks, score.passed, score.pass1) == (8, 6, 0.75)
    assert score.pass_k == {2: 0.5833, 3: 0.5, 4: 0.5}
    assert score.low < 0.75 < score.high


async def test_a_play_on_which_the_checker_broke_counts_neither_way(tmp_path):
    async def play(suite, task, run, trial):
        return SuitePlay(steps=(), undecided="ValueError: no such line" if task.id == "talks:0" else "")

    (score,) = await run_suite(Talks(), build_talks(), play, tmp_path, QUESTION)
    assert (score.passed, score.unscored, score.pass1, score.errors) == (2, 1, 1.0, {"checker_raised": 1})


def test_the_scripted_user_tells_its_scenario_once_agrees_and_leaves():
    user = ScenarioUser("You want it open.")
    assert user.reply("Hi! How can I help?").endswith("You want it open.")
    assert [user.reply("Shall I?") for _ in range(9)] == ["Yes, please."] * 8 + ["###STOP###"]
    assert ScenarioUser("x").reply("") != "###STOP###"


WORKER = """
import json, sys
for line in sys.stdin:
    entry = json.loads(line)
    if entry.get("kind") == "die":
        sys.exit(1)
    if "reply" in entry:
        out = {"id": entry["id"], "answer": entry["reply"]}
    else:
        out = {"id": entry["id"], "ask": {"n": entry["n"]}}
    print(json.dumps(out), flush=True)
"""


async def test_questions_overlap_ask_back_fail_alone_and_a_dead_worker_is_one_line(tmp_path):
    import asyncio

    (tmp_path / "worker.py").write_text(WORKER)
    worker = await WorkerProcess.start("toy", Path(sys.executable), tmp_path / "worker.py")

    async def complete(asked):
        await asyncio.sleep(0.05 / asked["n"])
        if asked["n"] == 2:
            raise ModelFault("server", "m", "HTTP 500")
        return {"square": asked["n"] ** 2}

    found = await asyncio.gather(*(worker.ask({"n": n}, complete) for n in (1, 2, 3)), return_exceptions=True)
    assert [found[0], found[2]] == [{"square": 1}, {"square": 9}]
    assert isinstance(found[1], ModelFault) and found[1].kind == "server"
    with pytest.raises(RunError, match="toy ended unexpectedly: give the same command again"):
        await worker.ask({"kind": "die"})
    with pytest.raises(RunError, match="ended unexpectedly"):
        await worker.ask({"n": 1}, complete)
    await worker.close()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["tau2"], "tau2 needs a checkout: git clone"),
        (["tau2", "--path", "."], r"\. is no checkout of tau2-bench"),
        (["tau2", "--category", "chess"], "no category 'chess'"),
        (["bfcl", "--path", "."], "bfcl takes no --path"),
        (["bfcl", "--user", "x"], "bfcl has no user and no judge"),
    ],
    ids=["no checkout", "other folder", "category", "path of bfcl", "user of bfcl"],
)
def test_wrong_input_of_suites_is_one_line(tmp_path, monkeypatch, arguments, text):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=text):
        CliRunner().invoke(
            app, ["bench", *arguments, "--model", "gold", "--out", str(tmp_path / "out")],
            standalone_mode=False, catch_exceptions=False,
        )  # fmt: skip


def bench_mock(out, *more):
    arguments = ["bench", "tau2", "--path", str(CHECKOUT), "--environment", str(ENVIRONMENT), "--category", "mock"]
    return CliRunner().invoke(app, [*arguments, "--out", str(out), *more])


@needs_tau2
@pytest.mark.parametrize(("model", "passed", "unscored"), [("gold", 8, 0), ("refuse", 1, 1)])
def test_tau2_judges_gold_and_refusing(tmp_path, model, passed, unscored):
    """One task asks for nothing; of one an assertion raises where its entry was never made."""
    result = bench_mock(tmp_path, "--model", model)
    assert result.exit_code == 0, result.output
    (score,) = json.loads((tmp_path / "results.json").read_text())["scores"]
    assert (score["tasks"], score["passed"], score["unscored"]) == (10, passed, unscored), score


async def play_mock(agent, user=None, limit=3):
    suite = Tau2()
    await suite.open(ENVIRONMENT, CHECKOUT)
    try:
        tasks = (await suite.load_tasks("mock"))[:limit]
        script = build_model_script(agent, user, None, 0.0, 100)
        return [await suite.converse(task, task.id, 0, script(task, 0), judged=False) for task in tasks]
    finally:
        await suite.close()


def make_model(*replies):
    left = list(replies)

    async def reply(request):
        seen.append(request)
        one = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(one, Exception):
            raise one
        return one

    seen = []
    model = CallableModel("m", reply)
    return model, seen


@needs_tau2
async def test_tau2_prompts_the_agent_and_ends_empty_and_malformed_messages():
    empty = ChatReply(message=Message(role="assistant"))
    bad = MalformedCall(id="c", name="create_task", text="{", error="no JSON")
    malformed = ChatReply(message=Message(role="assistant", content="x"), malformed=(bad,))
    model, seen = make_model(empty, malformed, ModelFault("server", "m", "HTTP 500"))
    first, second = await play_mock(model, limit=2)
    assert (first.error, second.error) == ("empty_message", "malformed_call")
    assert "<policy>" in seen[0].messages[0].content and seen[0].tools
    with pytest.raises(ModelFault):
        await play_mock(model, limit=1)


@needs_tau2
async def test_tau2_executes_calls_of_a_model_and_a_model_as_user_gets_its_prompt():
    function = FunctionCall(name="create_task", arguments={"user_id": "user_1", "title": "Important Meeting"})
    call = ChatReply(message=Message(role="assistant", tool_calls=(ToolCall(id="c", function=function),)))
    done = ChatReply(message=Message(role="assistant", content="Done."))
    agent, _ = make_model(call, done)
    talk = ChatReply(message=Message(role="assistant", content="Please."))
    stop = ChatReply(message=Message(role="assistant", content="###STOP###"))
    user, heard = make_model(talk, stop)
    (play,) = await play_mock(agent, user, limit=1)
    assert [step[0].name for turn in play.steps for step in turn] == ["create_task"]
    assert play.error == "" and "<scenario>" in heard[0].messages[0].content
    assert [one.role for one in play.messages] == ["assistant", "user", "assistant", "tool", "assistant", "user"]


class RolesServer(BaseHTTPRequestHandler):
    """An endpoint that is agent, user or judge, by the prompt that it gets."""

    def do_GET(self):
        self._send({"data": [{"id": name} for name in "auj"]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = str(body["messages"][0]["content"])
        role = "user" if "<scenario>" in prompt else "judge" if "expectedOutcome" in prompt else "agent"
        self.server.roles[role] = self.server.roles.get(role, 0) + 1
        results = [{"expectedOutcome": "x", "reasoning": "y", "metExpectation": True}]
        text = {"user": "###STOP###", "agent": "Anything else?", "judge": json.dumps({"results": results})}[role]
        message = {"role": "assistant", "content": f"```json\n{text}\n```" if role == "judge" else text}
        usage = {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        self._send({"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})

    def _send(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


@needs_tau2
def test_endpoints_are_agent_user_and_judge_of_retail(tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), RolesServer)
    server.roles = {}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    arguments = ["bench", "tau2", "--path", str(CHECKOUT), "--environment", str(ENVIRONMENT), "--category", "retail"]
    arguments += ["--model", "a", "--base-url", url, "--limit", "3", "--out", str(tmp_path)]
    judge = ["--user", "u", "--user-base-url", url, "--judge", "j", "--judge-base-url", url]
    result = CliRunner().invoke(app, [*arguments, *judge])
    server.shutdown()
    server.server_close()
    assert result.exit_code == 0, result.output
    results = json.loads((tmp_path / "results.json").read_text())
    assert (results["user"], results["judge"]) == ("u", "j")
    plays = list(read_entries(tmp_path / "plays.jsonl", BenchPlay))
    assert {(play.error, play.play.undecided) for play in plays} == {("db", "")}, (
        "the judge is content, the state is not"
    )
    assert server.roles["user"] >= 3 and server.roles["judge"] >= 1


def test_plays_of_an_earlier_version_are_read(tmp_path):
    old = {"task": "a", "category": "c", "passed": True, "play": {"steps": [[[{"name": "f", "arguments": {}}]]]}}
    (tmp_path / "plays.jsonl").write_text(json.dumps(old) + "\n")
    (play,) = read_entries(tmp_path / "plays.jsonl", BenchPlay)
    assert play.trial == 0 and play.play.steps[0][0][0].actor == "assistant"
