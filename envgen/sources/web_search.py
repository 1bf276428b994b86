"""Passages for a domain of which only the name is known, from any MCP server that can search the web.

EnvFactory 3.2 and Agent-World 3.1 begin with real sources. The server is one that the user names, reached by the
client of `trajsmith.environments.adapters.mcp`; it is asked the same few queries of every domain.
"""

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from trajsmith.envgen.sources import MAX_SHOWN_PASSAGES, ThemeSource
from trajsmith.envgen.sources.asked_tool import AskedTool, to_reason
from trajsmith.envgen.sources.search_hits import SearchHit, find_server_message, parse_hits
from trajsmith.environments.adapters.mcp import McpSettings
from trajsmith.phrasing.near_duplicates import find_repeats
from trajsmith.records import FrozenModel, JsonObject, Record

DEFAULT_QUERIES = ["{domain} data model", "{domain} how it works rules"]
_ENVIRONMENT_KEYS = (
    "description", "domain", "policy", "tools", "read_only", "phrases", "states", "observe", "snapshot",
    "parameter_examples",
)  # fmt: skip
"""What makes a server an environment that is played, and means nothing for one that is only asked."""


def _check_query(text: str) -> str:
    if "{domain}" not in text or set("{}") & set(text.replace("{domain}", "")):
        raise ValueError(f"{text!r} must hold {{domain}}, and no other braces")
    return text


class FetchSettings(FrozenModel):
    """The tool that reads a page."""

    tool: str = "fetch"
    argument: str = "url"
    """Its parameter that takes the address."""
    arguments: JsonObject = {}
    """What it is given besides, the same every time."""
    server: McpSettings | None = None
    """Server that has it; the one that searches if left out."""


class MiningSettings(FrozenModel):
    """Limits of a search in rounds (Agent-World 3.1)."""

    fetch: FetchSettings = FetchSettings()
    rounds: int = Field(4, ge=1, le=20)
    """Rounds at most; a round that brings nothing new is the last one."""
    queries: int = Field(3, ge=1, le=6)
    """Queries of a round."""
    pages: int = Field(3, ge=1, le=10)
    """Pages that are read in a round."""
    letters: int = Field(8000, ge=500, le=40_000)
    """Letters of a page that are read, from its beginning."""
    rows: int = Field(300, ge=1, le=5000)
    """Rows of a domain after which it is enough."""


class SearchSettings(McpSettings):
    """A live MCP server that can search, with the keys by which environments name one (command or url, env, path)."""

    name: str = "search"
    tool: str
    """Tool that searches."""
    argument: str = "query"
    """Its parameter that takes the query."""
    arguments: JsonObject = {}
    """What it is given besides, the same every time."""
    results: PositiveInt = 8
    """Results of one query that are looked at, the first ones."""
    queries: Annotated[list[Annotated[str, AfterValidator(_check_query)]], Field(min_length=1, max_length=6)] = (
        DEFAULT_QUERIES
    )
    """What is asked of every domain."""
    mining: MiningSettings | None = None
    """Rounds of queries and reading by the designer; without it only `queries` are asked."""

    @model_validator(mode="after")
    def _only_asked(self) -> Self:
        for key in _ENVIRONMENT_KEYS:
            if getattr(self, key) != McpSettings.model_fields[key].default:
                raise ValueError(f"`{key}` is for servers that are environments; a search server has `tool`")
        return self


class Passage(FrozenModel):
    """Text that a search returned, with its page."""

    text: str
    server: str
    """As it calls itself, else its name in the settings."""
    tool: str
    query: str
    page: str
    """Address that the result names; empty if it names none."""
    licence: str | None = None
    """As the page states it; None if it is not known, as with every search result."""


class SearchRecord(Record):
    """Record of one domain's search: the queries, and the passages and faults that came back."""

    PREFIX: ClassVar[str] = "searched"

    asked: ThemeSource
    source: ThemeSource
    """The same with the passages; as it was asked if there are none."""
    passages: tuple[Passage, ...]
    repeated: int
    """Results that said the same as another."""
    beyond: int
    """Results beyond those that a prompt shows."""
    faults: tuple[str, ...]
    """Query to why nothing came of it."""


class WebSearcher:
    """A running search server. Use it as a context; one that broke is started again at the next query."""

    def __init__(self, settings: SearchSettings, base: Path | None = None) -> None:
        self._settings = settings
        example = settings.queries[0].replace("{domain}", "library loans")
        self._tool = AskedTool(settings, settings, "search", example, base)

    async def __aenter__(self) -> Self:
        """Start the server and see whether it can be asked.

        Raises:
            InputError: It does not start, has no such tool, or the tool wants other arguments.
        """
        await self._tool.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._tool.close()

    async def search(self, source: ThemeSource) -> SearchRecord:
        """Run all queries of a domain; one that fails is a fault in the record, not an exception."""
        passage_lists, faults = list[list[Passage]](), list[str]()
        for query in self.build_queries(source):
            hits, fault = await self.ask(query)
            passage_lists.append([self._passage(hit, query) for hit in hits])
            faults += [f"{query}: {fault}"] if fault else []
        turns = [passage for turn in zip_longest(*passage_lists) for passage in turn if passage is not None]
        return build_search_record(source, turns, faults)

    def build_queries(self, source: ThemeSource) -> list[str]:
        """Return the queries that are the same for every domain, for one."""
        return [text.replace("{domain}", source.name) for text in self._settings.queries]

    async def ask(self, query: str) -> tuple[list[SearchHit], str]:
        """Return the results, or none and the reason."""
        content, fault = await self._tool.call(query)
        if fault:
            return [], fault
        error_text = find_server_message(content)
        hits = [] if error_text else parse_hits(content)[: self._settings.results]
        return hits, "" if hits else f"nothing found{': ' + to_reason(error_text) if error_text else ''}"

    @property
    def server(self) -> str:
        """The server as it calls itself."""
        return self._tool.name

    def _passage(self, hit: SearchHit, query: str) -> Passage:
        return Passage(text=hit.text, server=self.server, tool=self._settings.tool, query=query, page=hit.page)


def build_search_record(source: ThemeSource, passages: Sequence[Passage], faults: Sequence[str]) -> SearchRecord:
    """Return the record of a domain's search: repeated passages count once, those beyond what is shown go."""
    again = find_repeats([passage.text for passage in passages])
    distinct = [passage for place, passage in enumerate(passages) if place not in again]
    shown = tuple(distinct[:MAX_SHOWN_PASSAGES])
    texts = tuple(passage.text for passage in shown)
    # a licence that was stated covers the name, not what was found
    changes = {"passages": texts, "licence": None} if texts else {}
    return SearchRecord(
        asked=source, source=source.model_copy(update=changes), passages=shown, repeated=len(again),
        beyond=len(distinct) - len(shown), faults=tuple(faults),
    )  # fmt: skip
