"""What is inferred of a service whose behaviour is known, and how the clone behaves on unseen dialogues."""

import asyncio
from pathlib import Path

import pytest
from recorded_shop import clone_shop, record_shop

from trajsmith.envgen.generate.formatting import fix_and_format_code
from trajsmith.envgen.traces.code import RenderedClone
from trajsmith.envgen.traces.conformance import Conformance, find_difference, measure_conformance
from trajsmith.envgen.traces.expressions import Absent
from trajsmith.envgen.traces.infer import Clone, infer_clone
from trajsmith.envgen.traces.operations import compute_arithmetic
from trajsmith.envgen.traces.recordings import CallRecording, RecordedDialogue, TracedCall


@pytest.fixture(scope="module")
def shop() -> tuple[Clone, RenderedClone]:
    return clone_shop(record_shop())


def replay(clone: Clone, rendered: RenderedClone, unseen: CallRecording, own: bool, folder: Path) -> Conformance:
    file = folder / "shop_clone.py"
    file.write_text(fix_and_format_code(rendered.code), encoding="utf-8")
    return asyncio.run(measure_conformance(file, clone, rendered.names, unseen, own))


def test_records_become_tables_by_their_identifiers(shop):
    clone, _ = shop
    assert {name: table.keys for name, table in clone.schema.tables.items()} == {
        "orders": ("order_id",), "customers": ("customer_id",), "products": ("product_id",),
    }  # fmt: skip
    assert clone.schema.hidden == {"list_products": ("kind",)}
    assert clone.rows["products"]["P4"]["kind"] == "games"


def test_initial_state_is_that_before_the_first_write(shop):
    clone, _ = shop
    assert {row["status"] for key, row in clone.rows["orders"].items()} == {"placed", "shipped"}
    assert not any(key.startswith("O1") and len(key) > 3 for key in clone.rows["orders"])


def test_amounts_and_effects_are_computed_from_state_and_arguments(shop):
    program = shop[0].programs["place_order"]
    assert program.held_out == 1.0
    assert program.fresh is not None
    assert "_get(products_row, 'price')" in program.result.render()
    assert [(one.table, one.column) for one in program.effects] == [("customers", "balance")]


def test_refusals_have_a_reason_in_the_state(shop):
    (refusal,) = [one for one in shop[0].programs["cancel_order"].refusals if one.examples]
    assert refusal.test.render() in (
        "_get(orders_row, 'status') != 'placed'",
        "_get(orders_row, 'status') == 'shipped'",
    )
    (low,) = [one for one in shop[0].programs["place_order"].refusals if one.examples]
    assert "balance" in low.test.render()


def test_unseen_dialogues_get_the_recorded_results(shop, tmp_path):
    clone, rendered = shop
    unseen = record_shop(20, seed=5)
    outcome = replay(clone, rendered, unseen, True, tmp_path)
    calls, equal = outcome.count()
    assert calls > 120
    assert equal == calls, [f"{one.tool}: {one.cause}: {one.detail}" for one in outcome.misses][:5]


def test_a_miss_is_listed_with_its_cause(shop, tmp_path):
    clone, rendered = shop
    wrong = CallRecording([
        RecordedDialogue("x", [
            TracedCall("get_order", {"order_id": "O3"}, {**clone.rows["orders"]["O3"], "total": -1}),
            TracedCall("get_order", {"order_id": "O999"}, {"order_id": "O999"}),
            TracedCall("get_order", {"order_id": "O2"}, "Error: closed today", True),
        ])
    ])  # fmt: skip
    outcome = replay(clone, rendered, wrong, False, tmp_path)
    assert [one.cause for one in outcome.outcomes] == [
        "result differs",
        "row never shown",
        "result, recorded is refused",
    ]


def test_rows_of_the_unseen_dialogue_are_not_counted_for_the_clone(tmp_path):
    recording = record_shop()
    few = recording.select(range(4))
    clone, rendered = clone_shop(few)
    unseen = recording.select(range(40, 60))
    alone = replay(clone, rendered, unseen, False, tmp_path)
    own = replay(clone, rendered, unseen, True, tmp_path)
    assert own.count()[1] > alone.count()[1]
    assert own.count(True)[0] > 0
    assert own.count(True)[0] + own.count(False)[0] == alone.count()[0]
    assert not any(one.supplies for one in own.outcomes if one.tool in clone.schema.writers)


def test_contradictions_are_settled_by_the_most_frequent_value_and_counted():
    dialogues = [
        RecordedDialogue(
            str(n), [TracedCall("get_room", {"room_id": f"R{n % 2}"}, {"room_id": f"R{n % 2}", "beds": beds})]
        )
        for n, beds in enumerate([2, 3, 2, 3, 4, 3, 2, 3, 2, 3])
    ]
    clone = infer_clone(CallRecording(dialogues))
    assert clone.rows["rooms"]["R0"]["beds"] == 2
    assert clone.contradictions["rooms"] == 1


def test_a_tool_that_cannot_be_inferred_answers_recorded_calls_and_says_so():
    calls = [
        TracedCall("predict", {"day": f"2026-01-0{n}"}, f"forecast {n * n * 37 % 11} {'xyz'[n % 3]}")
        for n in range(1, 9)
    ]
    clone, rendered = clone_shop(CallRecording([RecordedDialogue("d", calls)]))
    assert clone.programs["predict"].result is None
    assert "`predict` answers only calls that were recorded." in rendered.policy
    assert "_recorded('predict'" in rendered.code


@pytest.mark.parametrize(
    ("text", "value"),
    [("2 + 3 * 4", 14), ("(2 + 3) * 4", 20), ("-5 + 2", -3), ("10 / 4", 2.5), ("2 * (3 - (1 + 1))", 2)],
)
def test_arithmetic(text, value):
    assert compute_arithmetic(text) == value


@pytest.mark.parametrize("text", ["", "2 +", "(2", "__import__('os')", "2 ** 3", "1 / 0", None, "2" * 600])
def test_no_arithmetic(text):
    with pytest.raises(Absent):
        compute_arithmetic(text)


def test_the_first_difference_is_named():
    assert find_difference({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}) == "/a/1/b: 2 recorded, 3 cloned"
