"""Phrasebooks: the phrases that scripted roles use for one environment.

A phrasebook is optional; what it leaves out is phrased from the schema. Templates are Jinja2 with single braces:
`{order_id}`, `{out.total|money}`, `{% for o in out.orders %}...{% endfor %}`.
"""

import functools
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from trajsmith.phrasing.table_phrases import TablePhrases
from trajsmith.phrasing.yaml_files import WordsOfFile, load_yaml_model, read_yaml
from trajsmith.records import FrozenModel

_SAID = re.compile(r"\|said\('([\w.]+)'\)")


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str) and value else value or ()


Templates = Annotated[tuple[str, ...], BeforeValidator(_listed)]
"""One template or several."""


class Question(FrozenModel):
    """A question about part of a result, and the answers to it. Slots of `ask` and `say` are the tool's parameters."""

    asks: tuple[str, ...] = Field(min_length=1)
    """What is asked for: paths in the result ("$.left_today", "$.result[*].status"), or fields of `row`."""
    row: str = ""
    """Parameter that identifies one row of the list in the result, if the question is about one row only:
    "standing_order_id". The slot `{row}` of `ask` and `say` refers to it, `answer` reads it as `row`."""
    ask: tuple[str, ...] = ()
    """Verb phrases, as `ToolPhrases.ask`: "find out how much I can still send today"."""
    say: tuple[str, ...] = ()
    """Whole sentences: "When does {row} go out next?"."""
    answer: tuple[str, ...] = Field(min_length=1)
    """Sentences over `out`, `arg`, `row` and `before` with all of `asks`: "It goes out on {row.next_on|date}."."""


class ToolPhrases(FrozenModel):
    """Words about one tool. Slots of `ask`, `say`, `narrate` and `confirm` are the tool's own parameters."""

    ask: tuple[str, ...] = ()
    """What the user wants, a verb phrase that fits after "I'd like to" and "Could you": "cancel {order_id}"."""
    say: tuple[str, ...] = ()
    """The same as whole sentences: "Where is {order_id} right now?"."""
    narrate: tuple[str, ...] = ()
    """What the agent is doing, as a verb phrase after "Let me": "check your recent orders"."""
    confirm: tuple[str, ...] = ()
    """What the agent is about to do, as a verb phrase after "Shall I": "cancel {order_id}; {row.total|money} goes back
    to you". `row` holds what results show of the thing, as long as nothing was changed since: where it lacks a field,
    the phrase is not taken. Phrases that leave out no argument come first, and of these those with `row`."""
    done: tuple[str, ...] = ()
    """What the agent reports: sentences over `out` (the result) and `arg` (the arguments). `before` holds what was
    shown earlier, of the same look-up or of the thing that is changed; sentences with it come first where there is
    any. `others` are the rows beside it in the list that it was chosen from, as they are now."""
    brief: tuple[str, ...] = ()
    """The same in few words, for agents with a short style."""
    because: str = ""
    """Why a yes is asked for, where the rule's own reason is in another language: "eine Bestellung kommt nicht
    zurück"."""
    detailed: tuple[str, ...] = ()
    """The same with what else matters to the user (fee, date, next step), for agents that explain."""
    questions: tuple[Question, ...] = ()
    """Narrower requests than `ask` and `say`, each with its own answer. Reads only."""
    facts: tuple[str, ...] = ()
    """Paths in the result that every `done` tells and a good answer must tell: "$.status"."""
    alternatives: tuple[str, ...] = ()
    """Parameters for which the agent may offer another value where a call is refused: "amount", "room_id"."""
    implausible: tuple[str, ...] = ()
    """Patterns of refusals that no user would run into, so that no task is made of them: "is a blind"."""
    unavailable: tuple[str, ...] = ()
    """What the agent adds where it does not have the tool: what it can do all the same, or how long there is time, as
    far as results have shown it. Slots as in `confirm`; the user is asked nothing."""
    request: tuple[str, ...] = ()
    """User tools: what the agent asks the user to do, after "Could you": "restart the router"."""
    purpose: str = ""
    """User tools: what the request is good for, after "to": "see what the router says"."""
    report: tuple[str, ...] = ()
    """User tools: what the user reports back, first person, over `out` and `arg`."""


