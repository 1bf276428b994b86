"""Formatting of values as people write them, and matching of such forms in a text."""

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from typing import Any

from trajsmith.phrasing.languages import get_language

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")
QUOTED = r"\"[^\"]*\"|„[^“]*“|“[^”]*”"
"""Pattern of a text in quotation marks: it stays letter by letter."""
_QUOTED = re.compile(f"({QUOTED})")
_STOP_TWICE = re.compile(r"([.!?][\"”])\.(?=\s|$)")
"""A full stop after a quotation that has one."""
_YEAR = re.compile(r",? (\d{4})\b")
_SPACES = re.compile(r"[\s_]+")
_SNAKE = re.compile(r"[a-z0-9]+(_[a-z0-9]+)+")


def parse_datetime(value: Any) -> datetime | date | None:
    """Parse the date or datetime that an ISO string holds, or return None."""
    if not isinstance(value, str) or not DATE.match(value):
        return None
    try:
        return datetime.fromisoformat(value) if MOMENT.match(value) else date.fromisoformat(value)
    except ValueError:
        return None


def shift_date(moment: date, days: int) -> date | None:
    """Return what comes so many days after a date or datetime; None outside the calendar, as after 31 December 9999."""
    try:
        return moment + timedelta(days=days)
    except OverflowError:
        return None


def add_days(value: Any, days: Any) -> str:
    """Return the day that comes so many days after a date, a datetime or their ISO strings, in ISO form.

    Raises:
        ValueError: It is no date, or the day is outside the calendar.
    """
    moment = value if isinstance(value, date) else parse_datetime(value)
    if moment is None:
        raise ValueError(f"{value!r} is no date")
    day = shift_date(date(moment.year, moment.month, moment.day), int(days))
    if day is None:
        raise ValueError(f"{days} days after {value} there is no date")
    return day.isoformat()


def format_date(value: Any) -> str:
    """Format a date, a datetime or their ISO strings as 3 March 2026; anything else unchanged."""
    moment = value if isinstance(value, date) else parse_datetime(value)
    return get_language().grammar.format_date(moment) if moment else str(value)


def format_datetime(value: Any) -> str:
    """Format a datetime as 3 March 2026 at 14:30."""
    moment = value if isinstance(value, date) else parse_datetime(value)
    return get_language().grammar.format_datetime(moment) if isinstance(moment, datetime) else format_date(value)


def format_time(value: Any) -> str:
    """Format the time of a datetime or a time string as 14:30."""
    moment = value if isinstance(value, date) else parse_datetime(value)
    return f"{moment:%H:%M}" if isinstance(moment, datetime) else str(value)[:5]


def format_weekday(value: Any) -> str:
    """Format the day of a date, a datetime or their ISO strings as Tuesday; anything else unchanged."""
    moment = value if isinstance(value, date) else parse_datetime(value)
    return get_language().grammar.format_weekday(moment) if moment else str(value)


def format_money(value: Any) -> str:
    """Format an amount as £1,234.50, with a sign where it is negative."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return get_language().grammar.format_money(value)


def format_grouped(value: Any) -> str:
    """Format a number with one decimal at most and its thousands apart: 9,556.4."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return get_language().grammar.format_grouped(value)


def format_minutes(value: Any) -> str:
    """Format a number of minutes as people say it: half an hour, two hours, 45 minutes."""
    return get_language().grammar.format_minutes(value)


def humanize(value: Any) -> str:
    """Convert snake_case to words."""
    return _SPACES.sub(" ", str(value)).strip()


def format_yes_no(value: Any) -> str:
    return get_language().grammar.yes if value else get_language().grammar.no


def join_words(values: Iterable[Any]) -> str:
    """Join values as "a, b and c"."""
    return get_language().grammar.join([str(value) for value in values])


