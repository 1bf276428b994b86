"""Audit of an installed environment of `verifiers`. Imports `verifiers`, so import it only where it is used.

Gold is what the task's own `validate` and a play that is known pass; every play is an episode of the library: its null
harness in a process of its own, the task's tool servers, its user and its rewards. A server on this machine stands for
the model and says what the play says.
"""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import verifiers.v1 as vf
from aiohttp import web
from verifiers.v1.cli.validate import run_validate
from verifiers.v1.clients import ModelContext
from verifiers.v1.configs.cli.validate import ValidateConfig
from verifiers.v1.configs.client import EvalClientConfig
from verifiers.v1.types import content_text
from verifiers.v1.utils.loaders import environment_class, resolve_env_config

from trajsmith.pipeline.live_audit import GoldPlay, LiveAudit, LiveResult, LiveTask, build_gold, read_golds, say
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.suite_counts import SuiteAudit, SuiteCall
from trajsmith.records import EnvironmentFault, InputError, JsonObject
from trajsmith.train_grpo import MESSAGE_USER

MOST_TASKS = 100
"""Tasks of a taskset that never ends."""
MOST_TURNS = 400
"""Messages of the model in one episode: users may answer silence for ever."""
FORMS = ("{}", "\\boxed{{{}}}", "<answer>{}</answer>")
"""Ways to give a reference answer; which one a task takes only its own reward knows."""


async def audit_verifiers(
    name: str,
    gold: Path | None,
    mutants: int,
    limit: int | None,
    seed: int,
    passes: float,
    progress: RunProgress | None = None,
) -> SuiteAudit:
    """Audit the tasks of an environment.

    Args:
        name: Taskset of an installed package, as `vf-eval` takes it.
        gold: Gold plays, as `read_golds` takes them, by key, id, name or index of the task.
        mutants: Wrong plays of each task at most.
        limit: Tasks at most.
        seed: Of the choice of mutants.
        passes: Reward from which a play passes.
        progress: Told about each task.

    Raises:
        InputError: The environment cannot be loaded here.
    """
    audit = SuiteAudit(f"verifiers {name}")
    golds = read_golds(gold) if gold else {}
    with tempfile.TemporaryDirectory(prefix="trajsmith-audit-") as scratch:
        env, tasks = _load(name, limit)
        chosen = {_name_task(task, number): task for number, task in enumerate(tasks)}
        live = [
            LiveTask(label, _find_golds(task, number, golds)) for number, (label, task) in enumerate(chosen.items())
        ]
        valid = await _validate(name, len(chosen), Path(scratch), list(chosen))
        async with _serve_model() as model, env.serving():
            player = _VerifiersPlayer(env, chosen, valid, model)
            await LiveAudit(audit, player, live, mutants, seed, passes).examine(progress)
    return audit


def _load(name: str, limit: int | None) -> tuple[Any, list[Any]]:
    """Load the environment with its null harness in every seat, and the tasks.

    Raises:
        InputError: It is not installed, is of the older form, or needs a container.
    """
    try:
        config = resolve_env_config({"taskset": {"id": name}})
        seats = [seat for seat in type(config).model_fields if isinstance(getattr(config, seat), vf.AgentConfig)]
        seat = {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}, "max_turns": MOST_TURNS}
        config = resolve_env_config({"taskset": {"id": name}} | dict.fromkeys(seats, seat))
        env = environment_class(name)(config)
        tasks = list(islice(iter(env.taskset), limit or MOST_TASKS if type(env.taskset).INFINITE else limit))
    except Exception as error:  # code of the package: whatever it raises, the environment cannot be loaded
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"verifiers loads no taskset {name!r} here: {type(error).__name__}: {reason}") from error
    if len(seats) != 1:
        raise InputError(f"{name!r} has {len(seats)} seats: only environments for one agent can be played from a file")
    if not tasks:
        raise InputError(f"{name!r} has no tasks")
    if any(type(task).NEEDS_CONTAINER or task.data.image for task in tasks):
        raise InputError(f"{name!r} needs a container for its tasks, and none is run here")
    return env, tasks


def _name_task(task: Any, number: int) -> str:
    data = task.data
    own = str(task.key) if task.key != task.hash else ""
    return own or str(data.id or data.name or (number if data.idx is None else data.idx))


