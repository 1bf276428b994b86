"""German forms: dates, amounts, articles and cases.

Noun phrases of a German phrasebook are written as objects (accusative). The filters `nom` and `dat` of templates give
the other cases, by the first word and the adjectives after it: "den alten Auftrag", "der alte Auftrag".
"""

import re
from collections.abc import Iterable
from datetime import date, datetime
from typing import Literal

from trajsmith.phrasing.languages.english_grammar import EnglishGrammar, Noun, is_near_day
from trajsmith.phrasing.words import word_set

MONTHS = (
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
)
WEEKDAYS = ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag")
_YEAR = re.compile(rf"(\d{{1,2}})\. ({'|'.join(MONTHS)}) (\d{{4}})")
_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?:\.\d{3})+(?:,\d+)?(?![\w]|[.,]\d)|(?<![\w.,])\d+,\d+(?![\w]|[.,]\d)")
_AMOUNT = re.compile(
    r"[£$€]\s?(\d[\d,]{0,30}(?:\.\d{1,30})?)|(\d[\d,]{0,30}(?:\.\d{1,30})?)\s?(?:[€£]|(?:Euro|Dollar|Pfund)\b)", re.I
)
_DURATIONS = {
    1: "eine Minute", 30: "eine halbe Stunde", 60: "eine Stunde", 90: "anderthalb Stunden", 120: "zwei Stunden",
}  # fmt: skip
_WHOLE_AMOUNT = re.compile(r"(\d),00 £")
_ADJECTIVE = re.compile(r"[a-zäöüß]+(?:e|en)")
_DATIVE = {
    "die": "der", "das": "dem", "den": "dem",
    "diese": "dieser", "dieses": "diesem", "diesen": "diesem", "dieselbe": "derselben", "dasselbe": "demselben",
    "denselben": "demselben", "meine": "meiner", "mein": "meinem", "meinen": "meinem", "eine": "einer",
    "eines": "einem", "einen": "einem", "Ihre": "Ihrer", "Ihr": "Ihrem", "Ihren": "Ihrem",
}  # fmt: skip
_NOMINATIVE = {
    "den": "der", "diesen": "dieser", "denselben": "derselbe", "meinen": "mein", "einen": "einer", "Ihren": "Ihr",
}  # fmt: skip
_FORMS = {
    "f": {"the": "die", "this": "diese", "same": "dieselbe", "one": "eine", "which": "Welche"},
    "n": {"the": "das", "this": "dieses", "same": "dasselbe", "one": "eines", "which": "Welches"},
    "m": {"the": "den", "this": "diesen", "same": "denselben", "one": "einen", "which": "Welchen"},
}
_FEMININE = re.compile(r"(?:ung|heit|keit|zahl|nummer|menge|kategorie|garantie|karte|gebühr|rate|adresse)$", re.I)
"""Labels that take "der" after "mit"; the others take "dem"."""
_SMALL = word_set(
    "ich mein meine meinen meinem meiner die das der den dem bitte können könnten kannst würden wie wo wer was wann "
    "welche welches welcher welchen ist sind hat gibt es und dann danach jetzt dazu diese dieses für von mit auf in "
    "an zu noch außerdem im am da so"
)


