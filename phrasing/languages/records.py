"""What the scripted language needs to know of a natural language: words, patterns, sentences and a grammar."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from trajsmith.phrasing.languages.english_grammar import EnglishGrammar

Pattern = re.Pattern[str]


@dataclass(frozen=True)
class QuestionPatterns:
    """Questions, requests and announcements."""

    closing: Pattern
    """Polite offers at the end of a message."""
    sentence_end: Pattern
    request: Pattern
    yes_or_no: Pattern
    confirm: Pattern
    wish: Pattern
    open: Pattern
    """A question that wants more than a yes."""
    announcement: Pattern


@dataclass(frozen=True)
class AgreementPatterns:
    """Requests for a yes and the answers to them."""

    piece_end: Pattern
    clause_end: Pattern
    asks: Pattern
    value_question: Pattern
    """Questions for a value or for further wishes that look like requests for a yes."""
    yes: Pattern
    no: Pattern
    changes: Pattern
    permission: Pattern
    consent: Pattern
    wants_question: Pattern


@dataclass(frozen=True)
class AnswerPatterns:
    """Values that people state by words."""

    opposites: tuple[tuple[set[str], set[str]], ...]
    """Words for true and words for false."""
    empty_words: frozenset[str]
    line_end: Pattern
    clause_end: Pattern
    token: Pattern
    negations: frozenset[str]
    no_longer: Pattern
    yes: Pattern
    no: Pattern
    nothing: Pattern
    courtesies: Pattern
    """Negations that answer nothing: "no problem", "you don't need to do anything"."""
    zero: Pattern
    dates: Pattern
    links: frozenset[str]
    """Words that may stand between a thing and its value: "Basic costs £5.00"."""
    unreal: Pattern
    """Words of a sentence that may tell what is not so: wishes, conditions, negations, comparisons."""
    part_end: Pattern
    """Where one part of a sentence about several things ends."""
    calendar: frozenset[str]
    what_time: Pattern
    placed: Pattern
    """What stands between a thing and its place: "single room at Hotel Astra"."""


@dataclass(frozen=True)
class FactPatterns:
    """Dates and superlatives in a text, and the words that anybody may use."""

    months: tuple[str, ...]
    day_month: Pattern
    month_day: Pattern
    plain: frozenset[str]
    latest: tuple[str, ...]
    first: tuple[str, ...]
    most: tuple[str, ...]
    least: tuple[str, ...]
    rate: Pattern
    """A number for each of something, with the noun of what is counted: "300 points per passenger"."""
    half: Pattern
    marks_names: bool = True
    """Only names have a capital letter inside a sentence, so that an unknown one is a made-up name."""


@dataclass(frozen=True)
class ActionPatterns:
    """Words by which an action is recognised."""

    word: Pattern
    many: Pattern
    proposes: Pattern
    """Sentences in which agents say what they would do."""
    generic: Pattern
    """Questions that leave it to the rest of the message what will happen."""
    empty: frozenset[str]
    root_length: int
    """Letters up to which two words are compared."""


@dataclass(frozen=True)
class ReferencePatterns:
    """Noun phrases that refer to things: forms, superlatives, and where they end."""

    determiners: str
    open: Pattern
    same: Pattern
    new: Pattern
    earlier: Pattern
    largest: tuple[str, ...]
    smallest: tuple[str, ...]
    dated: frozenset[str]
    priced: frozenset[str]
    extreme: Pattern
    with_extreme: Pattern
    ordinals: tuple[str, ...]
    ordinal: Pattern
    about_it: frozenset[str]
    """Nouns that make another noun of the one before them: "the account number" is no account."""
    stop: Pattern
    """The end of a clause; a comma before a capital goes on in a list of names."""
    fillers: frozenset[str]
    statement: Pattern
    within: Pattern
    narrowing: Pattern
    large: tuple[str, ...]
    """Words after "with the" that mean the largest."""


@dataclass(frozen=True)
class AgentSentences:
    """Sentences of the scripted agent that no voice has."""

    refused: str
    unclear: str
    undoes: tuple[str, ...]
    which_value: str
    which_of_many: str
    claims: tuple[str, ...]
    """What a faulty agent says of something that it has not done."""
    grave: Pattern
    """What a user tells that nobody passes over: illness, an accident, a death."""
    sympathy: tuple[str, ...]
    eager: Pattern
    """Words of an announcement that do not stand after a word on why the user came."""
    """What an agent says to that first."""


@dataclass(frozen=True)
class ConfirmationSentences:
    """Parts of a request for a yes."""

    this_thing: str
    """Pattern of a phrase that points at a thing, with a slot for its noun; empty where no name can take its place."""
    these_things: str
    """Pattern of a phrase that points at several things, with a slot for their noun; empty where no names can take its
    place."""
    singular: Pattern
    """What a phrase says of one thing and not of several."""
    second_person: str
    """Takes the place of what `first_person` matches."""
    speaker_words: frozenset[str]
    consequences: frozenset[str]
    policy_voice: Pattern
    """Reasons that cannot stand before a question to the user as they are."""
    first_person: Pattern


@dataclass(frozen=True)
class ReportSentences:
    """Parts of answers and reports."""

    second_person: str
    following: Pattern
    """An answer that says what something is."""
    as_for: str
    label_topic: str
    none: str
    also_shows: str
    found_text: str
    found_rows: str
    cut_list: tuple[str, ...]
    more_pages: tuple[str, ...]
    """What is said after all rows of a list that may go on, with their number."""
    found_fields: str
    done: str
    answer: str
    is_done: str
    topics: tuple[str, ...]
    starts_with_pronoun: Pattern
    pronoun: Pattern
    own: Pattern
    yes_or_no: Pattern
    """A yes or no with which an answer begins, where what follows stands by itself."""
    asks_yes_or_no: Pattern
    """A question that a yes or no answers."""
    asks_for_possibility: Pattern
    """A question whether something can be done, or which of two things holds: a yes or no would answer another one."""


@dataclass(frozen=True)
class UserSentences:
    """Sentences of the scripted user that no voice has."""

    means: tuple[str, ...]
    no: tuple[str, ...]
    shrugs: tuple[str, ...]
    waiting: tuple[str, ...]
    switches: tuple[str, ...]
    cheers: Pattern
    """Words of a reaction that nobody says when something has gone wrong."""


@dataclass(frozen=True)
class PlainSentences:
    """Sentences about fields without phrases, in place of those of `plain_sentences`."""

    statement: str
    question: str


@dataclass(frozen=True)
class Language:
    """One language of the scripted roles and of the checks that read their words."""

    code: str
    grammar: EnglishGrammar
    stem: Callable[[str], str]
    actions: ActionPatterns
    questions: QuestionPatterns
    agreement: AgreementPatterns
    answers: AnswerPatterns
    facts: FactPatterns
    references: ReferencePatterns
    agent: AgentSentences
    confirms: ConfirmationSentences
    reports: ReportSentences
    user: UserSentences
    plain: PlainSentences | None = None
