"""Best of k: selection of one candidate per task. EnvFactory, section 3.4, "Evaluation"."""

from collections.abc import Sequence

from trajsmith.records import Trajectory, Verdict

NOT_THE_BEST = "not the best candidate"


def select_best(judged: Sequence[tuple[Trajectory, Verdict]]) -> list[Verdict]:
    """The verdicts of all candidates of one task; of the accepted ones only the best stays accepted.

    Best is the highest composite reward, then the fewest calls after pruning, the fewest messages, the first.
    """
    good = [(trajectory, verdict) for trajectory, verdict in judged if verdict.accepted]
    if len(good) < 2:
        return [verdict for _, verdict in judged]
    best = min(good, key=_rank_candidate)[1]
    return [_mark_not_best(verdict) if verdict.accepted and verdict is not best else verdict for _, verdict in judged]


def _rank_candidate(candidate: tuple[Trajectory, Verdict]) -> tuple[float, int, int, int]:
    trajectory, verdict = candidate
    calls = len(trajectory.events) - len(verdict.pruned)
    return -verdict.rewards.get("composite", 0.0), calls, len(trajectory.messages), trajectory.candidate


def _mark_not_best(verdict: Verdict) -> Verdict:
    updated = verdict.model_copy(update={"accepted": False, "reasons": (NOT_THE_BEST,)})
    return updated.model_copy(update={"id": updated.content_id()})
