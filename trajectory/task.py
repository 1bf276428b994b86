"""Grounded chains and tasks: calls that were really made, and what is asked, known and checked around them."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, PrivateAttr

from trajectory.canonical import JsonObject, JsonValue
from trajectory.environment import PolicyRule
from trajectory.record import Frozen, Record
from trajectory.tool import Actor


class Selector(Frozen):
    """Which row of a list is meant, in words that a person could use.

    `equals` compares a field of the row; `largest` and `smallest` take an extreme of a field that all rows have;
    `only` says that the list had one row. Rows are looked for again at play time, never taken by position.
    """

    rows: str
    """Path of the list in the output, for example "$.orders"."""
    how: Literal["equals", "largest", "smallest", "only"]
    field: str = ""
    """Path of the compared field relative to the row, for example "status" or "customer.city"."""
    value: JsonValue = None
    """Value that the field has in the row that is meant."""


class FromUser(Frozen):
    """The user says it: `known` names the entry among what the user knows."""

    kind: Literal["user"] = "user"
    known: str


class FromOutput(Frozen):
    """It stands in the result of an earlier call of the same task."""

    kind: Literal["output"] = "output"
    call: int
    """Index of the earlier call, counted over the whole task from 0."""
    path: str
    """General path, for example "$.orders[*].order_id"."""
    selectors: tuple[Selector, ...] = ()
    """One per list on the path, outermost first."""
    pattern: str | None = None
    """Regular expression whose first group is the value, when the result is text and not structured."""


class FromDefault(Frozen):
    """The schema's default, given explicitly."""

    kind: Literal["default"] = "default"


class Constant(Frozen):
    """The same in every call of this kind: fixed by the schema, nobody has to say it."""

    kind: Literal["constant"] = "constant"


class Composite(Frozen):
    """An object or array whose leaves come from different places. Keys are paths such as "items[0].sku"."""

    kind: Literal["composite"] = "composite"
    leaves: dict[str, "LeafProvenance"]


LeafProvenance = Annotated[FromUser | FromOutput | FromDefault | Constant, Field(discriminator="kind")]
Provenance = Annotated[FromUser | FromOutput | FromDefault | Constant | Composite, Field(discriminator="kind")]

Composite.model_rebuild()


class Known(Frozen):
    """One thing that the user knows and may say. Nothing else may come from the user's mouth."""

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


class GoldCall(Frozen):
    """A call that was executed on the initial state, with what came back."""

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
    known: tuple[Known, ...]
    skipped: tuple[str, ...] = ()
    """Tools of the chain that could not be grounded and that nothing depended on."""
    attempts: int
    """Calls that the search made."""
    seed: int


class StateCheck(Frozen):
    """The final state must hold `value` at `path` (RFC 6901), or hold nothing there if `absent`."""

    kind: Literal["state"] = "state"
    says: str
    path: str
    value: JsonValue = None
    absent: bool = False


class UntouchedCheck(Frozen):
    """Nothing may differ from the initial state outside `allowed` (RFC 6901 prefixes)."""

    kind: Literal["untouched"] = "untouched"
    says: str
    allowed: tuple[str, ...]


class AnswerCheck(Frozen):
    """The agent's answer must tell `value`, in any of the usual ways to write it."""

    kind: Literal["answer"] = "answer"
    says: str
    value: JsonValue
    turn: int
    at: str = ""
    """Where the value stands in the masked state (RFC 6901), if the environment gave it out."""


class PolicyCheck(Frozen):
    """The calls made so far must obey a rule of the environment."""

    kind: Literal["policy"] = "policy"
    says: str
    rule: PolicyRule


class CodeCheck(Frozen):
    """A function of `(initial_state, final_state, answer) -> bool` that somebody wrote; it runs in the sandbox."""

    kind: Literal["code"] = "code"
    says: str
    source: str
    """Python text that defines the function."""
    function: str = "check"


Check = Annotated[StateCheck | UntouchedCheck | AnswerCheck | PolicyCheck | CodeCheck, Field(discriminator="kind")]

Origin = Literal["id", "clock", "chance"]


class Masks(Frozen):
    """What the environment gave out in the gold run, as found by running it again with other counters, a later clock
    and another seed. Patterns are paths in the state with `*` for keys of tables and places in lists."""

    counters: str = ""
    """Part of the state that counts ids, where an environment declares one; no check looks at it."""
    clock: str = ""
    """Part of the state that is the clock, where an environment declares one."""
    tables: tuple[str, ...] = ()
    """Parts whose new entries have keys that the environment gave out."""
    leaves: dict[str, Origin] = {}
    """Pattern of a leaf to what it was made of."""
    names: dict[str, str] = {}
    """Id in the gold run to the name that stands for it: one made of the content of what it identifies."""


