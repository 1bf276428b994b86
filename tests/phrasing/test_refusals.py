"""Ways to say no: many starts, each heard as a refusal, with the reason in it; and whether a reason could be seen."""

import random

import pytest

from trajsmith.phrasing.agreement_detection import find_confirmation_requests, is_agreement, is_refusal
from trajsmith.phrasing.question_detection import find_questions, has_yes_or_no_question
from trajsmith.phrasing.refusals import DECLINES, is_reason_shown, load_refusals, measure_reason, render_refusal
from trajsmith.phrasing.voices import draw_pattern, load_voices

REASON = "the trip is cancelled; only confirmed trips can be changed"


def draw_many(patterns):
    return {draw_pattern([pattern], random.Random(seed)) for pattern in patterns for seed in range(12)}


def test_refusals_start_in_many_ways_and_each_is_heard():
    refusals = load_refusals()
    patterns = [
        each for by_style in (refusals.declines, refusals.rules) for group in by_style.values() for each in group
    ]
    texts = {text.replace("{Reason}", "{}") for text in draw_many(patterns)}
    assert all(DECLINES.search(text.replace("{}", "the moon is full")) for text in texts), texts
    assert len({" ".join(text.split()[:3]) for text in texts}) >= 20


def test_every_style_of_agents_has_its_own_ways():
    refusals = load_refusals()
    assert set(load_voices().agents) == set(refusals.declines) == set(refusals.rules)


def test_the_reason_stands_in_the_refusal():
    text = render_refusal(f"{REASON}.", "warm", True, random.Random(1))
    assert REASON in text and measure_reason(REASON, text) == 1.0
    assert measure_reason(REASON, "I'm sorry, that isn't possible.") == 0.0


def test_a_refusal_is_whole_sentences_and_one_colon():
    for style in load_voices().agents:
        for seed in range(40):
            text = render_refusal("rooms are full: only 3 seats are left", style, False, random.Random(seed))
            assert text[0].isupper() and text.endswith(".") and text.count(":") == 1 and "{" not in text


def test_after_something_else_was_done_a_refusal_says_what_was_not():
    for seed in range(20):
        text = render_refusal(REASON, "plain", False, random.Random(seed), "move the trip")
        assert "couldn't move the trip" in text and DECLINES.search(text)


def test_offers_are_questions_for_a_yes():
    offers = draw_many(load_refusals().offers)
    asked = [text.replace("{}", "book the technician for the morning of 2 January") for text in offers]
    assert [text for text in asked if not find_confirmation_requests(text)] == []


@pytest.mark.parametrize("value", ["21:00", "20 August"])
def test_offers_of_another_day_or_time_are_questions_for_a_yes(value):
    asked = [text.replace("{}", value) for text in draw_many(load_refusals().values)]
    assert [text for text in asked if not has_yes_or_no_question(find_questions(text))] == []


@pytest.mark.parametrize(
    "question", ["Which day would work for you?", "Would another day work for you?", "When would you work?"]
)
def test_a_question_for_another_day_is_none_for_a_yes(question):
    assert not has_yes_or_no_question(find_questions(question))


def test_answers_to_an_offer_are_a_clear_yes_or_no():
    refusals = load_refusals()
    assert all(is_agreement(text) for text in draw_many(refusals.accepts))
    assert all(is_refusal(text) for text in draw_many(refusals.leaves))


def test_what_is_left_is_not_said_to_be_all():
    """Something else of the message may have been changed."""
    assert not any(word in text for text in draw_many(load_refusals().left) for word in ("anything", "nothing"))


def test_several_things_of_a_batch_are_left_out_in_the_plural():
    texts = draw_many(load_refusals().left_out)
    assert not any("The one" in text or "{name} is" in text for text in texts), texts


@pytest.mark.parametrize(
    ("reason", "texts", "shown"),
    [
        (REASON, ["Only confirmed trips can be changed.", '{"status":"cancelled"}'], True),
        (REASON, ["Only confirmed trips can be changed.", '{"status":"booked"}'], False),
        ("only £200.00 can be sent", ["at most £200.00 can be sent in one day"], True),
        ("only £150.50 can be sent", ["at most £200.00 can be sent in one day"], False),
        ("only £1,200.00 is left", ['{"left":1200.0}'], True),
    ],
)
def test_a_reason_is_shown_if_its_words_and_numbers_are(reason, texts, shown):
    assert is_reason_shown(reason, texts) is shown
