"""Do the task ids of a file belong to its dialogues? A verdict against the wrong task would look like any other."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from trajectory import canonical_json
from trajectory.outside import Outside, OutsideTask

SPECIFIC = re.compile(r"[A-Za-z0-9_@.+-]*[0-9_@][A-Za-z0-9_@.+-]*")
COMMON = 0.25
"""A word that so many tasks have tells none of them apart."""
FEW = 4
"""Tasks below which nothing is common."""


@dataclass(frozen=True)
class _Words:
    """What tells the tasks of a file apart."""

    of_task: dict[str, frozenset[str]]

    def share(self, task: str, said: frozenset[str]) -> float:
        own = self.of_task[task]
        return len(own & said) / len(own) if own else 0.0


def misfits(dialogues: Sequence[Outside]) -> dict[str, str]:
    """Dialogues (by id) that are not about the task that they name, and why that is thought.

    The specific words of a task (ids, numbers, addresses in its scenario and gold calls) must turn up in its dialogue.
    A dialogue that has none of its own task's words, and most of another's, belongs to that one. Where a third of a
    file's dialogues have none, or another task fits half of them better, none of the file can be trusted.
    """
    tasks = {one.task.name: one.task for one in dialogues if one.task is not None}
    if len(tasks) < 2:
        return {}
    words = _words(tasks)
    judged = [(one, _fit(one, words)) for one in dialogues if one.task is not None and words.of_task[one.task.name]]
    wrong = {one.id: why for one, fit in judged if (why := _elsewhere(one, fit))}
    lost = sum(fit.own == 0 for _, fit in judged)
    strange = sum(fit.best > fit.own for _, fit in judged)
    if wrong and (lost > len(judged) / 3 or strange > len(judged) / 2):
        why = f"another task fits {strange} of the file's {len(judged)} dialogues better than the one that they name"
        return {one.id: wrong.get(one.id, why) for one in dialogues if one.task is not None}
    return wrong


@dataclass(frozen=True)
class _Fit:
    """How well a dialogue fits its own task, and the best of the others."""

    own: float
    best: float
    other: str


def _fit(dialogue: Outside, words: _Words) -> _Fit:
    said, own = _said(dialogue), dialogue.task.name if dialogue.task else ""
    best, other = max((words.share(name, said), name) for name in words.of_task if name != own)
    return _Fit(words.share(own, said), best, other)


def _elsewhere(dialogue: Outside, fit: _Fit) -> str:
    if fit.own > 0 or fit.best < 0.5 or dialogue.task is None:
        return ""
    return f"it names task {dialogue.task.name} and is about task {fit.other}"


def _words(tasks: dict[str, OutsideTask]) -> _Words:
    found = {name: _specific(_told(task)) for name, task in tasks.items()}
    count = Counter(word for own in found.values() for word in own)
    most = max(1, int(COMMON * len(tasks))) if len(tasks) >= FEW else len(tasks)
    return _Words({name: frozenset(word for word in own if count[word] <= most) for name, own in found.items()})


def _told(task: OutsideTask) -> str:
    gold = [canonical_json(call.arguments).decode() for call in task.gold or ()]
    return " ".join([task.scenario, *gold])


def _said(dialogue: Outside) -> frozenset[str]:
    """Specific words of what was said and asked of tools; results of tools tell of everything."""
    texts = [message.content for message in dialogue.messages if message.role != "system"]
    texts += [canonical_json(call.arguments).decode() for call in dialogue.calls]
    return frozenset(_specific(" ".join(texts)))


def _specific(text: str) -> set[str]:
    found = {word.strip(".-+").lower() for word in SPECIFIC.findall(text)}
    return {word for word in found if len(word) >= 4}
