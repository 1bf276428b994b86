"""What a request asks for, and the values as executed that an answer must state."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from trajsmith.grounding import (
    PathMatch,
    find_rows,
    find_values,
    get_value,
    is_identifier,
    join_path,
    split_path,
    update_outdated_fields,
)
from trajsmith.phrasing import Wording, parse_datetime, split_identifier, stem
from trajsmith.querygen.reportable_values import pick_reportable_values
from trajsmith.records import AnswerFact, GoldCall, JsonValue, RequestedInfo, Selector

_GENERAL = frozenset({"is", "has", "was", "are", "can", "be", "the", "of", "to", "in", "on", "at", "by", "for"})


def find_named_fields(template: str, call: GoldCall, told_paths: Sequence[str]) -> tuple[str, ...]:
    """Return paths of plain result fields that a request names and that the tool's facts leave out.

    "Check whether a window is open" names `window_open`: an answer to it must state that field, too.

    Args:
        template: The phrase, with its slots.
        call: The executed call; a field that repeats an argument is no news.
        told_paths: The tool's facts.
    """
    words = {stem(word) for text in _split_slots(template) for word in split_identifier(text)}
    result = call.result if isinstance(call.result, dict) else {}
    paths = []
    for name, value in result.items():
        content = [stem(word) for word in split_identifier(name) if word not in _GENERAL]
        plain = isinstance(value, str | int | float) and value != "" and not is_identifier(name)
        if (
            plain
            and content
            and name not in call.arguments
            and f"$.{name}" not in told_paths
            and words.issuperset(content)
        ):
            paths.append(f"$.{name}")
    return tuple(paths)


def _split_slots(template: str) -> list[str]:
    """Return the text of a template between its slots."""
    return [part.partition("}")[2] if number else part for number, part in enumerate(template.split("{"))]


def build_general_info(call: int, gold: GoldCall, sentence: str, template: str, wording: Wording) -> RequestedInfo:
    """Return what a request for a whole result asks for: the tool's facts, and fields that the request names.

    Tools without phrases have no facts of their own: the first informative values of the result stand for them.
    """
    phrases = wording.tool(gold.tool)
    if phrases.facts or phrases.done:
        named = find_named_fields(template, gold, phrases.facts) if gold.effect == "read" else ()
        unchanged = _find_unchanged(gold, wording)
        fields = (*(path for path in phrases.facts if path not in unchanged), *named)
        return RequestedInfo(call=call, question=sentence, fields=fields)
    facts = tuple(AnswerFact(value=value) for value in pick_reportable_values(gold.result) if value != "")
    return RequestedInfo(call=call, question=sentence, facts=facts)


def _find_unchanged(gold: GoldCall, wording: Wording) -> set[str]:
    """Return the paths of what a write could have changed, and was not asked to: the phone number of somebody who
    orders a newsletter."""
    tool = wording.tools[gold.tool]
    optional = [name for name in tool.parameters if name not in tool.required]
    return {f"$.{name}" for name in optional if gold.effect == "write" and gold.arguments.get(name) is None}


def fill_facts(info: RequestedInfo, call: GoldCall, wording: Wording) -> RequestedInfo:
    """Return what is asked for with its values in an executed result; fields without a value are left out."""
    if not info.fields:
        values = pick_reportable_values(call.result) if info.facts else []
        return info.model_copy(update={"facts": tuple(AnswerFact(value=value) for value in values)})
    if info.row is not None:
        places = _iter_row_places(info.row, info.fields, call.result)
    else:
        places = ((place, value) for path in info.fields for place, value in iter_places(call.result, path))
    facts = [build_fact(info, call.tool, place, value, wording) for place, value in places]
    several = len({fact.label for fact in facts if isinstance(fact.value, bool)}) < sum(
        isinstance(fact.value, bool) for fact in facts
    )  # which of several things a yes or no is about cannot be read from words
    facts = [fact for fact in facts if not (several and isinstance(fact.value, bool))]
    if not facts and info.row is None and info.fields:
        facts = [
            AnswerFact(value=[], call=info.call, place=place, label=wording.parameter(call.tool, place[-1]).label)
            for path in info.fields[:1]
            for place in _find_empty_list(call.result, path)
        ]
    return info.model_copy(update={"facts": tuple(facts)})


def drop_outdated_facts(info: RequestedInfo, calls: Sequence[GoldCall]) -> RequestedInfo:
    """Return what is asked for without the values that a later one of these calls has changed.

    Args:
        info: What is asked for, with its values.
        calls: The executed calls up to the end of the message.
    """
    results = [call.result for call in calls]
    first, last = results[info.call], update_outdated_fields(calls, results, info.call)
    if first == last or not isinstance(first, dict) or not isinstance(last, dict):
        return info
    lasting = pick_reportable_values(last)
    facts = tuple(
        fact
        for fact in info.facts
        if (first.get(fact.place[0]) == last.get(fact.place[0]) if fact.place else fact.value in lasting)
    )
    return info.model_copy(update={"facts": facts})


def build_fact(
    info: RequestedInfo, tool: str, place: tuple[str, ...], value: JsonValue, wording: Wording
) -> AnswerFact:
    """Return a value of a result as something to state, with the words of its field."""
    field = next((part for part in reversed(place) if not part.isdigit()), "")
    phrases = wording.parameter(tool, field)
    has_words = isinstance(value, bool) or str(value) in phrases.values
    depends = isinstance(value, bool) or isinstance(parse_datetime(value), datetime)
    return AnswerFact(
        value=value,
        call=info.call,
        place=place,
        label=phrases.label,
        words=phrases.values if has_words else {},
        question=info.question if depends else "",
    )


def _iter_row_places(
    selector: Selector, fields: Sequence[str], result: JsonValue
) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    row = next(find_rows(result, selector), None)
    rows: Any = next((match.value for match in find_values(result, selector.rows)), [])
    for field in fields if row is not None else ():
        place = (*split_path(selector.rows), str(rows.index(row)), *split_path(field))
        yield from _split_value(place, get_value(row, field))


def iter_places(result: JsonValue, path: str) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    """Yield (place, value) of every plain value at a path; of a list its items."""
    for match in find_values(result, path):
        yield from _split_value(_get_place(match, path), match.value)


def _split_value(place: tuple[str, ...], value: JsonValue) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    items = enumerate(value) if isinstance(value, list) else [(None, value)]
    for index, item in items:
        if isinstance(item, str | int | float) and item != "":
            yield place if index is None else (*place, str(index)), item


def _get_place(match: PathMatch, path: str) -> tuple[str, ...]:
    positions = iter(str(level.index) for level in match.levels)
    return tuple(next(positions) if part == "*" else part for part in split_path(path))


def has_empty_list(result: JsonValue, path: str) -> bool:
    return any(_find_empty_list(result, path))


def _find_empty_list(result: JsonValue, path: str) -> Iterator[tuple[str, ...]]:
    """Yield the place of the list on a path that has no rows."""
    parts = split_path(path)
    stop = parts.index("*") if "*" in parts else len(parts)
    if any(match.value == [] for match in find_values(result, join_path(parts[:stop]))):
        yield parts[:stop]
