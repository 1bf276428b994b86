"""Paths, and rows picked out in words: what was picked is found again, what is ambiguous is never picked."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trajsmith.grounding import ReferenceNotResolved, resolve_reference
from trajsmith.grounding.paths import find_values, get_value, join_path, split_path
from trajsmith.grounding.references import RowWords, pick_values
from trajsmith.grounding.row_fields import DeclaredFields
from trajsmith.phrasing import EntityPhrases, Phrasebook
from trajsmith.records import FromOutput, Selector

steady = settings(deadline=None, derandomize=True, max_examples=80)

NAMES = st.sampled_from(["order_id", "status", "total", "placed_at", "name", "lines", "owner", "sku"])
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.5, 1.0, "", "a", "b", "red", "2026-03-02", "2026-03-03T10:00:00", "x\ny"])
)
DOCUMENTS = st.recursive(
    VALUES, lambda below: st.lists(below, max_size=4) | st.dictionaries(NAMES, below, max_size=4), max_leaves=25
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "order_id": st.sampled_from(["W1", "W2", "W3"]),
            "status": VALUES,
            "total": VALUES,
            "placed_at": VALUES,
            "owner": st.fixed_dictionaries({}, optional={"name": VALUES, "owner_id": VALUES}),
            "lines": st.lists(
                st.fixed_dictionaries({"sku": st.sampled_from(["A", "B"])}, optional={"name": VALUES}), max_size=3
            ),
        },
    ),
    max_size=5,
)
PATHS = st.sampled_from(
    ["$.rows[*].order_id", "$.rows[*].lines[*].sku", "$.rows[*].owner.name", "$.rows[*].lines", "$.rows[*].status"]
)


def every_path(document: Any, path: str = "$") -> list[tuple[str, Any]]:
    """All nodes of a document with their general paths."""
    found = [(path, document)]
    if isinstance(document, dict):
        for key, value in document.items():
            found += every_path(value, f"{path}.{key}")
    elif isinstance(document, list):
        for value in document:
            found += every_path(value, f"{path}[*]")
    return found


@steady
@given(DOCUMENTS)
def test_find_gives_all_values_at_a_path_in_order(document: Any) -> None:
    nodes = every_path(document)
    for path in {path for path, _ in nodes}:
        assert [repr(match.value) for match in find_values(document, path)] == [
            repr(value) for where, value in nodes if where == path
        ]


@steady
@given(DOCUMENTS)
def test_the_levels_of_a_match_lead_to_it(document: Any) -> None:
    for path, _ in every_path(document):
        for match in find_values(document, path):
            assert len(match.levels) == path.count("[*]")
            for level in match.levels:
                assert path.startswith(level.path + "[*]")
                assert level.row is level.rows[level.index]


@steady
@given(DOCUMENTS)
def test_join_is_the_inverse_of_split(document: Any) -> None:
    assert [join_path(split_path(path)) for path, _ in every_path(document)] == [
        path for path, _ in every_path(document)
    ]


@pytest.mark.parametrize(
    ("path", "values"),
    [
        pytest.param("$.rows[*].a", [1, 2], id="rows"),
        pytest.param("rows[*].a", [1, 2], id="without-the-root"),
        pytest.param("$.rows", [[{"a": 1}, {"a": 2}, {"b": 3}]], id="the-list-itself"),
        pytest.param("$.nothing[*].a", [], id="no-such-part"),
        pytest.param("$.rows.a", [], id="a-list-is-no-object"),
        pytest.param("$.one[*]", [], id="an-object-is-no-list"),
    ],
)
def test_find(path: str, values: list[Any]) -> None:
    document = {"rows": [{"a": 1}, {"a": 2}, {"b": 3}], "one": {"a": 4}}
    assert [match.value for match in find_values(document, path)] == values


def test_a_top_level_list_is_found() -> None:
    assert [match.value for match in find_values([{"id": 1}, {"id": 2}], "$[*].id")] == [1, 2]


def test_get_inside_a_row() -> None:
    assert get_value({"owner": {"name": "Ida"}}, "owner.name") == "Ida"
    assert get_value({"owner": None}, "owner.name") is None


@steady
@given(ROWS, PATHS, st.integers(0, 20), st.sampled_from([0.0, 0.4, 1.0]))
def test_what_was_picked_resolves_to_the_same_value(rows: list[Any], path: str, seed: int, only: float) -> None:
    result = {"rows": rows}
    for value, selectors in pick_values(result, path, random.Random(seed), only):
        assert resolve_reference(FromOutput(call=0, path=path, selectors=selectors), result) == value


@steady
@given(DOCUMENTS, st.integers(0, 20))
def test_what_was_picked_from_anything_resolves_again(document: Any, seed: int) -> None:
    for path in {path for path, _ in every_path(document)}:
        for value, selectors in pick_values(document, path, random.Random(seed)):
            assert resolve_reference(FromOutput(call=0, path=path, selectors=selectors), document) == value


@steady
@given(ROWS, st.integers(0, 20))
def test_rows_that_nothing_tells_apart_are_never_picked(rows: list[Any], seed: int) -> None:
    """Two copies of every row: no field is unique, no extreme is held by one."""
    doubled = {"rows": [row for row in rows for _ in range(2)]}
    assert pick_values(doubled, "$.rows[*].order_id", random.Random(seed)) == []


@steady
@given(ROWS, ROWS, PATHS, st.integers(0, 20))
def test_in_another_result_there_is_one_value_or_none(rows: list[Any], others: list[Any], path: str, seed: int) -> None:
    """At play time the result may be another one: then the reference leads to one value there, or to `Unresolved`."""
    values = [match.value for match in find_values({"rows": others}, path)]
    for _, selectors in pick_values({"rows": rows}, path, random.Random(seed)):
        try:
            found = resolve_reference(FromOutput(call=0, path=path, selectors=selectors), {"rows": others})
        except ReferenceNotResolved as reason:
            assert f"values at {path}" in str(reason)
        else:
            assert found in values


@pytest.mark.parametrize(
    ("selectors", "reason"),
    [
        pytest.param((), "0 values at", id="no-selector-for-several-rows"),
        pytest.param(
            (Selector(rows="$.rows", how="equals", field="status", value="open"),), "2 values at", id="two-rows-fit"
        ),
        pytest.param(
            (Selector(rows="$.rows", how="equals", field="status", value="lost"),), "0 values at", id="no-row-fits"
        ),
        pytest.param((Selector(rows="$.rows", how="only"),), "0 values at", id="not-the-only-row"),
    ],
)
def test_a_reference_that_leads_nowhere_says_so(selectors: tuple[Selector, ...], reason: str) -> None:
    result = {"rows": [{"id": 1, "status": "open"}, {"id": 2, "status": "open"}]}
    with pytest.raises(ReferenceNotResolved, match=reason):
        resolve_reference(FromOutput(call=0, path="$.rows[*].id", selectors=selectors), result)


@pytest.mark.parametrize("how", ["largest", "smallest"])
@pytest.mark.parametrize("totals", [(1.0, "a"), (1.0, True), (1.0, None), (2, 2)], ids=["text", "flag", "null", "tie"])
def test_an_extreme_of_what_cannot_be_compared_leads_nowhere(how: Any, totals: tuple[Any, Any]) -> None:
    result = {"rows": [{"id": number, "total": total} for number, total in enumerate(totals)]}
    selector = Selector(rows="$.rows", how=how, field="total", value=1.0)
    with pytest.raises(ReferenceNotResolved, match=r"[02] values at"):
        resolve_reference(FromOutput(call=0, path="$.rows[*].id", selectors=(selector,)), result)


def test_identifiers_and_flags_never_pick_a_row() -> None:
    rows = [{"order_id": f"W{number}", "late": number == 0, "secret_key": f"s{number}"} for number in range(2)]
    assert pick_values({"rows": rows}, "$.rows[*].order_id", random.Random(0)) == []


def test_dates_and_prices_can_be_extremes() -> None:
    rows = [{"order_id": f"W{n}", "placed_at": f"2026-03-0{n}", "total": float(n)} for n in (1, 2, 3)]
    ways = {
        (value, selectors[0].how)
        for seed in range(60)
        for value, selectors in pick_values({"rows": rows}, "$.rows[*].order_id", random.Random(seed))
    }
    assert ways == {(f"W{n}", "equals") for n in (1, 2, 3)} | {("W1", "smallest"), ("W3", "largest")}


def test_a_value_in_a_text_is_found_by_its_pattern() -> None:
    reference = FromOutput(call=0, path="$.result", pattern=r"order (W\d+)")
    assert resolve_reference(reference, "your order W77 is made") == "W77"
    assert resolve_reference(reference, {"result": "your order W77 is made"}) == "W77"
    with pytest.raises(ReferenceNotResolved, match="nothing in the text matches"):
        resolve_reference(reference, "no such thing")


CONNECTIONS = [
    {"departure_id": f"D{number}", "service": "Coast Line", "departs_at": departs, "standard_left": left, "fare": fare}
    for number, (departs, left, fare) in enumerate(
        [("2026-03-02T08:00:00", 48, 20.0), ("2026-03-02T10:30:00", 12, 25.0), ("2026-03-02T14:00:00", 30, 30.0)]
    )
]


def declare(**fields: list[str]) -> RowWords:
    by = {field: tuple(templates) for field, templates in fields.items()}
    book = Phrasebook(entities={"departure_id": EntityPhrases(noun="connection", by=by)})
    return RowWords(frozenset({"departs_at"}), declared=DeclaredFields(book, "departure_id").list_for)


def list_fields(words: RowWords, rows: list[dict[str, Any]] = CONNECTIONS) -> set[str]:
    picks = [pick_values(rows, "$[*].departure_id", random.Random(seed), words=words) for seed in range(60)]
    return {selector.field for values in picks for _, selectors in values for selector in selectors}


def test_only_declared_fields_call_a_row_where_the_phrasebook_knows_the_thing() -> None:
    words = declare(departs_at=["the connection at {value|time}"], service=["the {value}"])
    assert list_fields(words) == {"departs_at"}  # the service is the same on all three


def test_nothing_is_chosen_where_no_declared_field_tells_the_rows_apart() -> None:
    words = declare(service=["the {value}"])
    assert pick_values(CONNECTIONS, "$[*].departure_id", random.Random(0), words=words) == []


def test_a_level_calls_no_row_even_if_it_has_a_template() -> None:
    words = declare(standard_left=["the connection with {value} seats left"])
    assert pick_values(CONNECTIONS, "$[*].departure_id", random.Random(0), words=words) == []


def test_money_calls_a_row_only_where_no_name_or_date_does() -> None:
    words = declare(fare=["the one for {value|money}"], departs_at=["the one at {value|time}"])
    assert list_fields(words) == {"departs_at"}
    assert list_fields(declare(fare=["the one for {value|money}"])) == {"fare"}


def test_without_a_phrasebook_names_and_dates_come_before_counts() -> None:
    assert list_fields(RowWords(frozenset({"departs_at"}))) == {"departs_at"}
    counts = [{"departure_id": row["departure_id"], "standard_left": row["standard_left"]} for row in CONNECTIONS]
    assert list_fields(RowWords(), counts) == {"standard_left"}


@pytest.mark.parametrize(
    ("others", "picked"),
    [
        (["2 x Kettle, 1 x Desk Lamp"], False),
        (["1 x Desk Lamp Shade, 1 x Kettle"], True),
        (["1 x Kettle", "3 x Tent"], True),
    ],
    ids=["a part", "another thing", "others"],
)
def test_an_enumeration_calls_no_row_if_it_is_part_of_another(others: list[str], picked: bool) -> None:
    rows = [{"departure_id": f"D{place}", "items": items} for place, items in enumerate(["1 x Desk Lamp", *others])]
    picks = [pick_values(rows, "$[*].departure_id", random.Random(seed)) for seed in range(60)]
    assert any(value == "D0" for values in picks for value, _ in values) is picked


def test_an_enumeration_of_which_only_the_first_is_named_calls_no_row_beside_another_with_it() -> None:
    words = declare(items=["the one for the {value.split(', ')[0]} and a few other things"])
    three = "Desk Lamp, Kettle, Tent"
    assert list_fields(words, [{"departure_id": "D1", "items": three}, {"departure_id": "D2", "items": "Stove"}])
    pair = [{"departure_id": "D1", "items": three}, {"departure_id": "D2", "items": "Desk Lamp, Stove, Tent"}]
    assert not list_fields(words, pair)


def test_no_superlative_of_money_where_the_phrasebook_knows_the_thing() -> None:
    def list_hows(words: RowWords) -> set[str]:
        rows = [{"departure_id": row["departure_id"], "fare": row["fare"]} for row in CONNECTIONS]
        picks = [pick_values(rows, "$[*].departure_id", random.Random(seed), words=words) for seed in range(60)]
        return {selector.how for values in picks for _, selectors in values for selector in selectors}

    assert list_hows(declare(fare=["the one for {value|money}"])) == {"equals"}
    assert list_hows(RowWords()) == {"equals", "largest", "smallest"}


def test_what_a_cut_list_hides_calls_no_row() -> None:
    words = RowWords(frozenset({"departs_at"}), is_only=lambda level, field: level.row["standard_left"] != 12)
    picks = [pick_values(CONNECTIONS, "$[*].departure_id", random.Random(seed), words=words) for seed in range(20)]
    assert {value for values in picks for value, _ in values} == {"D0", "D2"}


def test_the_only_row_of_a_list_is_told_by_name_once_there_is_another() -> None:
    rows = [{"version_id": "V1", "name": "v1.0.0"}]
    words = RowWords(is_grown=lambda level: True)
    hows = {
        selector.how
        for seed in range(20)
        for _, selectors in pick_values(rows, "$[*].version_id", random.Random(seed), only=1.0, words=words)
        for selector in selectors
    }
    assert hows == {"equals"}
