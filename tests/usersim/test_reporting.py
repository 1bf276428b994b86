"""What an agent says of results that nobody wrote phrases for."""

from usersim.reporting import facts_beside


def test_facts_that_are_left_out_are_said_by_the_names_of_their_fields():
    result = {"customer": {"full_name": "Marisol Quinn", "tier": "gold"}, "points": 0}
    found = facts_beside("Your order is placed.", ["Marisol Quinn", "gold", 0], [result])
    assert found == ["Full name: Marisol Quinn.", "Tier: gold.", "Points: 0."]


def test_what_was_said_is_not_said_again_and_what_has_no_field_is_still_said():
    assert facts_beside("You have gold, Marisol Quinn.", ["Marisol Quinn", "gold"], []) == []
    assert facts_beside("Done.", ["a", "b"], [{"x": 1}]) == ["It also shows a and b."]
