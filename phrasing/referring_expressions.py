"""Referring expressions in a text: which noun, in which form, with which words that narrow it down.

Forms, as a reader tells them apart:

* `same`: "that order", "the same order", "it" — what was talked about last;
* `new`: "the new order", "the order from just now" — what was made in the conversation;
* `earlier`: "the order from before" — something that was talked about;
* `superlative`: "my most recent order", "the account with the lowest balance";
* `ordinal`: "the second order", "the last one";
* `described`: "the order from 3 March", "my Travel Account" — narrowed by words before or after the noun;
* `bare`: "my order", "the event" — nothing but the noun;
* `open`: "one of my orders", "an order" — left open, or made now.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trajsmith.phrasing.phrasebook import EntityPhrases, Phrasebook
from trajsmith.phrasing.value_formatting import humanize
from trajsmith.phrasing.words import pluralize

Form = Literal["same", "new", "earlier", "superlative", "ordinal", "described", "bare", "open"]

_DETERMINERS = (
    r"one of (?:the|my|our|his|her|their|your|these|those)|the same|the|that|this|my|our|his|her|their|your|"
    r"an|a|any|another|some|each|every|no"
)
_OPEN = re.compile(r"one of|an?$|any$|another$|some$|each$|every$|no$", re.IGNORECASE)
_SAME = re.compile(r"(?:the same|that|this)$", re.IGNORECASE)
_NEW = re.compile(
    r"\bnew\b|\bfrom just now\b|\b(?:i|you|we)(?:'ve| have)? just (?:\w+ed|made|set up|put)\b", re.IGNORECASE
)
_EARLIER = re.compile(
    r"^\W*(?:from|of) (?:before|earlier)\b|^\W*(?:we|i) (?:spoke|talked) (?:of|about)\b", re.IGNORECASE
)
_LARGEST = (
    "most recent", "latest", "newest", "last", "most expensive", "priciest", "dearest", "largest", "biggest", "highest",
    "longest", "greatest", "warmest", "heaviest",
)  # fmt: skip
_SMALLEST = (
    "oldest", "earliest", "first", "cheapest", "least expensive", "smallest", "lowest", "shortest", "coldest",
    "lightest", "next",
)  # fmt: skip
_DATED = frozenset({"most recent", "latest", "newest", "last", "oldest", "earliest", "first", "next"})
_PRICED = frozenset({"most expensive", "priciest", "dearest", "cheapest", "least expensive"})
_EXTREME = re.compile(rf"\b({'|'.join((*_LARGEST, *_SMALLEST))})\b", re.IGNORECASE)
_WITH_EXTREME = re.compile(
    r"^\W*(?:with|that has|at) (?:the )?(highest|largest|biggest|longest|most|lowest|smallest|shortest|least|fewest)"
    r" ([\w -]{2,30})",
    re.IGNORECASE,
)
_ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_ORDINAL = re.compile(rf"\b({'|'.join(_ORDINALS)})\b", re.IGNORECASE)
_ABOUT_IT = frozenset({
    "number", "numbers", "name", "names", "id", "ids", "code", "codes", "list", "lists", "details", "status", "history",
    "limit", "balance", "address", "settings", "profile", "type", "credit",
})  # fmt: skip
"""Nouns that make another noun of the one before them: "the account number" is no account."""
_STOP = re.compile(
    r"[;!?]|\.(?=\s|$)|,(?=\s+(?:I\b|[a-z])|$)|\b(?:[Bb]ecause|[Aa]nd could|[Aa]nd can|[Ss]o please|[Ii]f so)\b"
)
"""The end of a clause; a comma before a capital goes on in a list of names."""
_WORDS = re.compile(r"[^\W_]+")
_FILLERS = frozenset({"new", "same", "own", "other", "whole", "entire", "please", "again", "too", "now", "as", "well"})


@dataclass(frozen=True, slots=True)
class ReferringExpression:
    """One noun phrase that may stand for an entity."""

    text: str
    """The phrase, up to the next phrase or the end of the clause."""
    noun: str
    kinds: tuple[str, ...]
    """Kinds of entities (parameters that identify them) that the noun may stand for."""
    form: Form
    start: int
    narrow: str
    """The phrase without its determiner."""
    clause: str
    """The phrase and the rest of its clause: another phrase may be part of the description."""
    within: bool = False
    """It belongs to the description of the phrase before it: "the line on the Brook plan"."""
    statement: bool = False
    """A sentence begins with it that says something of what is asked for: "The trip starts in Lunna"."""
    extreme: Literal["largest", "smallest", ""] = ""
    measure: str = ""
    """Of a superlative, what is compared: "date", "price", or the label that the words give."""
    ordinal: int = 0


class NounLexicon:
    """Nouns of one environment, and the kinds of entities that they stand for."""

    def __init__(self, kinds: Mapping[str, EntityPhrases]) -> None:
        nouns: dict[str, list[str]] = {}
        for kind, entity in kinds.items():
            for noun in _list_nouns(entity):
                if kind not in nouns.setdefault(noun, []):
                    nouns[noun].append(kind)
        self.kinds = {noun: tuple(of) for noun, of in nouns.items()}
        self._plurals = {(entity.plural or pluralize(entity.noun)).lower() for entity in kinds.values()}
        self._plurals |= {pluralize(noun) for noun in nouns}
        longest_first = sorted({*self.kinds, *self._plurals}, key=lambda noun: (-len(noun), noun))
        alternatives = "|".join(map(re.escape, longest_first)) or r"(?!)"
        self._phrase = re.compile(
            rf"\b(?P<det>{_DETERMINERS})\s+(?P<pre>(?:(?!(?:{_DETERMINERS}|and|or|to|from|for|with|that)\b)"
            rf"(?:\"[^\"]{{1,60}}\"|[^\s,;!?\"]*[^\s,;!?\".])\s+){{0,6}}?)(?P<noun>{alternatives})\b(?!['’-]\w)",
            re.IGNORECASE,
        )

    @classmethod
    def of(cls, phrasebook: Phrasebook, others: Iterable[str] = ()) -> "NounLexicon":
        """Return the lexicon of a phrasebook; kinds that it has no words for are named by their parameter."""
        kinds = dict(phrasebook.entities)
        for kind in others:
            noun = humanize(re.sub(r"_?(id|ids|uuid|number|code|key|ref)$", "", kind)).lower()
            if kind not in kinds and noun:
                kinds[kind] = EntityPhrases(noun=noun)
        return cls(kinds)

    def find(self, text: str) -> list[ReferringExpression]:
        """Return the referring expressions of a text, in order; plurals stand for no single entity."""
        matches = [match for match in self._phrase.finditer(text) if not self._is_other(text, match)]
        return [
            self._read(text, match, matches[max(0, number - 1) : number], matches[number + 1 : number + 2])
            for number, match in enumerate(matches)
            if match["noun"].lower() in self.kinds or match["det"].lower().startswith("one of")
        ]

    @staticmethod
    def _is_other(text: str, match: re.Match[str]) -> bool:
        following = _WORDS.match(text, match.end() + 1)
        return following is not None and following.group(0).lower() in _ABOUT_IT

    def _read(
        self,
        text: str,
        match: re.Match[str],
        before: Sequence[re.Match[str]],
        following: Sequence[re.Match[str]],
    ) -> ReferringExpression:
        stop = _STOP.search(text, match.end())
        end = stop.start() if stop else len(text)
        part = following and _WITHIN.match(text, match.end(), following[0].start()) is not None
        near = min([end, *(other.end() if part else other.start() for other in following)])
        noun = match["noun"].lower()
        kinds = self.kinds.get(noun) or self._of_plural(noun)
        pre, post = match["pre"].strip(), text[match.end() : near]
        form, extreme, measure, ordinal = _read_form(match["det"], pre, post, text[match.end() : end])
        return ReferringExpression(
            text=text[match.start() : near].strip(),
            noun=noun,
            kinds=kinds,
            form=form,
            start=match.start(),
            narrow=f"{pre} {noun}{post}".strip(),
            clause=f"{pre} {noun}{text[match.end() : end]}".strip(),
            statement=bool(_STATEMENT.match(text, match.end()))
            and _OPENS.search(text, 0, match.start()) is not None
            and match["det"].lower() == "the",
            within=bool(before) and _WITHIN.match(text, before[-1].end(), match.start()) is not None,
            extreme=extreme,
            measure=measure,
            ordinal=ordinal,
        )

    def _of_plural(self, plural: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kind for noun, of in self.kinds.items() if pluralize(noun) == plural for kind in of))


def _read_form(
    determiner: str, pre: str, post: str, rest: str
) -> tuple[Form, Literal["largest", "smallest", ""], str, int]:
    """Return form, extreme, measure and ordinal of a phrase."""
    if _OPEN.match(determiner):
        return "open", "", "", 0
    with_extreme = _WITH_EXTREME.match(rest)
    if with_extreme:
        word = with_extreme.group(1).lower()
        large = word in ("highest", "largest", "biggest", "longest", "most")
        return "superlative", "largest" if large else "smallest", with_extreme.group(2).strip().lower(), 0
    if _EARLIER.search(post):
        return "earlier", "", "", 0
    if _NEW.search(pre) or _NEW.search(post):
        return "new", "", "", 0
    extreme = _EXTREME.search(pre)
    if extreme:
        word = extreme.group(1).lower()
        measure = "date" if word in _DATED else "price" if word in _PRICED else word
        return "superlative", "largest" if word in _LARGEST else "smallest", measure, 0
    ordinal = _ORDINAL.search(pre)
    if ordinal:
        return "ordinal", "", "", _ORDINALS.index(ordinal.group(1).lower()) + 2
    if _SAME.match(determiner):
        return "same", "", "", 0
    content = [word.lower() for word in _WORDS.findall(pre) if word.lower() not in _FILLERS]
    return ("described" if content or _narrows(post) else "bare"), "", "", 0


_STATEMENT = re.compile(
    r"\s+(?:is|are|was|has|have|starts|ends|begins|should|must|will|needs|lasts|goes|works|would)\b", re.IGNORECASE
)
_OPENS = re.compile(r"(?:^|[.!?:;])\W*$")
_WITHIN = re.compile(r"[^.,;!?]{0,40}\b(?:on|with|in|of|at|from)\s*$", re.IGNORECASE)
_NARROWING = re.compile(
    r"^\s*(?:\"|(?:from|on|with|that|which|where|called|named|whose|who|arriving|leaving|in|at|of|for|ending|due|to|I|we|they|is|has|runs|by)\b)|"
    r"^\s*[A-Z0-9\"£$€]",
)


def _narrows(post: str) -> bool:
    return _NARROWING.match(post) is not None


def _list_nouns(entity: EntityPhrases) -> tuple[str, ...]:
    """The noun, and those that the phrases for the user's own one use: "my stay" of hotel bookings."""
    nouns = [entity.noun.lower()]
    for phrase in entity.own:
        words = phrase.lower().split()
        if len(words) in (2, 3) and words[0] in ("my", "the", "that") and all(word.isalpha() for word in words):
            nouns.append(" ".join(words[1:]))
    return tuple(dict.fromkeys(nouns))
