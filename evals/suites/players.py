"""Who plays a suite: the gold calls, nobody, chance, or a model."""

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from trajsmith.evals.suites.suite import CallRecord, CallSuite, SuitePlay, SuiteTask
from trajsmith.models import ChatModel, ChatRequest, Usage
from trajsmith.records import JsonObject, Message, derive_seed

MAX_STEPS = 20
"""Messages of a model in one turn; BFCL ends a turn there, too."""
GOLD, REFUSE, RANDOM = "gold", "refuse", "random"
BASELINES = (GOLD, REFUSE, RANDOM)
"""Scripted players."""


SuitePlayer = Callable[[Any, SuiteTask, str, int], Awaitable[SuitePlay]]
"""Plays a task of a suite, under the name of a run, for the n-th time."""


def build_baseline(name: str, seed: int = 0) -> SuitePlayer:
    """Return a scripted player: `gold` makes the calls that the suite holds for right, `refuse` none, `random` any."""

    async def play(suite: CallSuite, task: SuiteTask, run: str, trial: int) -> SuitePlay:
        if name == GOLD and task.gold is not None:
            return SuitePlay(steps=task.gold)
        if name == REFUSE or not task.tools:
            return SuitePlay(steps=tuple(() for _ in task.turns))
        rng = random.Random(derive_seed(seed, task.id, *[trial] * bool(trial)))
        return SuitePlay(steps=tuple(((draw_call(rng, task.tools),),) for _ in task.turns))

    return play


def draw_call(rng: random.Random, tools: Sequence[JsonObject]) -> CallRecord:
    """Return a call of any tool with values of the right types."""
    function = rng.choice(tools)["function"]
    schema = function["parameters"]
    values = {name: _draw_value(rng, part) for name, part in schema.get("properties", {}).items()}
    return CallRecord(name=function["name"], arguments={name: values[name] for name in schema.get("required", values)})


def _draw_value(rng: random.Random, schema: JsonObject) -> Any:
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    kinds: dict[str, Any] = {
        "integer": rng.randrange(100), "number": rng.random() * 100, "boolean": rng.random() < 0.5, "array": [],
        "object": {},
    }  # fmt: skip
    return kinds.get(schema.get("type", ""), "value")


def build_model_player(model: ChatModel, temperature: float = 0.0, max_tokens: int = 1024) -> SuitePlayer:
    """Return a player that asks a model; a call whose arguments are no JSON object ends the task."""

    async def play(suite: CallSuite, task: SuiteTask, run: str, trial: int) -> SuitePlay:
        messages: list[Message] = []
        turns: list[tuple[tuple[CallRecord, ...], ...]] = []
        used = Usage()
        tools = list(task.tools)

        def end(error: str = "") -> SuitePlay:
            return SuitePlay(
                steps=tuple(turns), messages=tuple(messages), tokens=used.completion_tokens,
                prompt_tokens=used.prompt_tokens, error=error,
            )  # fmt: skip

        for number, opening in enumerate(task.turns):
            messages += opening
            tools += task.arriving.get(number, ())
            steps: list[tuple[CallRecord, ...]] = []
            for _ in range(MAX_STEPS):
                request = ChatRequest(
                    messages=tuple(messages), tools=tuple(tools), temperature=temperature, max_tokens=max_tokens,
                    seed=trial or None, purpose="agent", record=task.id,
                )  # fmt: skip
                reply = await model.complete(request)
                used += reply.usage
                messages.append(reply.message)
                called = reply.message.tool_calls or ()
                calls = tuple(CallRecord(name=one.function.name, arguments=one.function.arguments) for one in called)
                if reply.malformed:
                    turns.append(tuple(steps))
                    return end("malformed_call")
                if calls:
                    steps.append(calls)
                if not calls or not task.live:
                    break
                results = await suite.execute(task, run, calls)
                messages += [
                    Message(role="tool", content=result, tool_call_id=call.id, name=call.function.name)
                    for call, result in zip(called, results, strict=True)
                ]
            else:
                return end("step_limit")
            turns.append(tuple(steps))
        return end()

    return play
