"""What making environments with models will ask of them, from mean sizes: for planning, not for a budget."""

from collections.abc import Sequence
from typing import NamedTuple

from trajsmith.envgen.synthesis.settings import GENERATION_STAGES, STAGES, StageRole
from trajsmith.models import Usage
from trajsmith.pipeline.environment_generation import GenConfig

REPAIRS = 3
"""Repairs that an environment is thought to need."""


class StageEstimate(NamedTuple):
    """One stage, in round figures."""

    stage: str
    role: StageRole
    entry: str
    """Name among `models`."""
    usage: Usage


class _Size(NamedTuple):
    """Mean tokens of one request."""

    prompt: int
    completion: int


SIZES: dict[str, _Size] = {
    "propose": _Size(500, 200),
    "require": _Size(450, 900),
    "state": _Size(1900, 900),
    "plan": _Size(1900, 1900),
    "tools": _Size(4300, 4500),
    "texts": _Size(1200, 1500),
    "seeds": _Size(8200, 2200),
    "phrase": _Size(5500, 1300),
    "test": _Size(8500, 5500),
    "repair": _Size(12000, 8000),
    "try": _Size(8500, 1300),
    "check": _Size(7000, 900),
    "enlarge": _Size(7000, 2500),
    "extend": _Size(8500, 10000),
}
"""Of the scripted expert's run (tests/envgen), with room for a model that writes more."""


def estimate(config: GenConfig, themes: int, stages: Sequence[str] = GENERATION_STAGES) -> list[StageEstimate]:
    """Every stage with what it will ask.

    Args:
        themes: Sources to work on.
        stages: Of making environments, or of growth.
    """
    times = {"repair": min(REPAIRS, config.synthesis.rounds)}
    times |= dict.fromkeys(("try", "check"), config.synthesis.trial_rounds)
    estimates = []
    for stage in stages:
        requests = themes * times.get(stage, 1)
        size = SIZES[stage]
        usage = Usage(
            requests=requests, prompt_tokens=requests * size.prompt, completion_tokens=requests * size.completion
        )
        estimates.append(StageEstimate(stage, STAGES[stage], config.roles.of(STAGES[stage]).model, usage))
    return estimates
