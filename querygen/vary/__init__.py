"""Variants of tasks: what goes wrong, is missing or must be refused, derived from a task and proved by execution.

One file is one variant.
"""

from pydantic import Field, field_validator

from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantFunction, VariantResult
from trajsmith.records import FrozenModel, RecordDropped, derive_seed

__all__ = [
    "VARIANTS",
    "VariantCase",
    "VariantFunction",
    "VariantResult",
    "VarySettings",
    "choose_variants",
    "derive_variant",
]  # fmt: skip


class VarySettings(FrozenModel):
    """Settings of the variants."""

    rates: dict[str, float] = {}
    """Variant to the share of tasks that it is derived from; what is not named is not made."""
    entities: int = Field(2000, ge=10, le=200_000)
    """Distractor entities that `long_context` puts into a state."""

    @field_validator("rates")
    @classmethod
    def _known(cls, rates: dict[str, float]) -> dict[str, float]:
        for name, rate in rates.items():
            VARIANTS.check_name(name)
            if not 0 <= rate <= 1:
                raise ValueError(f"the rate of {name} is {rate}: it goes from 0 to 1")
        return rates

    @property
    def on(self) -> bool:
        """Return True if any variant is made."""
        return any(self.rates.values())


def choose_variants(seed: int, rates: dict[str, float]) -> list[str]:
    """Return the variants that are derived from the task with this seed."""
    return [name for name, rate in sorted(rates.items()) if derive_seed(seed, "vary", name) / 2**63 < rate]


async def derive_variant(name: str, case: VariantCase) -> VariantResult:
    """Derive one variant of a task.

    Raises:
        RecordDropped: It cannot be made of this task, or its label cannot be proved; the reason names the variant.
    """
    try:
        return await VARIANTS.get(name)(case)
    except RecordDropped as drop:
        raise RecordDropped(f"{name}: {drop.reason}", drop.detail) from drop
