"""Is it told, and does it hold anything that nobody could know? Both by example."""

import pytest

from trajsmith.phrasing import ParameterPhrases, Phrasebook, Wording
from trajsmith.phrasing.fact_detection import AllowedContent, is_fact_stated
from trajsmith.phrasing.question_detection import (
    find_questions,
    has_yes_or_no_question,
    is_announcement,
    is_yes_or_no,
)
from trajsmith.records import UserFact

WORDING = Wording(
    Phrasebook(parameters={"t.reason": ParameterPhrases(label="reason", values={"lost": ("gone missing",)})}), []
)


def known(value, said="", slot="slot", how="value", label="thing", key="t.slot"):
    return UserFact(key=key, label=label, value=value, said=said, slot=slot, how=how)


@pytest.mark.parametrize(
    ("entry", "text", "told"),
    [
        (known("W1001", "W1001"), "It is w1001.", True),
        (known("W1001", "W1001"), "It is W10012.", False),
        (known("lost", "lost", "reason", key="t.reason"), "Sadly it has gone missing.", True),
        (known("2026-03-03", "3 March 2026"), "On March 3rd, please.", True),
        (known("2026-03-03T14:30:00", "3 March 2026 at 14:30"), "On 3 March.", False),
        (known("2026-03-03T14:30:00", "3 March 2026 at 14:30"), "On 3 March at 2:30 pm.", True),
        (known("2026-03-03T14:30:00", "the trip on 3 March 2026", "trip_id|at", "equals"), "The one of 3 March.", True),
        (known(85.0, "the lowest", "account|balance", "smallest"), "The one with the least on it.", True),
        (known(85.0, "the lowest", "account|balance", "smallest"), "My current account.", False),
        (known(True, "yes", label="gift wrap"), "Please with gift wrapping.", True),
        (known(["a1", "b2"], "a1 and b2"), "b2 and then a1", True),
        (known(1500, "1500"), "That is 1,500 in all.", True),
    ],
)
def test_what_is_told_is_recognised(entry, text, told):
    assert is_fact_stated(text, entry, WORDING) is told


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("Could Ann have order W1001, the one of 3 March, for £20?", []),
        ("It is case ZX-90417.", ["ZX-90417"]),
        ("It cost £25.", ["25"]),
        ("Before 4 March, please.", ["4 March"]),
        ("At 14:30 sharp.", ["14:30"]),
        ("Write to ann@post.org.", ["ann@post.org"]),
        ("Give it to Robert.", ["Robert"]),
        ('Put "Best wishes" on the card.', ["Best wishes"]),
        ("I'd like the 2nd one, please. Thanks!", []),
    ],
)
def test_what_nobody_could_know_is_found(text, strange):
    allowed = AllowedContent()
    allowed.add("Ann", "W1001", "2026-03-03", 20)
    assert allowed.find_unsupported(text) == strange


@pytest.mark.parametrize(
    ("text", "asked", "yes", "coming"),
    [
        ("Which order do you mean?", True, False, False),
        ("Shall I cancel it for a.b@c.org?", True, True, False),
        ("Please tell me your postcode.", True, False, False),
        ("It is cancelled. Is there anything else I can help with?", False, False, False),
        ("Let me check that for you.", False, False, True),
        ("I'll remind you of the product demo 5 minutes before.", False, False, False),
        ("I'll set a reminder 5 minutes before.", False, False, True),
        ("On which day would you like to go ahead?", True, False, False),
        ("Your total is 3.50.", False, False, False),
        ("Could you confirm your email?", True, True, False),
    ],
)
def test_what_a_text_wants(text, asked, yes, coming):
    assert (bool(find_questions(text)), has_yes_or_no_question(find_questions(text)), is_announcement(text)) == (
        asked,
        yes,
        coming,
    )


def test_to_confirm_a_value_is_more_than_a_yes():
    assert not is_yes_or_no("Could you confirm your email?")
    assert is_yes_or_no("Shall I go ahead?")


@pytest.mark.parametrize("question", ["May I have your email address?", "And may I ask which day suits you?"])
def test_a_courteous_request_for_a_value_is_not_answered_by_yes(question):
    assert find_questions(question) and not is_yes_or_no(question)


@pytest.mark.parametrize(
    "question",
    [
        "May I have your agreement to cancel it?",
        "May I cancel it?",
        "May I have a code made for Ann, until 3 May?",
        "May I have your phone replaced?",
        'May I take "Jazz evening" out of your calendar for good?',
    ],
)
def test_a_courteous_request_for_a_yes_is_one(question):
    assert is_yes_or_no(question)
