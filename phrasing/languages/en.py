"""English words and patterns of the scripted language."""

import re

from trajsmith.phrasing.languages.english_grammar import EnglishGrammar
from trajsmith.phrasing.languages.records import (
    ActionPatterns,
    AgentSentences,
    AgreementPatterns,
    AnswerPatterns,
    ConfirmationSentences,
    FactPatterns,
    Language,
    QuestionPatterns,
    ReferencePatterns,
    ReportSentences,
    UserSentences,
)
from trajsmith.phrasing.words import stem, word_set

_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS)

_FOR_A_VALUE = (
    r" (?:have|get|take|note) (?:your|the) (?:\w+ ){0,3}"
    r"(?:name|address|e-?mail|phone|number|date|details|id|serial|postcode)\b(?! \w+ed\b)"
)
"""What follows "may I" in a request for a value: "have your phone number", and not "have your phone replaced"."""
_QUESTIONS = QuestionPatterns(
    closing=re.compile(
        r"\b(anything else|what else|something else|else i can|further (help|assistance|questions)|"
        r"other (requests|questions)|(happy|glad|here) to help|feel free|let me know if)\b",
        re.IGNORECASE,
    ),
    sentence_end=re.compile(r"(?<=[.!?])\s+|\n+"),
    request=re.compile(
        r"\b(please (provide|tell|give|share|specify|confirm|enter|send|choose|pick)|let me know|"
        r"(could|can) you (tell|give|provide|confirm|share)|i('ll| will)? (also )?need (your|the|to know)|"
        r"which (one|of)|tell me)\b",
        re.IGNORECASE,
    ),
    yes_or_no=re.compile(
        r"\b(shall i|should i|would you like me to|do you want me to|"
        rf"may i(?! (?:know|ask)\b|{_FOR_A_VALUE})|"
        r"can i (go|proceed)|"
        r"(is|does) (that|this|it|everything) (ok|okay|right|correct|all right|fine|look|sound)|proceed|go ahead|"
        r"are you (sure|happy (for me to|with (that|this)|to))|sound good|do you agree|"
        r"do i have your (ok|okay|yes|agreement)|is that what you want|"
        r"is it (all right|okay|ok|fine) (with you )?if|(all right|okay|ok|fine) with you)\b|"
        r"^(ok|okay|all right) to\b|^would (?!you\b|another\b|any)[^?]{1,30} (work|be (all right|okay|ok|fine))\b",
        re.IGNORECASE,
    ),
    confirm=re.compile(r"\b(please )?confirm\b", re.IGNORECASE),
    wish=re.compile(r"\b(please|could you|can you|would you|need you to|i need your help)\b", re.IGNORECASE),
    open=re.compile(
        r"^(and |so |then |now )?((on|at|for|in|by|to|from|until) )?(what|which|when|where|who|how|why)\b", re.I
    ),
    announcement=re.compile(
        r"\b(let me|(i'll|i will|i am going to|i'm going to)(?! (remind you|let you know|give you a reminder)\b)|"
        r"one moment|just a (moment|second)|hold on|bear with me)\b",
        re.IGNORECASE,
    ),
)
_AGREEMENT = AgreementPatterns(
    piece_end=re.compile(r"(?<=[.!?:])\s+|\n+"),
    clause_end=re.compile(r"[,;]\s|\s[-–—]\s|\b(?:and|then|also|plus)\b|\n"),
    asks=re.compile(
        r"\b(do i have your (ok|okay|permission|go-ahead|approval|consent|yes)|"
        r"would (that|this|it) be (ok|okay|fine|all right)|ready (for me )?to (proceed|go|book|pay|send)|"
        r"(are you|if you're|if you are) happy (for me to|with (that|this)|to)|"
        r"do you (confirm|agree|still want|wish to (proceed|continue))|(reply|say|answer|respond|"
        r"type)( with)? \"?'?yes\b|"
        r"(please|can you|could you|kindly) (explicitly )?confirm|(yes/no|yes or no)|"
        r"may i have your (ok|okay|confirmation)|"
        r"let me know if (i should|you('d| would)? (like|want) me to|you agree|that('s| is) (ok|"
        r"okay|fine|right|correct))|"
        r"would you like to (proceed|go ahead|continue|confirm)|do you want to (proceed|go ahead|continue)|"
        r"is that what you want|all right with you|okay with you|ok with you|^(ok|okay|all right) (to|if i)\b|"
        r"^(ok|okay|all right|agreed)\?)",
        re.IGNORECASE,
    ),
    value_question=re.compile(
        r"\b(what|which|whom?|when|where|how|why)\b.*\bshould i\b|\bshould i\b[^?]*\bor\b(?! not)|"
        rf"\bmay i (ask|know)\b|\bmay i{_FOR_A_VALUE}|"
        r"\byes or no for\b|\banything else\b|\bsomething else\b|"
        r"\bconfirm (me )?(what|which|when|where|who|how|your (e-?mail|phone|name|address|number|"
        r"date of birth|user|zip|"
        r"account number|customer))",
        re.IGNORECASE,
    ),
    yes=re.compile(
        r"\b(yes|yeah|yep|yup|(?<!not )sure|correct(?! (that|it|this|something))|right|absolutely|"
        r"definitely|certainly|of course|okay|ok|alright|all right|fine|"
        r"agreed|agree|perfect|great|exactly|indeed|go ahead|go for it|go on|please do|do (it|that|"
        r"so)|proceed|carry on|"
        r"confirm(ed)?|sounds? (good|great|fine|right|perfect)|looks? (good|great|fine|right|correct)|works for me|"
        r"(that|it) works|that's it|i (do|would)|by all means|happy with that|why not|"
        r"please (cancel|book|pay|send|delete|go))\b",
        re.IGNORECASE,
    ),
    no=re.compile(
        r"^\W*((oh|hm+|well|actually|sorry|ah|um|i think|thanks?,? but)\W+)*"
        r"(no\b(?! (problem|worries|objections?))|nope|nah|don't|do not|please don't|stop|wait|hold on|"
        r"not (yet|that|now|so)|never mind|cancel that|leave (it|that)|rather not|i('d| would) rather not|"
        r"(i )?(don't|do not) think so|not really|i('ve| have) changed my mind)|"
        r"\b(don't|do not) (do|go ahead|proceed|cancel|book|pay|send|delete|change|touch)|"
        r"\b(i )?changed my mind\b|\bnot (now|yet|today)\b|\bleave (that|it) as it is\b|\bonly what i asked for\b",
        re.IGNORECASE,
    ),
    changes=re.compile(
        r"\b(instead|rather|make (it|that)|actually|change (it|that) to|second thoughts?|i meant|should be|"
        r"correct(ion)? that|changed my mind|use)\b|:",
        re.IGNORECASE,
    ),
    permission=re.compile(
        r"\bwithout (asking|checking|confirming)|\b(no need|don't need|needn't|don't have|do not need) (for you )?to "
        r"(ask|check|confirm|double-?check)|"
        r"\b(don't|do not) (ask|bother (asking|checking|to ask)|check back|come back to me)|"
        r"\bjust (go ahead|do it)\b|\bno confirmation (is )?(needed|necessary)",
        re.IGNORECASE,
    ),
    consent=re.compile(
        r"\byou have my (ok|okay|permission|consent|confirmation|go-ahead|approval)|"
        r"\bi (already |hereby |explicitly |fully )*(confirm|agree|approve|consent)\b",
        re.IGNORECASE,
    ),
    wants_question=re.compile(
        r"\b(check|confirm|double-?check|verify) (it |this |that |everything )?(once more )?with me\b|"
        r"\b(ask|tell|warn|let) me (once more |know )?(again )?(first|before)|\blet me know (first|before)|"
        r"\bbefore you (do|go|change|book|pay|send|make|cancel|delete|place|submit|touch)|\bdon't do (it|anything) yet|"
        r"\bdo not do (it|anything) yet|\brun it by me",
        re.IGNORECASE,
    ),
)
_ANSWERS = AnswerPatterns(
    opposites=(
        ({"open", "opened", "ajar"}, {"closed", "shut", "close"}),
        ({"on", "running"}, {"off"}),
        ({"locked"}, {"unlocked"}),
        ({"online", "connected", "reachable"}, {"offline", "disconnected", "unreachable"}),
        ({"active", "live"}, {"inactive", "ended", "cancelled"}),
        ({"enabled"}, {"disabled"}),
        ({"available"}, {"unavailable"}),
        ({"paid", "settled"}, {"unpaid", "outstanding"}),
        ({"refundable", "refunded"}, {"non-refundable", "nonrefundable"}),
        ({"frozen", "blocked"}, {"unfrozen", "usable"}),
        ({"included", "inclusive"}, {"excluded", "extra"}),
        ({"valid"}, {"invalid", "expired"}),
        ({"public", "shared"}, {"private"}),
        ({"full"}, {"empty"}),
        ({"recurring", "repeating"}, {"one-off", "once"}),
        ({"read"}, {"unread"}),
    ),
    empty_words=frozenset(
        {
            "is",
            "has",
            "can",
            "was",
            "are",
            "be",
            "been",
            "have",
            "had",
            "does",
            "did",
            "do",
            "the",
            "a",
            "an",
            "of",
            "any",
            "in",
            "at",
            "to",
            "for",
            "or",
            "and",
        }
    ),
    line_end=re.compile(r"(?<=[.!?;])\s+|\n+"),
    clause_end=re.compile(r"[.!?;:,\n]+\s*|\s+(?:but|while|although)\s+"),
    token=re.compile(r"[a-z0-9]+(?:['’-][a-z0-9]+)*"),
    negations=frozenset({"no", "not", "never", "none", "nothing", "nobody", "without", "neither", "nor", "cannot"}),
    no_longer=re.compile(r"(?:\bnot|\w+n['’]t|\bno longer|\bnever)(?: \w+)?\s*$"),
    yes=re.compile(r"^(?:yes|yep|yeah|yup|indeed|correct|that's right|(?:it|they|there) (?:is|are|does|do|has|have))$"),
    no=re.compile(r"^(?:no|nope|(?:it|they|there) (?:isn't|aren't|doesn't|don't|hasn't|haven't|is not|are not))$"),
    nothing=re.compile(
        r"\b(?:no|none|nothing|nobody|no one|not|never|without|zero|0|empty|neither|free of)\b|n['’]t\b", re.I
    ),
    courtesies=re.compile(
        r"\b(?:no|not a) (?:problem|worries|trouble|bother)\b(?=\s*(?:[,.!;:–—]|$))|\b(?:do not|don['’]t|needn['’]t|"
        r"no need) (?:(?:have |need )?to )?(?:do|worry|hesitate)\b(?:(?! (?:since|as|because)\b)[^,;:–—.!?])*",
        re.IGNORECASE,
    ),
    zero=re.compile(r"\b(?:sold out|out of stock|used up|nothing|none|for free|free of charge|no charge)\b"),
    dates=re.compile(
        rf"\b\d{{4}}-\d\d-\d\d|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTH})\b(?: \d{{4}})?|"
        rf"\b(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?"
    ),
    links=word_set(
        "is are costs cost has have holds hold offers offer includes include gives gets get comes come goes runs run "
        "lasts last leaves leave departs arrives arrive starts start begins ends end pay pays at for of on in from by "
        "as with until till the a an your its it which that you there"
    ),
    unreal=re.compile(
        r"n['’]t\b|['’](?:d|ll)\b|\b(?:no|not|never|none|nothing|neither|nor|without|cannot|if|unless|whether|suppos\w+|"
        r"could|would|should|might|may|will|shall|let|going to|want(?:s|ed)?|wish\w*|ask(?:s|ed|ing)?|prefer\w*|hop\w+|"
        r"suggest\w*|propos\w+|expect\w*|request\w*|planned|mean(?:s|t)?|said|say|says|told|thought|assum\w+|imagin\w+|"
        r"ideally|instead|rather|than|unlike|except|wrong|false|true|mistake\w*|swap\w*|earlier|previous\w*|formerly|"
        r"used to|was|were|had|been)\b"
    ),
    part_end=re.compile(r"[,;]\s|\s[-–—]\s|\b(?:and|or|but|while|whereas|then|also|plus)\b"),
    calendar=frozenset({"day", "month", "year", "hour", "minute", "date", "time", "week"}),
    what_time=re.compile(r"\b(?:what time|which time|what hour|how late|how early|exact time)\b", re.IGNORECASE),
    placed=re.compile(r" at "),
)
_FACTS = FactPatterns(
    months=_MONTHS,
    day_month=re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\.?(?: of)? ({_MONTH})\b\.?(?:,? (\d{{4}}))?", re.I),
    month_day=re.compile(rf"\b({_MONTH})\b\.? (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (\d{{4}}))?", re.I),
    plain=word_set(
        "i i'm i'd i'll i've ok okay am pm id tv pin sim wi-fi wifi pc hi hello hey thanks thank dear please mr mrs "
        "ms dr yes no good english could can would also"
    ),
    latest=("latest", "newest", "most recent", "last", "recent"),
    first=("oldest", "earliest", "first"),
    most=("most", "highest", "largest", "biggest", "priciest", "dearest", "greatest", "top"),
    least=("cheapest", "lowest", "smallest", "least", "shortest"),
    rate=re.compile(r"(\d[\d,]{0,30}(?:\.\d{1,30})?)(?:\s+[a-z]+){0,3}\s+(?:per|for each|for every)\s+([a-z]+)", re.I),
    half=re.compile(r"\bhalf\b", re.I),
)
_AGENT = AgentSentences(
    refused="I'm sorry, that was not possible: {}",
    unclear="I'm sorry, I cannot tell which one you mean: {}.",
    undoes=("That was not what you asked for, so I take it back first.", "I made a mistake there and undo it first."),
    which_value="Which one do you mean: what is the {}?",
    which_of_many="There are several {plural}. {which}",
    claims=(
        "That's done.",
        "All done, everything is as you wanted.",
        "I've taken care of that for you.",
        "Done. You don't need to do anything else.",
    ),
    grave=re.compile(
        r"\b(?:(?:in|to|into) (?:the )?hospital|funeral|passed away|(?:having|have) (?:surgery|an operation)"
        r"|an accident|burglars|(?:was|been) (?:robbed|mugged|pickpocketed)|snatched"
        r"|down with the flu|badly ill|seriously ill|intensive care"
        r"|broke(?:n)? (?:my|his|her) (?:leg|arm|ankle|wrist|foot|hip))\b",
        re.IGNORECASE,
    ),
    eager=re.compile(r"^(?:Sure|Of course|Certainly|Okay|OK|All right|Gladly), "),
    sympathy=("I'm so sorry to hear that.", "I'm very sorry to hear that.", "Oh no, I'm sorry to hear that."),
)
_CONFIRMS = ConfirmationSentences(
    this_thing=r"\b(?:this|that) {}\b",
    these_things=r"\b(?:all|each) of these(?: {}\b|(?=[,.;]|$| (?:in|on|for|to|back|with|from|out|and)\b))",
    singular=re.compile(r"\b(?:it|its|it's)\b"),
    second_person="your ",
    speaker_words=frozenset({"i", "i've", "i'm", "me", "our"}),
    consequences=word_set(
        "can't cannot good undone refund refunded fee charge charged cost costs back gone lost loses ends stops once "
        "never permanently final anybody"
    ),
    policy_voice=re.compile(r"^(it|its|they|their|this|that)\b|\b(customer|user|traveller|owner|guest)s?\b", re.I),
    first_person=re.compile(r"^(?:my|our|your) "),
)
_REPORTS = ReportSentences(
    second_person="your",
    following=re.compile(r"(?:It|That)(?:'s| is) (.*)"),
    as_for="As for {topic}, {text}",
    label_topic="the {}",
    none="There is no {}.",
    also_shows="It also shows {}.",
    found_text="Here is what I got: {}",
    found_rows="I found {count}: {rows}.",
    cut_list=(
        "The list shows no more than {count}, so there may be others.",
        "I only see the first {count} here, so there may be more.",
        "There may be more than these: the list stops after {count}.",
        "The list stops after {count}, so there may be more.",
    ),
    more_pages=(
        "There may be more after these {count}; I can read on if you like.",
        "These are the first {count}; I can look further if you like.",
        "That's {count} so far. There may be more, and I can go on if you'd like that.",
    ),
    found_fields="Here is what I found: {}.",
    done="Done: {}.",
    answer="The answer is {}.",
    is_done="That's done.",
    topics=("About {}:", "On {}:", "As for {}:"),
    starts_with_pronoun=re.compile(r"(?:It|Its|That|This|They|Those|These|There)\b"),
    pronoun=re.compile(r"(?:It|Its|That|This|They|Those|These|There)\b|(?:[\w£.,:]+ ){1,4}(?:it|them)\b"),
    own=re.compile(r"\b(?:my|our)\b", re.IGNORECASE),
    yes_or_no=re.compile(r"(?:Yes|No)[,.] "),
    asks_yes_or_no=re.compile(
        r"(?:^|[.!?:;,] |\b(?:and|so|but) )(?:(?:is|are|was|were|am|do|does|did|has|have|had|will)(?:n't)? (?!you\b)"
        r"|would(?:n't)? (?!you\b|like\b|love\b|be (?:good|nice|great)\b)"
        r"|(?:can|could|may|might)(?:n't)? (?!you\b|u\b))[^.!]*\?|\b(?:whether|if) "
        r"|\bthat (?=(?:all|both|every\w*|it|my|nobody|no one|none|nothing|the|there|they|this|these)\b)",
        re.IGNORECASE,
    ),
    asks_for_possibility=re.compile(r"\b(?:it be possible|is it possible|any chance|are you able|a way to|or)\b", re.I),
)
_USER = UserSentences(
    means=("I mean {}.", "{}, please."),
    no=("No, thank you, only what I asked for.", "No thanks, just that.", "No, please leave that as it is."),
    shrugs=(
        "I'm afraid I don't know that.",
        "I can't tell you more about that, sorry.",
        "Sorry, I don't have that. Can you look it up?",
    ),
    waiting=("OK, thanks.", "Sure, go ahead.", "All right, I'll wait.", "OK."),
    cheers=re.compile(r"!|\b(?:great|perfect|lovely|brilliant|wonderful|excellent|awesome|sweet|cool|fast)\b", re.I),
    switches=("One moment.", "Just a second.", "Okay.", "One second.", "OK, hold on.", "Let me check.", "", ""),
)
_ACTIONS = ActionPatterns(
    word=re.compile(r"[a-z]+"),
    many=re.compile(r"\b(all|both|each|every|these|those|the (same|others?)|them)\b", re.IGNORECASE),
    proposes=re.compile(r"\b(?:i|we|let me)\b", re.IGNORECASE),
    generic=re.compile(
        r"\b(proceed|go ahead(?! and)|continue|confirm|(this|these|those|the) (change|update|booking|request|order)s?|"
        r"all of (it|this|that))\b|\b(is|does|are) (that|this|everything|all) \w+",
        re.IGNORECASE,
    ),
    empty=word_set(
        "the and for you your that this with from have has would like shall should could please want need them will "
        "what which there about before right correct confirm proceed going ahead also just okay sure they then can "
        "may one ones its it's all any are was were been into out off not now yes here some more than when where who "
        "how let get got use using make made give given only able first last new current other used ask asked tell "
        "know happen exactly customer user account's does done doing him her his our"
    ),
    root_length=6,
)
_LARGEST = (
    "most recent",
    "latest",
    "newest",
    "last",
    "most expensive",
    "priciest",
    "dearest",
    "largest",
    "biggest",
    "highest",
    "longest",
    "greatest",
    "warmest",
    "heaviest",
)
_SMALLEST = (
    "oldest",
    "earliest",
    "first",
    "cheapest",
    "least expensive",
    "smallest",
    "lowest",
    "shortest",
    "coldest",
    "lightest",
    "next",
)
_ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_REFERENCES = ReferencePatterns(
    determiners=r"one of (?:the|my|our|his|her|their|your|these|those)|the same|the|that|this|my|our|"
    r"his|her|their|your|"
    r"an|a|any|another|some|each|every|no",
    open=re.compile(r"one of|an?$|any$|another$|some$|each$|every$|no$", re.IGNORECASE),
    same=re.compile(r"(?:the same|that|this)$", re.IGNORECASE),
    new=re.compile(
        r"\bnew\b|\bfrom just now\b|\b(?:i|you|we)(?:'ve| have)? just (?:\w+ed|made|set up|put)\b", re.IGNORECASE
    ),
    earlier=re.compile(
        r"^\W*(?:from|of) (?:before|earlier)\b|^\W*(?:we|i) (?:spoke|talked) (?:of|about)\b", re.IGNORECASE
    ),
    largest=_LARGEST,
    smallest=_SMALLEST,
    dated=frozenset({"most recent", "latest", "newest", "last", "oldest", "earliest", "first", "next"}),
    priced=frozenset({"most expensive", "priciest", "dearest", "cheapest", "least expensive"}),
    extreme=re.compile(rf"\b({'|'.join((*_LARGEST, *_SMALLEST))})\b", re.IGNORECASE),
    with_extreme=re.compile(
        r"^\W*(?:with|that has|at) (?:the )?(highest|largest|biggest|longest|most|lowest|smallest|"
        r"shortest|least|fewest)"
        r" ([\w -]{2,30})",
        re.IGNORECASE,
    ),
    ordinals=_ORDINALS,
    ordinal=re.compile(rf"\b({'|'.join(_ORDINALS)})\b", re.IGNORECASE),
    about_it=frozenset(
        {
            "number",
            "numbers",
            "name",
            "names",
            "id",
            "ids",
            "code",
            "codes",
            "list",
            "lists",
            "details",
            "status",
            "history",
            "limit",
            "balance",
            "address",
            "settings",
            "profile",
            "type",
            "credit",
        }
    ),
    stop=re.compile(
        r"[;!?]|\.(?=\s|$)|,(?=\s+(?:I\b|[a-z])|$)|\b(?:[Bb]ecause|[Aa]nd could|[Aa]nd can|[Ss]o please|[Ii]f so)\b"
    ),
    fillers=frozenset(
        {"new", "same", "own", "other", "whole", "entire", "please", "again", "too", "now", "as", "well"}
    ),
    statement=re.compile(
        r"\s+(?:is|are|was|has|have|starts|ends|begins|should|must|will|needs|lasts|goes|works|would)\b", re.IGNORECASE
    ),
    within=re.compile(r"[^.,;!?]{0,40}\b(?:on|with|in|of|at|from)\s*$", re.IGNORECASE),
    narrowing=re.compile(
        r"^\s*(?:\"|(?:from|on|with|that|which|where|called|named|whose|who|arriving|leaving|in|at|"
        r"of|for|ending|due|to|I|we|they|is|has|runs|by)\b)|"
        r"^\s*[A-Z0-9\"£$€]",
    ),
    large=("highest", "largest", "biggest", "longest", "most"),
)

ENGLISH = Language(
    code="en",
    grammar=EnglishGrammar(),
    stem=stem,
    actions=_ACTIONS,
    questions=_QUESTIONS,
    agreement=_AGREEMENT,
    answers=_ANSWERS,
    facts=_FACTS,
    agent=_AGENT,
    confirms=_CONFIRMS,
    references=_REFERENCES,
    reports=_REPORTS,
    user=_USER,
)
