"""Rewards by name. One is a module here, or an entry point of the group `trajsmith.rewards`, that has a function
`reward(evidence, settings)`: a pure function to a number, or None where it could not tell."""

import functools
import importlib
import pkgutil
from collections.abc import Callable
from importlib.metadata import entry_points

from trajsmith.records import InputError
from trajsmith.verify.rewards._evidence import RewardEvidence, RewardSettings

Reward = Callable[[RewardEvidence, RewardSettings], float | None]
GROUP = "trajsmith.rewards"


@functools.cache
def list_rewards() -> tuple[str, ...]:
    """Names of all rewards, sorted."""
    bundled = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    return tuple(sorted({*bundled, *(entry.name for entry in entry_points(group=GROUP))}))


@functools.cache
def load_reward(name: str) -> Reward:
    """The function of a reward.

    Raises:
        InputError: There is none of this name.
    """
    if name not in list_rewards():
        raise InputError(f"no reward named {name!r}; there are: {', '.join(list_rewards())}")
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            loaded: Reward = entry.load()
            return loaded
    reward: Reward = importlib.import_module(f"{__name__}.{name}").reward
    return reward


def compute_rewards(evidence: RewardEvidence, settings: RewardSettings) -> dict[str, float]:
    """The rewards that are asked for; one that could not tell is left out, never zero."""
    rewards = {name: load_reward(name)(evidence, settings) for name in settings.names or list_rewards()}
    return {name: round(value, 4) for name, value in rewards.items() if value is not None}


__all__ = ["RewardEvidence", "RewardSettings", "compute_rewards", "list_rewards", "load_reward"]
