"""What a run will ask of language models, estimated before it starts from its settings and mean sizes.

The means are those of the bundled environments. They are for planning, not for a budget: `budget` stops a run, this
only says about where it will come to.
"""

from typing import NamedTuple

from trajsmith.models import ROLES, SCRIPTED, Role, Usage
from trajsmith.models.usage import compute_cost
from trajsmith.pipeline.config import RunConfig

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


class _Size(NamedTuple):
    """Mean tokens of one request."""

    prompt: int
    cached: int
    completion: int


SIZES: dict[Role, _Size] = {
    "classify": _Size(2500, 600, 1400),
    "refine": _Size(4500, 3000, 700),
    "writer": _Size(1400, 600, 350),
    "user": _Size(900, 500, 50),
    "agent": _Size(4200, 3400, 90),
    "judge": _Size(2500, 800, 150),
}


def estimate(config: RunConfig, tools: int) -> list[RoleEstimate]:
    """Every role that a model plays, with what it will be asked.

    Args:
        tools: Tools of all environments together.
    """
    estimates = []
    for role in ROLES:
        name = config.roles.of(role).model
        if name != SCRIPTED:
            requests = round(_requests(config, tools)[role])
            size, model = SIZES[role], config.models[name]
            usage = Usage(
                requests=requests,
                prompt_tokens=requests * size.prompt,
                cached_tokens=requests * size.cached,
                completion_tokens=requests * size.completion,
            )
            estimates.append(RoleEstimate(role, model.model, usage, compute_cost(usage, model.price)))
    return estimates


def _requests(config: RunConfig, tools: int) -> dict[Role, float]:
    tasks = config.sample.count * KEPT
    plays = tasks * (1 + DERIVED * sum(config.vary.rates.values())) * config.play.candidates
    turns = sum(config.sample.length) / 2 / config.write.mean_calls
    return {
        "classify": len(config.environments) + tools / 16,
        "refine": len(config.environments) / 2 + tools / config.graph.refine.targets,
        "writer": 3.0 * tasks,
        "user": plays * turns * (1 + config.write.withhold),
        "agent": plays * turns * (config.write.mean_calls + 1 + config.write.withhold),
        "judge": 0.3 * plays,
    }
