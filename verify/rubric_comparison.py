"""Comparison of the candidates of one task by its rubric: criteria that do not tell them apart are dropped."""

from collections.abc import Sequence

from trajsmith.records import CriterionOutcome, Task, Trajectory, Verdict
from trajsmith.verify.rewards import RewardSettings, compute_rewards
from trajsmith.verify.rubrics import find_common_criteria
from trajsmith.verify.verdicts import build_evidence

RUBRIC_REWARDS = ("rubric", "rubric_weighted")
"""Rewards that are computed from the criteria."""

JudgedPlay = tuple[Trajectory, Verdict]


def drop_common_criteria(
    task: Task, judged: Sequence[JudgedPlay], settings: RewardSettings | None = None
) -> list[JudgedPlay]:
    """Return the plays of one task with the criteria left out that all candidates meet, or none does.

    Where no criterion would be left, all stay: the candidates are as good as each other, and each is scored by the
    whole rubric. One candidate alone cannot be compared.

    Args:
        task: The task that was played.
        judged: Its candidates.
        settings: Rewards of the verdicts.
    """
    settings = settings or RewardSettings()
    comparable = [verdict.rubric for _, verdict in judged if verdict.rubric]
    common = find_common_criteria([[each.met if each.counts else None for each in rubric] for rubric in comparable])
    counted = {number for rubric in comparable for number, each in enumerate(rubric) if each.counts}
    if not common or counted <= common.keys():
        return list(judged)
    changed = []
    for trajectory, verdict in judged:
        rubric = tuple(
            each.model_copy(update={"left_out": common[number]}) if number in common and each.counts else each
            for number, each in enumerate(verdict.rubric)
        )
        changed.append((trajectory, replace_rubric(task, trajectory, verdict, rubric, settings)))
    return changed


def replace_rubric(
    task: Task, trajectory: Trajectory, verdict: Verdict, rubric: tuple[CriterionOutcome, ...], settings: RewardSettings
) -> Verdict:
    """Return a verdict with other outcomes of its criteria, and the rewards that follow from them."""
    if rubric == verdict.rubric:
        return verdict
    updated = verdict.model_copy(update={"rubric": rubric})
    names = tuple(name for name in settings.names if name in RUBRIC_REWARDS)
    rewards = {name: value for name, value in verdict.rewards.items() if name not in RUBRIC_REWARDS}
    if names:
        evidence = build_evidence(task, trajectory, updated)
        rewards |= compute_rewards(evidence, settings.model_copy(update={"names": names}))
    updated = updated.model_copy(
        update={"rewards": {name: rewards[name] for name in settings.names if name in rewards}}
    )
    return updated.model_copy(update={"id": updated.content_id()})
