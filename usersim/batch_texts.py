"""Texts about many things at once: their names in one noun phrase, and in the question for a yes."""

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trajsmith.phrasing import (
    BatchRequest,
    capitalize_first,
    get_language,
    join_items,
    join_words,
    pick_text,
    pluralize,
)
from trajsmith.phrasing.phrasebook import EntityPhrases

_LAST_WORD = re.compile(r"\S*$")
_FIRST_WORD = re.compile(r"^\S*")
_PART_OF_NAME = re.compile(r"(?:(?:[^a-z\s]\S{0,60}|the|an?)\s+){1,20}$")
"""Words at the end of a beginning that belong to what follows: articles and capitalised words."""


def join_names(names: Sequence[str], entity: EntityPhrases) -> str:
    """Join names of things, with what they share said once: "the orders from 3 May, 8 May and 9 May"."""
    prefix = _LAST_WORD.sub("", _find_prefix(names))
    suffix = _FIRST_WORD.sub("", _find_prefix([name[::-1] for name in names])[::-1])
    noun, plural = re.compile(rf"\b{re.escape(entity.noun)}\b"), entity.plural or pluralize(entity.noun)
    if get_language().confirms.these_things and len(set(names)) > 1:
        if noun.search(prefix):
            shared = _PART_OF_NAME.sub("", prefix)
            return noun.sub(plural, shared, count=1) + _join([name[len(shared) :] for name in names])
        if noun.fullmatch(suffix.strip()) and prefix.count(" ") == 1:
            return f"{prefix}{_join([name[len(prefix) : -len(suffix)] for name in names])} {plural}"
    return _join(names)


def _find_prefix(texts: Sequence[str]) -> str:
    """Return what all texts begin with."""
    first, last = min(texts), max(texts)
    length = next(
        (place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first)
    )
    return first[:length]


def _join(names: Sequence[str]) -> str:
    return join_items(names) if any("," in name for name in names) else join_words(names)


def put_names(action: str, names: str, entity: EntityPhrases) -> str:
    """Put names in the place of "all of these orders"; behind it in brackets where they do not fit there."""
    pattern = get_language().confirms.these_things
    plural = re.escape(entity.plural or pluralize(entity.noun))
    pointed = re.search(pattern.format(plural), action) if pattern and "; " not in names else None
    if pointed is None:
        return f"{action} ({names})"
    return f"{action[: pointed.start()]}{names}{action[pointed.end() :]}"


def render_list(
    batches: Sequence[BatchRequest], names: Sequence[str], values: Mapping[str, Any], closing: str, rng: random.Random
) -> str:
    """Return a list with what a batch says of each thing, under one opening; empty where it says nothing.

    Args:
        batches: Requests that a batch may be.
        names: Name of each thing.
        values: Slots of the sentences; `outs` are the results.
        closing: Sentence after the list; may be empty.
        rng: Source of randomness.
    """
    opening = pick_text([text for batch in batches for text in batch.opening], dict(values), rng)
    templates = [text for batch in batches for text in batch.each]
    for template in rng.sample(templates, len(templates)) if opening else []:
        rows = zip(names, values["outs"], strict=True)
        lines = [pick_text([template], {**values, "name": name, "out": out}, rng) for name, out in rows]
        if all(lines):
            return "\n".join(
                [str(opening), *(f"- {capitalize_first(line)}" for line in lines if line), closing]
            ).rstrip()
    return ""
