"""A chain whose scenario does not fit its state tells another one; it is dropped when none of several fits."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.phrasing import Scenario, ScenarioBook
from trajsmith.pipeline.config import RunConfig
from trajsmith.pipeline.stages import STORIES, make_stages
from trajsmith.records import RecordDropped
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, build_graph, sample_chains

SPEC = ENVIRONMENTS.get("bank").describe()
SETTINGS = SampleSettings(count=1, scenarios=1.0, length=(1, 6))
BOOK = ScenarioBook(
    scenarios=[
        Scenario.model_validate({"id": f"s{number}", "motives": ["It is urgent."], "steps": [{"tool": "freeze_card"}]})
        for number in range(9)
    ]
)


class PickyGrounder:
    """Grounds only chains in some scenarios."""

    def __init__(self, fitting: set[str]) -> None:
        self.fitting = fitting
        self.tried: list[str] = []

    async def ground(self, chain, session):
        self.tried.append(chain.scenario)
        if chain.scenario not in self.fitting:
            raise RecordDropped("scenario_where", chain.scenario)
        return chain


@asynccontextmanager
async def open_session():
    yield None


def build_stage(grounder):
    """The stage that grounds, and a chain for it."""

    def build_sampler():
        return Sampler(GraphIndex(build_graph(SPEC.tools), "bank"), SETTINGS, BOOK)

    context = SimpleNamespace(
        config=RunConfig(name="one", environments=({"library": "bank"},)),
        grounder=lambda environment, state: grounder,
        place=lambda environment: SimpleNamespace(session=open_session, broken={}),
        samplers=lambda: {"bank": build_sampler()},
    )
    chain = next(iter(sample_chains({"bank": build_sampler()}, {"bank": ["s"]}, SETTINGS, 3)))
    return make_stages(context)["ground"], chain


async def test_another_story_is_told_for_the_same_state():
    grounder = PickyGrounder(set())
    stage, chain = build_stage(grounder)
    with pytest.raises(RecordDropped, match=chain.scenario):
        await stage.work(chain)
    assert len(set(grounder.tried)) == len(grounder.tried) == STORIES
    third = PickyGrounder({grounder.tried[2]})
    stage, chain = build_stage(third)
    (grounded,) = await stage.work(chain)
    assert third.tried == grounder.tried[:3], "what is told follows from the chain"
    assert (grounded.id, grounded.state, grounded.scenario) == (chain.id, chain.state, grounder.tried[2])
