"""State differences as RFC 6902 patches.

The `jsonpatch` package writes shorter patches (it moves and copies) but takes milliseconds on a state of 100 KB and
its moves hide which value changed. Ours names every changed leaf, and walks past equal parts at the speed of `==`.
`jsonpatch` applies them, so that the format stays honest.
"""

from collections.abc import Iterator

import orjson

from trajsmith.records import JsonObject, JsonValue


def escape_pointer(part: str) -> str:
    """One part of a JSON Pointer (RFC 6901)."""
    return part.replace("~", "~0").replace("/", "~1")


def diff(before: JsonValue, after: JsonValue) -> list[JsonObject]:
    """Operations that turn `before` into `after`: add, remove and replace only, in a fixed order."""
    return list(_walk("", before, after))


def _walk(path: str, before: JsonValue, after: JsonValue) -> Iterator[JsonObject]:
    if before is after or _same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _walk_object(path, before, after)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _walk_array(path, before, after)
    else:
        yield {"op": "replace", "path": path, "value": after}


def _same(before: JsonValue, after: JsonValue) -> bool:
    """Equality that tells True from 1 and 1 from 1.0 at any depth, which Python's own does not.

    Objects whose keys stand in another order count as different here; the walk finds that nothing in them is.
    """
    if type(before) is not type(after) or before != after:
        return False
    return not isinstance(before, dict | list) or orjson.dumps(before) == orjson.dumps(after)


def _walk_object(path: str, before: JsonObject, after: JsonObject) -> Iterator[JsonObject]:
    for key in sorted(before.keys() - after.keys()):
        yield {"op": "remove", "path": f"{path}/{escape_pointer(key)}"}
    for key in sorted(after):
        child = f"{path}/{escape_pointer(key)}"
        if key not in before:
            yield {"op": "add", "path": child, "value": after[key]}
        else:
            yield from _walk(child, before[key], after[key])


def _walk_array(path: str, before: list[JsonValue], after: list[JsonValue]) -> Iterator[JsonObject]:
    common = min(len(before), len(after))
    if common and len(before) > len(after) and _same(before[-common:], after):
        for index in reversed(range(len(before) - common)):
            yield {"op": "remove", "path": f"{path}/{index}"}
        return
    for index in range(common):
        yield from _walk(f"{path}/{index}", before[index], after[index])
    for index in reversed(range(common, len(before))):
        yield {"op": "remove", "path": f"{path}/{index}"}
    for index in range(common, len(after)):
        yield {"op": "add", "path": f"{path}/-", "value": after[index]}
