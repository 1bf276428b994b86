"""One episode: a task is played by a model, judged by replay, and put into one line."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from arena.roles import Complete, ModelAgent, Reply, Users, scripted_user
from chatmodel import Wording
from environments import EnvironmentSource
from environments.staged import staged
from trajectory import EnvironmentSpec, JsonObject, Record, Task, Trajectory, Verdict
from usersim import Dialogue, PlaySettings, ShownTools
from verify import CodeChecks, verify_trajectory

PASSING = frozenset({"timeout", "connection", "rate_limit", "server"})
"""Faults of a model's server that may be gone at the next try."""


@dataclass(frozen=True)
class Ground:
    """What an episode stands on."""

    source: EnvironmentSource
    spec: EnvironmentSpec
    wording: Wording
    state: Callable[[str], JsonObject]
    """Initial state by its hash; shared, so it must not be changed."""
    code: CodeChecks | None = None
    """Where check functions that somebody wrote run; without it they could not tell."""


class Episode(Record):
    """What one episode came to."""

    PREFIX: ClassVar[str] = "episode"

    task_id: str
    environment: str
    variant: str
    sample: int
    """Number among the episodes of the same task, from 0."""
    passed: bool | None = None
    """None if the environment, the user or the model's server failed: such an episode says nothing of the model."""
    checks: float
    """Share of the checks that passed."""
    error: str = ""
    """What went wrong first, from a small vocabulary; empty if it passed."""
    turns: int
    calls: int
    tokens: int
    """Tokens that the model wrote."""
    trajectory_id: str

    @property
    def worth_another(self) -> bool:
        """True if only the model's server failed, so that the episode is played again when the evaluation goes on."""
        return self.passed is None and self.error.removeprefix("model_") in PASSING


async def play_episode(
    task: Task,
    ground: Ground,
    name: str,
    complete: Complete,
    play: PlaySettings,
    sample: int,
    users: Users = scripted_user,
    played: Callable[[], None] = lambda: None,
) -> tuple[Episode, Trajectory, Verdict]:
    """Play and judge on sessions of its own.

    Args:
        played: Called when the last message was said, before the play is judged.

    Raises:
        EnvironmentFault: The environment does not start.
    """
    state = ground.state(task.initial_state)
    agent = ModelAgent(name, complete, ShownTools(task, ground.spec))
    user = users(task, ground.spec, ground.wording, state, sample)
    session = await ground.source.open()
    try:
        trajectory = await Dialogue(ground.spec, task, state, staged(session, task), agent, user, play, sample).play()
        played()
        verdict = await verify_trajectory(task, trajectory, state, session, None, ground.code, ground.wording)
    finally:
        await session.close()
    return _episode(task, trajectory, verdict, agent, sample), trajectory, verdict


def _episode(task: Task, trajectory: Trajectory, verdict: Verdict, agent: ModelAgent, sample: int) -> Episode:
    unscored = verdict.outcome in ("environment_error", "undecided", "user_error")
    share = sum(check.passed is True for check in verdict.checks) / max(1, len(verdict.checks))
    return Episode(
        task_id=task.id,
        environment=trajectory.environment,
        variant=task.variant,
        sample=sample,
        passed=None if unscored else verdict.accepted,
        checks=round(share, 4),
        error=error_class(task, trajectory, verdict, agent.last),
        turns=len(trajectory.turns),
        calls=len(trajectory.events),
        tokens=agent.tokens,
        trajectory_id=trajectory.id,
    )


def error_class(task: Task, trajectory: Trajectory, verdict: Verdict, last: Reply | None) -> str:
    """The first thing that went wrong: how the message was made, then how tools were used, then what came of it.

    Args:
        last: The newest reply of the model.
    """
    if verdict.accepted:
        return ""
    if trajectory.stop_reason == "model_fault":
        return f"model_{trajectory.fault}"
    if verdict.outcome in ("environment_error", "undecided", "user_error"):
        return verdict.outcome
    if last is not None and last.broken:
        return "malformed_call" if last.malformed else "message_cut" if last.cut else "no_answer"
    if trajectory.stop_reason == "step_limit":
        return "step_limit"
    if not trajectory.events and task.gold_calls:
        return "no_call"
    refusal = next((event.error for event in trajectory.events if event.error), None)
    if refusal:
        return refusal
    if not verdict.state_match:
        return "wrong_state"
    return "wrong_answer"
