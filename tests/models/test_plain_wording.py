"""Sentences about fields that nobody wrote phrases for."""

import random

import pytest

from trajsmith.phrasing import EntityPhrases
from trajsmith.phrasing.plain_sentences import (
    is_noun,
    render_field_phrase,
    render_plain_question,
    render_plain_statement,
)
from trajsmith.phrasing.value_formatting import format_quoted, format_value, is_value_mentioned


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
    asked, told = said(render_plain_question, "born", "1980-05-12"), said(render_plain_statement, "born", "1980-05-12")
    assert not any("the born" in text for text in asked | told)
    assert told == {"Born: 12 May 1980."}
    assert any('"born"' in text for text in asked)
    assert said(render_plain_question, "price", 3) >= {"What is the price?"}


def test_a_truth_value_is_asked_for_with_yes_or_no():
    assert all("yes or no" in text for text in said(render_plain_question, "bikes", True))
    assert said(render_plain_statement, "bikes", True) == {"Bikes: yes."}


def test_a_sentence_stands_in_quotation_marks():
    told = said(render_plain_statement, "event description", "Needs a second opinion.")
    assert told == {
        'The event description is "Needs a second opinion."', 'Event description: "Needs a second opinion."',
    }  # fmt: skip
    assert all(is_value_mentioned(text, "Needs a second opinion.") for text in told)
    assert format_quoted("Login page fails") == '"Login page fails"'


@pytest.mark.parametrize(
    "name", ["Steel Bottle", "Bank of America", "12 Mill Lane", "Dr. Smith", "in_progress", "x@y.z"]
)
def test_names_and_addresses_stand_as_they_are(name):
    assert format_quoted(name) == format_value(name)


def test_a_record_is_picked_by_what_is_no_noun():
    assert (
        render_field_phrase(EntityPhrases(noun="patient"), "born", "born", "1980-05-12")
        == "the patient born 12 May 1980"
    )
    assert (
        render_field_phrase(EntityPhrases(noun="order"), "created_on", "created on", "2026-03-01")
        == "the order created on 1 March 2026"
    )
    assert render_field_phrase(EntityPhrases(noun="order"), "note", "note", "Please call before noon") == (
        'the order with the note "Please call before noon"'
    )


def test_a_limit_is_a_wish_and_no_field():
    assert said(render_plain_statement, "limit", 5) == {"At most 5, please.", "No more than 5, please."}
