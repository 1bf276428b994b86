"""Mining of a domain: rounds in which the designer asks a search server, and reads pages for rows and rules.

Agent-World 3.1 fills its databases by an agent that searches and reads. Here the designer sees only what is known so
far, and chooses: it writes queries, and names results by their number, so that no address comes from a model. What it
takes from a page must stand on that page. Text of pages is data: one line each, of bounded length.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Self

import orjson

from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.sources.asked_tool import AskedTool, to_reason
from trajsmith.envgen.sources.documents import MAX_PASSAGE_CHARACTERS
from trajsmith.envgen.sources.search_hits import SearchHit
from trajsmith.envgen.sources.web_search import (
    MiningSettings,
    Passage,
    SearchRecord,
    SearchSettings,
    WebSearcher,
    build_search_record,
)
from trajsmith.envgen.synthesis.mining_records import (
    LONGEST_VALUE,
    MOST_TABLES,
    MinedDomain,
    MinedRow,
    PageExtract,
    PageText,
    QueryResult,
    SearchStep,
    find_row_fault,
    normalize_text,
    split_page,
)
from trajsmith.envgen.synthesis.prompted_generation import PromptedGenerator
from trajsmith.envgen.synthesis.records import Theme
from trajsmith.records import (
    ModelFault,
    StepJournal,
    canonical_json,
    content_hash,
    storage_boundary,
    write_whole_file,
)

MINED, QUERIES, PAGES = "mined", "queries", "pages"
"""Journals of a run: what came of a domain, and every query and page, so that none is asked twice."""
TABLES_FOLDER = "mined"
"""Folder of a run with the rows of each domain: a file per table, as `--from-tables` reads them."""
SHOWN_TABLES = 6
SHOWN_RESULTS, SHOWN_LETTERS = 30, 240
"""Results that a prompt shows, and letters of each."""


@dataclass
class _Progress:
    """Knowledge of a domain so far."""

    rows: list[MinedRow] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    results: dict[str, tuple[SearchHit, str]] = field(default_factory=dict)
    """Pages that results name and that were not read, with the query."""
    queries: list[str] = field(default_factory=list)
    pages: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    known: set[bytes] = field(default_factory=set)

    def count(self) -> int:
        return len(self.rows) + len(self.passages)


class DomainMiner:
    """Miner of domains with a running search server and a running server that reads pages."""

    def __init__(
        self, generator: PromptedGenerator, store: StepJournal, settings: SearchSettings, tell: Callable[[str], None]
    ) -> None:
        assert settings.mining is not None
        self._generator, self._store, self._settings, self._tell = generator, store, settings, tell
        self.mining: MiningSettings = settings.mining
        self._searcher = WebSearcher(settings)
        self._reader = open_reader(settings, self.mining)

    async def __aenter__(self) -> Self:
        """Start both servers.

        Raises:
            InputError: One does not start, or cannot be asked what the settings say.
        """
        await self._searcher.__aenter__()
        try:
            await self._reader.start()
        except BaseException:
            await self._searcher.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._reader.close()
        await self._searcher.__aexit__(None, None, None)

    async def search(self, source: ThemeSource) -> SearchRecord:
        """Search a domain in rounds, and write its rows; a query or a page that fails is a fault in the record.

        Raises:
            ModelFault: The designer cannot be reached; what it says wrongly ends the rounds.
        """
        theme, progress = Theme(source=source).id, _Progress()
        for query in self._searcher.build_queries(source):
            await self._query(query, progress)
        number, stopped = 0, f"{self.mining.rounds} rounds"
        for number in range(1, self.mining.rounds + 1):
            before = progress.count()
            try:
                step, pages = await self._choose(source, theme, number, progress)
            except ModelFault as fault:
                if fault.kind != "bad_reply":
                    raise
                stopped = f"unusable answer: {to_reason(fault.message)}"
                break
            if step.enough.strip():
                stopped = f"enough: {to_reason(step.enough)}"
                break
            await self._read_pages(source, theme, pages, progress)
            for query in islice(self._new_queries(step.queries, progress), self.mining.queries):
                await self._query(query, progress)
            if len(progress.rows) >= self.mining.rows:
                stopped = f"{self.mining.rows} rows"
                break
            if number > 1 and progress.count() == before:
                stopped = "nothing new in a round"
                break
        mined = MinedDomain(
            name=source.name, rows=tuple(progress.rows[: self.mining.rows]), rounds=number,
            queries=len(progress.queries), pages=len(progress.pages), stopped=stopped,
            left_out=dict(sorted(progress.left_out.items())),
        )  # fmt: skip
        passages = progress.passages or [
            Passage(text=hit.text, server=self._searcher.server, tool=self._settings.tool, query=query, page=hit.page)
            for hit, query in progress.results.values()
        ]
        self._store.put(MINED, content_hash([theme, mined.id], 20), mined)
        write_mined_tables(self._store.folder, mined)
        self._tell(f"{source.name}: {describe_mining(mined)}")
        return build_search_record(source, [*self._show_tables(mined.rows), *passages], progress.faults)

    async def _choose(
        self, source: ThemeSource, theme: str, number: int, progress: _Progress
    ) -> tuple[SearchStep, list[str]]:
        """Return the designer's next step, and the pages that it reads."""
        results = list(progress.results.values())[-SHOWN_RESULTS:]

        def find_fault(step: SearchStep) -> str:
            wrong = [one for one in step.read if not 1 <= one <= len(results)]
            if wrong:
                return f"there is no result {wrong[0]}; there are {len(results)}."
            if not (step.enough.strip() or step.read or step.queries):
                return "say what is read or asked next, or why it is enough."
            return ""

        step, _ = await self._generator.answer(
            "search", theme, SearchStep, find_fault,
            name=source.name, summary=source.summary, round=number, rounds=self.mining.rounds,
            tables=_describe_tables(progress.rows), queries=progress.queries, most=self.mining.queries,
            pages=self.mining.pages, statements=len(progress.passages),
            results=[" ".join(hit.text.split())[:SHOWN_LETTERS] for hit, _ in results],
        )  # fmt: skip
        pages = [results[one - 1][0].page for one in dict.fromkeys(step.read)]
        return step, pages[: self.mining.pages]

    async def _read_pages(self, source: ThemeSource, theme: str, pages: Sequence[str], progress: _Progress) -> None:
        for page in pages:
            _, query = progress.results.pop(page)
            progress.pages.add(page)
            text = await self._fetch(page)
            if text.fault:
                progress.faults.append(f"{page[:200]}: {text.fault}")
                continue
            try:
                extract, _ = await self._generator.answer(
                    "read", theme, PageExtract, None,
                    name=source.name, tables=_describe_tables(progress.rows), paragraphs=list(text.paragraphs),
                )  # fmt: skip
            except ModelFault as fault:
                if fault.kind != "bad_reply":
                    raise
                progress.left_out["unusable answer on a page"] += 1
                continue
            self._take(extract, text, query, progress)

    def _take(self, extract: PageExtract, text: PageText, query: str, progress: _Progress) -> None:
        """Keep of an answer what stands on its page and is new."""
        page = normalize_text(" ".join(text.paragraphs))
        licence = " ".join(extract.licence.split())[:200]
        stated = licence if licence and normalize_text(licence) in page else None
        tables = {row.table for row in progress.rows}
        for table in extract.tables:
            for values in table.list_rows():
                fault = find_row_fault(values, page)
                if not fault and table.table not in tables and len(tables) >= MOST_TABLES:
                    fault = f"beyond {MOST_TABLES} tables"
                key = canonical_json([table.table, {k: normalize_text(str(v)) for k, v in values.items()}])
                if not fault and key in progress.known:
                    fault = "row that is known"
                if fault:
                    progress.left_out[fault] += 1
                    continue
                tables.add(table.table)
                progress.known.add(key)
                progress.rows.append(
                    MinedRow(table=table.table, values=values, page=text.page, query=query, licence=stated)
                )
        for statement in extract.statements:
            line = " ".join(statement.split())[: SHOWN_LETTERS * 3]
            key = normalize_text(line).encode()
            if len(line) < 20 or normalize_text(line) not in page:
                progress.left_out["statement that is not on its page"] += 1
            elif key in progress.known:
                progress.left_out["statement that is known"] += 1
            else:
                progress.known.add(key)
                progress.passages.append(
                    Passage(
                        text=line, server=self._reader.name, tool=self.mining.fetch.tool, query=query, page=text.page,
                        licence=stated,
                    )
                )  # fmt: skip

    def _show_tables(self, rows: Sequence[MinedRow]) -> list[Passage]:
        """Return a passage per table, so that who proposes an environment sees what records there are."""
        server, tool, shown = self._reader.name, self.mining.fetch.tool, list[Passage]()
        for table, some in islice(_group_rows(rows).items(), SHOWN_TABLES):
            first = some[0]
            text = f"Rows of {table}: " + "; ".join(orjson.dumps(row.values).decode() for row in some[:4])
            shown.append(
                Passage(
                    text=text[:MAX_PASSAGE_CHARACTERS], server=server, tool=tool, query=first.query, page=first.page,
                    licence=first.licence,
                )
            )  # fmt: skip
        return shown

    def _new_queries(self, queries: Sequence[str], progress: _Progress) -> list[str]:
        asked = {query.casefold() for query in progress.queries}
        lines = dict.fromkeys(" ".join(query.split()) for query in queries)
        return [line for line in lines if line.casefold() not in asked]

    async def _query(self, query: str, progress: _Progress) -> None:
        progress.queries.append(query)
        key = content_hash([QUERIES, self._settings.model_dump(mode="json", exclude={"mining"}), query], 20)
        result = self._store.get(QUERIES, QueryResult, key)
        if result is None:
            hits, fault = await self._searcher.ask(query)
            result = QueryResult(query=query, hits=tuple(hits), fault=fault)
            self._store.put(QUERIES, key, result)
        if result.fault:
            progress.faults.append(f"{query}: {result.fault}")
        for hit in result.hits:
            if hit.page and hit.page not in progress.pages:
                progress.results.setdefault(hit.page, (hit, query))

    async def _fetch(self, page: str) -> PageText:
        key = content_hash([PAGES, self.mining.model_dump(mode="json"), page], 20)
        text = self._store.get(PAGES, PageText, key)
        if text is None:
            content, fault = await self._reader.call(page)
            paragraphs = [] if fault else split_page(content, self.mining.letters)
            if not fault and not paragraphs:
                fault = "no text"
            text = PageText(page=page, paragraphs=tuple(paragraphs), fault=fault)
            self._store.put(PAGES, key, text)
        return text


