"""The state's own clock, and days around it."""

import random
from datetime import date, datetime
from typing import Any

import orjson

from trajsmith.envcheck.facts.state_columns import is_day, is_moment
from trajsmith.envcheck.state_shape import ROOT
from trajsmith.envcheck.state_view import View
from trajsmith.grounding.value_source import DEFAULT_CLOCK
from trajsmith.phrasing import parse_datetime, shift_within_calendar
from trajsmith.records import JsonObject

OFFSETS = (0, 1, 2, 3, 5, 7, 10, 14, 21, 30, 31, 45, 60, 61, 90)


CLOCKS = ("now", "current_time", "current_date", "today", "clock")
"""What states call their clock."""


def read_current_time(view: View) -> datetime:
    """The state's own clock; a fixed one if it has none."""
    moment = parse_datetime(find_clock(view)[1])
    if isinstance(moment, datetime):
        return moment.replace(tzinfo=None)
    return datetime(moment.year, moment.month, moment.day, 9) if isinstance(moment, date) else DEFAULT_CLOCK


def find_clock(view: View) -> tuple[str, Any]:
    """Return the dotted path and the value of the clock in the state; empty and None if there is none."""
    for row in view.rows(ROOT).values():
        for name, value in row.items():
            if name.rsplit(".", 1)[-1] in CLOCKS and parse_datetime(value) is not None:
                return name, value
    return "", None


def set_clock_day(state: JsonObject, clock: str, day: date) -> JsonObject:
    """The state with its clock put to another day, at the same time of the day."""
    *path, last = clock.split(".")
    moved: JsonObject = orjson.loads(orjson.dumps(state))
    place = moved
    for name in path:
        place = place[name]
    place[last] = day.isoformat() + str(place[last])[10:]
    return moved


def sample_days(view: View, rng: random.Random, near: list[Any]) -> date:
    """A day that somebody might say: soon after the clock, or near a day of the rows at hand."""
    dates = [parse_datetime(value[:10]) for value in near if is_day(value) or is_moment(value)]
    known = [day for day in dates if day is not None]
    if known and rng.random() < 0.35:
        base = rng.choice(known)
        return shift_within_calendar(base, rng.choice((-2, -1, 0, 0, 0, 1, 2)))
    today = read_current_time(view).date()
    if rng.random() < 0.12:
        return shift_within_calendar(today, -rng.choice((1, 2, 7, 30)))
    return shift_within_calendar(today, rng.choice(OFFSETS))
