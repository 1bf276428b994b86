"""Records of the loop, as JSON Lines in the run's folder: what was answered, what was tried, what became of it."""

from typing import ClassVar, Literal

from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.synthesis.answer_schemas import (
    Proposal,
    RepairDecision,
    Requirements,
    TextList,
    ToolPlan,
    Trial,
    TrialReview,
    UnitTest,
)
from trajsmith.records import FrozenModel, Record

ComplaintKind = Literal["reach", "load", "chance", "seeds", "earlier", "test", "rule", "checker", "semantic", "task"]
GRAVEST: tuple[ComplaintKind, ...] = (
    "reach", "load", "chance", "seeds", "earlier", "test", "rule", "checker", "semantic", "task",
)  # fmt: skip
"""Kinds of complaints, those first without which the others mean nothing."""


class Provenance(FrozenModel):
    """Origin of an answer; tokens and money stand in `usage.jsonl` under the theme's id."""

    prompt: str
    """Name and version hash of the prompt."""
    model: str
    request: str
    """Hash of the messages that were sent."""


class Theme(Record):
    """Source in progress; its id stands in every line of usage that was spent on it."""

    PREFIX: ClassVar[str] = "theme"

    source: ThemeSource


class Design(Record):
    """Everything that was designed before code: one per theme."""

    PREFIX: ClassVar[str] = "design"

    theme: str
    proposal: Proposal
    requirements: Requirements
    plan: ToolPlan
    texts: tuple[TextList, ...]
    state_code: str
    """Of an environment that was grown, the code of its first ancestor's state."""
    earlier: tuple[UnitTest, ...] = ()
    """Tests of what it was grown from, which hold as they stand; no repair changes them."""
    provenance: dict[str, Provenance]
    """Stage to where its answer comes from."""


class EnvironmentDraft(Record):
    """Version of an environment's file, with the tests that belong to it."""

    PREFIX: ClassVar[str] = "draft"

    theme: str
    design: str
    number: int
    """0 for the first, then one more with every repair."""
    parent: str = ""
    code: str
    tests: tuple[UnitTest, ...] = ()
    decisions: tuple[RepairDecision, ...] = ()
    """Who was found wrong in the repair that made it."""
    dropped: tuple[str, ...] = ()
    """Tools that were taken out, with the reason."""
    provenance: dict[str, Provenance] = {}
    """Answer to where it comes from, those of the versions before it included."""


class Complaint(FrozenModel):
    """One fault, with its evidence."""

    id: str
    kind: ComplaintKind
    tool: str = ""
    test: str = ""
    """Test or rule that it is about."""
    what: str
    calls: tuple[str, ...] = ()
    """The smallest calls that show it, each with what came of it and what it changed."""
    seen: str = ""
    expected: str = ""


class Examination(Record):
    """Results of executing a draft."""

    PREFIX: ClassVar[str] = "exam"

    theme: str
    draft: str
    loads: bool
    tests_passed: int
    tests: int
    rules_bound: int
    rules: int
    check_score: float | None
    """None if it was not reached."""
    score: float
    complaints: tuple[Complaint, ...]

    @property
    def hostile(self) -> bool:
        """Return True if the code accessed what the sandbox blocks."""
        return any(complaint.kind == "reach" for complaint in self.complaints)


class TrialResult(FrozenModel):
    """Call of the tester with its outcome and review."""

    trial: Trial
    outcome: str
    changes: str
    opinion: TrialReview


class SemanticAssessment(Record):
    """Findings of tester and checker (EnvScaler 3.3)."""

    PREFIX: ClassVar[str] = "semantic"

    theme: str
    draft: str
    judged: tuple[TrialResult, ...]
    score: float
    by_tool: dict[str, float]
    provenance: dict[str, Provenance] = {}


class SynthesisOutcome(Record):
    """Final outcome of a theme."""

    PREFIX: ClassVar[str] = "outcome"

    theme: str
    source: str
    """Its name."""
    name: str
    """The environment's; empty if there was no proposal."""
    accepted: bool
    stage: str
    """The last stage that was reached."""
    reasons: tuple[str, ...] = ()
    """Why it is rejected, the short reason first."""
    rounds: int = 0
    """Repairs that were made."""
    score: float = 0.0
    """Of the best version."""
    check_score: float | None = None
    semantic: float | None = None
    tools: int = 0
    dropped: tuple[str, ...] = ()
    best: str = ""
    """Id of the draft with the best score."""
    notes: tuple[str, ...] = ()
    """What went wrong without ending it, such as a search that found nothing."""
