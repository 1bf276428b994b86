"""When a call needs a yes: what tools declare, what follows from hints and words, and how the policy says it."""

import json

import pytest

from trajsmith.environments import Environment, EnvironmentState, tool
from trajsmith.environments.composite import compose_spec
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.phrasing import (
    find_shown_row,
    get_confirmation_rule,
    needs_confirmation,
    render_confirmation_policy,
    render_full_policy,
    summarize_rule,
)
from trajsmith.records import ConfirmationRule, EnvironmentSpec, InputError, ToolAnnotations, ToolSpec, content_hash


def make_tool(name, description="", confirm=None, parameters=None, **hints):
    schema = {"type": "object", "properties": parameters or {"id": {"type": "string"}}}
    return ToolSpec(
        server="s", name=name, description=description, input_schema=schema, confirm=confirm,
        annotations=ToolAnnotations(**hints),
    )  # fmt: skip


PAY = {"amount": {"type": "number"}, "payee_id": {"type": "string"}, "reason": {"enum": ["rent", "gift"]}}


@pytest.mark.parametrize(
    ("rule", "arguments", "needed"),
    [
        pytest.param(ConfirmationRule(always=True), {}, True, id="always"),
        pytest.param(ConfirmationRule(), {"amount": 9000}, False, id="never"),
        pytest.param(ConfirmationRule(above={"amount": 200}), {"amount": 200}, False, id="at_the_bound"),
        pytest.param(ConfirmationRule(above={"amount": 200}), {"amount": 200.01}, True, id="above_the_bound"),
        pytest.param(ConfirmationRule(above={"amount": 200}), {}, False, id="no_amount"),
        pytest.param(ConfirmationRule(arguments={"reason": ("gift",)}), {"reason": "gift"}, True, id="by_argument"),
        pytest.param(ConfirmationRule(arguments={"reason": ("gift",)}), {"reason": "rent"}, False, id="other_argument"),
        pytest.param(ConfirmationRule(shown={"new": (True,)}), {"payee_id": "P2"}, True, id="by_the_shown_row"),
        pytest.param(ConfirmationRule(shown={"new": (True,)}), {"payee_id": "P1"}, False, id="other_row"),
        pytest.param(ConfirmationRule(shown={"new": (True,)}), {"payee_id": "P9"}, False, id="row_never_shown"),
    ],
)
def test_a_declared_rule_decides(rule, arguments, needed):
    shown = [{"result": [{"payee_id": "P1", "new": False}, {"payee_id": "P2", "new": True}]}, {"balance": 3}]
    assert needs_confirmation(make_tool("pay", confirm=rule, parameters=PAY), arguments, shown) is needed


def test_the_row_that_was_shown_last_counts():
    shown = [{"payee_id": "P1", "new": True}, {"payee_id": "P1", "new": False}, {"payee_id": "P1", "name": "Ida"}]
    assert find_shown_row({"payee_id": "P1"}, shown, "new")["new"] is False
    assert find_shown_row({"from_payee_id": "P1"}, shown)["name"] == "Ida"
    assert find_shown_row({"amount": 3}, [{"amount": 3}]) == {}, "an amount identifies nothing"


@pytest.mark.parametrize(
    ("tool_spec", "summary"),
    [
        pytest.param(make_tool("x", read_only_hint=True, destructive_hint=True), "", id="a_read_never"),
        pytest.param(make_tool("x", destructive_hint=True), "always (by its hint)", id="destructive_hint"),
        pytest.param(make_tool("delete_all", destructive_hint=False), "", id="the_hint_goes_before_words"),
        pytest.param(make_tool("git_delete_branch"), "always (by its words)", id="verb_in_the_name"),
        pytest.param(make_tool("cancelOrder"), "always (by its words)", id="camel_case"),
        pytest.param(make_tool("drop", "Removes the row for good."), "always (by its words)", id="verb_of_description"),
        pytest.param(make_tool("list_cancelled_orders"), "", id="a_participle_is_no_verb"),
        pytest.param(make_tool("get_delete_log", "Get what was deleted."), "", id="reads_by_its_name"),
        pytest.param(make_tool("transfer", parameters=PAY), "always (by its words)", id="moves_money"),
        pytest.param(make_tool("transfer_to_human_agents"), "", id="moves_no_money"),
        pytest.param(make_tool("create_note"), "", id="plain_write"),
    ],
)
def test_undeclared_tools_follow_from_hints_and_words(tool_spec, summary):
    assert summarize_rule(tool_spec) == summary
    assert needs_confirmation(tool_spec, {}) is bool(summary)