class Audit(Frozen):
    """What became of the checks of a task when they were tested (design section 6)."""

    made: dict[str, int] = {}
    """Kind of mutant to how many were executed; one that comes to the same as gold is none."""
    caught: dict[str, int] = {}
    """Kind of mutant to how many fail at least one check."""
    escaped: tuple[str, ...] = ()
    """What was done in mutants that no check noticed, the first few."""
    equivalent: int = 0
    """Equivalent runs that were executed."""
    accepted: int = 0
    """How many of them pass all checks."""
    refused: tuple[str, ...] = ()
    """How the equivalent runs that fail were made, and the check that they fail, the first few."""
    dropped: tuple[str, ...] = ()
    """Checks that were no good and left out: what they say, and why."""

    @property
    def discrimination(self) -> float | None:
        """Share of mutants caught; None if there were none."""
        made = sum(self.made.values())
        return round(sum(self.caught.values()) / made, 4) if made else None


class Persona(Frozen):
    """Who the simulated user is and how they talk."""

    name: str
    role: str
    style: str
    """Manner of speaking, for example "brisk" or "chatty"."""


class Turn(Frozen):
    """One request of the user, with the calls that fulfil it."""

    intent: str
    """What the user wants, in one sentence, for people who read the data."""
    query: str
    known: tuple[Known, ...]
    gold_calls: tuple[GoldCall, ...]
    checks: tuple[Check, ...]
    state_hash: str
    """Hash of the gold state after the turn."""
    form_hash: str = ""
    """The same with what the environment gives out masked; empty where nothing is."""
    answer_facts: tuple[JsonValue, ...] = ()
    """Values that the agent's answer must tell."""
    refinements: tuple[str, ...] = ()
    """What was done to a model's draft: implicit_reference, action_compression, ambiguity, goal_expansion."""


class Twist(Frozen):
    """What makes a variant differ from its base task, what the agent must do about it, and how the label was proved."""

    base: str
    """Id of the task that it was derived from."""
    turn: int
    """Turn in which it happens."""
    act: Literal["ask", "decline", "recover", "check", "delegate", "plain"]
    """What is right: ask for what is missing, say that it cannot be done, try again, come back before writing, have the
    user do it, or nothing special."""
    tool: str = ""
    """Tool that the twist is about: hidden, failing, forbidden to call so, or only for the user."""
    hidden: bool = False
    """The tool is not there when the twist happens."""
    arrives: int | None = None
    """Turn from which a hidden tool is there."""
    refusal: str = ""
    """What the first call of the tool is refused with, where a failure is injected; the environment never saw it."""
    keys: tuple[str, ...] = ()
    """Known entries that the agent must ask for."""
    told: tuple[JsonValue, ...] = ()
    """Values that tell the asked entry; any of them will do."""
    ignorant: bool = False
    """The user does not know it either."""
    first: Known | None = None
    """What the user says before they change their mind."""
    because: str = ""
    """Why it cannot be done, in words for the user."""
    tempting: tuple[GoldCall, ...] = ()
    """Calls of the turn that an agent would make which does not notice the twist."""
    proof: str
    """How execution showed that the label is right."""


class TaskHead(Record):
    """What says which task it is and of what kind: all that a row needs, at a quarter of the cost of the whole task.

    Read from the same line; what else stands there is looked at when somebody asks for `whole`.
    """

    PREFIX: ClassVar[str] = "task"
    model_config = ConfigDict(extra="ignore")

    grounded_id: str
    environments: tuple[str, ...]
    mode: Literal["conversation", "direct"]
    variant: str = "base"
    difficulty: float
    language: str
    seed: int
    _line: bytes = PrivateAttr(b"")

    @classmethod
    def from_line(cls, line: bytes | str, where: str = "record") -> Self:
        found = super().from_line(line, where)
        found._line = line if isinstance(line, bytes) else line.encode()
        return found

    def whole(self) -> "Task":
        """The task.

        Raises:
            InputError: The line is no task.
        """
        return Task.from_line(self._line, self.id)


class Task(Record):
    """Everything that a user simulator, an agent and a verifier need."""

    PREFIX: ClassVar[str] = "task"

    grounded_id: str
    environments: tuple[str, ...]
    initial_state: str
    persona: Persona
    scenario: str
    policy: str
    exposed_tools: tuple[str, ...]
    """Plain names of the tools that the agent is shown."""
    user_tools: tuple[str, ...] = ()
    """Plain names of the tools that only the user can call."""
    mode: Literal["conversation", "direct"]
    variant: str = "base"
    twist: Twist | None = None
    """Of a variant: what is different."""
    difficulty: float
    """0 (one call, nothing hidden) to 1."""
    language: str
    """"scripted" or the name of the model that wrote it."""
    prompts: dict[str, str] = {}
    """Prompts that models were given for it: name to hash of the file."""
    turns: tuple[Turn, ...]
    masks: Masks = Masks()
    audit: Audit | None = None
    """None if the checks were not tested against mutants."""
    seed: int

    def whole(self) -> "Task":
        """The task itself, as `TaskHead.whole` gives it."""
        return self

    @property
    def gold_calls(self) -> list[GoldCall]:
        """All gold calls in order; `FromOutput.call` counts over this list."""
        return [call for turn in self.turns for call in turn.gold_calls]
