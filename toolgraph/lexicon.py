"""Words of tool names, parameters and descriptions, and what they say: the verb's class, the kind of value.

General vocabulary of APIs in English, no names of services. Words are compared in the form that
`stem` gives them, so that "orders", "ordered" and "order" are one word.
"""

import functools
import re
from collections.abc import Sequence

from trajsmith.phrasing.words import CAMEL_HUMP, stem, word_set

VERBS: dict[str, str] = {
    "read": "get list find search query show read fetch lookup look view retrieve check describe browse "
    "discover select count filter verify inspect explore recommend load display track monitor see "
    "tell scan status detail details download filter pull have access",
    "create": "create add new register open book reserve place post make insert upload save start buy purchase order "
    "submit schedule subscribe enroll apply hire rent upsert append store put launch init initialize record",
    "update": "update modify change edit rename move replace patch adjust reset assign transfer extend mark "
    "toggle enable disable approve resolve confirm configure merge restore sync write set fund "
    "withdraw deposit lock unlock exchange swap process redeem renew",
    "delete": "cancel delete remove clear drop destroy purge archive revoke unsubscribe close terminate stop "
    "logout void unfollow detach dismiss reject refund return uninstall",
    "compute": "calculate compute convert analyze analyse generate translate summarize summarise extract "
    "predict classify detect compare format parse encode decode encrypt decrypt estimate evaluate "
    "transform render resize compress transcribe synthesize combine split sort solve validate "
    "rewrite paraphrase simplify expand rank score measure recognize recognise correct crop "
    "enhance reduce divide multiply subtract sum plot simulate check validate "
    "forecast optimize",
    "send": "send notify share reply forward publish email message call invite alert print play speak echo "
    "comment tweet retweet like follow rate review vote run execute login authenticate pay log",
}
"""Class to its verbs. What a tool does tells whether its result is new information or only a receipt."""

VERB_CLASSES = tuple(VERBS)
_HTTP = {"get": "read", "head": "read", "post": "create", "put": "update", "patch": "update", "delete": "delete"}

KINDS: dict[str, str] = {
    "id": "id ids uuid guid sku identifier key slug hash serial isbn vin pnr",
    "token": "token session cookie jwt credential auth authorization",
    "secret": "password passwd pin secret passcode api_key",
    "person": "user username person people customer client patient member employee passenger author owner "
    "recipient sender attendee participant guest contact friend student driver agent doctor",
    "name": "name title label nickname caption subject topic headline",
    "text": "text content message body description summary sentence paragraph note comment review article "
    "lyric transcript definition translation answer question prompt query script document story joke "
    "quote reason instruction output feedback keyword phrase word sentiment string details",
    "email": "email mail",
    "phone": "phone telephone mobile tel fax",
    "url": "url uri link href website webpage domain endpoint",
    "date": "date day dob birthday birthdate deadline month week",
    "year": "year",
    "time": "time timestamp datetime hour minute created updated start end departure arrival",
    "duration": "duration period interval length seconds",
    "place": "city country state location place address destination origin airport station region town street "
    "venue where pickup dropoff zip postal province county area",
    "coordinate": "latitude longitude lat lon lng coordinate",
    "money": "price cost fee amount total balance salary payment budget fare tax revenue income expense "
    "profit charge tip discount sum subtotal principal loan interest earning wage invoice bill "
    "paid",
    "measure": "weight height distance width length size area volume speed temperature humidity radius depth "
    "mass age score rating value result average mean median maximum minimum percentage "
    "percent ratio rate number num",
    "count": "count quantity number limit page offset size adults children guests seats rooms total",
    "currency": "currency",
    "language": "language lang locale",
    "file": "file filename path folder directory filepath attachment dir document",
    "image": "image picture photo thumbnail avatar logo icon poster",
    "audio": "audio sound voice song music track recording speech",
    "video": "video movie clip film",
    "data": "data json payload input result results output response body object record records",
    "status": "status success state message error flag acknowledged ok",
    "category": "category type genre kind class level mode cuisine sector priority gender format unit",
}
"""Kind of value to words that name it. One word may name several."""

KIND_NAMES = tuple(KINDS)

CARRIERS = word_set(
    "text content message body data input value number num amount query keyword description string word sentence "
    "document payload prompt numbers a b x y items item content arguments"
)
"""Names of parameters that take whatever there is: what the tool works on, not something it identifies."""

