"""Runs with mistakes in them, played for real so that the checks can judge them."""

import random
from collections.abc import Sequence

from trajsmith.evals import EvalContext, play_episode
from trajsmith.models import CallableModel, ChatReply, ChatRequest
from trajsmith.records import JsonValue, Message, Task, Trajectory, Verdict, derive_seed
from trajsmith.usersim import PlaySettings

LEFT_OUT = 1 / 3
OPPOSITES = {"on": "off", "off": "on", "lock": "unlock", "unlock": "lock"}


def writes(task: Task) -> set[str]:
    """Tools with which the task changes something."""
    return {call.tool for call in task.gold_calls if call.effect == "write" and call.arguments}


async def with_mistake(task: Task, trajectory: Trajectory, ground: EvalContext) -> tuple[Trajectory, Verdict]:
    """The agent's messages of a run played again with one mistake in what it changes, and what the checks say of it."""
    rng = random.Random(derive_seed(task.seed, "mistake"))
    replies = [message for message in trajectory.messages if message.role == "assistant"]
    rest = iter(mistaken(replies, writes(task), rng))

    async def repeat(request: ChatRequest) -> ChatReply:
        return ChatReply(message=next(rest))

    _, played, verdict = await play_episode(task, ground, CallableModel("mistaken", repeat), PlaySettings(), 0)
    return played, verdict


def mistaken(replies: Sequence[Message], tools: set[str], rng: random.Random) -> list[Message]:
    """A call of one of `tools` has a wrong argument, or, one time in three, is left out."""
    calls = [(index, call.function) for index, message in enumerate(replies) for call in message.tool_calls or ()]
    index, function = rng.choice([(index, function) for index, function in calls if function.name in tools])
    if rng.random() < LEFT_OUT:
        return [*replies[:index], *replies[index + 1 :]]
    return [
        *replies[:index],
        _wrong(replies[index], rng.choice(sorted(function.arguments)), rng),
        *replies[index + 1 :],
    ]


def _wrong(message: Message, name: str, rng: random.Random) -> Message:
    calls = []
    for call in message.tool_calls or ():
        changed = {key: other(value, rng) if key == name else value for key, value in call.function.arguments.items()}
        function = call.function.model_copy(update={"arguments": changed})
        calls.append(call.model_copy(update={"function": function}))
    return message.model_copy(update={"tool_calls": tuple(calls)})


def other(value: JsonValue, rng: random.Random) -> JsonValue:
    """Another value that the schema would take too: the opposite, or with another digit, or other letters."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + rng.choice((-2, -1, 1, 2))
    if not isinstance(value, str):
        return value
    if value in OPPOSITES:
        return OPPOSITES[value]
    digits = [index for index, sign in enumerate(value) if sign.isdigit()]
    if digits:
        place = digits[-1]
        return f"{value[:place]}{(int(value[place]) + rng.randint(1, 9)) % 10}{value[place + 1 :]}"
    return " ".join(reversed(value.split(" "))) if " " in value else value[::-1]
