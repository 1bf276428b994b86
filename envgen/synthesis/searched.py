"""Searches as records of a run: nothing is asked twice, and a theme that is taken up again has the same passages."""

from collections.abc import Callable, Sequence
from pathlib import Path

from envgen.sources import Source
from envgen.sources.searching import Searched, Searcher, SearchSettings
from envgen.synthesis.records import Theme
from envgen.synthesis.store import Store
from trajectory import Frozen, JsonObject, content_hash

FILE = "searches"


class SearchCounts(Frozen):
    """What the searches of a run gave."""

    themes: int
    passages: int
    repeated: int
    without: dict[str, str]
    """Theme to why it goes on without passages."""
    faults: int
    """Queries of which nothing came."""


def unasked(folder: Path, settings: SearchSettings, sources: Sequence[Source]) -> list[Source]:
    """The same of a run that may not be there yet; makes no folder."""
    return unsearched(Store(folder), settings, sources) if folder.is_dir() else [*filter(_is_bare, sources)]


def unsearched(store: Store, settings: SearchSettings, sources: Sequence[Source]) -> list[Source]:
    """Domains for which the server is still to be asked. What has requests or documents of its own needs no search."""
    return [
        source for source in sources
        if _is_bare(source) and store.get(FILE, Searched, _key(settings, source)) is None
    ]  # fmt: skip


async def search_all(
    store: Store, settings: SearchSettings, sources: Sequence[Source], tell: Callable[[str], None]
) -> list[Source]:
    """The sources with what was found for them, each once.

    Raises:
        InputError: The server does not start, or cannot be asked what the settings say.
    """
    waiting = unsearched(store, settings, sources)
    if waiting:
        async with Searcher(settings) as searcher:
            for source in waiting:
                one = await searcher.search(source)
                store.put(FILE, _key(settings, source), one)
                tell(f"{source.name}: {_told(one)}")
    found = [store.get(FILE, Searched, _key(settings, source)) for source in sources]
    enriched = [source if one is None else one.source for source, one in zip(sources, found, strict=True)]
    return list({Theme(source=source).id: source for source in enriched}.values())


def latest(store: Store, sources: Sequence[Source]) -> list[Source]:
    """The sources of a run without those to which a search has added passages."""
    asked = [one.asked for one in store.all(FILE, Searched) if one.passages]
    return [source for source in sources if source not in asked]


def unsearched_of(store: Store, theme: Theme) -> set[str]:
    """Ids that a theme had before a search added passages to it."""
    return {Theme(source=one.asked).id for one in store.all(FILE, Searched) if one.source == theme.source}


def notes_of(store: Store, theme: Theme) -> tuple[str, ...]:
    """Queries of which nothing came, with the reason."""
    one = _of(store, theme.id)
    return () if one is None else tuple(f"search: {fault}" for fault in one.faults)


def origins_of(store: Store, theme: str) -> list[JsonObject]:
    """Where each passage of a theme comes from, without its text."""
    one = _of(store, theme)
    return [] if one is None else [passage.model_dump(mode="json", exclude={"text"}) for passage in one.passages]


def counted(store: Store, sources: Sequence[Source]) -> SearchCounts:
    """The searches behind the sources of this start."""
    ids = [Theme(source=source).id for source in sources]
    found = [one for one in (_of(store, theme) for theme in ids) if one is not None]
    return SearchCounts(
        themes=len(found),
        passages=sum(len(one.passages) for one in found),
        repeated=sum(one.repeated for one in found),
        without={one.asked.name: "; ".join(one.faults) for one in found if not one.passages},
        faults=sum(len(one.faults) for one in found),
    )


def _is_bare(source: Source) -> bool:
    """Whether a name is all that is known."""
    return source.kind == "domain" and not source.passages


def _of(store: Store, theme: str) -> Searched | None:
    """The last search that made a theme what it is."""
    return next((one for one in reversed(store.all(FILE, Searched)) if Theme(source=one.source).id == theme), None)


def _told(one: Searched) -> str:
    if not one.passages:
        return f"goes on without passages: {'; '.join(one.faults)}"
    lost = f", {len(one.faults)} queries gave nothing: {'; '.join(one.faults)}" if one.faults else ""
    return f"{len(one.passages)} passages from {one.passages[0].server}{lost}"


def _key(settings: SearchSettings, source: Source) -> str:
    """A search is named by what was asked of whom; settings that change ask anew."""
    return content_hash([settings.model_dump(mode="json"), source.model_dump(mode="json")], 20)
