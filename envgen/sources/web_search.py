"""Passages for a domain of which only the name is known, from any MCP server that can search the web.

EnvFactory 3.2 and Agent-World 3.1 begin with real sources. The server is one that the user names, reached by the
client of `trajsmith.environments.adapters.mcp`; it is asked the same few queries of every domain.
"""

import re
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from trajsmith.envgen.sources import MAX_SHOWN_PASSAGES, ThemeSource
from trajsmith.envgen.sources.search_hits import SearchHit, find_server_message, parse_hits
from trajsmith.environments.adapters.mcp import McpSettings
from trajsmith.environments.adapters.mcp.server import LiveServer
from trajsmith.environments.adapters.mcp.settings import ToolFilter
from trajsmith.environments.adapters.mcp.tools import describe
from trajsmith.environments.arguments import ArgumentValidator
from trajsmith.phrasing.near_duplicates import find_repeats
from trajsmith.records import EnvironmentFault, EnvironmentSpec, FrozenModel, InputError, JsonObject, Record

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
    licence: None = None
    """Unknown: no search result states one."""


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
        # only the tool that searches is looked at: what else the server has may be described as it likes
        self._settings = settings.model_copy(update={"tools": ToolFilter(include=[settings.tool])})
        self._base = (base or Path()).absolute()
        self._live: LiveServer | None = None
        self._name = settings.name

    async def __aenter__(self) -> Self:
        """Start the server and see whether it can be asked.

        Raises:
            InputError: It does not start, has no such tool, or the tool wants other arguments.
        """
        try:
            live = await self._running()
        except EnvironmentFault as fault:
            raise InputError(f"search: {fault.environment}: {fault.message}; mend `search`, or leave it out") from fault
        try:
            self._check(live)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def search(self, source: ThemeSource) -> SearchRecord:
        """Run all queries of a domain; one that fails is a fault in the record, not an exception."""
        passage_lists, faults = list[list[Passage]](), list[str]()
        for query in (text.replace("{domain}", source.name) for text in self._settings.queries):
            hits, fault = await self._ask(query)
            passage_lists.append([self._passage(hit, query) for hit in hits])
            faults += [f"{query}: {fault}"] if fault else []
        turns = [passage for turn in zip_longest(*passage_lists) for passage in turn if passage is not None]
        again = find_repeats([passage.text for passage in turns])
        distinct = [passage for place, passage in enumerate(turns) if place not in again]
        shown = tuple(distinct[:MAX_SHOWN_PASSAGES])
        texts = tuple(passage.text for passage in shown)
        # a licence that was stated covers the name, not what was found
        changes = {"passages": texts, "licence": None} if texts else {}
        return SearchRecord(
            asked=source, source=source.model_copy(update=changes), passages=shown, repeated=len(again),
            beyond=len(distinct) - len(shown), faults=tuple(faults),
        )  # fmt: skip

    async def _ask(self, query: str) -> tuple[list[SearchHit], str]:
        """Return the results, or none and the reason."""
        settings = self._settings
        try:
            live = await self._running()
            result = await live.call(settings.tool, {**settings.arguments, settings.argument: query})
        except (EnvironmentFault, InputError) as fault:
            return [], _to_line(str(fault))
        if not result.ok:
            error_text = result.content.get("error", result.text) if isinstance(result.content, dict) else result.text
            return [], f"refused: {_to_line(str(error_text))}"
        error_text = find_server_message(result.content)
        hits = [] if error_text else parse_hits(result.content)[: settings.results]
        return hits, "" if hits else f"nothing found{': ' + _to_line(error_text) if error_text else ''}"

    async def _running(self) -> LiveServer:
        if self._live is None or not self._live.running:
            await self._close()
            self._live = await LiveServer.start(self._settings, self._base, self._settings.first_state)
            self._name = self._live.server_info.name or self._settings.name
        return self._live

    async def _close(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            await live.close()

    def _check(self, live: LiveServer) -> None:
        wanted, offered = self._settings, sorted(tool.name for tool in live.server_info.tools)
        if wanted.tool not in offered:
            has = ", ".join(offered) or "no tools"
            raise InputError(f"search.tool: {wanted.name} has no tool {wanted.tool!r}; it has {has}")
        fault = _find_argument_fault(wanted, describe(wanted, live.server_info))
        if fault:
            raise InputError(fault)

    def _passage(self, hit: SearchHit, query: str) -> Passage:
        return Passage(text=hit.text, server=self._name, tool=self._settings.tool, query=query, page=hit.page)


def _find_argument_fault(settings: SearchSettings, spec: EnvironmentSpec) -> str:
    """Return the reason why the tool would refuse a query; empty if it would not."""
    configured = {settings.argument: "search.argument", **dict.fromkeys(settings.arguments, "search.arguments")}
    known = list(spec.tools[0].parameters)
    for name, key in configured.items():
        if name not in known:
            has = ", ".join(known) or "no parameters"
            return f"{key}: the tool {settings.tool} has no parameter {name!r}; it has {has}"
    query = settings.queries[0].replace("{domain}", "library loans")
    fault = ArgumentValidator(spec).fault(settings.tool, {**settings.arguments, settings.argument: query})
    return f"search.arguments: the tool {settings.tool} wants others: {fault}" if fault else ""


def _to_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()[:300]
