"""What a report tells of a field that a later call of the same message has changed."""

import pytest

from trajsmith.grounding import update_outdated_fields
from trajsmith.querygen.requested_info import drop_outdated_facts
from trajsmith.records import AnswerFact, FromOutput, GoldCall, RequestedInfo

ACCOUNTS = {"result": [{"account_id": "A1", "balance": 100.0}, {"account_id": "A2", "balance": 50.0}]}
GOALS = {"result": [{"goal_id": n, "customer_id": "C1", "saved": s} for n, s in (("G1", 5.0), ("G2", 9.0))]}


def read(tool, arguments, result):
    return GoldCall(tool=tool, arguments=arguments, provenance={}, effect="read", result=result)


def write(arguments, result, sources=(("account_id", 1),)):
    provenance = {name: FromOutput(call=call, path=f"$.result[*].{name}") for name, call in sources}
    return GoldCall(tool="move", arguments=arguments, provenance=provenance, effect="write", result=result)


START = (
    read("find_customer", {"phone": "1"}, {"customer_id": "C1", "left_today": 60.0}),
    read("list_accounts", {"customer_id": "C1"}, ACCOUNTS),
    read("list_goals", {"customer_id": "C1"}, GOALS),
)


def update(*writes):
    calls = [*START, *writes]
    return update_outdated_fields(calls, [call.result for call in calls], len(START))


def test_of_two_payments_from_an_account_its_last_balance_is_told():
    first = write({"account_id": "A1", "amount": 10.0}, {"amount": 10.0, "balance": 90.0, "left_today": 50.0})
    second = write({"account_id": "A1", "amount": 20.0}, {"amount": 20.0, "balance": 70.0, "left_today": 30.0})
    assert update(first, second) == {"amount": 10.0, "balance": 70.0, "left_today": 30.0}


def test_the_owner_shares_what_is_left_where_the_accounts_are_two():
    first = write({"account_id": "A1"}, {"balance": 90.0, "left_today": 50.0})
    second = write({"account_id": "A2"}, {"balance": 30.0, "left_today": 30.0})
    assert update(first, second) == {"balance": 90.0, "left_today": 30.0}


@pytest.mark.parametrize("other", [{"goal_id": "G2", "saved": 12.0}, {"saved": 12.0}])
def test_a_field_of_another_thing_of_the_same_owner_stays(other):
    first = write({"goal_id": "G1"}, {"saved": 7.0}, [("goal_id", 2)])
    second = write({"goal_id": "G2"}, other, [("goal_id", 2)])
    assert update(first, second) == {"saved": 7.0}


def test_a_changed_value_is_no_fact_any_more():
    first = write({"account_id": "A1"}, {"payee_name": "Northgate", "balance": 90.0})
    second = write({"account_id": "A1"}, {"payee_name": "Brightwater", "balance": 70.0})
    facts = tuple(AnswerFact(value=first.result[name], call=3, place=(name,)) for name in first.result)
    info = RequestedInfo(call=3, question="Please pay both.", facts=facts)
    assert [fact.value for fact in drop_outdated_facts(info, [*START, first, second]).facts] == ["Northgate"]
    assert drop_outdated_facts(info, [*START, first]) == info


def test_a_fact_whose_field_is_not_known_stays_if_its_value_does():
    first = write({"account_id": "A1"}, {"payee_name": "Northgate", "balance": 90.0})
    second = write({"account_id": "A1"}, {"payee_name": "Brightwater", "balance": 70.0})
    facts = tuple(AnswerFact(value=value) for value in first.result.values())
    info = RequestedInfo(call=3, question="Please pay both.", facts=facts)
    assert [fact.value for fact in drop_outdated_facts(info, [*START, first, second]).facts] == ["Northgate"]
