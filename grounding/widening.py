"""Wider options for the arguments of a call, once the likely values have failed or where there are none."""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from trajsmith.grounding.argument_paths import get_leaf_name
from trajsmith.grounding.fields import SchemaField
from trajsmith.grounding.names import get_tool_noun, is_identifier, split_name
from trajsmith.grounding.observed_values import ALIKE, find_observed_values
from trajsmith.grounding.paths import find_values
from trajsmith.grounding.plan import ArgumentPlan, Option, WideOptions
from trajsmith.grounding.rows import RowIndex, rank_rows, score_likeness, split_joined_keys
from trajsmith.grounding.schema_values import fit_value
from trajsmith.grounding.user_facts import iterate_leaves
from trajsmith.grounding.value_source import ValueSource
from trajsmith.records import FromOutput, GoldCall, JsonObject, ToolSpec

SEEN = 4.0
"""Weight of a value that an earlier result holds under a like name, beside those of the state."""
MOST = 24
"""Rows of the state, and values of one earlier result, that are looked at."""
JOINED = 1.0
"""Weight of a key that was taken apart, beside the cubed likenesses of other rows."""
_WORD = re.compile(r"[A-Za-z]+")
OptionBuilder = Callable[[SchemaField, Any, float], Option]
"""Makes the option that the user says a value for a parameter, with a weight."""
Sources = Mapping[str, Sequence[tuple[int, str]]]
"""Leaf path to (index of an earlier call, path in its result)."""


class PlanWidener:
    """Widens plans of the tools of one environment on one initial state."""

    def __init__(
        self,
        tools: Mapping[str, ToolSpec],
        fields: Mapping[str, list[SchemaField]],
        values: ValueSource,
    ) -> None:
        self.tools = tools
        self.fields = fields
        self.values = values

    def widen(
        self,
        plan: ArgumentPlan,
        sources: Sources,
        calls: Sequence[GoldCall],
        says: OptionBuilder,
        rng: random.Random,
        guess: bool,
    ) -> None:
        """Give a plan everything that its leaves might take.

        Args:
            plan: What is known so far.
            sources: Leaves that earlier calls should fill.
            calls: The earlier calls.
            says: How a value becomes something that the user says.
            rng: Source of randomness.
            guess: Whether the user may say ids, and what earlier calls should have given.
        """
        wide = WideOptions()
        index = self._with_results(calls) if guess else self.values.index
        asked = (leaf for leaf in self.fields[plan.tool] if guess or leaf.path not in sources)
        open_leaves = {leaf.path: leaf for leaf in asked if guess or not is_identifier(leaf.name)}
        for path, leaf in open_leaves.items():
            learnt, root = plan.lessons.hints(plan.tool, path), self.tools[plan.tool].input_schema
            wider = self.values.propose_widely(leaf, rng, root, learnt, index)
            options = [says(leaf, value, weight) for weight, value in wider]
            if guess:
                options = [*self._list_from_calls(leaf, sources.get(path, ()), calls, says, rng), *options]
            wide.options[path] = _prefer_references(options, plan.list_likely(path))
        named = [
            (path, split_name(leaf.name), leaf.context) for path, leaf in open_leaves.items() if not leaf.is_choice
        ]
        if len(named) > 1 or guess:
            for weight, values in rank_rows(index, named, rng, MOST, _list_user_leaves(plan)):
                row = {path: says(open_leaves[path], value, 1.0) for path, value in self._fitting(open_leaves, values)}
                chosen = {path: _prefer_references([option], wide.options[path])[0] for path, option in row.items()}
                wide.rows.append((weight, chosen))
            wide.rows += self._list_from_joined_keys(index, open_leaves, says, rng)
        plan.wide = wide

    def _list_from_joined_keys(
        self, index: RowIndex, open_leaves: Mapping[str, SchemaField], says: OptionBuilder, rng: random.Random
    ) -> Iterator[tuple[float, dict[str, Option]]]:
        """Rows of which the key names all that the call must be given, in the order of the parameters."""
        asked = [path for path, leaf in open_leaves.items() if leaf.required and not leaf.is_choice]
        for parts in split_joined_keys(index, len(asked), rng, MOST // 2):
            values = dict(self._fitting(open_leaves, dict(zip(asked, parts, strict=True))))
            if len(values) == len(asked):
                yield JOINED, {path: says(open_leaves[path], value, 1.0) for path, value in values.items()}

    def _fitting(self, open_leaves: Mapping[str, SchemaField], values: JsonObject) -> Iterator[tuple[str, Any]]:
        for path, raw in values.items():
            value = fit_value(raw, open_leaves[path])
            if value is not None:
                yield path, value

    def _with_results(self, calls: Sequence[GoldCall]) -> RowIndex:
        """The rows of the state and of what was returned so far."""
        index = self.values.index
        for call in calls:
            content = (
                call.result if isinstance(call.result, dict) else {"_".join(get_tool_noun(call.tool)): call.result}
            )
            index = RowIndex(content, index)
        return index

    def _list_from_calls(
        self,
        leaf: SchemaField,
        sources: Sequence[tuple[int, str]],
        calls: Sequence[GoldCall],
        says: OptionBuilder,
        rng: random.Random,
    ) -> Iterator[Option]:
        """Yield options from earlier calls: outputs as references, inputs, and outputs that no field tells
        apart from its neighbours, which the user has to name."""
        for score, value, source in find_observed_values(leaf, calls, rng):
            if fit_value(value, leaf) == value:
                yield Option(value, source, SEEN * score)
        for call, path in sources:
            for match in islice(find_values(calls[call].result, path), MOST):
                if match.value not in (None, "") and (value := fit_value(match.value, leaf)) is not None:
                    yield says(leaf, value, SEEN)
        for earlier in reversed(calls):
            for path, _, raw in iterate_leaves(earlier):
                score = score_likeness(split_name(leaf.name), leaf.context, split_name(get_leaf_name(path)))
                if score >= ALIKE and (value := fit_value(raw, leaf)) is not None:
                    yield says(leaf, value, SEEN * score)


def _list_user_leaves(plan: ArgumentPlan) -> set[str]:
    """Words of a tool's name and of what it refused with."""
    texts = [plan.tool, *plan.lessons.refusals.get(plan.tool, ())]
    return {part.lower() for text in texts for part in _WORD.findall(text.replace("_", " "))}


def _prefer_references(options: Sequence[Option], known: Sequence[Option]) -> list[Option]:
    """The options, with a reference to an earlier result instead of the user's words wherever there is one."""
    references = {repr(option.value): option for option in (*options, *known) if isinstance(option.source, FromOutput)}
    return [references.get(repr(option.value), option) for option in options]
