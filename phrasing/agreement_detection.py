"""Detection of requests for a yes and of the answers to them, by plain patterns."""

import re
from collections.abc import Mapping

from trajsmith.phrasing.question_detection import is_yes_or_no
from trajsmith.phrasing.value_formatting import is_value_mentioned
from trajsmith.records import JsonValue

_PIECE = re.compile(r"(?<=[.!?:])\s+|\n+")
_CLAUSE = re.compile(r"[,;]\s|\s[-–—]\s|\b(?:and|then|also|plus)\b|\n")
_ASKS = re.compile(
    r"\b(do i have your (ok|okay|permission|go-ahead|approval|consent|yes)|"
    r"would (that|this|it) be (ok|okay|fine|all right)|ready (for me )?to (proceed|go|book|pay|send)|"
    r"(are you|if you're|if you are) happy (for me to|with (that|this)|to)|"
    r"do you (confirm|agree|still want|wish to (proceed|continue))|(reply|say|answer|respond|type)( with)? \"?'?yes\b|"
    r"(please|can you|could you|kindly) (explicitly )?confirm|(yes/no|yes or no)|"
    r"may i have your (ok|okay|confirmation)|"
    r"let me know if (i should|you('d| would)? (like|want) me to|you agree|that('s| is) (ok|okay|fine|right|correct))|"
    r"would you like to (proceed|go ahead|continue|confirm)|do you want to (proceed|go ahead|continue)|"
    r"is that what you want|all right with you|okay with you|ok with you|^(ok|okay|all right) (to|if i)\b|"
    r"^(ok|okay|all right|agreed)\?)",
    re.IGNORECASE,
)
_VALUE_QUESTION = re.compile(
    r"\b(what|which|whom?|when|where|how|why)\b.*\bshould i\b|\bshould i\b[^?]*\bor\b(?! not)|"
    r"\bmay i (ask|know|have (?!your (ok|confirm|permission)))|"
    r"\byes or no for\b|\banything else\b|\bsomething else\b|"
    r"\bconfirm (me )?(what|which|when|where|who|how|your (e-?mail|phone|name|address|number|date of birth|user|zip|"
    r"account number|customer))",
    re.IGNORECASE,
)
"""Questions for a value or for further wishes that look like requests for a yes."""
_YES = re.compile(
    r"\b(yes|yeah|yep|yup|(?<!not )sure|correct(?! (that|it|this|something))|right|absolutely|"
    r"definitely|certainly|of course|okay|ok|alright|all right|fine|"
    r"agreed|agree|perfect|great|exactly|indeed|go ahead|go for it|go on|please do|do (it|that|so)|proceed|carry on|"
    r"confirm(ed)?|sounds? (good|great|fine|right|perfect)|looks? (good|great|fine|right|correct)|works for me|"
    r"(that|it) works|that's it|i (do|would)|by all means|happy with that|why not|"
    r"please (cancel|book|pay|send|delete|go))\b",
    re.IGNORECASE,
)
_NO = re.compile(
    r"^\W*((oh|hm+|well|actually|sorry|ah|um|i think|thanks?,? but)\W+)*"
    r"(no\b(?! (problem|worries|objections?))|nope|nah|don't|do not|please don't|stop|wait|hold on|"
    r"not (yet|that|now|so)|never mind|cancel that|leave (it|that)|rather not|i('d| would) rather not|"
    r"(i )?(don't|do not) think so|not really|i('ve| have) changed my mind)|"
    r"\b(don't|do not) (do|go ahead|proceed|cancel|book|pay|send|delete|change|touch)|"
    r"\b(i )?changed my mind\b|\bnot (now|yet|today)\b|\bleave (that|it) as it is\b|\bonly what i asked for\b",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(instead|rather|make (it|that)|actually|change (it|that) to|second thoughts?|i meant|should be|"
    r"correct(ion)? that|changed my mind|use)\b|:",
    re.IGNORECASE,
)
_PERMISSION = re.compile(
    r"\bwithout (asking|checking|confirming)|\b(no need|don't need|needn't|don't have|do not need) (for you )?to "
    r"(ask|check|confirm|double-?check)|"
    r"\b(don't|do not) (ask|bother (asking|checking|to ask)|check back|come back to me)|"
    r"\bjust (go ahead|do it)\b|\bno confirmation (is )?(needed|necessary)",
    re.IGNORECASE,
)
_CONSENT = re.compile(
    r"\byou have my (ok|okay|permission|consent|confirmation|go-ahead|approval)|"
    r"\bi (already |hereby |explicitly |fully )*(confirm|agree|approve|consent)\b",
    re.IGNORECASE,
)
_WANTS_QUESTION = re.compile(
    r"\b(check|confirm|double-?check|verify) (it |this |that |everything )?(once more )?with me\b|"
    r"\b(ask|tell|warn|let) me (once more |know )?(again )?(first|before)|\blet me know (first|before)|"
    r"\bbefore you (do|go|change|book|pay|send|make|cancel|delete|place|submit|touch)|\bdon't do (it|anything) yet|"
    r"\bdo not do (it|anything) yet|\brun it by me",
    re.IGNORECASE,
)


def find_confirmation_requests(text: str) -> list[str]:
    """Return the sentences of a message that ask for a yes, each with the sentence before it, which may say to what."""
    sentences = [part.strip() for part in _PIECE.split(text.replace("’", "'")) if part.strip()]
    return [
        " ".join(sentences[max(0, number - 1) : number + 1])
        for number, sentence in enumerate(sentences)
        if (is_yes_or_no(sentence) or _ASKS.search(sentence))
        and (sentence.rstrip(")\"'").endswith("?") or _ASKS.search(sentence))
        and not _VALUE_QUESTION.search(sentence)
    ]


def split_clauses(text: str) -> list[str]:
    """Split a sentence at commas and conjunctions, so that each action in it stands alone."""
    return [part.strip() for part in _CLAUSE.split(text) if part.strip()]


def is_refusal(text: str) -> bool:
    """Return True if an answer says no."""
    return _NO.search(text.replace("’", "'")) is not None


def is_agreement(text: str) -> bool:
    """Return True if an answer says yes and not no."""
    return not is_refusal(text) and _YES.search(text.replace("’", "'")) is not None


def accepts_call(text: str, arguments: Mapping[str, JsonValue]) -> bool:
    """Return True if an answer agrees to a call: a yes, or other wishes that the call fulfils."""
    if is_agreement(text) or grants_permission(text):
        return True
    named = any(is_value_mentioned(text, value) for value in arguments.values())
    return named and (is_correction(text) or not is_refusal(text))


def is_correction(text: str) -> bool:
    """Return True if an answer changes what was proposed: "No, make it £30 instead"."""
    return _CHANGES.search(text.replace("’", "'")) is not None


def grants_permission(text: str) -> bool:
    """Return True if the user says that nobody has to ask: "just go ahead without asking"."""
    return _PERMISSION.search(text.replace("’", "'")) is not None


def states_consent(text: str) -> bool:
    """Return True if the user consents to what they say: "I confirm that it may be cancelled"."""
    return _CONSENT.search(text.replace("’", "'")) is not None


def wants_question(text: str) -> bool:
    """Return True if the user wants to be asked before anything is done."""
    return _WANTS_QUESTION.search(text.replace("’", "'")) is not None and not grants_permission(text)
