"""Grounding of chains: search, and repair of chains that a state does not allow as they are."""

import copy
import heapq
import logging
import random
from collections.abc import Iterable, Sequence
from typing import Any

from trajsmith.environments import Session
from trajsmith.grounding.assign import Assigner
from trajsmith.grounding.lessons import Lessons
from trajsmith.grounding.repair import Producers, insert_helper, rank_helpers
from trajsmith.grounding.rewind import Rewindable, make_rewindable
from trajsmith.grounding.scenario_outcome import check_scenario, list_goals
from trajsmith.grounding.search import ChainDraft, GroundingSearch
from trajsmith.grounding.settings import GroundSettings
from trajsmith.grounding.user_facts import collect_user_facts
from trajsmith.grounding.value_source import ValueSource
from trajsmith.phrasing import Phrasebook, ScenarioBook
from trajsmith.records import (
    Chain,
    EnvironmentSpec,
    GoldCall,
    GroundedChain,
    InputError,
    JsonObject,
    RecordDropped,
    content_hash,
    derive_seed,
)

_log = logging.getLogger(__name__)

SCENARIO_TRIES = 3
"""Searches for a scenario until all of its steps are made."""
DEEPEST = 4
"""Tools that are put before the steps of one chain at most."""
FEWER = 0.75
"""Factor on the score of a repair for each tool that is in the chain already for its sake."""


