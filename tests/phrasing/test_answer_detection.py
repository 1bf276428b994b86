"""Whether a text states a value, also one that people state by words."""

from datetime import date

import pytest

from trajsmith.phrasing import is_answer_stated, is_value_mentioned, shorten_values, use_language
from trajsmith.phrasing.value_formatting import drop_near_years

OPEN = "Is a window open?"
WORDS = {"true": ("a window is open", "one is open"), "false": ("the windows are shut",)}


@pytest.mark.parametrize("words", [{}, WORDS], ids=["field-only", "phrasebook-words"])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("No window is open in there.", False),
        ("They're all shut.", False),
        ("It isn't open.", False),
        ("No.", False),
        ("Window open: no.", False),
        ("Yes, it is.", True),
        ("A window is open there.", True),
        ("Window open: yes.", True),
    ],
)
def test_a_boolean_is_stated_by_words_their_opposites_or_a_yes(text, value, words):
    assert is_answer_stated(text, value, "window open", words, OPEN)
    assert not is_answer_stated(text, not value, "window open", words, OPEN)


def test_a_yes_answers_the_question_that_was_asked():
    assert is_answer_stated("Yes, all of them.", False, "window open", {}, "Are the windows shut?")
    assert not is_answer_stated("Yes, all of them.", True, "window open", {}, "Are the windows shut?")


def test_what_speaks_of_something_else_states_no_boolean():
    assert not is_answer_stated("It is 21 degrees in there.", False, "window open", {}, OPEN)
    assert not is_answer_stated("It is 21 degrees in there.", True, "window open", {}, OPEN)


@pytest.mark.parametrize(
    ("text", "value", "label"),
    [
        ("It's switched off.", False, "on"),
        ("The ticket can be refunded.", True, "refundable"),
        ("That rate is non-refundable.", False, "refundable"),
        ("It doesn't renew automatically.", False, "auto renew"),
        ("The door is unlocked.", False, "locked"),
    ],
)
def test_fields_have_words_of_their_own(text, value, label):
    assert is_answer_stated(text, value, label)
    assert not is_answer_stated(text, not value, label)


def test_a_number_in_a_date_or_a_time_is_not_that_number():
    assert is_answer_stated("You have 3 left.", 3, "sessions left")
    assert not is_answer_stated("The course ends on 3 March.", 3, "sessions left")
    assert not is_answer_stated("The doors open at 15:03.", 15, "sessions left")
    assert is_answer_stated("It is sold out.", 0, "in stock")


def test_a_moment_is_stated_with_its_own_time_or_with_none():
    start = "2026-11-28T17:00:00"
    assert is_answer_stated("It starts on 28 November.", start, "starts at")
    assert is_answer_stated("It starts on 28 November 2026 at 17:00.", start, "starts at")
    assert not is_answer_stated("It ends on 28 November 2026 at 17:45.", start, "starts at")


def test_who_asks_for_the_time_is_not_answered_by_the_day():
    start, question = "2026-03-03T14:30:00", "What time does it start?"
    assert not is_answer_stated("On 3 March.", start, "starts at", {}, question)
    assert not is_answer_stated("On 4 March at 14:30.", start, "starts at", {}, question)
    assert is_answer_stated("At 2:30 pm.", start, "starts at", {}, question)
    assert is_answer_stated("On 3 March at 14:30.", start, "starts at", {}, question)


def test_a_word_that_is_denied_is_not_stated():
    assert is_answer_stated("The card is active.", "active")
    assert not is_answer_stated("The card is not active.", "active")
    assert not is_answer_stated("The door is unlocked.", "locked")
    assert is_answer_stated("It's on its way.", "in_transit", "status", {"in_transit": ("on its way",)})


def test_nothing_is_stated_by_a_negation():
    assert is_answer_stated("There are no codes for that door.", [], "code")
    assert not is_answer_stated("I've looked that up.", [], "code")


