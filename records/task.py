"""Tasks: queries, user facts and checks around executed calls."""

import random
from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal, Self

import orjson
from pydantic import ConfigDict, PrivateAttr

from trajsmith.records.answers import AnswerFact, RequestedInfo
from trajsmith.records.canonical import JsonValue, derive_seed
from trajsmith.records.checks import Check, CheckAudit, NondeterminismMask
from trajsmith.records.directory_tools import TOOL_SEARCH
from trajsmith.records.grounded import GoldCall, UserFact
from trajsmith.records.record import FrozenModel, Record, strip_checksum
from trajsmith.records.rubric import Criterion
from trajsmith.records.solution import ProgramSolution, TaskSource
from trajsmith.records.tool import ToolSpec

MAX_FACTS = 8
"""Values that the answer of one turn must state, at most."""


class Persona(FrozenModel):
    """Identity and style of the simulated user."""

    name: str
    role: str
    style: str
    """Manner of speaking, for example "brisk" or "chatty"."""


class Turn(FrozenModel):
    """One request of the user, with the calls that fulfil it."""

    intent: str
    """What the user wants, in one sentence, for people who read the data."""
    query: str
    known: tuple[UserFact, ...]
    gold_calls: tuple[GoldCall, ...]
    checks: tuple[Check, ...]
    state_hash: str
    """Hash of the gold state after the turn."""
    form_hash: str = ""
    """The same with what the environment gives out masked; empty where nothing is."""
    answer_facts: tuple[JsonValue, ...] = ()
    """Values that the agent's answer must tell; those of `asked`, where it is known what is asked."""
    asked: tuple[RequestedInfo, ...] = ()
    """What the request asks for, one entry per goal; empty where a recording tells no more than the values."""
    steps: tuple[str, ...] = ()
    """In a scenario: the step that each gold call is, "" for look-ups that lead to one."""
    groups: tuple[int, ...] = ()
    """Of each gold call: the message of calls in which it can be made; execution showed that the calls of one group
    commute. Empty: each call has a message of its own."""
    refinements: tuple[str, ...] = ()
    """What was done to a model's draft: implicit_reference, action_compression, ambiguity, goal_expansion."""

    @property
    def facts(self) -> tuple[AnswerFact, ...]:
        """Facts that the answer must state, with fields and words where they are known."""
        return list_answer_facts(self.asked) or tuple(AnswerFact(value=value) for value in self.answer_facts)


class RefusedMember(FrozenModel):
    """One of the many things of a batch for which the call is refused."""

    call: GoldCall
    """The refused call, with the environment's refusal as its result."""
    because: str
    """Why, in the environment's words."""
    told: tuple[JsonValue, ...]
    """Values by which an answer names the thing; any of them will do."""


class Perturbation(FrozenModel):
    """Difference between a variant and its base task, the required behaviour, and the proof of the label."""

    base: str
    """Id of the task that it was derived from."""
    turn: int
    """Turn in which it happens."""
    act: Literal[
        "ask", "decline", "recover", "check", "delegate", "offer", "reread", "batch", "ignore", "page", "plain"
    ]
    """What is right: ask for what is missing, say that it cannot be done, try again, come back before writing, have the
    user do it, say that one thing cannot be done and offer what can, read again what has changed, do it for all that
    are meant and nothing else, not do what a result demands, read on to the page that has it, or nothing special."""
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
    """Values that tell the asked entry or the offer; any of them will do."""
    ignorant: bool = False
    """The user does not know it either."""
    first: UserFact | None = None
    """What the user says before they change their mind."""
    because: str = ""
    """Why it cannot be done, in words for the user."""
    visible: bool = False
    """The policy and what was shown before tell why it cannot be done: it is read, not tried."""
    offer: GoldCall | None = None
    """What can be done instead, proved by execution; `told` holds the values by which an answer names it."""
    accepted: bool = False
    """The user takes the offer; else they leave it."""
    refused: tuple[RefusedMember, ...] = ()
    """Of a batch: the things for which the call is refused."""
    tempting: tuple[GoldCall, ...] = ()
    """Calls of the turn that an agent would make which does not notice the twist."""
    proof: str
    """How execution showed that the label is right."""


class ToolSearch(FrozenModel):
    """Of a task whose agent is shown no tool: it searches for them, and calls what a search has shown."""

    results: int
    """Tools that a search shows at most."""
    queries: dict[str, tuple[str, ...]]
    """Tool to the queries with which the scripted agent looks for it. The last one shows it; those before it do not."""


