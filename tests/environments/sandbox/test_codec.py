"""The codec of replies, fed with what no worker should send: it answers or refuses, in little memory."""

import json
import time
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajsmith.environments.sandbox.codec import (
    DEEPEST,
    LARGEST_BATCH,
    WORKER_FAULTS,
    ProtocolError,
    Reply,
    ReplyCodec,
    SizeLimits,
    check_json,
    decode_json,
    encode_content,
)
from trajsmith.environments.sandbox.serialization import HEADER, FrameReader, ReplyStatus, WorkerOp

LIMITS = SizeLimits(result_bytes=1 << 20, state_bytes=1 << 20)
CODEC = ReplyCodec(LIMITS)
encode = msgspec.msgpack.encode
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)
OPERATIONS = st.sampled_from(WorkerOp)
STATUSES = st.sampled_from([*ReplyStatus, 6, 8, 99, -1])
LOOK = encode_content([["a"], ["clock"]])
GOOD: dict[WorkerOp, bytes] = {
    WorkerOp.CALL: b'{"a": [1, 2.5, null, "x"]}',
    WorkerOp.CHANGES: encode_content([["orders", "W1", b"{}"], ["token", None, b'"x"'], ["gone", None, None]]),
    WorkerOp.STATES: b'[{"a": 1}]',
    WorkerOp.LOAD: encode_content([b'{"name": "x"}', ["a note"]]),
    WorkerOp.PREPARE: encode_content(None),
    WorkerOp.END: encode_content([]),
    WorkerOp.LOOK: LOOK,
    WorkerOp.FORK: encode_content(4711),
    **dict.fromkeys([WorkerOp.START, WorkerOp.BASE, WorkerOp.DROP], b""),
}


def read(body: bytes, *operations: WorkerOp) -> list[Reply] | ProtocolError:
    """Decode a frame that answers requests 1, 2, 3, ..."""
    try:
        return CODEC.decode(body, [[number, operation] for number, operation in enumerate(operations, 1)])
    except ProtocolError as error:
        assert str(error) and str(error).isprintable() and len(str(error)) < 300
        return error


@pytest.mark.parametrize("operation", WorkerOp)
def test_a_legal_reply_of_each_operation_is_decoded(operation: WorkerOp) -> None:
    (reply,) = CODEC.decode(encode([[1, 0, GOOD[operation]]]), [[1, operation]])
    assert (reply.status, reply.content) == (ReplyStatus.OK, GOOD[operation])
    assert reply.value == {
        WorkerOp.CALL: {"a": [1, 2.5, None, "x"]},
        WorkerOp.CHANGES: [("orders", "W1", b"{}"), ("token", None, b'"x"'), ("gone", None, None)],
        WorkerOp.STATES: [{"a": 1}], WorkerOp.LOAD: (b'{"name": "x"}', ["a note"]), WorkerOp.END: [],
        WorkerOp.LOOK: (["a"], ["clock"]), WorkerOp.FORK: 4711,
    }.get(operation)  # fmt: skip


@pytest.mark.parametrize("kind", sorted(WORKER_FAULTS))
@pytest.mark.parametrize("operation", WorkerOp)
def test_every_operation_may_fail_with_every_kind_of_fault(operation: WorkerOp, kind: str) -> None:
    (reply,) = CODEC.decode(encode([[1, 4, encode_content([kind, "it\x1b[2J broke", None])]]), [[1, operation]])
    assert (reply.status, reply.value) == (ReplyStatus.FAULT, (kind, "it\ufffd[2J broke", None))


@given(st.binary(max_size=400), st.lists(OPERATIONS, min_size=1, max_size=3))
def test_any_bytes_are_read_or_refused(body: bytes, operations: list[WorkerOp]) -> None:
    outcome = read(body, *operations)
    assert isinstance(outcome, ProtocolError) or len(outcome) == len(operations)


@given(st.lists(st.tuples(ANYTHING, ANYTHING, ANYTHING), max_size=3), st.lists(OPERATIONS, min_size=1, max_size=3))
def test_any_values_are_read_or_refused(replies: list[Any], operations: list[WorkerOp]) -> None:
    outcome = read(encode(replies), *operations)
    assert isinstance(outcome, ProtocolError) or len(outcome) == len(operations)


