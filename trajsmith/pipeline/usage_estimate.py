"""Requests and tokens of language models, estimated from settings and mean sizes before a run starts.

The means are those of the bundled environments, and of the scripted expert's environment generation. They are for
planning, not for a budget: `budget` stops a run, this only says about where it will come to.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from trajsmith.models import ROLES, SCRIPTED, Role, Usage
from trajsmith.models.usage import compute_cost
from trajsmith.pipeline.config import RunConfig

if TYPE_CHECKING:
    from trajsmith.envgen.synthesis.settings import StageRole
    from trajsmith.pipeline.environment_generation import GenConfig

REPAIRS = 3
"""Repairs that an environment is thought to need."""
KEPT = 0.95
"""Share of chains that become tasks."""
DERIVED = 0.5
"""Share of the attempts at a variant that succeed."""


class RoleEstimate(NamedTuple):
    """One role, in round figures."""

    role: Role
    model: str
    usage: Usage
    cost: float


class StageEstimate(NamedTuple):
    """One stage of environment generation, in round figures."""

    stage: str
    role: "StageRole"
    entry: str
    """Name among `models`."""
    usage: Usage


class RequestSize(NamedTuple):
    """Mean tokens of one request."""

    prompt: int
    completion: int
    cached: int = 0
    """Part of the prompt."""

    def times(self, requests: int) -> Usage:
        """Return the usage of so many requests."""
        return Usage(
            requests=requests,
            prompt_tokens=requests * self.prompt,
            cached_tokens=requests * self.cached,
            completion_tokens=requests * self.completion,
        )


ROLE_SIZES: dict[Role, RequestSize] = {
    "classify": RequestSize(2500, 1400, 600),
    "refine": RequestSize(4500, 700, 3000),
    "proposer": RequestSize(3200, 300, 500),
    "writer": RequestSize(1400, 350, 600),
    "checker": RequestSize(2200, 250, 400),
    "user": RequestSize(900, 50, 500),
    "agent": RequestSize(4200, 90, 3400),
    "judge": RequestSize(2500, 150, 800),
}
STAGE_SIZES: dict[str, RequestSize] = {
    "propose": RequestSize(500, 200),
    "require": RequestSize(450, 900),
    "state": RequestSize(1900, 900),
    "plan": RequestSize(1900, 1900),
    "tools": RequestSize(4300, 4500),
    "texts": RequestSize(1200, 1500),
    "seeds": RequestSize(8200, 2200),
    "phrase": RequestSize(5500, 1300),
    "test": RequestSize(8500, 5500),
    "repair": RequestSize(12000, 8000),
    "try": RequestSize(8500, 1300),
    "check": RequestSize(7000, 900),
    "enlarge": RequestSize(7000, 2500),
    "extend": RequestSize(8500, 10000),
}
"""Of the scripted expert's run (tests/envgen), with room for a model that writes more."""


def estimate_run(config: RunConfig, tools: int) -> list[RoleEstimate]:
    """Estimate every role that a model plays.

    Args:
        tools: Tools of all environments together.
    """
    estimates = []
    for role in ROLES:
        name = config.roles.of(role).model
        if name != SCRIPTED:
            requests = round(_requests(config, tools)[role])
            usage, model = ROLE_SIZES[role].times(requests), config.models[name]
            estimates.append(RoleEstimate(role, model.model, usage, compute_cost(usage, model.price)))
    return estimates


def _requests(config: RunConfig, tools: int) -> dict[Role, float]:
    tasks = config.sample.count * KEPT
    plays = tasks * (1 + DERIVED * sum(config.vary.rates.values())) * config.play.candidates
    shares = config.sources.shares
    turns = sum(config.sample.length) / 2 / config.write.mean_calls
    return {
        "classify": len(config.environments) + tools / 16,
        "refine": len(config.environments) / 2 + tools / config.graph.refine.targets,
        "proposer": 1.5 * config.sample.count * sum(shares.get(name, 0.0) for name in ("state", "program", "long")),
        "writer": 3.0 * tasks,
        "checker": (1 + 1.5 * (config.write.checks.items + config.write.rubric.written)) * tasks,
        "user": plays * turns * (1 + config.write.withhold),
        "agent": plays * turns * (config.write.mean_calls + 1 + config.write.withhold),
        "judge": 0.3 * plays,
    }


def estimate_generation(config: "GenConfig", themes: int, stages: Sequence[str]) -> list[StageEstimate]:
    """Estimate every stage of making or growing environments.

    Args:
        themes: Sources to work on.
        stages: Of making environments, or of growth.
    """
    from trajsmith.envgen.synthesis.settings import STAGES

    times = {"repair": min(REPAIRS, config.synthesis.rounds)}
    times |= dict.fromkeys(("try", "check"), config.synthesis.trial_rounds)
    estimates = []
    for stage in stages:
        requests = themes * times.get(stage, 1)
        usage = STAGE_SIZES[stage].times(requests)
        estimates.append(StageEstimate(stage, STAGES[stage], config.roles.of(STAGES[stage]).model, usage))
    return estimates