class Grounder:
    """Grounds chains of one environment on one initial state."""

    def __init__(
        self,
        spec: EnvironmentSpec,
        state: JsonObject,
        phrasebook: Phrasebook,
        settings: GroundSettings,
        givers: Producers | None = None,
        scenarios: ScenarioBook | None = None,
    ) -> None:
        """Prepare one state.

        Args:
            givers: What the graph knows of who gives which parameter; repairs need it to find producers.
            scenarios: Scenarios that chains may tell.
        """
        self.spec = spec
        self.state = state
        self.settings = settings
        self.tools = {tool.name: tool for tool in spec.tools}
        self.assigner = Assigner(self.tools, ValueSource(state), phrasebook, settings.optional, settings.rows)
        self.phrasebook = phrasebook
        self.givers: Producers = givers or {}
        self.scenarios = scenarios or ScenarioBook()

    def derive(
        self,
        settings: GroundSettings | None = None,
        scenarios: ScenarioBook | None = None,
        rows: Iterable[tuple[str, Any]] | None = None,
    ) -> "Grounder":
        """Return a grounder of the same state with other settings, other scenarios, or values of some rows first.

        Args:
            rows: Table and key of each row.
        """
        derived = copy.copy(self)
        derived.settings = settings or self.settings
        derived.scenarios = self.scenarios if scenarios is None else scenarios
        values = self.assigner.values if rows is None else self.assigner.values.focus(rows)
        derived.assigner = self.assigner.derive(values, derived.settings.optional)
        return derived

    async def ground(self, chain: Chain, session: Session, lessons: Lessons | None = None) -> GroundedChain:
        """Run a chain; the session is reset first.

        Args:
            lessons: What other searches in this environment have taught; this one adds to it. Left out, a chain is
                grounded the same way whatever was grounded before.

        Raises:
            RecordDropped: Too few steps of the chain could be called, or too few of its scenario.
            EnvironmentFault: The environment broke.
        """
        lessons = lessons if lessons is not None else Lessons()
        place, spent = make_rewindable(session), 0
        if chain.scenario:
            return await self._ground_scenario(chain, place, lessons)
        best, spent = await self._search(ChainDraft(chain), place, lessons, spent, 0)
        waiting: list[tuple[float, int, ChainDraft]] = []
        number = tried = 0
        latest = best
        while len(best.calls()) < self._wanted(chain) and tried < self.settings.repairs:
            for score, plan in self._repairs(chain, latest):
                number += 1
                heapq.heappush(waiting, (-score, number, plan))
            if not waiting or spent >= self.settings.budget:
                break
            tried += 1
            latest, spent = await self._search(heapq.heappop(waiting)[2], place, lessons, spent, tried)
            if _worth(latest, chain) > _worth(best, chain):
                best = latest
        return self._result(chain, best, spent)

    async def _ground_scenario(self, chain: Chain, session: Rewindable, lessons: Lessons) -> GroundedChain:
        """Search until all steps are made; else keep the try with most steps."""
        scenario = self.scenarios.find(chain.scenario)
        if scenario is None:
            raise InputError(
                f"environment {self.spec.name} has no scenario {chain.scenario!r}: start anew with --fresh"
            )
        draft, spent = ChainDraft(chain, scenario=scenario), 0
        best: GroundingSearch | None = None
        for number in range(SCENARIO_TRIES):
            search, spent = await self._search(draft, session, lessons, spent, number)
            if best is None or len(list_goals(search)) > len(list_goals(best)):
                best = search
            if len(list_goals(best)) == sum(map(bool, chain.steps)) or spent >= self.settings.budget:
                break
        assert best is not None
        check_scenario(best)
        return self._build(chain, best, spent)

    async def find_call(self, tool: str, session: Session, seed: int) -> GoldCall | None:
        """Return a call of one tool that succeeds from the initial state, made alone and with what it requires only.

        Returns:
            The call, or None if no arguments were found; the session is reset first.

        Raises:
            EnvironmentFault: The environment broke.
        """
        settings = self.settings.model_copy(update={"min_calls": 1, "repairs": 0, "optional": 0.0})
        chain = Chain(
            index=0,
            environment=self.spec.name,
            tools=(tool,),
            dependencies=(),
            state=content_hash(self.state),
            sampler={},
            seed=seed,
        )
        try:
            grounded = await self.derive(settings, ScenarioBook()).ground(chain, session)
        except RecordDropped:
            return None
        return grounded.calls[-1]

    def _wanted(self, chain: Chain) -> int:
        return min(self.settings.min_calls, len(chain.tools))

    async def _search(
        self, draft: ChainDraft, session: Rewindable, lessons: Lessons, spent: int, number: int
    ) -> tuple[GroundingSearch, int]:
        seed = draft.chain.seed
        seed = derive_seed(seed, "ground") if not number else derive_seed(seed, "ground", number)
        search = GroundingSearch(self, draft, session, lessons, self.settings.budget - spent, random.Random(seed))
        await search.run()
        return search, spent + search.attempts

    def _repairs(self, asked: Chain, search: GroundingSearch) -> Sequence[tuple[float, ChainDraft]]:
        """Chains with one more tool before the first step that failed, with how promising each is."""
        added = len(search.chain.tools) - len(asked.tools)
        if not search.skipped or added >= DEEPEST:
            return ()
        failure = search.failures.get(search.skipped[0])
        if failure is None:
            return ()
        empty = failure.fruitless > 0 or bool(failure.unmet)
        return [
            (score * FEWER**added, insert_helper(search.draft, failure.step, tool, self.givers))
            for score, tool in rank_helpers(search.chain, failure, self.tools, self.givers, empty)
        ]

    def _result(self, chain: Chain, search: GroundingSearch, attempts: int) -> GroundedChain:
        calls = tuple(search.calls())
        left_out = [search.chain.tools[step] for step in search.skipped]
        if len(calls) < self.settings.min_calls or not _worth(search, chain)[0]:
            missing = ", ".join(left_out[:4])
            for step in search.skipped:
                failure = search.failures.get(step)
                reasons = (failure.refusals or failure.unmet) if failure else []
                _log.debug("chain %s: %s not called: %s", chain.id, search.chain.tools[step], "; ".join(reasons) or "-")
            raise RecordDropped(
                _find_contradiction(search) or "too_few_calls",
                f"{len(calls)} of {len(chain.tools)} tools could be called; not: {missing}",
            )
        return self._build(chain, search, attempts)

    def _build(self, chain: Chain, search: GroundingSearch, attempts: int) -> GroundedChain:
        calls = tuple(search.calls())
        left_out = [search.chain.tools[step] for step in search.skipped if not chain.scenario or chain.steps[step]]
        return GroundedChain(
            chain_id=chain.id,
            environment=chain.environment,
            initial_state=chain.state,
            calls=calls,
            states=tuple(frame.state for frame in search.frames),
            known=collect_user_facts(calls, self.tools, self.phrasebook),
            skipped=tuple(tool for tool in left_out if tool in chain.tools),
            attempts=attempts,
            seed=chain.seed,
            scenario=chain.scenario,
            steps=tuple(chain.steps[frame.step] for frame in search.frames) if chain.scenario else (),
        )


def _find_contradiction(search: GroundingSearch) -> str:
    """Return how the steps that were left out contradicted others, if that is why there are too few; else empty."""
    failures = [search.failures[step] for step in search.skipped if step in search.failures]
    contradictions = [failure.contradictions[0] for failure in failures if failure.contradictions]
    return contradictions[0] if len(contradictions) == len(failures) and contradictions else ""


def _worth(search: GroundingSearch, asked: Chain) -> tuple[int, int]:
    """Steps of the chain that were made, and how few were added for their sake."""
    called = [call.tool for call in search.calls()]
    return sum(tool in called for tool in dict.fromkeys(asked.tools)), -len(called)
