"""What a run came to: the funnel with every drop reason, coverage, cost. Written to summary.json."""

from trajectory.record import Frozen


class StageSummary(Frozen):
    """One stage of the line."""

    name: str
    read: int
    """Records that went in."""
    written: int
    """Records that came out."""
    dropped: dict[str, int] = {}
    """Reason to number of records."""
    seconds: float = 0.0
    """Wall time, summed over resumed parts."""


class Summary(Frozen):
    """What a run came to."""

    name: str
    seed: int
    language: str
    """"scripted" or the names of the models that spoke."""
    stages: tuple[StageSummary, ...]
    funnel: dict[str, int]
    """sampled, grounded, written, played, verified, accepted, exported: in this order."""
    rejected: dict[str, int] = {}
    """Reason of a verdict to number of trajectories that were played but not accepted."""
    environments: dict[str, int] = {}
    """Accepted trajectories per environment."""
    isolation: dict[str, str] = {}
    """Environment to where its code ran."""
    coverage: dict[str, dict[str, int]] = {}
    """Environment to tool to calls in accepted trajectories; a tool that was never called stands with 0."""
    mean_turns: float = 0.0
    mean_calls_per_turn: float = 0.0
    tokens_per_accepted: float = 0.0
    cost_per_accepted: float = 0.0
    wall_seconds: float = 0.0
