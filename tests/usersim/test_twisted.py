"""What the scripted roles of variants may say: nothing that they were not shown, and as people say it."""

from chatmodel.asking import announces, open_text, questions
from trajectory import Message
from usersim.twisted import knows, plainly


def test_a_reason_is_known_only_if_every_word_of_it_was_shown():
    shown = [
        Message(role="system", content="Only confirmed trips can be changed."),
        Message(role="tool", content='{"booking_id":"B7","status":"travelled"}', tool_call_id="1", name="list_trips"),
        Message(role="user", content="Please move the trip."),
    ]
    assert knows(shown, "the trip is travelled; only confirmed trips can be changed")
    assert not knows(shown, "the minimum term runs until 2027-01-18")


def test_reasons_are_said_without_codes():
    assert (
        plainly("ticket INC4104 is in_progress until 2027-01-18")
        == "ticket INC4104 is in progress until 18 January 2027"
    )


def test_polite_offers_are_taken_out_of_a_long_text_without_stops():
    """A pattern that tries every start of a sentence would need hours for this."""
    rows = "; ".join(f"item {number} at £{number}" for number in range(40_000))
    text = f"I see {rows}. Is there anything else?"
    assert open_text(text) == f"I see {rows}."
    assert not questions(text) and not announces(text)
    assert questions("Done. Which one do you mean? Let me know if I can help") == ["Which one do you mean?"]
