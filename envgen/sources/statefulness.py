"""Estimate from its words whether a request needs a state that is read or changed (EnvScaler 3.1).

This reads words and understands nothing: commands of which records are the usual object ("cancel", "reschedule"),
commands that are only about records if a record is named beside them ("add a reminder"), records that are the speaker's
own or have a number ("my order", "invoice #1024"), and against them commands that make or work out something from what
the request itself brings ("translate", "write a poem"). A request in other words is dropped although it may be
stateful, and one that uses these words for something else is kept; `docs/growth.md` says how often. Where that matters,
let a model decide: `trajsmith.envgen.sources.model_classification`.
"""

import re
from dataclasses import dataclass

from trajsmith.phrasing import singularize, word_set

STATEFUL_VERBS = word_set(
    "book reserve cancel reschedule schedule rebook order buy purchase refund exchange return withdraw deposit "
    "transfer pay enroll enrol unenroll register unregister subscribe unsubscribe renew checkin checkout rent borrow "
    "assign unassign approve reject reopen archive unarchive restore activate deactivate enable disable lock unlock "
    "invite follow unfollow downgrade upgrade redeem rsvp repost retweet tweet bookmark revoke"
)
"""Commands that change a record, whatever stands behind them."""
WEAK_STATEFUL_VERBS = word_set(
    "add create make change set save send open move edit modify remove delete update rename record log submit post "
    "upload store mark put place start stop turn close issue file track share reply forward apply release claim "
    "link unlink connect cut reset arrange hold play pause resume dim adjust sign write draft insert copy empty "
    "initiate execute trade sell invest fill complete report raise note replicate contact compose message publish "
    "join leave swap generate"
)
"""Commands that change a record if one stands behind them."""
LOOKUP_VERBS = word_set(
    "show list find search check look view retrieve get see tell give read display review query pull fetch confirm "
    "verify track know provide access locate request remember recall display furnish inform"
)
QUESTION_WORDS = word_set("what which when where who is are do does did has have how can could will any")
GENERATIVE_VERBS = word_set(
    "write generate compose draw paint summarize summarise translate paraphrase rewrite explain describe calculate "
    "compute convert solve define extract transcribe colorize stylize classify analyze analyse simplify expand "
    "recommend suggest brainstorm imagine proofread spin combine stitch synthesize caption segment denoise recite "
    "estimate compare encrypt decrypt discuss answer teach"
)
"""Commands whose result comes from the request itself, or from what everybody can know."""
STORED_NOUNS = word_set(
    "account agenda alarm alert appliance application appointment asset assignment attendance availability balance "
    "basket beneficiary bill booking branch bug calendar campaign card cart case channel claim comment contact "
    "contract course coupon credit customer dashboard database delivery deposit device directory dish document email "
    "employee enrollment event expense fare flight folder fund grade grocery guest history hotel house inbox incident "
    "inventory invoice issue item job lead lease lesson light loan lock log mail medication meeting member "
    "membership message milestone note notification order package parcel password patient payment payroll permit phone "
    "pin playlist plan points policy portfolio post prescription product profile project property purchase record "
    "refund reminder rental repository request reservation resident room roster route routine scene schedule seat "
    "session setting share shift shipment shop sprint stock student subscription switch table task team tenant "
    "thermostat ticket timer timesheet todo tour transaction transfer transcript trip tweet upgrade user vacation "
    "vehicle venue visit voucher wallet warranty watchlist wishlist car bus train song music movie apartment "
    "treatment file alarm lamp tv warehouse supplier vendor clinic test result workout meal goal habit budget course "
    "class exam library loan copy branch pull commit server deployment instance snapshot backup domain"
)
"""Things of which records are kept."""
STATELESS_NOUNS = word_set(
    "image picture photo video audio text poem story article essay sentence paragraph effect waveform"
)
"""Things that a request brings along, or wants to have made."""
STATE_WORDS = word_set(
    "status balance availability available upcoming due overdue pending remaining scheduled booked open recent "
    "previous earlier"
)
_WORD = re.compile(r"[a-z]+(?:['’-][a-z]+)*|[#$€£]?[A-Za-z0-9][\w-]*\d[\w-]*|[.!?;,]")
_NUMBERED = re.compile(
    r"#\s?\d+|\b(?:[Ii][Dd]|[Nn]umber|[Nn]o\.)\b[^.!?]{0,12}\b\w*\d\w*|\b(?=\w*\d)(?=\w*[A-Z])[A-Z0-9]{5,}\b"
)
_QUOTED = re.compile(r"(?<!\w)(['\"“‘])(?:\S+\s+){3,}?\S+['\"”’](?!\w)")
"""Four words or more between quotation marks: what the request brings along."""
_OWN = ("my", "our", "your")
_MINE = ("my", "our")
_SELF = (*_OWN, "i", "i've", "we", "we've")
_LEAD = word_set(
    "please can could would you to i i'd i'll we want wish like need help me and then also kindly let's let now "
    "hi hello hey just us also plan planning trying try going gonna have intend finally next first or need want be "
    "able assist in by of with for"
)
COMMAND_VERBS = STATEFUL_VERBS | WEAK_STATEFUL_VERBS | LOOKUP_VERBS | GENERATIVE_VERBS
"""Words that say what is to be done."""
_EMPTY = word_set(
    "a an the my our your me it its this that these those there here he she they them his her their i'm i've i'd we "
    "us on at from as not no yes if so but than then because while about into out up down over under off been being "
    "has had may might must should would could am was were all some any more most one two three four five each "
    "every other another same only very too same such own per via etc new total please thank thanks today tomorrow "
    "yesterday tonight now week month year day hour minute monday tuesday wednesday thursday friday saturday sunday "
    "january february march april june july august september october november december name names called titled "
    "using use used user people person someone know sure make lets let get got go thing things like really also "
    "well"
)
FILLER_WORDS = _LEAD | QUESTION_WORDS | _EMPTY
"""Words that tell nothing of what a request is about."""
MAX_OBJECT_WORDS = 7
"""Words behind a command among which its object is looked for."""


