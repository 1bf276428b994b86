"""Observations: what a diagnosis knows of one episode, whatever evaluation, benchmark or recording it comes from."""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

from trajsmith.evals.transcripts import PlayedEpisode
from trajsmith.evals.wrong_steps import WrongStep, find_first_wrong_step
from trajsmith.records import FrozenModel, Task, Trajectory

OBSERVATIONS = "observations.jsonl"
"""File in which benchmarks leave their episodes for a diagnosis."""
LENGTHS = ((0, 0, "0"), (1, 2, "1 to 2"), (3, 5, "3 to 5"), (6, 10, "6 to 10"))
"""Ranges of calls that one group of lengths has, and how it is written."""


class EpisodeObservation(FrozenModel):
    """One episode for a diagnosis."""

    episode: str
    """Id by which its messages are looked up: of the trajectory, or the benchmark's own."""
    task: str
    environment: str
    passed: bool | None
    """None if the episode says nothing of the model."""
    error: str = ""
    """Class of the error; empty if it passed."""
    groups: dict[str, tuple[str, ...]]
    """Dimension to the groups that the task belongs to, known before it is played."""
    step: WrongStep | None = None
    """First wrong step, where calls and gold show one."""
    request: str = ""
    """What the user asked for first."""


def observe_episode(played: PlayedEpisode) -> EpisodeObservation:
    """Build the observation of a played episode."""
    task, trajectory = played.task, played.trajectory
    step = None if played.passed is None else find_first_wrong_step(task, trajectory, played.verdict)
    error = played.error or ("" if played.passed or step is None else step.kind)
    return EpisodeObservation(
        episode=trajectory.id,
        task=task.id,
        environment=trajectory.environment,
        passed=played.passed,
        error=error,
        groups=list_groups(task, trajectory),
        step=step,
        request=task.turns[0].query[:300] if task.turns else "",
    )


def list_groups(task: Task, trajectory: Trajectory | None = None) -> dict[str, tuple[str, ...]]:
    """Return the groups of a task by dimension; of a task without gold calls, by the calls that were made."""
    environment = task.environments[0]
    names = [call.tool for call in task.gold_calls]
    if not names and trajectory is not None:
        names = [event.tool for event in trajectory.events]
    length = next((text for low, high, text in LENGTHS if low <= len(names) <= high), "11 or more")
    groups = {
        "environment": (environment,),
        "tool": tuple(f"{environment}.{name}" for name in dict.fromkeys(names)),
        "edge": tuple(dict.fromkeys(build_edge(environment, *pair) for pair in itertools.pairwise(names))),
        "skill": tuple(_list_skills(task)),
        "variant": (task.variant,),
        "length": (f"{length} calls",),
        "turns": (f"{min(len(task.turns), 4)}{'+' if len(task.turns) >= 4 else ''} turns",),
    }
    return {name: members for name, members in groups.items() if members}


def build_edge(environment: str, first: str, second: str) -> str:
    """Return the name of the group of a pair of consecutive calls."""
    return f"{environment}.{first} -> {environment}.{second}"


def _list_skills(task: Task) -> Iterator[str]:
    """Yield what a task asks of an agent beside its calls."""
    turns = task.turns
    if any(not fact.stated for turn in turns for fact in turn.known):
        yield "question to the user"
    if any(len(set(turn.groups)) < len(turn.groups) for turn in turns):
        yield "parallel calls"
    if any(turn.answer_facts for turn in turns):
        yield "report of values"
    if any(call.effect == "write" for call in task.gold_calls):
        yield "change of the state"
    if any(call.actor == "user" for call in task.gold_calls):
        yield "call by the user"
    if task.search is not None:
        yield "tool search"
    if task.distractors and task.search is None:
        yield "distractor tools"
    if len(task.environments) > 1 or "+" in task.environments[0]:
        yield "several environments"


def write_observations(file: Path, observations: Iterable[EpisodeObservation]) -> None:
    """Write observations, one line each, whole or not at all.

    Raises:
        RunError: The file cannot be written.
    """
    from trajsmith.records import write_whole_file

    lines = (one.model_dump_json(exclude_defaults=True).encode() + b"\n" for one in observations)
    write_whole_file(file, b"".join(lines))
