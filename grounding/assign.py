"""Arguments for one call: leaves filled from earlier results, from what a user may say, or left to their defaults."""

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from trajsmith.grounding.argument_paths import get_argument_name
from trajsmith.grounding.fields import SchemaField, get_array_item, list_input_fields
from trajsmith.grounding.identity import UserIdentity
from trajsmith.grounding.lessons import Lessons
from trajsmith.grounding.list_limits import has_namesake, is_extreme_certain, is_list_cut
from trajsmith.grounding.names import is_identifier, is_page, is_paging, is_removal
from trajsmith.grounding.paths import ListLevel, get_value
from trajsmith.grounding.plan import ArgumentPlan, Assignment, Option
from trajsmith.grounding.references import ONLY, RowWords, pick_values
from trajsmith.grounding.row_condition import RowCondition
from trajsmith.grounding.row_fields import DeclaredFields
from trajsmith.grounding.schema_values import has_type
from trajsmith.grounding.value_source import ValueSource
from trajsmith.grounding.widening import PlanWidener, Sources
from trajsmith.phrasing import Phrasebook
from trajsmith.records import Constant, FromOutput, FromUser, GoldCall, ToolSpec

FOCUS, NEW = 5.0, 1.0
"""Weights of something that the user has said before, and of something else."""
SAME = 12.0
"""Weight of the things that the dialogue is about already, together, relative to all others together."""
ROWS = 24
BY_NAME = 0.7
"""How often a thing in a list that its name identifies is called by it."""


@dataclass
class AssignmentContext:
    """Context in which a step is filled: the calls made so far, and the user values that they took."""

    calls: list[GoldCall] = field(default_factory=list)
    user_values: dict[str, Any] = field(default_factory=dict)
    """Known key to value, of everything that the user has been given to say."""