@given(OPERATIONS, STATUSES, ANYTHING.map(encode) | st.binary(max_size=60))
def test_any_content_is_read_or_refused(operation: WorkerOp, status: int, content: bytes) -> None:
    outcome = read(encode([[1, status, content]]), operation)
    if isinstance(outcome, list):
        assert isinstance(outcome[0].status, ReplyStatus)


@given(OPERATIONS, st.data())
def test_a_legal_reply_with_a_changed_byte_is_read_or_refused(operation: WorkerOp, data: st.DataObject) -> None:
    body = bytearray(encode([[1, 0, GOOD[operation]]]))
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    outcome = read(bytes(body), operation)
    assert isinstance(outcome, ProtocolError) or isinstance(outcome[0].status, ReplyStatus)


@given(st.lists(st.binary(max_size=50), max_size=6), st.integers(1, 7))
def test_frames_come_out_as_they_went_in_however_they_are_cut(bodies: list[bytes], step: int) -> None:
    stream = b"".join(HEADER.pack(len(body)) + body for body in bodies)
    reader, out = FrameReader(), []
    for start in range(0, len(stream), step):
        reader.feed(stream[start : start + step])
        while (body := reader.frame(50)) is not None:
            out.append(body)
    assert out == bodies
    assert len(reader) == 0


@given(st.integers(51, 2**32 - 1))
def test_a_frame_that_is_too_large_is_refused_by_its_header_alone(size: int) -> None:
    reader = FrameReader()
    reader.feed(HEADER.pack(size))
    with pytest.raises(ValueError, match=f"a frame of {size} bytes where 50 are allowed"):
        reader.frame(50)


@given(ANYTHING)
def test_json_is_decoded_as_it_is_or_refused(value: object) -> None:
    try:
        text = msgspec.json.encode(value)
    except (UnicodeEncodeError, TypeError):
        return
    try:
        decoded = decode_json(text, 1 << 20)
    except ValueError as error:
        assert str(error)
    else:
        assert decoded == json.loads(text)


@pytest.mark.parametrize("brackets", [b"[]", b"{}"], ids=["lists", "objects"])
@pytest.mark.parametrize("depth", [DEEPEST, DEEPEST + 1, 10 * DEEPEST, 100_000])
def test_depth_is_counted_exactly_and_texts_do_not_count(brackets: bytes, depth: int) -> None:
    opening = b"[" if brackets == b"[]" else b'{"a[[\\"{": '
    text = opening * (depth - 1) + brackets + brackets[1:] * (depth - 1)
    if depth <= DEEPEST:
        check_json(text, 1 << 20)
    else:
        with pytest.raises(ValueError, match=r"deeper|values in"):
            check_json(text, 1 << 20)


def test_a_text_without_its_last_quote_is_read_once() -> None:
    text = b"[" * (DEEPEST + 1) + b'"' + b'\\"' * (1 << 19)
    began = time.process_time()
    with pytest.raises(ValueError, match="truncated"):
        decode_json(text, 16 << 20)
    assert time.process_time() - began < 10


def test_commas_and_colons_in_a_text_are_no_values() -> None:
    table = '1,2:[3],"4"{}\n' * 60_000
    assert decode_json(msgspec.json.encode({"table": table}), 2 << 20) == {"table": table}


@pytest.mark.parametrize("entry", [b'"a,b",', b'{"a":1},', b'"",'])
def test_values_beside_texts_count(entry: bytes) -> None:
    with pytest.raises(ValueError, match="values in"):
        check_json(b'["' + b"x,y" * 30_000 + b'",' + entry * 100_000 + b"1]", 1 << 20)


def test_flat_json_with_many_brackets_is_legal() -> None:
    assert decode_json(b"[" + b"[1]," * 5_000 + b"[1]]", 1 << 20)


