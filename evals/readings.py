"""Readings of a task: what a play changed and told, and tasks that independent solvers read in two ways."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from trajsmith.phrasing.value_formatting import is_value_mentioned
from trajsmith.records import (
    CallEvent,
    FrozenModel,
    GoldCall,
    SolverAttempt,
    Task,
    Trajectory,
    canonical_json,
)
from trajsmith.verify import select_answer_text

LEAST_SOLVERS = 2
"""Solvers that must come to the same other reading."""
LEAST_SHARE = 0.2
"""Share of all scored plays of a task that must come to it."""
SCRIPTED = "scripted"
"""Name of the scripted solver; those with a rate have it behind a colon."""


class TaskReading(FrozenModel):
    """One way in which solvers understood a task."""

    actions: tuple[str, ...]
    """Calls that changed the state, as text."""
    stated: tuple[str, ...] = ()
    """Values that the answers told."""
    solvers: dict[str, int] = {}
    """Solver to the number of its plays that came to this reading."""


class AmbiguousTask(FrozenModel):
    """A task with the reading of its gold calls and another one on which independent solvers agree."""

    task_id: str
    gold: TaskReading
    other: TaskReading


def list_actions(events: Iterable[CallEvent]) -> tuple[str, ...]:
    """Return the calls that changed the state, as text in order of their text."""
    return tuple(sorted(_render_call(event.tool, event.arguments) for event in events if event.effect is not None))


def list_stated_values(trajectory: Trajectory) -> tuple[str, ...]:
    """Return the values of the tools' results that the answers of a play tell, in order of their text."""
    values: set[str] = set()
    for span in trajectory.turns:
        messages = trajectory.messages[span.start : span.stop]
        text = select_answer_text(messages)
        shown = {
            str(value): value
            for message in messages
            if message.role == "tool"
            for value in _iterate_values(_parse(message.content))
        }
        values.update(name for name, value in shown.items() if is_value_mentioned(text, value))
    return tuple(sorted(values))


def find_ambiguous_tasks(
    tasks: Mapping[str, Task],
    attempts: Iterable[SolverAttempt],
    least_solvers: int = LEAST_SOLVERS,
    least_share: float = LEAST_SHARE,
) -> list[AmbiguousTask]:
    """Find tasks that several solvers understood in the same other way.

    A mistake that one solver makes again and again is no reading of the request, nor is a call or a value that is left
    out. Solvers must be independent: two names of one model agree on everything. All scripted solvers count as one.

    Args:
        tasks: Tasks by id.
        attempts: Plays of these tasks.
        least_solvers: Solvers that must agree on the other reading.
        least_share: Share of all scored plays of the task that must have it.

    Returns:
        The tasks in the order of `tasks`, each with both readings.
    """
    plays = defaultdict[str, list[SolverAttempt]](list)
    for attempt in attempts:
        if attempt.passed is not None and attempt.task_id in tasks:
            plays[attempt.task_id].append(attempt)
    ambiguous = (
        _find_other_reading(tasks[name], plays[name], least_solvers, least_share) for name in tasks if name in plays
    )
    return [task for task in ambiguous if task is not None]


def _find_other_reading(
    task: Task, plays: Sequence[SolverAttempt], least_solvers: int, least_share: float
) -> AmbiguousTask | None:
    gold = read_gold_actions(task)
    facts = tuple(sorted(str(fact.value) for turn in task.turns for fact in turn.facts))
    right = {*facts, *(value for play in plays if play.passed for value in play.stated)}
    readings = defaultdict[tuple[tuple[str, ...], tuple[str, ...]], Counter[str]](Counter)
    for play in plays:
        if play.passed:
            continue
        if play.actions == gold:
            if not gold and set(play.stated) - right:
                readings[(), play.stated][play.solver] += 1
        elif Counter(play.actions) - Counter(gold):
            readings[play.actions, ()][play.solver] += 1
    agreed = [
        (sum(solvers.values()), key)
        for key, solvers in readings.items()
        if len({_name_kind(solver) for solver in solvers}) >= least_solvers
        and sum(solvers.values()) >= least_share * len(plays)
    ]
    if not agreed:
        return None
    _, (actions, stated) = max(agreed)
    passed = Counter(play.solver for play in plays if play.passed)
    return AmbiguousTask(
        task_id=task.id,
        gold=TaskReading(actions=gold, stated=() if gold else facts, solvers=dict(sorted(passed.items()))),
        other=TaskReading(actions=actions, stated=stated, solvers=dict(sorted(readings[actions, stated].items()))),
    )


def _name_kind(solver: str) -> str:
    """Return the name of a solver; of scripted ones the same, whatever their rates of mistakes."""
    return SCRIPTED if solver.startswith(f"{SCRIPTED}:") else solver


def read_gold_actions(task: Task) -> tuple[str, ...]:
    """Return the writes of the gold calls, as text in order of their text."""
    return tuple(sorted(_render_gold(call) for call in task.gold_calls if call.effect == "write"))


def _render_gold(call: GoldCall) -> str:
    return _render_call(call.tool, call.arguments)


def _render_call(tool: str, arguments: Mapping[str, Any]) -> str:
    values = ", ".join(f"{name}={canonical_json(value).decode()}" for name, value in sorted(arguments.items()))
    return f"{tool}({values})"


def _parse(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _iterate_values(value: Any) -> Iterator[str | int | float]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _iterate_values(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _iterate_values(inner)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value