@dataclass(frozen=True)
class StatefulnessEstimate:
    """Estimate from a request's words, with its reason."""

    stateful: bool
    reason: str
    """What it was told by, or why it is dropped."""


def estimate_statefulness(text: str) -> StatefulnessEstimate:
    """Estimate whether a request needs a state, with the reason."""
    words = tokenize_request(text)
    stems = [singularize(word) for word in words]
    if not any(word.isalpha() for word in words):
        return StatefulnessEstimate(False, "no words in it")
    numbered = _NUMBERED.search(_QUOTED.sub(" ", text))
    makes = ""
    for place in find_commands(words):
        verb, behind = words[place], _find_object_words(words, stems, place)
        stored_noun = next((noun for noun in behind if noun in STORED_NOUNS), "")
        own = any(word in _SELF for word in words[place + 1 : place + 1 + MAX_OBJECT_WORDS])
        free = next((noun for noun in behind if noun in STATELESS_NOUNS), "")
        mine = any(word in _MINE for word in words[place + 1 : place + 4])
        if verb in STATEFUL_VERBS and not free:
            return StatefulnessEstimate(True, f"changes a record: {verb}")
        if (
            verb in WEAK_STATEFUL_VERBS
            and stored_noun
            and not (free and behind.index(free) < behind.index(stored_noun))
        ):
            return StatefulnessEstimate(True, f"changes a record: {verb} {stored_noun}")
        if verb in LOOKUP_VERBS and stored_noun and (own or numbered or STATE_WORDS & set(behind)):
            return StatefulnessEstimate(True, f"reads a record: {verb} {stored_noun}")
        if verb in WEAK_STATEFUL_VERBS | LOOKUP_VERBS and mine and not any(noun in STATELESS_NOUNS for noun in stems):
            return StatefulnessEstimate(True, f"about what is the speaker's own: {verb}")
        makes = makes or (verb if verb in GENERATIVE_VERBS or (verb in WEAK_STATEFUL_VERBS and free) else "")
    return _estimate_question(words, stems, bool(numbered), makes)


def _estimate_question(words: list[str], stems: list[str], numbered: bool, makes: str) -> StatefulnessEstimate:
    """A request without a command that tells."""
    stored_noun = next((noun for noun in stems if noun in STORED_NOUNS), "")
    own = next((stems[i + 1 : i + 4] for i, word in enumerate(words[:-1]) if word in _OWN), [])
    owned = next((noun for noun in own if noun in STORED_NOUNS), "")
    brought = next((word for word in stems if word in STATELESS_NOUNS), "")
    if makes or (brought and not numbered):
        return StatefulnessEstimate(False, f"makes or works out something: {makes or brought}")
    if owned:
        return StatefulnessEstimate(True, f"about the speaker's own {owned}")
    if stored_noun and numbered:
        return StatefulnessEstimate(True, f"about a record with a number: {stored_noun}")
    if stored_noun and STATE_WORDS & set(stems) and words[0] in QUESTION_WORDS | LOOKUP_VERBS:
        return StatefulnessEstimate(True, f"asks for the state of a record: {stored_noun}")
    question = words[0] in QUESTION_WORDS and words[1:2] != ["you"]
    return StatefulnessEstimate(
        False, "a question that names no record of a person" if question else "no word tells of a state"
    )


def tokenize_request(text: str) -> list[str]:
    """Return the words of a request in lower case, marks included, without longer quotations."""
    unquoted = re.sub(r"\bcheck(?:ing)?[ -](in|out)\b", r"check\1", _QUOTED.sub(" ", text).lower())
    return [_to_base_verb(word.strip("'’")) for word in _WORD.findall(unquoted.replace("in order to", "to"))]


def find_commands(words: list[str]) -> list[int]:
    """Return the indices of words in command position: at the start of a clause or behind words of wishing."""
    places = []
    for place, word in enumerate(words):
        before = words[place - 1] if place else "."
        if word in COMMAND_VERBS and (before in _LEAD or before in ".!?;,"):
            places.append(place)
    return places


def _to_base_verb(word: str) -> str:
    """A command from the form that it has behind "help": "paying" is "pay"."""
    root = word[:-3] if word.endswith("ing") else word
    return next((one for one in (root, f"{root}e", root[:-1]) if one in COMMAND_VERBS), word) if root != word else word


def _find_object_words(words: list[str], stems: list[str], place: int) -> list[str]:
    """The words behind a command, up to the end of the clause."""
    behind = stems[place + 1 : place + 1 + MAX_OBJECT_WORDS]
    ends = [i for i, word in enumerate(behind) if word in (".", "!", "?", ";")]
    return behind[: ends[0]] if ends else behind
