"""Days before and after others, anywhere in the calendar."""

from datetime import date, timedelta
from typing import TypeVar

Day = TypeVar("Day", bound=date)


def shift_within_calendar(moment: Day, days: int) -> Day:
    """Return what comes so many days after a date or datetime; the edge of the calendar where that lies beyond it.

    Clocks and dates of environments stand anywhere, and 9999-12-31 means "for ever" in many of them.
    """
    try:
        return moment + timedelta(days=days)
    except OverflowError:
        edge = date.max if days > 0 else date.min
    return moment.replace(year=edge.year, month=edge.month, day=edge.day)
