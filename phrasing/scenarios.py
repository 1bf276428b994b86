"""Scenarios: the stories in which people use one environment, as intents with shared things, dates and a motive.

A scenario says which tools somebody needs for one purpose, in which order, and which values these calls share. It names
goals only: the look-ups that lead to a goal are added when a chain is drawn. `scenarios.yaml` stands beside the
phrasebook of an environment.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from trajsmith.phrasing.phrasebook import Question, Templates, insert_said_words
from trajsmith.phrasing.yaml_files import WordsOfFile, find_language_file, load_yaml_model
from trajsmith.records import FrozenModel, InputError, JsonValue


class ScenarioStep(FrozenModel):
    """One intent of a scenario: one goal call, by default in a turn of its own."""

    tool: str
    """The goal: a write, or a read whose result the user wants."""
    id: str = ""
    """Name by which later steps refer to this one; the name of the tool if left out."""
    share: float = Field(1.0, gt=0, le=1)
    """Probability that the step is part of the story; steps that refer to a missing step are left out with it."""
    needed: bool = False
    """True for what the user came for: where it cannot be made, the story is not told."""
    join: float = Field(0.0, ge=0, le=1)
    """Probability that the user asks for it in the same message as the step before."""
    follows: tuple[str, ...] | None = None
    """Steps that must come earlier; None for all steps above, () for none: the step may stand anywhere."""
    arguments: dict[str, tuple[JsonValue, ...]] = {}
    """Parameter to the values that fit the story; one is drawn: {"reason": ["lost", "stolen"]}."""
    same_as: dict[str, str] = {}
    """Parameter to "step.name": it has the value of that step's argument or result field:
    {"account_id": "freeze_card.account_id"}."""
    unsaid: tuple[str, ...] = ()
    """Parameters of `same_as` whose value the user does not know: it comes from the one row that there is, or from the
    row of which an earlier step speaks."""
    other_than: dict[str, str] = {}
    """Parameter to "step.name": it has another value."""
    later_than: dict[str, str] = {}
    """Parameter to "step.name": a later date or time."""
    days_ahead: dict[str, int] = {}
    """Parameter to how many days after the clock's day it lies at least: {"until": 21} for access that is worth it."""
    days_within: dict[str, int] = {}
    """Parameter to how many days after the clock's day it lies at most: {"collect_on": 10} for what is urgent."""
    settled: tuple[str, ...] = ()
    """Parameters that others have decided, such as when a course begins: nobody takes another value instead."""
    where: dict[str, tuple[JsonValue, ...]] = {}
    """Field of the row that a thing is chosen from, to the values that fit the story: {"status": ["pending"]}."""
    where_same: dict[str, str] = {}
    """Field of that row to "step.name": it has the value of that step's argument or result field, or of the row that
    its thing was chosen from; of dates the day counts: {"city": "add_extra.to_city"}."""
    days_old: dict[str, int] = {}
    """Date field of that row to how many days it lies back at least: {"placed_at": 1} for what is not from today."""
    days_near: dict[str, int] = {}
    """Date field of that row to how many days from the clock's day it lies at most: {"placed_at": 14} for an order
    that somebody has just made."""
    days_coming: dict[str, int] = {}
    """Date field of that row to how many days after the clock's day it lies at most, and one at least:
    {"starts_at": 14} for what somebody with a sore ankle has to cancel."""
    up_to: dict[str, float] = {}
    """Number field of that row to the most that it may be: {"total": 160} for what somebody gives away."""
    at_least: dict[str, float] = {}
    """The same for the least: {"balance": 200} for the account that somebody saves from."""
    every: dict[str, tuple[JsonValue, ...]] = {}
    """Of a read that lists things: field to the values that it has in all rows: {"door_open": [false]} where nobody
    would pass over a door that stands open."""
    least_rows: int = Field(0, ge=0)
    """Of such a read: how many rows it shows at least: 4 for somebody who has taken on too much."""
    ask: tuple[str, ...] = ()
    """Verb phrases in this story, as `ToolPhrases.ask`; the phrasebook's serve where both are empty."""
    say: tuple[str, ...] = ()
    """Whole sentences in this story, as `ToolPhrases.say`; slots are the tool's parameters."""
    reasons: tuple[str, ...] = ()
    """Whole sentences before the request that say why the user wants it now: "Two of us have fallen ill."."""
    question: Question | None = None
    """Of a read: what exactly the user wants to know; its `ask` and `say` take the place of the step's."""

    @property
    def name(self) -> str:
        """Name of the step in its scenario."""
        return self.id or self.tool

    @property
    def texts(self) -> tuple[str, ...]:
        """Words of its own in which the step may be asked for."""
        texts = (*self.question.ask, *self.question.say) if self.question is not None else ()
        return texts or (*self.ask, *self.say)

    def fixes(self, argument: str) -> bool:
        """Return True if the story has one value for an argument: its words tell it, by name or in other words."""
        return len(self.arguments.get(argument, ())) == 1

    @property
    def has_words(self) -> bool:
        """Presence of words of its own, which take the place of the phrasebook's."""
        return bool(self.texts)


