"""A set of tasks as sources: requests that need a state, without repetitions, a source per theme (EnvScaler 3.1)."""

from collections.abc import Sequence
from pathlib import Path

from envgen.generate.blueprint import LeftOut
from envgen.sources import Source
from envgen.sources.licences import licence_in
from envgen.sources.near import repeats
from envgen.sources.reading import Reading
from envgen.sources.requests import read_requests
from envgen.sources.stateful import sense
from envgen.sources.themes import MOST, Theme, find_themes
from trajectory import InputError

FEWEST = 3
"""Requests that a theme has at least."""
SHOWN = 60
"""Letters of a request by which it is named among those left out."""


def read_task_set(path: Path, fewest: int = FEWEST, most: int = MOST) -> Reading:
    """The themes of a file of requests, without a model.

    Args:
        path: See `envgen.sources.requests`.
        fewest: Requests that a theme needs; those of smaller ones are left out.
        most: Themes at most.

    Raises:
        InputError: It cannot be read, has another shape, or no request in it needs a state.
    """
    texts, left_out = read_requests(path)
    read = len(texts) + len(left_out)
    stateful = list[str]()
    for text in texts:
        found = sense(text)
        if found.stateful:
            stateful.append(text)
        else:
            left_out.append(LeftOut(what=shown(text), reason=found.reason))
    if not stateful:
        raise InputError(f"{path}: none of {len(texts)} requests needs a state that is read or changed")
    kept = without_repeats(stateful, left_out)
    sources = list[Source]()
    for theme in find_themes(kept, most):
        members = [kept[place] for place in theme.members]
        if len(members) < fewest:
            reason = f"its theme has fewer than {fewest} requests"
            left_out += [LeftOut(what=shown(text), reason=reason) for text in members]
        else:
            sources.append(theme_source(theme, members, path))
    if not sources:
        raise InputError(f"{path}: no theme has {fewest} requests; only {len(kept)} different ones need a state")
    return Reading(sources=tuple(sources), left_out=tuple(left_out), read=read)


def without_repeats(texts: Sequence[str], left_out: list[LeftOut]) -> list[str]:
    """The texts without near-duplicates of earlier ones; those are noted."""
    again = repeats(texts)
    left_out += [
        LeftOut(what=shown(texts[place]), reason=f"says the same as another: {shown(texts[first])}")
        for place, first in again.items()
    ]
    return [text for place, text in enumerate(texts) if place not in again]


def theme_source(theme: Theme, requests: Sequence[str], path: Path) -> Source:
    """A theme as a source; its summary only repeats what was counted."""
    verbs, words = ", ".join(theme.verbs) or "ask", ", ".join(theme.words[:6]) or theme.name
    summary = f"Users {verbs}; they speak of {words}."
    return Source(
        kind="tasks", name=theme.name, summary=summary, requests=tuple(requests), origin=path.name,
        licence=licence_in(path.parent),
    )  # fmt: skip


def shown(text: str) -> str:
    """The beginning of a request."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
