"""Forms of referring expressions, and the words that narrow them down."""

from datetime import date

import pytest

from trajsmith.phrasing import EntityPhrases, NounLexicon, TextValues

LEXICON = NounLexicon({
    "order_id": EntityPhrases(noun="order", own=("my order",)),
    "account_id": EntityPhrases(noun="account"),
    "line_id": EntityPhrases(noun="line"),
    "plan_id": EntityPhrases(noun="plan"),
})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "form", "kind"),
    [
        ("Cancel that order.", "same", "order_id"),
        ("Track the same order, please.", "same", "order_id"),
        ("Is the new order paid?", "new", "order_id"),
        ("Cancel the order I just placed.", "new", "order_id"),
        ("Cancel the order from before.", "earlier", "order_id"),
        ("Cancel my most recent order.", "superlative", "order_id"),
        ("Take it from the account with the lowest balance.", "superlative", "account_id"),
        ("Cancel the second order.", "ordinal", "order_id"),
        ("Cancel the order from 3 March.", "described", "order_id"),
        ("Take it from my Travel Account.", "described", "account_id"),
        ("Cancel my order.", "bare", "order_id"),
        ("Cancel one of my orders.", "open", "order_id"),
        ("I'd like to place an order.", "open", "order_id"),
    ],
)
def test_forms(text, form, kind):
    (phrase,) = LEXICON.find(text)
    assert (phrase.form, phrase.kinds) == (form, (kind,))


@pytest.mark.parametrize("text", ["Show my orders.", "What is my account number?", "Put it in order."])
def test_no_single_entity(text):
    assert LEXICON.find(text) == []


def test_a_phrase_within_another_belongs_to_its_description():
    line, plan = LEXICON.find("Put the line on the Meadow plan on hold.")
    assert "Meadow plan" in line.narrow
    assert (line.within, plan.within) == (False, True)


def test_a_description_ends_with_its_clause():
    phrase = LEXICON.find("Cancel the order with the Lamp, Kettle and Chair, because it broke on 3 May.")[0]
    assert "Chair" in phrase.narrow
    assert "3 May" not in phrase.clause


@pytest.mark.parametrize(
    ("text", "value", "count"),
    [
        ("from 3 March", "2026-03-03", 1),
        ("from 3 March 2025", "2026-03-03", 0),
        ("from 3 March", "2024-03-03", 0),
        ("on 3 March at 14:30", "2026-03-03T14:30:00", 2),
        ("the £24.94 payment", 24.94, 1),
        ("the £124.94 payment", 24.94, 0),
        ("the order with the Lamp and Kettle", "2 x Lamp, 1 x Kettle", 2),
        ("the order with the Lamp", "2 x Lamp, 1 x Kettle", 0),
        ("the file in use", "in_use", 1),
    ],
)
def test_stated_values(text, value, count):
    assert TextValues(text, date(2026, 1, 10)).count_matches(value) == count
