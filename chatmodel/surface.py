"""How values are written by people: saying them, and finding them again in what somebody said."""

import re
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")
_SPACES = re.compile(r"[\s_]+")
_YEAR = re.compile(
    r"(\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December)) (\d{4})"
)
_SNAKE = re.compile(r"[a-z0-9]+(_[a-z0-9]+)+")


def as_moment(value: Any) -> datetime | date | None:
    """The date or moment that an ISO string holds, or None."""
    if not isinstance(value, str) or not DATE.match(value):
        return None
    try:
        return datetime.fromisoformat(value) if MOMENT.match(value) else date.fromisoformat(value)
    except ValueError:
        return None


def long_date(value: Any) -> str:
    """3 March 2026, from a date, a moment or their ISO strings; anything else as it is."""
    moment = value if isinstance(value, date) else as_moment(value)
    return f"{moment.day} {moment:%B %Y}" if moment else str(value)


def long_moment(value: Any) -> str:
    """3 March 2026 at 14:30."""
    moment = value if isinstance(value, date) else as_moment(value)
    return f"{long_date(moment)} at {moment:%H:%M}" if isinstance(moment, datetime) else long_date(value)


def clock_time(value: Any) -> str:
    """14:30, of a moment or a time string."""
    moment = value if isinstance(value, date) else as_moment(value)
    return f"{moment:%H:%M}" if isinstance(moment, datetime) else str(value)[:5]


def money(value: Any) -> str:
    """£1,234.50, with a sign where it is negative."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{'-' if value < 0 else ''}£{abs(value):,.2f}"


def human(value: Any) -> str:
    """snake_case as words."""
    return _SPACES.sub(" ", str(value)).strip()


def yes_no(value: Any) -> str:
    return "yes" if value else "no"


def words(values: Iterable[Any]) -> str:
    """a, b and c."""
    parts = [str(value) for value in values]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def say(value: Any) -> str:
    """A value as a person would say it when nobody wrote down a better way."""
    if isinstance(value, bool):
        return yes_no(value)
    if isinstance(value, float):
        return f"{value:.10g}" if abs(value) < 1e10 else f"{value:.15g}"
    if isinstance(value, list):
        return words(say(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{human(key)} {quoted(item)}" for key, item in value.items())
    moment = as_moment(value)
    if moment is not None:
        return long_moment(moment)
    return human(value) if _SNAKE.fullmatch(str(value)) else str(value)


def is_sentence(text: str) -> bool:
    """True for a text that would run into the sentence around it, and not for a name or an address."""
    parts = text.split()
    small = sum(part.isalpha() and part.islower() for part in parts)
    return len(parts) > 2 and (small > 1 or text.rstrip().endswith((".", "!", "?"))) and '"' not in text


def quoted(value: Any) -> str:
    """The value as a person says it, a whole sentence in quotation marks."""
    whole = isinstance(value, str) and "\n" not in value and is_sentence(value)
    return f'"{value.strip()}"' if whole else say(value)


def forms(value: Any) -> list[str]:
    """The usual ways to write a value, in lower case; a text that tells the value holds at least one of them."""
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int | float):
        return _number_forms(value)
    moment = as_moment(value)
    if moment is not None:
        return _date_forms(moment, str(value))
    text = str(value).strip().lower()
    spelled = [f"{int(text):,}"] if text.isdecimal() and not text.startswith("0") else []
    return list(dict.fromkeys(form for form in (text, human(text), " ".join(text.split()), *spelled) if form))


def _number_forms(value: int | float) -> list[str]:
    found = [f"{value}", f"{value:,}", say(value)]
    if float(value).is_integer():
        found += [f"{int(value)}", f"{int(value):,}"]
    found += [f"{value:.2f}", f"{value:,.2f}"]
    if value < 0:
        found += [f"-£{form.removeprefix('-')}" for form in list(found)]
    return list(dict.fromkeys(found))


def _date_forms(moment: date, iso: str) -> list[str]:
    day, month, short, year = moment.day, f"{moment:%B}".lower(), f"{moment:%b}".lower(), moment.year
    found = [iso.lower(), f"{moment:%Y-%m-%d}"]
    for name in (month, short):
        found += [f"{day} {name}", f"{name} {day}", f"{day}. {name}", f"{day}th of {name}", f"{name} {day}th"]
    found += [
        f"{day:02d}/{moment.month:02d}/{year}",
        f"{moment.month:02d}/{day:02d}/{year}",
        f"{day:02d}.{moment.month:02d}.{year}",
    ]
    return found


def mentions(text: str, value: Any) -> bool:
    """True if the text tells the value in one of its usual forms, as whole words or numbers."""
    haystack = " ".join(text.lower().split())
    return any(_stands_in(haystack, form) for form in forms(value))


def _stands_in(text: str, form: str) -> bool:
    """True if a form stands in a text on its own: not inside a word or number, nor as the 500 of 1,500."""
    at = text.find(form)
    while at >= 0:
        if _free_before(text, at, form) and _free_after(text, at + len(form)):
            return True
        at = text.find(form, at + 1)
    return False


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


def clock_of(state: dict[str, Any]) -> date:
    """The clock of a state, or of the first of several in one; far away where it has none: dates keep their year."""
    inner = (part.get("now") for part in state.values() if isinstance(part, dict))
    return next((moment for moment in map(as_moment, (state.get("now"), *inner)) if moment), date.min)


def drop_near_years(text: str, now: date) -> str:
    """Dates within some ten months of now without their year, as people say them."""

    def shorten(found: re.Match[str]) -> str:
        said = datetime.strptime(found.group(0), "%d %B %Y").date()
        near = abs((said - date(now.year, now.month, now.day)).days) < 300
        return found.group(1) if near else found.group(0)

    return _YEAR.sub(shorten, text)
