"""Grounded chains: executed calls, the provenance of their arguments, and the facts that the user must know."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from trajsmith.records.canonical import JsonObject, JsonValue
from trajsmith.records.record import FrozenModel, Record
from trajsmith.records.solution import TaskSource
from trajsmith.records.tool import Actor


class Selector(FrozenModel):
    """Selection of one row of a list, in words that a person could use.

    `equals` compares a field of the row; `largest` and `smallest` take an extreme of a field that all rows have;
    `only` says that the list had one row, `each` that the row is one of several which are all meant. Rows are looked
    for again at play time, never taken by position.
    """

    rows: str
    """Path of the list in the output, for example "$.orders"."""
    how: Literal["equals", "largest", "smallest", "only", "each"]
    field: str = ""
    """Path of the compared field relative to the row, for example "status" or "customer.city"."""
    value: JsonValue = None
    """Value that the field has in the row that is meant."""


class FromUser(FrozenModel):
    """Value stated by the user: `known` is the key of the user fact."""

    kind: Literal["user"] = "user"
    known: str


class FromOutput(FrozenModel):
    """Value in the result of an earlier call of the same task."""

    kind: Literal["output"] = "output"
    call: int
    """Index of the earlier call, counted over the whole task from 0."""
    path: str
    """General path, for example "$.orders[*].order_id"."""
    selectors: tuple[Selector, ...] = ()
    """One per list on the path, outermost first."""
    pattern: str | None = None
    """Regular expression whose first group is the value: of a result that is text, or of the text at the path, such as
    the day of a moment."""


class FromDefault(FrozenModel):
    """The schema's default, given explicitly."""

    kind: Literal["default"] = "default"


class Constant(FrozenModel):
    """Value that the schema fixes for every such call; nobody has to state it."""

    kind: Literal["constant"] = "constant"


class Composite(FrozenModel):
    """Object or array whose leaves have different provenance. Keys are paths such as "items[0].sku"."""

    kind: Literal["composite"] = "composite"
    leaves: dict[str, "LeafProvenance"]


LeafProvenance = Annotated[FromUser | FromOutput | FromDefault | Constant, Field(discriminator="kind")]
Provenance = Annotated[FromUser | FromOutput | FromDefault | Constant | Composite, Field(discriminator="kind")]

Composite.model_rebuild()


class UserFact(FrozenModel):
    """Fact that the user knows and may state. The user states nothing else."""

    key: str
    """Unique in the task, for example "c2.reason"."""
    label: str
    """What a person calls it: "reason", "order date"."""
    value: JsonValue
    said: str
    """How the user says the value."""
    slot: str = ""
    """Parameter or field that it fills, for phrasing."""
    how: Literal["value", "equals", "largest", "smallest"] = "value"
    """A plain value, or the way in which it picks a row."""
    stated: bool = True
    """True if the query says it at once; False if the user says it only when asked."""


class GoldCall(FrozenModel):
    """Call that was executed on the initial state, with its result."""

    tool: str
    """Plain tool name."""
    actor: Actor = "assistant"
    arguments: JsonObject
    provenance: dict[str, Provenance]
    """Where each top-level argument comes from."""
    mask: tuple[str, ...] = ()
    """Arguments that do not matter for the state and the data flow."""
    effect: Literal["read", "write"]
    """What execution showed, not what the tool declares."""
    result: JsonValue = None
    """Structured result of the gold execution."""


class GroundedChain(Record):
    """A chain run for real: gold calls, the state before and after, and what a user must know to ask for it."""

    PREFIX: ClassVar[str] = "ground"

    chain_id: str
    environment: str
    initial_state: str
    """Hash of the state before the first call."""
    calls: tuple[GoldCall, ...]
    states: tuple[str, ...]
    """State hash after each call."""
    known: tuple[UserFact, ...]
    skipped: tuple[str, ...] = ()
    """Tools of the chain that could not be grounded and that nothing depended on."""
    attempts: int
    """Calls that the search made."""
    seed: int
    scenario: str = ""
    """Scenario that the calls tell; empty outside of scenarios."""
    steps: tuple[str, ...] = ()
    """In a scenario: the step that each call is, "" for look-ups that lead to one."""
    source: TaskSource | None = None
    """Where the task starts; None for a chain."""
    program: JsonObject | None = None
    """Of a programmatic task: its program, its words and its run."""
    goal: JsonObject | None = None
    """Of a task that starts from a change of the state: the condition that the final state meets."""
