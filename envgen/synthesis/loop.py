"""From a theme to an accepted environment or to the reasons against it; every step is kept as a record."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from trajsmith.envgen.generate.formatting import FormattingError
from trajsmith.envgen.synthesis import acceptance
from trajsmith.envgen.synthesis.answer_schemas import Proposal
from trajsmith.envgen.synthesis.code_assembly import remove_tools
from trajsmith.envgen.synthesis.complaints import find_gravest, format_complaint
from trajsmith.envgen.synthesis.design_stages import design_environment, propose_environment, write_first_draft
from trajsmith.envgen.synthesis.examination import DraftRunner, build_load_complaint, names_closed_access
from trajsmith.envgen.synthesis.execution import shorten_json
from trajsmith.envgen.synthesis.prompted_generation import PromptedGenerator
from trajsmith.envgen.synthesis.records import (
    Complaint,
    Design,
    EnvironmentDraft,
    Examination,
    Provenance,
    SemanticAssessment,
    SynthesisOutcome,
    Theme,
)
from trajsmith.envgen.synthesis.repair_stage import repair_draft
from trajsmith.envgen.synthesis.search_records import collect_notes
from trajsmith.envgen.synthesis.semantic import assess_draft, build_assessment, build_semantic_complaints
from trajsmith.envgen.synthesis.unit_tests import write_tests
from trajsmith.records import EnvironmentFault, ModelFault, StepJournal

_log = logging.getLogger(__name__)

UNDECIDED_FAULTS = frozenset({"timeout", "connection", "rate_limit", "server"})
"""Faults of a model that say nothing of a theme: it is left for the next start."""

SHOWN_REPLY_CHARACTERS = 300
"""Characters of a useless reply that are kept with the reason."""


class ThemeRejected(Exception):
    """Rejection of a theme or of its draft."""

    def __init__(self, stage: str, *reasons: str) -> None:
        self.stage = stage
        self.reasons = reasons
        super().__init__(reasons[0])


class ProposalRecord(Theme):
    """Stored proposal."""

    PREFIX: ClassVar[str] = "proposed"

    proposal: Proposal
    provenance: Provenance


@dataclass
class ThemeProgress:
    """Stage that a theme has reached, with its best draft."""

    name: str = ""
    stage: str = "propose"
    rounds: int = 0
    best: EnvironmentDraft | None = None
    examination: Examination | None = None
    complaints: Sequence[Complaint] = ()
    """What is wrong with the best draft."""
    semantic: SemanticAssessment | None = None
    dropped: tuple[str, ...] = ()

    def note(self, draft: EnvironmentDraft, examination: Examination) -> None:
        if self.examination is None or examination.score >= self.examination.score:
            self.best, self.examination, self.complaints = draft, examination, examination.complaints


@dataclass
class SynthesisLoop:
    """Synthesis loop from a theme to an accepted environment, with models, runner and record store."""

    generator: PromptedGenerator
    bench: DraftRunner
    store: StepJournal
    makers: str
    """Hash of what answers depend on beside what is asked: models and prompts."""
    fingerprint: str
    """Hash of that and of all settings: what becomes of a theme depends on it."""
    tell: Callable[[str], None] = lambda line: None
    """Hears what goes on, a line at a time."""
    ended: Callable[[bool], None] = lambda accepted: None
    """Hears of every theme that has ended."""
    undecided: dict[str, str] = field(default_factory=dict)
    """Id of a theme to its name, and why it could not be decided now."""

    def defer(self, theme: Theme, why: str) -> None:
        """Defer a theme without a decision; the next start takes it up."""
        self.undecided[theme.id] = f"{theme.source.name}: {why}"

    async def run(self, theme: Theme, proposed: ProposalRecord | tuple[str, ...]) -> SynthesisOutcome | None:
        """Return the outcome of a theme; None if it was deferred.

        Args:
            proposed: Its proposal, or why it has none.
        """
        progress = ThemeProgress()
        try:
            if isinstance(proposed, tuple):
                raise ThemeRejected("propose", *proposed)
            progress.name = proposed.proposal.name
            design = await self._design(theme, proposed, progress)
            await self._build(design, progress)
        except ThemeRejected as rejected:
            _log.info("%s: theme rejected: %s", theme.source.name, rejected)
            return self._outcome(theme, progress, rejected.stage, rejected.reasons)
        except (EnvironmentFault, FormattingError) as fault:
            return self._outcome(theme, progress, progress.stage, (f"{progress.stage}: {fault}",))
        except ModelFault as fault:
            if fault.kind in UNDECIDED_FAULTS:
                self.defer(theme, str(fault))
                return None
            return self._outcome(theme, progress, progress.stage, _explain_fault(progress.stage, fault))
        return self._outcome(theme, progress, "accept", ())

    async def propose(self, theme: Theme) -> ProposalRecord | tuple[str, ...] | None:
        """Return the proposal of a theme, or the reasons why it has none; None if it was deferred."""

        async def work() -> ProposalRecord:
            proposal, where = await propose_environment(self.generator, theme)
            return ProposalRecord(source=theme.source, proposal=proposal, provenance=where)

        try:
            record = await self.store.step("proposals", ProposalRecord, [theme.id, self.makers], work)
        except ModelFault as fault:
            if fault.kind in UNDECIDED_FAULTS:
                self.defer(theme, str(fault))
                return None
            return _explain_fault("propose", fault)
        unusable = record.proposal.unusable.strip()
        return (f"nothing usable in the source: {unusable}",) if unusable else record

    async def _design(self, theme: Theme, proposed: ProposalRecord, progress: ThemeProgress) -> Design:
        progress.stage, most = "design", self.bench.settings.most_tools

        async def work() -> Design:
            return await design_environment(
                self.generator, theme, proposed.proposal, proposed.provenance, self.bench.settings
            )

        return await self.store.step("designs", Design, [theme.id, proposed.id, self.makers, most], work)

    async def _write_first_draft(self, design: Design) -> EnvironmentDraft:
        return await write_first_draft(self.generator, design)

    async def _build(self, design: Design, progress: ThemeProgress) -> None:
        """Draft, examine, mend, until it is accepted.

        Raises:
            ThemeRejected: It is not, in the rounds that there are.
        """
        progress.stage = "draft"
        draft = await self.store.step(
            "drafts", EnvironmentDraft, [design.id, 0], lambda: self._write_first_draft(design)
        )
        worse = ""
        while True:
            progress.stage = "examine"
            draft = await self._add_tests(design, draft)
            examination = await self._examine_draft(design, draft)
            progress.note(draft, examination)
            self.tell(f"{design.proposal.name}: version {progress.rounds}: {_summarize_examination(examination)}")
            if examination.complaints:
                first = format_complaint(find_gravest(examination.complaints, 1)[0])
                _log.info("%s: draft %d rejected: %s", design.proposal.name, progress.rounds, first)
            if examination.hostile:
                raise ThemeRejected("examine", *[complaint.what for complaint in examination.complaints])
            complaints: Sequence[Complaint] = examination.complaints
            if not complaints:
                draft, complaints = await self._assess_draft(design, draft, progress)
                progress.complaints = complaints
                if not complaints:
                    progress.stage = "accept"
                    await acceptance.write_accepted(
                        self.generator,
                        self.bench,
                        self.store,
                        design,
                        draft,
                        progress.examination or examination,
                        progress.semantic,
                    )
                    return
            elif (
                progress.examination is not None
                and progress.best is not None
                and progress.examination.score > examination.score
            ):
                worse = "; ".join(format_complaint(one) for one in find_gravest(complaints, 3))
                draft, complaints = progress.best, progress.complaints
            draft = await self._repair_draft(design, draft, complaints, progress, worse)
            worse = ""

    async def _repair_draft(
        self,
        design: Design,
        draft: EnvironmentDraft,
        complaints: Sequence[Complaint],
        progress: ThemeProgress,
        worse: str,
    ) -> EnvironmentDraft:
        progress.rounds += 1
        settings = self.bench.settings
        if progress.rounds > settings.rounds:
            progress.rounds -= 1
            short = find_gravest(complaints, settings.complaints)
            raise ThemeRejected(
                "repair", f"{settings.rounds} repairs were not enough", *[format_complaint(one) for one in short]
            )
        progress.stage = "repair"
        number = progress.rounds

        async def work() -> EnvironmentDraft:
            return await repair_draft(self.generator, design, draft, complaints, number, settings, worse)

        key = [draft.id, number, worse, [one.model_dump(mode="json") for one in complaints]]
        return await self.store.step("drafts", EnvironmentDraft, key, work)

    async def _add_tests(self, design: Design, draft: EnvironmentDraft) -> EnvironmentDraft:
        """Return the draft with tests, as soon as it starts."""
        if draft.tests:
            return draft

        async def work() -> EnvironmentDraft:
            started = await self.bench.starts(design, draft)
            if isinstance(started, Complaint):
                return draft
            tests, where = await write_tests(self.generator, design, *started)
            provenance = draft.provenance | {"test": where}
            return EnvironmentDraft(
                **{**dict(draft), "id": "", "tests": (*design.earlier, *tests), "provenance": provenance}
            )

        return await self.store.step("drafts", EnvironmentDraft, [draft.id, "tests"], work)

    async def _examine_draft(self, design: Design, draft: EnvironmentDraft) -> Examination:
        tests = [test.model_dump(mode="json") for test in draft.tests]
        key = [design.id, draft.code, tests, self.bench.measure]
        return await self.store.step("examinations", Examination, key, lambda: self.bench.examine(design, draft))

    async def _assess_draft(
        self, design: Design, draft: EnvironmentDraft, progress: ThemeProgress
    ) -> tuple[EnvironmentDraft, Sequence[Complaint]]:
        """Return the draft without tools that fail the semantic assessment, and the remaining complaints."""
        progress.stage = "check"
        key = [draft.id, self.makers, self.bench.settings.trials, self.bench.settings.trial_rounds]
        try:
            semantic = await self.store.step(
                "semantics", SemanticAssessment, key, lambda: assess_draft(self.generator, self.bench, design, draft)
            )
        except EnvironmentFault as fault:  # it worked until now
            return draft, [build_load_complaint(fault, "breaks while its tools are tried out")]
        progress.semantic = semantic
        self.tell(f"{design.proposal.name}: the checker approves {semantic.score:.2f} of {len(semantic.judged)} calls")
        hostile = [one.outcome for one in semantic.judged if names_closed_access(one.outcome)]
        if hostile:
            raise ThemeRejected("check", f"the code uses names that the sandbox forbids: {hostile[0]}")
        settings = self.bench.settings
        weak = sorted(tool for tool, share in semantic.by_tool.items() if share < settings.drop_tool_below)
        if weak:
            less = await self._remove_tools(design, draft, weak, semantic)
            examination = await self._examine_draft(design, less)
            left = _drop_tool_trials(semantic, weak)
            if examination.complaints or left is None:  # they are needed, or all that was tried: they must be mended
                return draft, build_semantic_complaints(semantic)
            progress.dropped = less.dropped
            progress.note(less, examination)
            progress.semantic = semantic = left
            draft = less
        return draft, [] if semantic.score >= settings.semantic else build_semantic_complaints(semantic)

    async def _remove_tools(
        self, design: Design, draft: EnvironmentDraft, tools: list[str], semantic: SemanticAssessment
    ) -> EnvironmentDraft:
        async def work() -> EnvironmentDraft:
            reasons = tuple(f"{tool}: the checker approves {semantic.by_tool[tool]:.2f} of its calls" for tool in tools)
            tests = tuple(test for test in draft.tests if not {call.tool for call in test.calls} & set(tools))
            code = await asyncio.to_thread(remove_tools, draft.code, tools)
            return EnvironmentDraft(
                theme=draft.theme, design=draft.design, number=draft.number, parent=draft.id, code=code,
                tests=tests, dropped=(*draft.dropped, *reasons),
                provenance=draft.provenance,
            )  # fmt: skip

        return await self.store.step("drafts", EnvironmentDraft, [draft.id, "without", tools], work)

    def _outcome(self, theme: Theme, progress: ThemeProgress, stage: str, reasons: Sequence[str]) -> SynthesisOutcome:
        examination, semantic = progress.examination, progress.semantic
        if reasons:
            acceptance.retract_accepted(self.store, theme.id)
        return SynthesisOutcome(
            theme=theme.id, source=theme.source.name, name=progress.name, accepted=not reasons, stage=stage,
            reasons=tuple(reasons), rounds=progress.rounds, score=examination.score if examination else 0.0,
            check_score=examination.check_score if examination else None, semantic=semantic.score if semantic else None,
            tools=acceptance.count_tools(progress.best), dropped=progress.dropped,
            best=progress.best.id if progress.best else "", notes=collect_notes(self.store, theme),
        )  # fmt: skip


def _explain_fault(stage: str, fault: ModelFault) -> tuple[str, ...]:
    """Return the reason why there is no answer, and the reply that came instead."""
    reply = (f"it said: {shorten_json(fault.reply, SHOWN_REPLY_CHARACTERS)}",) if fault.reply else ()
    return (f"{stage}: {fault.kind}: {fault.message}", *reply)


def _summarize_examination(examination: Examination) -> str:
    """An examination in a few words."""
    kinds = Counter(complaint.kind for complaint in examination.complaints)
    score = "" if examination.check_score is None else f", environment checker {examination.check_score:.2f}"
    wrong = ", ".join(f"{kind} {count}" for kind, count in kinds.items()) or "nothing"
    tests = f"tests {examination.tests_passed}/{examination.tests}"
    return f"{tests}, rules {examination.rules_bound}/{examination.rules}{score}; complaints: {wrong}"


def _drop_tool_trials(semantic: SemanticAssessment, gone: Sequence[str]) -> SemanticAssessment | None:
    """A semantic examination without the calls of tools that are gone; None if it has no others."""
    judged = [one for one in semantic.judged if one.trial.tool not in gone]
    return None if not judged else build_assessment(semantic.theme, semantic.draft, judged, semantic.provenance)
