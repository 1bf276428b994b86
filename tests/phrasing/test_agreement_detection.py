"""What asks for a yes, what is one, and what is not."""

import pytest

from trajsmith.phrasing.agreement_detection import (
    accepts_call,
    find_confirmation_requests,
    grants_permission,
    is_agreement,
    is_refusal,
    wants_question,
)
from trajsmith.phrasing.languages import get_language
from trajsmith.querygen.vary.changed_mind import CHECK


@pytest.mark.parametrize(
    "text",
    [
        "The refund is £30. Do you confirm (yes/no)?",
        "Would you like me to proceed with the cancellation?",
        "Please confirm that I should cancel reservation ABC.",
        "I need your explicit confirmation to proceed. Please reply 'yes'.",
        "I'll send £300.00 to Umar. Are you happy for me to go ahead?",
        "Let me know if you’d like me to book it.",
    ],
)
def test_requests_for_a_yes(text):
    assert find_confirmation_requests(text)


@pytest.mark.parametrize(
    "text",
    [
        "Which date should I enter for it?",
        'Should I put yes or no for "all day"?',
        "Could you confirm your email?",
        "May I ask why the card should be stopped?",
        "What would you like me to write?",
        "Under which title should I enter it?",
        "Should I charge the card or use points?",
        "Your order has been cancelled.",
    ],
)
def test_other_questions_ask_for_no_yes(text):
    assert find_confirmation_requests(text) == []


@pytest.mark.parametrize("text", ["No problem, go ahead", "Yes, I don't need it any more.", "That works for me."])
def test_yes(text):
    assert is_agreement(text) and not is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        *get_language().user.no,
        "Wait!",
        "I don't think so.",
        "Not sure.",
        "Yes, but not now.",
        "Please don't cancel it.",
        "Why?",
    ],
)
def test_no_yes(text):
    assert not is_agreement(text)


def test_a_correction_agrees_to_what_it_names():
    assert accepts_call("Actually, wait. Make it £30.00 instead.", {"amount": 30.0})
    assert not accepts_call("Actually, wait. Make it £30.00 instead.", {"amount": 50.0})
    assert not accepts_call("No, don't send £30.00.", {"amount": 30.0})


@pytest.mark.parametrize("text", CHECK)
def test_users_who_want_to_be_asked(text):
    assert wants_question(text) and not grants_permission(text)


@pytest.mark.parametrize("text", ["Just go ahead.", "No need to check with me.", "Do it without asking, please."])
def test_users_who_permit_it_in_advance(text):
    assert grants_permission(text)


def test_a_title_with_a_colon_ends_no_sentence():
    text = 'Shall I pass the ticket "Network: nobody can connect" on to Second Line Support?'
    assert find_confirmation_requests(text) == [
        'Shall I pass the ticket "Network nobody can connect" on to Second Line Support?'
    ]


def test_a_wish_to_be_asked_is_about_one_thing():
    """A wish to be asked before anything is changed would hold for all that is asked for later, too."""
    assert not [sentence for sentence in CHECK if "anything" in sentence]
