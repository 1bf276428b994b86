"""What a search found, as texts: servers answer with lists of objects, JSON in a text, or blocks of plain text."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from envgen.sources.documents import FEWEST, bounded, text_of_html
from trajectory import JsonValue

_PAGE = re.compile(r"(?:URL: ?|Link: ?)?(?P<page>https?://[^\s<>\"')\]]+)", re.I)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_APART = re.compile(r"\n\s*\n|\n\s*-{3,}\s*\n")
_TITLES = frozenset({"title", "name", "heading"})
_COUNT = re.compile(r"\s*(found|showing) \d+[\w ]*results?\b[^\n]*\n", re.I)
_LONGEST_MESSAGE = 800
"""Letters up to which a text that is all of an answer may be a message rather than a result."""
_MESSAGE = re.compile(r"(an )?(unexpected )?error\b|no (search )?results?\b|nothing (was )?found|failed to\b", re.I)
_DECODER = json.JSONDecoder()
"""orjson reads no value that others follow."""


class Hit(NamedTuple):
    """One result."""

    text: str
    """On one line, cut at the end of a sentence where it is longer than a passage."""
    page: str
    """Address where it was found; empty if the server does not say."""


def hits_of(content: JsonValue) -> list[Hit]:
    """The results in an answer, in its order; what says less than a passage must is left out."""
    made = [_hit(item) for item in _items(content)]
    return [hit for hit in made if len(hit.text) >= FEWEST]


def message_in(content: JsonValue) -> str:
    """What a server says in place of results, though it calls it none of its errors; empty if there are results."""
    if isinstance(content, dict) and isinstance(content.get("error"), str) and not _lists(content):
        return " ".join(content["error"].split())
    if isinstance(content, dict) and len(content) == 1:
        content = next(iter(content.values()))
    text = " ".join(content.split()) if isinstance(content, str) else ""
    return text if len(text) <= _LONGEST_MESSAGE and _MESSAGE.match(text) and not _PAGE.search(text) else ""


def _items(content: JsonValue) -> list[JsonValue]:
    if isinstance(content, str):
        parsed = _parsed(content)
        return _blocks(content) if parsed is None else _items(parsed)
    if isinstance(content, list):
        return [part for item in content for part in (_blocks(item) if isinstance(item, str) else [item])]
    if not isinstance(content, dict):
        return []
    lists = _lists(content)
    if lists:
        return _items(lists[0])
    only = next(iter(content.values())) if len(content) == 1 else None
    return _items(only) if isinstance(only, str | dict) else [content]


def _parsed(text: str) -> JsonValue | None:
    """JSON that stands in a text: a value, or one after another where a server gives a block for each result."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    found, rest = list[JsonValue](), text.strip()
    while rest:
        try:
            value, end = _DECODER.raw_decode(rest)
        except ValueError:
            return None
        found.append(value)
        rest = rest[end:].lstrip()
    return found[0] if len(found) == 1 else found


def _lists(content: JsonValue) -> list[list[JsonValue]]:
    """Lists of results in an object, those nearer to its top first."""
    level, found = [content], list[list[JsonValue]]()
    while level:
        values = [value for one in level for value in one.values()]
        found += [value for value in values if isinstance(value, list) and any(isinstance(one, dict) for one in value)]
        level = [value for value in values if isinstance(value, dict)]
    return found


def _blocks(text: str) -> list[JsonValue]:
    """Paragraphs of a text; one that says too little, or is a heading that ends in an address, goes with the next."""
    found, waiting = list[JsonValue](), ""
    for part in _APART.split(_COUNT.sub("", text, count=1)):
        waiting = f"{waiting} {part.strip()}".strip()
        addresses = list(_pages(part))
        if len(_PAGE.sub("", waiting)) >= FEWEST and not (addresses and part.strip().endswith(addresses[-1])):
            found.append(waiting)
            waiting = ""
    return [*found, waiting] if waiting else found


def _hit(item: JsonValue) -> Hit:
    said = _PAGE.sub("", " ".join(_said(item)))
    if _TAG.search(said):
        said, _ = text_of_html(said)
    page = next(_pages(item), "")
    return Hit(next(bounded([" ".join(said.split())]), ""), page)


def _said(value: JsonValue, key: str = "") -> Iterator[str]:
    """Words of a result: titles, and whatever has more than one word; no addresses, numbers, ids."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _said(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from _said(part, key)
    elif isinstance(value, str) and key in _TITLES and value.strip():
        yield value if value.rstrip().endswith((".", "!", "?")) else f"{value.rstrip()}."
    elif isinstance(value, str) and " " in value.strip():
        yield value


def _pages(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield from (found["page"] for found in _PAGE.finditer(value))
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _pages(part)
