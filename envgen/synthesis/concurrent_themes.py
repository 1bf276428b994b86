"""Synthesize many themes concurrently: proposals first, so that two of one theme are recognised."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.synthesis.acceptance import AcceptedEnvironment, read_accepted, retract_accepted
from trajsmith.envgen.synthesis.answer_schemas import Proposal
from trajsmith.envgen.synthesis.loop import ProposalRecord, SynthesisLoop
from trajsmith.envgen.synthesis.records import SynthesisOutcome, Theme
from trajsmith.envgen.synthesis.search_records import find_previous_ids
from trajsmith.records import RunError, StepJournal, TrajsmithError

Found = TypeVar("Found")
MAX_OVERLAP = 0.8
"""Share of entities from which on two proposals are of one theme."""


async def synthesize_environments(loop: SynthesisLoop, sources: Sequence[ThemeSource]) -> list[SynthesisOutcome]:
    """Return the outcome of every source; undecided ones are in `loop.undecided` and are retried at the next start.

    Raises:
        RunError: A model is out, or the budget is spent: everything so far is kept.
    """
    themes = list({theme.id: theme for theme in (Theme(source=source) for source in sources)}.values())
    gate = asyncio.Semaphore(loop.bench.settings.themes_at_once)

    async def proposed(theme: Theme) -> ProposalRecord | tuple[str, ...] | None:
        async with gate:
            return await _run_isolated(loop, theme, loop.propose(theme))

    async def built(theme: Theme, proposal: ProposalRecord | tuple[str, ...]) -> SynthesisOutcome | None:
        result = known = _find_known_outcome(loop, theme)
        if known is not None and not known.accepted:
            retract_accepted(loop.store, theme.id)  # other settings may have accepted it since
        if known is None:
            async with gate:
                result = await _run_isolated(loop, theme, loop.run(theme, proposal))
        if known is None and result is not None:
            loop.store.put("outcomes", f"{theme.id}:{loop.fingerprint}", result)
            loop.tell(f"{theme.source.name}: {'accepted' if result.accepted else 'rejected: ' + result.reasons[0]}")
        loop.ended(result is not None and result.accepted)
        return result

    proposals = await _gather_all([proposed(theme) for theme in themes])
    apart = _drop_alike_proposals(loop.store, themes, proposals)
    works = [built(theme, one) for theme, one in zip(themes, apart, strict=True) if one is not None]
    return [outcome for outcome in await _gather_all(works) if outcome is not None]


async def _run_isolated(loop: SynthesisLoop, theme: Theme, work: Coroutine[Any, Any, Found]) -> Found | None:
    """Return the result of one theme's work; an internal crash ends only this theme and decides nothing."""
    try:
        return await work
    except TrajsmithError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise RunError(f"{where}{error.strerror or error}; mend that, then start the same command again") from error
    except Exception as error:  # noqa: BLE001 - named with its theme; the others go on
        message = " ".join(f"{type(error).__name__}: {error}".split())
        loop.defer(theme, f"{message} (a bug, please report it)")
        return None


def _find_known_outcome(loop: SynthesisLoop, theme: Theme) -> SynthesisOutcome | None:
    """Return a theme's stored outcome under these settings, if there is one."""
    known = loop.store.get("outcomes", SynthesisOutcome, f"{theme.id}:{loop.fingerprint}")
    if known is None or not known.accepted:
        return known
    there = any((one.theme, one.proposal.name) == (theme.id, known.name) for one in read_accepted(loop.store))
    return known if there else None


async def _gather_all(works: Sequence[Coroutine[Any, Any, Found]]) -> list[Found]:
    """All results; the first fault ends the others."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


Proposals = Sequence[ProposalRecord | tuple[str, ...] | None]


def _drop_alike_proposals(store: StepJournal, themes: Sequence[Theme], proposals: Proposals) -> Proposals:
    """The proposals; of several of one theme the one that an earlier start accepted, else the first."""
    accepted = _find_accepted(store, themes, proposals)
    distinct = list(proposals)
    for place, (theme, one) in enumerate(zip(themes, proposals, strict=True)):
        if not isinstance(one, ProposalRecord):
            continue
        mine = {theme.id} | find_previous_ids(store, theme)
        twin = next(
            (other for other in accepted if other.theme not in mine and _is_alike(other.proposal, one.proposal)), None
        )
        if twin is None:
            accepted.append(AcceptedEnvironment(theme.id, theme.source.name, one.proposal))
        else:
            distinct[place] = (f"the same theme as {twin.source} ({twin.proposal.name})",)
    return distinct


def _find_accepted(store: StepJournal, themes: Sequence[Theme], proposals: Proposals) -> list[AcceptedEnvironment]:
    """Return what is accepted so far, without what this start regenerates under another name."""
    now = {theme.id: one for theme, one in zip(themes, proposals, strict=True) if one is not None}
    names = {theme: one.proposal.name for theme, one in now.items() if isinstance(one, ProposalRecord)}
    return [one for one in read_accepted(store) if one.theme not in now or names.get(one.theme) == one.proposal.name]


def _is_alike(one: Proposal, other: Proposal) -> bool:
    mine, theirs = set(one.entities), set(other.entities)
    return one.name == other.name or len(mine & theirs) / len(mine | theirs) >= MAX_OVERLAP
