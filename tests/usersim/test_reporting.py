"""What an agent says of results that nobody wrote phrases for."""

from trajsmith.records import AnswerFact
from trajsmith.usersim.reporting import render_missing_facts


def facts(*values):
    return [AnswerFact(value=value) for value in values]


def test_facts_that_are_left_out_are_said_by_the_names_of_their_fields():
    result = {"customer": {"full_name": "Marisol Quinn", "tier": "gold"}, "points": 0}
    found = render_missing_facts("Your order is placed.", facts("Marisol Quinn", "gold", 0), [result])
    assert found == ["Full name: Marisol Quinn.", "Tier: gold.", "Points: 0."]


def test_what_was_said_is_not_said_again_and_what_has_no_field_is_still_said():
    assert render_missing_facts("You have gold, Marisol Quinn.", facts("Marisol Quinn", "gold"), []) == []
    assert render_missing_facts("Done.", facts("a", "b"), [{"x": 1}]) == ["It also shows a and b."]
