"""What is learned from initial states: shapes, references, facts."""

from typing import Any

import pytest
from corner_shop import STATE_SCHEMA, initial

from trajsmith.envcheck.facts import StateColumns, mine_facts
from trajsmith.envcheck.state_shape import ROOT, learn_shape, list_relations
from trajsmith.envcheck.state_view import StateViewer
from trajsmith.records import JsonObject


def data_of(states: list[JsonObject], schema: JsonObject | None = None) -> StateColumns:
    shape = learn_shape(states, schema or {})
    viewer = StateViewer(shape)
    return StateColumns([viewer.view(state) for state in states], shape)


@pytest.fixture(scope="module")
def shop() -> StateColumns:
    return data_of([initial(seed) for seed in range(12)], STATE_SCHEMA)


# Shapes


def test_tables_lists_maps_and_single_objects_without_a_schema() -> None:
    state: JsonObject = {
        "users": {"u1": {"name": "Ada", "tags": ["a"]}, "u2": {"name": "Ben", "tags": []}},
        "emails": {"ada@example.com": "u1", "ben@example.com": "u2"},
        "carts": {"u1": [{"item": "x", "count": 1}], "u2": []},
        "log": [{"event_id": "e1", "text": "hello"}, {"event_id": "e2", "text": "bye"}],
        "account": {"owner": "Ada", "plan": {"name": "basic", "quota": 5}},
        "now": "2026-03-01T09:00:00",
    }
    other = {**state, "emails": {"cleo@example.com": "u3", "ben@example.com": "u2"}}
    shape = learn_shape([state, other], {})
    kinds = {name: (node.kind, node.identity) for name, node in list_relations(shape)}
    assert kinds["users"] == ("table", "")
    assert kinds["emails"] == ("map", "")
    assert kinds["carts.entries"] == ("list", "")
    assert kinds["log"] == ("list", "event_id")
    view = StateViewer(shape).view(state)
    assert view.rows("carts.entries") == {("u1", "0"): {"item": "x", "count": 1}}
    assert view.rows("log")[("e1",)]["text"] == "hello"
    assert view.rows(ROOT)[("account",)] == {
        "account.owner": "Ada",
        "account.plan.name": "basic",
        "account.plan.quota": 5,
    }


def test_changes_are_told_row_by_row(shop: StateColumns) -> None:
    before, viewer = initial(0), StateViewer(learn_shape([initial(0)], STATE_SCHEMA))
    after = initial(0)
    after["orders"]["W50"]["status"] = "lost"
    del after["orders"]["W51"]
    after["customers"]["C900"] = after["customers"]["C100"]
    changes = viewer.view(before).changes(viewer.view(after))
    told = {(change.relation, change.key[-1]): set(change.fields) for change in changes}
    assert told["orders", "W50"] == {"status"}
    assert told["orders.lines", "W51-1"] >= {"line_id", "quantity"}
    gone = [change.key for change in changes if change.after is None]
    assert gone == [("W51",), ("W51", "W51-1")]
    assert [change.key for change in changes if change.before is None] == [("C900",)]


def test_two_rows_of_one_name_in_a_list_are_both_seen() -> None:
    state: JsonObject = {"log": [{"event_id": "e1", "text": "a"}, {"event_id": "e2", "text": "b"}]}
    viewer = StateViewer(learn_shape([state], {}))
    twice: JsonObject = {"log": [*state["log"], {"event_id": "e1", "text": "c"}]}
    assert len(viewer.view(twice).rows("log")) == 3


# References


def test_references_by_name_and_by_values(shop: StateColumns) -> None:
    found = {(one.relation, one.column): one.target for one in shop.references}
    assert found == {
        ("customers", "order_ids"): "orders",
        ("orders", "customer_id"): "customers",
        ("orders.lines", "product_id"): "products",
    }
    assert shop.identities["orders.lines"] == "line_id"


def test_a_count_is_no_reference() -> None:
    users = {name: {"name": name, "tweets": number} for number, name in enumerate("abcdef")}
    tweets = {str(number): {"tweet_id": number, "text": "hi"} for number in range(6)}
    assert data_of([{"users": users, "tweets": tweets}]).references == []