def format_value(value: Any) -> str:
    """Format a value in the default spoken form."""
    if isinstance(value, bool):
        return format_yes_no(value)
    if isinstance(value, float):
        return get_language().grammar.format_number(f"{value:.10g}" if abs(value) < 1e10 else f"{value:.15g}")
    if isinstance(value, list):
        return join_words(format_value(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{humanize(key)} {format_quoted(item)}" for key, item in value.items())
    moment = parse_datetime(value)
    if moment is not None:
        return format_datetime(moment)
    return humanize(value) if _SNAKE.fullmatch(str(value)) else str(value)


def is_distinctive(value: Any) -> bool:
    """Return True for names, codes, dates and amounts; not for words of choice, yes and no, and small numbers."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return not float(value).is_integer() or abs(value) >= 10
    return isinstance(value, str) and len(value) > 1 and (value != value.lower() or any(map(str.isdigit, value)))


def is_sentence(text: str) -> bool:
    """True for a text that would run into the sentence around it, and not for a name or an address."""
    parts = text.split()
    small = sum(part.isalpha() and part.islower() for part in parts)
    return len(parts) > 2 and (small > 1 or text.rstrip().endswith((".", "!", "?"))) and '"' not in text


def format_quoted(value: Any) -> str:
    """Format a value, a whole sentence in quotation marks."""
    whole = isinstance(value, str) and "\n" not in value and is_sentence(value)
    return f'"{value.strip()}"' if whole else format_value(value)


def list_value_forms(value: Any) -> list[str]:
    """List the usual lower-case spellings of a value; a text that states the value holds at least one."""
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int | float):
        return _list_number_forms(value)
    moment = parse_datetime(value)
    if moment is not None:
        return _list_date_forms(moment, str(value))
    text = str(value).strip().lower()
    spelled = [f"{int(text):,}"] if text.isdecimal() and not text.startswith("0") else []
    return list(dict.fromkeys(form for form in (text, humanize(text), " ".join(text.split()), *spelled) if form))


def _list_number_forms(value: int | float) -> list[str]:
    variants = [f"{value}", f"{value:,}", get_language().grammar.read_numbers(format_value(value))]
    if float(value).is_integer():
        variants += [f"{int(value)}", f"{int(value):,}"]
    variants += [f"{value:.2f}", f"{value:,.2f}"]
    if value < 0:
        variants += [f"-£{form.removeprefix('-')}" for form in list(variants)]
    return list(dict.fromkeys(variants))


def _list_date_forms(moment: date, iso: str) -> list[str]:
    day, year = moment.day, moment.year
    variants = [iso.lower(), f"{moment:%Y-%m-%d}", *get_language().grammar.list_date_forms(moment)]
    variants += [
        f"{day:02d}/{moment.month:02d}/{year}",
        f"{moment.month:02d}/{day:02d}/{year}",
        f"{day:02d}.{moment.month:02d}.{year}",
    ]
    return variants


def is_value_mentioned(text: str, value: Any) -> bool:
    """Return True if the text states the value in one of its usual forms, as whole words or numbers."""
    haystack = " ".join(text.lower().split())
    if isinstance(value, int | float):
        haystack = get_language().grammar.read_numbers(haystack)
    return any(True for form in list_value_forms(value) for _ in _find_tokens(haystack, form))


def find_value_spans(text: str, value: Any) -> list[tuple[int, int]]:
    """Return where a text in lower case with single spaces states a value: start and end, in order.

    The year after a date belongs to it; another year than its own makes it another date.
    """
    moment = parse_datetime(value)
    ends: dict[int, int] = {}
    for form in list_value_forms(value):
        for at in _find_tokens(text, form):
            ends[at] = max(ends.get(at, 0), at + len(form))
    if moment is not None:
        for at, end in list(ends.items()):
            year = _YEAR.match(text, end)
            if year is not None:
                ends[at] = year.end()
            if year is not None and int(year[1]) != moment.year:
                del ends[at]
    return sorted(ends.items())


def _find_tokens(text: str, form: str) -> Iterator[int]:
    """Yield where a form is a separate token: not inside a word or number, nor as the 500 of 1,500."""
    at = text.find(form)
    while at >= 0:
        if _free_before(text, at, form) and _free_after(text, at + len(form)):
            yield at
        at = text.find(form, at + 1)


def _free_before(text: str, at: int, form: str) -> bool:
    before = text[at - 1 : at]
    if before == "." or before == "_" or before.isalnum():
        return False
    grouped = before == "," and text[at - 2 : at - 1].isdigit() and len(form) >= 3 and form[:3].isdigit()
    return not (grouped and not form[3:4].isdigit())


def _free_after(text: str, end: int) -> bool:
    after = text[end : end + 1]
    if after == "_" or after.isalnum():
        return False
    return not (after in (".", ",") and text[end + 1 : end + 2].isdigit())


def find_clock_date(state: dict[str, Any]) -> date:
    """Return the clock of a state, or of the first of several in one; without one a distant date."""
    inner = (part.get("now") for part in state.values() if isinstance(part, dict))
    return next((moment for moment in map(parse_datetime, (state.get("now"), *inner)) if moment), date.min)


def render_clock(state: dict[str, Any]) -> str:
    """Render the time as people are told it: that of the environment, else the one that all of its parts agree on.

    Empty if there is none.
    """
    parts = {str(part["now"]) for part in state.values() if isinstance(part, dict) and "now" in part}
    now = state["now"] if "now" in state else next(iter(parts)) if len(parts) == 1 else ""
    return str(now).replace("T", " ")[:16]


def drop_second_stop(text: str) -> str:
    """Return a text without the full stop after a quotation that ends with one."""
    return _STOP_TWICE.sub(r"\1", text)


def split_quoted(text: str) -> list[str]:
    """Split a text at what is in quotation marks: each second part is quoted, with its marks."""
    return _QUOTED.split(text)


def drop_near_years(text: str, now: date) -> str:
    """Dates within half a year of now without their year, as people say them; what is quoted stays."""
    parts = split_quoted(text)
    parts[::2] = [get_language().grammar.drop_near_years(part, now) for part in parts[::2]]
    return "".join(parts)


def shorten_values(text: str, now: date) -> str:
    """Return a message of a user with dates and amounts as people type them: near dates without their year, and whole
    amounts without pence. What is quoted stays."""
    parts = split_quoted(drop_near_years(text, now))
    parts[::2] = [get_language().grammar.drop_zero_pence(part) for part in parts[::2]]
    return "".join(parts)