CONTROL = word_set(
    "page pages limit offset sort order_by per max_results include exclude fields verbose debug skip top "
    "pagination cursor timezone dry_run force recursive"
)
"""Words of parameters that say how a call is to answer, not about what."""
MANNER = word_set("mode format unit units encoding order sort style verbosity")
"""Last words of parameters that say how, where they have a default: everybody leaves them alone."""
WRITTEN = word_set("summary thought rationale expression justification")
"""Last words of parameters that neither a tool nor a person gives: who calls writes them."""
TRUTHS = word_set("true false")
"""Choices that are a switch."""
YES_AND_NO = word_set("yes no on off")
"""Choices that are a switch unless they must be made: then a person is asked."""
RECEIPTS = word_set("status success error acknowledged ok succeeded failed")
"""Outputs that say only how the call went."""
ONESELF = word_set("user customer client account member username userid patient subscriber me self profile")
"""People who talk to the agent: they know their own id."""

CLEAR_VERBS = word_set("get list find search query fetch retrieve create add delete remove update edit modify set send")
"""Verbs that name no thing."""
THINGS_TOO = word_set(
    "email message comment order book schedule record track display rate review invite alert plot score store share "
    "call tweet register status detail details filter post purchase transfer mark vote process return deposit refund "
    "archive fund print exchange pay fetch account"
)
"""Verbs that name things too: where another verb follows, they are what it is about."""
_PHRASES: dict[tuple[str, ...], str] = {
    ("set", "up"): "create", ("check", "in"): "send", ("check", "out"): "send", ("sign", "up"): "create",
    ("sign", "in"): "send", ("log", "in"): "send", ("log", "out"): "delete", ("look", "up"): "read",
}  # fmt: skip
NOMINALS = {
    "reserve": "reservation", "subscribe": "subscription", "register": "registration", "invite": "invitation",
    "apply": "application", "pay": "payment", "ship": "shipment", "enroll": "enrollment", "appoint": "appointment",
    "deliver": "delivery", "buy": "purchase", "rent": "rental", "transact": "transaction",
}  # fmt: skip
"""Verbs to what they make."""

SELECTING = word_set("book buy reserve purchase rent play order schedule select watch visit")
"""Verbs of tools that act on one of the things that a search has shown."""
SELECTIONS = word_set("reservation booking purchase rental appointment order visit")
"""What is made by choosing one of the things that a search has shown."""

MEDIA: dict[str, str] = {
    "text": "text article document paragraph sentence query script keyword description instruction topic idea caption "
    "transcript summary word phrase question answer prompt sentiment string essay story input prose report content",
    "image": "image picture photo photograph thumbnail drawing",
    "audio": "audio speech voice sound music song recording track",
    "video": "video clip movie footage film",
    "url": "url link uri website webpage",
    "number": "number sum average product quotient total count amount percentage ratio",
    "table": "table csv spreadsheet dataset dataframe",
    "code": "code program source",
}
"""Kind of resource to the words that name it, for tools whose fields say nothing but "input" and "output"."""
MEDIA_NAMES = tuple(MEDIA)

TELLERS = word_set(
    "classification classifier recognition recognizer captioning captioner answering answerer transcription "
    "transcriber identification"
)
"""Last words of names of tools that say something, in words, about what they are given."""
_NOUN_ENDINGS = (
    ("er", ""), ("er", "e"), ("or", ""), ("or", "e"), ("ion", "e"), ("ion", ""), ("ification", "ify"), ("ation", "e"),
    ("ation", ""),
)  # fmt: skip
FILLER = word_set("a an the of to in on for with and or by from at as is are be this that these those")
"""Words of names that carry nothing."""
_WORD = re.compile(r"[^\W\d_]+|\d+")


STOP_WORDS = (
    "been it its will can may not no if such e g eg i which who whom what when where use used using api tool function "
    "allow allows given specified specify provided provide based should must optional default return returns value "
    "parameter including includes include whether all any each other about optionally"
)
STOP = FILLER | frozenset(map(stem, STOP_WORDS.split()))
"""Words of descriptions that say nothing of their subject."""


def stem_words(words: str) -> tuple[str, ...]:
    """Return the stems of the words of a text that spaces part."""
    return tuple(map(stem, words.split()))


