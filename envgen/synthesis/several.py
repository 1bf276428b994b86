"""Many themes: proposals first, so that two of one theme are seen; then each on its own, some at a time."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from envgen.sources import Source
from envgen.synthesis.loop import Loop, Proposed
from envgen.synthesis.parts import Proposal
from envgen.synthesis.records import Outcome, Theme

Found = TypeVar("Found")
OVERLAP = 0.8
"""Share of entities from which on two proposals are of one theme."""


async def synthesise(loop: Loop, sources: Sequence[Source]) -> list[Outcome]:
    """What becomes of every source; one that could not be decided is in `loop.undecided` and is tried again next time.

    Raises:
        RunError: A model is out, or the budget is spent: everything so far is kept.
    """
    themes = list({theme.id: theme for theme in (Theme(source=source) for source in sources)}.values())
    gate = asyncio.Semaphore(loop.bench.settings.themes_at_once)

    async def proposed(theme: Theme) -> Proposed | tuple[str, ...] | None:
        async with gate:
            return await loop.propose(theme)

    async def built(theme: Theme, proposal: Proposed | tuple[str, ...]) -> Outcome | None:
        known = loop.store.get("outcomes", Outcome, f"{theme.id}:{loop.fingerprint}")
        if known is not None:
            loop.ended(known.accepted)
            return known
        async with gate:
            found = await loop.run(theme, proposal)
        if found is not None:
            loop.store.put("outcomes", f"{theme.id}:{loop.fingerprint}", found)
            loop.tell(f"{theme.source.name}: {'accepted' if found.accepted else 'rejected: ' + found.reasons[0]}")
        loop.ended(found is not None and found.accepted)
        return found

    proposals = await _all([proposed(theme) for theme in themes])
    apart = _apart(proposals)
    works = [built(theme, one) for theme, one in zip(themes, apart, strict=True) if one is not None]
    return [outcome for outcome in await _all(works) if outcome is not None]


async def _all(works: Sequence[Coroutine[Any, Any, Found]]) -> list[Found]:
    """All results; the first fault ends the others."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _apart(proposals: Sequence[Proposed | tuple[str, ...] | None]) -> list[Proposed | tuple[str, ...] | None]:
    """The proposals; of several of one theme the first."""
    kept: list[Proposed] = []
    found: list[Proposed | tuple[str, ...] | None] = []
    for one in proposals:
        if not isinstance(one, Proposed):
            found.append(one)
            continue
        twin = next((other for other in kept if _alike(other.proposal, one.proposal)), None)
        found.append(one if twin is None else (f"the same theme as {twin.source.name} ({twin.proposal.name})",))
        kept += [one] if twin is None else []
    return found


def _alike(one: Proposal, other: Proposal) -> bool:
    mine, theirs = set(one.entities), set(other.entities)
    return one.name == other.name or len(mine & theirs) / len(mine | theirs) >= OVERLAP
