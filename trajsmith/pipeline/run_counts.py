"""Counts of judged trajectories for the summary of a run; those of several parts can be merged."""

from collections import Counter

from trajsmith.records import JudgeOpinion, Trajectory, Verdict
from trajsmith.verify.selection import NOT_THE_BEST

NO_FAULT = "none"


class RunCounts:
    """Counts of judged trajectories.

    Args:
        faulty: Mistakes were injected into plays; count what became of them.
    """

    def __init__(self, faulty: bool = False) -> None:
        self.faulty = faulty
        self.accepted = self.turns = self.calls = 0
        self.rejected: Counter[str] = Counter()
        """Reason to trajectories."""
        self.environments: Counter[str] = Counter()
        self.used: Counter[tuple[str, str]] = Counter()
        """Environment and tool to calls in accepted trajectories."""
        self.judge: Counter[str] = Counter()
        self.faults: dict[str, Counter[str]] = {}
        self.repairs: dict[str, Counter[str]] = {}
        """Mistake of the failed play to the accepted repairs of each kind."""

    def add(self, trajectory: Trajectory, verdict: Verdict) -> None:
        """Count one judged trajectory."""
        if verdict.judge is not None:
            self._add_opinion(verdict, verdict.judge)
        if self.faulty:
            self._add_fault(trajectory, verdict)
        if not verdict.accepted:
            self.rejected.update(verdict.reasons)
            return
        self.accepted += 1
        if trajectory.repair is not None:
            self.repairs.setdefault(trajectory.repair.mistake, Counter())[trajectory.repair.kind] += 1
        self.environments[trajectory.environment] += 1
        self.turns += len(trajectory.turns)
        self.calls += len(trajectory.events)
        self.used.update((trajectory.environment, event.tool) for event in trajectory.events)

    def merge(self, other: "RunCounts") -> None:
        """Add what was counted of other trajectories."""
        self.accepted += other.accepted
        self.turns += other.turns
        self.calls += other.calls
        self.rejected.update(other.rejected)
        self.environments.update(other.environments)
        self.used.update(other.used)
        self.judge.update(other.judge)
        for kind, counts in other.faults.items():
            self.faults.setdefault(kind, Counter()).update(counts)
        for mistake, counts in other.repairs.items():
            self.repairs.setdefault(mistake, Counter()).update(counts)

    def _add_fault(self, trajectory: Trajectory, verdict: Verdict) -> None:
        """Count what became of a play: a task's second right play is accepted and not chosen, which is no rejection."""
        injected = trajectory.injected or ()
        counts = self.faults.setdefault(injected[0].kind if injected else NO_FAULT, Counter())
        counts["plays"] += 1
        rejected = not verdict.accepted and NOT_THE_BEST not in verdict.reasons
        counts["rejected"] += rejected
        messages = {trajectory.events[cut.event].message for cut in verdict.pruned}
        counts["removed"] += not rejected and bool(injected) and {fault.message for fault in injected} <= messages

    def _add_opinion(self, verdict: Verdict, opinion: JudgeOpinion) -> None:
        silent = opinion.outcome == "undecided"
        self.judge["asked"] += 1
        self.judge["abstained"] += silent
        self.judge["decided"] += opinion.decisive and not silent
        self.judge["compared"] += not opinion.decisive
        self.judge["agreed"] += not opinion.decisive and opinion.outcome == verdict.outcome
