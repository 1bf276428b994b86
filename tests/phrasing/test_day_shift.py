"""Days beside others at the edges of the calendar: clocks and dates of environments stand anywhere."""

from datetime import date, datetime

import pytest

from trajsmith.phrasing import parse_datetime, shift_within_calendar
from trajsmith.phrasing.languages.english_grammar import EnglishGrammar
from trajsmith.querygen.vary._alternatives import _read_values


@pytest.mark.parametrize(
    ("moment", "days", "expected"),
    [
        (date(2026, 1, 31), 1, date(2026, 2, 1)),
        (date(9999, 12, 31), 0, date(9999, 12, 31)),
        (date(9999, 12, 30), 7, date(9999, 12, 31)),
        (date(1, 1, 1), -1, date(1, 1, 1)),
        (datetime(9999, 12, 31, 23, 59), 1, datetime(9999, 12, 31, 23, 59)),
        (date(2026, 1, 1), 10**12, date(9999, 12, 31)),
    ],
)
def test_a_day_stays_inside_the_calendar(moment: date, days: int, expected: date) -> None:
    assert shift_within_calendar(moment, days) == expected


@pytest.mark.parametrize("now", ["9999-12-31", "0001-01-01", "9999-12-31T23:59:59"])
def test_today_is_named_at_the_edges_of_the_calendar(now: str) -> None:
    day = parse_datetime(now)
    assert day is not None
    assert EnglishGrammar().say_near_day("my order from 5 May", day) == "my order from 5 May"


def test_a_refusal_with_a_day_that_is_none_or_the_last_is_read() -> None:
    refusal = "not before 2026-99-99, nor after 9999-12-31; 14 days at most"
    values = _read_values("2026-01-05", refusal, date(2026, 1, 1), 5_000_000)
    assert "9999-12-31" in values and "2026-01-15" in values
