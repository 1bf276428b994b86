"""Chains: which tools, in which order, and what makes each of them callable."""

from typing import ClassVar

from trajsmith.records.canonical import JsonObject
from trajsmith.records.record import FrozenModel, Record
from trajsmith.records.solution import TaskSource


class Dependency(FrozenModel):
    """`parameter` of step `consumer` can be filled from `output` of step `producer`. Steps count from 0."""

    consumer: int
    parameter: str
    """Path of a leaf of the consumer's arguments, for example "order_id" or "items[*].sku"."""
    producer: int
    output: str
    """Path into the producer's structured result, for example "$.orders[*].order_id"."""


class Chain(Record):
    """Ordered tools, of one environment or of several, in which every required internal parameter has an earlier
    producer. In a run, a chain across several is one of all of them joined, "bank+travel"."""

    PREFIX: ClassVar[str] = "chain"

    index: int
    """Number of the chain in its run; two chains with the same tools stay two."""
    environment: str
    tools: tuple[str, ...]
    """Plain tool names, in the order of calling."""
    dependencies: tuple[Dependency, ...]
    state: str
    """Hash of the initial state that the chain is meant for."""
    sampler: JsonObject
    """The sampler's settings."""
    seed: int
    servers: tuple[str, ...] | None = None
    """The server of every step, if they are several; None if all are of `environment`."""
    scenario: str = ""
    """Scenario that the chain tells; empty for a chain that was drawn from the graph alone. Where it does not fit the
    state, grounding tells another one."""
    steps: tuple[str, ...] = ()
    """In a scenario: the step that each tool is, "" for look-ups that lead to one."""
    source: TaskSource | None = None
    """Where the task starts, if not with these tools: they are empty then, and grounding finds the calls."""