class Assigner:
    """Plans the arguments for the tools of one environment on one initial state."""

    def __init__(
        self,
        tools: Mapping[str, ToolSpec],
        values: ValueSource,
        phrasebook: Phrasebook,
        optional: float,
        most_rows: int = 1,
    ) -> None:
        """`most_rows` bounds the rows of an argument that is a list of objects."""
        self.tools = tools
        self.most_rows = most_rows
        self.values = values
        self.phrasebook = phrasebook
        self.optional = optional
        self.fields = {name: list_input_fields(tool) for name, tool in tools.items()}
        self.identity = UserIdentity(phrasebook.name_from, values.state)
        self.second = PlanWidener(tools, self.fields, values)

    def derive(self, values: ValueSource, optional: float) -> "Assigner":
        """Return an assigner for the same tools and state with another source of values."""
        derived = copy.copy(self)
        derived.values, derived.optional = values, optional
        derived.second = PlanWidener(self.tools, self.fields, values)
        return derived

    def plan(
        self,
        tool: str,
        sources: Mapping[str, Sequence[tuple[int, str]]],
        context: AssignmentContext,
        rng: random.Random,
        lookup: bool = False,
        lessons: Lessons | None = None,
        where: RowCondition | None = None,
    ) -> ArgumentPlan:
        """Everything that the call's leaves could be filled with.

        Args:
            lookup: Other steps need what this call gives; then filters that nobody has to say are left out.
            sources: Leaf path to (index of an earlier call, path in its result), for every leaf that only earlier calls
                may fill; empty where none of them was made.
            lessons: What calls have taught so far.
            where: Rows that a thing may be chosen from.
        """
        required: dict[str, list[Option]] = {}
        optional: dict[str, list[Option]] = {}
        gone = self._find_removed(context)
        for leaf in self.fields[tool]:
            internal = leaf.path in sources and not self._names_new(tool, leaf)
            if not leaf.required and not internal and is_identifier(leaf.name) and not leaf.schema.get("examples"):
                continue
            if not leaf.required and not internal and (is_page(leaf.name) or (lookup and is_paging(leaf.name))):
                continue  # who wants one thing does not say how many are to be shown on the way to it
            if internal:
                options = self._from_outputs(tool, leaf, sources[leaf.path], context, rng, where)
            else:
                values = [value for value in self._list_user_values(leaf, tool, rng) if gone.isdisjoint(_texts(value))]
                options = [self.build_user_option(tool, leaf, value, context, len(values) == 1) for value in values]
            if leaf.required:
                required[leaf.path] = options
            else:
                options = [option for option in options if option.value != leaf.schema.get("default")]
                if options:
                    optional[leaf.path] = options
        share = 0.0 if lookup else self.optional
        rows = self._joint_rows(tool, sources, context, rng)
        known = lessons or Lessons()
        return ArgumentPlan(tool, required, optional, rows, share, known, self._containers(tool), self.most_rows)

    def _names_new(self, tool: str, leaf: SchemaField) -> bool:
        """Return True for the name of a new thing, which the user makes up although results hold such names."""
        is_name = leaf.path in self.phrasebook.entities and not is_identifier(leaf.name)
        return is_name and bool(leaf.schema.get("examples")) and self.tools[tool].declares_write

    def list_texts(self, tool: str) -> list[str]:
        """Return the words of the phrasebook in which a tool's result or effect may be asked for."""
        phrases = self.phrasebook.tools.get(tool)
        if phrases is None:
            return []
        narrow = [text for question in phrases.questions for text in (*question.ask, *question.say)]
        return [*phrases.ask, *phrases.say, *narrow]

    def widen(
        self, plan: ArgumentPlan, sources: Sources, context: AssignmentContext, rng: random.Random, guess: bool
    ) -> None:
        """Give a plan its second look; see `trajsmith.grounding.widening`."""

        def says(leaf: SchemaField, value: Any, weight: float) -> Option:
            return self.build_user_option(plan.tool, leaf, value, context, weight=weight)

        self.second.widen(plan, sources, context.calls, says, rng, guess)

    def _containers(self, tool: str) -> list[str]:
        """Required objects and lists of whose leaves none is required."""
        needed = {get_argument_name(leaf.path) for leaf in self.fields[tool] if leaf.required}
        return [name for name in self.tools[tool].required if name not in needed]

    def is_destructive(self, tool: str) -> bool:
        """Return whether the tool declares, or its name says, that something is gone afterwards."""
        return (is_removal(tool) and self.tools[tool].declares_write) or self.tools[
            tool
        ].annotations.destructive_hint is True

    def _find_removed(self, context: AssignmentContext) -> set[str]:
        """Texts that named things which the conversation has taken away or moved."""
        calls = [call for call in context.calls if is_removal(call.tool) and call.effect == "write"]
        return {value for call in calls for value in _texts(call.arguments)}

    def _list_user_values(self, leaf: SchemaField, tool: str, rng: random.Random) -> list[Any]:
        item = get_array_item(leaf, self.tools[tool].input_schema)
        if item is None:
            return self.values.propose(leaf, rng)
        values = self.values.propose(item, rng)
        return [values[:size] for size in (1, 2) if len(values) >= size]

    def build_user_option(
        self,
        tool: str,
        leaf: SchemaField,
        value: Any,
        context: AssignmentContext,
        sole: bool = False,
        weight: float = 1.0,
    ) -> Option:
        """Build the option that the user says a value; an identity, what is looked for, or the only value is not said
        twice. What a change sets is: the text of one note is not that of another because it was said once."""
        if "const" in leaf.schema:
            return Option(value, Constant())
        for known, before in context.user_values.items():
            same = known.rsplit("#", 1)[0].split(".", 1)[-1] == leaf.path and before == value
            sets = self.tools[tool].declares_write and not is_identifier(leaf.name)
            if same and (sole or (self.values.entries(leaf) and not sets)):
                return Option(value, FromUser(known=known), FOCUS * weight)
        number, key = 1, f"{tool}.{leaf.path}"
        while key in context.user_values and context.user_values[key] != value:
            number += 1
            key = f"{tool}.{leaf.path}#{number}"
        return Option(value, FromUser(known=key), weight)

    def _from_outputs(
        self,
        tool: str,
        leaf: SchemaField,
        sources: Sequence[tuple[int, str]],
        context: AssignmentContext,
        rng: random.Random,
        where: RowCondition | None = None,
    ) -> list[Option]:
        phrases = self.phrasebook.parameters.get(f"{tool}.{leaf.path}")
        used = _references_used(leaf.name, context.calls, spoken=phrases is not None and bool(phrases.mention))
        options: list[Option] = []
        seen: set[str] = set()
        tested = (
            [] if where is None else [one for one in sources if where.applies(context.calls[one[0]].result, one[1])]
        )
        filtered = bool(tested)
        known_things: list[Option] = []
        for call, path in tested or sources:
            if self.is_destructive(context.calls[call].tool):
                continue  # what was just taken away is not used any more
            asked = any(isinstance(origin, FromUser) for origin in context.calls[call].provenance.values())
            only = 1.0 if asked else ONLY
            result = context.calls[call].result
            keep = partial(where.keeps, result) if filtered and where is not None else None
            words = self.list_row_words(leaf.name, call, context.calls)
            for value, selectors in pick_values(result, path, rng, only, keep, words):
                if isinstance(value, list) or repr(value) in seen or not has_type(value, leaf.types):
                    continue
                if self.is_destructive(tool) and not self.values.mentions(value):
                    continue  # what a conversation has made, it does not take away again
                seen.add(repr(value))
                known = next((source for before, source in used if before == value), None)
                spoken = self._find_spoken(tool, leaf, value, call, context, rng) if selectors and not known else None
                source = known or spoken or FromOutput(call=call, path=path, selectors=selectors)
                is_new = context.calls[call].effect == "write"
                options.append(Option(value, source))
                if is_new or known is not None:
                    known_things.append(options[-1])
        others = len(options) - len(known_things)
        weight = max(NEW, SAME * others / len(known_things)) if known_things else NEW
        return [replace(option, weight=weight) if option in known_things else option for option in options]

    def _find_spoken(
        self, tool: str, leaf: SchemaField, value: Any, call: int, context: AssignmentContext, rng: random.Random
    ) -> FromUser | Constant | FromOutput | None:
        """Return where a value of a list is from that the user says: they look for it by it, or it is a name."""
        sought = _find_sought(context.calls[call], value)
        phrases = self.phrasebook.parameters.get(f"{tool}.{leaf.path}")
        if sought or phrases is None or not phrases.mention or rng.random() >= BY_NAME:
            return sought
        return self.build_user_option(tool, leaf, value, context).source

    def list_row_words(self, parameter: str, call: int, calls: Sequence[GoldCall]) -> RowWords:
        """List what decides which words pick a row of an earlier result out for a parameter."""
        entity, producer = self.phrasebook.entities.get(parameter), calls[call]
        tool = self.tools.get(producer.tool)
        by = entity.by if entity else {}
        timed = frozenset(field for field, phrases in by.items() if all("time}" in phrase for phrase in phrases))
        created = [
            later.result[parameter]
            for later in calls
            if later.effect == "write" and isinstance(later.result, dict) and parameter in later.result
        ]

        def has_extreme(level: ListLevel, field: str) -> bool:
            if any(value not in [get_value(row, parameter) for row in level.rows] for value in created):
                return False
            values = [get_value(row, field) for row in level.rows]
            return not is_cut(level) or is_extreme_certain(tool, values, values[level.index])

        def is_cut(level: ListLevel) -> bool:
            return is_list_cut(tool, producer.arguments, producer.result, level.path)

        def is_only(level: ListLevel, field: str) -> bool:
            like = self.values.list_rows_with(field, level.row.get(field)) if is_cut(level) else ()
            return not has_namesake(like, level.row, field, producer.arguments)

        def is_grown(level: ListLevel) -> bool:
            own = _find_own_id(level.row)
            results = [later.result for later in calls[call + 1 :] if later.effect == "write"]
            ids = [row[own] for row in results if own and _find_own_id(row) == own]
            shown = [row.get(own) for row in level.rows if isinstance(row, dict)]
            return any(value not in shown and not self.values.mentions_field(own, value) for value in ids)

        return RowWords(timed, has_extreme, is_only, is_grown, DeclaredFields(self.phrasebook, parameter).list_for)

    def _joint_rows(
        self, tool: str, sources: Mapping[str, Any], context: AssignmentContext, rng: random.Random
    ) -> list[dict[str, Option]]:
        """Values of several leaves that stand in one row of the state, so that a name goes with its own postcode."""
        tables: dict[str, dict[tuple[str, Any], Any]] = {}
        named: dict[str, SchemaField] = {}
        for leaf in self.fields[tool]:
            if leaf.path in sources or leaf.is_choice or leaf.schema.get("examples"):
                continue
            entries = self.values.entries(leaf)
            if entries:
                named[leaf.path] = leaf
                tables[leaf.path] = {(entity, key): value for entity, key, value in entries}
        if len(tables) < 2:
            return []
        shared = sorted(set.intersection(*(set(rows) for rows in tables.values())), key=repr)
        chosen = rng.sample(shared, min(len(shared), ROWS))
        return [
            {path: self.build_user_option(tool, named[path], rows[row], context) for path, rows in tables.items()}
            for row in chosen
        ]


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _find_own_id(row: Any) -> str:
    """Return the field that identifies a row, the first that identifies anything; empty if there is none."""
    return next((name for name in row if is_identifier(name)), "") if isinstance(row, dict) else ""


def _find_sought(lookup: GoldCall, value: Any) -> FromUser | None:
    """Return where a value is from that the user gave to look for it: who says a path knows it."""
    sources = ((name, source) for name, source in lookup.provenance.items() if isinstance(source, FromUser))
    found_by = (source for name, source in sources if lookup.arguments.get(name) == value)
    return next(found_by, None) if isinstance(value, str) else None


def _references_used(
    parameter: str, calls: Sequence[GoldCall], spoken: bool
) -> list[tuple[Any, FromOutput | FromUser]]:
    """Values that this parameter took before, with the reference; the latest first.

    Args:
        spoken: Count those that the user said, too.
    """
    kinds = (FromOutput, FromUser) if spoken else FromOutput
    return [
        (call.arguments[parameter], source)
        for call in reversed(calls)
        if parameter in call.arguments and isinstance(source := call.provenance.get(parameter), kinds)
    ]


__all__ = ["ArgumentPlan", "Assigner", "Assignment", "AssignmentContext"]
