"""What the parent believes of a worker's replies: sizes are checked first, then types, then values.

A worker runs foreign code, so every byte that it sends may be chosen by an attacker. A reply that breaks a rule raises
`ProtocolError`, and its worker is killed. Nothing is decoded that is larger than the operation allows, no decoder
makes an object whose type is not the declared one, and JSON is refused whose objects would take much more memory than
its text, or that nests deeper than code that walks through it can go.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args

import msgspec
import orjson
from msgspec import Meta

from trajsmith.environments.sandbox.serialization import RawReply, ReplyStatus, Request, WorkerOp
from trajsmith.records import FaultKind, JsonValue, to_one_line

ENVELOPE: Final = 32
"""Bytes around the content of one reply: id, status, and the lengths of MessagePack."""
LARGEST_BATCH: Final = 256
"""Requests in one frame."""
DEEPEST: Final = 100
"""Levels of lists and objects in JSON of a worker."""
SPEC_BYTES: Final = 8 << 20
"""Largest description of an environment."""
TEXT_BYTES: Final = 16 << 10
"""Largest content that has no limit of its own: faults, refusals, notes on shared objects."""
LONGEST_TEXT: Final = 2000
"""Characters of a fault."""
LONGEST_NAME: Final = 256
MOST_TEXTS: Final = 200
"""Entries of a list of texts, such as the notes of a loader."""
_VALUE_BYTES: Final = 64
"""Memory of a small Python object: what each value of a JSON text costs at least."""
_GROWTH: Final = 3
"""How many times the largest legal text its values may take in memory."""
_CHANGE_BYTES: Final = 192
"""Memory of one change of a state, beside its texts."""
_LARGEST_PID: Final = 1 << 22
_SHORT: Final = 16 << 10
"""Bytes of a text for which the memory of its decoder does not matter."""
_MANY_DIGITS = re.compile(rb"[0-9]{19}")
_QUOTED = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
"""A string, also one that does not end: otherwise each quote of it would be tried as the start of another."""
_BEFORE_VALUES = (b"[", b"{", b",", b":")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")

Kind = Literal["crash", "timeout", "limit", "output_schema", "server_exited", "protocol", "start", "state"]
"""Faults that a worker may name; the others are for the parent to say."""
WORKER_FAULTS: Final = frozenset(get_args(Kind))
assert frozenset(get_args(FaultKind)) - {"quarantine", "recycled"} == WORKER_FAULTS

Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
Texts = Annotated[list[Text], Meta(max_length=MOST_TEXTS)]
Fault = tuple[Kind, Text, Name | None]
"""Kind, message, tool."""
_RESULTS = {
    int(status): status
    for status in (
        ReplyStatus.OK, ReplyStatus.WROTE, ReplyStatus.REFUSED, ReplyStatus.INVALID_ARGUMENTS, ReplyStatus.UNKNOWN_TOOL
    )
}  # fmt: skip
"""Statuses of a call that was answered. Plain numbers compare and hash faster than members, once for every reply."""
_CALL, _FAULT = int(WorkerOp.CALL), int(ReplyStatus.FAULT)
_FILES = frozenset({WorkerOp.LOAD, WorkerOp.STATES})
"""Operations that may find the environment's files wrong."""


class ProtocolError(ValueError):
    """A worker sent what no worker may send.

    Attributes:
        request: Id of the request that was answered wrongly, or None if that cannot be told.
    """

    def __init__(self, message: str, request: int | None = None) -> None:
        super().__init__(message)
        self.request = request


class Reply(NamedTuple):
    """Checked reply to one request."""

    status: ReplyStatus
    content: bytes
    """As it was sent: equal replies have equal bytes."""
    value: Any
    """Of the type that the operation has; see `ReplyCodec`."""


@dataclass(frozen=True)
class SizeLimits:
    """Largest contents that the settings of an environment allow, in bytes."""

    result_bytes: int
    state_bytes: int

    @cached_property
    def contents(self) -> tuple[int, ...]:
        """Largest content of a reply, by the number of the operation."""
        return tuple(map(self._find_content, sorted(WorkerOp)))

    @cached_property
    def frames(self) -> tuple[int, ...]:
        """Largest frame that answers one request, by the number of the operation."""
        return tuple(self.frame([operation]) for operation in sorted(WorkerOp))

    def content(self, operation: WorkerOp) -> int:
        """Return the largest content of a reply to an operation."""
        return self.contents[operation]

    def _find_content(self, operation: WorkerOp) -> int:
        if operation == WorkerOp.CALL:
            return max(self.result_bytes, TEXT_BYTES)
        if operation in (WorkerOp.CHANGES, WorkerOp.STATES):
            return max(2 * self.state_bytes, TEXT_BYTES)
        return SPEC_BYTES if operation == WorkerOp.LOAD else TEXT_BYTES

    def frame(self, operations: Sequence[WorkerOp]) -> int:
        """Return the largest frame that answers these operations."""
        return ENVELOPE * (1 + len(operations)) + sum(map(self.contents.__getitem__, operations))