class TaskHeader(Record):
    """Identity and kind of a task: all that a row needs, at a quarter of the cost of the whole task.

    Read from the same line; what else stands there is looked at when somebody asks for `whole`.
    """

    PREFIX: ClassVar[str] = "task"
    model_config = ConfigDict(extra="ignore")

    grounded_id: str
    environments: tuple[str, ...]
    mode: Literal["conversation", "direct"]
    variant: str = "base"
    source: TaskSource | None = None
    difficulty: float
    language: str
    seed: int
    distractors: tuple[ToolSpec, ...] = ()
    search: ToolSearch | None = None
    _line: bytes = PrivateAttr(b"")

    @classmethod
    def from_line(cls, line: bytes | str, where: str = "record") -> Self:
        data = line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass")
        header = cls._read_fields(data) or super().from_line(data, where)
        header._line = data
        return header

    @classmethod
    def _read_fields(cls, line: bytes) -> Self | None:
        """Read a line whose checksum holds without decoding its other fields; None if that cannot be done."""
        from trajsmith.records.views import split_fields

        written = strip_checksum(line)
        if written is None:
            return None
        try:
            values = split_fields(written)
            return cls.model_validate({name: orjson.loads(values[name]) for name in cls.model_fields if name in values})
        except ValueError:  # reading it as a whole says what is wrong
            return None

    def whole(self) -> "Task":
        """The task.

        Raises:
            InputError: The line is no task.
        """
        return Task.from_line(self._line, self.id)


class Task(Record):
    """Input of a user simulator, an agent and a verifier."""

    PREFIX: ClassVar[str] = "task"

    grounded_id: str
    environments: tuple[str, ...]
    initial_state: str
    persona: Persona
    scenario: str
    """The situation in a sentence or two, third person."""
    scenario_id: str = ""
    """Scenario of the environment that the task tells; empty outside of scenarios."""
    motive: str = ""
    """Why the user calls, as the first request says it; empty where it says nothing of the kind."""
    policy: str
    exposed_tools: tuple[str, ...]
    """Plain names of the tools of the environment that the agent is shown, or finds by searching."""
    distractors: tuple[ToolSpec, ...] = ()
    """Tools of other environments that the agent is shown, too. They cannot be called here."""
    search: ToolSearch | None = None
    """The agent finds all these tools by searching; None where it is shown them."""
    user_tools: tuple[str, ...] = ()
    """Plain names of the tools that only the user can call."""
    mode: Literal["conversation", "direct"]
    variant: str = "base"
    source: TaskSource | None = None
    """Where the task starts; None for a chain."""
    solution: ProgramSolution | None = None
    """Of a programmatic task: the program that solves it."""
    twist: Perturbation | None = None
    """Of a variant: what is different."""
    difficulty: float
    """0 (one call, nothing hidden) to 1."""
    language: str
    """"scripted" or the name of the model that wrote it."""
    prompts: dict[str, str] = {}
    """Prompts that models were given for it: name to hash of the file."""
    turns: tuple[Turn, ...]
    masks: NondeterminismMask = NondeterminismMask()
    audit: CheckAudit | None = None
    """None if the checks were not tested against mutants."""
    rubric: tuple[Criterion, ...] = ()
    """Criteria of a play; empty where a recording has checks only."""
    rubric_dropped: tuple[str, ...] = ()
    """Criteria that a model wrote and that did not stand their tests: what they say, and why."""
    seed: int

    def whole(self) -> "Task":
        """The task itself, as `TaskHead.whole` gives it."""
        return self

    @property
    def shown_tools(self) -> tuple[str, ...]:
        """Names of all tools that the agent is shown; with distractors in an order that does not tell them apart."""
        if self.search is not None:
            return tuple(tool.name for tool in TOOL_SEARCH)
        if not self.distractors:
            return self.exposed_tools
        names = [*self.exposed_tools, *(tool.name for tool in self.distractors)]
        return tuple(random.Random(derive_seed(self.seed, "tool order")).sample(names, len(names)))

    def find_shown_specs(self, tools: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
        """Return the tools that the agent is shown, in their order; `tools` are those of the environment."""
        if self.search is not None:
            return TOOL_SEARCH
        known = {tool.name: tool for tool in (*tools, *self.distractors)}
        return tuple(known[name] for name in self.shown_tools)

    def find_searched_specs(self, tools: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
        """Return the tools among which a search finds, by name; `tools` are those of the environment."""
        known = {tool.name: tool for tool in (*tools, *self.distractors)}
        return tuple(known[name] for name in sorted({*self.exposed_tools, *(tool.name for tool in self.distractors)}))

    @property
    def gold_calls(self) -> list[GoldCall]:
        """All gold calls in order; `FromOutput.call` counts over this list."""
        return [call for turn in self.turns for call in turn.gold_calls]


def list_answer_facts(asked: Sequence[RequestedInfo]) -> tuple[AnswerFact, ...]:
    """Return what an answer must state: of equal values the first, those of narrow questions before all others."""
    facts: dict[str, AnswerFact] = {}
    for info in sorted(asked, key=lambda info: not info.narrow):
        for fact in info.facts:
            plain = isinstance(fact.value, bool) or fact.value == []
            facts.setdefault(repr((fact.value, fact.call, fact.place) if plain else fact.value), fact)
    return tuple(facts.values())[:MAX_FACTS]
