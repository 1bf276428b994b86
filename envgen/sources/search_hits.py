"""Parse search results as texts: servers answer with lists of objects, JSON in a text, or plain text."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from trajsmith.envgen.sources.documents import MIN_LETTERS, extract_html_text, join_paragraphs
from trajsmith.records import JsonValue

_PAGE = re.compile(r"(?:URL: ?|Link: ?)?(?P<page>https?://[^\s<>\"')\]]+)", re.I)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_APART = re.compile(r"\n\s*\n|\n\s*-{3,}\s*\n")
_TITLES = frozenset({"title", "name", "heading"})
_COUNT = re.compile(r"(?<!\s)\s*(found|showing) \d+[\w ]*results?\b[^\n]*\n", re.I)
_LONGEST_MESSAGE = 800
"""Letters up to which a text that is all of an answer may be a message rather than a result."""
_MESSAGE = re.compile(r"(an )?(unexpected )?error\b|no (search )?results?\b|nothing (was )?found|failed to\b", re.I)
_DECODER = json.JSONDecoder()
"""orjson reads no value that others follow."""


class SearchHit(NamedTuple):
    """One search result."""

    text: str
    """On one line, cut at the end of a sentence where it is longer than a passage."""
    page: str
    """Address where it was found; empty if the server does not say."""


def parse_hits(content: JsonValue) -> list[SearchHit]:
    """Return the results in an answer, in its order, without those that are too short for a passage."""
    hits = [_build_hit(item) for item in _find_items(content)]
    return [hit for hit in hits if len(hit.text) >= MIN_LETTERS]


def find_server_message(content: JsonValue) -> str:
    """Return the message that a server sent in place of results; empty if there are results."""
    if isinstance(content, dict) and isinstance(content.get("error"), str) and not _find_lists(content):
        return " ".join(content["error"].split())
    if isinstance(content, dict) and len(content) == 1:
        content = next(iter(content.values()))
    text = " ".join(content.split()) if isinstance(content, str) else ""
    return text if len(text) <= _LONGEST_MESSAGE and _MESSAGE.match(text) and not _PAGE.search(text) else ""


def _find_items(content: JsonValue) -> list[JsonValue]:
    if isinstance(content, str):
        parsed = _parse_json(content)
        return _split_blocks(content) if parsed is None else _find_items(parsed)
    if isinstance(content, list):
        return [part for item in content for part in (_split_blocks(item) if isinstance(item, str) else [item])]
    if not isinstance(content, dict):
        return []
    lists = _find_lists(content)
    if lists:
        return _find_items(lists[0])
    only = next(iter(content.values())) if len(content) == 1 else None
    return _find_items(only) if isinstance(only, str | dict) else [content]


def _parse_json(text: str) -> JsonValue | None:
    """JSON that stands in a text: a value, or one after another where a server gives a block for each result."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    values, rest = list[JsonValue](), text.strip()
    while rest:
        try:
            value, end = _DECODER.raw_decode(rest)
        except ValueError:
            return None
        values.append(value)
        rest = rest[end:].lstrip()
    return values[0] if len(values) == 1 else values


def _find_lists(content: JsonValue) -> list[list[JsonValue]]:
    """Lists of results in an object, those nearer to its top first."""
    level, lists = [content], list[list[JsonValue]]()
    while level:
        values = [value for one in level for value in one.values()]
        lists += [value for value in values if isinstance(value, list) and any(isinstance(one, dict) for one in value)]
        level = [value for value in values if isinstance(value, dict)]
    return lists


def _split_blocks(text: str) -> list[JsonValue]:
    """Paragraphs of a text; one that says too little, or is a heading that ends in an address, goes with the next."""
    blocks, waiting = list[JsonValue](), ""
    for part in _APART.split(_COUNT.sub("", text, count=1)):
        waiting = f"{waiting} {part.strip()}".strip()
        addresses = list(_find_pages(part))
        if len(_PAGE.sub("", waiting)) >= MIN_LETTERS and not (addresses and part.strip().endswith(addresses[-1])):
            blocks.append(waiting)
            waiting = ""
    return [*blocks, waiting] if waiting else blocks


def _build_hit(item: JsonValue) -> SearchHit:
    text = _PAGE.sub("", " ".join(_find_hit_texts(item)))
    if _TAG.search(text):
        text, _ = extract_html_text(text)
    page = next(_find_pages(item), "")
    return SearchHit(next(join_paragraphs([" ".join(text.split())]), ""), page)


def _find_hit_texts(value: JsonValue, key: str = "") -> Iterator[str]:
    """Words of a result: titles, and whatever has more than one word; no addresses, numbers, ids."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _find_hit_texts(part, name)
    elif isinstance(value, list):
        for part in value:
            yield from _find_hit_texts(part, key)
    elif isinstance(value, str) and key in _TITLES and value.strip():
        yield value if value.rstrip().endswith((".", "!", "?")) else f"{value.rstrip()}."
    elif isinstance(value, str) and " " in value.strip():
        yield value


def _find_pages(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield from (match["page"] for match in _PAGE.finditer(value))
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _find_pages(part)