def test_tools_of_the_user_need_no_yes():
    own = make_tool("delete_app", destructive_hint=True).model_copy(update={"actor": "user"})
    assert not needs_confirmation(own, {})


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        pytest.param(
            ConfirmationRule(above={"amont": 1}), "'amont' is no parameter; there are amount, kind", id="name"
        ),
        pytest.param(ConfirmationRule(above={"kind": 1}), "'kind' is no number", id="no_number"),
        pytest.param(ConfirmationRule(arguments={"kind": ("c",)}), "'c' is none of a, b", id="no_choice"),
        pytest.param(ConfirmationRule(always=True, above={"amount": 1}), "always, and a condition", id="two"),
    ],
)
def test_a_rule_that_does_not_fit_its_tool_is_refused(rule, message):
    from typing import Literal

    class Till(Environment[EnvironmentState]):
        """A till."""

        @tool(effect="write", confirm=rule)
        def pay(self, amount: float, kind: Literal["a", "b"]) -> bool:
            """Pay."""
            return True

    with pytest.raises(InputError, match=message) as caught:
        Till.describe()
    assert "\n" not in str(caught.value) and "pay: confirm" in str(caught.value)


def test_tools_without_a_rule_serialize_as_before():
    plain = make_tool("x")
    assert "confirm" not in plain.model_dump(mode="json")
    assert "confirm" not in json.loads(plain.model_dump_json())
    ruled = make_tool("x", confirm=ConfirmationRule(above={"id": 2}))
    assert ToolSpec.model_validate_json(ruled.model_dump_json()) == ruled
    assert "confirm" not in json.dumps(ruled.as_function())
    assert content_hash(plain.model_dump(mode="json")) != content_hash(ruled.model_dump(mode="json"))


def test_the_policy_says_exactly_when_to_ask():
    tools = [
        make_tool("cancel", "Cancel an order.", ConfirmationRule(always=True, because="it cannot be undone.")),
        make_tool("wipe", "Wipe a disk.", ConfirmationRule(always=True, because="it cannot be undone")),
        make_tool("pay", "Pay somebody.", ConfirmationRule(above={"amount": 200.0}), PAY),
        make_tool("give", "Give.", ConfirmationRule(arguments={"reason": ("rent", "gift")}), PAY),
        make_tool("book", "Book a room.", ConfirmationRule(shown={"is_refundable": (False,), "kind": ("x_y",)})),
        make_tool("note", "Write a note."),
        make_tool("look", "Look.", read_only_hint=True),
    ]
    lines = render_confirmation_policy(tools).splitlines()
    assert lines[1:-1] == [
        "- cancel an order; wipe a disk (it cannot be undone)",
        "- pay somebody if the amount is above 200",
        "- give if the reason is rent or gift",
        "- book a room if it is shown as not refundable or its kind is shown as x y",
    ]
    assert "wait for the user's yes" in lines[0] and "without asking back" in lines[-1]
    assert render_confirmation_policy(tools, "direct").startswith("The user has already agreed")
    assert render_confirmation_policy(tools[-1:]) == "", "nothing is said where nothing is written"
    assert "without asking back" in render_confirmation_policy(tools[-2:])


def test_the_policy_stays_short_with_hundreds_of_tools():
    tools = [make_tool(f"delete_{n}", f"Delete thing number {n} from the shelf.") for n in range(40)]
    tools += [make_tool(f"add_{n}", f"Add thing number {n} to the shelf.") for n in range(300)]
    text = render_confirmation_policy(tools)
    assert len(text.splitlines()) == 3 and len(text) < 1000
    assert "`delete_0`, `delete_1`" in text and "add_" not in text


def test_rules_stay_with_the_tools_of_a_composite_environment():
    specs = [ENVIRONMENTS.get(name).describe() for name in ("bank", "retail")]
    joined = compose_spec(specs)
    for spec in specs:
        for each in spec.tools:
            whole = joined.tool(f"{spec.name}__{each.name}")
            assert get_confirmation_rule(whole) == get_confirmation_rule(each)


def test_servers_give_the_policy_with_the_section():
    spec = EnvironmentSpec(
        name="s", version="1", description="x", policy="Be kind.", source="test",
        tools=(make_tool("cancel", "Cancel it.", ConfirmationRule(always=True)),),
    )  # fmt: skip
    assert render_full_policy(spec).startswith("Be kind.\n\nBefore you do one of the following")
