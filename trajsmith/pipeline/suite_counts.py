"""How sharp the checks of a suite of tasks are: the gold play must pass, the empty play and wrong plays must fail.

A mutant of the gold play counts only if execution shows that it is wrong: the final state is another one, or a text
that the task asks for is missing.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trajsmith.phrasing import is_answer_stated
from trajsmith.records import AnswerCheck, JsonObject, Task, canonical_json
from trajsmith.train_grpo import MESSAGE_USER

GOLD_FAILS, EMPTY_PASSES, ESCAPED = "gold fails", "empty play passes", "mutant escapes"
TEXT_LEFT_OUT = "text left out"
TRIES = 2
"""Mutants that are tried for each wrong one that is wanted: many only leave out or change a read."""
MOST_EXAMPLES = 5
"""Examples that are kept of each kind."""


@dataclass(frozen=True)
class SuiteCall:
    """One call of a play."""

    tool: str
    arguments: JsonObject
    actor: str = "assistant"

    def __str__(self) -> str:
        listed = ", ".join(f"{name}={canonical_json(value).decode()}" for name, value in self.arguments.items())
        return f"{self.tool}({listed})"


@dataclass(frozen=True)
class Mutant:
    """A play that differs from the gold play in one thing."""

    kind: str
    about: str
    calls: tuple[SuiteCall, ...]
    texts: tuple[str, ...]

    @property
    def is_by_text(self) -> bool:
        """Return True if it is wrong by what is said, whatever the state is."""
        return self.kind == TEXT_LEFT_OUT


@dataclass
class SuiteAudit:
    """Counts of one suite."""

    suite: str
    tasks: int = 0
    played: int = 0
    """Tasks of which gold and empty play were judged."""
    gold_passes: int = 0
    empty_fails: int = 0
    mutants: Counter[str] = field(default_factory=Counter)
    """Kind to the wrong plays that were judged."""
    caught: Counter[str] = field(default_factory=Counter)
    equivalent: int = 0
    """Mutants that led to the same state, which are no faults and do not count."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why plays came out otherwise than they should, and why tasks could not be played."""
    examples: dict[str, list[str]] = field(default_factory=dict)

    def report(self, reason: str, example: str) -> None:
        """Count a reason, and keep some examples of it."""
        self.reasons[reason] += 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < MOST_EXAMPLES:
            shown.append(example)

    def count_mutant(self, task: str, mutant: Mutant, passed: bool) -> None:
        """Count a wrong play by whether the suite's checks noticed it."""
        self.mutants[mutant.kind] += 1
        if passed:
            self.report(f"{ESCAPED}: {mutant.kind}", f"{task}: {mutant.about}")
        else:
            self.caught[mutant.kind] += 1

    def as_json(self) -> JsonObject:
        """Return everything as JSON."""
        return {
            "suite": self.suite, "tasks": self.tasks, "played": self.played, "gold_passes": self.gold_passes,
            "empty_fails": self.empty_fails, "mutants": dict(self.mutants), "caught": dict(self.caught),
            "equivalent": self.equivalent, "reasons": dict(self.reasons.most_common()), "examples": self.examples,
        }  # fmt: skip


def collect_values(calls: Iterable[SuiteCall]) -> dict[tuple[str, str], list[Any]]:
    """Return the values that gold calls give each parameter: (tool, parameter) to different values."""
    values: dict[tuple[str, str], dict[bytes, Any]] = {}
    for call in calls:
        for name, value in call.arguments.items():
            values.setdefault((call.tool, name), {})[canonical_json(value)] = value
    return {key: list(known.values()) for key, known in values.items()}


