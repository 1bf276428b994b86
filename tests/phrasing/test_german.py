"""German: forms of values, cases, answers, requests for a yes, and references."""

from datetime import date
from types import SimpleNamespace

import pytest

from trajsmith.phrasing import LANGUAGE_CODES, get_language, is_answer_stated, use_language
from trajsmith.phrasing.agreement_detection import find_confirmation_requests, is_agreement, is_refusal
from trajsmith.phrasing.fact_detection import AllowedContent
from trajsmith.phrasing.phrasebook import insert_said_words
from trajsmith.phrasing.question_detection import find_questions
from trajsmith.phrasing.templates import render_phrase
from trajsmith.phrasing.value_formatting import drop_near_years, is_value_mentioned
from trajsmith.phrasing.voices import load_voices


@pytest.fixture(autouse=True)
def german():
    with use_language("de"):
        yield


def test_values_are_said_in_german():
    values = {"amount": 1234.5, "day": "2026-03-03T14:30:00", "on": True, "names": ["a", "b", "c"], "share": 4.5}
    template = "{amount|money}; {day|datetime}; {on|yesno}; {names|words}; {share}"
    assert render_phrase(template, values) == "1.234,50 £; 3. März 2026 um 14:30 Uhr; ja; a, b und c; 4,5"
    assert drop_near_years("am 3. März 2026 und am 3. März 2020", date(2026, 5, 1)) == "am 3. März und am 3. März 2020"
    assert drop_near_years("bis zum 33. Juli 2026", date(2026, 5, 1)) == "bis zum 33. Juli 2026"


@pytest.mark.parametrize("phrase", ["den alten Auftrag", "diesen Artikel", "meine Bestellung", "das neue Konto"])
def test_the_case_of_a_noun_phrase_follows_from_its_first_words(phrase):
    expected = {
        "den alten Auftrag": "der alte Auftrag, dem alten Auftrag",
        "diesen Artikel": "dieser Artikel, diesem Artikel",
        "meine Bestellung": "meine Bestellung, meiner Bestellung",
        "das neue Konto": "das neue Konto, dem neuen Konto",
    }
    assert render_phrase("{thing|nom}, {thing|dat}", {"thing": phrase}) == expected[phrase]


def test_references_have_the_gender_of_their_noun():
    order = SimpleNamespace(noun="Bestellung", plural="Bestellungen", gender="f")
    item = SimpleNamespace(noun="Artikel", plural="Artikel", gender="m")
    grammar = get_language().grammar
    assert grammar.again(order) == ("diese Bestellung", "dieselbe Bestellung")
    assert grammar.inside(item, grammar.that(order)) == "den Artikel aus dieser Bestellung"
    assert grammar.one_of(item, item.plural, False) == "einen der Artikel"
    assert grammar.superlative(item, "", "price", False) == "den günstigsten Artikel"


@pytest.mark.parametrize("text", ["am 3. März 2026", "bis zum 3. märz", "am 03.03.2026", "der 3.3.2026"])
def test_german_dates_state_a_date(text):
    assert is_value_mentioned(text, "2026-03-03")
    assert not is_value_mentioned(text, "2026-03-04")


@pytest.mark.parametrize(
    ("text", "value", "stated"),
    [
        ("Das macht 1.234,50 £.", 1234.5, True),
        ("Das macht 1.234,50 £.", 50, False),
        ("Das macht 34,50 £.", 34.5, True),
        ("Das macht 34,50 £.", 34, False),
        ("Davon ist nichts mehr da, es ist ausverkauft.", 0, True),
    ],
)
def test_german_numbers_state_a_number(text, value, stated):
    assert is_answer_stated(text, value) is stated


def test_what_is_said_in_german_words_is_an_answer():
    words = {"pending": ("offen",)}
    assert is_answer_stated("Die Bestellung ist offen.", "pending", "Status", words)
    assert not is_answer_stated("Die Bestellung ist nicht mehr offen.", "pending", "Status", words)
    assert is_answer_stated("Sie bekommen derzeit keinen Newsletter.", False, "Newsletter")
    assert not is_answer_stated("Sie bekommen den Newsletter.", False, "Newsletter")


def test_made_up_values_are_found_and_german_nouns_are_no_names():
    allowed = AllowedContent()
    allowed.add({"total": 1234.5, "on": "2026-03-03"})
    assert not allowed.find_unsupported("Die Bestellung vom 3. März kostet 1.234,50 £.")
    assert allowed.find_unsupported_values("Die Bestellung vom 4. März kostet 1.243,50 £.") == ["4. März", "1,243.50"]


@pytest.mark.parametrize("voice", sorted(load_voices().agents))
def test_every_request_for_a_yes_is_understood(voice):
    with use_language("de"):
        frames = load_voices().agents.get(voice) or load_voices().agents["plain"]
        for frame in frames.confirms:
            text = frame.replace("{}", "die Bestellung vom 3. März 2026 stornieren")
            assert find_confirmation_requests(text), text
        for frame in frames.endings:
            assert not find_questions(frame), frame


@pytest.mark.parametrize("voice", ["plain", "terse", "formal", "chatty", "hurried", "annoyed", "non_native", "casual"])
def test_every_yes_is_understood(voice):
    for text in load_voices().users[voice].agreements:
        assert is_agreement(text), text


def test_a_no_and_questions_for_values_are_no_yes():
    assert is_refusal("Nein danke, lieber nicht.") and is_refusal("Halt, ich habe es mir anders überlegt.")
    assert not find_confirmation_requests("Welchen Betrag soll ich vom Guthaben nehmen?")
    assert not find_confirmation_requests("In welcher Höhe möchten Sie das Guthaben nutzen?")


def test_said_words_come_from_the_phrasebook():
    book = "parameters: {status: {values: {pending: [offen]}}}\ntools: {a: {done: [\"{out.s|said('status')}\"]}}"
    template = "{out.s|lookup({'pending': 'offen'})}"
    assert template in insert_said_words(book)
    assert render_phrase(template, {"out": {"s": "pending"}}) == "offen"


@pytest.mark.parametrize("code", LANGUAGE_CODES)
def test_languages_have_the_same_registers(code):
    with use_language(code):
        names = set(load_voices().users)
    assert names == {"plain", "terse", "formal", "chatty", "hurried", "annoyed", "non_native", "casual"}
