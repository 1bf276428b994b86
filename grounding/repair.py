"""Repair of chains that cannot be executed on a state: the tool to call before the step that failed.

Initial states may be empty, and tools may want what no schema says: a log-in, a running engine, something to list.
Three things tell which call would help: the graph (who gives the value that is missing), the refusal (it names what
must be done first), and the names (who makes what this tool reads, or does what it takes back).
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from trajsmith.grounding.names import get_tool_noun, split_name
from trajsmith.grounding.search import ChainDraft, StepFailure
from trajsmith.phrasing import stem
from trajsmith.records import Chain, Dependency, ToolSpec

Producers = Mapping[tuple[str, str], Sequence[tuple[str, str]]]
"""(tool, leaf path) to (tool that gives the value, path in its result), best first."""
LEAST = 0.5
"""Score from which a tool is tried."""
_WORD = re.compile(r"[A-Za-z]+")
_MAKES = frozenset(
    {"create", "add", "make", "new", "insert", "register", "book", "place", "send", "post", "put", "set", "write",
     "upload", "save", "start", "open", "schedule", "touch", "mkdir", "generate", "init", "submit", "draft"}
)  # fmt: skip
_SAME = {
    "login": "auth", "log": "auth", "logged": "auth", "authenticate": "auth", "authentication": "auth", "token": "auth",
    "authenticated": "auth", "signin": "auth", "sign": "auth", "session": "auth", "credential": "auth",
    "registered": "register", "registration": "register", "signup": "register",
}  # fmt: skip
_UNDOES = {
    "logout": "login", "stop": "start", "close": "open", "unlock": "lock", "disable": "enable", "remove": "add",
    "delete": "create", "unfollow": "follow", "release": "press", "cancel": "book", "unassign": "assign",
    "unsubscribe": "subscribe", "unmute": "mute", "unstar": "star", "unarchive": "archive", "restore": "delete",
    "leave": "join", "checkout": "add", "complete": "start", "end": "start", "resolve": "create",
}  # fmt: skip
"""What a tool takes back, by the first word of its name."""
_WAYS_BACK = {"out": "in", "off": "on", "down": "up"}
_LITTLE = frozenset(
    {"not", "found", "the", "is", "be", "must", "to", "in", "no", "first", "please", "a", "an", "of", "for", "with",
     "and", "or", "get", "all", "error", "invalid", "required", "does", "exist", "user", "id", "are", "has", "list"}
)  # fmt: skip


def rank_helpers(
    chain: Chain, failure: StepFailure, tools: Mapping[str, ToolSpec], givers: Producers, empty: bool
) -> Iterator[tuple[float, str]]:
    """Rank tools that could be called before the step that failed, as (score, tool), each tool once.

    Args:
        empty: True if the step, or what should have fed it, came to nothing for lack of things.
    """
    before = set(chain.tools[: failure.step + 1])
    scores: dict[str, float] = {}

    def offer(tool: str, score: float) -> None:
        if tool not in before and tool in tools:
            scores[tool] = max(scores.get(tool, 0.0), score)

    for leaf in failure.unmet:
        for rank, (giver, _) in enumerate(givers.get((failure.tool, leaf), ())):
            offer(giver, 4.0 - 0.2 * rank)
    for text in failure.refusals[-4:]:
        for tool in tools:
            offer(tool, 3.0 * _score_mention(text, tool, tools[tool].description))
    for tool in tools:
        offer(tool, 2.5 * _score_undoing(tool, failure.tool))
        if empty or failure.refusals:
            offer(tool, 2.0 * _score_producer(tool, failure.tool))
    if failure.refusals and not failure.unmet:
        for (tool, _), sources in givers.items():
            if tool == failure.tool:
                for rank, (giver, _) in enumerate(sources):
                    offer(giver, 1.5 - 0.1 * rank)
    yield from sorted(
        ((score, tool) for tool, score in scores.items() if score >= LEAST), key=lambda pair: (-pair[0], pair[1])
    )


def insert_helper(draft: ChainDraft, step: int, helper: str, givers: Producers) -> ChainDraft:
    """Insert a tool before a step, with all dependencies that the graph knows."""
    chain = draft.chain
    tools = (*chain.tools[:step], helper, *chain.tools[step:])

    def moved(number: int) -> int:
        return number + 1 if number >= step else number

    remaining = [
        dependency.model_copy(update={"consumer": moved(dependency.consumer), "producer": moved(dependency.producer)})
        for dependency in chain.dependencies
    ]
    known = {
        (dependency.consumer, dependency.parameter, dependency.producer, dependency.output) for dependency in remaining
    }
    added = [
        one
        for one in find_dependencies(tools, givers)
        if (one.consumer, one.parameter, one.producer, one.output) not in known
    ]
    fresh = [one for one in added if step in (one.consumer, one.producer)]
    helps = (*((moved(late), moved(early)) for late, early in draft.helps), (step + 1, step))
    return ChainDraft(chain.model_copy(update={"tools": tools, "dependencies": (*remaining, *fresh)}), helps)


def find_dependencies(tools: Sequence[str], givers: Producers) -> list[Dependency]:
    """Find every way to fill a parameter from an earlier step, the nearest producer first."""
    by_tool: dict[str, list[tuple[str, str, str]]] = {}
    for (tool, leaf), sources in givers.items():
        if tool in tools:
            by_tool.setdefault(tool, []).extend((leaf, giver, path) for giver, path in sources)
    return [
        Dependency(consumer=consumer, parameter=leaf, producer=producer, output=path)
        for consumer, tool in enumerate(tools)
        for producer in range(consumer - 1, -1, -1)
        for leaf, giver, path in by_tool.get(tool, ())
        if giver == tools[producer]
    ]


def _score_mention(text: str, tool: str, description: str) -> float:
    """Share of a tool's name that a refusal speaks of, from 0 to 1."""
    stems = _stems(text)
    name = {stem(_SAME.get(word, word)) for word in split_name(tool)} - _LITTLE
    if not name or not stems:
        return 0.0
    share = len(name & stems) / len(name)
    about = len(_stems(description.split(".")[0]) & stems) / len(stems)
    return share * 0.8 + about * 0.2 if share else 0.0


def _stems(text: str) -> set[str]:
    tokens = {word for part in _WORD.findall(text) for word in split_name(part)}
    return {stem(_SAME.get(word, word)) for word in tokens} - _LITTLE


def _score_producer(maker: str, reader: str) -> float:
    """Score from 0 to 1 how clearly one tool's name says that it creates the object of the other."""
    verbs, nouns = set(split_name(maker)) & _MAKES, set(get_tool_noun(maker))
    about = set(get_tool_noun(reader))
    if not verbs:
        return 0.0
    shared = len(nouns & about)
    return 0.3 + 0.7 * shared / len(nouns | about) if shared else 0.0


def _score_undoing(maker: str, failed: str) -> float:
    """1 if the failed tool takes back what the other does, by their names; else 0."""
    taken, maker_words = split_name(failed), split_name(maker)
    if tuple(_WAYS_BACK.get(word, word) for word in taken) == maker_words != taken:
        return 1.0
    same = len(taken) == 1 or bool(set(taken[1:]) & set(maker_words[1:]))
    return float(bool(taken) and same and maker_words[:1] == (_UNDOES.get(taken[0]),))
