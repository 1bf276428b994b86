"""Many themes: proposals first, so that two of one theme are seen; then each on its own, some at a time."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from envgen.sources import Source
from envgen.synthesis.acceptance import Standing, retract, standing
from envgen.synthesis.loop import Loop, Proposed
from envgen.synthesis.parts import Proposal
from envgen.synthesis.records import Outcome, Theme
from envgen.synthesis.searched import unsearched_of
from envgen.synthesis.store import Store
from trajectory import RunError, TrajsmithError

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
            return await _alone(loop, theme, loop.propose(theme))

    async def built(theme: Theme, proposal: Proposed | tuple[str, ...]) -> Outcome | None:
        found = known = _known(loop, theme)
        if known is not None and not known.accepted:
            retract(loop.store, theme.id)  # other settings may have accepted it since
        if known is None:
            async with gate:
                found = await _alone(loop, theme, loop.run(theme, proposal))
        if known is None and found is not None:
            loop.store.put("outcomes", f"{theme.id}:{loop.fingerprint}", found)
            loop.tell(f"{theme.source.name}: {'accepted' if found.accepted else 'rejected: ' + found.reasons[0]}")
        loop.ended(found is not None and found.accepted)
        return found

    proposals = await _all([proposed(theme) for theme in themes])
    apart = _apart(loop.store, themes, proposals)
    works = [built(theme, one) for theme, one in zip(themes, apart, strict=True) if one is not None]
    return [outcome for outcome in await _all(works) if outcome is not None]


async def _alone(loop: Loop, theme: Theme, work: Coroutine[Any, Any, Found]) -> Found | None:
    """What the work on one theme gives; a crash of our own ends nothing but this, and decides nothing."""
    try:
        return await work
    except TrajsmithError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise RunError(f"{where}{error.strerror or error}; mend that, then start the same command again") from error
    except Exception as error:  # noqa: BLE001 - named with its theme; the others go on
        said = " ".join(f"{type(error).__name__}: {error}".split())
        loop.leave(theme, f"{said} (a bug, please report it)")
        return None


def _known(loop: Loop, theme: Theme) -> Outcome | None:
    """What became of a theme under these settings, if that stands there still."""
    known = loop.store.get("outcomes", Outcome, f"{theme.id}:{loop.fingerprint}")
    if known is None or not known.accepted:
        return known
    there = any((one.theme, one.proposal.name) == (theme.id, known.name) for one in standing(loop.store))
    return known if there else None


async def _all(works: Sequence[Coroutine[Any, Any, Found]]) -> list[Found]:
    """All results; the first fault ends the others."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


Proposals = Sequence[Proposed | tuple[str, ...] | None]


def _apart(store: Store, themes: Sequence[Theme], proposals: Proposals) -> Proposals:
    """The proposals; of several of one theme the one that an earlier start accepted, else the first."""
    kept = _standing(store, themes, proposals)
    found = list(proposals)
    for place, (theme, one) in enumerate(zip(themes, proposals, strict=True)):
        if not isinstance(one, Proposed):
            continue
        mine = {theme.id} | unsearched_of(store, theme)
        twin = next((other for other in kept if other.theme not in mine and _alike(other.proposal, one.proposal)), None)
        if twin is None:
            kept.append(Standing(theme.id, theme.source.name, one.proposal))
        else:
            found[place] = (f"the same theme as {twin.source} ({twin.proposal.name})",)
    return found


def _standing(store: Store, themes: Sequence[Theme], proposals: Proposals) -> list[Standing]:
    """What is accepted so far, without what this start makes anew under another name."""
    now = {theme.id: one for theme, one in zip(themes, proposals, strict=True) if one is not None}
    names = {theme: one.proposal.name for theme, one in now.items() if isinstance(one, Proposed)}
    return [one for one in standing(store) if one.theme not in now or names.get(one.theme) == one.proposal.name]


def _alike(one: Proposal, other: Proposal) -> bool:
    mine, theirs = set(one.entities), set(other.entities)
    return one.name == other.name or len(mine & theirs) / len(mine | theirs) >= OVERLAP
