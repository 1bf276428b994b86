"""What "that account" may mean: only a thing that was really spoken of."""

import random

import pytest

from trajsmith.phrasing import EntityPhrases, Phrasebook, ToolPhrases, Wording
from trajsmith.querygen.request import RequestWriter
from trajsmith.records import FromOutput, FromUser, GoldCall, Selector, ToolSpec, UserFact

ACCOUNTS = {"result": [{"account_id": "A1", "balance": 5.0}, {"account_id": "A2", "balance": 9.0}]}
LOWEST = Selector(rows="$.result", how="smallest", field="balance", value=5.0)
PICK = FromOutput(call=0, path="$.result[*].account_id", selectors=(LOWEST,))
KEY = "pick.0.$.result.balance.smallest=5.0"


def tool(name: str, **parameters: str) -> ToolSpec:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in parameters.items()}}
    return ToolSpec(
        server="bank", name=name, description=f"{name}.", input_schema=schema | {"required": sorted(parameters)}
    )


def pays(name: str, amount: float) -> GoldCall:
    sources = {"account_id": PICK, "amount": FromUser(known=f"{name}.amount")}
    given = {"account_id": "A1", "amount": amount}
    return GoldCall(tool=name, arguments=given, provenance=sources, effect="write", result={"balance": 1.0})


def request(first_template: str, seed: int) -> str:
    """One turn with two payments from one account; the first is asked for by this template."""
    tools = [tool("list_accounts"), *(tool(name, account_id="string", amount="number") for name in ("send", "pay"))]
    book = Phrasebook(
        tools={"send": ToolPhrases(ask=[first_template]), "pay": ToolPhrases(ask=["pay {amount} from {account_id}"])},
        entities={"account_id": EntityPhrases(noun="account", own=["my account"])},
    )
    calls = [GoldCall(tool="list_accounts", arguments={}, provenance={}, effect="read", result=ACCOUNTS)]
    calls += [pays("send", 2.0), pays("pay", 1.0)]
    known = {
        KEY: UserFact(
            key=KEY, label="balance", value=5.0, said="the lowest", slot="account_id|balance", how="smallest"
        ),
        **{
            f"{name}.amount": UserFact(
                key=f"{name}.amount", label="amount", value=amount, said=str(amount), slot="amount"
            )
            for name, amount in (("send", 2.0), ("pay", 1.0))
        },
    }
    rng = random.Random(seed)
    writer = RequestWriter(Wording(book, tools), calls, known, '{"A1": 1, "A2": 2}', rng)
    found = writer.write(0, 3, (1, 2), withhold=False)
    assert found.stated == known.keys()
    return found.text


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("template", ["send {amount}", "send {amount} from {account_id}"])
def test_an_account_is_named_before_it_is_that_account(template, seed):
    text = request(template, seed)
    assert text.index("account with the lowest balance") < text.index("that account")


@pytest.mark.parametrize("seed", range(12))
def test_a_payee_is_called_by_name_again(seed):
    """People and firms are no "that payee"."""
    payees = {"result": [{"payee_id": "P1", "name": "Ida Larsen"}, {"payee_id": "P2", "name": "Valley Water"}]}
    named = Selector(rows="$.result", how="equals", field="name", value="Ida Larsen")
    pick, key = (
        FromOutput(call=0, path="$.result[*].payee_id", selectors=(named,)),
        "pick.0.$.result.name.equals=Ida Larsen",
    )
    tools = [tool("list_payees"), *(tool(name, payee_id="string") for name in ("thank", "pay"))]
    book = Phrasebook(
        tools={"thank": ToolPhrases(ask=["thank {payee_id}"]), "pay": ToolPhrases(ask=["pay {payee_id}"])},
        entities={"payee_id": EntityPhrases(noun="payee", own=["my payee"], by={"name": ["{value}"]})},
    )
    calls = [GoldCall(tool="list_payees", arguments={}, provenance={}, effect="read", result=payees)]
    calls += [
        GoldCall(tool=name, arguments={"payee_id": "P1"}, provenance={"payee_id": pick}, effect="write", result={})
        for name in ("thank", "pay")
    ]
    fact = UserFact(key=key, label="name", value="Ida Larsen", said="Ida Larsen", slot="payee_id|name", how="equals")
    writer = RequestWriter(Wording(book, tools), calls, {key: fact}, '{"P1": 1, "P2": 2}', random.Random(seed))
    text = writer.write(0, 3, (1, 2), withhold=False).text
    assert text.count("Ida Larsen") == 2 and "payee" not in text
