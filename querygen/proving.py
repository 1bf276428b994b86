"""What every task rests on: its gold calls made again, what the environment gives out in them, and tested checks."""

from collections.abc import Sequence
from dataclasses import dataclass

from environments import Session
from grounding.rewind import replays
from trajectory import Dropped, EnvironmentSpec, GoldCall, JsonObject, JsonValue, Masks
from verify.auditing import AuditSettings, Tested, audit_task
from verify.checks import checks_of
from verify.form import Form, masked_form
from verify.jury import Jury
from verify.origins import find_masks
from verify.rerun import Equivalent, GoldRun

Facts = Sequence[Sequence[JsonValue]]
"""What the answers must tell, per turn."""


async def run_gold(turns: Sequence[Sequence[GoldCall]], state: JsonObject, session: Session, live: bool) -> GoldRun:
    """The gold run, made again on a fresh state; with points to go back to where that is cheap, or `live` asks for it.

    Args:
        turns: The gold calls of each turn.

    Raises:
        Dropped: A gold call is refused.
    """
    gold = GoldRun(turns, session, live or not replays(session))
    await gold.play(state)
    if len(gold.ran.states) < len(turns):
        tool = gold.ran.made[-1][0]
        raise Dropped("gold_not_repeatable", f"{tool} is refused when the gold calls are made again")
    return gold


@dataclass(frozen=True)
class Proof:
    """A gold run, and what the environment gives out itself in it."""

    gold: GoldRun
    masks: Masks
    equal: list[Equivalent]
    """Runs as good as gold that showed the masks."""
    forms: list[Form]
    """State after each turn, as checks see it."""

    @classmethod
    async def of(cls, gold: GoldRun, session: Session) -> "Proof":
        """Find out what is given out, by running it again; the session is reset."""
        masks, equal = await find_masks(gold, session) if gold.keeps_points else (Masks(), [])
        forms = [masked_form(gold.initial, after, masks) for after in gold.ran.states]
        return cls(gold, masks, equal, forms)

    @property
    def form_hashes(self) -> list[str]:
        """Of each turn; empty texts where nothing is masked, since the state hash says it all."""
        return [form.hash if self.masks != Masks() else "" for form in self.forms]

    async def test(self, facts: Facts, spec: EnvironmentSpec, settings: AuditSettings, seed: int) -> Tested:
        """The checks that follow from the gold run, tested against runs that are made for it."""
        checks = checks_of(self.forms, facts, spec.rules, self.gold.ran.made)
        if not self.gold.keeps_points:
            settings = AuditSettings(mutants=0, equivalents=0, masking=0)
        return await audit_task(Jury(self.gold, self.masks, checks, facts), spec, settings, seed, self.equal)
