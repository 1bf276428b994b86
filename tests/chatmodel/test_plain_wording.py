"""Sentences about fields that nobody wrote phrases for."""

import random

import pytest

from chatmodel.plain import ask_plainly, by_field, is_noun, tell_plainly
from chatmodel.surface import mentions, quoted, say


def said(speak, *arguments):
    """Everything that may be said."""
    return {speak(*arguments, random.Random(seed)) for seed in range(30)}


@pytest.mark.parametrize(
    ("label", "noun"),
    [
        ("price", True), ("speed", True), ("needed seats", True), ("event description", True),
        ("born", False), ("created on", False), ("is active", False), ("discontinued", False), ("valid until", False),
    ],
)  # fmt: skip
def test_names_of_fields_that_cannot_stand_after_an_article(label, noun):
    assert is_noun(label) is noun


def test_what_is_no_noun_is_asked_for_and_told_by_its_name_only():
    asked, told = said(ask_plainly, "born", "1980-05-12"), said(tell_plainly, "born", "1980-05-12")
    assert not any("the born" in text for text in asked | told)
    assert told == {"Born: 12 May 1980."}
    assert any('"born"' in text for text in asked)
    assert said(ask_plainly, "price", 3) >= {"What is the price?"}


def test_a_truth_value_is_asked_for_with_yes_or_no():
    assert all("yes or no" in text for text in said(ask_plainly, "bikes", True))
    assert said(tell_plainly, "bikes", True) == {"Bikes: yes."}


def test_a_sentence_stands_in_quotation_marks():
    told = said(tell_plainly, "event description", "Needs a second opinion.")
    assert told == {
        'The event description is "Needs a second opinion."', 'Event description: "Needs a second opinion."',
    }  # fmt: skip
    assert all(mentions(text, "Needs a second opinion.") for text in told)
    assert quoted("Login page fails") == '"Login page fails"'


@pytest.mark.parametrize(
    "name", ["Steel Bottle", "Bank of America", "12 Mill Lane", "Dr. Smith", "in_progress", "x@y.z"]
)
def test_names_and_addresses_stand_as_they_are(name):
    assert quoted(name) == say(name)


def test_a_record_is_picked_by_what_is_no_noun():
    assert by_field("patient", "born", "born", "1980-05-12") == "the patient born 12 May 1980"
    assert by_field("order", "created_on", "created on", "2026-03-01") == "the order created on 1 March 2026"
    assert by_field("order", "note", "note", "Please call before noon") == (
        'the order with the note "Please call before noon"'
    )


def test_a_limit_is_a_wish_and_no_field():
    assert said(tell_plainly, "limit", 5) == {"At most 5, please.", "No more than 5, please."}
