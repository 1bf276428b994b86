"""From a theme to an accepted environment or to the reasons against it; every step is kept as a record."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from envgen.generate.tidying import Untidy
from envgen.synthesis import acceptance
from envgen.synthesis.designing import design, first_draft, propose
from envgen.synthesis.desk import Desk
from envgen.synthesis.evidence import gravest, told
from envgen.synthesis.examining import Bench, broken, is_closed
from envgen.synthesis.parts import Proposal
from envgen.synthesis.playing import short
from envgen.synthesis.records import Complaint, Design, Draft, Examination, Outcome, Provenance, Semantic, Theme
from envgen.synthesis.repairing import repair
from envgen.synthesis.searched import notes_of
from envgen.synthesis.semantic import assess, complaints_of, summed
from envgen.synthesis.store import Store
from envgen.synthesis.testing import write_tests
from envgen.synthesis.tidy import without_tools
from trajectory import EnvironmentFault, ModelFault

UNDECIDED = frozenset({"timeout", "connection", "rate_limit", "server"})
"""Faults of a model that say nothing of a theme: it is left for the next start."""

SAID = 300
"""Characters of a useless reply that are kept with the reason."""


class Rejected(Exception):
    """A theme cannot become an environment, or its draft may not."""

    def __init__(self, stage: str, *reasons: str) -> None:
        self.stage = stage
        self.reasons = reasons
        super().__init__(reasons[0])


class Proposed(Theme):
    """A proposal, as it is kept."""

    PREFIX: ClassVar[str] = "proposed"

    proposal: Proposal
    provenance: Provenance


@dataclass
class Progress:
    """How far a theme has come."""

    name: str = ""
    stage: str = "propose"
    rounds: int = 0
    best: Draft | None = None
    exam: Examination | None = None
    complaints: Sequence[Complaint] = ()
    """What is wrong with the best draft."""
    semantic: Semantic | None = None
    dropped: tuple[str, ...] = ()

    def note(self, draft: Draft, exam: Examination) -> None:
        if self.exam is None or exam.score >= self.exam.score:
            self.best, self.exam, self.complaints = draft, exam, exam.complaints


@dataclass
class Loop:
    """What the stages work with."""

    desk: Desk
    bench: Bench
    store: Store
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

    def leave(self, theme: Theme, why: str) -> None:
        """Decide nothing of a theme now; the next start takes it up."""
        self.undecided[theme.id] = f"{theme.source.name}: {why}"

    async def run(self, theme: Theme, proposed: Proposed | tuple[str, ...]) -> Outcome | None:
        """What becomes of a theme; None if that could not be told.

        Args:
            proposed: Its proposal, or why it has none.
        """
        progress = Progress()
        try:
            if isinstance(proposed, tuple):
                raise Rejected("propose", *proposed)
            progress.name = proposed.proposal.name
            made = await self._design(theme, proposed, progress)
            await self._build(made, progress)
        except Rejected as rejected:
            return self._outcome(theme, progress, rejected.stage, rejected.reasons)
        except (EnvironmentFault, Untidy) as fault:
            return self._outcome(theme, progress, progress.stage, (f"{progress.stage}: {fault}",))
        except ModelFault as fault:
            if fault.kind in UNDECIDED:
                self.leave(theme, str(fault))
                return None
            return self._outcome(theme, progress, progress.stage, _why(progress.stage, fault))
        return self._outcome(theme, progress, "accept", ())

    async def propose(self, theme: Theme) -> Proposed | tuple[str, ...] | None:
        """The proposal of a theme, or why it has none; None if that could not be told."""

        async def work() -> Proposed:
            proposal, where = await propose(self.desk, theme)
            return Proposed(source=theme.source, proposal=proposal, provenance=where)

        try:
            found = await self.store.step("proposals", Proposed, [theme.id, self.makers], work)
        except ModelFault as fault:
            if fault.kind in UNDECIDED:
                self.leave(theme, str(fault))
                return None
            return _why("propose", fault)
        unusable = found.proposal.unusable.strip()
        return (f"nothing usable in the source: {unusable}",) if unusable else found

    async def _design(self, theme: Theme, proposed: Proposed, progress: Progress) -> Design:
        progress.stage, most = "design", self.bench.settings.most_tools

        async def work() -> Design:
            return await design(self.desk, theme, proposed.proposal, proposed.provenance, self.bench.settings)

        return await self.store.step("designs", Design, [theme.id, proposed.id, self.makers, most], work)

    async def _first(self, made: Design) -> Draft:
        return await first_draft(self.desk, made)

    async def _build(self, made: Design, progress: Progress) -> None:
        """Draft, examine, mend, until it is accepted.

        Raises:
            Rejected: It is not, in the rounds that there are.
        """
        progress.stage = "draft"
        draft = await self.store.step("drafts", Draft, [made.id, 0], lambda: self._first(made))
        worse = ""
        while True:
            progress.stage = "examine"
            draft = await self._tested(made, draft)
            exam = await self._examined(made, draft)
            progress.note(draft, exam)
            self.tell(f"{made.proposal.name}: version {progress.rounds}: {_found(exam)}")
            if exam.hostile:
                raise Rejected("examine", *[complaint.what for complaint in exam.complaints])
            complaints: Sequence[Complaint] = exam.complaints
            if not complaints:
                draft, complaints = await self._assessed(made, draft, progress)
                progress.complaints = complaints
                if not complaints:
                    progress.stage = "accept"
                    await acceptance.accept(
                        self.desk, self.bench, self.store, made, draft, progress.exam or exam, progress.semantic
                    )
                    return
            elif progress.exam is not None and progress.best is not None and progress.exam.score > exam.score:
                worse = "; ".join(told(one) for one in gravest(complaints, 3))
                draft, complaints = progress.best, progress.complaints
            draft = await self._mended(made, draft, complaints, progress, worse)
            worse = ""

    async def _mended(
        self, made: Design, draft: Draft, complaints: Sequence[Complaint], progress: Progress, worse: str
    ) -> Draft:
        progress.rounds += 1
        settings = self.bench.settings
        if progress.rounds > settings.rounds:
            progress.rounds -= 1
            short = gravest(complaints, settings.complaints)
            raise Rejected("repair", f"{settings.rounds} repairs were not enough", *[told(one) for one in short])
        progress.stage = "repair"
        number = progress.rounds

        async def work() -> Draft:
            return await repair(self.desk, made, draft, complaints, number, settings, worse)

        key = [draft.id, number, worse, [one.model_dump(mode="json") for one in complaints]]
        return await self.store.step("drafts", Draft, key, work)

    async def _tested(self, made: Design, draft: Draft) -> Draft:
        """The draft with tests, as soon as one starts."""
        if draft.tests:
            return draft

        async def work() -> Draft:
            started = await self.bench.starts(made, draft)
            if isinstance(started, Complaint):
                return draft
            tests, where = await write_tests(self.desk, made, *started)
            said = draft.provenance | {"test": where}
            return Draft(**{**dict(draft), "id": "", "tests": (*made.earlier, *tests), "provenance": said})

        return await self.store.step("drafts", Draft, [draft.id, "tests"], work)

    async def _examined(self, made: Design, draft: Draft) -> Examination:
        tests = [test.model_dump(mode="json") for test in draft.tests]
        key = [made.id, draft.code, tests, self.bench.measure]
        return await self.store.step("examinations", Examination, key, lambda: self.bench.examine(made, draft))

    async def _assessed(self, made: Design, draft: Draft, progress: Progress) -> tuple[Draft, Sequence[Complaint]]:
        """The draft without tools that do not do what they say, and what is still wrong with it."""
        progress.stage = "check"
        key = [draft.id, self.makers, self.bench.settings.trials, self.bench.settings.trial_rounds]
        try:
            found = await self.store.step(
                "semantics", Semantic, key, lambda: assess(self.desk, self.bench, made, draft)
            )
        except EnvironmentFault as fault:  # it worked until now
            return draft, [broken(fault, "breaks while its tools are tried out")]
        progress.semantic = found
        self.tell(f"{made.proposal.name}: the checker approves {found.score:.2f} of {len(found.judged)} calls")
        hostile = [one.outcome for one in found.judged if is_closed(one.outcome)]
        if hostile:
            raise Rejected("check", f"the code reaches for what the sandbox closes: {hostile[0]}")
        settings = self.bench.settings
        weak = sorted(tool for tool, share in found.by_tool.items() if share < settings.drop_tool_below)
        if weak:
            less = await self._without(made, draft, weak, found)
            exam = await self._examined(made, less)
            left = _left(found, weak)
            if exam.complaints or left is None:  # they are needed, or all that was tried: they must be mended
                return draft, complaints_of(found)
            progress.dropped = less.dropped
            progress.note(less, exam)
            progress.semantic = found = left
            draft = less
        return draft, [] if found.score >= settings.semantic else complaints_of(found)

    async def _without(self, made: Design, draft: Draft, tools: list[str], found: Semantic) -> Draft:
        async def work() -> Draft:
            said = tuple(f"{tool}: the checker approves {found.by_tool[tool]:.2f} of its calls" for tool in tools)
            tests = tuple(test for test in draft.tests if not {call.tool for call in test.calls} & set(tools))
            code = await asyncio.to_thread(without_tools, draft.code, tools)
            return Draft(
                theme=draft.theme, design=draft.design, number=draft.number, parent=draft.id, code=code,
                tests=tests, dropped=(*draft.dropped, *said),
                provenance=draft.provenance,
            )  # fmt: skip

        return await self.store.step("drafts", Draft, [draft.id, "without", tools], work)

    def _outcome(self, theme: Theme, progress: Progress, stage: str, reasons: Sequence[str]) -> Outcome:
        exam, semantic = progress.exam, progress.semantic
        if reasons:
            acceptance.retract(self.store, theme.id)
        return Outcome(
            theme=theme.id, source=theme.source.name, name=progress.name, accepted=not reasons, stage=stage,
            reasons=tuple(reasons), rounds=progress.rounds, score=exam.score if exam else 0.0,
            doctor=exam.doctor if exam else None, semantic=semantic.score if semantic else None,
            tools=acceptance.tool_count(progress.best), dropped=progress.dropped,
            best=progress.best.id if progress.best else "", notes=notes_of(self.store, theme),
        )  # fmt: skip


def _why(stage: str, fault: ModelFault) -> tuple[str, ...]:
    """Why there is no answer, and what was said instead."""
    said = (f"it said: {short(fault.reply, SAID)}",) if fault.reply else ()
    return (f"{stage}: {fault.kind}: {fault.message}", *said)


def _found(exam: Examination) -> str:
    """An examination in a few words."""
    kinds = Counter(complaint.kind for complaint in exam.complaints)
    doctor = "" if exam.doctor is None else f", doctor {exam.doctor:.2f}"
    wrong = ", ".join(f"{kind} {count}" for kind, count in kinds.items()) or "nothing"
    return f"tests {exam.tests_passed}/{exam.tests}, rules {exam.rules_bound}/{exam.rules}{doctor}; complaints: {wrong}"


def _left(found: Semantic, gone: Sequence[str]) -> Semantic | None:
    """A semantic examination without the calls of tools that are gone; None if it has no others."""
    judged = [one for one in found.judged if one.trial.tool not in gone]
    return None if not judged else summed(found.theme, found.draft, judged, found.provenance)