@pytest.mark.parametrize(
    ("text", "language", "told"),
    [
        ("Done. You don't need to do anything else.", "en", False),
        ("No problem, that's done.", "en", False),
        ("No problem. That door has no codes, so you don't need to do anything.", "en", True),
        ("Don't worry, there are no open tickets.", "en", True),
        ("You don't need to do anything, since that door has no codes.", "en", True),
        ("No need to worry as there are none.", "en", True),
        ("There's no problem reported for that service.", "en", True),
        ("Kein Problem, das ist erledigt.", "de", False),
        ("Sie müssen sich um nichts kümmern.", "de", False),
        ("Es gibt kein Problem mit Ihren Bestellungen.", "de", True),
        ("Keine Sorge, es gibt keine Rücksendungen.", "de", True),
    ],
)
def test_a_courtesy_is_no_answer_that_there_is_nothing(text, language, told):
    with use_language(language):
        assert is_answer_stated(text, [], "code") is told


def test_a_day_that_does_not_exist_keeps_its_year():
    """A faulty agent may change a digit of a date."""
    text = "It can be restored until 33 July 2026, or 3 July 2026."
    assert drop_near_years(text, date(2026, 7, 1)) == "It can be restored until 33 July 2026, or 3 July."


def test_a_year_is_left_out_only_where_no_other_such_day_is_nearer():
    """In January, "until 22 March" means the next one; a warranty that ended last March has its year."""
    text = "One ended on 22 March 2025, the other ends on 22 March 2026."
    assert drop_near_years(text, date(2026, 1, 11)) == "One ended on 22 March 2025, the other ends on 22 March."
    text = "Under warranty until 7 December 2025, bought on 20 December 2024, repaired on 2 January 2026."
    assert drop_near_years(text, date(2026, 1, 19)) == text.replace("2 January 2026", "2 January")
    assert drop_near_years("paid on 30 December 2025", date(2026, 1, 19)) == "paid on 30 December"


def test_a_thing_and_its_place_may_be_told_apart_in_one_sentence():
    room = "single room at Hotel Astra"
    assert is_answer_stated("At Hotel Astra, the single room is £80.00 a night.", room)
    assert not is_answer_stated("At Hotel Astra there is a twin room. The single room is at the Rookery.", room)
    assert not is_answer_stated("You have a single room.", room)
    assert not is_answer_stated("Greta Egan wrote to Oskar Ito at Brinton.", "Oskar Egan at Brinton")


@pytest.mark.parametrize(
    ("language", "said", "typed", "exact"),
    [
        (
            "en",
            'On 3 July 2026 add the note "Paid £50.00 in cash on 3 July 2026", as I paid £50.00',
            'On 3 July add the note "Paid £50.00 in cash on 3 July 2026", as I paid £50',
            "Paid £50.00 in cash on 3 July 2026",
        ),
        ("en", "As “£50.00 by 3 July 2026” for £50.00", "As “£50.00 by 3 July 2026” for £50", "£50.00 by 3 July 2026"),
        ("en", 'The 5" pipe of 3 July 2026 is £50.00', 'The 5" pipe of 3 July is £50', '5" pipe'),
        (
            "de",
            'Am 3. Juli 2026 „50,00 £ bar am 3. Juli 2026“ und "für 50,00 £", also 50,00 £',
            'Am 3. Juli „50,00 £ bar am 3. Juli 2026“ und "für 50,00 £", also 50 £',
            "50,00 £ bar am 3. Juli 2026",
        ),
    ],
    ids=["quoted", "curly", "inches", "german"],
)
def test_what_is_quoted_stays_letter_by_letter(language: str, said: str, typed: str, exact: str) -> None:
    with use_language(language):
        assert shorten_values(said, date(2026, 7, 1)) == typed
        assert is_value_mentioned(typed, exact)
        assert drop_near_years(said, date(2026, 7, 1)).count("2026") == typed.count("2026")
