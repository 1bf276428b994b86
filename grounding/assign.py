"""Arguments for one call: leaves filled from earlier results, from what a user may say, or left to their defaults."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chatmodel import Phrasebook
from grounding.fields import SchemaField, input_fields
from grounding.names import is_identifier, takes_away
from grounding.references import ONLY, pick
from grounding.values import ValuePool, array_item, candidate_values
from trajectory import Composite, FromOutput, FromUser, GoldCall, JsonObject, Provenance, ToolSpec

FOCUS, NEW = 5.0, 1.0
ROWS = 24
LOOKUP = 0.2
"""Factor on the probability of an optional argument of a call that only prepares others."""
BLAME = 0.15
"""Factor on the weight of a value after a refusal."""


@dataclass(frozen=True)
class Option:
    """One way to fill a leaf."""

    value: Any
    source: FromUser | FromOutput
    weight: float = 1.0


@dataclass(frozen=True)
class Assignment:
    """Arguments of a call, and where each of them comes from."""

    arguments: JsonObject
    provenance: dict[str, Provenance]
    leaves: dict[str, Any]
    """Leaf path to value."""


@dataclass
class Context:
    """What is known when a step is filled: the calls made so far, and the ways in which things were referred to."""

    calls: list[GoldCall] = field(default_factory=list)
    said: dict[str, Any] = field(default_factory=dict)
    """Known key to value, of everything that the user has been given to say."""


class Plan:
    """All ways to fill the leaves of one call at one point of the search; `draw` combines them at random."""

    def __init__(
        self,
        required: Mapping[str, list[Option]],
        optional: Mapping[str, list[Option]],
        rows: list[dict[str, Option]],
        share: float,
    ) -> None:
        self.required = required
        self.optional = optional
        self.rows = rows
        self.share = share
        self.possible = all(required.values())
        """False if a required leaf has no value at all."""
        self.refused: dict[tuple[str, str], float] = {}
        """(leaf, value) to the factor that its weight has lost by refusals."""

    def draw(self, rng: random.Random) -> Assignment:
        """One random assignment; at least one optional leaf where nothing is required."""
        extra = [path for path in self.optional if rng.random() < self.share]
        if not self.required and not extra and self.optional and rng.random() < 0.9:
            extra = [rng.choice(list(self.optional))]
        leaves = {**self.required, **{path: self.optional[path] for path in extra}}
        row = rng.choice(self.rows) if self.rows else {}
        return _assemble({path: row.get(path) or self._choose(path, options, rng) for path, options in leaves.items()})

    def _choose(self, path: str, options: list[Option], rng: random.Random) -> Option:
        weights = [option.weight * self.refused.get((path, repr(option.value)), 1.0) for option in options]
        return rng.choices(options, weights)[0]

    def blame(self, assignment: Assignment) -> None:
        """A call with these arguments was refused: its values become less likely, the guilty one most."""
        for path, value in assignment.leaves.items():
            key = (path, repr(value))
            self.refused[key] = self.refused.get(key, 1.0) * BLAME


class Assigner:
    """Plans the arguments for the tools of one environment on one initial state."""

    def __init__(self, tools: Mapping[str, ToolSpec], pool: ValuePool, phrasebook: Phrasebook, optional: float) -> None:
        self.tools = tools
        self.pool = pool
        self.phrasebook = phrasebook
        self.optional = optional
        self.fields = {name: input_fields(tool) for name, tool in tools.items()}

    def plan(
        self,
        tool: str,
        sources: Mapping[str, Sequence[tuple[int, str]]],
        context: Context,
        rng: random.Random,
        lookup: bool = False,
    ) -> Plan:
        """Everything that the call's leaves could be filled with.

        Args:
            lookup: Other steps need what this call gives; then filters that nobody has to say are mostly left out.
            sources: Leaf path to (index of an earlier call, path in its result), for every leaf that only earlier calls
                may fill; empty where none of them was made.
        """
        required: dict[str, list[Option]] = {}
        optional: dict[str, list[Option]] = {}
        gone = self._gone(context)
        for leaf in self.fields[tool]:
            internal = leaf.path in sources
            if not leaf.required and not internal and is_identifier(leaf.name) and not leaf.schema.get("examples"):
                continue
            if internal:
                options = self._from_outputs(tool, leaf, sources[leaf.path], context, rng)
            else:
                values = [value for value in self._said_values(leaf, tool, rng) if gone.isdisjoint(_texts(value))]
                options = [self._said(tool, leaf, value, context, len(values) == 1) for value in values]
            if leaf.required:
                required[leaf.path] = options
            else:
                options = [option for option in options if option.value != leaf.schema.get("default")]
                if options:
                    optional[leaf.path] = options
        share = self.optional * LOOKUP if lookup else self.optional
        return Plan(required, optional, self._joint_rows(tool, sources, context, rng), share)

    def _destroys(self, tool: str) -> bool:
        """True if the tool declares, or its name says, that something is gone afterwards."""
        return (takes_away(tool) and self.tools[tool].declares_write) or self.tools[
            tool
        ].annotations.destructive_hint is True

    def _gone(self, context: Context) -> set[str]:
        """Texts that named things which the conversation has taken away or moved."""
        calls = [call for call in context.calls if takes_away(call.tool) and call.effect == "write"]
        return {value for call in calls for value in _texts(call.arguments)}

    def _said_values(self, leaf: SchemaField, tool: str, rng: random.Random) -> list[Any]:
        item = array_item(leaf, self.tools[tool].input_schema)
        if item is None:
            return candidate_values(leaf, self.pool, rng)
        values = candidate_values(item, self.pool, rng)
        return [values[:size] for size in (1, 2) if len(values) >= size]

    def _said(self, tool: str, leaf: SchemaField, value: Any, context: Context, sole: bool = False) -> Option:
        """The option that the user says a value; an identity, or the only value there is, is not said twice."""
        for said, before in context.said.items():
            same = said.rsplit("#", 1)[0].split(".", 1)[-1] == leaf.path and before == value
            if same and (sole or self.pool.entries(leaf)):
                return Option(value, FromUser(known=said), FOCUS)
        number, key = 1, f"{tool}.{leaf.path}"
        while key in context.said and context.said[key] != value:
            number += 1
            key = f"{tool}.{leaf.path}#{number}"
        return Option(value, FromUser(known=key))

    def _from_outputs(
        self, tool: str, leaf: SchemaField, sources: Sequence[tuple[int, str]], context: Context, rng: random.Random
    ) -> list[Option]:
        entity = self.phrasebook.entities.get(leaf.name)
        preferred = tuple(entity.by) if entity else ()
        used = _references_used(leaf.name, context.calls)
        options: list[Option] = []
        seen: set[str] = set()
        for call, path in sources:
            if self._destroys(context.calls[call].tool):
                continue  # what was just taken away is not used any more
            asked = any(isinstance(origin, FromUser) for origin in context.calls[call].provenance.values())
            only = 1.0 if asked else ONLY
            for value, selectors in pick(context.calls[call].result, path, rng, preferred, only):
                if isinstance(value, list) or repr(value) in seen or not _types_fit(value, leaf):
                    continue
                if self._destroys(tool) and not self.pool.holds(value):
                    continue  # what a conversation has made, it does not take away again
                seen.add(repr(value))
                known = next((source for before, source in used if before == value), None)
                source = known or FromOutput(call=call, path=path, selectors=selectors)
                options.append(Option(value, source, FOCUS if known is not None else NEW))
        return options

    def _joint_rows(
        self, tool: str, sources: Mapping[str, Any], context: Context, rng: random.Random
    ) -> list[dict[str, Option]]:
        """Values of several leaves that stand in one row of the state, so that a name goes with its own postcode."""
        tables: dict[str, dict[tuple[str, Any], Any]] = {}
        leaves: dict[str, SchemaField] = {}
        for leaf in self.fields[tool]:
            if leaf.path in sources or leaf.is_choice or leaf.schema.get("examples"):
                continue
            entries = self.pool.entries(leaf)
            if entries:
                leaves[leaf.path] = leaf
                tables[leaf.path] = {(entity, key): value for entity, key, value in entries}
        if len(tables) < 2:
            return []
        shared = sorted(set.intersection(*(set(rows) for rows in tables.values())), key=repr)
        chosen = rng.sample(shared, min(len(shared), ROWS))
        return [
            {path: self._said(tool, leaves[path], rows[row], context) for path, rows in tables.items()}
            for row in chosen
        ]


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _types_fit(value: Any, leaf: SchemaField) -> bool:
    names = {bool: {"boolean"}, int: {"integer", "number"}, float: {"number"}, str: {"string"}, dict: {"object"}}
    return not leaf.types or bool(names.get(type(value), set()) & leaf.types)


def _references_used(parameter: str, calls: Sequence[GoldCall]) -> list[tuple[Any, FromOutput]]:
    """Values that this parameter took before, with the reference; the latest first."""
    return [
        (call.arguments[parameter], source)
        for call in reversed(calls)
        if parameter in call.arguments and isinstance(source := call.provenance.get(parameter), FromOutput)
    ]


def _assemble(chosen: Mapping[str, Option]) -> Assignment:
    """Build nested arguments from leaf paths; a nested argument gets a composite provenance."""
    arguments: JsonObject = {}
    provenance: dict[str, Provenance] = {}
    leaves: dict[str, dict[str, Any]] = {}
    for path, option in chosen.items():
        top = path.split(".")[0].removesuffix("[*]")
        if top == path:
            arguments[top] = option.value
            provenance[top] = option.source
        else:
            _place(arguments, path, option.value)
            leaves.setdefault(top, {})[path.replace("[*]", "[0]")] = option.source
    for top, found in leaves.items():
        provenance[top] = Composite(leaves=found)
    return Assignment(arguments, provenance, {path: option.value for path, option in chosen.items()})


def _place(arguments: JsonObject, path: str, value: Any) -> None:
    """Put a value at `items[*].sku`: one row per list."""
    node: Any = arguments
    parts = path.split(".")
    for part in parts[:-1]:
        name = part.removesuffix("[*]")
        node = node.setdefault(name, [{}] if part.endswith("[*]") else {})
        node = node[0] if isinstance(node, list) else node
    name = parts[-1].removesuffix("[*]")
    node[name] = [value] if parts[-1].endswith("[*]") else value


__all__ = ["Assigner", "Assignment", "Context"]
