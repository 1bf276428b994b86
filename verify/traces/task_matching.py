"""Check that the task ids of a file belong to its dialogues: a verdict against the wrong task would look valid."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from trajsmith.records import TraceDialogue, TraceTask, canonical_json

SPECIFIC = re.compile(r"[A-Za-z0-9_@.+-]{0,80}[0-9_@][A-Za-z0-9_@.+-]*")
COMMON = 0.25
"""A word that so many tasks have tells none of them apart."""
MIN_TASKS = 4
"""Tasks below which nothing is common."""


@dataclass(frozen=True)
class _TaskWords:
    """Distinguishing words of the tasks of a file."""

    of_task: dict[str, frozenset[str]]

    def share(self, task: str, dialogue_words: frozenset[str]) -> float:
        own = self.of_task[task]
        return len(own & dialogue_words) / len(own) if own else 0.0


def find_mismatched_tasks(dialogues: Sequence[TraceDialogue]) -> dict[str, str]:
    """Return the dialogues (by id) that do not match the task that they name, with the reason.

    The specific words of a task (ids, numbers, addresses in its scenario and gold calls) must turn up in its dialogue.
    A dialogue that has none of its own task's words, and most of another's, belongs to that one. Where a third of a
    file's dialogues have none, or another task fits half of them better, none of the file can be trusted.
    """
    tasks = {one.task.name: one.task for one in dialogues if one.task is not None}
    if len(tasks) < 2:
        return {}
    words = _collect_task_words(tasks)
    judged = [
        (one, _compare_tasks(one, words)) for one in dialogues if one.task is not None and words.of_task[one.task.name]
    ]
    wrong = {one.id: why for one, fit in judged if (why := _describe_better_task(one, fit))}
    lost = sum(fit.own == 0 for _, fit in judged)
    strange = sum(fit.best > fit.own for _, fit in judged)
    if wrong and (lost > len(judged) / 3 or strange > len(judged) / 2):
        why = f"another task fits {strange} of the file's {len(judged)} dialogues better than the one that they name"
        return {one.id: wrong.get(one.id, why) for one in dialogues if one.task is not None}
    return wrong


@dataclass(frozen=True)
class _TaskFit:
    """Match of a dialogue with its own task and with the best other one."""

    own: float
    best: float
    other: str


def _compare_tasks(dialogue: TraceDialogue, words: _TaskWords) -> _TaskFit:
    dialogue_words, own = _collect_dialogue_words(dialogue), dialogue.task.name if dialogue.task else ""
    best, other = max((words.share(name, dialogue_words), name) for name in words.of_task if name != own)
    return _TaskFit(words.share(own, dialogue_words), best, other)


def _describe_better_task(dialogue: TraceDialogue, fit: _TaskFit) -> str:
    if fit.own > 0 or fit.best < 0.5 or dialogue.task is None:
        return ""
    return f"it names task {dialogue.task.name} and is about task {fit.other}"


def _collect_task_words(tasks: dict[str, TraceTask]) -> _TaskWords:
    words_by_task = {name: _find_specific_words(_join_task_text(task)) for name, task in tasks.items()}
    count = Counter(word for own in words_by_task.values() for word in own)
    most = max(1, int(COMMON * len(tasks))) if len(tasks) >= MIN_TASKS else len(tasks)
    return _TaskWords(
        {name: frozenset(word for word in own if count[word] <= most) for name, own in words_by_task.items()}
    )


def _join_task_text(task: TraceTask) -> str:
    gold = [canonical_json(call.arguments).decode() for call in task.gold or ()]
    return " ".join([task.scenario, *gold])


def _collect_dialogue_words(dialogue: TraceDialogue) -> frozenset[str]:
    """Specific words of what was said and asked of tools; results of tools tell of everything."""
    texts = [message.content for message in dialogue.messages if message.role != "system"]
    texts += [canonical_json(call.arguments).decode() for call in dialogue.calls]
    return frozenset(_find_specific_words(" ".join(texts)))


def _find_specific_words(text: str) -> set[str]:
    specific = {word.strip(".-+").lower() for word in SPECIFIC.findall(text)}
    return {word for word in specific if len(word) >= 4}
