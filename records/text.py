"""Texts for people: foreign errors on one line, long texts cut, and hints at misspelt names."""

from collections.abc import Iterable
from difflib import get_close_matches


def to_one_line(text: object, limit: int | None = None) -> str:
    """Return a text, such as that of a foreign error, on one line; beyond `limit` characters it is cut off with "…"."""
    line = " ".join(str(text).split())
    return line if limit is None or len(line) <= limit else f"{line[:limit]}…"


def truncate_text(text: str, limit: int) -> str:
    """Return the first `limit` characters of a text, with the number of those that are left out."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"


def suggest_names(
    wanted: str, names: Iterable[str], most: int = 1, cutoff: float = 0.6, first: Iterable[str] = ()
) -> str:
    """Return `did you mean "..."?` with the names that are spelt alike, best first; an empty text if none is.

    Args:
        cutoff: Likeness from which a name is suggested, 0 to 1.
        first: Names that come before those.
    """
    close = list(dict.fromkeys([*first, *get_close_matches(wanted, list(names), n=most, cutoff=cutoff)]))[:most]
    return "did you mean " + " or ".join(f'"{name}"' for name in close) + "?" if close else ""
