"""What plain words say about a parameter: choices, examples, limits and forms, in descriptions and in refusals."""

import functools
import re
from dataclasses import dataclass

_QUOTED = re.compile(r"[\"'`‘“]([^\"'`’”\n]{1,60})[\"'`’”]")
_CHOICES = re.compile(
    r"(?:one of|allowed(?: values)?(?: are)?|valid(?: \w+){0,2}(?: are)?|supported(?: \w+){0,2}(?: are)?"
    r"|options(?: are)?|available(?: \w+){0,2}(?: are)?|choose from|can be|must be either|either"
    r"|expected|accepts|values)\s{0,20}:?\s{1,20}(?:the following:?\s{0,20})?([^.;\n]{2,300})",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"[(\[]([^()\[\]]{2,200})[)\]]")
_EXAMPLE = re.compile(
    r"(?:for example|for instance|examples?|e\.?g\.?|such as|like)\s*[:,]?\s+([^;()\n]{1,120})", re.IGNORECASE
)
_QUOTED_EXAMPLE = re.compile(r"(?:example|e\.g\.|such as|like)[^\"'`]{0,20}[\"'`]([^\"'`]{1,60})[\"'`]", re.IGNORECASE)
_BETWEEN = re.compile(
    r"(?:between|from|range(?: of)?:?)\s*\[?(-?\d[\d.]*)\s*(?:and|to|-|–|,)\s*(-?\d[\d.]*)", re.IGNORECASE
)
_SPAN = re.compile(r"[(\[]\s*(-?\d+(?:\.\d+)?)\s*(?:-|–|to|\.\.)\s*(-?\d+(?:\.\d+)?)\s*[)\]]")
_LEAST = re.compile(r"(?:at least|minimum(?: of| is)?:?|min:?|>=|no less than)\s*(-?\d+(?:\.\d+)?)", re.IGNORECASE)
_ABOVE = re.compile(r"(?:greater than|more than|above|>)\s*(-?\d+(?:\.\d+)?)(?! or equal)", re.IGNORECASE)
_MOST = re.compile(
    r"(?:at most|maximum(?: of| is)?:?|max:?|up to|<=|no more than|cannot exceed|limit of|only)\s*(-?\d+(?:\.\d+)?)",
    re.IGNORECASE,
)
_BELOW = re.compile(r"(?:less than|below|under|<)\s*(-?\d+(?:\.\d+)?)(?! or equal)", re.IGNORECASE)
_PATTERN = re.compile(r"pattern:?\s+[\"']?(\^[^\s\"']+\$)")
_TEMPLATE = re.compile(
    r"%[YmdHMS](?:[-/:T. ]?%[YmdHMSZfzy])+|(?:YYYY|YY|MM|DD|HH)(?:[-/:T. ]?(?:YYYY|YY|MM|DD|HH|mm|SS|ss))+",
    re.IGNORECASE,
)
_KINDS = {
    "dictionary": "object", "dict": "object", "object": "object", "mapping": "object", "list": "array",
    "array": "array", "string": "string", "integer": "integer", "number": "number", "boolean": "boolean",
}  # fmt: skip
_KIND = re.compile(rf"(?:should|must) be (?:a |an )?(?:valid |JSON )?({'|'.join(_KINDS)})\b", re.IGNORECASE)
_KEY = re.compile(
    r"\b(\w+): Field required|missing (?:required )?(?:field|key)s?:? [\"'`](\w+)|[\"'`](\w+)[\"'`] is required"
)
_BARE = re.compile(r"[\w#+./:-]+(?: [\w-]+){0,2}")
_SPLIT = re.compile(r"(?:(?<!\s)\s+)?(?:,|\||/|;|\bor\b|\band\b)\s*")
_FILLER = frozenset({"a", "an", "the", "etc", "null", "none", "string", "integer", "number", "optional", "required"})
WEAK, SURE = 0.5, 1.0


@dataclass(frozen=True)
class Hints:
    """Choices, examples, limits and formats that a text states about values."""

    choices: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    template: str | None = None
    """Form of a date or time for `strftime`."""
    pattern: str | None = None
    kind: str | None = None
    """JSON type that is wanted."""
    keys: tuple[str, ...] = ()
    """Keys that an object must have."""

    def __bool__(self) -> bool:
        limits = self.low is not None or self.high is not None
        named = self.choices or self.examples or self.keys
        return bool(named or self.template or self.pattern or self.kind or limits)