@pytest.mark.parametrize("size", [0, 1 << 15], ids=["short", "long"])
@pytest.mark.parametrize("number", [b"1" * 30, b"-" + b"9" * 25, b"1" * 5000, b"1e999"])
def test_a_number_that_no_state_can_hold_never_comes_out_as_an_integer(size: int, number: bytes) -> None:
    text = b'[%s, "%s"]' % (number, b"x" * size)
    try:
        first, _ = decode_json(text, 1 << 20)  # type: ignore[misc]
    except ValueError:
        return
    assert isinstance(first, float)


HEAVY = {
    "lists in a frame": b"\xdd\x00\xff\xff\xff" + b"\x90" * (1 << 20),
    "maps in a frame": b"\xdd\x00\xff\xff\xff" + b"\x80" * (1 << 20),
    "replies of nothing": encode([[1, 0, b""]] * 200_000),
    "numbers as content": encode([[1, 0, [7] * (1 << 20)]]),
    "lists as JSON": encode([[1, 0, b"[" + b"[]," * 349_000 + b"[]]"]]),
    "objects as JSON": encode([[1, 0, b"[" + b"{}," * 349_000 + b"{}]"]]),
    "floats as JSON": encode([[1, 0, b"[" + b"1e1," * 250_000 + b"1]"]]),
    "texts as JSON": encode([[1, 0, b"[" + b'"ab",' * 200_000 + b"1]"]]),
    "nested JSON": encode([[1, 0, b"[" * 500_000 + b"]" * 500_000]]),
    "one text": encode([[1, 0, b'"' + b"x" * ((1 << 20) - 2) + b'"']]),
    "a long fault": encode([[1, 4, encode_content(["crash", "x" * (1 << 20), None])]]),
}


@pytest.mark.parametrize("name", HEAVY)
def test_a_reply_costs_no_more_than_three_times_a_legal_one(name: str) -> None:
    body = HEAVY[name]
    tracemalloc.start()
    try:
        read(body, WorkerOp.CALL)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert used <= 3 * LIMITS.frame([WorkerOp.CALL]) + (1 << 16)


@pytest.mark.parametrize("rows", [1, 40])
def test_marks_in_the_strings_of_changes_are_no_values(rows: int) -> None:
    text = json.dumps({"note": ", [ { : " * (1_600_000 // 9 // rows)}).encode()
    changes = encode_content([["notes", f"N{number}", text] for number in range(rows)])
    assert text.count(b",") * rows > 3 * 2 * LIMITS.state_bytes // 64, "too few to be refused once"
    body = encode([(1, ReplyStatus.OK, changes)])
    (reply,) = read(body, WorkerOp.CHANGES)
    assert len(reply.value) == rows


def test_many_values_over_many_changes_are_refused() -> None:
    text = json.dumps({"rows": [1, "a, b"] * 4000}).encode()
    body = encode([(1, ReplyStatus.OK, encode_content([["notes", f"N{number}", text] for number in range(30)]))])
    assert "values in the changes of a state" in str(read(body, WorkerOp.CHANGES))


def test_many_changes_cost_no_more_than_three_times_a_legal_state() -> None:
    entries = LIMITS.content(WorkerOp.CHANGES) // 4 - 10
    content = b"\xdd" + entries.to_bytes(4, "big") + b"\x93\xa0\xc0\xc0" * entries
    tracemalloc.start()
    try:
        assert isinstance(read(encode([[1, 0, content]]), WorkerOp.CHANGES), ProtocolError)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert used <= 3 * LIMITS.frame([WorkerOp.CHANGES])


def test_the_request_that_was_answered_wrongly_is_named() -> None:
    body = encode([[1, 0, b"1"], [2, 0, b"{"], [3, 0, b"1"]])
    outcome = read(body, WorkerOp.CALL, WorkerOp.CALL, WorkerOp.CALL)
    assert isinstance(outcome, ProtocolError)
    assert outcome.request == 2


def test_limits_follow_the_settings_and_the_batch() -> None:
    assert LIMITS.content(WorkerOp.CALL) == 1 << 20
    assert LIMITS.frame([WorkerOp.CALL] * 2) > 2 << 20
    assert LIMITS.frame([WorkerOp.START]) < 1 << 15
    assert isinstance(read(encode([[1, 0, b"1"]] * (LARGEST_BATCH + 1)), WorkerOp.CALL), ProtocolError)
