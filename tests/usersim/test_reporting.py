"""What an agent says of results that nobody wrote phrases for."""

from trajsmith.records import AnswerFact
from trajsmith.usersim.reporting import render_missing_facts, summarize_reports


def facts(*values):
    return [AnswerFact(value=value) for value in values]


def test_facts_that_are_left_out_are_said_by_the_names_of_their_fields():
    result = {"customer": {"full_name": "Marisol Quinn", "tier": "gold"}, "points": 0}
    found = render_missing_facts("Your order is placed.", facts("Marisol Quinn", "gold", 0), [result])
    assert found == ["Full name: Marisol Quinn.", "Tier: gold.", "Points: 0."]


def test_what_was_said_is_not_said_again_and_what_has_no_field_is_still_said():
    assert render_missing_facts("You have gold, Marisol Quinn.", facts("Marisol Quinn", "gold"), []) == []
    assert render_missing_facts("Done.", facts("a", "b"), [{"x": 1}]) == ["It also shows a and b."]


def test_each_line_of_a_batch_has_a_name_and_what_holds_of_all_is_said_once():
    reports = [f"That's done, with a refund of £{amount}.00. It can't be undone." for amount in (45, 12)]
    lines, shared = summarize_reports(reports, ["the order from 3 May", "the order from 9 May"])
    assert lines == [
        "The order from 3 May: that's done, with a refund of £45.00.",
        "The order from 9 May: that's done, with a refund of £12.00.",
    ]
    assert shared == ["It can't be undone."]
    lines, shared = summarize_reports(
        ['"Quiz night" is declined.', '"Garden lunch" is declined.'], ['"Quiz night"', ""]
    )
    assert lines == ['"Quiz night" is declined.', '"Garden lunch" is declined.'] and shared == []
