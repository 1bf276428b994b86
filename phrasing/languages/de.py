"""German words and patterns of the scripted language. Agents say "Sie"; verb phrases are infinitives at the end."""

import re

from trajsmith.phrasing.languages.german_grammar import MONTHS, GermanGrammar, stem_german
from trajsmith.phrasing.languages.records import (
    ActionPatterns,
    AgentSentences,
    AgreementPatterns,
    AnswerPatterns,
    ConfirmationSentences,
    FactPatterns,
    Language,
    PlainSentences,
    QuestionPatterns,
    ReferencePatterns,
    ReportSentences,
    UserSentences,
)
from trajsmith.phrasing.words import word_set

_MONTH = "|".join(f"{name}|{name[:3]}" for name in MONTHS).lower()
_NO_MONTH = rf"(?!(?:{'|'.join(MONTHS)})\b)"
"""A full stop before the name of a month ends no sentence: "am 3. März"."""

_QUESTIONS = QuestionPatterns(
    closing=re.compile(
        r"\b((noch|sonst) (et)?was|sonst noch|noch (weiter)?helfen|weitere (fragen|wünsche)|noch (eine )?fragen?|"
        r"noch etwas (anderes|tun)|noch einen wunsch|noch für sie (tun|erledigen)|war das alles|"
        r"gerne? für sie da|melden sie sich)\b",
        re.IGNORECASE,
    ),
    sentence_end=re.compile(rf"(?<=[.!?])\s+{_NO_MONTH}|\n+", re.IGNORECASE),
    request=re.compile(
        r"\b(bitte (nennen|sagen|geben|teilen|schicken|bestätigen|wählen)|sagen sie mir|nennen sie mir|"
        r"(können|könnten) sie mir (bitte )?\w* ?(sagen|nennen|geben)|ich (brauche|benötige) (noch|ihre?n?)|"
        r"welche[nrs]? (davon|von))\b",
        re.IGNORECASE,
    ),
    yes_or_no=re.compile(
        r"\b(soll ich|sollen wir|"
        r"darf ich(?! (ihre[nr]? (?!zustimmung|erlaubnis)\S+ haben|wissen|fragen|erfahren)\b)|"
        r"kann ich (das|so|fortfahren)|möchten sie, dass ich|wollen sie, dass ich|"
        r"soll ich das|in ordnung\?|(ist|wäre) (das|es|alles) (so |für sie )?(in ordnung|okay|ok|"
        r"richtig|recht)|passt das( so)?|"
        r"einverstanden|stimmt das( so)?|sind sie sicher)\b",
        re.IGNORECASE,
    ),
    confirm=re.compile(r"\b(bitte )?bestätigen( sie)?\b", re.IGNORECASE),
    wish=re.compile(r"\b(bitte|können sie|könnten sie|kannst du|würden sie|ich brauche)\b", re.IGNORECASE),
    open=re.compile(
        r"^(und |also |dann |jetzt )?((an|auf|für|in|bei|zu|von|bis|seit|mit|ab) )?"
        r"(was|welche[mnrs]?|wann|wohin|woher|wo|wer|wen|wem|wie|warum|wieso)\b",
        re.IGNORECASE,
    ),
    announcement=re.compile(
        r"\b(ich werde|lassen sie mich|einen (kleinen )?(moment|augenblick)|ich (schaue|sehe) (kurz|gleich) nach|"
        r"ich kümmere mich)\b",
        re.IGNORECASE,
    ),
)
_AGREEMENT = AgreementPatterns(
    piece_end=re.compile(rf"(?<=[.!?:])\s+{_NO_MONTH}|\n+", re.IGNORECASE),
    clause_end=re.compile(r"[,;]\s|\s[-–—]\s|\b(?:und|dann|außerdem)\b|\n"),
    asks=re.compile(
        r"\b(habe ich (ihr|ihre) (ok|okay|einverständnis|zustimmung|ja)|"
        r"^(in ordnung|okay|ok|einverstanden)\?|"
        r"(sind sie|wären sie) (damit )?einverstanden|wäre (das|es) (so |für sie )?(ok|okay|in ordnung|recht)|"
        r"(bitte|können sie|könnten sie) (das )?(ausdrücklich )?(mit ja )?bestätigen|(ja/nein|ja oder nein)|"
        r"möchten sie (das (so|wirklich)|fortfahren)|wollen sie (das (so|wirklich)|fortfahren)|ist "
        r"das in ihrem sinne|passt das (so )?für sie)",
        re.IGNORECASE,
    ),
    value_question=re.compile(
        r"\b(was|welche[mnrs]?|wann|wo|wohin|wer|wie|warum)\b.*\b(soll|darf) ich\b|\bsoll ich\b[^?]*\boder\b(?! nicht)|"
        r"\bdarf ich (fragen|wissen|erfahren|um |notieren)|\bja oder nein (für|bei)\b|"
        r"\b(sonst )?noch (et)?was\b|\bbestätigen sie (mir )?(bitte )?(ihre?n?) "
        r"(e-mail|telefon|namen?|adresse|nummer|geburtsdatum)",
        re.IGNORECASE,
    ),
    yes=re.compile(
        r"\b(ja|jo|jep|jawohl|(?<!nicht )sicher|klar|genau|richtig|stimmt|gern|gerne|unbedingt|natürlich|"
        r"selbstverständlich|okay|ok|in ordnung|einverstanden|perfekt|passt|mach(en sie)?( das| es)?|"
        r"so ist es|so machen wir das|stimme (dem |dem so )?zu|fahren sie fort|veranlassen sie|"
        r"bestätigt?|nur zu|leg los|los|von mir aus|meinetwegen|"
        r"bitte (stornieren|bestellen|überweisen|buchen|sperren|einlösen))\b",
        re.IGNORECASE,
    ),
    no=re.compile(
        r"^\W*((oh|hm+|also|ähm?|moment|entschuldigung|danke,? aber)\W+)*"
        r"(nein|nee|nö|halt|stopp?|(noch|lieber|doch|bitte|jetzt) nicht|lassen sie (das|es)|lass (das|es)|warten sie|"
        r"ich (will|möchte) (das )?(doch |lieber )?nicht|ich habe es mir anders überlegt)|"
        r"\bdoch (lieber )?nicht\b|\banders überlegt\b|\bso lassen, wie es ist\b|\bnur das, worum ich gebeten habe\b",
        re.IGNORECASE,
    ),
    changes=re.compile(
        r"\b(stattdessen|lieber|eigentlich|ich meinte|sondern|statt|doch|ändern sie|anders überlegt|nehmen sie)\b|:",
        re.IGNORECASE,
    ),
    permission=re.compile(
        r"\bohne (nach)?zufragen|\bohne rückfragen?|\b(müssen|brauchen) (sie )?(mich )?nicht (erst |noch |extra )?"
        r"(nach)?(zu )?fragen|\bfragen sie nicht (erst )?nach|\bkeine (rückfrage|bestätigung) nötig|"
        r"\bmachen sie (es|das) einfach",
        re.IGNORECASE,
    ),
    consent=re.compile(
        r"\bsie haben (mein|meine) (ok|okay|einverständnis|zustimmung|erlaubnis)|"
        r"\bich (bin|erkläre mich) (hiermit |ausdrücklich )*(damit )?einverstanden|\bich stimme (dem |hiermit )*zu\b|"
        r"\bich bestätige\b",
        re.IGNORECASE,
    ),
    wants_question=re.compile(
        r"\bfragen sie (mich )?(bitte )?(vorher|erst|noch einmal|nochmal|zuerst)|\bsagen sie mir (bitte )?vorher|"
        r"\bbevor sie (etwas|das|es)|\bnoch nichts (tun|machen|ändern|bestellen|stornieren)|"
        r"\bsprechen sie es mit mir ab",
        re.IGNORECASE,
    ),
)
_ANSWERS = AnswerPatterns(
    opposites=(
        ({"offen", "geöffnet"}, {"geschlossen", "zu"}),
        ({"an", "eingeschaltet", "aktiviert"}, {"aus", "ausgeschaltet", "abgeschaltet", "deaktiviert"}),
        ({"aktiv"}, {"inaktiv", "beendet", "storniert"}),
        ({"verfügbar", "lieferbar"}, {"ausverkauft", "vergriffen"}),
        ({"bezahlt"}, {"unbezahlt", "offen"}),
        ({"gesperrt", "eingefroren"}, {"entsperrt", "nutzbar"}),
        ({"gültig"}, {"ungültig", "abgelaufen"}),
    ),
    empty_words=word_set("ist hat kann war sind haben der die das ein eine von in an auf zu für oder und dem den"),
    line_end=re.compile(rf"(?<=[.!?;])\s+{_NO_MONTH}|\n+", re.IGNORECASE),
    clause_end=re.compile(rf"[.!?;:,\n]+\s*{_NO_MONTH}|\s+(?:aber|sondern|während|obwohl)\s+", re.IGNORECASE),
    token=re.compile(r"[a-zäöüß0-9]+(?:['’-][a-zäöüß0-9]+)*"),
    negations=word_set("nein nicht nie nichts niemand ohne weder noch kein keine keinen keiner keinem keines"),
    no_longer=re.compile(r"(?:\bnicht|\bnicht mehr|\bkeine?n?|\bnie)(?: \w+)?\s*$"),
    yes=re.compile(r"^(?:ja|jawohl|genau|richtig|stimmt|(?:das|es) (?:ist|stimmt))$"),
    no=re.compile(r"^(?:nein|nee|leider nicht|(?:das|es) (?:ist es nicht|stimmt nicht))$"),
    nothing=re.compile(r"\b(?:nein|kein\w*|nichts|niemand|nicht|nie|ohne|null|0|leer|weder)\b", re.IGNORECASE),
    courtesies=re.compile(
        r"\bkein problem\b(?=\s*(?:[,.!;:–—]|$))|\b(?:keine (?:ursache|sorgen?|mühe)|nichts zu danken)\b|"
        r"\b(?:müssen|musst|brauchen|brauchst) (?:sie |du )?(?:sich |dich )?(?:um )?(?:nichts|nicht)\b"
        r"[^,;:–—.!?]*\b(?:tun|kümmern)\b",
        re.IGNORECASE,
    ),
    zero=re.compile(r"\b(?:ausverkauft|vergriffen|nicht (?:auf lager|vorrätig)|nichts|kein\w*|kostenlos|gratis)\b"),
    dates=re.compile(
        rf"\b\d{{4}}-\d\d-\d\d|\b\d{{1,2}}\. ?(?:{_MONTH})\b\.?(?: \d{{4}})?|\b\d{{1,2}}\.\d{{1,2}}\.(?:\d{{4}})?"
    ),
    links=word_set(
        "ist sind kostet kosten hat haben bietet bieten umfasst läuft laufen gilt gelten reicht dauert "
        "dauern beginnt endet liegt beträgt zahlen zahlst bezahlen für mit bei bis um am im in vom von als zu zum "
        "der die das den dem des ein eine einen einem einer sie du es"
    ),
    unreal=re.compile(
        r"\b(?:nicht|nichts|nie|niemals|kein\w*|ohne|weder|wenn|falls|sofern|ob|statt|anstatt|anstelle|lieber|"
        r"könnte\w*|würde\w*|sollte\w*|möchte\w*|wollte\w*|wäre\w*|hätte\w*|dürfte\w*|soll|sollen|wird|werden|wollen|"
        r"wünsch\w*|gewünscht\w*|bitte\w*|gebeten|vorschlag\w*|vorgeschlagen|gesagt|gemeint|angenommen|geplant|"
        r"falsch\w*|wahr|früher|vorher|zuvor|bisher|war|waren|hatte\w*|gewesen|vertausch\w*|getauscht|außer)\b"
    ),
    part_end=re.compile(r"[,;]\s|\s[-–—]\s|\b(?:und|oder|aber|sondern|während|dann|außerdem)\b"),
    calendar=word_set("tag monat jahr stunde minute datum zeit uhrzeit woche"),
    what_time=re.compile(r"\b(?:um wie ?viel uhr|zu welcher uhrzeit|welche uhrzeit|wie spät)\b", re.IGNORECASE),
    placed=re.compile(r" (?:im|in|bei) "),
)
_FACTS = FactPatterns(
    months=tuple(month.lower() for month in MONTHS),
    day_month=re.compile(rf"\b(\d{{1,2}})\.? ({_MONTH})\b\.?(?: (\d{{4}}))?", re.IGNORECASE),
    month_day=re.compile(rf"\b(?!)({_MONTH}) (\d{{1,2}})(\d{{4}})?", re.IGNORECASE),
    plain=word_set("ich ok okay ja nein hallo hi hey danke bitte pin sim wlan herr frau dr"),
    latest=(r"neueste\w?", r"letzte\w?", r"jüngste\w?", r"aktuellste\w?"),
    first=(r"älteste\w?", r"erste\w?", r"früheste\w?"),
    most=(r"höchste\w?", r"größte\w?", r"teuerste\w?", r"meiste\w?"),
    least=(r"günstigste\w?", r"billigste\w?", r"niedrigste\w?", r"kleinste\w?"),
    rate=re.compile(
        r"(\d[\d,]{0,30}(?:\.\d{1,30})?)(?:\s+\w+){0,3}\s+(?:pro|je|für jede[nrs]?)\s+(\w+)", re.IGNORECASE
    ),
    half=re.compile(r"\b(halb(e[nrs]?)?|(zur )?hälfte)\b", re.IGNORECASE),
    marks_names=False,
)
_ACTIONS = ActionPatterns(
    word=re.compile(r"[a-zäöüß]+"),
    many=re.compile(r"\b(alle[ns]?|beide[ns]?|jede[nrs]?|diese|die (anderen?|übrigen))\b", re.IGNORECASE),
    proposes=re.compile(r"\b(?:ich|wir)\b", re.IGNORECASE),
    generic=re.compile(
        r"\b(fortfahren|weitermachen|bestätigen|(diese|dieser|die) (änderung|buchung|anfrage)(en)?|"
        r"alles (das|davon))\b|"
        r"\b(ist|wäre) (das|alles|es) (so |für sie )?(in ordnung|okay|ok|richtig|recht)|^einverstanden\b|passt das",
        re.IGNORECASE,
    ),
    empty=word_set(
        "der die das den dem des ein eine einen einem einer eines und oder für mit von vom zum zur "
        "aus auf bei nach über "
        "unter vor als auch nur noch schon jetzt dann hier dort bitte danke soll sollen darf ich "
        "sie ihr ihre ihren ihrem "
        "ihrer mein meine meinen meiner mir mich ihnen möchten dass wäre werde würde kann ist sind hat haben wird das "
        "damit dies diese dieses diesen dieser dieselbe dasselbe ordnung okay einverstanden richtig "
        "recht sicher bevor vorher "
        "tue mache machen lassen einmal kurz heraus so wie was welche welches sich nicht weil meinem neue neuen eben "
        "vorhin the and for you your that this with from all any are not account customer use"
    ),
    root_length=9,
)
_AGENT = AgentSentences(
    refused="Das war leider nicht möglich: {}",
    unclear="Ich kann leider nicht erkennen, was Sie meinen: {}.",
    undoes=("Das war nicht gewünscht, ich mache es zuerst rückgängig.", "Da habe ich mich geirrt und nehme es zurück."),
    which_value="Was genau meinen Sie ({})?",
    which_of_many="Es gibt mehrere {plural}. {which}",
    claims=(
        "Das ist erledigt.",
        "Alles erledigt, so wie Sie es wollten.",
        "Darum habe ich mich gekümmert.",
        "Erledigt. Sie müssen nichts weiter tun.",
    ),
    grave=re.compile(r"\b(?:Krankenhaus|Beerdigung|gestorben|verstorben|Unfall|Operation)\b"),
    sympathy=("Das tut mir sehr leid.", "Es tut mir sehr leid, das zu hören."),
    eager=re.compile(r"(?!)"),
)
_CONFIRMS = ConfirmationSentences(
    this_thing="",
    these_things="",
    singular=re.compile(r"(?!)"),
    second_person=r"Ihr\1",
    speaker_words=word_set("ich mir mich mein meine meinen meiner meinem"),
    consequences=word_set(
        "endgültig rückgängig erstattet gebühr kostet belastet zurück verfällt verbraucht dauerhaft einmal nicht mehr"
    ),
    policy_voice=re.compile(r"(?!)"),
    first_person=re.compile(r"^(?:mein|unser)(e[nrms]?)?\b"),
)
_REPORTS = ReportSentences(
    second_person=r"Ihr\1",
    following=re.compile(r"(?!)()"),
    as_for="Zu {topic}: {text}",
    label_topic="",
    none="{}: keine Angabe.",
    also_shows="Außerdem sehe ich {}.",
    found_text="Das habe ich gefunden: {}",
    found_rows="Ich habe {count} gefunden: {rows}.",
    cut_list=(
        "Die Liste zeigt höchstens {count}, es kann also noch mehr geben.",
        "Ich sehe nur {count} auf einmal, das muss also nicht alles sein.",
        "Es kann noch mehr geben: Die Liste hört nach {count} auf.",
    ),
    more_pages=(
        "Nach diesen {count} kann es weitere geben; auf Wunsch lese ich weiter.",
        "Das ist eine Seite, auf der nächsten können weitere stehen.",
    ),
    found_fields="Das habe ich gefunden: {}.",
    done="Erledigt: {}.",
    answer="Die Antwort ist {}.",
    is_done="Das ist erledigt.",
    topics=("Zu {}:", "Was Sie zu {} wissen wollten:"),
    starts_with_pronoun=re.compile(r"(?!)"),
    pronoun=re.compile(
        r"(?:Es|Er|Das|Dies|Dieser|Dieses|Darin|Davon|Dort|Dafür|Dorthin)\b|"
        r"Sie (?:ist|wird|kommt|liegt|kostet|geht|hat|wurde|soll|läuft|gilt|beträgt)\b"
    ),
    own=re.compile(r"\bmein(e[nrms]?)?\b"),
    yes_or_no=re.compile(r"(?!)"),
    asks_yes_or_no=re.compile(r"(?!)"),
    asks_for_possibility=re.compile(r"(?!)"),
)
_USER = UserSentences(
    means=("Ich meine {}.", "{}, bitte."),
    no=("Nein danke, nur das, worum ich gebeten habe.", "Nein, bitte so lassen, wie es ist.", "Nein danke, nur das."),
    shrugs=("Das weiß ich leider nicht.", "Mehr kann ich dazu nicht sagen.", "Das habe ich gerade nicht zur Hand."),
    waiting=("Okay, danke.", "Alles klar.", "Gut, ich warte.", "Okay."),
    cheers=re.compile(r"!|\b(?:super|toll|prima|wunderbar|perfekt|klasse|spitze|schnell)\b", re.IGNORECASE),
    switches=("Moment.", "Einen Augenblick.", "Okay, Moment.", ""),
)
_PLAIN = PlainSentences(
    statement="{label}: {value}.",
    question="Welche Angabe soll ich für „{label}“ eintragen?",
)
_LARGEST = (
    "neueste",
    "neuesten",
    "letzte",
    "letzten",
    "teuerste",
    "teuersten",
    "größte",
    "größten",
    "höchste",
    "höchsten",
)
_SMALLEST = (
    "älteste", "ältesten", "erste", "ersten", "früheste", "günstigste", "günstigsten", "billigste", "billigsten",
    "kleinste", "kleinsten", "niedrigste", "niedrigsten", "nächste", "nächsten",
)  # fmt: skip
_ORDINALS = ("zweite", "dritte", "vierte", "fünfte", "sechste", "siebte", "achte")
_REFERENCES = ReferencePatterns(
    determiners=(
        r"eine[ms]? (?:der|meiner|dieser)|einen (?:der|meiner|dieser)|einer (?:der|meiner|dieser)|"
        r"dieselben?|dasselbe|denselben|demselben|derselben|diese[nmrs]?|die|das|der|den|dem|"
        r"mein(?:e[nmrs]?)?|unser(?:e[nmrs]?)?|ein(?:e[nmrs]?)?|jede[nmrs]?|kein(?:e[nmrs]?)?"
    ),
    open=re.compile(r"ein(?:e[nmrs]?)?(?:$| (?:der|meiner|dieser))|jede[nmrs]?$|kein(?:e[nmrs]?)?$", re.IGNORECASE),
    same=re.compile(r"(?:dieselben?|dasselbe|de[nm]selben|derselben|diese[nmrs]?)$", re.IGNORECASE),
    new=re.compile(r"\bneuen?\b|\bvon eben\b", re.IGNORECASE),
    earlier=re.compile(r"^\W*von vorhin\b", re.IGNORECASE),
    largest=_LARGEST,
    smallest=_SMALLEST,
    dated=word_set("neueste neuesten letzte letzten älteste ältesten erste ersten früheste nächste nächsten"),
    priced=word_set("teuerste teuersten günstigste günstigsten billigste billigsten"),
    extreme=re.compile(rf"\b({'|'.join((*_LARGEST, *_SMALLEST))})\b", re.IGNORECASE),
    with_extreme=re.compile(
        r"^\W*mit de[rm] (höchsten|größten|meisten|niedrigsten|kleinsten|wenigsten) ([\w -]{2,30})", re.IGNORECASE
    ),
    ordinals=_ORDINALS,
    ordinal=re.compile(rf"\b({'|'.join(_ORDINALS)})n?\b", re.IGNORECASE),
    about_it=frozenset(),
    stop=re.compile(r"[;!?]|(?<!\d)\.(?=\s|$)|,(?=\s+(?:[a-zäöü])|$)|\b(?:denn|weil|und bitte)\b"),
    fillers=word_set("neue neuen gleiche gleichen eigene ganze bitte wieder auch jetzt noch"),
    statement=re.compile(r"\s+(?:ist|sind|war|hat|haben|soll|muss|darf|geht|kostet|beginnt|endet|braucht)\b", re.I),
    within=re.compile(r"[^.,;!?]{0,40}\b(?:auf|mit|in|von|vom|aus|bei|über)\s*$", re.IGNORECASE),
    narrowing=re.compile(
        r"^\s*(?:„|(?:vom|von|mit|über|für|zum|auf|in|aus|bei|ab|der|die|das|den|namens)\b)|^\s*[A-Z0-9„£$€]"
    ),
    large=("höchsten", "größten", "meisten"),
)

GERMAN = Language(
    code="de",
    grammar=GermanGrammar(),
    stem=stem_german,
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
    plain=_PLAIN,
)
