"""Fields of a result that a later call has changed: who reports both calls at once must tell what holds now."""

from collections.abc import Iterator, Sequence

from trajsmith.grounding.names import is_identifier
from trajsmith.records import FromOutput, GoldCall, JsonValue

_Key = tuple[str, str]
"""Name and value of an identifier: ("account_id", "A2208")."""


def update_outdated_fields(calls: Sequence[GoldCall], results: Sequence[JsonValue], index: int) -> JsonValue:
    """Return the result of a write with the values that later results show of the same fields of the same things.

    A field belongs to a thing if a row of any result that begins with the identifier of the thing has it. A call is
    about the things that its arguments identify, and about their owners, by whom these were looked up.

    Args:
        calls: The calls up to the end of the message.
        results: The results of as many of them as were made.
        index: The call whose result is reported.
    """
    result = results[index]
    if calls[index].effect != "write" or not isinstance(result, dict):
        return result
    fields: dict[_Key, set[str]] = {}
    for shown in results:
        for key, row in _iterate_rows(shown):
            fields.setdefault(key, set()).update(row)
    last: dict[tuple[_Key, str], JsonValue] = {}
    for number in range(index + 1, min(len(calls), len(results))):
        later = results[number]
        if isinstance(later, dict) and calls[number].effect == "write":
            last |= {
                (key, name): value
                for key in _collect_keys(calls, number)
                for name, value in later.items()
                if name in fields.get(key, ())
            }
    updated = {
        name: last[key, name]
        for key in sorted(_collect_keys(calls, index))
        for name in result
        if (key, name) in last and name not in calls[index].arguments
    }
    return {**result, **updated}


def _collect_keys(calls: Sequence[GoldCall], index: int) -> set[_Key]:
    """Return the identifiers that a call is about, and those of the owners by whom they were looked up."""
    call = calls[index]
    keys = {(name, value) for name, value in call.arguments.items() if is_identifier(name) and isinstance(value, str)}
    for source in call.provenance.values():
        if isinstance(source, FromOutput):
            keys |= _collect_keys(calls, source.call)
    return keys


def _iterate_rows(result: JsonValue) -> Iterator[tuple[_Key, dict[str, JsonValue]]]:
    """Yield every object of a result that has an identifier, with the first one."""
    if isinstance(result, list):
        for item in result:
            yield from _iterate_rows(item)
    elif isinstance(result, dict):
        own = next(((name, value) for name, value in result.items() if is_identifier(name)), None)
        if own is not None and isinstance(own[1], str):
            yield (own[0], own[1]), result
        for value in result.values():
            yield from _iterate_rows(value)
