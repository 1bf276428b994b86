"""Rewards by name. One is a module here, or an entry point of the group `trajsmith.rewards`, that has a function
`reward(evidence, settings)`: a pure function to a number, or None where it could not tell."""

import functools
import importlib
import pkgutil
from collections.abc import Callable
from importlib.metadata import entry_points

from trajectory import InputError
from verify.rewards._evidence import Evidence, RewardSettings

Reward = Callable[[Evidence, RewardSettings], float | None]
GROUP = "trajsmith.rewards"


@functools.cache
def reward_names() -> tuple[str, ...]:
    """Names of all rewards, sorted."""
    bundled = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    return tuple(sorted({*bundled, *(entry.name for entry in entry_points(group=GROUP))}))


@functools.cache
def reward_function(name: str) -> Reward:
    """The function of a reward.

    Raises:
        InputError: There is none of this name.
    """
    if name not in reward_names():
        raise InputError(f"no reward named {name!r}; there are: {', '.join(reward_names())}")
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            loaded: Reward = entry.load()
            return loaded
    found: Reward = importlib.import_module(f"{__name__}.{name}").reward
    return found


def all_rewards(evidence: Evidence, settings: RewardSettings) -> dict[str, float]:
    """The rewards that are asked for; one that could not tell is left out, never zero."""
    found = {name: reward_function(name)(evidence, settings) for name in settings.names or reward_names()}
    return {name: round(value, 4) for name, value in found.items() if value is not None}


__all__ = ["Evidence", "RewardSettings", "all_rewards", "reward_function", "reward_names"]
