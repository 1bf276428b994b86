"""Schemas of models' answers: the parts of an environment, each validated before use."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from trajsmith.records import Actor, FrozenModel, JsonObject

LONGEST_NAME = 60
FIRST_TASKS, FIRST_RULES = 30, 20
"""Tasks and rules of a first draft at most."""
SnakeName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$", max_length=LONGEST_NAME)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
Size = Literal["small", "medium", "large"]


class Proposal(FrozenModel):
    """A theme as an environment, or the reason why it can be none."""

    unusable: str
    """Why nothing with a state can be made of the source; empty if something can."""
    name: str
    """Snake case, for example "tool_rental"."""
    title: str
    domain: str
    """Path from general to special, for example "leisure/tool_rental"."""
    description: str
    entities: tuple[SnakeName, ...]
    """Nouns in the plural that its state keeps."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.unusable.strip():
            return self
        if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", self.name) or len(self.name) > LONGEST_NAME:
            raise ValueError(f"name must be in snake case, of {LONGEST_NAME} letters at most")
        if not self.title or not self.domain or not self.description or len(self.entities) < 2:
            raise ValueError("give title, domain, description and at least two entities, or say why it is unusable")
        return self


class TaskRequirement(FrozenModel):
    """Task that the environment must support."""

    id: str = Field(pattern=r"^T[0-9]+$")
    request: Text
    outcome: Text
    """What is different in the state, or known, when it is done."""


class BusinessRule(FrozenModel):
    """Business rule that the code must enforce."""

    id: str = Field(pattern=r"^R[0-9]+$")
    text: Text


class Requirements(FrozenModel):
    """Tasks and rules."""

    tasks: tuple[TaskRequirement, ...] = Field(min_length=4, max_length=120)
    rules: tuple[BusinessRule, ...] = Field(min_length=2, max_length=80)
    """Of an environment that grew over many rounds; a first draft has at most `FIRST_TASKS` and `FIRST_RULES`."""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        ids = [task.id for task in self.tasks] + [rule.id for rule in self.rules]
        if len(set(ids)) < len(ids):
            raise ValueError("two tasks or two rules have one id")
        return self


class PlannedTool(FrozenModel):
    """Tool before it is code."""

    name: SnakeName
    effect: Literal["read", "write"]
    actor: Actor = "assistant"
    """Who calls it: the assistant, or only the person, on their own device."""
    does: Text
    parameters: tuple[str, ...]
    """Each as "name: what it means"."""
    returns: Text
    refuses: tuple[str, ...]
    rules: tuple[str, ...]
    """Ids of the rules that it keeps."""
    serves: tuple[str, ...]
    """Ids of the tasks that need it."""


class ToolPlan(FrozenModel):
    """All tools."""

    tools: tuple[PlannedTool, ...] = Field(min_length=3)