def build_mutants(
    calls: Sequence[SuiteCall],
    texts: Sequence[str],
    others: Sequence[SuiteCall],
    values: Mapping[tuple[str, str], Sequence[Any]],
    limit: int,
    rng: random.Random,
    added_first: bool = False,
) -> list[Mutant]:
    """Build mutants of a gold play, of each kind in turn, `TRIES` for each that is wanted.

    Args:
        calls: Gold calls.
        texts: What the task wants to be said.
        others: Gold calls of other tasks, one of which nobody asked for here.
        values: Of `collect_values`, from all tasks.
        limit: Wrong plays that are wanted.
        rng: Chooses.
        added_first: The call that nobody asked for is made before all others, since the play ends with the last one.
    """
    kinds = [
        list(_leave_calls_out(calls, texts)),
        list(_change_arguments(calls, texts, values, rng)),
        list(_add_calls(calls, texts, others, added_first)),
        list(_leave_texts_out(calls, texts)),
    ]
    for mutants in kinds:
        rng.shuffle(mutants)
    chosen: list[Mutant] = []
    while len(chosen) < TRIES * limit and any(kinds):
        chosen += [mutants.pop() for mutants in kinds if mutants]
    return chosen[: TRIES * limit]


def _leave_calls_out(calls: Sequence[SuiteCall], texts: Sequence[str]) -> Iterator[Mutant]:
    for number, call in enumerate(calls):
        yield Mutant("call left out", f"without {call}", (*calls[:number], *calls[number + 1 :]), tuple(texts))


def _change_arguments(
    calls: Sequence[SuiteCall],
    texts: Sequence[str],
    values: Mapping[tuple[str, str], Sequence[Any]],
    rng: random.Random,
) -> Iterator[Mutant]:
    for number, call in enumerate(calls):
        for name, value in call.arguments.items():
            known = [one for one in values.get((call.tool, name), ()) if canonical_json(one) != canonical_json(value)]
            other = rng.choice(known) if known else _alter(value)
            if other is None:
                continue
            changed = SuiteCall(call.tool, {**call.arguments, name: other}, call.actor)
            about = f"{call.tool}: {name}={canonical_json(other).decode()} for {canonical_json(value).decode()}"
            yield Mutant("argument changed", about, (*calls[:number], changed, *calls[number + 1 :]), tuple(texts))


def _alter(value: Any) -> Any:
    """Return another value of the same kind, or None."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list) and len(value) > 1:
        return value[:-1]
    return None


def _add_calls(
    calls: Sequence[SuiteCall], texts: Sequence[str], others: Sequence[SuiteCall], first: bool
) -> Iterator[Mutant]:
    for other in {str(other): other for other in others}.values():
        if other not in calls:
            more = (other, *calls) if first else (*calls, other)
            yield Mutant("call added", f"and {other}", more, tuple(texts))


def _leave_texts_out(calls: Sequence[SuiteCall], texts: Sequence[str]) -> Iterator[Mutant]:
    for number, text in enumerate(texts):
        left = (*texts[:number], *texts[number + 1 :])
        if not any(text.casefold() in other.casefold() for other in left):
            yield Mutant(TEXT_LEFT_OUT, f"without saying {text!r}", tuple(calls), left)


def name_by_text(mutant: Mutant, gold: Sequence[SuiteCall]) -> Mutant:
    """Return a mutant that lacks a text of gold, since it is left out or is another one, as one of that kind."""
    if collect_texts(mutant.calls) == collect_texts(gold):
        return mutant
    return replace(mutant, kind=TEXT_LEFT_OUT)


def collect_texts(calls: Sequence[SuiteCall]) -> list[str]:
    """Return what a play says to the user."""
    return [str(call.arguments.get("text", "")) for call in calls if call.tool == MESSAGE_USER.name]


def find_untold(task: Task, gold: Sequence[SuiteCall], calls: Sequence[SuiteCall]) -> list[str]:
    """Return what the checks of a task want to be told, gold tells, and a play tells nowhere."""
    gold_text, text = ("\n".join(collect_texts(play)) for play in (gold, calls))
    asked = [check for turn in task.turns for check in turn.checks if isinstance(check, AnswerCheck)]
    return [check.says for check in asked if _is_told(check, gold_text) and not _is_told(check, text)]


def _is_told(check: AnswerCheck, text: str) -> bool:
    return is_answer_stated(text, check.value, check.label, check.words, check.question)
