"""How the scripted agent asks for a yes: once, together where that is natural, and with names for things."""

import random

import pytest

from trajsmith.phrasing import EntityPhrases, Phrasebook, ToolPhrases, Wording
from trajsmith.phrasing.agreement_detection import find_confirmation_requests
from trajsmith.phrasing.voices import get_agent_voice
from trajsmith.records import ConfirmationRule, FromOutput, FromUser, GoldCall, ToolSpec
from trajsmith.usersim.confirmation_questions import ConfirmationWriter, IdentifiedRow

ACCOUNTS = [{"account_id": "A1", "name": "Bills Account"}, {"account_id": "A2", "name": "Bonus Saver"}]
ORDERS = [{"order_id": f"S{n}", "payee": payee} for n, payee in enumerate(("Ida", "Noor", "Umar"))]


def make_tool(name, rule, *parameters):
    schema = {"type": "object", "properties": {name: {} for name in parameters}}
    return ToolSpec(server="bank", name=name, description=f"{name}.", input_schema=schema, confirm=rule)


TOOLS = [
    make_tool("pay", ConfirmationRule(above={"amount": 200}, because="a payment is final"), "account_id", "amount"),
    make_tool("stop", ConfirmationRule(always=True, because="the customer loses it"), "order_id"),
]
BOOK = Phrasebook(
    entities={
        "account_id": EntityPhrases(noun="account", by={"name": ("my {value}", "the {value}")}),
        "order_id": EntityPhrases(noun="standing order", by={"payee": ("my order to {value}",)}, row="to {payee}"),
    },
    tools={
        "pay": ToolPhrases(confirm=("send it", "send {amount|money} from {account_id}; it can't be taken back")),
        "stop": ToolPhrases(confirm=("stop this standing order for good",)),
    },
)


def make_call(tool, row, rows, **arguments):
    name = next(iter(row))
    provenance = {name: FromOutput(call=0, path=f"$.result[*].{name}")}
    provenance |= {key: FromUser(known=key) for key in arguments}
    call = GoldCall(tool=tool, arguments={name: row[name], **arguments}, provenance=provenance, effect="write")
    return call, {name: IdentifiedRow(row, rows, stale=False)}


def ask(*calls, seed=0):
    text = ConfirmationWriter(Wording(BOOK, TOOLS), random.Random(seed), get_agent_voice("plain")).write(calls)
    assert find_confirmation_requests(text), "the check knows it as a request for a yes"
    return text


@pytest.mark.parametrize("seed", range(6))
def test_thing_and_bounded_amount_are_always_named(seed):
    text = ask(make_call("pay", ACCOUNTS[0], ACCOUNTS, amount=300.0), seed=seed)
    assert "send £300.00 from the Bills Account" in text and "It can't be taken back." in text
    assert "A1" not in text and ";" not in text


def test_a_thing_that_the_phrase_does_not_name_is_shown():
    assert "to Noor" in ask(make_call("stop", ORDERS[1], ORDERS))


def test_several_things_are_asked_for_together():
    text = ask(*(make_call("stop", row, ORDERS) for row in ORDERS))
    assert "to Ida; to Noor; to Umar" in text and "do the same with the other 2" in text and text.count("?") == 1
    text = ask(make_call("pay", ACCOUNTS[0], ACCOUNTS, amount=300.0), make_call("stop", ORDERS[1], ORDERS))
    assert "send £300.00 from the Bills Account and stop this standing order for good" in text


def test_a_reason_in_the_words_of_the_policy_is_not_said_to_the_user():
    assert "customer" not in ask(make_call("stop", ORDERS[1], ORDERS))
