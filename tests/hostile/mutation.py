"""Mutations of files: of the structure of JSON and YAML documents, and of bytes."""

import copy
import json
import random

HOSTILE = (
    None,
    True,
    -1,
    0,
    10**30,
    1e308,
    "",
    "a\nb",
    "../../x",
    "\x1b[31m",
    "a\u202eb",
    "x" * 3000,
    [],
    {},
    [[]],
    [None],
    {"": ""},
    {"a": {"b": {"c": []}}},
    "null",
    "__class__",
    "{{ 7 * 7 }}",
    "<script>alert(1)</script>",
)


def list_places(value, path=()):
    """Yield the path of every value inside a document, and of the document."""
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from list_places(inner, (*path, key))


def mutate_document(document, dice: random.Random):
    """Return a copy of a document with one thing in it deleted, doubled, renamed or replaced."""
    mutated = copy.deepcopy(document)
    places = [path for path in list_places(mutated) if path]
    if not places or dice.random() < 0.03:
        return dice.choice(HOSTILE)
    path = dice.choice(places)
    inside = mutated
    for key in path[:-1]:
        inside = inside[key]
    last = path[-1]
    kind = dice.choice(("replace", "replace", "replace", "delete", "double", "rename", "swap"))
    if kind == "delete":
        del inside[last]
    elif kind == "double" and isinstance(inside, list):
        inside.insert(last, inside[last])
    elif kind == "rename" and isinstance(inside, dict):
        inside[str(dice.choice(HOSTILE))] = inside.pop(last)
    elif kind == "swap":
        other = dice.choice(places)
        value = mutated
        for key in other:
            value = value[key]
        inside[last] = copy.deepcopy(value)
    else:
        inside[last] = dice.choice(HOSTILE)
    return mutated


def mutate_bytes(data: bytes, dice: random.Random) -> bytes:
    """Return data that is cut, flipped, repeated, or has foreign bytes in it."""
    at = dice.randrange(len(data) + 1)
    kind = dice.choice(("cut", "flip", "insert", "repeat", "zero", "surrogate", "drop"))
    if kind == "cut":
        return data[:at]
    if kind == "flip" and data:
        at = min(at, len(data) - 1)
        return data[:at] + bytes([data[at] ^ (1 << dice.randrange(8))]) + data[at + 1 :]
    if kind == "insert":
        return data[:at] + bytes(dice.randrange(256) for _ in range(dice.randrange(1, 20))) + data[at:]
    if kind == "repeat":
        return data[:at] + data[at : at + 50] * 200 + data[at:]
    if kind == "zero":
        return data[:at] + b"\0" * 20 + data[at + 20 :]
    if kind == "surrogate":
        return data[:at] + b"\\ud800\xed\xa0\x80" + data[at:]
    return data[:at] + data[at + dice.randrange(1, 200) :]


def dump(document, lines: bool = False) -> bytes:
    """Return a document as JSON, or a list as JSON Lines."""
    if lines and isinstance(document, list):
        return b"".join(json.dumps(one).encode() + b"\n" for one in document)
    return json.dumps(document).encode()
