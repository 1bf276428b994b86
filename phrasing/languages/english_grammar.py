"""Forms that depend on the language: dates, amounts, lists and references to things. English; others override them."""

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Literal, Protocol

from trajsmith.phrasing.day_shift import shift_within_calendar

_YEAR = re.compile(
    r"(\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December)) (\d{4})"
)
_ASKING_WORD = r"(?:who|what|which|when|where|how|whether|if|why|until|on which|in which|for how|by when|at what)\b"
_TO_OTHERS = (
    r"(?:\b(?:[Yy]ou|u)(?: could| can)?(?: please| pls| quickly| just| also| maybe)*"
    r"|\b(?:[Pp]lease|pls)(?: just| quickly| also)?|kind as to|\byou to)"
)
_GET = re.compile(rf"({_TO_OTHERS} get) (?=(?:an? |access\b|\d|some |more ))")
"""A request for something that somebody else is to get: "could you get a licence"."""
_TELL = re.compile(
    rf"({_TO_OTHERS}) (?:find out\b(?! about)|see (?={_ASKING_WORD})|check (?={_ASKING_WORD}(?<!whether)))"
)
"""A wish to know something that somebody else is to find out: "could you find out which cards I have"."""
_SHOW = re.compile(rf"({_TO_OTHERS}) see (?!if\b|whether\b|to\b|about\b)")
_KNOW = re.compile(
    r"\b((?:like|love|want|need|wanna|gotta|have)(?: also| just)?(?: to)?) find out"
    r"(?= (?:who|what|which|when|where|how|whether|until|on|in|for|by|at)\b)"
)
"""The same of what the speaker wants to know: "I'd like to find out which cards I have"."""
_CHECK = re.compile(
    rf"\b((?:like|love|want|need|wanna|gotta|have)(?: also| just)?(?: to)?) (?:check|go through|go over) "
    rf"(?={_ASKING_WORD}|the |my |our |all )"
)
"""The same of what is looked through for the speaker: "I'd like to check what's on", "I want to go over my bills"."""
_ASKING_START = re.compile(_ASKING_WORD)
_DURATIONS = {
    1: "a minute", 30: "half an hour", 60: "an hour", 90: "an hour and a half", 120: "two hours",
    150: "two and a half hours", 180: "three hours",
}  # fmt: skip
_PLACE_TWICE = re.compile(r"\b(in the [a-z]+(?: [a-z]+)?)\b([^.!?;\n]*?\b)\1\b")
_WHOLE_AMOUNT = re.compile(r"(£\d[\d,]*)\.00(?!\d)")
_AMOUNT = re.compile(
    r"[£$€]\s?(\d[\d,]{0,30}(?:\.\d{1,30})?)|(\d[\d,]{0,30}(?:\.\d{1,30})?)\s?(?:€|euros?|dollars?|pounds?)\b"
)

_PERSONS = frozenset({
    "person", "contact", "customer", "employee", "colleague", "guest", "member", "payee", "patient", "student",
    "traveller", "passenger", "user", "driver", "friend", "owner", "people", "everybody", "agent", "buyer", "client",
    "shopper", "consumer", "cardholder", "policyholder", "patron", "attendee", "participant", "registrant", "invitee",
    "learner", "pupil", "trainee", "mentee", "apprentice", "resident", "advisor", "representative", "lead", "prospect",
    "subscriber", "follower", "candidate", "applicant", "tester", "player", "operator", "requester",
})  # fmt: skip


_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z\"£])")
_CLAUSE_JOINT = re.compile(r",? and (?=the |your |card |the one |[A-Z\"])|[,;] (?=the |your |card |the one |[A-Z\"])")
_STATE = re.compile(
    r"(?P<subject>(?:[Tt]he |[Yy]our |[Cc]ard |[A-Z\"])(?:(?! is | are | has | was |, |: ).)+)"
    r" is (?P<state>(?!an? )[a-z]+(?: [a-z]+)?)"
)
"""A clause that tells the state of one thing: "your card ending in 4410 is blocked"."""

_NEAR_DAYS = {"today": 0, "yesterday": -1, "tomorrow": 1}
_NEAR_DAY = re.compile(r"\b(?:today|yesterday|tomorrow)\b")
_DATED = re.compile(
    r"\b(?P<link>on|from|of|until|for) (?P<day>\d{1,2} (?:January|February|March|April|May|June|July|August|September"
    r"|October|November|December) \d{4})\b(?P<at> at)?"
)
"""A date in a description of something: "the order from 3 March 2026", "my event on 3 March 2026 at 17:00"."""

NEAR = 183
"""Days within which a date needs no year: no other day of the same name is nearer."""
JUST_PAST = 31
"""Days within which a date of last year needs none, either; an older one sounds like the next day of that name."""


