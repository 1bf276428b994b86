"""How chains are drawn: the settings of sampling, and the dial that turns several of them at once."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Protocol, runtime_checkable

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt

from trajsmith.records import FrozenModel, JsonObject, Registry, check_order

if TYPE_CHECKING:
    from trajsmith.toolgraph.index import SamplingNetwork


class ChainSampler(Protocol):
    """Draws the tools of chains from one network."""

    def draw(self, rng: random.Random, length: int) -> list[int]:
        """Draw about `length` tools in order, as numbers of the network; all randomness comes from `rng`."""


@runtime_checkable
class CountsUse(Protocol):
    """A chain sampler that draws little-used tools first."""

    def use(self, tool: int) -> None:
        """Count a tool as used once more."""


SAMPLERS: Registry[Callable[["SamplingNetwork", "SampleSettings"], ChainSampler]] = Registry(
    "samplers",
    {"topology": "trajsmith.toolgraph.topology_sampler", "coverage": "trajsmith.toolgraph.coverage_sampler"}
    | dict.fromkeys(
        ("envfactory", "envfactory_pseudocode", "random_walk", "weighted_walk"), "trajsmith.toolgraph.baseline_samplers"
    ),
)
Method = Annotated[str, AfterValidator(SAMPLERS.check_name)]
Share = Annotated[float, Field(ge=0, le=1)]


DIAL: dict[str, tuple[float, float]] = {
    "weak": (0.1, 0.7),
    "independent": (0.0, 0.3),
    "writes": (0.2, 0.6),
    "branching": (0.1, 0.6),
    "joins": (0.0, 0.6),
}
"""Where `difficulty` 0 and 1 put the shares that are left open."""


class ExecutionSettings(FrozenModel):
    """Limits of the calls that test the links of an environment."""

    calls: NonNegativeInt = 1200
    """Calls per environment, and as many again in recorded tasks; 0 leaves the graph to the schemas."""
    live_calls: NonNegativeInt = 60
    """The same where going back is a fresh start and all calls again, as with live servers."""
    states: PositiveInt = 2
    """Initial states that they are spread over."""
    values: PositiveInt = 3
    """Values of an output that are tried per call, link and state."""
    elsewhere: PositiveInt = 3
    """Values of the same type from elsewhere that they are compared with."""


class SampleSettings(FrozenModel):
    """Settings of chain sampling."""

    count: PositiveInt = 100
    """Chains to draw."""
    length: Annotated[tuple[PositiveInt, PositiveInt], AfterValidator(check_order)] = (6, 11)
    """Shortest and longest chain, in tools."""
    method: Method = "topology"
    """`topology` is the default, `coverage` covers all edges in few chains; `envfactory` and the walks are there to
    compare with."""
    max_depth: NonNegativeInt = 3
    """How deep priors of priors are looked for (EnvFactory: 3)."""
    extra_prior: Share = 0.1
    """Probability of a prior for a parameter that would not need one (EnvFactory: 0.1)."""
    branches: PositiveInt = 2
    """Successors that are queued after a tool: one to this many (EnvFactory's k)."""
    servers: PositiveInt = 1
    """Most servers that a chain may touch; more than 1 needs an index of several servers."""
    scenarios: Share = 0.85
    """Share of the chains that are drawn inside the scenarios of the environment, where it has any; the method draws
    the others."""
    focus: Share = 0.5
    """Probability per step of a tool that takes the same kind of thing as a tool of the chain, so that later turns stay
    with the things of earlier ones; of `topology`, where none of the shares below is set."""
    repeats: Share = 0.0
    """Probability per step that a tool of the chain is called once more, on another thing."""
    weak: Share | None = None
    """Probability of a weak edge where a strong one is there too; open: by their weights, 2 to 3."""
    independent: Share | None = None
    """Probability per step of a tool that needs nothing and that no edge leads to; open: only where none leads on."""
    writes: Share | None = None
    """Share of tools that change something among those chosen; priors come as they must. Open: as they come."""
    branching: Share | None = None
    """Probability that a tool follows one that feeds another already, rather than the last; open: the queue decides."""
    joins: Share | None = None
    """Probability per step of preferring a tool fed by several producers, rather than by one; open: as they come."""
    without_tools: tuple[str, ...] = ()
    """Tools that no task of any source needs, as "bank.pay_payee", also where it is part of a linked world; they are
    still shown."""
    difficulty: Share | None = None
    """Turns length and servers within their limits, and every share that is left open (Agent-World 3.1.1)."""

    def turned(self) -> "SampleSettings":
        """The settings with what `difficulty` says written out."""
        if self.difficulty is None:
            return self
        level = self.difficulty
        length = round(self.length[0] + level * (self.length[1] - self.length[0]))
        servers = 1 + round(level * (self.servers - 1))
        shares = {name: low + level * (high - low) for name, (low, high) in DIAL.items()}
        chosen: dict[str, Any] = {name: share for name, share in shares.items() if getattr(self, name, None) is None}
        return self.model_copy(update={**chosen, "length": (length, length), "servers": servers})

    def as_record(self) -> JsonObject:
        """Return the sampling settings that a chain records; unset ones are left out."""
        always = ("method", "length", "max_depth", "extra_prior", "branches")
        record = self.model_dump(mode="json", exclude={"count"}, exclude_none=True)
        standard = {"servers": 1, "repeats": 0.0, "scenarios": 0.85, "focus": 0.5, "without_tools": []}
        return {key: value for key, value in record.items() if key in always or value != standard.get(key)}


class GraphRefineSettings(FrozenModel):
    """Limits of the model requests that refine a graph."""

    targets: PositiveInt = 12
    """Tools per request whose incoming edges are judged."""
    parameters: PositiveInt = 40
    """Parameters per request."""
    requests: PositiveInt = 20
    """Requests per environment and question; what is left over stays as it is and is reported."""
