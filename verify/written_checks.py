"""Checklists and check functions that a model writes (EnvScaler 4.2), each tested before it is used.

A goal becomes a checklist, an item of it a function `check(initial_state, final_state, answer)`. No function is
believed: it runs on the initial state, the gold run, equivalent runs and wrong ones, is written again with the evidence
of what went wrong, and dropped with a counted reason in the end.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import Field, NonNegativeInt

from trajsmith.records import CheckOutcome, CodeCheck, EnvironmentSpec, FrozenModel, JsonObject
from trajsmith.verify.check_cases import CaseKind, TestedCase, build_cases
from trajsmith.verify.check_panel import CheckPanel
from trajsmith.verify.check_source import CheckFault, find_forbidden_code
from trajsmith.verify.checks import MISSING, resolve_pointer
from trajsmith.verify.code_checks import CodeCheckRunner
from trajsmith.verify.normalized_state import normalize_state

GOLD_REPEATS = 3
"""Times that a check must pass the gold run: one that draws lots fails sooner or later."""


_RUNS: dict[CaseKind, str] = {
    "initial": "a run in which nothing is done",
    "gold": "the right run",
    "equivalent": "a run that is as good as the right one",
    "mutant": "a wrong run",
    "reverted": "a run in which something is as before",
    "altered": "a run in which something has another value",
    "answer": "another answer",
}
_RAISED = re.compile(r"\w+(?=: | \(|$)")
_LINE = re.compile(r"\.py:(\d+)\)$")


class WrittenCheckSettings(FrozenModel):
    """Effort of writing and testing checks."""

    items: int = Field(6, ge=1, le=20)
    """Items of a checklist, at most."""
    repairs: NonNegativeInt = 2
    """Times that a function may be written again."""
    mutants: NonNegativeInt = 8
    """Wrong runs that are executed."""
    equivalents: NonNegativeInt = 3
    """Runs as good as gold that are executed, at most 4."""


@dataclass(frozen=True)
class CheckDraft:
    """One attempt at a check, with what is wrong with it."""

    source: str
    fault: CheckFault


class FunctionWriter(Protocol):
    """Writes check functions."""

    async def write(self, item: str, earlier: Sequence[CheckDraft]) -> str:
        """Return the Python text of `check(initial_state, final_state, answer)` for one condition.

        Args:
            item: The condition.
            earlier: Attempts so far; the fault of the last one is to be mended.
        """


class CheckWriter(FunctionWriter, Protocol):
    """Writes checklists and check functions."""

    async def list_items(self, most: int) -> Sequence[str]:
        """Return the conditions that a right run meets, one sentence each."""


@dataclass
class WrittenChecks:
    """Written checks of a task that stood their tests."""

    checks: list[CodeCheck] = field(default_factory=list)
    dropped: list[tuple[str, CheckFault]] = field(default_factory=list)
    """Items without a check, with the fault of the last attempt."""
    repaired: int = 0
    """Checks that were written more than once."""
    mutants: int = 0
    """Wrong runs that were executed."""
    caught: int = 0
    """How many of them fail at least one of the checks."""
    caught_by_derived: int = 0
    """How many of them fail at least one of the derived checks."""

    @property
    def reasons(self) -> Counter[str]:
        """Return the reasons of drops, counted."""
        return Counter(fault.reason for _, fault in self.dropped)


class WrittenCheckTester:
    """Tests written checks of one task on the same cases."""

    def __init__(self, cases: Sequence[TestedCase], code: CodeCheckRunner, panel: CheckPanel) -> None:
        """`cases` are those of `build_cases`, `code` the place where functions run."""
        self.cases = cases
        self.code = code
        self.idle = {
            number for number, case in enumerate(cases)
            if case.kind == "mutant"
            and normalize_state(case.initial, case.final, panel.masks).hash
            == normalize_state(case.initial, case.initial, panel.masks).hash
        }  # fmt: skip
        """Mutants that leave the initial state: failing those alone shows only that something has to be done."""
        self.caught: dict[str, set[int]] = {}
        """Source of a check that was tested to the numbers of the mutants that fail it."""

    @classmethod
    async def of(
        cls, panel: CheckPanel, spec: EnvironmentSpec, settings: WrittenCheckSettings, seed: int, code: CodeCheckRunner
    ) -> "WrittenCheckTester":
        """Build the cases of a task and a tester for them.

        Raises:
            EnvironmentFault: The environment broke.
        """
        return cls(await build_cases(panel, spec, settings.mutants, settings.equivalents, seed), code, panel)

    async def test(self, check: CodeCheck) -> CheckFault | None:
        """Return what is wrong with a check; None if it is right and tells right runs from wrong ones."""
        fault = find_forbidden_code(check)
        if fault is not None:
            return fault
        gold = next(case for case in self.cases if case.kind == "gold")
        passed = set[bool]()
        for _ in range(GOLD_REPEATS):
            outcome = await self._run(check, gold)
            if outcome.passed is None:
                return _undecided(gold, outcome)
            passed.add(outcome.passed)
        if passed != {True}:
            words = "it fails the right run" if passed == {False} else "it does not judge the same run alike"
            return CheckFault("fails_gold" if passed == {False} else "not_repeatable", words)
        outcomes = list[bool]()
        for case in self.cases:
            outcome = CheckOutcome(says="", kind="code", passed=True) if case is gold else await self._run(check, case)
            if outcome.passed is None:
                return _undecided(case, outcome)
            if case.kind == "equivalent" and not outcome.passed:
                return CheckFault("fails_equivalent", f"it fails a run that is as good as the right one: {case.says}")
            outcomes.append(outcome.passed)
        self.caught[check.source] = {
            number for number, case in enumerate(self.cases) if case.kind == "mutant" and outcomes[number] is False
        }
        return self._find_weakness(outcomes)

    def _find_weakness(self, outcomes: Sequence[bool]) -> CheckFault | None:
        """Return why a check that passes what is right lets too much of what is wrong pass."""
        cases = list(zip(self.cases, outcomes, strict=True))
        initial = self.cases[0].initial
        looked_at = {case.unit for case, passed in cases if case.kind == "reverted" and not passed}
        for unit in sorted(looked_at):
            altered = [(case, passed) for case, passed in cases if case.kind == "altered" and case.unit == unit]
            passing = [case for case, passed in altered if passed]
            if passing and (passing[0].strict or len(passing) == len(altered)):
                hint = f"it passes where {_hide_new_keys(unit, initial)} has another value than it should have"
                return CheckFault("passes_wrong_value", hint, f"it passes where {passing[0].says}")
        for case, passed in cases:
            if case.kind == "altered" and case.strict and not passed and case.unit not in looked_at:
                hint = f"it looks at {_hide_new_keys(case.unit, initial)} and passes where it is as before"
                return CheckFault("passes_undone_change", hint)
        answers = [(case, passed) for case, passed in cases if case.kind == "answer"]
        if any(not passed for _, passed in answers):
            by_fact: dict[str, list[bool]] = {}
            for case, passed in answers:
                by_fact.setdefault(case.unit, []).append(bool(passed))
            facts = [unit for unit in by_fact if unit]
            if facts and all(all(by_fact[unit]) for unit in facts) and not looked_at:
                hint = "it passes answers that tell another value than the right one"
                return CheckFault("passes_wrong_answer", hint, f"it passes where {answers[-1][0].says}")
            return None
        if looked_at:
            return None
        if any(
            not passed for number, (case, passed) in enumerate(cases)
            if case.kind == "mutant" and number not in self.idle
        ):  # fmt: skip
            return CheckFault("looks_at_no_change", "it looks at nothing that is to be done")
        return CheckFault("catches_nothing", "it passes every wrong run in which something was done")

    async def _run(self, check: CodeCheck, case: TestedCase) -> CheckOutcome:
        return await self.code.run(check, case.initial, case.final, case.answer)


def _undecided(case: TestedCase, outcome: CheckOutcome) -> CheckFault:
    """Return the fault of a check that could not tell; what it raised may hold any value that it was given."""
    detail = f"of a run ({case.says}) it could not tell: {outcome.detail}"
    kind, _, message = outcome.detail.partition(": ")
    raised = _RAISED.match(message) if kind == "crash" else None
    if raised is not None:
        line = _LINE.search(message)
        message = f"it raises {raised[0]}{f' in line {line[1]}' if line else ''}"
    elif kind not in ("output_schema", "state"):
        message = kind
    return CheckFault("could_not_tell", f"of {_RUNS[case.kind]} it could not tell: {message}", detail)


def _hide_new_keys(path: str, initial: JsonObject) -> str:
    """Return a path with `*` for what the initial state does not have: "/notes/*"."""
    parts = path.split("/")
    there = [resolve_pointer(initial, "/".join(parts[: number + 1])) is not MISSING for number in range(len(parts))]
    return "/".join(part if known else "*" for part, known in zip(parts, there, strict=True))


async def write_function(
    writer: FunctionWriter, item: str, tester: WrittenCheckTester, repairs: int
) -> tuple[CodeCheck | None, list[CheckDraft]]:
    """Let a writer make the function of one condition and repair it from the evidence of its tests.

    Returns:
        The check that stood its tests, None if none did, and the attempts that failed.

    Raises:
        ModelFault: The model behind the writer could not answer.
    """
    drafts: list[CheckDraft] = []
    while len(drafts) <= repairs:
        check = CodeCheck(says=item, source=await writer.write(item, drafts))
        fault = await tester.test(check)
        if fault is None:
            return check, drafts
        drafts.append(CheckDraft(check.source, fault))
    return None, drafts


async def write_checks(
    writer: CheckWriter, tester: WrittenCheckTester, settings: WrittenCheckSettings
) -> WrittenChecks:
    """Let a writer make a checklist and its functions; keep those that stand their tests.

    A function that fails is written again with the evidence, `settings.repairs` times; its item is dropped after that.

    Raises:
        ModelFault: The model behind the writer could not answer.
    """
    written = WrittenChecks()
    for item in list(dict.fromkeys(await writer.list_items(settings.items)))[: settings.items]:
        check, drafts = await write_function(writer, item, tester, settings.repairs)
        if check is None:
            written.dropped.append((item, drafts[-1].fault))
        else:
            written.checks.append(check)
            written.repaired += bool(drafts)
    mutants = [case for case in tester.cases if case.kind == "mutant"]
    written.mutants, written.caught_by_derived = len(mutants), sum(case.fails_derived for case in mutants)
    written.caught = len(set[int]().union(*[tester.caught[check.source] for check in written.checks]))
    return written
