"""Voices: every choice of every pattern is a sentence, and the rest of the code understands what it says."""

import random

import pytest

from trajsmith.phrasing import get_language
from trajsmith.phrasing.agreement_detection import find_confirmation_requests, is_agreement
from trajsmith.phrasing.question_detection import find_questions, has_yes_or_no_question
from trajsmith.phrasing.voices import (
    apply_surface,
    draw_pattern,
    fill_pattern,
    get_user_voice,
    join_opening,
    load_voices,
)

USERS = load_voices().users
AGENTS = load_voices().agents
PHRASE = "cancel the order from 3 March"


def draw_all(patterns, draws=40):
    rng = random.Random(3)
    return {draw_pattern([pattern], rng) for pattern in patterns for _ in range(draws)}


@pytest.mark.parametrize("name", USERS)
def test_frames_hold_the_phrase_and_no_choice_is_left(name):
    voice = USERS[name]
    for text in draw_all((*voice.wants, *voice.further, *voice.picks, *voice.introductions)):
        assert text.count("{}") == 1 and not set(text) & set("[]|"), text
    reactions = (*voice.reactions.answered, *voice.reactions.done, *voice.reactions.refused)
    for text in draw_all((*voice.greetings, *reactions, *voice.agreements, *voice.leads)):
        assert not set(text) & set("[]|{}"), text


@pytest.mark.parametrize("name", USERS)
def test_agreements_are_understood(name):
    assert [text for text in draw_all(USERS[name].agreements) if not is_agreement(text)] == []


@pytest.mark.parametrize("name", AGENTS)
def test_requests_for_a_yes_are_understood(name):
    texts = [text.replace("{}", PHRASE) for text in draw_all(AGENTS[name].confirms)]
    assert [text for text in texts if not find_confirmation_requests(text)] == []
    assert [text for text in texts if not has_yes_or_no_question(find_questions(text))] == []


@pytest.mark.parametrize("name", AGENTS)
def test_offers_of_more_help_ask_for_no_yes(name):
    assert [text for text in draw_all(AGENTS[name].endings) if find_confirmation_requests(text)] == []


def test_values_stay_letter_by_letter():
    voice = get_user_voice("casual")
    text = 'Please send £40.00 to Tom Hallett with "Rent March" and mail Ann.Lee@example.com about GO-4105T.'
    for seed in range(50):
        typed = apply_surface(text, voice, {"Tom Hallett"}, random.Random(seed))
        for value in ("£40.00", "Tom Hallett", '"Rent March"', "Ann.Lee@example.com", "GO-4105T"):
            assert value in typed
        assert typed.startswith("p") and "Please" not in typed


def test_slips_are_rare_and_only_in_words():
    voice = get_user_voice("casual")
    text = "could you please check whether my parcel has already arrived somewhere"
    typed = [apply_surface(text, voice, (), random.Random(seed)) for seed in range(200)]
    slipped = [each for each in typed if each != text]
    assert 0.2 < len(slipped) / len(typed) < 0.5
    assert all(abs(len(each) - len(text)) <= 1 for each in slipped)


def test_nobody_makes_the_same_slip_twice():
    voice = get_user_voice("casual").model_copy(update={"typos": 1.0})
    slipped: set[str] = set()
    texts = [apply_surface("is anything on again", voice, (), random.Random(seed), slipped) for seed in range(9)]
    assert sum("anything" not in text for text in texts) == 1
    assert sum("again" not in text.split() for text in texts) == 1 and slipped == {"anything", "again"}


def test_a_style_that_nobody_knows_speaks_plainly():
    assert get_user_voice("mysterious") == USERS["plain"]
    assert fill_pattern(["[A|A] {}"], "b", random.Random(1)) == "A b"


def test_no_slip_breaks_a_word_of_the_request():
    text = "could you move the kitchen cleaning schedule after lunch"
    typed = {apply_surface(text, get_user_voice("casual"), (), random.Random(seed)) for seed in range(200)}
    assert len(typed) > 1
    assert all(each.endswith(" you move the kitchen cleaning schedule after lunch") for each in typed)


@pytest.mark.parametrize("name", USERS)
def test_no_chat_begins_like_a_letter(name):
    assert not [text for text in draw_all(USERS[name].greetings) if text.startswith("Dear")]


@pytest.mark.parametrize(
    ("opening", "text", "joined"),
    [
        ("Oh good,", "Please cancel it.", "Oh good, please cancel it."),
        ("Oh good,", "The thing is, I'd love to see it.", "Oh good. The thing is, I'd love to see it."),
        ("Right then,", "Well, I'd like to know.", "Right then. Well, I'd like to know."),
        ("Okay,", "OK, then I'd like to cancel it.", "OK, then I'd like to cancel it."),
        ("Thank you.", "There it is! Please stop it.", "There it is! Please stop it."),
        ("Great, thanks.", "Oh, that's the wrong one.", "Oh, that's the wrong one."),
        ("Hello,", "Oh no, it's gone!", "Hello, oh no, it's gone!"),
    ],
)
def test_a_fresh_start_follows_a_sentence(opening, text, joined):
    assert join_opening(opening, text) == joined


@pytest.mark.parametrize("name", USERS)
def test_answers_and_refusals_are_not_cheered(name):
    """An answer may be bad news."""
    reactions = USERS[name].reactions
    cheers = (
        "great",
        "perfect",
        "lovely",
        "brilliant",
        "wonderful",
        "excellent",
        "awesome",
        "super",
        "sweet",
        "pleased",
    )
    assert not [text for text in draw_all((*reactions.answered, *reactions.refused)) if text.lower().startswith(cheers)]


@pytest.mark.parametrize(
    ("opening", "text", "joined"),
    [
        ("Very good,", "No, wait, make it 19 degrees.", "No, wait, make it 19 degrees."),
        ("Great,", "On second thoughts, make it 19 degrees.", "On second thoughts, make it 19 degrees."),
        ("Lovely,", "Oh dear, they only need it once.", "Oh dear, they only need it once."),
        ("Hello,", "Sorry, plans have changed.", "Hello, sorry, plans have changed."),
        ("Very good,", "Please make it 19 degrees.", "Very good, please make it 19 degrees."),
    ],
)
def test_nobody_cheers_and_takes_it_back_in_one_breath(opening, text, joined):
    assert join_opening(opening, text) == joined


def test_a_list_of_names_keeps_its_capitals():
    """In small letters a comma of the list reads like the end of the phrase."""
    text = "Please cancel the order with the LED Desk Lamp, Beginner Telescope and Balance Bike. The Lamp is broken."
    said = apply_surface(text, get_user_voice("casual"), (), random.Random(2))
    assert "LED Desk Lamp, Beginner Telescope and Balance Bike" in said and "the lamp is broken" in said


def test_a_place_is_said_once_in_a_sentence():
    say = get_language().grammar.say_place_once
    assert say("I couldn't heat it in the main hall: a window is open in the main hall.").endswith(
        "a window is open there."
    )
    assert say("It's on in the hall. It's off in the hall.") == "It's on in the hall. It's off in the hall."
