"""Words for one environment: from its phrasebook, and from schema and description where the phrasebook is silent."""

import functools
import json
import random
import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from trajsmith.phrasing import value_formatting
from trajsmith.phrasing.languages import get_language
from trajsmith.phrasing.phrasebook import EntityPhrases, ParameterPhrases, Phrasebook, ToolPhrases
from trajsmith.phrasing.plain_sentences import (
    render_field_phrase,
    render_plain_question,
    render_plain_statement,
    render_superlative,
)
from trajsmith.phrasing.scenarios import ScenarioBook
from trajsmith.phrasing.templates import list_slots, render_phrase
from trajsmith.phrasing.words import pluralize, singularize
from trajsmith.records import ToolSpec, UserFact

_SENTENCE_END = re.compile(r"(?<=[a-z0-9)])[.;:](?:\s|$)|\s[-–(]|,\s|\n")
_QUOTED_VALUE = re.compile(r"([\"„])\{value\}([\"“])")
"""A value in quotation marks: it is said letter by letter."""
_EXAMPLES = re.compile(r'"examples": \[[^\]]*\]')
_NOT_VERBS = frozenset({"access", "process", "focus", "bias", "address", "progress", "pass", "discuss"})
_ID_TAIL = re.compile(r"_(id|ids|uuid|number|code|key|ref)$")


