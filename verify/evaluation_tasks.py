"""Tasks that a model is evaluated on: training rows that are the same, or nearly, are refused."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from trajsmith.phrasing.near_duplicates import NearDuplicateIndex
from trajsmith.records import Task, canonical_json, read_records
from trajsmith.verify.duplicates import SHINGLE, DuplicateSettings, iter_entity_values, split_words


class EvaluationTasks:
    """Tasks of evaluations, searchable for one that a task repeats.

    Args:
        files: Files of tasks, such as `tasks.jsonl` of an evaluation.

    Raises:
        InputError: A file cannot be read, or holds something else.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._same: dict[tuple[str, bytes], str] = {}
        self._index = NearDuplicateIndex(DuplicateSettings().threshold)
        for file in files:
            for task in read_records(file, Task):
                self._same.setdefault(_build_key(task), task.id)
                self._index.add(task.id, compute_task_features(task))

    def find(self, task: Task) -> str | None:
        """Return the id of the evaluated task that a task repeats: same state and calls, or nearly the same words,
        calls and values; None if there is none."""
        return self._same.get(_build_key(task)) or self._index.find(compute_task_features(task))


def _build_key(task: Task) -> tuple[str, bytes]:
    return task.initial_state, canonical_json([[call.tool, call.arguments] for call in task.gold_calls])


def compute_task_features(task: Task) -> set[bytes]:
    """Compute hashed features of a task as `compute_features` does those of a trajectory."""
    words = [word for turn in task.turns for word in split_words(turn.query)]
    tools = ["", *(call.tool for call in task.gold_calls), ""]
    shingles = {" ".join(words[at : at + SHINGLE]) for at in range(max(1, len(words) - SHINGLE + 1))}
    shingles |= {f"\x01{first}>{second}" for first, second in pairwise(tools)}
    shingles |= {f"\x02{value}" for call in task.gold_calls for value in iter_entity_values(call.arguments)}
    return {text.encode("utf-8", "replace") for text in shingles}
