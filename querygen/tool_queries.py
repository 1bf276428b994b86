"""Queries with which the scripted agent of a task searches for its tools, each proved by making the search."""

import random
import re
from collections.abc import Iterator, Sequence

from trajsmith.phrasing import ToolIndex, Wording, get_language, list_slots, singularize, split_identifier, word_set
from trajsmith.phrasing.wording import derive_request_phrase
from trajsmith.records import CALL_TOOL, DIRECTORY_TOOLS, ToolSearch, ToolSpec

OWN_WORDS = 0.5
"""Share of tools that are searched for in the agent's own words first; else in the few words that name a tool."""
BROAD = 0.2
"""Share of the others that are searched for by their subject alone first ("ticket"), which several tools have."""
_ARTICLES = re.compile(r"\b(?:a|an|the|your|my|our|their|that|this|those|these) ", re.IGNORECASE)
_CLAUSE = re.compile(
    r"(?:(?<!\W)\W+|\W)\b(?:that|which|who|whose|what|so|whether|if|where|when|how)\b.*", re.IGNORECASE
)
_VAGUE = re.compile(
    r"\b(?:that|what|which|who|where|when|whether|if|how|its|nobody|somebody|there|here|it|them|you|me|is|are|was|were|has"
    r"|have|had|can|need)\b",
    re.IGNORECASE,
)
"""Words of a phrase that says too little outside of its dialogue."""
_PARTICLES = word_set(
    "about across after against along among around at away back before behind between by down during for from in into"
    " of off on onto out over per since through till to toward under until up upon with within without and or now"
)
_LIGHT_VERBS = word_set("see look go get take put bring do make have give sort deal check find open read details")
"""Words that fit any tool: "check", "details", verbs that say little without their particle."""
_READS = word_set("get show read fetch retrieve")
"""Verbs of a name that nobody types."""
_CAUSATIVES = word_set("get have let")
"""First words of phrases in which somebody else does it: "get ticket opened"."""
FEWEST_WORDS, LONGEST = 2, 50
"""Words of a query that say something, and letters after which a phrase from a description is cut."""


def plan_tool_search(
    own: Sequence[ToolSpec], others: Sequence[ToolSpec], wording: Wording, results: int, rng: random.Random
) -> ToolSearch | None:
    """Plan how each tool is searched for: queries up to the first that shows it. None if one cannot be found.

    Args:
        own: Tools that can be called.
        others: Tools among which they are found.
        wording: Words for what a tool does.
        results: Tools that a search shows at most.
        rng: Source of randomness.
    """
    tools = (*own, *others)
    if {tool.name for tool in tools} & {*DIRECTORY_TOOLS, CALL_TOOL}:
        return None
    index, planned = ToolIndex(tools), {}
    for tool in own:
        queries = _find_queries(tool, index, wording, results, rng)
        if not queries:
            return None
        planned[tool.name] = queries
    return ToolSearch(results=results, queries=planned)


def _find_queries(
    tool: ToolSpec, index: ToolIndex, wording: Wording, results: int, rng: random.Random
) -> tuple[str, ...]:
    """Return queries in the order in which they are made, the last of which shows the tool; empty if none does."""
    queries: list[str] = []
    for query in _propose_queries(tool, wording, rng):
        if query not in queries:
            queries.append(query)
            if any(shown.name == tool.name for shown in index.search(query, results)):
                return tuple(queries)
    return ()


def _propose_queries(tool: ToolSpec, wording: Wording, rng: random.Random) -> Iterator[str]:
    """Yield what an agent would search for: how it speaks of the step itself, or the few words that name such a tool.

    Tools are described in English, so that an agent of another language has only the latter. A description, which
    nobody has read before the search, comes last, for tools that nothing else finds.
    """
    spoken = wording.tool(tool.name).narrate if get_language().code == "en" else ()
    named = _name_in_words(tool)
    content = split_identifier(tool.name)[1:] or split_identifier(tool.name)
    topic = {singularize(word) for word in content} - _PARTICLES
    own = [text for text in map(_strip_articles, spoken) if _says_enough(text) and text.split()[0] not in _CAUSATIVES]
    phrases = [text for text in own if topic & {singularize(word) for word in _list_content(text)}]
    if phrases and rng.random() < OWN_WORDS:
        yield rng.choice(phrases)
    elif rng.random() < BROAD:
        yield " ".join(content)
    if len(_list_content(named)) >= FEWEST_WORDS:
        yield named
    described = derive_request_phrase(tool)
    short = _shorten(_strip_articles(_CLAUSE.sub("", described)))
    if len(_list_content(short)) >= FEWEST_WORDS:
        yield short
    yield described


def _name_in_words(tool: ToolSpec) -> str:
    """Return the name of a tool as people type what they look for: "create event", "product details", "data usage"."""
    verb, *rest = split_identifier(tool.name) or [""]
    if verb not in _READS or not rest:
        return " ".join([verb, *rest])
    return " ".join(rest if len(rest) > 1 else [*rest, "details"])


def _strip_articles(text: str) -> str:
    return " ".join(_ARTICLES.sub("", text).split())


def _says_enough(text: str) -> bool:
    """Return True for a phrase without slots that says by itself what is to be done."""
    words = [word for word in _list_content(text) if word not in _LIGHT_VERBS]
    return not list_slots(text) and not _VAGUE.search(text) and len(words) >= FEWEST_WORDS


def _list_content(text: str) -> list[str]:
    return [word for word in text.lower().split() if word not in _PARTICLES]


def _shorten(text: str) -> str:
    words = (text if len(text) <= LONGEST else text[: text.rfind(" ", 0, LONGEST)]).split()
    while words and words[-1] in _PARTICLES:
        words.pop()
    return " ".join(words)