class Motive(FrozenModel):
    """A motive that is told only where it fits what was drawn: "One of the guests can't come." of events with guests.

    "step.field" is an argument of the step's call, a field of its result, or of the row that its thing was chosen from;
    one value that it stands for must fit. A step that is not there meets no condition.
    """

    say: str = Field(min_length=1)
    """The motive itself."""
    where: dict[str, tuple[JsonValue, ...]] = {}
    """"step.field" to the values that fit it."""
    up_to: dict[str, float] = {}
    """"step.field" to the highest number that fits it; a list counts its entries."""
    at_least: dict[str, float] = {}
    """The same for the lowest."""
    with_steps: tuple[str, ...] = ()
    """Steps that the story must have."""
    without_steps: tuple[str, ...] = ()
    """Steps that it must not have."""

    @property
    def references(self) -> tuple[str, ...]:
        """Each "step.field" that the motive asks for."""
        return (*self.where, *self.up_to, *self.at_least)

    def fits(self, steps: Container[str], list_values: Callable[[str], Iterable[JsonValue]]) -> bool:
        """Return True if the motive can be told of a story.

        Args:
            steps: Names of the steps that the story has.
            list_values: Gives the values that a "step.field" stands for.
        """
        if any(name not in steps for name in self.with_steps) or any(name in steps for name in self.without_steps):
            return False
        ranges = [(reference, -inf, limit) for reference, limit in self.up_to.items()]
        ranges += [(reference, limit, inf) for reference, limit in self.at_least.items()]
        return all(
            any(value in fitting for value in list_values(reference)) for reference, fitting in self.where.items()
        ) and all(
            any(low <= number <= high for number in map(_count, list_values(reference)) if number is not None)
            for reference, low, high in ranges
        )


