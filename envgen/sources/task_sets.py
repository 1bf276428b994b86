"""A set of tasks as sources: requests that need a state, without repetitions, a source per theme (EnvScaler 3.1)."""

from collections.abc import Sequence
from pathlib import Path

from trajsmith.envgen.generate.blueprint import SkippedItem
from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.sources.clustering import MAX_THEMES, RequestCluster, cluster_requests
from trajsmith.envgen.sources.licences import find_licence
from trajsmith.envgen.sources.read_result import SourceReadResult
from trajsmith.envgen.sources.requests import read_requests
from trajsmith.envgen.sources.statefulness import estimate_statefulness
from trajsmith.phrasing.near_duplicates import find_repeats
from trajsmith.records import InputError

MIN_REQUESTS = 3
"""Requests that a theme has at least."""
SHOWN_CHARACTERS = 60
"""Letters of a request by which it is named among those left out."""


def read_task_set(path: Path, fewest: int = MIN_REQUESTS, most: int = MAX_THEMES) -> SourceReadResult:
    """Read the themes of a file of requests, without a model.

    Args:
        path: See `trajsmith.envgen.sources.requests`.
        fewest: Requests that a theme needs; those of smaller ones are left out.
        most: Themes at most.

    Raises:
        InputError: It cannot be read, has another shape, or no request in it needs a state.
    """
    texts, left_out = read_requests(path)
    read = len(texts) + len(left_out)
    stateful = list[str]()
    for text in texts:
        estimate = estimate_statefulness(text)
        if estimate.stateful:
            stateful.append(text)
        else:
            left_out.append(SkippedItem(what=shorten_request(text), reason=estimate.reason))
    if not stateful:
        raise InputError(f"{path}: none of {len(texts)} requests needs a state that is read or changed")
    distinct = drop_repeats(stateful, left_out)
    sources = list[ThemeSource]()
    for theme in cluster_requests(distinct, most):
        members = [distinct[place] for place in theme.members]
        if len(members) < fewest:
            reason = f"its theme has fewer than {fewest} requests"
            left_out += [SkippedItem(what=shorten_request(text), reason=reason) for text in members]
        else:
            sources.append(build_theme_source(theme, members, path))
    if not sources:
        raise InputError(f"{path}: no theme has {fewest} requests; only {len(distinct)} different ones need a state")
    return SourceReadResult(sources=tuple(sources), left_out=tuple(left_out), read=read)


def drop_repeats(texts: Sequence[str], left_out: list[SkippedItem]) -> list[str]:
    """Return the texts without near-duplicates of earlier ones; those are noted."""
    again = find_repeats(texts)
    left_out += [
        SkippedItem(
            what=shorten_request(texts[place]), reason=f"says the same as another: {shorten_request(texts[first])}"
        )
        for place, first in again.items()
    ]
    return [text for place, text in enumerate(texts) if place not in again]


def build_theme_source(theme: RequestCluster, requests: Sequence[str], path: Path) -> ThemeSource:
    """Return a theme as a source; its summary only repeats what was counted."""
    verbs, words = ", ".join(theme.verbs) or "ask", ", ".join(theme.words[:6]) or theme.name
    summary = f"Users {verbs}; they speak of {words}."
    return ThemeSource(
        kind="tasks", name=theme.name, summary=summary, requests=tuple(requests), origin=path.name,
        licence=find_licence(path.parent),
    )  # fmt: skip


def shorten_request(text: str) -> str:
    """Return the beginning of a request."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