def is_near_day(day: date, now: date) -> bool:
    """Return True if people say a date without its year."""
    today = date(now.year, now.month, now.day)
    days = (day - today).days
    return -(NEAR if day.year == today.year else JUST_PAST) < days < NEAR


def _merge_sentence(sentence: str) -> str:
    if not sentence.endswith("."):
        return sentence
    clauses = [_STATE.fullmatch(clause) for clause in _CLAUSE_JOINT.split(sentence[:-1])]
    if len(clauses) < 2 or None in clauses:
        return sentence
    groups: dict[str, list[str]] = {}
    for clause in clauses:
        if clause is not None:
            groups.setdefault(clause["state"], []).append(clause["subject"])
    parts = [
        f"{_join_subjects(subjects)} {'are' if len(subjects) > 1 else 'is'} {state}"
        for state, subjects in groups.items()
    ]
    last = f"{', ' if len(parts) > 2 or len(clauses) > len(parts) else ' '}and {parts[-1]}" if len(parts) > 1 else ""
    return ", ".join(parts[:-1] or parts) + last + "."


def _join_subjects(subjects: Sequence[str]) -> str:
    return f"{', '.join(subjects[:-1])} and {subjects[-1]}" if len(subjects) > 1 else subjects[0]


class Noun(Protocol):
    """Noun for a thing, as the phrases of an entity give it."""

    @property
    def noun(self) -> str: ...
    @property
    def plural(self) -> str: ...
    @property
    def gender(self) -> str: ...


