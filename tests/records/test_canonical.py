"""Ids and hashes: content decides, order and volatile fields do not."""

import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trajsmith.records import (
    Chain,
    InputError,
    JsonObject,
    Record,
    canonical_json,
    content_hash,
    derive_seed,
    hash_bytes,
    strip_checksum,
)

steady = settings(deadline=None, derandomize=True, max_examples=60)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=6), children, max_size=4),
    max_leaves=12,
)


class Note(Record):
    PREFIX: ClassVar[str] = "note"
    VOLATILE: ClassVar[frozenset[str]] = frozenset({"seconds"})

    body: JsonObject
    seconds: float = 0.0


def turned(value: Any) -> Any:
    """The same document with all keys in the opposite order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(item) for item in value] if isinstance(value, list) else value


@steady
@given(JSON)
def test_the_order_of_keys_does_not_matter(document: Any) -> None:
    assert canonical_json(turned(document)) == canonical_json(document)
    assert content_hash(turned(document)) == content_hash(document)


@steady
@given(JSON)
def test_the_canonical_form_is_the_same_document(document: Any) -> None:
    assert orjson.loads(canonical_json(document)) == document


@steady
@given(JSON, JSON)
def test_other_content_has_another_hash(one: Any, other: Any) -> None:
    assume(canonical_json(one) != canonical_json(other))
    assert content_hash(one) != content_hash(other)


@steady
@given(st.dictionaries(st.text(max_size=6), JSON, max_size=4), st.floats(0, 1e6), st.floats(0, 1e6))
def test_ids_know_content_but_neither_order_nor_volatile_fields(body: JsonObject, first: float, second: float) -> None:
    note = Note(body=body, seconds=first)
    assert Note(body=turned(body), seconds=second).id == note.id
    assert Note(body={**body, "more": 1}).id != note.id


@steady
@given(st.dictionaries(st.text(max_size=6), JSON, max_size=4))
def test_a_line_gives_the_record_back(body: JsonObject) -> None:
    note = Note(body=body, seconds=1.5)
    line = note.to_line()
    again = Note.from_line(line)
    assert line.count(b"\n") == 1
    assert again.id == note.id == again.content_id()
    assert again.to_line() == line


@steady
@given(
    st.dictionaries(st.text(max_size=6) | st.just("checksum"), JSON, max_size=4), st.integers(0), st.integers(1, 255)
)
def test_a_line_of_which_one_byte_is_another_is_not_taken_for_the_written_one(
    body: JsonObject, place: int, other: int
) -> None:
    note = Note(body=body)
    line = note.to_line()
    assert strip_checksum(line) == strip_checksum(line.rstrip()) == note.to_json()
    place %= len(line) - 1
    assert strip_checksum(line[:place] + bytes([line[place] ^ other]) + line[place + 1 :]) is None
    assert strip_checksum(note.to_json()) is None


def test_a_line_without_its_checksum_is_compared_with_its_id() -> None:
    note = Note(body={"amount": 1}, seconds=2.0)
    content = orjson.loads(note.to_json())
    assert Note.from_line(note.to_json()) == Note.from_line(note.to_line().decode()) == note
    assert Note.from_line(orjson.dumps({"checksum": "0" * 16} | content)) == note
    assert Note.from_line(note.to_line().replace(b"2.0", b"3.0")).seconds == 3.0, (
        "volatile fields have no part in the id"
    )
    for changed in (note.to_json(), note.to_line()):
        with pytest.raises(InputError, match="changed by hand"):
            Note.from_line(changed.replace(b'"amount":1', b'"amount":2'))


@pytest.mark.parametrize(
    "line", [b"[1]", b'["checksum"]', b"1", b'{"checksum":"a"}', b'{,"checksum":"44136fa355b3678a"}']
)
def test_a_line_that_is_no_record_is_refused(line: bytes) -> None:
    with pytest.raises(InputError, match="here: "):
        Note.from_line(line, "here")


def test_an_id_that_is_given_is_kept() -> None:
    assert Note(id="note_mine", body={}).id == "note_mine"


def test_chains_with_the_same_tools_are_told_apart_by_their_number() -> None:
    def chain(index: int) -> Chain:
        return Chain(index=index, environment="shop", tools=("a",), dependencies=(), state="s", sampler={}, seed=1)

    assert chain(1).id.startswith("chain_")
    assert chain(1).id != chain(2).id
    assert chain(1).id == chain(1).id


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"a": 2**64}, id="beyond-64-bits"),
        pytest.param({"a": b"x"}, id="bytes"),
        pytest.param({1: "a"}, id="key-is-no-text"),
        pytest.param({"a": {1, 2}}, id="set"),
    ],
)
def test_what_json_cannot_carry_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="not JSON data"):
        canonical_json(value)


def test_a_cycle_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    with pytest.raises(InputError, match="not JSON data"):
        canonical_json(loop)


class Cost(Record):
    """A record of these tests."""

    PREFIX = "cost"

    record: str
    stage: str
    seconds: float


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param(b'{"record": "r", "sta', r"here:7: \(top\): Invalid JSON", id="torn"),
        pytest.param(b'{"record": "r", "stage": "play"}', "here:7: seconds: Field required", id="missing"),
        pytest.param(
            b'{"record": "r", "stage": "p", "seconds": 1, "x": 1}', "here:7: x: Extra inputs", id="unknown-key"
        ),
        pytest.param(b'{"record": 1}', r"here:7: record: .*\(and 2 more\)", id="several"),
    ],
)
def test_a_bad_line_says_where_and_why(line: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Cost.from_line(line, "here:7")


def test_records_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Note(body={}).seconds = 2.0  # type: ignore[misc]


def test_seeds_separate_their_parts() -> None:
    assert derive_seed("ab", "c") != derive_seed("a", "bc")
    assert 0 <= derive_seed(1) < 2**63


def test_seeds_and_hashes_are_the_same_in_another_process() -> None:
    code = "from trajsmith.records import *; print(derive_seed(7, 'x'), content_hash({'b': 1, 'a': [True, None]}))"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, env={"PYTHONHASHSEED": "77"}, check=True
    )
    assert done.stdout.split() == [str(derive_seed(7, "x")), content_hash({"a": [True, None], "b": 1})]


def test_hashes_can_be_cut() -> None:
    assert hash_bytes(b"", 8) == "e3b0c442"
