"""Scenarios of the bank for tests: grounded chains, and the reason why one is dropped."""

from typing import Any

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.phrasing import Phrasebook, Scenario, ScenarioBook, Wording, load_phrasebook
from trajsmith.records import Chain, GroundedChain, content_hash
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, build_graph, sample_chains

BANK = ENVIRONMENTS.get("bank")
SPEC = BANK.describe()
STATE = BANK.seed_state("small", 1).model_dump(mode="json")


def story(*steps: dict[str, Any], **more: Any) -> Scenario:
    return Scenario.model_validate({"id": "story", "motives": ["My purse is gone."], "steps": steps, **more})


def draw(scenario: Scenario, count: int = 12, length: tuple[int, int] = (2, 11), seed: int = 3) -> list[Chain]:
    settings = SampleSettings(count=count, scenarios=1.0, length=length)
    sampler = Sampler(GraphIndex(build_graph(SPEC.tools), "bank"), settings, ScenarioBook(scenarios=(scenario,)))
    return list(sample_chains({"bank": sampler}, {"bank": [content_hash(STATE)]}, settings, seed))


async def ground(scenario: Scenario, chain: Chain) -> GroundedChain:
    book = load_phrasebook(get_phrases_path(BANK))
    grounder = Grounder(SPEC, STATE, book, GroundSettings(), scenarios=ScenarioBook(scenarios=(scenario,)))
    return await grounder.ground(chain, NativeSession(BANK, SPEC))


def by_step(grounded: GroundedChain) -> dict[str, Any]:
    return {name: call for name, call in zip(grounded.steps, grounded.calls, strict=True) if name}


def wording(scenario: Scenario) -> Wording:
    return Wording(load_phrasebook(get_phrases_path(BANK)), SPEC.tools, ScenarioBook(scenarios=(scenario,)))


__all__ = ["BANK", "SPEC", "STATE", "Phrasebook", "by_step", "draw", "ground", "story", "wording"]
