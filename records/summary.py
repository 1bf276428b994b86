"""Summary of a run: the funnel with every drop reason, coverage, cost. Written to summary.json."""

from trajsmith.records.record import FrozenModel


class StageSummary(FrozenModel):
    """One stage of the pipeline."""

    name: str
    read: int
    """Records that went in."""
    written: int
    """Records that came out."""
    dropped: dict[str, int] = {}
    """Reason to number of records."""
    examples: dict[str, str] = {}
    """Reason to the first detail, of faults of environments: what broke, and where."""
    seconds: float = 0.0
    """Wall time, summed over resumed parts."""
    cpu_seconds: float | None = None
    """CPU time of the driver and of all processes below it (not of workers of Ray), summed over resumed parts; None if
    it was not measured."""


class UsageSummary(FrozenModel):
    """Requests to language models, and their cost."""

    requests: int = 0
    """Requests that a server answered; answers from the cache are free and not counted."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Part of the prompt that a server had in its prefix cache."""
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    """Part of the completion that is reasoning."""
    cost: float = 0.0
    """In the currency of the configured prices."""

    @property
    def tokens(self) -> int:
        """Prompt and completion."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "UsageSummary") -> "UsageSummary":
        return UsageSummary(
            requests=self.requests + other.requests,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cost=self.cost + other.cost,
        )


class JudgeSummary(FrozenModel):
    """Number of requests to a judge, and its agreement with execution."""

    asked: int = 0
    decided: int = 0
    """Plays that execution left open and the judge decided."""
    abstained: int = 0
    """Times that it gave no usable answer, whatever it was asked for."""
    compared: int = 0
    """Plays that execution had decided and the judge saw all the same."""
    agreed: int = 0
    """Of these, plays to which it gave the same outcome."""

    @property
    def agreement(self) -> float:
        """Share of the compared plays; 0 if there are none."""
        return self.agreed / self.compared if self.compared else 0.0


class FaultSummary(FrozenModel):
    """Counts of the plays with an injected mistake of one kind, or of those without any."""

    plays: int = 0
    rejected: int = 0
    removed: int = 0
    """Accepted after exactly the mistaken calls were cut out as redundant."""

    @property
    def missed(self) -> int:
        """Plays that were accepted as they were."""
        return self.plays - self.rejected - self.removed


class Summary(FrozenModel):
    """Result of a run."""

    name: str
    seed: int
    language: str
    """"scripted" or the names of the models that spoke."""
    spoken: str = "en"
    """Code of the language that users and agents speak."""
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
    usage: UsageSummary = UsageSummary()
    """All that language models were asked, for whatever became of it."""
    usage_by_role: dict[str, UsageSummary] = {}
    tokens_per_accepted: float = 0.0
    """All tokens of the run, also those of what was dropped and rejected, for each accepted trajectory."""
    cost_per_accepted: float = 0.0
    judge: JudgeSummary = JudgeSummary()
    faults: dict[str, FaultSummary] = {}
    """Kind of injected mistake to what became of the plays with it; "none" counts all other plays of such a run."""
    repairs: dict[str, dict[str, int]] = {}
    """Of a run of repairs: mistake of the failed plays to the accepted repairs of each kind."""
    content: str = ""
    """Hash of what was accepted: equal for two runs only if their datasets are made of the same."""
    wall_seconds: float = 0.0
