"""Saying values and finding them again: what is said is found, what is not said is not."""

from datetime import date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trajsmith.phrasing import value_formatting

steady = settings(deadline=None, derandomize=True, max_examples=100)

NUMBERS = st.integers(-(10**9), 10**9) | st.floats(-1e12, 1e12, allow_nan=False)
CENTS = st.integers(-(10**9), 10**9).map(lambda cents: cents / 100)
DAYS = st.dates(date(1900, 1, 1), date(2199, 12, 31))
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2199, 12, 31)).map(lambda moment: moment.replace(microsecond=0))
TEXTS = st.text("abcXYZ éß-_/.,'12 \n", min_size=1, max_size=12).filter(lambda text: text.strip(" \n_"))


@steady
@given(NUMBERS | TEXTS)
def test_what_is_said_is_found(value: Any) -> None:
    assert value_formatting.is_value_mentioned(f"I mean {value_formatting.format_value(value)} here", value)
    assert value_formatting.is_value_mentioned(f"It's {value_formatting.format_value(value)}.", value)


@steady
@given(CENTS)
def test_money_is_found(amount: float) -> None:
    assert value_formatting.is_value_mentioned(f"You get {value_formatting.format_money(amount)} back.", amount)


@steady
@given(DAYS)
def test_dates_are_found(day: date) -> None:
    said = (
        value_formatting.format_value(day.isoformat()),
        value_formatting.format_date(day),
        f"{day:%d/%m/%Y}",
        f"{day:%B} {day.day}, {day.year}",
    )
    assert [
        text
        for text in said
        if not value_formatting.is_value_mentioned(f"It was on {text}, wasn't it?", day.isoformat())
    ] == []


@steady
@given(MOMENTS)
def test_moments_are_found(moment: datetime) -> None:
    value = moment.isoformat()
    assert value_formatting.is_value_mentioned(f"It starts {value_formatting.format_value(value)}.", value)
    assert value_formatting.is_value_mentioned(f"It starts on {value_formatting.format_date(value)}.", value)


@steady
@given(DAYS)
def test_the_next_day_is_not_found(day: date) -> None:
    assert not value_formatting.is_value_mentioned(
        f"It was on {value_formatting.format_date(day)}.", (day + timedelta(days=1)).isoformat()
    )


@steady
@given(st.integers(0, 999), st.integers(0, 10**7))
def test_a_number_is_not_found_in_another(value: int, other: int) -> None:
    assume(value != other)
    assert not value_formatting.is_value_mentioned(f"There are {other} of them, or {other:,} in words.", value)


@steady
@given(st.lists(st.sampled_from(["red", "green", "dark_blue"]), min_size=1, max_size=4))
def test_every_item_of_a_list_is_found(items: list[str]) -> None:
    said = value_formatting.format_value(items)
    assert [item for item in items if not value_formatting.is_value_mentioned(said, item)] == []


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        pytest.param("there are 5 left", 5, True, id="number"),
        pytest.param("there are 15 left", 5, False, id="tail-of-a-number"),
        pytest.param("there are 51 left", 5, False, id="head-of-a-number"),
        pytest.param("it costs 5.5", 5, False, id="head-of-a-decimal"),
        pytest.param("it costs 3.5", 5, False, id="tail-of-a-decimal"),
        pytest.param("it costs 5,000", 5, False, id="head-of-thousands"),
        pytest.param("it costs 1,500", 500, False, id="tail-of-thousands"),
        pytest.param("it costs £1,500.00", 500.0, False, id="tail-of-money"),
        pytest.param("rooms 1,2,5", 5, True, id="list-without-spaces"),
        pytest.param("it is 5.", 5, True, id="end-of-sentence"),
        pytest.param("£1,234.50 in all", 1234.5, True, id="money"),
        pytest.param("that is 1234.5", 1234.5, True, id="plain-decimal"),
        pytest.param("your balance is -£20.00", -20.0, True, id="negative-money"),
        pytest.param("order w1001 is late", "W1001", True, id="case"),
        pytest.param("order W10012 is late", "W1001", False, id="head-of-an-id"),
        pytest.param("the status is in progress", "in_progress", True, id="snake-as-words"),
        pytest.param("two   lines\nhere", "two lines here", True, id="spaces"),
        pytest.param("catalogue", "cat", False, id="part-of-a-word"),
        pytest.param("yes", True, False, id="booleans-have-no-form"),
        pytest.param("None", None, False, id="nothing-has-no-form"),
        pytest.param("on March 3rd", "2026-03-13", False, id="another-day"),
        pytest.param("on 3 Mar", "2026-03-03", True, id="short-month"),
    ],
)
def test_mentions(text: str, value: Any, found: bool) -> None:
    assert value_formatting.is_value_mentioned(text, value) is found


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(True, "yes", id="bool"),
        pytest.param(12.50, "12.5", id="float"),
        pytest.param(12345678901.0, "12345678901", id="large-float"),
        pytest.param("2026-03-03", "3 March 2026", id="date"),
        pytest.param("2026-03-03T14:30:00", "3 March 2026 at 14:30", id="moment"),
        pytest.param("no_longer_needed", "no longer needed", id="snake"),
        pytest.param("W1001", "W1001", id="id"),
        pytest.param(["a", "b", "c"], "a, b and c", id="list"),
        pytest.param([], "", id="empty-list"),
        pytest.param({"unit_price": 3}, "unit price 3", id="object"),
        pytest.param("2026-13-45", "2026-13-45", id="no-such-date"),
    ],
)
def test_say(value: Any, said: str) -> None:
    assert value_formatting.format_value(value) == said


@pytest.mark.parametrize(
    ("filtered", "text"),
    [
        pytest.param(value_formatting.format_money(-1234.5), "-£1,234.50", id="money"),
        pytest.param(value_formatting.format_money(True), "True", id="money-of-no-number"),
        pytest.param(value_formatting.format_time("2026-03-03T14:30:00"), "14:30", id="time-of-a-moment"),
        pytest.param(value_formatting.format_time("07:15:00"), "07:15", id="time-of-a-time"),
        pytest.param(value_formatting.format_yes_no(0), "no", id="yesno"),
        pytest.param(value_formatting.join_words(["one"]), "one", id="one-word"),
    ],
)
def test_filters(filtered: str, text: str) -> None:
    assert filtered == text


@pytest.mark.parametrize(
    ("state", "clock"),
    [
        ({"now": "2026-03-04T10:00:00", "bank": {"now": "2025-01-01"}}, datetime(2026, 3, 4, 10)),
        ({"bank": {"cards": {}}, "travel": {"now": "2026-03-04"}, "shop": {"now": "2025-01-01"}}, date(2026, 3, 4)),
        ({"cards": {"now": {}}, "notes": ["now"]}, date.min),
    ],
    ids=["its own", "the first part that has one", "none"],
)
def test_the_clock_of_a_state(state: dict[str, Any], clock: date) -> None:
    assert value_formatting.find_clock_date(state) == clock
