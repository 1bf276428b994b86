"""Solvers that play tasks to measure how hard they are: the scripted agent with mistakes at a set rate, or a model."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from trajsmith.evals.episodes import (
    EvalContext,
    classify_error,
    compute_check_share,
    play_agent,
    score_verdict,
)
from trajsmith.evals.readings import list_actions, list_stated_values
from trajsmith.models import ChatModel
from trajsmith.phrasing import find_clock_date
from trajsmith.records import EnvironmentFault, SolverAttempt, Task, Trajectory, Verdict, derive_seed
from trajsmith.usersim import (
    AgentRole,
    FaultSettings,
    ModelAgent,
    PlaySettings,
    UserFactory,
    add_tool_search,
    build_faulty_agent,
    build_scripted_user,
)

HARMLESS = {
    "conversation": ("needless_read",),
    "direct": ("needless_read", "needless_confirmation", "skipped_confirmation"),
}
"""Kinds of mistakes that do not fail a task, by its mode."""


class Solver(Protocol):
    """Plays the agent of tasks."""

    @property
    def name(self) -> str:
        """Name under which its plays are stored."""

    @property
    def version(self) -> str:
        """Hash of what decides how it plays."""

    def build_agent(self, task: Task, context: EvalContext, sample: int) -> AgentRole:
        """Build the agent of one play."""


@dataclass(frozen=True)
class ScriptedSolver:
    """The scripted agent, which makes a mistake at each gold call with probability `rate`, at most one in a play.

    Mistakes are of the kinds that fail a play: a look-up that is made twice is none of them.
    """

    name: str
    version: str
    rate: float = 0.0
    faults: FaultSettings = field(default_factory=FaultSettings)
    """Weights of the kinds of mistakes."""

    def weigh_faults(self, task: Task) -> FaultSettings:
        """Return the weights of the mistakes that can fail a play of this task."""
        return self.faults.model_copy(update=dict.fromkeys(HARMLESS[task.mode], 0.0))

    def build_agent(self, task: Task, context: EvalContext, sample: int) -> AgentRole:
        """Build the agent; its mistakes are drawn apart from those of every other solver."""
        own = derive_seed("solver", self.name, sample) % 1_000_000
        chance = 1 - (1 - self.rate) ** len(task.gold_calls)
        agent = build_faulty_agent(task, context.wording, own, self.weigh_faults(task).scale(chance))
        agent.now = find_clock_date(context.state(task.initial_state))
        return add_tool_search(agent, task, context.spec, own, True, agent.fault_kind)


@dataclass(frozen=True)
class ModelSolver:
    """A model behind an endpoint or on this machine."""

    name: str
    version: str
    model: ChatModel
    play: PlaySettings = field(default_factory=PlaySettings)
    past_reasoning: bool = False
    """Show the model its reasoning of earlier turns, as contexts of training have it."""

    def build_agent(self, task: Task, context: EvalContext, sample: int) -> AgentRole:
        """Build the agent; its number decides the seed of its sampling."""
        return ModelAgent(
            self.model, context.spec, task, self.play, sample, under_test=True, past_reasoning=self.past_reasoning
        )


async def attempt_task(
    task: Task, context: EvalContext, solver: Solver, sample: int, users: UserFactory = build_scripted_user
) -> SolverAttempt:
    """Play a task once and judge the play.

    Raises:
        RunError: The model's server is out, or the budget is spent.
    """
    agent = solver.build_agent(task, context, sample)
    try:
        trajectory, verdict = await play_agent(task, context, agent, PlaySettings(), sample, users)
    except EnvironmentFault as fault:
        return _build_attempt(task, solver, sample, passed=None, error=f"environment_fault:{fault.kind}")
    failure = agent.failure if isinstance(agent, ModelAgent) else None
    error = classify_error(task, trajectory, verdict, failure)
    return _build_attempt(task, solver, sample, score_verdict(verdict), error, trajectory, verdict)


def _build_attempt(
    task: Task,
    solver: Solver,
    sample: int,
    passed: bool | None,
    error: str,
    trajectory: Trajectory | None = None,
    verdict: Verdict | None = None,
) -> SolverAttempt:
    return SolverAttempt(
        task_id=task.id,
        solver=solver.name,
        version=solver.version,
        sample=sample,
        passed=passed,
        checks=0.0 if verdict is None else compute_check_share(verdict),
        error=error,
        calls=0 if trajectory is None else len(trajectory.events),
        actions=() if trajectory is None else list_actions(trajectory.events),
        stated=() if trajectory is None else list_stated_values(trajectory),
        criteria=() if verdict is None else tuple(each.met for each in verdict.rubric),
        date=datetime.now(UTC).date().isoformat(),
    )
