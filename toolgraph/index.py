"""Look-ups over a part of a graph, as sampling needs them: by name for readers, by number for the samplers."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate

from trajsmith.grounding import get_argument_name, is_identifier, list_output_fields, split_name
from trajsmith.records import ToolSpec
from trajsmith.toolgraph.graph import WEAK, Edge, ParameterNode, ToolGraph, ValueLink
from trajsmith.toolgraph.lookup_arguments import count_said_parameters

NEVER = 1 << 30
"""Depth of a tool that can never be called: something that it needs is given by nobody."""

STEEP = 10
"""Power of a link's score, relative to the parameter's best, in the choice of a producer: close fits first."""

PROPER = 0.9
"""Share of a parameter's best score from which a producer is about the thing itself: order_id in orders."""

READS_FIRST = 6.0
"""People look a thing up where it is kept; they do not book it again to learn its id."""


LOOK_VERBS = frozenset({
    "get", "list", "find", "search", "show", "read", "fetch", "query", "lookup", "look", "view", "check", "retrieve",
    "describe", "count", "browse", "track", "compare", "calculate", "compute", "estimate",
})  # fmt: skip
CHANGE_VERBS = frozenset({
    "add", "create", "make", "new", "insert", "register", "book", "reserve", "place", "order", "buy", "pay", "send",
    "post", "put", "set", "update", "change", "edit", "modify", "move", "rename", "write", "save", "upload", "start",
    "stop", "cancel", "delete", "remove", "clear", "drop", "close", "open", "schedule", "assign", "submit", "run",
    "execute", "enable", "disable", "turn", "apply", "merge", "transfer", "return", "approve", "reject",
})  # fmt: skip


class GraphIndex:
    """One environment of a graph by plain tool names; or several, or all, by full names."""

    def __init__(self, graph: ToolGraph, servers: str | Sequence[str] | None = None) -> None:
        """`servers` is one server's name, or several names; None for all, with the edges between them."""
        self.single = isinstance(servers, str)
        chosen = [servers] if isinstance(servers, str) else list(graph.inside if servers is None else servers)
        inside = [graph.inside[server] for server in chosen if server in graph.inside]
        specs = [spec for part in inside for spec in part.tools]
        names = {spec.full_name: spec.name if self.single else spec.full_name for spec in specs}
        self.tools: list[str] = list(names.values())
        self.specs: dict[str, ToolSpec] = dict(zip(self.tools, specs, strict=True))
        self.reads: set[str] = find_readers(self.specs)
        """Tools that say that they only read; by their verbs on servers that say nothing of the kind."""
        self.needs: dict[str, list[str]] = defaultdict(list)
        """Tool to the required internal parameters that make it depend on others."""
        self.wants: dict[str, list[str]] = defaultdict(list)
        """Tool to its optional internal parameters."""
        self.knows: dict[str, list[str]] = defaultdict(list)
        """Tool to the parameters that a person can fill although some tool gives them too."""
        self.producers: dict[tuple[str, str], list[tuple[str, ValueLink]]] = defaultdict(list)
        """(tool, parameter) to tools that give it, with the link; edges of weight 1 are guesses and promise nothing."""
        self.successors: dict[str, list[tuple[str, int]]] = defaultdict(list)
        """Tool to (next tool, weight)."""
        internal = self._parameters((node for part in inside for node in part.parameters), names)
        edges = (edge for part in inside for edge in part.edges) if self.single else graph.edges
        self._edges(edges, names, internal)

    @cached_property
    def weights(self) -> dict[tuple[str, str], int]:
        """(tool, next tool) to the edge's weight."""
        return {(source, target): weight for source, targets in self.successors.items() for target, weight in targets}

    def sources(self, tool: str, parameter: str) -> list[str]:
        """Tools that give a parameter, each once."""
        return list(dict.fromkeys(source for source, _ in self.producers.get((tool, parameter), ())))

    @cached_property
    def network(self) -> "SamplingNetwork":
        """By number, with the edges between servers."""
        return SamplingNetwork(self, across=True)

    @cached_property
    def own_network(self) -> "SamplingNetwork":
        """By number, each server for itself."""
        return self.network if self.single else SamplingNetwork(self, across=False)

    def _parameters(self, nodes: Iterable[ParameterNode], names: dict[str, str]) -> set[tuple[str, str]]:
        internal = set()
        for node in nodes:
            if node.kind == "internal":
                internal.add((node.tool, node.parameter))
                (self.needs if node.required else self.wants)[names[node.tool]].append(node.parameter)
        return internal

    def _edges(self, edges: Iterable[Edge], names: dict[str, str], internal: set[tuple[str, str]]) -> None:
        for edge in edges:
            source, target = names.get(edge.source), names.get(edge.target)
            if source is None or target is None or source == target:
                continue
            self.successors[source].append((target, edge.weight))
            for link in edge.links if edge.weight >= WEAK else ():
                if (edge.target, link.input) not in internal and (target, link.input) not in self.producers:
                    self.knows[target].append(link.input)
                self.producers[target, link.input].append((source, link))


