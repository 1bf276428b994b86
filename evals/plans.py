"""A diagnosis becomes a plan: which groups the next data is made for, and how much of each."""

from collections.abc import Sequence
from pathlib import Path

from trajsmith.evals.diagnosis import Diagnosis, GroupFinding
from trajsmith.toolgraph import EnvironmentWish, PlanTarget, SamplingPlan

SERVED = ("environment", "tool", "edge", "variant")
"""Dimensions by which chains and variants can be chosen."""
WISHED = 6
"""Weak tools and mistakes that a wish for an environment names at most, of each."""


def build_plan(diagnosis: Diagnosis, avoid: Sequence[Path] = ()) -> SamplingPlan | None:
    """Return the plan for the weak groups of a diagnosis, weighted by the failures that each adds by itself.

    Args:
        diagnosis: What was found.
        avoid: Files of the evaluated tasks, which the new data must not repeat.

    Returns:
        The plan; None if no weak group can be served by choosing chains and variants.
    """
    targets = tuple(_build_target(group) for group in diagnosis.named if group.dimension in SERVED)
    if not targets:
        return None
    unserved = tuple(f"{group.dimension} {group.name}" for group in diagnosis.named if group.dimension not in SERVED)
    wishes = tuple(_build_wish(group, diagnosis) for group in diagnosis.named if group.dimension == "environment")
    return SamplingPlan(
        name=diagnosis.name, targets=targets, environments=wishes, unserved=unserved, avoid=tuple(avoid)
    )


def _build_wish(group: GroupFinding, diagnosis: Diagnosis) -> EnvironmentWish:
    """Return a wish for environments like a weak one, without requests of the evaluation: no model may know them."""
    tools = [one.name for one in diagnosis.groups if one.dimension == "tool" and one.name.startswith(f"{group.name}.")]
    parts = [f"Another service of the kind of {group.name}, under another name and with other records and rules"]
    if tools:
        parts.append(f"with tasks that need calls like {', '.join(name.partition('.')[2] for name in tools[:WISHED])}")
    if group.kinds:
        parts.append(f"in which these mistakes are possible: {', '.join(list(group.kinds)[:WISHED])}")
    return EnvironmentWish(like=group.name, wish=f"{', '.join(parts)}.")


def _build_target(group: GroupFinding) -> PlanTarget:
    share = max(1.0, round(group.added * group.episodes, 1))
    return PlanTarget(dimension=group.dimension, name=group.name, share=share)