class TextList(FrozenModel):
    """Texts for one kind of value: names, titles, remarks."""

    name: str = Field(pattern=r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$")
    """Constant that the generator code uses, for example "MEMBER_NAMES"."""
    values: tuple[Text, ...] = Field(min_length=6, max_length=80)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len(set(self.values)) < len(self.values):
            raise ValueError(f"{self.name} has a value twice")
        return self


class Texts(FrozenModel):
    """All texts of the seed states."""

    lists: tuple[TextList, ...] = Field(min_length=1, max_length=24)


class EntityPhrasing(FrozenModel):
    """Users' phrases for one kind of record."""

    key: SnakeName
    """Parameter that identifies it."""
    noun: str
    plural: str
    own: tuple[str, ...]
    by: dict[str, tuple[str, ...]]
    """Field to phrases with {value}: "the score by {value}"."""


class ToolPhrasing(FrozenModel):
    """Users' phrases for one tool."""

    tool: SnakeName
    ask: tuple[str, ...]
    """Verb phrases that fit after "Could you" and after "I'd like to", with parameters in braces."""


class TaskStory(FrozenModel):
    """Why somebody comes with a required task."""

    task: str = Field(pattern=r"^T[0-9]+$")
    motives: tuple[Text, ...] = Field(min_length=1, max_length=6)
    """Whole sentences in the first person, said before what is wanted."""


class EnvironmentPhrasing(FrozenModel):
    """Phrases of the environment's users, for the scripted user."""

    roles: tuple[str, ...]
    names: tuple[str, ...]
    """Where the state has names of people that the user may be: "members.*.name"."""
    entities: tuple[EntityPhrasing, ...]
    tools: tuple[ToolPhrasing, ...]
    stories: tuple[TaskStory, ...] = ()
    """Of the required tasks; those that have none are made into no scenario."""


class RowCountCondition(FrozenModel):
    """Condition on the number of other rows that refer to a row."""

    table: str
    column: str
    """Column of `table` that holds the row's key."""
    where: JsonObject = {}
    at_least: int = 0
    at_most: int | None = None


class RowPick(FrozenModel):
    """Value of the first row of a table that satisfies conditions, in the order of the keys."""

    table: str
    where: JsonObject = {}
    """Column to a value, or to {"is" | "not" | "above" | "below" | "least" | "most" | "contains": value}."""
    having: tuple[RowCountCondition, ...] = ()
    field: str
    number: int = Field(0, ge=0)
    """Which of the rows that fit; 0 is the first."""


class TestCall(FrozenModel):
    """A call of a test. An argument may be a plain value or a reference.

    {"$pick": Pick} is a value of the state before the call; {"$result": [n, "path.in.result"]} one of the result of
    call n, counted from 0; {"$days": n} the date n days from the environment's clock.
    """

    __test__ = False  # no test class, whatever pytest thinks of its name

    tool: SnakeName
    arguments: JsonObject


class RowChange(FrozenModel):
    """Change in the number of rows of a table that satisfy conditions, across the last call."""

    table: str
    where: JsonObject = {}
    by: int


class UnitTest(FrozenModel):
    """Calls from a seed state and the expected outcome of the last; the earlier ones must succeed."""

    name: SnakeName
    tool: SnakeName
    """What is tested: the tool of the last call."""
    about: Text
    rule: str = ""
    """Id of the rule that the last call would break and is refused for."""
    size: Size = "medium"
    seed: int = Field(1, ge=0, le=40)
    calls: tuple[TestCall, ...] = Field(min_length=1, max_length=12)
    expect: Literal["answered", "refused"]
    says: str = ""
    """Part of the refusal's text, in any case."""
    result: JsonObject = {}
    """Part of the last result: paths to values (plain or references), or to conditions as in `Pick.where`."""
    changes: tuple[RowChange, ...] = ()
    unchanged: bool = False
    """True if the last call must leave the state as it is; refusals always must."""

    @model_validator(mode="after")
    def _about_its_tool(self) -> Self:
        if self.calls[-1].tool != self.tool:
            raise ValueError(f"{self.name}: the last call must be of {self.tool}, which it tests")
        if self.rule and self.expect != "refused":
            raise ValueError(f"{self.name}: a call that breaks rule {self.rule} must be refused")
        return self


class UnitTestSuite(FrozenModel):
    """All tests of an environment."""

    tests: tuple[UnitTest, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [test.name for test in self.tests]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two tests are called {twice[0]}")
        return self


class RepairDecision(FrozenModel):
    """Faulty side of a complaint: code or test (EnvFactory's question: scenario or code)."""

    complaint: str
    """Its id."""
    wrong: Literal["code", "test"]
    why: Text


class Repair(FrozenModel):
    """Decisions of a repair, and the tests that it mends; mended code stands beside it."""

    decisions: tuple[RepairDecision, ...] = Field(min_length=1)
    tests: tuple[UnitTest, ...]
    """Mended tests, under their old names; new ones only for rules of which nothing shows that they bind."""


class Trial(FrozenModel):
    """Call that the tester proposes."""

    tool: SnakeName
    arguments: JsonObject
    aim: Literal["positive", "negative"]
    expects: Text
    """What should come of it, and what should change."""


class Trials(FrozenModel):
    """One round of the tester."""

    trials: tuple[Trial, ...] = Field(min_length=1)


class TrialReview(FrozenModel):
    """Checker's verdict on a call."""

    trial: int = Field(ge=0)
    verdict: Literal["pass", "warning", "fail"]
    reason: Text


class TrialReviews(FrozenModel):
    """One round of the checker."""

    opinions: tuple[TrialReview, ...]
