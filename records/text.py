"""Texts for people: foreign errors on one line, long texts cut, terminal codes spelled out, hints at misspelt names."""

import json
import re
from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_ERROR = 1000
"""Characters of an error that is printed; the middle of a longer one is left out."""
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def escape_controls(text: str) -> str:
    r"""Spell out what a terminal would obey in place of show: `\x1b`, `\u202e`. Tabs and line ends stay.

    Control characters of both sets, directions of writing, and halves of characters, which no terminal can print.
    """
    return _CONTROLS.sub(_spell_out, text)


def _spell_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def dump_json_line(value: object) -> str:
    """Return JSON on one line, whatever a reader takes for a line end; other letters stay as they are."""
    text = json.dumps(value, ensure_ascii=False)
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def format_error_line(text: object) -> str:
    """Return an error as one line that a terminal can show; the middle of a long one is left out."""
    line = escape_controls(to_one_line(text))
    if len(line) <= LONGEST_ERROR:
        return line
    return f"{line[: LONGEST_ERROR * 2 // 3]} … {line[-LONGEST_ERROR // 3 :]}"


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