class ReplyCodec:
    """Decodes the replies of the workers of one environment.

    Values by operation: CALL gives the decoded JSON, CHANGES a list of (part, key, JSON), STATES a list of objects,
    LOAD (JSON of the spec, notes), PREPARE a text or None, END a list of texts, LOOK two of them, FORK a process id,
    all others None.
    A fault gives (kind, message, tool) and wrong files a text, whatever the operation.
    """

    def __init__(self, limits: SizeLimits) -> None:
        self.limits = limits
        self._contents = limits.contents
        self._brief = min(_SHORT, self._contents[_CALL], _GROWTH * self._contents[_CALL] // _VALUE_BYTES)
        """Bytes of a result that is within all limits, but for its depth, whatever is in it."""
        most_changes = limits.content(WorkerOp.CHANGES) * _GROWTH // _CHANGE_BYTES
        changes = Annotated[list[tuple[str, str | None, bytes | None]], Meta(max_length=most_changes)]
        self._types: dict[WorkerOp, Callable[[bytes], Any]] = {
            WorkerOp.CHANGES: _decoder(changes),
            WorkerOp.LOAD: _decoder(tuple[bytes, Texts]),
            WorkerOp.PREPARE: _decoder(Text | None),
            WorkerOp.END: _decoder(Texts),
            WorkerOp.LOOK: _decoder(tuple[Texts, Texts]),
            WorkerOp.FORK: _decoder(Annotated[int, Meta(gt=1, le=_LARGEST_PID)]),
        }

    def decode(self, body: bytes, requests: Sequence[Request]) -> list[Reply]:
        """Return the replies of a frame, one for each request.

        Raises:
            ProtocolError: The frame is no answer to these requests.
        """
        try:
            frame: list[RawReply] = _decode_frame(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ProtocolError(f"a frame that cannot be read ({to_one_line(error, 80)})") from error
        if len(frame) != len(requests):
            raise ProtocolError(f"{len(frame)} replies to {len(requests)} requests")
        replies, reply, brief = [], self._reply, self._brief
        for (number, status, content), request in zip(frame, requests, strict=True):
            if number != request[0]:
                raise ProtocolError("a reply to another request")
            try:
                if request[1] == _CALL and status in _RESULTS and len(content) <= brief and not _may_be_deep(content):
                    replies.append(Reply(_RESULTS[status], content, orjson.loads(content)))
                else:
                    replies.append(reply(request[1], status, content))
            except (ValueError, RecursionError) as error:
                raise ProtocolError(to_one_line(error, 120), request[0]) from error
        return replies

    def _reply(self, operation: WorkerOp, status: int, content: bytes) -> Reply:
        if status == _FAULT:
            return Reply(ReplyStatus.FAULT, content, _read_fault(content))
        limit = self._contents[operation]
        if len(content) > limit:
            raise ValueError(f"{len(content)} bytes where {limit} are allowed")
        if operation == _CALL:
            result = _RESULTS.get(status)
            if result is None:
                raise ValueError(f"status {status} of a call")
            return Reply(result, content, decode_json(content, limit))
        if status == ReplyStatus.INPUT and operation in _FILES:
            return Reply(ReplyStatus.INPUT, content, _printable(_decode_text(content)))
        if status != ReplyStatus.OK:
            raise ValueError(f"status {status} of {WorkerOp(operation).name}")
        return Reply(ReplyStatus.OK, content, self._value(operation, content, limit))

    def _value(self, operation: WorkerOp, content: bytes, limit: int) -> Any:
        if operation == WorkerOp.STATES:
            states = decode_json(content, limit)
            if not (isinstance(states, list) and all(isinstance(state, dict) for state in states)):
                raise ValueError("initial states that are no list of objects")
            return states
        decode = self._types.get(operation)
        if decode is None:
            if content:
                raise ValueError(f"{WorkerOp(operation).name} has no content")
            return None
        value = decode(content)
        if operation == WorkerOp.CHANGES:
            _check_changes(value, limit)
        elif operation == WorkerOp.LOAD:
            check_json(value[0], limit)
        return value


def encode_content(value: object) -> bytes:
    """Encode the content of a reply that is no JSON; done in workers."""
    return _encode(value)


def decode_json(text: bytes, limit: int) -> JsonValue:
    """Decode JSON of a worker.

    Args:
        limit: Bytes that the largest legal text has.

    Raises:
        ValueError: It is no JSON, has too many values or too large a number, or nests too deeply.
    """
    check_json(text, limit)
    value: JsonValue
    if len(text) <= _SHORT:
        value = orjson.loads(text)
        return value
    value = _decode_long(text)  # orjson takes twelve times the memory of the text meanwhile
    if _MANY_DIGITS.search(text):
        _check_numbers(value)
    return value


def check_json(text: bytes, limit: int) -> None:
    """Check a JSON text before it is decoded: the memory that its values will take, and how deep they nest.

    Raises:
        ValueError: It has too many values for the limit, or nests too deeply.
    """
    most = _GROWTH * limit // _VALUE_BYTES
    if len(text) > most:
        values = _count_values(text, most)
        if values > most:
            raise ValueError(f"about {values} values in {len(text)} bytes of JSON")
    if _may_be_deep(text) and _is_deeper(text):
        raise ValueError(f"JSON that nests deeper than {DEEPEST} levels")


def _count_values(text: bytes, most: int, exact: bool = False) -> int:
    """Count the values of a JSON text, keys among them.

    Not `exact`, marks inside strings count as well, as long as `most` is not passed. Beyond `most`, all that is said is
    that there are more.
    """
    values, enough = 1 + sum(map(text.count, _BEFORE_VALUES)), 0 if exact else most
    if values > enough:
        for string in islice(_QUOTED.finditer(text), most + 1):  # each is a value, or the key of one
            start, end = string.span()
            values -= sum(text.count(mark, start, end) for mark in _BEFORE_VALUES)
            if values <= enough:
                break
    return values


def _check_numbers(value: JsonValue) -> None:
    """Refuse integers that other JSON libraries, and the digests of states, cannot write."""
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, dict):
            rest += item.values()
        elif isinstance(item, list):
            rest += item
        elif isinstance(item, int) and not -(2**63) <= item < 2**64:
            raise ValueError(f"a number of {item.bit_length()} bits")


def _may_be_deep(text: bytes) -> bool:
    """Return whether a text has brackets enough to nest too deeply."""
    return len(text) > DEEPEST and text.count(b"[") + text.count(b"{") > DEEPEST


def _is_deeper(text: bytes) -> bool:
    """Return whether brackets nest deeper than `DEEPEST`; each turn takes the innermost ones away."""
    brackets = _QUOTED.sub(b"", text).translate(_ONE_KIND, _NO_BRACKETS)
    for _ in range(DEEPEST):
        if not brackets:
            return False
        shorter = brackets.replace(b"[]", b"")
        if len(shorter) == len(brackets):
            return False  # no JSON: the decoder says so
        brackets = shorter
    return bool(brackets)


def _check_changes(changes: list[tuple[str, str | None, bytes | None]], limit: int) -> None:
    texts = [text for _, _, text in changes if text is not None]
    for text in texts:
        check_json(text, limit)
    left = most = _GROWTH * limit // _VALUE_BYTES
    if sum(_count_values(text, len(text)) for text in texts) <= most:
        return
    for text in texts:
        left -= _count_values(text, left, exact=True)
        if left < 0:
            raise ValueError(f"more than {most} values in the changes of a state")


def _read_fault(content: bytes) -> Fault:
    if len(content) > TEXT_BYTES:
        raise ValueError(f"a fault of {len(content)} bytes")
    kind, message, tool = _decode_fault(content)
    return kind, _printable(message), None if tool is None else _printable(tool)


def _printable(text: str) -> str:
    """Return a text without control characters, which terminals obey."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "\ufffd" for char in text)


def _decoder(kind: Any) -> Callable[[bytes], Any]:
    return msgspec.msgpack.Decoder(kind).decode


_encode = msgspec.msgpack.Encoder().encode
_decode_long = msgspec.json.Decoder().decode
_decode_frame = _decoder(Annotated[list[RawReply], Meta(max_length=LARGEST_BATCH)])
_decode_fault: Callable[[bytes], Fault] = _decoder(Fault)
_decode_text: Callable[[bytes], str] = _decoder(Text)
