"""Transcripts of an evaluation: what every episode said, called and changed, with its verdict, one line each."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson
from pydantic import ValidationError

from trajsmith.evals.episodes import Episode
from trajsmith.export import INDEX, ConversationBrowser
from trajsmith.records import (
    AppendFile,
    InputError,
    JsonObject,
    Task,
    Trajectory,
    Verdict,
    format_first_error,
    read_lines,
    read_records,
    storage_boundary,
)

EPISODES, TRANSCRIPTS, TASKS, GALLERY = "episodes.jsonl", "transcripts.jsonl", "tasks.jsonl", "gallery"
"""Files and folder of an evaluation."""
SHARED = {"messages", "tools"}
"""Fields of a trajectory that its line has at the top, where a person reads them."""


class PlayedEpisode(NamedTuple):
    """One episode as it was played."""

    task: Task
    sample: int
    passed: bool | None
    error: str
    trajectory: Trajectory
    verdict: Verdict


def build_transcript(episode: Episode, trajectory: Trajectory, verdict: Verdict) -> bytes:
    """Build the line of an episode: result, messages and failed checks to read, then calls, diff and verdict."""
    checks = [
        {"says": check.says, "kind": check.kind, "passed": check.passed, "detail": check.detail}
        for check in verdict.checks
        if check.passed is not True
    ]
    played = trajectory.model_dump(mode="json", exclude_none=True)
    line = {
        "task_id": episode.task_id,
        "sample": episode.sample,
        "environment": episode.environment,
        "variant": episode.variant,
        "passed": episode.passed,
        "error": episode.error,
        "outcome": verdict.outcome,
        "failed_checks": checks,
        "tools": list(trajectory.tools),
        "messages": played["messages"],
        "trajectory_id": trajectory.id,
        "trajectory": {name: value for name, value in played.items() if name not in SHARED},
        "verdict": verdict.model_dump(mode="json", exclude_none=True),
    }
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def store_tasks(folder: Path, tasks: Sequence[Task]) -> None:
    """Append the tasks that the folder of an evaluation does not hold yet.

    Raises:
        RunError: They cannot be written.
    """
    file = folder / TASKS
    with storage_boundary(file):
        folder.mkdir(parents=True, exist_ok=True)
    with AppendFile(file) as out:
        out.cut_torn_line()
        known = {orjson.loads(line)["id"] for _, line, _ in read_lines(file)}
        for task in tasks:
            if task.id not in known:
                out.append(task.to_line())


def is_evaluation(folder: Path) -> bool:
    """Return True if a folder holds results of `trajsmith eval`."""
    return (folder / EPISODES).is_file()


def read_transcripts(folder: Path) -> Iterator[PlayedEpisode]:
    """Stream the episodes of an evaluation; of one that was played again, the last play.

    Raises:
        InputError: The folder holds no transcripts, or a line is something else.
    """
    file, tasks = folder / TRANSCRIPTS, folder / TASKS
    if not is_evaluation(folder):
        raise InputError(f"{folder} is no evaluation: it has no {EPISODES}; name the folder `out` of trajsmith eval")
    if not file.is_file() or not tasks.is_file():
        raise InputError(
            f"{folder} has no {file.name if tasks.is_file() else TASKS}, without which its episodes cannot be read: "
            "evaluate again into another folder, with transcripts: true"
        )
    last: dict[tuple[str, int], int] = {}
    for number, line, _ in read_lines(file):
        head = _parse(line, f"{file}:{number}")
        last[head["task_id"], head["sample"]] = number
    wanted, by_id = set(last.values()), {task.id: task for task in read_records(tasks, Task)}
    for number, line, _ in read_lines(file):
        if number in wanted:
            yield _read_line(line, by_id, f"{file}:{number}")


def _parse(line: bytes, where: str) -> JsonObject:
    try:
        head: JsonObject = orjson.loads(line)
        if {"task_id", "sample", "trajectory", "verdict"} <= head.keys():
            return head
    except (orjson.JSONDecodeError, AttributeError) as error:
        raise InputError(f"{where}: no transcript of an episode: {error}") from error
    raise InputError(f"{where}: a transcript without calls and verdict, of an older version: evaluate again")


def _read_line(line: bytes, tasks: dict[str, Task], where: str) -> PlayedEpisode:
    head = _parse(line, where)
    try:
        trajectory = Trajectory.model_validate({**head["trajectory"], **{name: head[name] for name in SHARED}})
        verdict = Verdict.model_validate(head["verdict"])
        task = tasks[head["task_id"]]
    except ValidationError as error:
        raise InputError(f"{where}: {format_first_error(error)}") from error
    except KeyError as error:
        raise InputError(f"{where}: {error} is missing") from error
    return PlayedEpisode(task, head["sample"], head["passed"], head["error"], trajectory, verdict)


def write_gallery(folder: Path, name: str = "") -> Path:
    """Write all episodes of an evaluation as pages in `gallery/`, as those of a run, and return the one to open.

    Raises:
        InputError: The folder holds no transcripts.
        RunError: The disk is full.
    """
    pages = folder / GALLERY
    with storage_boundary(pages), ConversationBrowser(pages, name or folder.name, prefix=0, report="") as browser:
        for played in read_transcripts(folder):
            browser.add(played.task, played.trajectory, played.verdict)
    return pages / INDEX
