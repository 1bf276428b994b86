"""Checks, tested before a task is used: gold and equivalent runs must pass, everything else fail."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from pydantic import Field, NonNegativeInt

from trajsmith.grounding import iterate_leaves
from trajsmith.records import (
    AnswerCheck,
    Check,
    CheckAudit,
    CodeCheck,
    EnvironmentSpec,
    FromOutput,
    FrozenModel,
    Perturbation,
    Turn,
)
from trajsmith.verify.answer_mutants import AnswerMutant, AnswerMutator
from trajsmith.verify.check_panel import CheckKey, CheckPanel, ReportedFacts
from trajsmith.verify.equivalents import EquivalentRunBuilder
from trajsmith.verify.gold_run import EquivalentRun, RunResult
from trajsmith.verify.mutants import RunMutant, RunMutator, is_change_undone
from trajsmith.verify.reported_facts import collect_reported_facts

IDLE_WEAKNESS = "doing nothing passes all checks"
"""Weakness of a task in which nothing has to be done."""
SHOWN = 5
"""Runs that went wrong which are kept by name."""
TRIES = 4
"""Mutants that are tried for each that is wanted: some are refused, or come to the same as gold."""

CROSSING_TRIES = 6
"""Other values that are tried for one that crosses between environments, until a call with one is not refused."""
EXTRA_MUTANT_FACTOR = 5
"""How many times as many mutants decide where the first ones make a task look weak."""


class AuditSettings(FrozenModel):
    """Settings of check tests."""

    mutants: NonNegativeInt = 3
    """Wrong runs that are executed for each task; 40 show more and cost more."""
    equivalents: NonNegativeInt = 1
    """Runs as good as gold that are executed for each task, at most 4."""
    masking: NonNegativeInt = 2
    """Runs with an argument changed, to see whether it matters."""
    least: float = Field(0.85, ge=0, le=1)
    """Share of the wrong runs that must fail; a task below it is rejected."""
    live: bool = False
    """Also test where going back means a fresh start of a server, which takes long."""


@dataclass(frozen=True)
class CheckTestResult:
    """Result of testing the checks of a task.

    Attributes:
        audit: The figures.
        checks: The checks that are any good, per turn.
        masked: Gold call to arguments that do not matter.
        weakness: Why the task is of no use, or None.
    """

    audit: CheckAudit
    checks: list[tuple[Check, ...]]
    masked: dict[int, tuple[str, ...]]
    weakness: str | None = None

    def fault(self, perturbation: Perturbation | None) -> str | None:
        """Return the reason to reject a task with these checks, or None.

        Where nothing may be changed, doing nothing is right as far as the state tells;
        `trajsmith.verify.variant_checks` asks for more.
        """
        judged_otherwise = perturbation is not None and perturbation.act != "plain" and self.weakness == IDLE_WEAKNESS
        return None if judged_otherwise else self.weakness

    def apply_to_turns(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """The turns with these checks, and with the masks in their gold calls."""
        checked_turns, start = [], 0
        for turn, checks in zip(turns, self.checks, strict=True):
            calls = [
                call.model_copy(update={"mask": self.masked[index]}) if index in self.masked else call
                for index, call in enumerate(turn.gold_calls, start)
            ]
            start += len(calls)
            checked_turns.append(turn.model_copy(update={"checks": checks, "gold_calls": tuple(calls)}))
        return tuple(checked_turns)


async def audit_task(
    jury: CheckPanel, spec: EnvironmentSpec, settings: AuditSettings, seed: int, known: Sequence[EquivalentRun] = ()
) -> CheckTestResult:
    """Test the checks of a task on runs that are made for it.

    Args:
        jury: The checks, and the gold run.
        spec: The environment.
        settings: How much is tested.
        seed: Which mutants and equivalent runs are made.
        known: Equivalent runs that were made already; only swaps are made beside them.

    Raises:
        EnvironmentFault: The environment broke.
    """
    return await _Auditor(jury, spec, settings, seed).test(known)


class _Auditor:
    def __init__(self, jury: CheckPanel, spec: EnvironmentSpec, settings: AuditSettings, seed: int) -> None:
        self.jury = jury
        self.gold = jury.gold
        self.spec = spec
        self.settings = settings
        self.seed = seed
        telling = {source[0] for row in jury.sources for source in row if source is not None}
        self.mutator = RunMutator(self.gold, spec, jury.facts, telling, seed)
        self.idle: set[CheckKey] = set()
        """Checks that see that nothing was done."""
        self.equal: list[tuple[str, set[CheckKey]]] = []
        """Equivalent runs, and the checks that they fail."""
        self.wrong: list[tuple[RunMutant | AnswerMutant, set[CheckKey]]] = []
        """Mutants, and the checks that they fail."""
        self.wrong_answers: list[tuple[RunMutant | AnswerMutant, set[CheckKey]]] = []
        """Wrong answers to what was asked, and the checks that they fail."""
        self.unneeded: list[str] = []
        """Values that cross between environments and that another value could stand for."""
        self.bad: dict[CheckKey, str] = {}
        """Checks that are no good, and why."""
        sources = [source for call in self.gold.calls for _, source, _ in iterate_leaves(call)]
        self._used = telling | {source.call for source in sources if isinstance(source, FromOutput)}

    async def test(self, known: Sequence[EquivalentRun]) -> CheckTestResult:
        await self._test_gold()
        if self.settings.equivalents:
            await self._test_equivalents(known)
        await self._test_mutants()
        await self._test_crossing()
        self._test_answers()
        self._drop_idle()
        keys = [[(turn, n) for n in range(len(checks))] for turn, checks in enumerate(self.jury.checks)]
        good_keys = [[key for key in row if key not in self.bad] for row in keys]
        good = {key for row in good_keys for key in row}
        audit = self._figures(good)
        checks = [tuple(self.jury.check(key) for key in row) for row in good_keys]
        return CheckTestResult(audit, checks, await self._masked_arguments(), self._weakness(audit, good))

    def _figures(self, good: set[CheckKey]) -> CheckAudit:
        wrong = [*self.wrong, *self.wrong_answers]
        counts = Counter(mutant.kind for mutant, _ in wrong)
        caught = Counter(mutant.kind for mutant, failures in wrong if failures & good)
        refused = [f"{says}: {self._says(min(failed & good))}" for says, failed in self.equal if failed & good]
        escaped = [f"{mutant.kind}: {mutant.says}" for mutant, failures in wrong if not failures & good]
        return CheckAudit(
            made=dict(sorted(counts.items())),
            caught={kind: caught[kind] for kind in sorted(counts)},
            escaped=tuple(escaped[:SHOWN]),
            equivalent=len(self.equal),
            accepted=len(self.equal) - len(refused),
            refused=tuple(refused[:SHOWN]),
            dropped=tuple(f"{self._says(key)}: {why}" for key, why in sorted(self.bad.items())),
        )

    def _weakness(self, audit: CheckAudit, good: set[CheckKey]) -> str | None:
        if not self.idle & good:
            return IDLE_WEAKNESS
        if self.unneeded:
            return f"another value does as well ({self.unneeded[0]})"
        if audit.refused:
            return f"an equivalent run fails ({audit.refused[0]})"
        for wrong in (self.wrong, self.wrong_answers):
            escaped = [f"{mutant.kind}: {mutant.says}" for mutant, failures in wrong if not failures & good]
            if len(wrong) and 1 - len(escaped) / len(wrong) < self.settings.least:
                kind = "runs" if wrong is self.wrong else "answers"
                return f"{len(escaped)} of {len(wrong)} wrong {kind} pass, for example {escaped[0]}"
        return None

    def _says(self, key: CheckKey) -> str:
        return self.jury.check(key).says

    async def _test_gold(self) -> None:
        """Checks that fail gold, or cannot tell of it, are no good; one must see that nothing was done."""
        for turn in range(self.gold.turns):
            for number, outcome in enumerate(await self.jury.outcomes(self.gold.ran, turn, self.jury.says)):
                if outcome.passed is None:
                    self.bad[turn, number] = f"could not tell: {outcome.detail}"
                elif not outcome.passed:
                    self.bad[turn, number] = "the gold run fails it"
        turns = self.gold.turns
        nothing = RunResult(states=[self.gold.initial] * turns, calls_until=[0] * turns)
        self.idle = await self.jury.failures(nothing, [[] for _ in range(turns)])

    async def _test_equivalents(self, known: Sequence[EquivalentRun]) -> None:
        """Answers and written functions that refuse a run as good as gold ask for too much; of others it is a fault."""
        maker = EquivalentRunBuilder(self.gold, self.spec, self.jury.masks, self.seed)
        runs = [*known, *await maker.swapped()] if known else await maker.build(self.settings.equivalents)
        for run in runs:
            says = collect_reported_facts(self.jury.facts, self.jury.sources, run.ran, {})
            failures = await self.jury.failures(run.ran, says, run.initial)
            self.equal.append((run.says, failures))
            for key in failures - self.bad.keys():
                if isinstance(self.jury.check(key), AnswerCheck | CodeCheck):
                    self.bad[key] = "an equivalent run fails it"

    async def _test_mutants(self) -> None:
        """Some mutants; more before a task is called weak, so that one that got away does not decide alone."""
        for tries, mutant in enumerate(self.mutator.all()):
            caught = sum(bool(failures) for _, failures in self.wrong)
            enough = EXTRA_MUTANT_FACTOR if caught < self.settings.least * len(self.wrong) else 1
            if len(self.wrong) >= enough * self.settings.mutants or tries >= TRIES * enough * self.settings.mutants:
                return
            ran = await self._run(mutant)
            if ran is None:
                continue
            says = collect_reported_facts(self.jury.facts, self.jury.sources, ran, mutant.answers)
            if not self.jury.is_gold(ran, says):
                self.wrong.append((mutant, await self.jury.failures(ran, says)))

    async def _test_crossing(self) -> None:
        """For each value that crosses between environments, the first run with another value that is not refused."""
        for says, mutants in self.mutator.crossing() if self.settings.mutants else ():
            for mutant in mutants[:CROSSING_TRIES]:
                ran = await self._run(mutant)
                if ran is None:
                    continue
                reported = collect_reported_facts(self.jury.facts, self.jury.sources, ran, {})
                failures = await self.jury.failures(ran, reported)
                self.wrong.append((mutant, failures))
                if not failures:
                    self.unneeded.append(says)
                break

    def _test_answers(self) -> None:
        """As many wrong answers to what was asked as there are wrong runs; none of them is executed."""
        mutator = AnswerMutator(self.jury.asked, self.jury.facts, self.gold.ran.results, self.seed)
        for mutant in islice(mutator.all(), self.settings.mutants):
            self.wrong_answers.append((mutant, self.jury.find_failed_answers(mutant.turn, mutant.text)))

    async def _run(self, mutant: RunMutant) -> RunResult | None:
        """The mutant, executed; None if the mistake was refused, or did not do what it is meant to do."""
        if mutant.kind == "answer":
            return self.gold.ran
        ran = await self.gold.branch(mutant.start, mutant.steps, mutant.must)
        if ran is not None and mutant.kind == "undone" and not is_change_undone(self.gold.ran, ran, self.gold.initial):
            return None
        return ran

    async def _masked_arguments(self) -> dict[int, tuple[str, ...]]:
        """Arguments whose value changes neither state nor data flow, whatever of its type stands there."""
        masked: dict[int, tuple[str, ...]] = {}
        left = self.settings.masking
        for index, name, tries in self.mutator.unneeded():
            if left <= 0:
                break
            left -= len(tries)
            if all([await self._makes_no_difference(mutant) for mutant in tries]):
                masked[index] = (*masked.get(index, ()), name)
        return masked

    async def _makes_no_difference(self, mutant: RunMutant) -> bool:
        """Return True if later calls get the same arguments, the answers tell the same, and every state is as in
        gold.
        """
        read, gold = mutant.steps[0].call, self.gold.ran
        await self.gold.session.rollback(self.gold.points[mutant.start][0])
        result = await self.gold.session.call(read.tool, read.arguments, read.actor)
        if result.ok and result.content == gold.results[mutant.start]:
            return True
        if not result.ok or mutant.start not in self._used:
            return False  # what nothing else uses is what the user asked for
        ran = await self._run(mutant)
        if ran is None or ran.lost or ran.calls[mutant.start + 1 :] != gold.calls[mutant.start + 1 :]:
            return False
        says: ReportedFacts = collect_reported_facts(self.jury.facts, self.jury.sources, ran, {})
        return list(says) == self.jury.says and ran.states == gold.states

    def _drop_idle(self) -> None:
        """Drop written functions that detected no mutant."""
        useful = self.idle.union(*(failures for _, failures in self.wrong))
        for turn, checks in enumerate(self.jury.checks):
            for number, check in enumerate(checks):
                if isinstance(check, CodeCheck) and (turn, number) not in useful | self.bad.keys():
                    self.bad[turn, number] = "no wrong run fails it"