@functools.lru_cache(maxsize=400_000)
def tokenize(text: str) -> tuple[str, ...]:
    """Stems of a name or a sentence, in order, without numbers; letters of scripts without spaces go in pairs."""
    stems: list[str] = []
    for chunk in _WORD.findall(text):
        if chunk.islower() and chunk.isascii():
            stems.append(stem(chunk))
        elif chunk.isascii():
            stems += [stem(part) for part in CAMEL_HUMP.split(chunk) if part.isalpha()]
        elif ord(chunk[0]) >= 0x2E80:
            stems += [chunk[i : i + 2] for i in range(max(1, len(chunk) - 1))]
        else:
            stems.append(chunk.lower())
    return tuple(stems)


@functools.lru_cache(maxsize=400_000)
def extract_distinctive_tokens(text: str) -> tuple[str, ...]:
    """The distinct tokens of a sentence that are not filler, at most 48."""
    return tuple(token for token in dict.fromkeys(tokenize(text)) if token not in STOP)[:48]


@functools.lru_cache(maxsize=1)
def _kind_masks() -> dict[str, int]:
    masks: dict[str, int] = {}
    for bit, listed in enumerate(KINDS.values()):
        for word in map(stem, listed.split()):
            masks[word] = masks.get(word, 0) | 1 << bit
    return masks


def find_kinds(token: str) -> int:
    """Bit mask over `KIND_NAMES` of what a word names."""
    return _kind_masks().get(token, 0)


@functools.lru_cache(maxsize=100_000)
def find_media(token: str) -> int:
    """Bit mask over `MEDIA_NAMES`; 0 if a word names no resource."""
    return next((1 << bit for bit, listed in enumerate(MEDIA.values()) if token in map(stem, listed.split())), 0)


def classify_verb(name: str, description: str) -> str:
    """Return the class of the first verb of a tool's name or description; "" if there is none."""
    parts = tokenize(name)
    if parts and name[: len(parts[0]) + 1].isupper() and parts[0] in _HTTP:
        return _HTTP[parts[0]]
    if len(parts) > 1 and _verb(parts[0]) == "read" and parts[-1].endswith("ion") and _verb(parts[-1]) == "compute":
        return "compute"  # get_translation
    if parts[:2] in _PHRASES:
        return _PHRASES[parts[:2]]
    space = count_namespace_words(parts)
    if space:
        return _verb(parts[space])
    last = () if name.endswith("s") else parts[-1:]
    description_tokens = tokenize(description)[:12]
    if description_tokens[:1] == ("return",) and not _verb(parts[0] if parts else ""):
        return "read"  # "Returns the ..."
    for part in parts[:1] + last + description_tokens:
        verb_kind = _verb(part)
        if verb_kind:
            return verb_kind
    return next((verb_kind for part in parts if (verb_kind := _verb(part))), "")


def count_namespace_words(parts: Sequence[str]) -> int:
    """Return the number of words before the verb: 1 in email_search_emails, 0 in search_emails."""
    if not parts or parts[0] in _clear_verbs() or (_verb(parts[0]) and parts[0] not in _things_too()):
        return 0
    return next((place for place, part in enumerate(parts[:-1]) if part in _clear_verbs()), 0)


def is_verb(word: str) -> bool:
    """True for a stem that names an action."""
    return word in _classes()


@functools.lru_cache(maxsize=1)
def _classes() -> dict[str, str]:
    return {stem(verb): name for name, verbs in reversed(VERBS.items()) for verb in verbs.split()}


@functools.lru_cache(maxsize=1)
def _clear_verbs() -> frozenset[str]:
    return frozenset(map(stem, CLEAR_VERBS))


@functools.lru_cache(maxsize=1)
def _things_too() -> frozenset[str]:
    return frozenset(map(stem, THINGS_TOO))


@functools.lru_cache(maxsize=100_000)
def _verb(word: str) -> str:
    """Class of a word that is a verb, or the noun of somebody who does it (downloader, generator)."""
    known = _classes()
    if word in known:
        return known[word]
    for ending, add in _NOUN_ENDINGS:
        if word.endswith(ending) and word[: -len(ending)] + add in known:
            return known[word[: -len(ending)] + add]
    return ""