def open_reader(settings: SearchSettings, mining: MiningSettings) -> AskedTool:
    """Return the tool that reads pages; it is not started yet."""
    fetch = mining.fetch
    key = "search.mining.fetch"
    return AskedTool(fetch.server or settings, fetch, key, "https://example.org/page")


def write_mined_tables(folder: Path, mined: MinedDomain) -> Path | None:
    """Write the rows of a domain: a file per table, and beside their folder one with the origin of each row.

    Returns:
        The folder; None if there are no rows.
    """
    if not mined.rows:
        return None
    name = re.sub(r"[^a-z0-9]+", "_", mined.name.lower()).strip("_")[:60] or mined.id
    place = folder / TABLES_FOLDER / name
    with storage_boundary(place):
        place.mkdir(parents=True, exist_ok=True)
        for old in place.glob("*.json"):
            old.unlink()
    for table, rows in _group_rows(mined.rows).items():
        content = orjson.dumps([row.values for row in rows], option=orjson.OPT_INDENT_2)
        write_whole_file(place / f"{table}.json", content)
    origins = [row.model_dump(mode="json") for row in mined.rows]
    write_whole_file(place.with_name(f"{name}.origins.json"), orjson.dumps(origins, option=orjson.OPT_INDENT_2))
    return place


def describe_mining(mined: MinedDomain) -> str:
    """Return a line on what came of the rounds."""
    tables = len({row.table for row in mined.rows})
    left = f", left out: {sum(mined.left_out.values())}" if mined.left_out else ""
    return (
        f"{len(mined.rows)} rows in {tables} tables from {mined.pages} pages, {mined.queries} queries, "
        f"{mined.rounds} rounds ({mined.stopped}){left}"
    )


def _describe_tables(rows: Sequence[MinedRow]) -> list[str]:
    """Return a line per table: its columns, how many rows there are, and the last of them."""
    lines = []
    for table, some in _group_rows(rows).items():
        columns = dict.fromkeys(column for row in some for column in row.values)
        example = orjson.dumps(some[-1].values).decode()[:LONGEST_VALUE]
        lines.append(f"{table} ({', '.join(columns)}): {len(some)} rows, such as {example}")
    return lines


def _group_rows(rows: Sequence[MinedRow]) -> dict[str, list[MinedRow]]:
    tables: dict[str, list[MinedRow]] = {}
    for row in rows:
        tables.setdefault(row.table, []).append(row)
    return tables