@functools.lru_cache(maxsize=8192)
def read_hints(text: str) -> Hints:
    """Choices, examples, limits and forms that a text names; what it does not name is empty."""
    text = text[:2000]
    low, high = _limits(text)
    pattern = _PATTERN.search(text)
    kind = _KIND.search(text)
    return Hints(
        _choices(text), _examples(text), low, high, _template(text),
        pattern.group(1) if pattern else None,
        _KINDS[kind.group(1).lower()] if kind else None,
        tuple(dict.fromkeys(name for groups in _KEY.findall(text) for name in groups if name)),
    )  # fmt: skip


def list_quoted_examples(text: str) -> list[str]:
    """Return the examples that a text gives in quotation marks."""
    return _QUOTED_EXAMPLE.findall(text)


def _choices(text: str) -> tuple[str, ...]:
    for match in _CHOICES.finditer(text):
        choices = _listed(match.group(1))
        if len(choices) > 1 or (choices and _QUOTED.search(match.group(1))):
            return choices
    for match in _IN_BRACKETS.finditer(text):
        inner = match.group(1)
        if not _EXAMPLE.match(inner) and ("," in inner or "|" in inner or "/" in inner or _QUOTED.search(inner)):
            choices = _listed(inner)
            if len(choices) > 1:
                return choices
    quoted = tuple(dict.fromkeys(_QUOTED.findall(text)))
    return quoted if len(quoted) > 2 and not _EXAMPLE.search(text) else ()


def _listed(segment: str) -> tuple[str, ...]:
    """The items of a list in words: the quoted ones if any are, else short plain ones."""
    items = [item.strip() for item in _QUOTED.findall(segment)]
    if not items:
        parts = [part.strip(" .:()[]{}") for part in _SPLIT.split(segment)]
        if not all(len(part) <= 40 and (not part or _BARE.fullmatch(part)) for part in parts):
            return ()
        items = [part for part in parts if part and part.lower() not in _FILLER]
    return tuple(dict.fromkeys(item for item in items if item))


def _examples(text: str) -> tuple[str, ...]:
    examples: list[str] = []
    for match in _EXAMPLE.finditer(text):
        quoted = _QUOTED.findall(match.group(1))
        examples += quoted or [part.strip(" .") for part in match.group(1).split(",")]
    return tuple(dict.fromkeys(item for item in examples if item and item.lower() not in _FILLER))


def _limits(text: str) -> tuple[float | None, float | None]:
    between = _BETWEEN.search(text) or _SPAN.search(text)
    if between:
        return _number(between.group(1)), _number(between.group(2))
    low, high = _first(_LEAST, text), _first(_MOST, text)
    above, below = _first(_ABOVE, text), _first(_BELOW, text)
    if low is None and above is not None:
        low = above + 1
    if high is None and below is not None:
        high = below - 1
    if low is None and re.search(r"\bpositive\b", text, re.IGNORECASE):
        low = 1.0
    return low, high


def _first(pattern: re.Pattern[str], text: str) -> float | None:
    match = pattern.search(text)
    return _number(match.group(1)) if match else None


def _number(text: str) -> float | None:
    try:
        return float(text.rstrip("."))
    except ValueError:
        return None


def _template(text: str) -> str | None:
    match = _TEMPLATE.search(text)
    if match:
        return _strftime(match.group(0))
    if re.search(r"iso[ -]?8601|rfc ?3339", text, re.IGNORECASE):
        return (
            "%Y-%m-%d"
            if re.search(r"\bdate\b", text, re.IGNORECASE) and "time" not in text.lower()
            else "%Y-%m-%dT%H:%M:%S"
        )
    return None


def _strftime(form: str) -> str:
    """A form such as YYYY-MM-DDTHH:MM:SS for `strftime`; MM after an hour is minutes."""
    if "%" in form:
        return form
    result = form.replace("YYYY", "%Y").replace("yyyy", "%Y").replace("DD", "%d").replace("dd", "%d")
    result = re.sub(r"HH|hh", "%H", result)
    head, hour, tail = result.partition("%H")
    tail = re.sub(r"MM|mm", "%M", tail)
    head = re.sub(r"MM|mm", "%m", head)
    result = re.sub(r"SS|ss", "%S", head + hour + tail)
    return re.sub(r"YY|yy", "%y", result)


def merge_hints(before: Hints, now: Hints) -> Hints:
    """Merge hints; the later wins where they differ, and all keys are kept."""
    keys = tuple(dict.fromkeys((*before.keys, *now.keys)))
    return Hints(
        now.choices or before.choices,
        now.examples or before.examples,
        now.low if now.low is not None else before.low,
        now.high if now.high is not None else before.high,
        now.template or before.template,
        now.pattern or before.pattern,
        now.kind or before.kind,
        keys,
    )