class ParameterPhrases(FrozenModel):
    """Words about one parameter, or about one field that tells rows apart."""

    label: str = ""
    """What a person calls it: "email address"."""
    tell: tuple[str, ...] = ()
    """Whole sentences in which the user gives it, with `{value}`: "My email is {value}."."""
    ask: tuple[str, ...] = ()
    """Questions in which the agent asks for it: "What is the email on your account?"."""
    mention: Templates = ()
    """How people say it within a request, where it identifies a thing that is there: "the file "{value}""."""
    values: dict[str, tuple[str, ...]] = {}
    """How people say an enumerated value: {"no_longer_needed": ["I don't need it any more"]}."""


class EntityPhrases(FrozenModel):
    """Words about one kind of thing; the key is the parameter that identifies it, for example "order_id"."""

    noun: str
    plural: str = ""
    gender: Literal["", "m", "f", "n"] = ""
    """Grammatical gender of the noun, for languages that have one."""
    own: tuple[str, ...] = ()
    """How the user calls the one that they mean when there is no other: "my order"."""
    by: dict[str, tuple[str, ...]] = {}
    """How a field's value picks one out: {"placed_at": ["the order from {value|date}"]}."""
    within: dict[str, Templates] = {}
    """How it is called by what it is looked up in: the parameter of a look-up, or "tool.parameter" of one look-up, to
    "{phrase} in {owner}" (a thing), or "{phrase} on {value|date}" (a plain value). Said where the look-up is made for
    the request."""
    name: Templates = ()
    """How the agent calls one, over the fields of its row: "the trip to {to_city} on {departs_at|date}"; taken only
    where no other row of the list has the same name, else `by` names it."""
    lasting: tuple[str, ...] = ()
    """Fields that no call changes, such as a price: an agent may tell them after a write, too."""
    row: Templates = ()
    """One row of a list, said shortly: "{order_id}, {status}, {total|money}"; of several templates with the same
    information, one is drawn for each list."""


class Phrasebook(WordsOfFile):
    """All words about one environment."""

    roles: tuple[str, ...] = ("user",)
    """Who the user may be: "customer of the shop"."""
    scenarios: tuple[str, ...] = ()
    """Why they call, in one sentence; `{name}` and `{role}` may be used."""
    covers: str = ""
    """What an agent of this environment can help with, as it tells somebody who asks for something else: "your
    accounts, cards and payees"."""
    name_from: tuple[str, ...] = ()
    """State paths of the names of people that the user may be, for example "customers.*.name"."""
    introductions: bool = True
    """Users say who they are; nobody does to the assistant of their own calendar or home."""
    tools: dict[str, ToolPhrases] = {}
    parameters: dict[str, ParameterPhrases] = {}
    """By parameter name, or by "tool.parameter" where one tool needs its own words."""
    entities: dict[str, EntityPhrases] = {}
    tables: dict[str, TablePhrases] = {}
    """Tool that lists rows to the words about them; programmatic tasks ask about these."""


def load_phrasebook(path: Path) -> Phrasebook:
    """Read a phrasebook from YAML.

    Raises:
        InputError: The file cannot be read or has unknown keys.
    """
    return load_yaml_model(path, Phrasebook, "phrasebook", insert_said_words).set_file(path)


@functools.lru_cache(maxsize=32)  # the scenarios beside a phrasebook ask for it again
def _read_parameters(phrases: str) -> dict[str, Any]:
    return (read_yaml(phrases) or {}).get("parameters") or {}


def insert_said_words(text: str, phrases: str = "") -> str:
    """Replace `|said('status')` in templates by a look-up of the first words that the phrasebook has for each value.

    Args:
        text: YAML with templates.
        phrases: The phrasebook's YAML; the text itself if left out.
    """
    if "|said(" not in text:
        return text
    parameters = _read_parameters(phrases or text)

    def insert(match: re.Match[str]) -> str:
        values = parameters.get(match.group(1), {}).get("values", {})
        table = {str(value): options[0] for value, options in values.items()}
        return f"|lookup({table!r})"

    return _SAID.sub(insert, text)
