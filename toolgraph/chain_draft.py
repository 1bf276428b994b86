"""A chain under construction, and the preferences for its next tool."""

import random
from collections import deque
from dataclasses import dataclass

from trajsmith.toolgraph.graph import STRONG, WEAK
from trajsmith.toolgraph.index import SamplingNetwork
from trajsmith.toolgraph.settings import SampleSettings


class PartialChain:
    """Tools in calling order, the servers that they touch, and who feeds whom."""

    __slots__ = ("chain", "fed", "goal", "homes", "inside", "limit", "network", "pending", "queue", "spent")

    def __init__(self, network: SamplingNetwork, limit: int, goal: int) -> None:
        self.network = network
        self.chain: list[int] = []
        self.inside: set[int] = set()
        """Tools of the chain, and those whose priors are being looked for."""
        self.pending = 0
        """How many of these are not in the chain yet."""
        self.homes: dict[int, int] = {}
        """Server to the number of its tools."""
        self.limit = limit
        """Most tools."""
        self.goal = goal
        """Most servers."""
        self.queue: deque[int] = deque()
        """Tools that something is to follow, once for every successor."""
        self.spent: set[int] = set()
        """Tools that nothing new was found to follow."""
        self.fed: set[int] = set()
        """Tools whose results a later tool uses; kept only where it matters."""

    def welcomes(self, tool: int) -> bool:
        """Return True if the tool is not in the chain yet and its server is allowed."""
        return tool not in self.inside and (self.network.server[tool] in self.homes or len(self.homes) < self.goal)

    def enter(self, tool: int) -> None:
        self.inside.add(tool)
        home = self.network.server[tool]
        self.homes[home] = self.homes.get(home, 0) + 1
        self.pending += 1

    def leave(self, tool: int) -> None:
        self.inside.discard(tool)
        home = self.network.server[tool]
        self.homes[home] -= 1
        if not self.homes[home]:
            del self.homes[home]

    def back_to(self, mark: int) -> None:
        """Take the latest tools out again."""
        while len(self.chain) > mark:
            self.leave(self.chain.pop())

    def producers(self, tool: int) -> tuple[set[int], int]:
        """The tools of the chain that would fill its internal parameters, the nearest for each; and how many of the
        required ones nothing fills yet."""
        givers, lacking = set(), 0
        needs = self.network.needs[tool]
        for slot in (*needs, *self.network.wants[tool]):
            giver = next((earlier for earlier in reversed(self.chain) if earlier in slot.givers), None)
            if giver is not None:
                givers.add(giver)
            else:
                lacking += slot in needs
        return givers, lacking

    def is_ready(self, tool: int) -> bool:
        """Return True if the chain provides all values that a tool needs."""
        return all(any(one in slot.givers for one in self.chain) for slot in self.network.needs[tool])

    def relation(self, tool: int) -> int:
        """Weight of the heaviest edge from the chain to a tool, 0 if there is none."""
        before = self.network.before[tool]
        if not before:
            return 0
        return max((before.get(earlier, 0) for earlier in self.chain), default=0)


@dataclass(frozen=True, slots=True)
class StepPreferences:
    """Preferences of the settings for one step; None where any tool will do."""

    relation: int | None
    """Weight of the edge that leads there: 3, 2, or 0 for an independent tool."""
    reads: bool | None
    branch: bool | None
    """It uses the result of a tool that feeds another already, or (False) only of those that feed none."""
    join: bool | None
    """It uses the results of several tools, or (False) of one at most."""

    @classmethod
    def of(cls, rng: random.Random, settings: SampleSettings) -> "StepPreferences":
        def drawn(share: float | None) -> bool | None:
            return None if share is None else rng.random() < share

        relation = None
        if drawn(settings.independent):
            relation = 0
        elif settings.weak is not None:
            relation = WEAK if rng.random() < settings.weak else STRONG
        writes = drawn(settings.writes)
        return cls(relation, None if writes is None else not writes, drawn(settings.branching), drawn(settings.joins))

    def cost(self, draft: PartialChain, tool: int, most: int = 1 << 30) -> int:
        """2 for every wish that a tool does not fulfil, and 1 for a write that would bring its own look-ups along; only
        as far as it takes to know that it is above `most`."""
        cost = 0
        if self.reads is not None:
            cost = 2 * (draft.network.reads[tool] is not self.reads)
            if cost <= most and self.reads is False:
                cost += not draft.is_ready(tool)
        if self.relation is not None and cost <= most:
            relation = draft.relation(tool)
            alone = relation < WEAK and not draft.network.needs[tool]
            cost += 2 * (not alone if self.relation == 0 else relation != self.relation)
        if (self.branch is not None or self.join is not None) and self.relation != 0 and cost <= most:
            producers, lacking = draft.producers(tool)
            cost += 2 * (self.branch is not None and (not producers.isdisjoint(draft.fed)) is not self.branch)
            cost += 2 * (self.join is not None and (len(producers) + lacking > 1) is not self.join)
        return cost
