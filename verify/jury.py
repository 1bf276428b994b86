"""All checks of a task over one run of it: which fail, which could not tell."""

from collections.abc import Sequence

from trajectory import Check, CheckOutcome, JsonObject, JsonValue, Masks
from verify.code_checks import CodeChecks, run_checks
from verify.form import Form, masked_form
from verify.rerun import GoldRun, Ran
from verify.told import answer_of, locate, told

Key = tuple[int, int]
"""Turn, and number of the check in it."""
Says = Sequence[Sequence[JsonValue]]
"""Facts that the answer of each turn tells."""


class Jury:
    """The checks of a task. What a run has in common with the gold run is judged once."""

    def __init__(
        self,
        gold: GoldRun,
        masks: Masks,
        checks: Sequence[Sequence[Check]],
        facts: Says,
        code: CodeChecks | None = None,
    ) -> None:
        """The gold run has been played to its end.

        Args:
            gold: The gold run.
            masks: What the environment gave out in it.
            checks: Checks per turn.
            facts: What the answers must tell, per turn.
            code: Where written check functions run; without it they could not tell.
        """
        self.gold = gold
        self.masks = masks
        self.checks = checks
        self.facts = facts
        self.code = code
        self.sources = locate(facts, gold)
        self.says = told(facts, self.sources, gold.ran, {})
        self.forms = [masked_form(gold.initial, state, masks) for state in gold.ran.states]

    def check(self, key: Key) -> Check:
        return self.checks[key[0]][key[1]]

    def form(self, ran: Ran, turn: int, initial: JsonObject | None = None) -> Form:
        """The state after a turn as checks see it."""
        if ran.states[turn] is self.gold.ran.states[turn]:
            return self.forms[turn]
        return masked_form(self.gold.initial if initial is None else initial, ran.states[turn], self.masks)

    def is_gold(self, ran: Ran, says: Says) -> bool:
        """True if a run ends as gold does and tells the same, apart from what the environment gave out."""
        last = self.gold.turns - 1
        form, gold = self.form(ran, last), self.forms[last]
        return form.hash == gold.hash and _named(says, form) == _named(self.says, gold)

    async def outcomes(self, ran: Ran, turn: int, says: Says, initial: JsonObject | None = None) -> list[CheckOutcome]:
        """What each check of a turn says."""
        start = self.gold.initial if initial is None else initial
        states, calls = (start, ran.states[turn]), ran.made[: ran.calls_until[turn]]
        form = self.form(ran, turn, initial)
        return await run_checks(self.checks[turn], form, states, answer_of(says[turn]), calls, self.code)

    async def failures(self, ran: Ran, says: Says, initial: JsonObject | None = None) -> set[Key]:
        """Checks that fail. Turns in which nothing is other than in gold are not judged again."""
        found: set[Key] = set()
        for turn in range(self.gold.turns):
            same = ran.states[turn] is self.gold.ran.states[turn] and says[turn] == self.says[turn]
            if not (same and ran.calls_until[turn] == self.gold.ran.calls_until[turn]):
                outcomes = await self.outcomes(ran, turn, says, initial)
                found |= {(turn, number) for number, outcome in enumerate(outcomes) if outcome.passed is False}
        return found


def _named(says: Says, form: Form) -> list[list[JsonValue]]:
    """What is told, with the place of a value that the environment gave out in place of the value."""
    places = {repr(value): path for path, value in form.given.items()}
    return [[places.get(repr(value), value) for value in told] for told in says]
