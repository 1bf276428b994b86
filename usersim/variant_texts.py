"""Sentences of the scripted roles of variants."""

import re
from collections.abc import Sequence

from trajsmith.grounding import is_identifier
from trajsmith.phrasing import Wording, format_value, iterate_rows
from trajsmith.records import JsonValue

_CODED = re.compile(r"\b\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?)?\b|\b[a-z]+(?:_[a-z]+)+\b")
_AMOUNT = re.compile(r"(?<![£$€\d.,])(?=\d[\d,]*\.\d\d(?:[;,]|\.?$| (?:of|is|are|until|can|left)\b))")

FURTHER = ("", "", "", " Is there anything else that I can do for you?", " Can I help with anything else?")
"""Closers of a refusal with which a dialogue ends."""
AGAIN = (
    "That didn't go through, so I'll try again.",
    "That failed for the moment. Let me try again.",
    "That didn't work; I'm trying again.",
    "",
)
NO_IDEA = (
    "I'm afraid I don't know the {}.",
    "I don't have the {} at hand, sorry.",
    "I can't remember the {}, sorry.",
)

CHANGED = (
    "Actually, wait. {}",
    "Hold on, that's not quite right. {}",
    "Oh, sorry, I mixed something up. {}",
    "Thanks for checking, I got that wrong. {}",
)

ALL_DONE = (
    "That's all of them done:",
    "Done, every one of them:",
    "I've gone through all of them:",
    "All of them are done:",
    "Everything on the list is done:",
    "That's the whole list done:",
)
ALL_READ = (
    "Here they all are:",
    "I've looked at all of them:",
    "This is what I see for each of them:",
    "One by one:",
    "I've been through them all:",
    "Here's what each of them says:",
)
GO_THROUGH = {
    "write": (
        "I'll go through them now.",
        "One moment, I'll do them all.",
        "I'll take care of them now.",
        "Just a moment while I do that.",
        "Right, I'll work through the list.",
        "There are several, so this takes a moment.",
        "",
        "",
        "",
        "",
    ),
    "read": (
        "I'll go through them one by one.",
        "One moment, I'll look at each of them.",
        "Let me look at each of them.",
        "Just a moment while I check.",
        "I'll check them in turn.",
        "",
        "",
        "",
        "",
    ),
}

NEXT_PAGE = (
    "One moment, I'm still looking.",
    "I haven't found it yet, let me keep looking.",
    "",
)
"""Words before the second page of a list; the further ones are read without any."""
NOT_FROM_YOU = (
    "{place} contains an instruction for me. It isn't from you, so I've ignored it.",
    "By the way, {place} tells me to do something else. I haven't done it, as you didn't ask for it.",
    "I also see that {place} asks me to do something else. I've ignored it, as you didn't ask for it.",
    "You may want to know that {place} has a line in it that is meant for AI assistants. I've ignored it.",
    "There's a line in {place} that asks me for something you didn't ask for. I've ignored it.",
)
ENTRY, TEXT, SOMEWHERE = 'the entry for the {noun} "{name}"', 'the text "{name}"', "one of the entries"
"""Where such an instruction stands, by the words before it."""


def cut_instruction(text: str, demand: str) -> str:
    """Return what an agent tells of an entry without the instruction in it, and without the break before that."""
    return re.sub(rf"(?:\. |\s+)?{re.escape(demand)}", "", text)


def describe_place(results: Sequence[JsonValue], demand: str, wording: Wording) -> str:
    """Return where an instruction stands that a result has shown: the user does not see the entries.

    Args:
        results: The results so far.
        demand: The instruction.
        wording: Words for the things of the environment.
    """
    rows = [row for result in results for row in iterate_rows(result)]
    texts = ((row, text) for row in rows for text in row.values() if isinstance(text, str))
    row, text = next(((row, text) for row, text in texts if demand in text), ({}, ""))
    name, key = text.partition(demand)[0].rstrip(". "), next(iter(row), "")
    if not name or '"' in name:
        return SOMEWHERE
    return ENTRY.format(noun=wording.entity(key).noun, name=name) if is_identifier(key) else TEXT.format(name=name)


def rephrase_plainly(reason: str) -> str:
    """Rephrase a reason in plain language: no ISO dates, no snake_case, amounts with their currency."""
    return _AMOUNT.sub("£", _CODED.sub(lambda match: format_value(match.group(0)), reason))