# Facts


def test_the_facts_of_the_shop(shop: StateColumns) -> None:
    told = {fact.text() for fact in mine_facts(shop)}
    assert "orders: total is the sum of quantity x price over its orders.lines" in told
    assert "customers: order_ids lists the orders whose customer_id points to it" in told
    assert "orders: cancelled_on has a value exactly if status is cancelled" in told
    assert "products: stock is never negative" in told
    assert "orders.lines: price agrees with product_id -> price" in told


def table(**columns: list[Any]) -> dict[str, JsonObject]:
    """Rows of a table from columns."""
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return {f"T{number}": {"thing_id": f"T{number}", **row} for number, row in enumerate(rows)}


def kinds_of(things: dict[str, JsonObject], **more: Any) -> set[str]:
    return {type(fact).__name__ for fact in mine_facts(data_of([{"things": things, **more}]))}


def test_order_is_a_fact_only_if_it_is_not_by_chance() -> None:
    low = [float(3 * n % 17) for n in range(20)]
    assert "OrderedColumns" in kinds_of(table(low=low, high=[value + 1.5 for value in low]))
    assert "OrderedColumns" not in kinds_of(
        table(low=low, high=[100.0 + n for n in range(20)])
    )  # it could not be otherwise


@pytest.mark.parametrize(("code", "is_fact"), [("K{}7", True), ("Course {}", False)], ids=["code", "name"])
def test_a_code_inside_another_value_is_a_fact_and_a_name_is_none(code: str, is_fact: bool) -> None:
    codes = {f"C{number}": code.format(letter * 3) for number, letter in enumerate("abcdefgh")}
    courses = {key: {"course_id": key, "course_code": value} for key, value in codes.items()}
    links = [f"C{number % 8}" for number in range(24)]
    things = table(course_id=links, thing_code=[f"{codes[link]}: part {number}" for number, link in enumerate(links)])
    facts = {fact.text() for fact in mine_facts(data_of([{"things": things, "courses": courses}]))}
    assert ("things: thing_code agrees with course_id -> course_code" in facts) is is_fact


def test_products_and_counts() -> None:
    amounts, prices = [1 + n % 4 for n in range(12)], [float(2 + n % 5) for n in range(12)]
    things = table(
        amount=amounts, price=prices, cost=[a * b for a, b in zip(amounts, prices, strict=True)],
        tags=[["x"] * (n % 4) for n in range(12)], size=[n % 4 for n in range(12)],
    )  # fmt: skip
    assert {"ProductOfColumns", "ListLengthColumn"} <= kinds_of(things)


def test_what_is_covered() -> None:
    cover = [0.0, 200.0] * 8
    balance = [50.0 if not one else -150.0 + 10 * number for number, one in enumerate(cover)]
    assert "CoveredDeficit" in kinds_of(table(balance=balance, overdraft=cover))


def test_a_pair_that_stands_only_once() -> None:
    people = {f"P{n}": {"person_id": f"P{n}", "name": f"person {n}"} for n in range(10)}
    clubs = {f"C{n}": {"club_id": f"C{n}", "title": f"club {n}"} for n in range(10)}
    pairs = [(p, c) for p in range(10) for c in range(10) if (p + c) % 2]
    ones, others = [f"P{p}" for p, _ in pairs], [f"C{c}" for _, c in pairs]
    assert "UniquePair" in kinds_of(table(person_id=ones, club_id=others), people=people, clubs=clubs)
    assert "UniquePair" not in kinds_of(table(person_id=[*ones[:-1], ones[0]], club_id=[*others[:-1], others[0]]),
                                  people=people, clubs=clubs)  # fmt: skip


def test_indexes_lead_to_rows() -> None:
    things = table(name=[f"n{n}" for n in range(6)])
    by_name = {row["name"]: key for key, row in things.items()}
    assert "IndexMap" in kinds_of(things, by_name=by_name)


def test_facts_are_read_back_from_json(shop: StateColumns) -> None:
    from trajsmith.envcheck.facts import FACT

    for fact in mine_facts(shop):
        assert FACT.validate_python(fact.model_dump(mode="json")) == fact