class Wording:
    """Draws words; every draw takes the caller's generator, so that the same seed speaks the same way."""

    def __init__(
        self, phrasebook: Phrasebook, tools: Sequence[ToolSpec], scenarios: ScenarioBook | None = None
    ) -> None:
        self.phrasebook = phrasebook
        self.scenarios = scenarios or ScenarioBook()
        self.tools = {tool.name: tool for tool in tools}
        self.rows = {name: entity.row for name, entity in phrasebook.entities.items()}

    def shuffle_rows(self, rng: random.Random) -> dict[str, tuple[str, ...]]:
        """Return the `row` templates of each entity in a drawn order: a list takes the first that fits its rows."""
        return {name: tuple(rng.sample(rows, len(rows))) for name, rows in self.rows.items()}

    def tool(self, name: str) -> ToolPhrases:
        """Phrases of a tool; `ask` and `narrate` always have at least one."""
        phrases = self.phrasebook.tools.get(name, ToolPhrases())
        updates: dict[str, tuple[str, ...]] = {}
        if not phrases.ask and not phrases.say:
            updates["ask"] = (derive_request_phrase(self.tools[name]),)
        if not phrases.narrate:
            updates["narrate"] = (derive_request_phrase(self.tools[name]),)
        return phrases.model_copy(update=updates) if updates else phrases

    def parameter(self, tool: str, name: str) -> ParameterPhrases:
        known_parameters = self.phrasebook.parameters
        phrases = known_parameters.get(f"{tool}.{name}") or known_parameters.get(name) or ParameterPhrases()
        return phrases if phrases.label else phrases.model_copy(update={"label": value_formatting.humanize(name)})

    @functools.lru_cache(maxsize=512)  # noqa: B019 - one Wording lives as long as its run
    def entity(self, parameter: str) -> EntityPhrases:
        """Phrases of what a parameter identifies."""
        phrases = self.phrasebook.entities.get(parameter)
        noun = value_formatting.humanize(_ID_TAIL.sub("", parameter))
        return phrases or EntityPhrases(noun=noun, plural=pluralize(noun), own=(f"my {noun}", f"the {noun}"))

    def value(self, tool: str, parameter: str, value: Any, rng: random.Random) -> Any:
        """A value as it goes into a template: words for choices that have words, anything else as it is."""
        phrases = self.parameter(tool, parameter).values
        key = str(value).lower() if isinstance(value, bool) else str(value)
        options = phrases.get(key) or phrases.get(key.lower())
        if options:
            return rng.choice(options)
        is_key = isinstance(value, str) and "_" in value and re.fullmatch(r"[a-z0-9_]+", value) is not None
        return value_formatting.humanize(value) if is_key and not self._is_name(tool, parameter, value) else value

    def mention(self, tool: str, parameter: str, value: Any, rng: random.Random) -> Any:
        """Return a value as it is said within a request: with the noun where it names a thing that is there."""
        called = pick_text(self.parameter(tool, parameter).mention, {"value": value}, rng)
        return called or self.value(tool, parameter, value, rng)

    def _is_name(self, tool: str, parameter: str, value: str) -> bool:
        """Return True for a text such as `orders_2026` that is no choice: it is said letter by letter."""
        schema = self.tools[tool].parameters.get(parameter) if tool in self.tools else None
        text = "" if schema is None else _EXAMPLES.sub("", json.dumps(schema))
        return schema is not None and '"enum"' not in text and value not in text

    def phrase_request(self, tool: str) -> str:
        """Return a verb phrase without slots for what a tool does, where no phrase fits the values."""
        phrases = self.tool(tool).narrate
        return phrases[0] if get_language().code != "en" else derive_request_phrase(self.tools[tool])

    def explain_rule(self, tool: str) -> str:
        """Return why a tool needs a yes, in the language of the run; empty where nothing says it."""
        because = self.tool(tool).because
        rule = self.tools[tool].confirm
        if not because and rule is not None and get_language().code == "en":
            because = rule.because
        return because.strip().rstrip(".")

    def name_of(self, known: UserFact) -> str:
        """Return the label of a fact in a list; of a choice, the noun of the entity."""
        entity, _, _ = known.slot.rpartition("|")
        return f"which {self.entity(entity.split('.')[-1]).noun} is meant" if entity else known.label

    def phrases_for(self, known: UserFact, value: Any = None) -> tuple[str, ...]:
        """Return the phrasebook's phrases for the value of a fact, or for one value of its list."""
        tool, field = known.key.partition(".")[0], known.slot.split("|")[-1]
        words = {**self.parameter("", field).values, **self.parameter(tool, known.slot).values}
        spoken_value = known.value if value is None else value
        return words.get(str(spoken_value).lower() if isinstance(spoken_value, bool) else str(spoken_value), ())

    def tell(self, tool: str, known: UserFact, rng: random.Random) -> str:
        """A sentence in which the user gives one plain value."""
        phrases = self.parameter(tool, known.slot)
        value = self.value(tool, known.slot, known.value, rng)
        return pick_text(phrases.tell, {"value": value}, rng) or render_plain_statement(phrases.label, value, rng)

    def ask_for(self, tool: str, known: UserFact, rng: random.Random) -> str:
        """A question in which the agent asks for one plain value."""
        phrases = self.parameter(tool, known.slot)
        return pick_text(phrases.ask, {}, rng) or render_plain_question(phrases.label, known.value, rng)

    def describe(self, parameter: str, known: UserFact, rng: random.Random, now: date | None = None) -> str:
        """A noun phrase that picks one thing out by what the user knows of it.

        Args:
            parameter: What identifies the thing.
            known: What the user knows.
            rng: Draws the phrase.
            now: The clock, if it is known: "the order from today" is said of what has its date.
        """
        entity = self.entity(parameter)
        field = known.slot.split("|")[-1]
        label = self.parameter("", field).label
        if known.how in ("largest", "smallest"):
            return render_superlative(entity, field, label, known.how, known.value)
        value = self.value("", field, known.value, rng)
        is_key = isinstance(known.value, str) and value == value_formatting.humanize(known.value)
        words = {"value": value, "exact": known.value if is_key else value, "noun": entity.noun}
        templates = [_QUOTED_VALUE.sub(r"\1{exact}\2", template) for template in entity.by.get(field, ())]
        phrase = pick_text(templates, words, rng)
        phrase = phrase or render_field_phrase(entity, field, label, value)
        return get_language().grammar.say_near_day(phrase, now) if now is not None and now.year > 1 else phrase

    def results(
        self, templates: Sequence[str], result: Any, arguments: Mapping[str, Any], rng: random.Random
    ) -> str | None:
        """A sentence over a result, or None if no template fits."""
        values = {"out": result, "arg": dict(arguments), "row_templates": self.shuffle_rows(rng), "others": ()}
        return pick_text(templates, values, rng)


def pick_text(templates: Sequence[str], values: dict[str, Any], rng: random.Random) -> str | None:
    """One of the templates that the values fit, rendered; None if there is none."""
    for template in rng.sample(list(templates), len(templates)):
        if list_slots(template) - {"out", "arg"} <= values.keys():
            text = render_phrase(template, values)
            if text:
                return text
    return None


def derive_request_phrase(tool: ToolSpec) -> str:
    """Derive a verb phrase from a tool's description: "Returns the open orders" -> "return the open orders"."""
    text = " ".join(tool.description.split()) or value_formatting.humanize(tool.name)
    phrase = _SENTENCE_END.split(text, maxsplit=1)[0].strip().rstrip(".")
    first, _, rest = phrase.partition(" ")
    if first.isalnum() and first.lower() not in _NOT_VERBS:
        first = singularize(first.lower())
    return f"{first[:1].lower()}{first[1:]} {rest}".strip().replace("{", "(").replace("}", ")")