class EnglishGrammar:
    """English forms."""

    yes = "yes"
    no = "no"
    conjunction = "and"
    alternative = "or"

    def format_date(self, day: date) -> str:
        """Format a date: 3 March 2026."""
        return f"{day.day} {day:%B %Y}"

    def format_datetime(self, moment: datetime) -> str:
        """Format a moment: 3 March 2026 at 14:30."""
        return f"{self.format_date(moment)} at {moment:%H:%M}"

    def format_weekday(self, day: date) -> str:
        """Format the day of the week: Tuesday."""
        return f"{day:%A}"

    def format_money(self, amount: float) -> str:
        """Format an amount: £1,234.50."""
        return f"{'-' if amount < 0 else ''}£{abs(amount):,.2f}"

    def format_grouped(self, amount: float) -> str:
        """Format a number with one decimal at most and its thousands apart: 9,556.4."""
        return f"{amount:,.1f}".removesuffix(".0")

    def format_minutes(self, minutes: int) -> str:
        """Format a number of minutes as people say it: an hour and a half."""
        return _DURATIONS.get(minutes, f"{minutes} minutes")

    def format_number(self, text: str) -> str:
        """Return a plain decimal number as people write it."""
        return text

    def read_numbers(self, text: str) -> str:
        """Return a text with its numbers in English spelling, so that all numbers are read in one way."""
        return text

    def find_amounts(self, text: str) -> list[float]:
        """Return the amounts of money in a text."""
        return [float((hit[0] or hit[1]).replace(",", "")) for hit in _AMOUNT.findall(text)]

    def list_date_forms(self, day: date) -> list[str]:
        """List the spellings of a date in words, in lower case."""
        number, forms = day.day, []
        for name in (f"{day:%B}".lower(), f"{day:%b}".lower()):
            forms += [f"{number} {name}", f"{name} {number}", f"{number}. {name}", f"{number}th of {name}"]
            forms.append(f"{name} {number}th")
        return forms

    def ask_for_oneself(self, sentence: str) -> str:
        """Return a request as people say it of themselves: "could you get me a licence", "please tell me which cards I
        have", "I'd like to know which cards I have"."""
        sentence = _TELL.sub(
            lambda match: f"{match.group(1)} tell me{'' if match[0].endswith('out') else ' '}", sentence
        )
        sentence = _CHECK.sub(
            lambda match: f"{match[1]} {'know' if _ASKING_START.match(sentence, match.end()) else 'see'} ", sentence
        )
        return _KNOW.sub(r"\1 know", _SHOW.sub(r"\1 show me ", _GET.sub(r"\1 me ", sentence)))

    def drop_near_years(self, text: str, now: date) -> str:
        """Return a text in which dates within half a year of now have no year, as people say them."""

        def shorten(match: re.Match[str]) -> str:
            try:
                day = datetime.strptime(match.group(0), "%d %B %Y").date()
            except ValueError:  # "33 July 2026", as a faulty agent may say it
                return match.group(0)
            return match.group(1) if is_near_day(day, now) else match.group(0)

        return _YEAR.sub(shorten, text)

    def drop_zero_pence(self, text: str) -> str:
        """Return a text in which whole amounts have no pence, as people type them: £280."""
        return _WHOLE_AMOUNT.sub(r"\1", text)

    def say_place_once(self, text: str) -> str:
        """Return a text in which no sentence names a place twice: "in the study" and then "there"."""
        return _PLACE_TWICE.sub(r"\1\2there", text)

    def say_near_day(self, phrase: str, now: date) -> str:
        """Return a description in which yesterday, today and tomorrow are called so: "my order from today"."""
        today = date(now.year, now.month, now.day)
        words = {self.format_date(shift_within_calendar(today, by)): word for word, by in _NEAR_DAYS.items()}

        def rename(match: re.Match[str]) -> str:
            word = words.get(match["day"])
            if word is None:
                return match.group(0)
            link = {"on": "", "of": "from "}.get(match["link"], f"{match['link']} ")
            return f"{link}{word}{match['at'] or ''}"

        return _DATED.sub(rename, phrase)

    def find_near_days(self, text: str) -> list[int]:
        """Return how many days from today the days are that a text names by their distance: 0 for "today"."""
        return [_NEAR_DAYS[word] for word in _NEAR_DAY.findall(text.lower())]

    def lower_first(self, text: str) -> str:
        """Return a sentence as it goes on after a comma, but for "I"."""
        return text if re.match(r"I\b|[A-Z]{2}", text) else text[:1].lower() + text[1:]

    def merge_states(self, text: str) -> str:
        """Return a text in which things of one state share their verb, and the others are joined by "and": "The lamp is
        on, the radio is off, the fan is on." becomes "The lamp and the fan are on, and the radio is off."."""
        return " ".join(_merge_sentence(sentence) for sentence in _SENTENCE.split(text))

    def say_more(self, count: int) -> str:
        """Say how many rows of a list are left out."""
        return f"and {count} more"

    def join(self, parts: Sequence[str]) -> str:
        """Join words: "a, b and c"."""
        return self._join_with(parts, self.conjunction)

    def join_choices(self, parts: Sequence[str]) -> str:
        """Join what there is to choose from: "a, b or c"."""
        return self._join_with(parts, self.alternative)

    def _join_with(self, parts: Sequence[str], word: str) -> str:
        return "".join(parts) if len(parts) < 2 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"

    def to_nominative(self, phrase: str) -> str:
        """Return a noun phrase, given as an object, as a subject."""
        return phrase

    def to_dative(self, phrase: str) -> str:
        """Return a noun phrase, given as an object, as it stands after "with"."""
        return phrase

    def the(self, noun: Noun) -> str:
        """Refer to a thing: "the order"."""
        return f"the {noun.noun}"

    def that(self, noun: Noun) -> str:
        """Refer back to a thing: "that order"."""
        return f"that {noun.noun}"

    def again(self, noun: Noun) -> tuple[str, ...]:
        """Refer to a thing that was spoken of last."""
        return (f"that {noun.noun}",)

    def pronoun(self, noun: Noun) -> str:
        """Return what stands for the thing that was spoken of last; empty where none does for sure."""
        return "" if _PERSONS & set(noun.noun.lower().split()) else "it"

    def from_before(self, noun: Noun) -> str:
        """Refer to a thing that has changed since it was shown."""
        return f"the {noun.noun} from before"

    def new(self, noun: Noun) -> tuple[str, ...]:
        """Refer to a thing that was made in the conversation."""
        return (f"the new {noun.noun}", f"the {noun.noun} from just now")

    def inside(self, noun: Noun, owner: str) -> str:
        """Refer to the only thing of its kind in another one."""
        return f"the {noun.noun} in {owner}"

    def one_of(self, noun: Noun, plural: str, own: bool) -> str:
        """Refer to one of several things without saying which."""
        return f"one of {'my' if own else 'the'} {plural}"

    def outer(self, label: str, words: str) -> str:
        """Say which one an enclosing thing is."""
        return f" (the one with the {label} {words})"

    def which(self, noun: Noun) -> str:
        """Ask which thing is meant."""
        return f"Which {noun.noun} do you mean?"

    def is_unmentioned(self, phrase: str) -> bool:
        """Return True for a phrase that can name a thing that nobody has mentioned."""
        return not phrase.startswith(("that ", "it", "this "))

    def is_own(self, phrases: Iterable[str]) -> bool:
        """Return True if phrases speak of a thing as the user's own."""
        return any(phrase.startswith("my ") for phrase in phrases)

    def no_entry(self, label: str) -> str:
        """State that there is nothing under a label."""
        return f"no {label or 'entry'}"

    def with_field(self, noun: Noun, label: str, value: str) -> str:
        """Refer to a thing by the value of a field."""
        return f"the {noun.noun} with the {label} {value}"

    def superlative(self, noun: Noun, label: str, kind: Literal["date", "price", "value"], largest: bool) -> str:
        """Refer to the thing with the largest or smallest value of a field."""
        if kind == "date":
            return f"{'my most recent' if largest else 'my oldest'} {noun.noun}"
        if kind == "price":
            return f"the {'most expensive' if largest else 'cheapest'} {noun.noun}"
        return f"the {noun.noun} with the {'highest' if largest else 'lowest'} {label}"
