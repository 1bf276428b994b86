"""The default sampler: EnvFactory's topology sampling with guaranteed callable chains.

A tool joins a chain only together with everything that it needs: every required internal parameter has a producer
earlier in the chain, or the tool is left out. No tool stands twice unless asked for; little-used tools and edges come
first; the number of servers is kept; and the shape (weak edges, independent tools, writes, branches, joins) follows
the settings as far as the graph allows. One step costs the same whatever the size of the graph: tools are found by
buckets, producers by bisection, successors by a few random looks.
"""

import random
from bisect import bisect, bisect_left
from functools import partial

from trajsmith.toolgraph.chain_draft import PartialChain, StepPreferences
from trajsmith.toolgraph.graph import STRONG, WEAK
from trajsmith.toolgraph.index import GiverPool, SamplingNetwork, Slot
from trajsmith.toolgraph.settings import SAMPLERS, SampleSettings
from trajsmith.toolgraph.tool_usage import ToolUsage

AFTER_WRITE = 0.6
"""Probability of a look-up although a write, or a result about something else, has given the parameter: what was just
made, or only mentioned, is seldom what is meant."""

STAY = 0.8
"""Probability that a producer or successor is looked for on the same server first."""

LOOKS = 6
"""Random looks at producers or successors before the short lists are gone through."""

WISHED = 18
"""Little-used tools that are asked whether they meet a wish."""

SHORT = 16
"""Lists up to this length are gone through whole."""

COMMON = 0.5
"""Share of the tools from which a parameter that they all take says nothing of what they are about."""

PATIENCE = 30
"""Tools in a row that could not be added, after which a chain stays short."""

Step = tuple[int | None, int]
"""The tool that leads on, None if nothing does, and the tool that it leads to."""


class SuccessorFan:
    """Successors of a tool on one side (own server, others) that can be called, strong edges first."""

    __slots__ = ("strong", "targets", "turn")

    def __init__(self, edges: list[tuple[int, int]]) -> None:
        ordered = sorted(edges, key=lambda edge: -edge[1])
        self.targets = [target for target, _ in ordered]
        self.strong = sum(weight >= STRONG for _, weight in ordered)
        heavy = STRONG * self.strong
        self.turn = heavy / ((heavy + WEAK * (len(ordered) - self.strong)) or 1)
        """Probability that the next is a strong one, if the weights decide."""


