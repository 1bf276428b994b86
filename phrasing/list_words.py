"""Words by which the layout of lists knows their parts, in each language."""

import re
from dataclasses import dataclass

Pattern = re.Pattern[str]


@dataclass(frozen=True)
class ListWords:
    """Parts of sentences that hold lists."""

    clause: Pattern
    """A part of a sentence that could be one of its own."""
    lead: Pattern
    """Words before the first item of a list that a colon may follow."""
    leads: dict[str, str]
    """Such words to what stands before the colon in their place."""
    item_start: Pattern
    """What an item begins with that does not belong in a line of its own."""
    dated_item: Pattern
    """The beginning of an item that is about a day, which is its first group."""
    dated_lead: str
    """What stands before such items."""


ENGLISH = ListWords(
    clause=re.compile(
        r"(?:^|\s)(?:is|isn't|are|aren't|was|were|has|have|had|can|can't|could|will|won't|would|should|may|must|runs?|ran"
        r"|works?|opens?|takes?|took|costs?|goes|comes?|came|needs?|makes?|made|brings?|brought|covers?|stays?|starts?|ends"
        r"|wants?|gets?|leaves|connects?|gives|gave|shows?|says?|belongs?|expires?|counts?|put|please)(?=[\s,.]|$)"
        r"|\b(?:[Ii]t|[Tt]hat|[Tt]here|[Hh]ere|[Yy]ou|[Tt]hey|[Ww]e|I)'(?:s|re|ll|ve|d|m)\b"
    ),
    lead=re.compile(
        r"There's(?= )|On offer there's(?= )|(?!On )(?:\w+(?:'\w+)? ){0,6}?"
        r"(?:have|has|find|found|see|from|offers?|shows?|lists|runs|are|up|got|fit)(?= (?:the |an? |[£\"\d]|[A-Z]))"
    ),
    leads={
        "There's": "This is what there is",
        "On offer there's": "On offer",
        "You have": "This is what you have",
        "We have": "This is what we have",
        "I found": "This is what I found",
    },
    dated_item=re.compile(
        r"[Oo]n ((?:[A-Z][a-z]+day )?\d+ [A-Z][a-z]+(?: \d{4})?),? (?:you have |there's )?(?=[\"A-Z])"
    ),
    dated_lead="Here's what's on:",
    item_start=re.compile(r"^(?:the |then |\d\. |on (?=\d|[MTWFS][a-z]+day\b))"),
)
GERMAN = ListWords(
    clause=re.compile(
        r"(?:^|\s)(?:ist|sind|war|waren|wird|werden|hat|haben|kann|können|kostet|kosten|kommt|geht|gilt|läuft|bleibt"
        r"|beträgt|steht|liegt|fährt|reicht|braucht|macht|bitte)(?=[\s,.]|$)",
        re.IGNORECASE,
    ),
    lead=re.compile(r"(?!)"),
    leads={},
    dated_item=re.compile(r"(?!)"),
    dated_lead="",
    item_start=re.compile(r"^dann "),
)
LIST_WORDS: dict[str, ListWords] = {"en": ENGLISH, "de": GERMAN}