def find_readers(specs: dict[str, ToolSpec]) -> set[str]:
    """Of named tools, those that only read: as they declare, or by their verbs where a server declares nothing."""
    silent = {spec.server for spec in specs.values()}
    silent -= {spec.server for spec in specs.values() if spec.annotations.read_only_hint is not None}
    return {
        name
        for name, spec in specs.items()
        if (_sounds_like_reading(spec.name) if spec.server in silent else not spec.declares_write)
    }


def _sounds_like_reading(name: str) -> bool:
    verbs = [word for word in split_name(name) if word in LOOK_VERBS or word in CHANGE_VERBS]
    return bool(verbs) and verbs[0] in LOOK_VERBS


def find_row_keys(spec: ToolSpec) -> frozenset[str]:
    """Return the paths of the first id in each object of a tool's result: "$.result[*].order_id" of a list."""
    keys: dict[str, str] = {}
    for field in list_output_fields(spec):
        if is_identifier(field.name):
            keys.setdefault(field.path.rpartition(".")[0], field.path)
    return frozenset(keys.values())


class GiverPool:
    """Tools that can give one value, nearest to being callable first."""

    __slots__ = ("bounds", "levels", "sources")

    def __init__(self, weights: dict[int, float], depths: Sequence[int]) -> None:
        self.sources = sorted(weights, key=lambda source: (depths[source], source))
        self.levels = [depths[source] for source in self.sources]
        self.bounds = list(accumulate(weights[source] for source in self.sources))
        """Running sums of the weights: a draw is a bisection."""


class Slot:
    """One internal parameter of one tool, and who can fill it."""

    __slots__ = ("all_givers", "foreign", "givers", "name", "own", "proper", "scores")

    own: GiverPool
    """Givers of the tool's own server that can be called."""
    foreign: GiverPool
    """Those of other servers."""
    proper: frozenset[int]
    """Look-ups that are about the thing itself."""

    def __init__(self, name: str, links: Sequence[tuple[int, ValueLink]]) -> None:
        self.name = name
        self.givers: dict[int, tuple[str, ...]] = {}
        """Tool to the paths of its result that hold the value, best first."""
        self.scores: dict[int, float] = {}
        """Tool to its best link's score."""
        for source, link in sorted(links, key=_best_first):
            if source in self.givers:
                self.givers[source] += (link.output,)
            else:
                self.givers[source], self.scores[source] = (link.output,), link.score
        self.all_givers = tuple(self.givers)

    def rank(self, network: "SamplingNetwork", tool: int) -> None:
        """Weigh the givers, once it is known which can be called: close fits, look-ups and short ways first."""
        best = max(self.scores.values(), default=0.0) or 1.0
        reads, depths, home = network.reads, network.depths, network.server[tool]
        weights: tuple[dict[int, float], dict[int, float]] = ({}, {})
        for source, score in self.scores.items():
            depth = depths[source]
            if depth < NEVER:
                weight = (score / best) ** STEEP * (READS_FIRST if reads[source] else 1.0) / (1 + depth) ** 2
                weights[network.server[source] != home][source] = weight
        self.own, self.foreign = (
            GiverPool(pool_weights, depths) if pool_weights else EMPTY_POOL for pool_weights in weights
        )
        self.proper = frozenset(s for s, score in self.scores.items() if reads[s] and score >= PROPER * best)


def _best_first(pair: tuple[int, ValueLink]) -> tuple[int, float]:
    return pair[0], -pair[1].score


EMPTY_POOL = GiverPool({}, ())