def _count(value: JsonValue) -> float | None:
    if isinstance(value, list):
        return len(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


class Scenario(FrozenModel):
    """One story: a motive and the intents that it leads to."""

    id: str
    """Snake case, unique in its environment: "card_missing"."""
    motives: tuple[str | Motive, ...] = Field(min_length=1)
    """Why the user calls, in whole sentences that open the first request: "I can't find my purse."; some may have
    conditions, at least one has none."""
    summary: str = ""
    """The story in one sentence, third person, for people and models who write it; `{name}` is the user."""
    roles: tuple[str, ...] = ()
    """Who the user may be in it; the phrasebook's roles if empty."""
    reactions: tuple[str, ...] = ()
    """What an agent says first to somebody with such a motive: "I'm sorry to hear that."; each fits every motive."""
    closings: tuple[str, ...] = ()
    """Last words of an agent where all went as wished: "Have a good trip."."""
    trouble: bool = False
    """True if something has gone wrong, so that the user thanks without cheering."""
    change_of_mind: bool = False
    """True if a later step may undo an earlier one, with words of its own or `reasons` that say why; otherwise nothing
    that a story did is undone in it."""
    steps: tuple[ScenarioStep, ...] = Field(min_length=1)

    def find_step(self, name: str) -> ScenarioStep | None:
        """Return the step of this name, or None."""
        return next((step for step in self.steps if step.name == name), None)

    def list_motives(self, steps: Container[str], list_values: Callable[[str], Iterable[JsonValue]]) -> list[str]:
        """Return the motives that can be told of a story; see `Motive.fits` for the arguments."""
        return [
            motive if isinstance(motive, str) else motive.say
            for motive in self.motives
            if isinstance(motive, str) or motive.fits(steps, list_values)
        ]

    @model_validator(mode="after")
    def _check_references(self) -> Self:
        names = [step.name for step in self.steps]
        if len(set(names)) < len(names):
            raise ValueError(f"scenario {self.id}: two steps have the same name; give one of them an id")
        for number, step in enumerate(self.steps):
            earlier = names[:number]
            wanted = [*(step.follows or ())]
            wanted += [
                value.split(".")[0]
                for table in (step.same_as, step.other_than, step.later_than, step.where_same)
                for value in table.values()
            ]
            missing = next((name for name in wanted if name not in earlier), None)
            if missing is not None:
                raise ValueError(
                    f"scenario {self.id}: step {step.name} refers to {missing!r}, which is no step above it"
                )
        check_motives(self.id, self.motives, names)
        return self


def check_motives(scenario: str, motives: Sequence[str | Motive], steps: Container[str]) -> None:
    """Check that one motive has no condition, and that the others speak of steps that are there.

    Raises:
        ValueError: They do not.
    """
    conditional = [motive for motive in motives if isinstance(motive, Motive)]
    if len(conditional) == len(motives):
        raise ValueError(f"scenario {scenario}: every motive has conditions; give it one that can always be told")
    for motive in conditional:
        wanted = (*motive.with_steps, *motive.without_steps, *(name.partition(".")[0] for name in motive.references))
        unknown = next((name for name in wanted if name not in steps), None)
        if unknown is not None:
            raise ValueError(
                f"scenario {scenario}: motive {motive.say!r} speaks of {unknown!r}, which is no step of it"
            )


class BatchRequest(FrozenModel):
    """A request for all rows of a list that satisfy a condition: "cancel every order that is still pending"."""

    list: str
    """Tool that lists the rows; it is called without optional arguments."""
    owner: str = ""
    """Its parameter that says who the user is: a task that knows it can open the list, without reading it itself."""
    tool: str
    """Tool that is called for each of them."""
    parameter: str
    """Its parameter that takes the row, and the name of the row's field."""
    where: dict[str, tuple[str | bool | int, ...]] = {}
    """Field to the values that it has in rows that are meant; empty for all rows."""
    arguments: dict[str, tuple[JsonValue, ...]] = {}
    """Other arguments, the same for every row: one of the values is drawn."""
    grow: bool = True
    """True if rows like those that are there may be added to the state, so that there are many."""
    most: int = Field(default=12, ge=3)
    """Rows that the list may have at most, where a rule bounds them."""
    apart: tuple[str, ...] = ()
    """Columns of the state with the day of a thing, and the number of its days where it has several: rows that are
    added are on days of their own."""
    confirm: Templates = ()
    """Verb phrases in which the agent asks for a yes for all of them, where it must."""
    confirm_each: Templates = ()
    """What this question says of each thing, in brackets after its name: what of its price comes back. Slots are the
    fields of its row."""
    done: tuple[str, ...] = ()
    """Sentences that report all of it at once where nothing else has to be told of each thing. Slots: the arguments,
    `names` (all of them), `count` and `outs` (the results)."""
    opening: tuple[str, ...] = ()
    """Words before a list of the things, with the same slots: "Each of these trips has a quiet seat now:"."""
    each: tuple[str, ...] = ()
    """What such a list says of one thing; slots are its `name`, its `out` and the arguments."""
    closing: tuple[str, ...] = ()
    """Sentences after a report of each thing, with the same slots: what all of it comes to."""
    ask: tuple[str, ...] = Field(min_length=1)
    """Whole sentences that ask for it, with slots for the arguments, and for what the list needs and was not said yet:
    "every {file_type}" (then without article) or "of {lock_id}". Sentences with more slots come first."""


class ScenarioBook(WordsOfFile):
    """All scenarios of one environment."""

    scenarios: tuple[Scenario, ...] = ()
    batches: tuple[BatchRequest, ...] = ()
    """Requests for many things at once."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [scenario.id for scenario in self.scenarios]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two scenarios are named {twice!r}")
        return self

    def find(self, name: str) -> Scenario | None:
        """Return the scenario of this id, or None."""
        return next((scenario for scenario in self.scenarios if scenario.id == name), None)


class StepWords(FrozenModel):
    """Words of one step in another language, and the values that are words themselves."""

    ask: tuple[str, ...] = ()
    say: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    """Answers of the step's question, which has the same fields in every language."""
    arguments: dict[str, tuple[JsonValue, ...]] = {}

    def apply(self, step: ScenarioStep) -> ScenarioStep:
        """Return a step with these words."""
        updates: dict[str, Any] = {"arguments": {**step.arguments, **self.arguments}, "ask": self.ask, "say": self.say}
        if step.question is not None:
            words = {"ask": self.ask, "say": self.say, "answer": self.answer}
            updates |= {"question": step.question.model_copy(update=words), "ask": (), "say": ()}
        return step.model_copy(update=updates)


class StoryWords(FrozenModel):
    """Words of one scenario in another language."""

    motives: tuple[str | Motive, ...] = Field(min_length=1)
    summary: str = ""
    roles: tuple[str, ...] = ()
    reactions: tuple[str, ...] = ()
    closings: tuple[str, ...] = ()
    steps: dict[str, StepWords] = {}
    """Words of each step, by its name."""

    def apply(self, scenario: Scenario) -> Scenario:
        """Return a scenario with these words.

        Raises:
            InputError: A step has no words here, or there is no step of a name.
        """
        names = {step.name for step in scenario.steps}
        wrong = sorted(names ^ self.steps.keys())
        if wrong:
            raise InputError(f"scenarios: {scenario.id}: step {wrong[0]} must have words in each language")
        try:
            check_motives(scenario.id, self.motives, names)
        except ValueError as error:
            raise InputError(f"scenarios: {error}") from None
        for step in scenario.steps:
            if step.question is not None and not self.steps[step.name].answer:
                raise InputError(f"scenarios: {scenario.id}: step {step.name} asks something and has no answer")
        steps = tuple(self.steps[step.name].apply(step) for step in scenario.steps)
        words = {name: getattr(self, name) for name in ("motives", "summary", "roles", "reactions", "closings")}
        return scenario.model_copy(update={**words, "steps": steps})


class ScenarioWords(FrozenModel):
    """Words of the scenarios of one environment in another language; those without words are left out."""

    scenarios: dict[str, StoryWords] = {}

    def apply(self, book: ScenarioBook) -> ScenarioBook:
        """Return the scenarios that have words here.

        Raises:
            InputError: There is no scenario of a name, or its steps do not fit.
        """
        unknown = sorted(self.scenarios.keys() - {scenario.id for scenario in book.scenarios})
        if unknown:
            raise InputError(f"scenarios: there is no scenario {unknown[0]!r} to give words to")
        worded = [scenario for scenario in book.scenarios if scenario.id in self.scenarios]
        return ScenarioBook(scenarios=tuple(self.scenarios[scenario.id].apply(scenario) for scenario in worded))


def open_scenarios(path: Path | None, phrases: Path | None) -> ScenarioBook:
    """Read the scenarios of an environment: the file that is named, or `scenarios.yaml` beside its `phrases.yaml`.

    Args:
        path: File that the settings name; it must exist.
        phrases: The environment's phrasebook, which may not exist.

    Returns:
        The scenarios; none where there is no such file.
    """
    if path is not None:
        return load_scenarios(path)
    if phrases is None or phrases.name != "phrases.yaml":
        return ScenarioBook()
    beside = phrases.with_name("scenarios.yaml")
    book = load_scenarios(beside) if beside.is_file() else ScenarioBook()
    words = find_language_file(beside)
    if words == beside or not book.scenarios:
        return book
    if not words.is_file():
        return ScenarioBook()
    spoken = find_language_file(phrases)
    words_of_values = spoken.read_text(encoding="utf-8") if spoken.is_file() else ""
    overlay = load_yaml_model(words, ScenarioWords, "scenarios", partial(insert_said_words, phrases=words_of_values))
    return overlay.apply(book).set_file(f"{beside} with {words.name}")


def load_scenarios(path: Path) -> ScenarioBook:
    """Read the scenarios of an environment from YAML, with the words of the `phrases.yaml` beside it for `|said(...)`.

    Raises:
        InputError: The file cannot be read or has unknown keys.
    """
    beside = path.with_name("phrases.yaml")
    words_of_values = beside.read_text(encoding="utf-8") if beside.is_file() else ""
    prepare = partial(insert_said_words, phrases=words_of_values)
    return load_yaml_model(path, ScenarioBook, "scenarios", prepare).set_file(path)
