"""Concurrent evaluation of tasks; finished episodes are appended to a file, so that a killed evaluation resumes."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePath
from typing import Literal

from pydantic import PositiveInt

from trajsmith.evals.episodes import Episode, EvalContext, has_right_calls, play_episode
from trajsmith.evals.transcripts import build_transcript
from trajsmith.export.history import apply_window
from trajsmith.models import CallableModel, ChatModel, ChatReply, ChatRequest
from trajsmith.records import (
    AppendFile,
    EnvironmentFault,
    FrozenModel,
    JsonObject,
    RunError,
    Task,
    read_lines,
    refuse_link,
    storage_boundary,
)
from trajsmith.usersim import PlaySettings, UserFactory, build_scripted_user


class EvalSettings(FrozenModel):
    """Settings of an evaluation."""

    samples: PositiveInt = 1
    """Episodes per task."""
    concurrency: PositiveInt = 32
    """Episodes at a time; a local model answers many of them in one batch."""
    max_steps: PositiveInt = 12
    """Messages of the model per turn."""
    history: PositiveInt | None = None
    """Assistant turns of history that the model sees (AWM: 3), as it was trained; None shows all."""
    judge: Literal["all", "calls"] = "all"
    """`calls` passes an episode whose calls and final state are the right ones, whatever it tells: for models too small
    to report values."""


def read_episodes(file: Path) -> list[Episode]:
    """Read the finished episodes; the last line may be incomplete, since a process can die while it writes.

    Raises:
        InputError: The file is something else.
    """
    return [Episode.from_line(line, f"{file}:{number}") for number, line, _ in read_lines(file)]


async def evaluate(
    tasks: Sequence[Task],
    grounds: Mapping[str, EvalContext],
    model: ChatModel,
    settings: EvalSettings,
    file: Path,
    users: UserFactory = build_scripted_user,
    over: Callable[[int], None] = lambda number: None,
    past_reasoning: bool = True,
    transcripts: Path | None = None,
) -> list[Episode]:
    """Play the episodes that are not in `file` yet and return all episodes of these tasks.

    Episodes in which the model's server failed are played again. Whatever stops the work stops all of it at once, and
    the file holds every episode that was over.

    Args:
        model: The model under evaluation.
        file: Where episodes are written, one line each.
        users: Who plays the user.
        over: Told how many more episodes are over, at first those of an earlier part of the work.
        past_reasoning: Show the model its reasoning of earlier turns, as contexts of training have it.
        transcripts: Where messages, calls, diff and verdict of each episode are written, a line each; None keeps none.

    Raises:
        InputError: `file` is a symbolic link.
        RunError: The file cannot be written, the budget is used up, or a server or an environment is out.
    """
    wanted = [(task, sample) for task in tasks for sample in range(settings.samples)]
    names = {(task.id, sample) for task, sample in wanted}
    done = {(one.task_id, one.sample): one for one in read_episodes(file) if not one.should_retry}
    over(len(names & done.keys()))
    room, play = asyncio.Semaphore(settings.concurrency), PlaySettings(max_steps=settings.max_steps)
    shown = model if settings.history is None else limit_history(model, settings.history)

    async def one(task: Task, sample: int, out: AppendFile, read: AppendFile | None) -> None:
        ground = grounds[task.environments[0]]
        async with room:
            try:
                episode, trajectory, verdict = await play_episode(
                    task, ground, shown, play, sample, users, past_reasoning=past_reasoning
                )
                if settings.judge == "calls" and episode.passed is False and has_right_calls(verdict):
                    episode = episode.model_copy(update={"passed": True, "error": ""})
            except EnvironmentFault as fault:
                raise RunError(f"{fault}; episodes that are over are kept in {file}") from fault
        if read is not None:
            read.append(build_transcript(episode, trajectory, verdict))
        out.append(episode.to_line())
        done[task.id, sample] = episode
        over(1)

    missing = [(task, sample) for task, sample in wanted if (task.id, sample) not in done]
    with storage_boundary(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    refuse_link(file.parent, PurePath(file.name))
    with ExitStack() as files:
        out = files.enter_context(AppendFile(file, lock=True))
        read = files.enter_context(AppendFile(transcripts)) if transcripts is not None else None
        for opened in (out, read):
            if opened is not None:
                opened.cut_torn_line()
        await await_all(one(task, sample, out, read) for task, sample in missing)
    return [done[task.id, sample] for task, sample in wanted]


def limit_history(model: ChatModel, window: int) -> ChatModel:
    """Wrap a model so that it sees only the last `window` assistant turns.

    What stays is what rows keep (AWM, appendix A): the beginning, the first exchange, the latest request.
    """

    async def reply(request: ChatRequest) -> ChatReply:
        messages = request.messages
        places: list[JsonObject] = [{"role": message.role, "at": at} for at, message in enumerate(messages)]
        seen = tuple(messages[row["at"]] for row in apply_window(places, len(places), window))
        return await model.complete(request.model_copy(update={"messages": seen}))

    return CallableModel(model.name, reply)


async def await_all(work: Iterable[Coroutine[None, None, None]]) -> None:
    """Await all tasks; the first error cancels the others and is raised unchanged."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
