"""Tools that the agent of a task is shown: all of the environment, few of them, or others beside them."""

import random
import re
from collections.abc import Callable, Collection, Sequence
from typing import Self

from pydantic import Field, PositiveInt, model_validator

from trajsmith.records import FrozenModel, ToolSpec

SIMILAR = 0.6
"""Share of common words in two names from which on a tool of another environment could stand in for one's own."""
_WORD = re.compile(r"[a-z0-9]+")


class ShownToolsSettings(FrozenModel):
    """Settings of the tools that are shown to shares of the tasks; the rest show all of their environment."""

    distractors: float = Field(0, ge=0, le=1)
    """Share of tasks that show tools of other environments beside those of their own."""
    distractor_count: tuple[PositiveInt, PositiveInt] = (5, 15)
    """Fewest and most of them."""
    few: float = Field(0, ge=0, le=1)
    """Share of tasks that show only the tools that they need and a few others."""
    few_others: tuple[int, PositiveInt] = (2, 6)
    """Fewest and most of the others."""
    search: float = Field(0, ge=0, le=1)
    """Share of tasks that show no tool: the agent searches for them, among those of other environments, too."""
    search_others: tuple[PositiveInt, PositiveInt] = (40, 120)
    """Fewest and most tools of other environments among which it searches."""
    search_results: PositiveInt = 5
    """Tools that one search shows at most."""

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        if self.distractors + self.few + self.search > 1:
            raise ValueError("distractors, few and search together are more than 1")
        return self

    def draw(
        self,
        own: Sequence[ToolSpec],
        needed: Collection[str],
        get_distractors: Callable[[], Sequence[ToolSpec]],
        rng: random.Random,
    ) -> tuple[tuple[str, ...], tuple[ToolSpec, ...], bool]:
        """Draw the names of the own tools, tools of other environments, and whether the agent has to search for them.

        Args:
            own: Tools of the environment that the agent may call.
            needed: Names of those that the task needs.
            get_distractors: Gives the tools of other environments; called only for a task that shows some.
            rng: Source of randomness.
        """
        names = [tool.name for tool in own]
        kind = rng.random()
        if kind < self.distractors:
            usable = get_distractors()
            count = min(len(usable), rng.randint(*self.distractor_count))
            return tuple(names), tuple(rng.sample(usable, count)), False
        if kind < self.distractors + self.few:
            spare = [name for name in names if name not in needed]
            drawn = rng.sample(spare, min(len(spare), rng.randint(*self.few_others)))
            return tuple(name for name in names if name in needed or name in drawn), (), False
        if kind < self.distractors + self.few + self.search:
            usable = get_distractors()
            count = min(len(usable), rng.randint(*self.search_others))
            return tuple(names), tuple(rng.sample(usable, count)), True
        return tuple(names), (), False


def select_distractors(own: Sequence[ToolSpec], others: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Return the tools of other environments whose names clash with none of one's own, nor with each other.

    What the agent is shown is left of them: name, description and parameters.
    """
    taken = [_split_name(tool.name) for tool in own]
    selected: dict[str, ToolSpec] = {}
    for tool in others:
        words = _split_name(tool.name)
        close = any(len(words & mine) >= SIMILAR * len(words | mine) for mine in taken)
        if tool.actor == "assistant" and not close and tool.name not in selected:
            selected[tool.name] = ToolSpec(
                server=tool.server, name=tool.name, description=tool.description, input_schema=tool.input_schema
            )
    return list(selected.values())


def _split_name(name: str) -> set[str]:
    return set(_WORD.findall(name.lower()))
