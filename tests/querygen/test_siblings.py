import random
from itertools import pairwise

from trajsmith.querygen.vary._siblings import (
    build_adopted_rows,
    build_free_key,
    build_new_key,
    build_sibling_rows,
    find_listed_rows,
)

ORDERS = {
    "W1": {"order_id": "W1", "customer_id": "C1", "title": "Blue Kettle", "total": 10.0, "placed_at": "2026-01-03"},
    "W2": {"order_id": "W2", "customer_id": "C1", "title": "Green Lamp", "total": 20.0, "placed_at": "2026-02-03"},
    "W3": {"order_id": "W3", "customer_id": "C1", "title": "Old Desk", "total": 35.5, "placed_at": "2026-03-03"},
}


def test_only_lists_of_rows_of_a_table_count():
    state = {"orders": ORDERS, "now": "2026-04-01"}
    shown = {"result": [{"order_id": "W1", "total": 10.0}, {"order_id": "W3", "total": 35.5}]}
    assert find_listed_rows(state, [shown]) == {"orders": ["W1", "W3"]}
    assert find_listed_rows(state, [{"result": [{"order_id": "W1"}]}]) == {}, "one row is no list to look through"
    assert find_listed_rows(state, [{"result": [{"order_id": "W1"}, {"order_id": "X"}]}]) == {}, (
        "X is no row of the table"
    )


def test_siblings_belong_to_the_same_owner_and_stay_within_what_is_there():
    made = build_sibling_rows(ORDERS, ["W1", "W2"], 12, random.Random(1))
    assert len(made) == 12 and not made.keys() & ORDERS.keys()
    for key, row in made.items():
        assert row["order_id"] == key and row["customer_id"] == "C1"
        assert row["total"] == 20.0 and row["placed_at"] == "2026-02-03", "never the largest or smallest"
        assert row["title"] not in {order["title"] for order in ORDERS.values()}
    assert made == build_sibling_rows(ORDERS, ["W1", "W2"], 12, random.Random(1))


def test_numbers_of_their_own_are_not_shared_and_long_texts_keep_what_they_speak_of():
    rooms = {
        f"R{number}": {"room_id": f"R{number}", "title": f"{kind} room at the {inn}", "account_number": "34320347"}
        for number, (kind, inn) in enumerate([("single", "Harbour Inn"), ("double", "Old Mill"), ("twin", "Old Mill")])
    }
    made = build_sibling_rows(rooms, ["R0"], 8, random.Random(1))
    assert len({row["account_number"] for row in made.values()}) == 8
    assert all(row["account_number"].isdigit() and len(row["account_number"]) == 8 for row in made.values())
    assert {row["title"] for row in made.values()} == {"double room at the Harbour Inn", "twin room at the Harbour Inn"}


def test_new_ids_look_like_the_old_ones():
    assert build_new_key("W1001", "9000001") == "W90000011001"
    assert build_new_key("alpha", "9000001") == "alpha-9000001"


def test_columns_keep_the_order_that_they_have_in_all_rows():
    table = {
        f"G{number}": {"goal_id": f"G{number}", "saved": 100.0 * number, "target": 110.0 * number,
                       "start": f"2026-01-{number:02}", "end": f"2026-01-{number + 2:02}"}
        for number in range(1, 12)
    }  # fmt: skip
    made = build_sibling_rows(table, ["G1", "G5", "G11"], 60, random.Random(1))
    assert len({row["saved"] for row in made.values()}) > 3
    assert all(row["saved"] <= row["target"] and row["start"] <= row["end"] for row in made.values())


def test_adopted_rows_are_whole_rows_of_others_under_ids_like_the_old_ones():
    table = {
        f"W{10001 + number}": {
            "order_id": f"W{10001 + number}", "customer_id": "C1" if number < 2 else "C2", "status": "pending",
            "total": 10.0 * number, "lines": [{"line_id": f"L{10001 + number}-1", "unit_price": 10.0 * number}],
        }
        for number in range(6)
    }  # fmt: skip
    made = build_adopted_rows(table, ["W10001", "W10002"], "W10001", {}, 9, random.Random(1))
    assert list(made) == ["W10046", "W10047", "W10048", "W10049"], "each row of others once"
    assert {row["customer_id"] for row in made.values()} == {"C1"}
    assert len({row["total"] for row in made.values()}) == 4
    for key, row in made.items():
        assert row["order_id"] == key and row["lines"][0] == {"line_id": f"L{key[1:]}-1", "unit_price": row["total"]}
    assert build_free_key({"K1": {}, "K7": {}}, "K1", 0) == "K47"


def test_adopted_rows_keep_their_status_with_what_belongs_to_it():
    """A ticket that was resolved is not made one that is in progress and still says when it was resolved."""
    table = {
        f"T{number}": {
            "owner": "E1" if number < 3 else "E2",
            "status": "open" if number % 2 else "resolved",
            "resolved_at": None if number % 2 else f"2026-01-0{number}",
        }
        for number in range(1, 9)
    }
    made = build_adopted_rows(table, ["T1", "T2"], "T1", {"status": ("open",)}, 9, random.Random(1))
    assert len(made) == 3, "T3, T5 and T7"
    assert all(row == {"owner": "E1", "status": "open", "resolved_at": None} for row in made.values())


def test_adopted_rows_are_on_days_of_their_own():
    table = {
        f"S{number}": {"guest": "A" if number < 2 else "B", "check_in": f"2026-03-{number + 1:02}", "nights": 2}
        for number in range(12)
    }
    made = build_adopted_rows(table, ["S0", "S1"], "S1", {}, 9, random.Random(1), ("check_in", "nights"))
    days = sorted([1, 2, *(int(row["check_in"][-2:]) for row in made.values())])[1:]
    assert len(made) >= 3 and all(later - day >= 2 for day, later in pairwise(days))
    assert len(build_adopted_rows(table, ["S0", "S1"], "S1", {}, 9, random.Random(1))) == 9