class GermanGrammar(EnglishGrammar):
    """German forms; noun phrases are objects."""

    yes = "ja"
    no = "nein"
    conjunction = "und"
    alternative = "oder"

    def format_date(self, day: date) -> str:
        """Format a date: 3. März 2026."""
        return f"{day.day}. {MONTHS[day.month - 1]} {day.year}"

    def format_datetime(self, moment: datetime) -> str:
        """Format a moment: 3. März 2026 um 14:30 Uhr."""
        return f"{self.format_date(moment)} um {moment:%H:%M} Uhr"

    def format_weekday(self, day: date) -> str:
        """Format the day of the week: Dienstag."""
        return WEEKDAYS[day.weekday()]

    def format_money(self, amount: float) -> str:
        """Format an amount: 1.234,50 £."""
        return f"{_swap_marks(f'{amount:,.2f}')} £"

    def format_grouped(self, amount: float) -> str:
        """Format a number with one decimal at most and its thousands apart: 9.556,4."""
        return _swap_marks(super().format_grouped(amount))

    def format_minutes(self, minutes: int) -> str:
        """Format a number of minutes: 45 Minuten."""
        return _DURATIONS.get(minutes, f"{minutes} Minuten")

    def format_number(self, text: str) -> str:
        """Return a plain decimal number with a comma."""
        return text.replace(".", ",")

    def read_numbers(self, text: str) -> str:
        """Return a text with 1.234,50 as 1,234.50."""
        return _NUMBER.sub(lambda match: _swap_marks(match.group(0)), text)

    def find_amounts(self, text: str) -> list[float]:
        """Return the amounts of money in a text."""
        hits = _AMOUNT.findall(self.read_numbers(text))
        return [float((hit[0] or hit[1]).replace(",", "")) for hit in hits]

    def list_date_forms(self, day: date) -> list[str]:
        """List the spellings of a date in words, in lower case."""
        month = MONTHS[day.month - 1].lower()
        forms = [f"{day.day}. {name}" for name in (month, f"{month[:3]}.", month[:3])]
        return [
            *forms,
            f"{day.day}.{day.month}.",
            f"{day.day:02d}.{day.month:02d}.",
            f"{day.day}.{day.month}.{day.year}",
        ]

    def ask_for_oneself(self, sentence: str) -> str:
        """Return a request as it is: verbs such as "besorgen" are not used so."""
        return sentence

    def drop_near_years(self, text: str, now: date) -> str:
        """Return a text in which dates within half a year of now have no year, as people say them."""

        def shorten(match: re.Match[str]) -> str:
            try:
                day = date(int(match.group(3)), MONTHS.index(match.group(2)) + 1, int(match.group(1)))
            except ValueError:  # "33. Juli 2026", as a faulty agent may say it
                return match.group(0)
            return f"{match.group(1)}. {match.group(2)}" if is_near_day(day, now) else match.group(0)

        return _YEAR.sub(shorten, text)

    def drop_zero_pence(self, text: str) -> str:
        """Return a text in which whole amounts have no pence: 280 £."""
        return _WHOLE_AMOUNT.sub(r"\1 £", text)

    def say_place_once(self, text: str) -> str:
        """Return the text as it is."""
        return text

    def lower_first(self, text: str) -> str:
        """Return a sentence as it goes on after a comma: only small words lose their capital letter."""
        first = re.split(r"\W", text, maxsplit=1)[0]
        return text[:1].lower() + text[1:] if first.lower() in _SMALL else text

    def merge_states(self, text: str) -> str:
        """Return the text as it is."""
        return text

    def say_more(self, count: int) -> str:
        """Say how many rows of a list are left out."""
        return f"und {count} weitere"

    def to_nominative(self, phrase: str) -> str:
        """Return "den alten Auftrag" as "der alte Auftrag"."""
        first, _, rest = phrase.partition(" ")
        if first not in _NOMINATIVE:
            return phrase
        words = rest.split(" ")
        if _ADJECTIVE.fullmatch(words[0]) and words[0].endswith("en"):
            words[0] = words[0][:-1] if first != "meinen" else f"{words[0][:-2]}er"
        return f"{_NOMINATIVE[first]} {' '.join(words)}".rstrip()

    def to_dative(self, phrase: str) -> str:
        """Return "die neue Bestellung" as "der neuen Bestellung"."""
        first, _, rest = phrase.partition(" ")
        if first not in _DATIVE:
            return phrase
        words = rest.split(" ")
        if _ADJECTIVE.fullmatch(words[0]) and words[0].endswith("e"):
            words[0] = f"{words[0]}n"
        return f"{_DATIVE[first]} {' '.join(words)}".rstrip()

    def the(self, noun: Noun) -> str:
        """Refer to a thing: "die Bestellung"."""
        return self._refer(noun, "the")

    def that(self, noun: Noun) -> str:
        """Refer back to a thing: "diese Bestellung"."""
        return self._refer(noun, "this")

    def again(self, noun: Noun) -> tuple[str, ...]:
        """Refer to a thing that was spoken of last."""
        return (self._refer(noun, "this"), self._refer(noun, "same"))

    def from_before(self, noun: Noun) -> str:
        """Refer to a thing that has changed since it was shown."""
        return f"{self._refer(noun, 'the')} von vorhin"

    def new(self, noun: Noun) -> tuple[str, ...]:
        """Refer to a thing that was made in the conversation."""
        adjective = "neuen" if noun.gender == "m" else "neue"
        return (f"{_FORMS[noun.gender or 'n']['the']} {adjective} {noun.noun}", f"{self._refer(noun, 'the')} von eben")

    def pronoun(self, noun: Noun) -> str:
        """Return no pronoun: its case depends on the verb."""
        return ""

    def inside(self, noun: Noun, owner: str) -> str:
        """Refer to the only thing of its kind in another one."""
        return f"{self._refer(noun, 'the')} aus {self.to_dative(owner)}"

    def one_of(self, noun: Noun, plural: str, own: bool) -> str:
        """Refer to one of several things without saying which."""
        return f"{_FORMS[noun.gender or 'n']['one']} {'meiner' if own else 'der'} {plural}"

    def outer(self, label: str, words: str) -> str:
        """Say which one an enclosing thing is."""
        return f" ({label}: {words})"

    def which(self, noun: Noun) -> str:
        """Ask which thing is meant."""
        return f"{self._refer(noun, 'which')} meinen Sie?"

    def is_unmentioned(self, phrase: str) -> bool:
        """Return True for a phrase that can name a thing that nobody has mentioned."""
        return not phrase.startswith(("dies", "es", "sie"))

    def is_own(self, phrases: Iterable[str]) -> bool:
        """Return True if phrases speak of a thing as the user's own."""
        return any(phrase.startswith("mein") for phrase in phrases)

    def no_entry(self, label: str) -> str:
        """State that there is nothing under a label."""
        return f"{label or 'Eintrag'}: keine Angabe"

    def with_field(self, noun: Noun, label: str, value: str) -> str:
        """Refer to a thing by the value of a field: "den Artikel mit der Menge 2"."""
        return f"{self._refer(noun, 'the')} mit {'der' if _FEMININE.search(label) else 'dem'} {label} {value}"

    def superlative(self, noun: Noun, label: str, kind: Literal["date", "price", "value"], largest: bool) -> str:
        """Refer to the thing with the largest or smallest value of a field: "die neueste Bestellung"."""
        if kind == "value":
            article, word = "der" if _FEMININE.search(label) else "dem", "höchsten" if largest else "niedrigsten"
            return f"{self._refer(noun, 'the')} mit {article} {word} {label}"
        words = ("neueste", "älteste") if kind == "date" else ("teuerste", "günstigste")
        ending = "n" if noun.gender == "m" else ""
        return f"{_FORMS[noun.gender or 'n']['the']} {words[not largest]}{ending} {noun.noun}"

    @staticmethod
    def _refer(noun: Noun, kind: str) -> str:
        return f"{_FORMS[noun.gender or 'n'][kind]} {noun.noun}"


def stem_german(word: str) -> str:
    """Return a lower-case word without the commonest endings: "bestellte" and "bestellen" are one."""
    word = word.lower()
    for ending in ("test", "tet", "ten", "en", "em", "er", "es", "et", "te", "e", "n", "t", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def _swap_marks(text: str) -> str:
    return text.translate({ord("."): ",", ord(","): "."})
