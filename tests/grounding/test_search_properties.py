"""What holds of every grounded chain, whatever the environment, the tools, the settings and the seed."""

import random
from functools import lru_cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from upheld import assert_provenance_is_right, assert_runs_again

from trajsmith.environments import Environment, NativeSession
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.grounding.fields import list_input_fields, list_output_fields
from trajsmith.grounding.names import is_identifier
from trajsmith.grounding.repair import Producers, find_dependencies
from trajsmith.phrasing import Phrasebook
from trajsmith.records import Chain, EnvironmentSpec, GroundedChain, JsonObject, RecordDropped, derive_seed

steady = settings(deadline=None, derandomize=True, max_examples=60)
SETTINGS = st.builds(
    GroundSettings,
    tries=st.integers(1, 8),
    wide=st.integers(0, 6),
    guess=st.booleans(),
    rows=st.integers(1, 3),
    repairs=st.integers(0, 3),
    jumps=st.integers(0, 6),
    budget=st.integers(1, 60),
    min_calls=st.integers(1, 4),
    optional=st.sampled_from([0.0, 0.35, 1.0]),
)


@lru_cache
def place(name: str) -> tuple[type[Environment[Any]], EnvironmentSpec, JsonObject, Producers]:
    """An environment of the library, a small state, and who gives ids of which name."""
    cls = ENVIRONMENTS.get(name)
    spec = cls.describe()
    gives = {tool.name: list_output_fields(tool) for tool in spec.tools}
    givers = {
        (tool.name, leaf.path): [
            (giver, field.path) for giver, found in gives.items() for field in found if field.name == leaf.name
        ]
        for tool in spec.tools
        for leaf in list_input_fields(tool)
        if is_identifier(leaf.name)
    }
    return cls, spec, cls.seed_state("small", 4).model_dump(mode="json"), givers


def chain_of(name: str, length: int, seed: int) -> Chain:
    _, spec, _, givers = place(name)
    tools = tuple(random.Random(seed).sample([tool.name for tool in spec.tools], length))
    return Chain(
        index=seed,
        environment=name,
        tools=tools,
        dependencies=tuple(find_dependencies(tools, givers)),
        state="state",
        sampler={},
        seed=derive_seed("properties", name, seed),
    )


async def ground(name: str, chain: Chain, chosen: GroundSettings) -> GroundedChain | RecordDropped:
    cls, spec, state, givers = place(name)
    grounder = Grounder(spec, state, Phrasebook(), chosen, givers)
    try:
        return await grounder.ground(chain, NativeSession(cls, spec))
    except RecordDropped as drop:
        return drop


@steady
@given(st.sampled_from(ENVIRONMENTS.names()), st.integers(1, 6), st.integers(0, 10_000), SETTINGS)
async def test_a_grounded_chain_is_what_it_says(name: str, length: int, seed: int, chosen: GroundSettings) -> None:
    chain = chain_of(name, length, seed)
    made = await ground(name, chain, chosen)
    again = await ground(name, chain, chosen)
    if isinstance(made, RecordDropped):
        assert isinstance(again, RecordDropped)
        assert (made.reason, str(made)) == ("too_few_calls", str(again))
        return
    assert isinstance(again, GroundedChain)
    assert made.to_line() == again.to_line()
    assert made.attempts <= chosen.budget
    assert len(made.calls) >= chosen.min_calls
    assert set(chain.tools) <= {*made.skipped, *(call.tool for call in made.calls)}
    cls, spec, state, _ = place(name)
    await assert_runs_again(made, state, NativeSession(cls, spec))
    assert_provenance_is_right(made, spec)