def _find_golds(task: Any, number: int, golds: Mapping[str, GoldPlay]) -> tuple[GoldPlay, ...]:
    """Find the gold play of a task in a file, else build plays that give its reference answer."""
    data = task.data
    for name in (str(task.key), data.id, data.name, data.idx, number):
        if str(name) in golds:
            return (golds[str(name)],)
    answer = getattr(data, "answer", None)  # by the library's convention; other tasks have no such field
    if not isinstance(answer, str) or not answer:
        return ()
    return tuple(build_gold((say(form.format(answer)),), answer) for form in FORMS)


async def _validate(name: str, count: int, scratch: Path, labels: Sequence[str]) -> dict[str, bool | None]:
    """Return what the library's validator says of each task's solution."""
    config = ValidateConfig.model_validate(
        {
            "taskset": {"id": name}, "select": {"limit": count}, "runtime": {"type": "subprocess"},
            "only_gold": True, "rich": False, "output_dir": scratch, "max_concurrent": 2,
        }
    )  # fmt: skip
    rows = await run_validate(config)
    checked = {"valid": True, "invalid": False}
    return {labels[row["task_position"]]: checked.get(row["reason"]) for row in rows}


class _ScriptedModel:
    """Answers requests for chat completions with what a play says next."""

    def __init__(self) -> None:
        self.plays: dict[str, Sequence[SuiteCall]] = {}
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Say the next thing of the play whose number is in the address."""
        body = await request.json()
        calls = self.plays[request.match_info["play"]]
        number = sum(message["role"] == "assistant" for message in body["messages"])
        call = calls[number] if number < len(calls) else say("")
        message, reason = _build_message(call, number), "stop" if call.tool == MESSAGE_USER.name else "tool_calls"
        about: JsonObject = {"id": f"chat-{number}", "created": 0, "model": "model"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            return web.json_response(about | {"object": "chat.completion", "choices": [choice], "usage": usage})
        choice = {"index": 0, "delta": message, "finish_reason": reason}
        chunk = about | {"object": "chat.completion.chunk"}
        lines = [chunk | {"choices": [choice]}, chunk | {"choices": [], "usage": usage}]
        text = "".join(f"data: {orjson.dumps(line).decode()}\n\n" for line in lines) + "data: [DONE]\n\n"
        return web.Response(text=text, content_type="text/event-stream")


def _build_message(call: SuiteCall, number: int) -> JsonObject:
    if call.tool == MESSAGE_USER.name:
        return {"role": "assistant", "content": str(call.arguments.get("text", ""))}
    function = {"name": call.tool, "arguments": orjson.dumps(call.arguments).decode()}
    asked = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [asked]}


@asynccontextmanager
async def _serve_model() -> AsyncIterator[_ScriptedModel]:
    model = _ScriptedModel()
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/{play}/v1/chat/completions", model.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    model.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield model
    finally:
        await runner.cleanup()


class _VerifiersPlayer:
    """Plays by episodes of the environment."""

    def __init__(
        self, env: Any, tasks: Mapping[str, Any], valid: Mapping[str, bool | None], model: _ScriptedModel
    ) -> None:
        self._env = env
        self._tasks = tasks
        self._valid = valid
        self._model = model

    async def validate(self, task: str) -> bool | None:
        """Return what the library's validator said."""
        return self._valid.get(task)

    async def play(self, task: str, calls: Sequence[SuiteCall]) -> LiveResult:
        """Play an episode.

        Raises:
            EnvironmentFault: It ended in an error.
        """
        name = str(len(self._model.plays))
        self._model.plays[name] = calls
        client = EvalClientConfig(base_url=f"{self._model.url}/{name}/v1", api_key_var="TRAJSMITH_AUDIT_KEY")
        episode = await self._env.run_episode(self._tasks[task], ModelContext(model="model", client=client))
        trace = episode.traces[0] if episode.traces else None
        for error in (*episode.errors, *(trace.errors if trace else ())):
            raise EnvironmentFault("crash", task, f"{error.type}: {error.message}".split("\n")[0])
        if trace is None:
            raise EnvironmentFault("state", task, "the episode has no trace")
        scored = any(reward is not None for reward in trace.rewards.values())
        return LiveResult(trace.reward if scored else None, tuple(_list_results(trace)[: len(calls)]))


def _list_results(trace: Any) -> list[str]:
    """Return what each message of the model led to: the result of its call, nothing for a text."""
    results: list[str] = []
    for message in trace.branches[-1].messages if trace.branches else ():
        if message.role == "assistant":
            results.append("")
        elif message.role == "tool" and results:
            results[-1] = content_text(message.content or "")
    return results
