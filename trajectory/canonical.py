"""One canonical JSON form; every hash and id in the project is taken of it."""

import hashlib
from typing import Any

import orjson

from trajectory.errors import InputError

JsonValue = Any
JsonObject = dict[str, Any]

_SORTED = orjson.OPT_SORT_KEYS


def canonical_json(value: JsonValue) -> bytes:
    """Encode plain JSON data with sorted keys and no spaces.

    Raises:
        InputError: The value holds something that JSON cannot carry (bytes, cycles, integers beyond 64 bits).
    """
    try:
        return orjson.dumps(value, option=_SORTED)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise InputError(f"not JSON data: {error}") from error


def content_hash(value: JsonValue, length: int = 32) -> str:
    """Hex SHA-256 of the canonical form, cut to `length` characters."""
    return hash_bytes(canonical_json(value), length)


def hash_bytes(data: bytes, length: int = 32) -> str:
    """Hex SHA-256 of bytes, cut to `length` characters."""
    return hashlib.sha256(data).hexdigest()[:length]


def state_digest(state: JsonObject) -> str:
    """Hash of a state, made of the hashes of its top-level parts: a part that did not change need not be read again."""
    return parts_digest({name: content_hash(part) for name, part in state.items()})


def parts_digest(hashes: dict[str, str]) -> str:
    """The same from the hashes of the parts."""
    return content_hash(hashes)


def derive_seed(*parts: int | str) -> int:
    """A 63-bit seed from any parts, the same in every process (Python's own `hash` is salted)."""
    return int.from_bytes(hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()[:8], "big") >> 1