@SAMPLERS.register("topology")
class TopologySampler:
    """Draws chains that can be called; remembers what it used, so that all tools and edges get their turn."""

    def __init__(self, network: SamplingNetwork, settings: SampleSettings) -> None:
        self.network = network
        self.settings = settings
        self.usable = [tool for tool, depth in enumerate(network.depths) if depth <= settings.max_depth]
        """Tools whose priors can be found within the depth limit."""
        by_server: dict[int, list[int]] = {}
        for tool in self.usable:
            by_server.setdefault(network.server[tool], []).append(tool)
        self.by_server = {server: ToolUsage(tools) for server, tools in by_server.items()}
        self.coverage = ToolUsage(self._starts(by_server))
        self.edges: dict[tuple[int, int], int] = {}
        """(tool, next tool) to the number of chains that went this way."""
        self.fans = [self._fans(tool) for tool in range(len(network.names))]
        self.linked = [bool(own.targets or network.needs[tool]) for tool, (own, _) in enumerate(self.fans)]
        """Tools that lead to another of their server, or follow one."""
        shares = (settings.weak, settings.independent, settings.writes, settings.branching, settings.joins)
        self.wishes = any(share is not None for share in shares)
        self.takers = self._takers()
        """Parameter to the tools that take it, of those that several tools take and that not most of them do."""

    def _starts(self, by_server: dict[int, list[int]]) -> list[int]:
        """Tools that chains start from: on one server, only where the shortest chain has room, if there is any."""
        least = min(self.settings.length[0], max(map(len, by_server.values()), default=0))
        small = {server for server, tools in by_server.items() if len(tools) < least and self.settings.servers == 1}
        return [tool for tool in self.usable if self.network.server[tool] not in small]

    def _takers(self) -> dict[str, list[int]]:
        takers: dict[str, list[int]] = {}
        for tool in self.usable:
            for slot in (*self.network.needs[tool], *self.network.wants[tool]):
                if not self._is_identity(slot):
                    takers.setdefault(slot.name, []).append(tool)
        most = max(2.0, COMMON * len(self.usable))
        return {name: tools for name, tools in takers.items() if 1 < len(tools) <= most}

    def _is_identity(self, slot: Slot) -> bool:
        """True for a parameter that a look-up without any prior gives as one value: who the user is, mostly."""
        proper = ((giver, path) for giver in slot.proper for path in slot.givers[giver])
        return any(not self.network.depths[giver] and "[*]" not in path for giver, path in proper)

    def _fans(self, tool: int) -> tuple[SuccessorFan, SuccessorFan]:
        depths, server = self.network.depths, self.network.server
        callable_ones = (edge for edge in self.network.after[tool] if depths[edge[0]] <= self.settings.max_depth)
        edges = [edge for edge in callable_ones if edge[1] >= WEAK]
        own = [edge for edge in edges if server[edge[0]] == server[tool]]
        return SuccessorFan(own), SuccessorFan([edge for edge in edges if server[edge[0]] != server[tool]])

    def use(self, tool: int) -> None:
        """Count a tool as used once more."""
        self.coverage.use(tool)
        home = self.by_server.get(self.network.server[tool])
        if home is not None:
            home.use(tool)

    def draw(self, rng: random.Random, length: int) -> list[int]:
        """One chain of `length` tools on as many servers as are drawn; on more, up to the limit, where these have no
        more to add; shorter only where nothing can be added at all."""
        goal = min(self._draw_servers(rng), len(self.by_server))
        draft = PartialChain(self.network, max(length, self.settings.length[1]), goal)
        misses = 0
        followed: set[tuple[int, int]] = set()
        while len(draft.chain) < length and misses < PATIENCE:
            if self._again(rng, draft):
                continue
            step = self._next(rng, draft, misses)
            mark = len(draft.chain)
            if step is None or not self._closure(rng, draft, step[1], 0):
                misses += 1
                if misses == PATIENCE // 3 and draft.goal < min(self.settings.servers, len(self.by_server)):
                    draft.goal, misses = draft.goal + 1, 0
                continue
            if not mark and self.settings.servers == 1:
                length = min(length, max(len(draft.chain), len(self.by_server[self.network.server[step[1]]])))
            misses, draft.limit = 0, length
            if step[0] is not None:
                followed.add((step[0], step[1]))
            if self.wishes:
                draft.fed |= draft.producers(step[1])[0]
            draft.queue.extend([step[1]] * (1 + int(rng.random() * self.settings.branches)))
        self._went(draft, followed)
        for tool in draft.chain:
            self.use(tool)
        return draft.chain

    def _draw_servers(self, rng: random.Random) -> int:
        """Servers of a chain: by the dial, or any number up to the limit."""
        most = self.settings.servers
        return most if most == 1 or self.settings.difficulty is not None else rng.randint(1, most)

    def _went(self, draft: PartialChain, followed: set[tuple[int, int]]) -> None:
        """Count the edges of a chain: those that led on, and those that fill what its tools need."""
        for place, tool in enumerate(draft.chain):
            for slot in self.network.needs[tool]:
                for earlier in draft.chain[:place][::-1]:
                    if earlier in slot.givers:
                        followed.add((earlier, tool))
                        break
        for edge in followed:
            self.edges[edge] = self.edges.get(edge, 0) + 1

    # The next tool

    def _again(self, rng: random.Random, draft: PartialChain) -> bool:
        """Call a tool of the chain once more, if that is asked for: its priors stand before it already."""
        if not (self.settings.repeats and draft.chain and rng.random() < self.settings.repeats):
            return False
        draft.chain.append(rng.choice(draft.chain))
        return True

    def _next(self, rng: random.Random, draft: PartialChain, misses: int) -> Step | None:
        """The tool to try: of one more server, by the wishes, by the queue, or the least used."""
        missing = draft.goal - len(draft.homes)
        if draft.chain and missing > 0 and rng.random() * (draft.limit - len(draft.chain)) < missing:
            elsewhere = self._elsewhere(rng, draft, misses)
            if elsewhere is not None:
                return elsewhere
        if self.wishes and misses < PATIENCE // 2:
            return self._wished(rng, draft, misses)
        same = self._same_thing(rng, draft) if misses < PATIENCE // 2 else None
        if same is not None:
            return same
        while draft.queue:
            before = draft.queue.popleft()
            tool = self._any_way(rng, draft, before, None)
            if tool is not None:
                return before, tool
        onward = self._onward(rng, draft) if misses < PATIENCE // 2 else None
        return onward or self._start(rng, draft, misses)

    def _same_thing(self, rng: random.Random, draft: PartialChain) -> Step | None:
        """For the share `focus` of the steps: a tool that takes a thing which a tool of the chain takes already."""
        if not draft.chain or rng.random() >= self.settings.focus:
            return None
        slots = (
            (tool, slot) for tool in draft.chain for slot in (*self.network.needs[tool], *self.network.wants[tool])
        )
        about = [(tool, slot.name) for tool, slot in slots if slot.name in self.takers]
        while about:
            before, name = about.pop(int(rng.random() * len(about)))
            fitting = [tool for tool in self.takers[name] if draft.welcomes(tool)]
            if fitting:
                count = {tool: self.by_server[self.network.server[tool]].count[tool] for tool in fitting}
                least = min(count.values())
                return before, rng.choice([tool for tool in fitting if count[tool] <= least + 1])
        return None

    def _onward(self, rng: random.Random, draft: PartialChain) -> Step | None:
        """Return a callable successor of any tool of the chain when the queue is empty."""
        left = [tool for tool in draft.chain if tool not in draft.spent]
        while left:
            before = left.pop(int(rng.random() * len(left)))
            tool = self._any_way(rng, draft, before, None)
            if tool is not None:
                return before, tool
            draft.spent.add(before)
        return None

    def _start(
        self, rng: random.Random, draft: PartialChain, misses: int, wish: StepPreferences | None = None
    ) -> Step | None:
        """A tool that was used least, on the chain's servers as long as there is one. Within a chain those come first
        that meet the wish, or that lead somewhere; tools without any edge get their turn at the start of chains."""
        cover = self.coverage
        if draft.homes and len(self.by_server) > 1:
            homes = list(draft.homes)
            cover = self.by_server[homes[int(rng.random() * len(homes))]]
        tool = None
        if misses >= PATIENCE // 2:
            tool = cover.pick(rng, lambda one: draft.welcomes(one) and draft.is_ready(one))
        elif wish is not None:
            for most in (0, 1) if wish.reads is False else (0,):
                fits = partial(self._fulfils, draft, wish, most)
                tool = cover.pick(rng, fits, most=WISHED) if tool is None else tool
        elif draft.chain:
            tool = cover.pick(rng, lambda one: self.linked[one] and draft.welcomes(one), misses // 3)
        if tool is None:
            tool = cover.pick(rng, draft.welcomes, misses // 3)
        if tool is None and misses:
            tool = cover.pick(rng, draft.welcomes)
        return None if tool is None else (None, tool)

    @staticmethod
    def _fulfils(draft: PartialChain, wish: StepPreferences, most: int, tool: int) -> bool:
        return draft.welcomes(tool) and wish.cost(draft, tool, most) <= most

    def _elsewhere(self, rng: random.Random, draft: PartialChain, misses: int) -> Step | None:
        """A tool of one more server: one that an edge leads to, if there is any; else the least used."""
        before = rng.choice(draft.chain)
        tool = self._along(rng, draft, self.fans[before][1], before, None)
        if tool is not None and self.network.server[tool] not in draft.homes:
            return before, tool
        server, homes = self.network.server, draft.homes
        tool = self.coverage.pick(rng, lambda one: server[one] not in homes, misses // 3)
        return None if tool is None else (None, tool)

    def _wished(self, rng: random.Random, draft: PartialChain, misses: int) -> Step | None:
        """Of a handful of tools that could come next, the one that meets the wishes of this step best."""
        wish = StepPreferences.of(rng, self.settings)
        steps = [self._start(rng, draft, misses, wish)]
        if draft.chain:
            anchors = [draft.chain[-1], rng.choice(draft.chain), rng.choice(draft.chain)]
            for before in anchors:
                tool = self._any_way(rng, draft, before, wish.relation)
                steps.append(None if tool is None else (before, tool))
        candidates = [step for step in steps if step is not None]
        independent = wish.relation == 0
        return min(
            candidates, key=lambda step: (wish.cost(draft, step[1]), (step[0] is None) is not independent), default=None
        )

    def _any_way(self, rng: random.Random, draft: PartialChain, tool: int, relation: int | None) -> int | None:
        """A successor of a tool, on the same server first."""
        own, foreign = self.fans[tool]
        if not foreign.targets:
            return self._along(rng, draft, own, tool, relation)
        first, second = (own, foreign) if draft.goal == 1 or rng.random() < STAY else (foreign, own)
        step = self._along(rng, draft, first, tool, relation)
        return self._along(rng, draft, second, tool, relation) if step is None and draft.goal > 1 else step

    def _along(
        self, rng: random.Random, draft: PartialChain, fan: SuccessorFan, tool: int, relation: int | None
    ) -> int | None:
        """A successor along a strong or a weak edge: as is wished, or by the weights."""
        size = len(fan.targets)
        if not size:
            return None
        strong = rng.random() < fan.turn if relation is None else relation >= STRONG
        low, high = (0, fan.strong) if strong else (fan.strong, size)
        if low == high:
            low, high = 0, size
        step = self._least_used(rng, draft, fan.targets, low, high, tool)
        return self._least_used(rng, draft, fan.targets, 0, size, tool) if step is None and high - low < size else step

    def _least_used(
        self, rng: random.Random, draft: PartialChain, targets: list[int], low: int, high: int, tool: int
    ) -> int | None:
        """Of the successors looked at, the one whose edge, and that itself, was used least."""
        count = high - low
        if count <= LOOKS:
            first = low + int(rng.random() * count)
            looks = targets[first:high] + targets[low:first]
        else:
            looks = [targets[low + int(rng.random() * count)] for _ in range(LOOKS // 2)]
        best, least = None, (1 << 60, 0)
        for target in looks:
            if draft.welcomes(target):
                used = self.edges.get((tool, target), 0), self.by_server[self.network.server[target]].count[target]
                if used < least:
                    best, least = target, used
        return best

    # Everything that it needs

    def _closure(self, rng: random.Random, draft: PartialChain, tool: int, depth: int) -> bool:
        """Append a tool with all priors that it lacks, in calling order; False leaves the chain as it was."""
        if depth > self.settings.max_depth or len(draft.chain) + draft.pending >= draft.limit:
            return False
        mark = len(draft.chain)
        draft.enter(tool)
        for slot in self.network.needs[tool]:
            if not self._supply(rng, draft, slot, depth):
                draft.back_to(mark)
                draft.leave(tool)
                draft.pending -= 1
                return False
        for slot in self.network.wants[tool]:
            if rng.random() < self.settings.extra_prior:
                self._supply(rng, draft, slot, depth)
        draft.pending -= 1
        draft.chain.append(tool)
        return True

    def _supply(self, rng: random.Random, draft: PartialChain, slot: Slot, depth: int) -> bool:
        """True once the chain gives the parameter; often by one more look-up, where only a write has given it."""
        have = looked_up = False
        givers, proper = slot.givers, slot.proper
        for tool in draft.chain:
            if tool in givers:
                have = True
                if tool in proper:
                    looked_up = True
                    break
        if have and rng.random() >= (self.settings.extra_prior if looked_up else AFTER_WRITE):
            return True
        own_first = draft.goal == 1 or rng.random() < STAY
        pools = (slot.own, slot.foreign) if own_first else (slot.foreign, slot.own)
        return any(self._prior(rng, draft, pool, depth, have) for pool in pools if pool.sources) or have

    def _prior(self, rng: random.Random, draft: PartialChain, pool: GiverPool, depth: int, have: bool) -> bool:
        """Add one producer with its closure: a few weighted looks, then, if it must be, all of a short list."""
        high = bisect_left(pool.levels, self.settings.max_depth - depth)
        if not high:
            return False
        tried: set[int] = set()
        for _ in range(LOOKS):
            source = pool.sources[min(bisect(pool.bounds, rng.random() * pool.bounds[high - 1], 0, high), high - 1)]
            if source not in tried and draft.welcomes(source) and self._closure(rng, draft, source, depth + 1):
                return True
            tried.add(source)
            if len(tried) == high:
                return False
        left = () if have else (source for source in pool.sources[: min(high, SHORT)] if source not in tried)
        return any(draft.welcomes(source) and self._closure(rng, draft, source, depth + 1) for source in left)
