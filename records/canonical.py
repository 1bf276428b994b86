"""One canonical JSON form; every hash and id in the project is taken of it."""

import hashlib
from typing import Any

import orjson

from trajsmith.records.errors import InputError

JsonValue = Any
JsonObject = dict[str, Any]

_SORTED = orjson.OPT_SORT_KEYS
DEEPEST_JSON = 100
"""Levels of objects and lists inside each other in data of others; writers of JSON give up beyond 250."""


def canonical_json(value: JsonValue) -> bytes:
    """Encode plain JSON data with sorted keys and no spaces.

    Raises:
        InputError: The value holds something that JSON cannot carry (bytes, cycles, integers beyond 64 bits).
    """
    try:
        return orjson.dumps(value, option=_SORTED)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise InputError(f"not JSON data: {error}") from error


def is_too_deep(value: JsonValue) -> bool:
    """Return True if objects and lists stand inside each other on more than `DEEPEST_JSON` levels."""
    level, depth = [value], 0
    while level and depth <= DEEPEST_JSON:
        depth += 1
        level = [
            child
            for one in level
            for child in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
            if isinstance(child, dict | list)
        ]
    return depth > DEEPEST_JSON


def content_hash(value: JsonValue, length: int = 32) -> str:
    """Hex SHA-256 of the canonical form, cut to `length` characters."""
    return hash_bytes(canonical_json(value), length)


def hash_bytes(data: bytes, length: int = 32) -> str:
    """Hex SHA-256 of bytes, cut to `length` characters."""
    return hashlib.sha256(data).hexdigest()[:length]


def compute_state_digest(state: JsonObject) -> str:
    """Hash of a state, made of the digests of its top-level parts."""
    return compute_parts_digest({name: compute_part_digest(part) for name, part in state.items()})


def compute_parts_digest(digests: dict[str, str]) -> str:
    """The same from the digests of the parts."""
    return content_hash(digests)


def compute_part_digest(part: JsonValue) -> str:
    """Digest of one top-level part; that of a table (an object) is a sum over its entries, whatever their order."""
    if not isinstance(part, dict):
        return content_hash(part)
    return compute_table_digest(sum(compute_entry_weight(key, value) for key, value in part.items()), len(part))


def compute_table_digest(weight: int, entries: int) -> str:
    """Digest of a table from the sum of its entries' weights: a changed entry costs no more than that entry."""
    return hash_bytes(b"table:%d:%x" % (entries, weight % (1 << 256)))


def compute_entry_weight(key: str, value: JsonValue) -> int:
    """Weight of one entry of a table, 256 bits."""
    name = key.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(b"%d:%s%s" % (len(name), name, canonical_json(value))).digest(), "big")


def derive_seed(*parts: int | str) -> int:
    """A 63-bit seed from any parts, the same in every process (Python's own `hash` is salted)."""
    return int.from_bytes(hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()[:8], "big") >> 1
