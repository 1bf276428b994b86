"""Best of k: which candidate of a task is kept. EnvFactory, section 3.4, "Evaluation"."""

from collections.abc import Sequence

from trajectory import Trajectory, Verdict

NOT_THE_BEST = "not the best candidate"


def select_best(judged: Sequence[tuple[Trajectory, Verdict]]) -> list[Verdict]:
    """The verdicts of all candidates of one task; of the accepted ones only the best stays accepted.

    Best is the highest composite reward, then the fewest calls after pruning, the fewest messages, the first.
    """
    good = [(trajectory, verdict) for trajectory, verdict in judged if verdict.accepted]
    if len(good) < 2:
        return [verdict for _, verdict in judged]
    best = min(good, key=_rank)[1]
    return [_passed_over(verdict) if verdict.accepted and verdict is not best else verdict for _, verdict in judged]


def _rank(candidate: tuple[Trajectory, Verdict]) -> tuple[float, int, int, int]:
    trajectory, verdict = candidate
    calls = len(trajectory.events) - len(verdict.pruned)
    return -verdict.rewards.get("composite", 0.0), calls, len(trajectory.messages), trajectory.candidate


def _passed_over(verdict: Verdict) -> Verdict:
    made = verdict.model_copy(update={"accepted": False, "reasons": (NOT_THE_BEST,)})
    return made.model_copy(update={"id": made.content_id()})