class SamplingNetwork:
    """The index by numbers. Built once, linear in edges and links; a draw then never looks at all of anything."""

    def __init__(self, index: GraphIndex, across: bool) -> None:
        """With `across`, edges between servers count too."""
        self.names = index.tools
        self.number = {name: number for number, name in enumerate(index.tools)}
        homes = {name: place for place, name in enumerate(dict.fromkeys(spec.server for spec in index.specs.values()))}
        self.server = [homes[index.specs[name].server] for name in index.tools]
        """Tool to the number of its server."""
        self.reads = [name in index.reads for name in index.tools]
        self._index, self._across = index, across
        self.needs, self.wants = self._slots(index.needs), self._slots(index.wants)
        self.after = [self._after(index, tool, across) for tool in range(len(self.names))]
        """Tool to (next tool, weight)."""
        self.depths = self._depths()
        """Tool to the levels of priors that it needs at least, or `NEVER`."""
        for tool, slots in enumerate(zip(self.needs, self.wants, strict=True)):
            for slot in (*slots[0], *slots[1]):
                slot.rank(self, tool)

    @cached_property
    def before(self) -> list[dict[int, int]]:
        """Tool to the tools that lead to it, with the weight; built when somebody asks."""
        predecessors: list[dict[int, int]] = [{} for _ in self.names]
        for source, edges in enumerate(self.after):
            for target, weight in edges:
                predecessors[target][source] = weight
        return predecessors

    @cached_property
    def inputs(self) -> list[int]:
        """Tool to the number of its parameters."""
        return [len(self._index.specs[name].parameters) for name in self.names]

    @cached_property
    def asked(self) -> list[int]:
        """Tool to the number of required parameters that the user has to say beside what they name anyway.

        A text that the result shows again is how the thing is called: the name of a file, the number of a customer.
        Choices, dates and the names of other things narrow a list down.
        """
        counts = []
        for name, slots, shown in zip(self.names, self.needs, self.outputs, strict=True):
            known = {get_argument_name(slot.name) for slot in slots}
            counts.append(count_said_parameters(self._index.specs[name], known, shown))
        return counts

    @cached_property
    def by_name(self) -> list[bool]:
        """Tool to whether it looks a thing up by what the user calls it, and by nothing else."""
        known = [{get_argument_name(slot.name) for slot in slots} for slots in self.needs]
        own_parameters = (
            set(self._index.specs[name].required) - of for name, of in zip(self.names, known, strict=True)
        )
        return [bool(own) and not asked for own, asked in zip(own_parameters, self.asked, strict=True)]

    @cached_property
    def row_keys(self) -> list[frozenset[str]]:
        """Tool to the paths of its result that identify the row, or object, in which they stand: its first ids."""
        return [find_row_keys(self._index.specs[name]) for name in self.names]

    def lists_rows_of(self, slot: "Slot", tool: int) -> bool:
        """Return whether rows of a tool's result are the things that a parameter refers to."""
        return not self.row_keys[tool].isdisjoint(slot.givers.get(tool, ()))

    @cached_property
    def outputs(self) -> list[frozenset[str]]:
        """Tool to the names of the fields that its result has."""
        return [frozenset(field.name for field in list_output_fields(self._index.specs[name])) for name in self.names]

    @cached_property
    def knows(self) -> list[tuple[Slot, ...]]:
        """Tool to the parameters that a person can fill although tools give them too; not ranked."""
        return self._slots(self._index.knows)

    def _slots(self, parameters: dict[str, list[str]]) -> list[tuple[Slot, ...]]:
        return [tuple(self._slot(n, one) for one in parameters.get(name, ())) for n, name in enumerate(self.names)]

    def _slot(self, tool: int, parameter: str) -> Slot:
        givers = self._index.producers.get((self.names[tool], parameter), ())
        numbered = [(self.number[source], link) for source, link in givers]
        home = self.server[tool]
        return Slot(parameter, [pair for pair in numbered if self._across or self.server[pair[0]] == home])

    def _after(self, index: GraphIndex, tool: int, across: bool) -> list[tuple[int, int]]:
        edges = ((self.number[target], weight) for target, weight in index.successors.get(self.names[tool], ()))
        return [edge for edge in edges if across or self.server[edge[0]] == self.server[tool]]

    def _depths(self) -> list[int]:
        """Level by level: a tool is callable once every need has a callable giver. Each link is looked at once."""
        waiting: list[list[tuple[int, int]]] = [[] for _ in self.names]
        """Giver to the (tool, number of the need) that it could fill."""
        for tool, slots in enumerate(self.needs):
            for number, slot in enumerate(slots):
                for source in slot.givers:
                    waiting[source].append((tool, number))
        open_needs = [set(range(len(slots))) for slots in self.needs]
        depths = [NEVER] * len(self.names)
        level, ready = 0, [tool for tool, slots in enumerate(open_needs) if not slots]
        while ready:
            for tool in ready:
                depths[tool] = level
            after: list[int] = []
            for giver in ready:
                for tool, number in waiting[giver]:
                    left = open_needs[tool]
                    if number in left:
                        left.discard(number)
                        if not left:
                            after.append(tool)
            level, ready = level + 1, after
        return depths


def compute_closure_depths(index: GraphIndex) -> dict[str, int]:
    """Tool to the number of levels of priors that it needs at least; tools that can never be called are missing."""
    network = index.network
    return {name: depth for name, depth in zip(network.names, network.depths, strict=True) if depth < NEVER}
