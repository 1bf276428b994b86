"""Comparison of the candidates of one task by its rubric: criteria that do not tell them apart are dropped."""

from collections.abc import Sequence

from trajsmith.records import CriterionOutcome, Task, Trajectory, Verdict
from trajsmith.verify.rewards import RewardSettings, compute_rewards
from trajsmith.verify.rubrics import find_common_criteria
from trajsmith.verify.verdicts import build_evidence

JudgedPlay = tuple[Trajectory, Verdict]


def drop_common_criteria(
    task: Task,
    judged: Sequence[JudgedPlay],
    settings: RewardSettings | None = None,
    rubrics: Sequence[Sequence[CriterionOutcome]] | None = None,
) -> list[JudgedPlay]:
    """Return the plays of one task with the criteria left out that all candidates meet, or none does.

    Where no criterion would be left, all stay: the candidates are as good as each other, and each is scored by the
    whole rubric. One candidate alone cannot be compared.

    Args:
        task: The task that was played.
        judged: Its candidates.
        settings: Rewards of the verdicts.
        rubrics: Outcomes of all candidates, where those judged are only some of them.
    """
    settings = settings or RewardSettings()
    comparable = [rubric for rubric in rubrics or [verdict.rubric for _, verdict in judged] if rubric]
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
    rewards = compute_rewards(build_evidence(task, trajectory, updated), settings)
    updated = updated.model_copy(update={"rewards": rewards})
    return updated.model_copy(update={"id": updated.content_id()})
