"""A diagnosis becomes a plan: which groups the next data is made for, and how much of each."""

from collections.abc import Sequence
from pathlib import Path

from trajsmith.evals.diagnosis import Diagnosis, GroupFinding
from trajsmith.toolgraph import PlanTarget, SamplingPlan

SERVED = ("environment", "tool", "edge", "variant")
"""Dimensions by which chains and variants can be chosen."""


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
    return SamplingPlan(name=diagnosis.name, targets=targets, unserved=unserved, avoid=tuple(avoid))


def _build_target(group: GroupFinding) -> PlanTarget:
    share = max(1.0, round(group.added * group.episodes, 1))
    return PlanTarget(dimension=group.dimension, name=group.name, share=share)
