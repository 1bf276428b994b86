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

from trajsmith.phrasing.languages import get_language
from trajsmith.phrasing.phrasebook import EntityPhrases, Phrasebook
from trajsmith.phrasing.value_formatting import humanize
from trajsmith.phrasing.words import pluralize

Form = Literal["same", "new", "earlier", "superlative", "ordinal", "described", "bare", "open"]

_WORDS = re.compile(r"[^\W_]+")


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
            rf"\b(?P<det>{get_language().references.determiners})\s+(?P<pre>(?:(?!(?:{get_language().references.determiners}|and|or|to|from|for|with|that)\b)"
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
        return following is not None and following.group(0).lower() in get_language().references.about_it

    def _read(
        self,
        text: str,
        match: re.Match[str],
        before: Sequence[re.Match[str]],
        following: Sequence[re.Match[str]],
    ) -> ReferringExpression:
        stop = get_language().references.stop.search(text, match.end())
        end = stop.start() if stop else len(text)
        part = following and get_language().references.within.match(text, match.end(), following[0].start()) is not None
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
            statement=bool(get_language().references.statement.match(text, match.end()))
            and _OPENS.search(text, 0, match.start()) is not None
            and match["det"].lower() == "the",
            within=bool(before)
            and get_language().references.within.match(text, before[-1].end(), match.start()) is not None,
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
    if get_language().references.open.match(determiner):
        return "open", "", "", 0
    with_extreme = get_language().references.with_extreme.match(rest)
    if with_extreme:
        word = with_extreme.group(1).lower()
        large = word in get_language().references.large
        return "superlative", "largest" if large else "smallest", with_extreme.group(2).strip().lower(), 0
    if get_language().references.earlier.search(post):
        return "earlier", "", "", 0
    if get_language().references.new.search(pre) or get_language().references.new.search(post):
        return "new", "", "", 0
    extreme = get_language().references.extreme.search(pre)
    if extreme:
        word = extreme.group(1).lower()
        measure = (
            "date"
            if word in get_language().references.dated
            else "price"
            if word in get_language().references.priced
            else word
        )
        return "superlative", "largest" if word in get_language().references.largest else "smallest", measure, 0
    ordinal = get_language().references.ordinal.search(pre)
    if ordinal:
        return "ordinal", "", "", get_language().references.ordinals.index(ordinal.group(1).lower()) + 2
    if get_language().references.same.match(determiner):
        return "same", "", "", 0
    content = [word.lower() for word in _WORDS.findall(pre) if word.lower() not in get_language().references.fillers]
    return ("described" if content or _narrows(post) else "bare"), "", "", 0


_OPENS = re.compile(r"(?:^|[.!?:;])\W*$")


def _narrows(post: str) -> bool:
    return get_language().references.narrowing.match(post) is not None


def _list_nouns(entity: EntityPhrases) -> tuple[str, ...]:
    """The noun, and those that the phrases for the user's own one use: "my stay" of hotel bookings."""
    nouns = [entity.noun.lower()]
    for phrase in entity.own:
        words = phrase.lower().split()
        if len(words) in (2, 3) and words[0] in ("my", "the", "that") and all(word.isalpha() for word in words):
            nouns.append(" ".join(words[1:]))
    return tuple(dict.fromkeys(nouns))
