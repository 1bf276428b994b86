"""Many episodes at a time, each written down when it is over, so that an evaluation can go on where it stopped."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from pydantic import PositiveInt

from arena.episodes import Episode, Ground, play_episode
from arena.roles import Complete
from trajectory import EnvironmentFault, Frozen, InputError, RunError, Task
from usersim import PlaySettings


class EvalSettings(Frozen):
    """How a model is evaluated."""

    samples: PositiveInt = 1
    """Episodes per task."""
    concurrency: PositiveInt = 32
    """Episodes at a time; a local model answers as many of them in one batch."""
    max_steps: PositiveInt = 12
    """Messages of the model per turn."""


def read_episodes(file: Path) -> list[Episode]:
    """Episodes that are over; the last line may be torn, since a process can die while it writes.

    Raises:
        InputError: The file is something else.
    """
    if not file.is_file():
        return []
    lines = file.read_bytes().split(b"\n")
    return [Episode.from_line(line, f"{file}:{number}") for number, line in enumerate(lines[:-1], 1)]


async def evaluate(
    tasks: Sequence[Task],
    grounds: Mapping[str, Ground],
    name: str,
    complete: Complete,
    settings: EvalSettings,
    file: Path,
) -> list[Episode]:
    """Play what is not in `file` yet and return all episodes of these tasks.

    Raises:
        InputError: A task needs a user who understands what a model asks, which the scripted user does not.
        RunError: The file cannot be written.
    """
    unfit = next((task for task in tasks if task.mode != "direct"), None)
    if unfit is not None:
        raise InputError(
            f"{unfit.id} is a conversation: the scripted user cannot read a model's questions; "
            "evaluate on direct tasks (write.direct: 1)"
        )
    done = {(episode.task_id, episode.sample): episode for episode in read_episodes(file)}
    wanted = [(task, sample) for task in tasks for sample in range(settings.samples)]
    room = asyncio.Semaphore(settings.concurrency)
    play = PlaySettings(max_steps=settings.max_steps)

    async def one(task: Task, sample: int, out: BinaryIO) -> None:
        async with room:
            try:
                episode, _, _ = await play_episode(task, grounds[task.environments[0]], name, complete, play, sample)
            except EnvironmentFault as fault:
                raise RunError(f"{fault}; episodes that are over are kept in {file}") from fault
            out.write(episode.to_line())
            out.flush()
            done[task.id, sample] = episode

    missing = [(task, sample) for task, sample in wanted if (task.id, sample) not in done]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _trim_torn(file)
        with file.open("ab") as out:
            await asyncio.gather(*(one(task, sample, out) for task, sample in missing))
    except OSError as error:
        raise RunError(f"cannot write {file}: {error.strerror or error}") from error
    return [done[task.id, sample] for task, sample in wanted]


def _trim_torn(file: Path) -> None:
    """Cut a last line that was not finished."""
    if file.is_file():
        content = file.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with file.open("r+b") as out:
                out.truncate(whole)
