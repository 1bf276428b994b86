"""Clauses that tell the state of several things: those of one state share their verb, and "and" joins the others."""

import pytest

from trajsmith.phrasing.languages.english_grammar import EnglishGrammar


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        ("The lamp is on, the radio is off and the fan is on.", "The lamp and the fan are on, and the radio is off."),
        (
            "Card 4359 is blocked, card 3699 is blocked, and card 7690 is frozen.",
            "Card 4359 and card 3699 are blocked, and card 7690 is frozen.",
        ),
        (
            "The gate is unlocked, the front door is locked.",
            "The gate is unlocked and the front door is locked.",
        ),
        (
            "Your request for A is pending, and the one for B is pending.",
            "Your request for A and the one for B are pending.",
        ),
    ],
)
def test_things_of_one_state_share_their_verb(text, merged):
    assert EnglishGrammar().merge_states(text) == merged


@pytest.mark.parametrize(
    "text",
    [
        "That line is active, so nothing is blocked on our side.",
        "Samir Takahashi is a viewer, Ivo Barros is an editor and Zita Walsh is an editor.",
        "The front door is locked, but the garage door is unlocked.",
        "The order is on its way. Is the lamp on, and the radio is off?",
        "The set of Cups and Saucers is sold out.",
    ],
)
def test_other_sentences_stay_as_they_are(text):
    assert EnglishGrammar().merge_states(text) == text
