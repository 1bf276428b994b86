"""Variants of tasks: what goes wrong, is missing or must be refused, derived from a task and proved by execution.

One file is one variant: a module of this package with a coroutine `vary(case: Case) -> Varied` is registered under the
module's name by being there. Design section 5, stage `vary`.
"""

import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from functools import cache

from pydantic import Field, field_validator

from querygen.vary._case import Case, Varied
from trajectory import Dropped, Frozen, derive_seed

Vary = Callable[[Case], Awaitable[Varied]]

__all__ = ["Case", "Varied", "VarySettings", "chosen", "derive", "names"]


@cache
def names() -> tuple[str, ...]:
    """All variants."""
    return tuple(sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_")))


class VarySettings(Frozen):
    """Which variants are made."""

    rates: dict[str, float] = {}
    """Variant to the share of tasks that it is derived from; what is not named is not made."""
    entities: int = Field(2000, ge=10, le=200_000)
    """Distractor entities that `long_context` puts into a state."""

    @field_validator("rates")
    @classmethod
    def _known(cls, rates: dict[str, float]) -> dict[str, float]:
        for name, rate in rates.items():
            if name not in names():
                raise ValueError(f"no variant {name!r}; there are {', '.join(names())}")
            if not 0 <= rate <= 1:
                raise ValueError(f"the rate of {name} is {rate}: it goes from 0 to 1")
        return rates

    @property
    def on(self) -> bool:
        """True if any variant is made."""
        return any(self.rates.values())


def chosen(seed: int, rates: dict[str, float]) -> list[str]:
    """The variants that are derived from the task with this seed."""
    return [name for name, rate in sorted(rates.items()) if derive_seed(seed, "vary", name) / 2**63 < rate]


async def derive(name: str, case: Case) -> Varied:
    """One variant of a task.

    Raises:
        Dropped: It cannot be made of this task, or its label cannot be proved; the reason names the variant.
    """
    module = importlib.import_module(f"{__name__}.{name}")
    try:
        return await module.vary(case)  # type: ignore[no-any-return]
    except Dropped as drop:
        raise Dropped(f"{name}: {drop.reason}", drop.detail) from drop
