"""One evaluated episode: a model plays a task, replay judges it, and the result becomes one line."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from trajsmith.environments import EnvironmentSource
from trajsmith.environments.injected_faults import inject_faults
from trajsmith.models import ChatModel
from trajsmith.phrasing import Wording
from trajsmith.records import EnvironmentSpec, JsonObject, ScoredPlay, Task, Trajectory, Verdict
from trajsmith.usersim import AgentRole, Dialogue, ModelAgent, PlaySettings, UserFactory, build_scripted_user
from trajsmith.verify import CodeCheckRunner, VerifySettings, verify_trajectory

UNSCORED = frozenset({"environment_error", "undecided", "user_error"})
"""Outcomes that say nothing of the agent."""


@dataclass(frozen=True)
class EvalContext:
    """Environment, wording and state store that an episode is evaluated with."""

    source: EnvironmentSource
    spec: EnvironmentSpec
    wording: Wording
    state: Callable[[str], JsonObject]
    """Initial state by its hash; shared, so it must not be changed."""
    code: CodeCheckRunner | None = None
    """Where check functions that somebody wrote run; without it they could not tell."""
    verify: VerifySettings = field(default_factory=VerifySettings)
    """Settings of verification."""


class Episode(ScoredPlay):
    """Result of one evaluated episode."""

    PREFIX: ClassVar[str] = "episode"

    environment: str
    variant: str
    turns: int
    tokens: int
    """Tokens that the model wrote."""
    trajectory_id: str


async def play_episode(
    task: Task,
    ground: EvalContext,
    model: ChatModel,
    play: PlaySettings,
    sample: int,
    users: UserFactory = build_scripted_user,
    played: Callable[[], None] = lambda: None,
    past_reasoning: bool = True,
) -> tuple[Episode, Trajectory, Verdict]:
    """Play and judge one episode on sessions of its own.

    Args:
        model: Plays the agent.
        played: Called when the last message was said, before the play is judged.
        past_reasoning: Show the model its reasoning of earlier turns, as contexts of training have it.

    Raises:
        EnvironmentFault: The environment does not start.
    """
    agent = ModelAgent(model, ground.spec, task, play, sample, under_test=True, past_reasoning=past_reasoning)
    trajectory, verdict = await play_agent(task, ground, agent, play, sample, users, played)
    return _episode(task, trajectory, verdict, agent, sample), trajectory, verdict


async def play_agent(
    task: Task,
    ground: EvalContext,
    agent: AgentRole,
    play: PlaySettings,
    sample: int,
    users: UserFactory = build_scripted_user,
    played: Callable[[], None] = lambda: None,
) -> tuple[Trajectory, Verdict]:
    """Play and judge one episode with any agent; see `play_episode`.

    Raises:
        EnvironmentFault: The environment does not start.
    """
    state = ground.state(task.initial_state)
    user = users(task, ground.spec, ground.wording, state, sample)
    session = await ground.source.open()
    try:
        trajectory = await Dialogue(
            ground.spec, task, state, inject_faults(session, task), agent, user, play, sample
        ).play()
        played()
        verdict = await verify_trajectory(task, trajectory, state, session, ground.verify, ground.code, ground.wording)
    finally:
        await session.close()
    return trajectory, verdict


def _episode(task: Task, trajectory: Trajectory, verdict: Verdict, agent: ModelAgent, sample: int) -> Episode:
    return Episode(
        task_id=task.id,
        environment=trajectory.environment,
        variant=task.variant,
        sample=sample,
        passed=score_verdict(verdict),
        checks=compute_check_share(verdict),
        error=classify_error(task, trajectory, verdict, agent.failure),
        turns=len(trajectory.turns),
        calls=len(trajectory.events),
        tokens=agent.tokens,
        trajectory_id=trajectory.id,
    )


def score_verdict(verdict: Verdict) -> bool | None:
    """Return whether an episode passed; None if the environment, the user or the model's server failed."""
    return None if verdict.outcome in UNSCORED else verdict.accepted


def has_right_calls(verdict: Verdict) -> bool:
    """Return True if all gold calls were made and the final state is the gold state, whatever was told."""
    return verdict.state_match is True and verdict.trajectory_match == 1.0


def compute_check_share(verdict: Verdict) -> float:
    """Return the share of the checks that passed."""
    return round(sum(check.passed is True for check in verdict.checks) / max(1, len(verdict.checks)), 4)


def classify_error(task: Task, trajectory: Trajectory, verdict: Verdict, failure: str | None) -> str:
    """Return the first error in the order: message format, tool use, outcome.

    Args:
        failure: What is wrong with the newest message of the model.
    """
    if verdict.accepted:
        return ""
    if trajectory.stop_reason == "model_fault":
        return f"model_{trajectory.fault}"
    if verdict.outcome in UNSCORED:
        return verdict.outcome
    if failure is not None:
        return failure
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
