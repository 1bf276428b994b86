"""Values told beside the wrong thing: "the top-up costs £11.00", where that is the price of the next row.

A tool's list may support every word of an answer that is wrong all the same. Here the rows of a list that an answer
names are held against the values of these rows that it tells. The rule is sure, not complete. It speaks only where

* a part of a sentence has one name and the value of another row that the answer names, and joins them by nothing but
  words such as "costs" or "until", or a bracket; no part of that sentence has names alone or values alone;
* the sentence tells what is so: it has no "not", "if", "could" or "you asked", and the message asks for no yes;
* the value stands beside its own name nowhere ("Small ends on 7 April, as Large begins on 7 April"), unless a bracket
  makes it part of the other one ("Kettle (W17)");
* no result of the dialogue shows both together, no call has changed anything since the list was shown, nobody has said
  the value, and it is no multiple, sum or difference of what belongs to the name.

Words of choice ("open", "pending") say too many other things to be judged, and whole numbers count with the noun of
their field ("5 seats") only.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isclose
from typing import Any

from trajsmith.phrasing import (
    find_value_spans,
    format_value,
    get_language,
    is_distinctive,
    is_value_mentioned,
    parse_datetime,
    singularize,
)
from trajsmith.phrasing.agreement_detection import find_confirmation_requests
from trajsmith.records import JsonObject, JsonValue, Message
from trajsmith.verify.claim_support import MOST_QUANTITY, UnsupportedClaim, iter_lists, iter_numbers, read_content
from trajsmith.verify.money_units import find_amounts_of_units, has_unit
from trajsmith.verify.row_mentions import (
    RowMention,
    drop_inner_mentions,
    is_in_brackets,
    iter_joined_pairs,
    list_field_words,
)

_TIME = re.compile(r"\d{1,2}:\d\d")
_CURRENCY = re.compile(r"[£€$]\s?$")
_DECIMAL = re.compile(r"[\d,]{1,30}\.\d")
_NOUN = re.compile(r"\s?([^\W\d_]+)")
_FORMATTING = str.maketrans("", "", '*`"“”„')
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _ShownResult:
    """Result of a call."""

    arguments: JsonObject
    content: JsonValue


def find_misplaced_values(messages: Sequence[Message], changing: Collection[int] = ()) -> tuple[UnsupportedClaim, ...]:
    """Return the values that the agent tells beside another row than their own, or as money where they are none.

    Answers, which are messages without calls, are judged by the lists that came since the one before or since the user
    spoke.

    Args:
        messages: The dialogue.
        changing: Indexes of the messages whose calls changed something, or may have: lists from before are not used.
    """
    claims: list[UnsupportedClaim] = []
    lists: dict[str, list[list[JsonObject]]] = {}
    arguments: dict[str, JsonObject] = {}
    results: list[_ShownResult] = []
    units: dict[float, set[bool]] = defaultdict(set)
    spoken: list[str] = []
    fresh = True
    for index, message in enumerate(messages):
        if message.role == "assistant" and message.tool_calls:
            arguments |= {call.id: call.function.arguments for call in message.tool_calls}
            fresh = index not in changing
            if not fresh:
                lists = {}
        elif message.role == "assistant":
            wrong = list(find_amounts_of_units(message.content, units, messages[:index]))
            answer = _Answer(message.content, results, spoken)
            wrong += [value for of_result in lists.values() for rows in of_result for value in answer.find(rows)]
            claims += [UnsupportedClaim(message=index, value=value) for value in wrong]
            lists = {}
        elif message.shows_data:
            content = read_content(message.content)
            results.append(_ShownResult(arguments.get(message.tool_call_id or "", {}), content))
            for name, number in iter_numbers(content):
                units[number].add(has_unit(name))
            if fresh and message.content not in lists:
                lists[message.content] = [rows for rows in iter_lists(content) if len(rows) > 1]
        elif message.role != "tool":
            spoken.append(message.content)
            lists = {}
    return tuple(dict.fromkeys(claims))


class _Answer:
    """An answer, and what is known when it is given."""

    def __init__(self, text: str, results: Sequence[_ShownResult], spoken: Sequence[str]) -> None:
        lines = (" ".join(line.translate(_FORMATTING).split()) for line in text.splitlines())
        self.text = get_language().grammar.read_numbers("\n".join(lines))
        lowered = "".join(char.lower() if len(char.lower()) == 1 else char for char in self.text)
        self.lowered = lowered
        self.undated = _TIME.sub(_blank, get_language().answers.dates.sub(_blank, lowered))
        self.results = results
        self.spoken = spoken
        self.asks = bool(find_confirmation_requests(text))

    def find(self, rows: Sequence[Row]) -> Iterator[str]:
        """Yield the misplaced values of one list, one for each field."""
        owners: dict[Any, set[int]] = defaultdict(set)
        for number, row in enumerate(rows):
            for value in row.values():
                owners[_build_key(value)].add(number)
        names = self._find_names(rows, owners)
        named = sorted({name.row for name in names})
        if len(named) < 2 or self.asks:
            return
        values = [
            mention
            for number in named
            for field, value in rows[number].items()
            if field != names[0].field and len(owners[_build_key(value)]) == 1
            for mention in self._find_values(number, field, value)
        ]
        mentions = drop_inner_mentions([*names, *values])
        masked = self.lowered
        for mention in mentions:
            masked = masked[: mention.start] + "x" * (mention.end - mention.start) + masked[mention.end :]
        nouns = {word for key in rows[0] if key.endswith("_id") for word in list_field_words(key)}
        for field in dict.fromkeys(mention.field for mention in mentions if not mention.is_name):
            own = [one for one in mentions if one.is_name or one.field == field]
            pairs = list(iter_joined_pairs(masked, own, nouns))
            right = {value.row for name, value in pairs if name.row == value.row}
            for name, value in pairs:
                wrong = rows[value.row][field]
                if wrong == rows[name.row].get(field) or (value.row in right and not is_in_brackets(masked, value)):
                    continue
                if not self._is_supported(rows, owners, name.row, field, wrong):
                    yield format_value(wrong)
                    break

    def _find_names(self, rows: Sequence[Row], owners: Mapping[Any, set[int]]) -> list[RowMention]:
        """Return where the answer names rows, by the field of texts that names most of them."""
        best: list[RowMention] = []
        for field in rows[0]:
            if not all(isinstance(row.get(field), str) and len(row[field]) > 2 for row in rows):
                continue
            mentions = [
                RowMention(start, end, number, field, is_name=True)
                for number, row in enumerate(rows)
                if len(owners[_build_key(row[field])]) == 1
                for start, end in self._find_text(row[field])
            ]
            if len({name.row for name in mentions}) > len({name.row for name in best}):
                best = mentions
        return drop_inner_mentions(best)

    def _find_values(self, row: int, field: str, value: Any) -> Iterator[RowMention]:
        if isinstance(value, bool) or value is None:
            return
        if isinstance(value, str):
            spans = self._find_text(value) if is_distinctive(value) else []
        elif isinstance(value, int | float) and abs(value) >= 1:
            spans = [span for span in find_value_spans(self.undated, value) if self._is_told(value, field, *span)]
        else:
            return
        yield from (RowMention(start, end, row, field, is_name=False) for start, end in spans)

    def _find_text(self, value: str) -> list[tuple[int, int]]:
        """Return where the answer has a text; the "current" of "your current plan" is no account "Current"."""
        spans = find_value_spans(self.lowered, value)
        if value.islower() or parse_datetime(value) is not None:
            return spans
        return [(start, end) for start, end in spans if not self.text[start:end].islower()]

    def _is_told(self, value: int | float, field: str, start: int, end: int) -> bool:
        """Return True for a number that stands for this field: an amount as such, a whole number with its noun."""
        if isinstance(value, float):
            return bool(_DECIMAL.match(self.undated, start) or _CURRENCY.search(self.undated, 0, start))
        noun = _NOUN.match(self.undated, end)
        return noun is not None and singularize(noun[1]) in list_field_words(field)

    def _is_supported(
        self, rows: Sequence[Row], owners: Mapping[Any, set[int]], number: int, field: str, value: Any
    ) -> bool:
        """Return True if a value of another row may be told of this row as well."""
        row = rows[number]
        if any(is_value_mentioned(text, value) for text in self.spoken):
            return True
        if isinstance(value, int | float) and _is_derived(value, row, field, rows):
            return True
        names = [cell for cell in row.values() if isinstance(cell, str) and len(owners[_build_key(cell)]) == 1]

        def is_about(cell: Any) -> bool:  # "Basic Plus" is a name of another row, and not of "Basic"
            return number in owners.get(_build_key(cell), {number}) and any(_states(cell, name) for name in names)

        return any(
            any(map(is_about, cells)) and any(_states(cell, value) for cell in cells)
            for result in self.results
            for cells in _iter_cells(result.content, list(_iter_scalars(result.arguments)))
        )


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _build_key(value: Any) -> Any:
    """Return the same key for values that a text states alike: days of one date, texts without case.

    26 and 26.0 have two: an amount is told in another way than a whole number.
    """
    if not isinstance(value, str):
        return repr(value)
    moment = parse_datetime(value)
    return (moment.month, moment.day) if moment else " ".join(value.lower().split())


def _is_derived(value: float, row: Row, field: str, rows: Sequence[Row]) -> bool:
    """Return True for a multiple, a sum or a difference of what belongs to a row."""
    amounts = [cell for cell in row.values() if isinstance(cell, float)]
    column = [each.get(field) for each in rows if each is not row]
    derived = [first + sign * second for first, second in combinations(amounts, 2) for sign in (1, -1)]
    own = row.get(field)
    if isinstance(own, int | float):
        derived += [own * count for count in range(2, MOST_QUANTITY + 1)]
        derived += [own + sign * other for other in column if isinstance(other, int | float) for sign in (1, -1)]
    return any(isclose(abs(number), value, abs_tol=0.005) for number in derived)


def _states(cell: Any, value: Any) -> bool:
    return _build_key(cell) == _build_key(value) or (isinstance(cell, str) and is_value_mentioned(cell, value))


def _iter_cells(value: Any, around: list[Any]) -> Iterator[list[Any]]:
    """Yield the scalars of each object of a result, with those of the objects around it."""
    if isinstance(value, list):
        for each in value:
            yield from _iter_cells(each, around)
        return
    cells = [*around, *_iter_scalars(value)]
    yield cells
    for inner in value.values() if isinstance(value, dict) else ():
        if isinstance(inner, dict | list):
            yield from _iter_cells(inner, cells)


def _iter_scalars(value: Any) -> Iterator[Any]:
    """Yield the scalars of a value, without those of lists of objects."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _iter_scalars(inner)
    elif isinstance(value, list):
        yield from (each for each in value if not isinstance(each, dict | list))
    else:
        yield value
