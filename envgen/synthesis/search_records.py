"""Store searches as records of a run: no query is sent twice, and a resumed theme has the same passages."""

from collections.abc import Callable, Sequence
from pathlib import Path

from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.sources.web_search import SearchRecord, SearchSettings, WebSearcher
from trajsmith.envgen.synthesis.mining import MINED, DomainMiner
from trajsmith.envgen.synthesis.mining_records import MinedDomain
from trajsmith.envgen.synthesis.records import Theme
from trajsmith.records import FrozenModel, JsonObject, StepJournal, content_hash

SEARCHES_FILE = "searches"


class SearchCounts(FrozenModel):
    """Counts of a run's searches."""

    themes: int
    passages: int
    repeated: int
    without: dict[str, str]
    """Theme to why it goes on without passages."""
    faults: int
    """Queries of which nothing came."""
    rows: int = 0
    """Rows that were read from pages."""
    pages: int = 0
    """Pages that were read."""


def find_unsearched_in_folder(
    folder: Path, settings: SearchSettings, sources: Sequence[ThemeSource]
) -> list[ThemeSource]:
    """Return unsearched domains of a run folder that may not exist yet; creates no folder."""
    return find_unsearched(StepJournal(folder), settings, sources) if folder.is_dir() else [*filter(_is_bare, sources)]


def find_unsearched(store: StepJournal, settings: SearchSettings, sources: Sequence[ThemeSource]) -> list[ThemeSource]:
    """Return domains still to be searched. Sources with requests or documents of their own need no search."""
    return [
        source for source in sources
        if _is_bare(source) and store.get(SEARCHES_FILE, SearchRecord, _build_key(settings, source)) is None
    ]  # fmt: skip


async def search_all(
    store: StepJournal,
    settings: SearchSettings,
    sources: Sequence[ThemeSource],
    tell: Callable[[str], None],
    miner: DomainMiner | None = None,
) -> list[ThemeSource]:
    """Return the sources with the passages that were searched for them, each once.

    Args:
        miner: Searches in rounds, in place of the same few queries for every domain.

    Raises:
        InputError: The server does not start, or cannot be asked what the settings say.
    """
    waiting = find_unsearched(store, settings, sources)
    if waiting:
        async with miner or WebSearcher(settings) as searcher:
            for source in waiting:
                one = await searcher.search(source)
                store.put(SEARCHES_FILE, _build_key(settings, source), one)
                tell(f"{source.name}: {_describe_search(one)}")
    records = [store.get(SEARCHES_FILE, SearchRecord, _build_key(settings, source)) for source in sources]
    enriched = [source if one is None else one.source for source, one in zip(sources, records, strict=True)]
    return list({Theme(source=source).id: source for source in enriched}.values())


def drop_superseded(store: StepJournal, sources: Sequence[ThemeSource]) -> list[ThemeSource]:
    """Return the sources of a run without those that a search has replaced by richer ones."""
    asked = [one.asked for one in store.all(SEARCHES_FILE, SearchRecord) if one.passages]
    return [source for source in sources if source not in asked]


def find_previous_ids(store: StepJournal, theme: Theme) -> set[str]:
    """Return ids that a theme had before a search added passages to it."""
    return {Theme(source=one.asked).id for one in store.all(SEARCHES_FILE, SearchRecord) if one.source == theme.source}


def collect_notes(store: StepJournal, theme: Theme) -> tuple[str, ...]:
    """Return queries without results, with the reason."""
    one = _find_search(store, theme.id)
    return () if one is None else tuple(f"search: {fault}" for fault in one.faults)


def collect_origins(store: StepJournal, theme: str) -> list[JsonObject]:
    """Return the origin of each passage of a theme, without its text."""
    one = _find_search(store, theme)
    return [] if one is None else [passage.model_dump(mode="json", exclude={"text"}) for passage in one.passages]


def count_searches(store: StepJournal, sources: Sequence[ThemeSource]) -> SearchCounts:
    """Count the searches behind the sources of this start."""
    ids = [Theme(source=source).id for source in sources]
    records = [one for one in (_find_search(store, theme) for theme in ids) if one is not None]
    names = {one.asked.name for one in records}
    mined = {one.name: one for one in store.all(MINED, MinedDomain) if one.name in names}.values()
    return SearchCounts(
        themes=len(records),
        passages=sum(len(one.passages) for one in records),
        repeated=sum(one.repeated for one in records),
        without={one.asked.name: "; ".join(one.faults) for one in records if not one.passages},
        faults=sum(len(one.faults) for one in records),
        rows=sum(len(one.rows) for one in mined),
        pages=sum(one.pages for one in mined),
    )


def _is_bare(source: ThemeSource) -> bool:
    """Return True if only a name is known."""
    return source.kind == "domain" and not source.passages


def _find_search(store: StepJournal, theme: str) -> SearchRecord | None:
    """The last search that made a theme what it is."""
    return next(
        (one for one in reversed(store.all(SEARCHES_FILE, SearchRecord)) if Theme(source=one.source).id == theme), None
    )


def _describe_search(one: SearchRecord) -> str:
    if not one.passages:
        return f"continues without passages: {'; '.join(one.faults)}"
    lost = f", {len(one.faults)} queries gave nothing: {'; '.join(one.faults)}" if one.faults else ""
    return f"{len(one.passages)} passages from {one.passages[0].server}{lost}"


def _build_key(settings: SearchSettings, source: ThemeSource) -> str:
    """A search is named by what was asked of whom; settings that change ask anew."""
    exclude = {"mining"} if settings.mining is None else None
    return content_hash([settings.model_dump(mode="json", exclude=exclude), source.model_dump(mode="json")], 20)
