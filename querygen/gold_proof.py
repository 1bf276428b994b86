"""Proof of a task: replayed gold calls, generated values, and tested checks."""

from collections.abc import Sequence
from dataclasses import dataclass

from trajsmith.environments import Session
from trajsmith.grounding import replays
from trajsmith.records import (
    EnvironmentSpec,
    GoldCall,
    JsonObject,
    NondeterminismMask,
    RecordDropped,
    RequestedInfo,
    list_answer_facts,
)
from trajsmith.verify import AuditSettings, audit_task, build_checks
from trajsmith.verify.check_audit import CheckTestResult
from trajsmith.verify.check_panel import CheckPanel
from trajsmith.verify.gold_run import EquivalentRun, GoldRun
from trajsmith.verify.nondeterminism import find_nondeterminism_mask
from trajsmith.verify.normalized_state import NormalizedState, normalize_state


async def run_gold(turns: Sequence[Sequence[GoldCall]], state: JsonObject, session: Session, live: bool) -> GoldRun:
    """Replay the gold calls on a fresh state; with checkpoints where they are cheap, or `live` requires them.

    Args:
        turns: The gold calls of each turn.

    Raises:
        RecordDropped: A gold call is refused.
    """
    gold = GoldRun(turns, session, live or not replays(session))
    await gold.play(state)
    if len(gold.ran.states) < len(turns):
        tool = gold.ran.calls[-1][0]
        raise RecordDropped("gold_not_repeatable", f"{tool} is refused when the gold calls are made again")
    return gold


@dataclass(frozen=True)
class GoldProof:
    """Gold run, and the values that the environment generates in it."""

    gold: GoldRun
    masks: NondeterminismMask
    equal: list[EquivalentRun]
    """Runs as good as gold that showed the masks."""
    forms: list[NormalizedState]
    """State after each turn, as checks see it."""

    @classmethod
    async def of(cls, gold: GoldRun, session: Session) -> "GoldProof":
        """Find out what is given out, by running it again; the session is reset."""
        masks, equal = (
            await find_nondeterminism_mask(gold, session) if gold.keeps_points else (NondeterminismMask(), [])
        )
        forms = [normalize_state(gold.initial, after, masks) for after in gold.ran.states]
        return cls(gold, masks, equal, forms)

    @property
    def form_hashes(self) -> list[str]:
        """Of each turn; empty texts where nothing is masked, since the state hash says it all."""
        return [form.hash if self.masks != NondeterminismMask() else "" for form in self.forms]

    async def test(
        self, asked: Sequence[Sequence[RequestedInfo]], spec: EnvironmentSpec, settings: AuditSettings, seed: int
    ) -> CheckTestResult:
        """The checks that follow from the gold run, tested against runs that are made for it.

        Args:
            asked: What each turn asks for.
        """
        facts = [list_answer_facts(infos) for infos in asked]
        checks = build_checks(self.forms, facts, spec.rules, self.gold.ran.calls)
        if not self.gold.keeps_points:
            settings = AuditSettings(mutants=0, equivalents=0, masking=0)
        panel = CheckPanel(self.gold, self.masks, checks, facts, asked=asked)
        return await audit_task(panel, spec, settings, seed, self.equal)
