"""All checks of a task over one run of it: which fail, which could not tell."""

from collections.abc import Sequence

from trajsmith.records import (
    AnswerCheck,
    AnswerFact,
    Check,
    CheckOutcome,
    JsonObject,
    JsonValue,
    NondeterminismMask,
    RequestedInfo,
)
from trajsmith.verify.checks import as_answer_fact, run_check
from trajsmith.verify.code_checks import CodeCheckRunner, run_checks
from trajsmith.verify.gold_run import GoldRun, RunResult
from trajsmith.verify.normalized_state import NormalizedState, normalize_state
from trajsmith.verify.reported_facts import collect_reported_facts, locate_facts, render_answer

CheckKey = tuple[int, int]
"""Turn, and number of the check in it."""
ReportedFacts = Sequence[Sequence[AnswerFact]]
"""Facts that the answer of each turn tells."""


class CheckPanel:
    """The checks of a task. What a run has in common with the gold run is judged once."""

    def __init__(
        self,
        gold: GoldRun,
        masks: NondeterminismMask,
        checks: Sequence[Sequence[Check]],
        facts: Sequence[Sequence[AnswerFact | JsonValue]],
        code: CodeCheckRunner | None = None,
        asked: Sequence[Sequence[RequestedInfo]] = (),
    ) -> None:
        """The gold run has been played to its end.

        Args:
            gold: The gold run.
            masks: What the environment gave out in it.
            checks: Checks per turn.
            facts: What the answers must tell, per turn.
            code: Where written check functions run; without it they could not tell.
            asked: What the turns ask for, where it is known.
        """
        self.asked = asked
        self.gold = gold
        self.masks = masks
        self.checks = checks
        self.facts = [[as_answer_fact(fact) for fact in wanted] for wanted in facts]
        self.code = code
        self.sources = locate_facts(self.facts, gold)
        self.says = collect_reported_facts(self.facts, self.sources, gold.ran, {})
        self.forms = [normalize_state(gold.initial, state, masks) for state in gold.ran.states]

    def check(self, key: CheckKey) -> Check:
        return self.checks[key[0]][key[1]]

    def form(self, ran: RunResult, turn: int, initial: JsonObject | None = None) -> NormalizedState:
        """The state after a turn as checks see it."""
        if ran.states[turn] is self.gold.ran.states[turn]:
            return self.forms[turn]
        return normalize_state(self.gold.initial if initial is None else initial, ran.states[turn], self.masks)

    def is_gold(self, ran: RunResult, says: ReportedFacts) -> bool:
        """Return True if a run ends as gold does and reports the same, apart from generated values."""
        last = self.gold.turns - 1
        form, gold = self.form(ran, last), self.forms[last]
        return form.hash == gold.hash and _replace_generated_values(says, form) == _replace_generated_values(
            self.says, gold
        )

    async def outcomes(
        self, ran: RunResult, turn: int, says: ReportedFacts, initial: JsonObject | None = None
    ) -> list[CheckOutcome]:
        """Return the outcome of each check of a turn."""
        start = self.gold.initial if initial is None else initial
        states, calls = (start, ran.states[turn]), ran.calls[: ran.calls_until[turn]]
        form = self.form(ran, turn, initial)
        return await run_checks(self.checks[turn], form, states, render_answer(says[turn]), calls, self.code)

    def find_failed_answers(self, turn: int, text: str) -> set[CheckKey]:
        """Return the checks of the answer of a turn that a text does not pass."""
        form = self.forms[turn]
        return {
            (turn, number)
            for number, check in enumerate(self.checks[turn])
            if isinstance(check, AnswerCheck) and not run_check(check, {}, {}, text, (), form.generated_values).passed
        }

    async def failures(self, ran: RunResult, says: ReportedFacts, initial: JsonObject | None = None) -> set[CheckKey]:
        """Checks that fail. Turns in which nothing is other than in gold are not judged again."""
        failed: set[CheckKey] = set()
        for turn in range(self.gold.turns):
            same = ran.states[turn] is self.gold.ran.states[turn] and says[turn] == self.says[turn]
            if not (same and ran.calls_until[turn] == self.gold.ran.calls_until[turn]):
                outcomes = await self.outcomes(ran, turn, says, initial)
                failed |= {(turn, number) for number, outcome in enumerate(outcomes) if outcome.passed is False}
        return failed


def _replace_generated_values(says: ReportedFacts, form: NormalizedState) -> list[list[JsonValue]]:
    """Return the reported facts with generated values replaced by their paths."""
    places = {repr(value): path for path, value in form.generated_values.items()}
    return [[places.get(repr(fact.value), fact.value) for fact in turn_facts] for turn_facts in says]
