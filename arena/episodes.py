"""One episode: a task is played by a model, judged by replay, and put into one line."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from arena.roles import Complete, ModelAgent
from chatmodel import Wording
from chatmodel.surface import clock_of
from environments import EnvironmentSource
from trajectory import EnvironmentSpec, JsonObject, Record, Task, Trajectory, Verdict
from usersim import Dialogue, PlaySettings, ScriptedUser
from verify import verify_trajectory


@dataclass(frozen=True)
class Ground:
    """What an episode stands on."""

    source: EnvironmentSource
    spec: EnvironmentSpec
    wording: Wording
    state: Callable[[str], JsonObject]
    """Initial state by its hash; shared, so it must not be changed."""


class Episode(Record):
    """What one episode came to."""

    PREFIX: ClassVar[str] = "episode"

    task_id: str
    environment: str
    variant: str
    sample: int
    """Number among the episodes of the same task, from 0."""
    passed: bool | None
    """None if the environment broke: such an episode says nothing of the model."""
    checks: float
    """Share of the checks that passed."""
    error: str = ""
    """What went wrong first, from a small vocabulary; empty if it passed."""
    turns: int
    calls: int
    tokens: int
    """Tokens that the model wrote."""
    trajectory_id: str


async def play_episode(
    task: Task, ground: Ground, name: str, complete: Complete, play: PlaySettings, sample: int
) -> tuple[Episode, Trajectory, Verdict]:
    """Play and judge on sessions of its own.

    Raises:
        EnvironmentFault: The environment does not start.
    """
    state = ground.state(task.initial_state)
    known = {tool.name: tool for tool in ground.spec.tools}
    agent = ModelAgent(name, complete, [known[shown].as_function() for shown in task.exposed_tools])
    user = ScriptedUser(task, ground.wording, sample, clock_of(state))
    session = await ground.source.open()
    try:
        trajectory = await Dialogue(ground.spec, task, state, session, agent, user, play, sample).play()
        verdict = await verify_trajectory(task, trajectory, state, session)
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
        error=error_class(task, trajectory, verdict, agent.cut, agent.malformed),
        turns=len(trajectory.turns),
        calls=len(trajectory.events),
        tokens=agent.tokens,
        trajectory_id=trajectory.id,
    )


def error_class(task: Task, trajectory: Trajectory, verdict: Verdict, cut: bool, malformed: bool) -> str:
    """The first thing that went wrong: how the message was made, then how tools were used, then what came of it."""
    if verdict.accepted:
        return ""
    if verdict.outcome in ("environment_error", "undecided", "user_error"):
        return verdict.outcome
    if malformed:
        return "malformed_call"
    if cut:
        return "message_cut"
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
