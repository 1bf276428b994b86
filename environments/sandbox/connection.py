"""One worker's channel in the parent's event loop: requests of one tick travel in one frame, replies are checked.

Nothing here depends on what the worker does: a frame that is too large, of a wrong type, unrequested or late ends it.
"""

import asyncio
import logging
import os
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from trajsmith.environments.sandbox.codec import LARGEST_BATCH, ProtocolError, Reply, ReplyCodec
from trajsmith.environments.sandbox.serialization import HEADER, PROGRESS, FrameReader, Request, WorkerOp
from trajsmith.environments.sandbox.zygote_process import ForkedProcess, release, terminate
from trajsmith.records import to_one_line

_log = logging.getLogger(__name__)

_READ = 1 << 16
"""Bytes of a read: beyond twice as many, `malloc` asks the kernel for each buffer, and gives it back."""
_IDS = 32
_MASK = (1 << 63) - 1
_LOADS = tuple(operation in (WorkerOp.LOAD, WorkerOp.STATES) for operation in sorted(WorkerOp))
"""Whether an operation runs the code of a whole file, or makes all initial states, by its number."""
LossKind = Literal["crash", "timeout", "protocol", "limit"]
"""Faults over which a worker is lost."""


class WorkerLost(Exception):
    """The worker is gone, or cannot be trusted any more.

    Attributes:
        reason: One line.
        kind: What kind of fault it was.
        culprit: True if it was at work on this request when it went, or served the play of this request alone.
        recycled: True if trajsmith closed it. No request is to blame, and each of them can be made again elsewhere.
    """

    def __init__(self, reason: str, kind: LossKind, culprit: bool, recycled: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind: LossKind = kind
        self.culprit = culprit
        self.recycled = recycled


class RequestNotJson(Exception):
    """A request cannot be written: its arguments are no JSON."""


_Waiting = tuple[Request, "asyncio.Future[Reply]"]


class WorkerConnection:
    """A live worker. Every request is answered or fails with `WorkerLost`."""

    def __init__(
        self,
        forked: ForkedProcess,
        codec: ReplyCodec,
        wall_seconds: float,
        call_seconds: float,
        load_seconds: float,
        status: Callable[[int], str],
        since: float | None = None,
    ) -> None:
        """Listen to a worker that has just been forked.

        Args:
            forked: The process. Where it has memory for its progress it serves many plays, and answers frames of many
                requests; without it, one request at a time.
            codec: What its replies may be.
            wall_seconds: Seconds until a frame of one request must be answered.
            call_seconds: Seconds that each further request of a frame adds to that.
            load_seconds: Seconds that loading, and making initial states, add to that.
            status: Tells how a process ended, given its number.
            since: Moment of the loop from which the time of the first requests counts; now by default.
        """
        self.forked = forked
        self.lost: str | None = None
        """Why there is no worker any more; None while there is."""
        self.loss: LossKind = "crash"
        """What kind of fault that was."""
        self._recycled = False
        self.worker: WorkerConnection | None = None
        """The worker that the process of a play was forked from."""
        self.bases: dict[str, None] = {}
        """Names of the initial states that the worker has, the oldest first."""
        self._codec = codec
        self._wall = wall_seconds
        self._call = call_seconds
        self._load = load_seconds
        self._batch = LARGEST_BATCH if forked.progress is not None else 1
        self._status = status
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader()
        self._largest = 0
        """Bytes that the reply to the oldest frame may have."""
        self._out = bytearray()
        self._pending: list[_Waiting] = []
        self._frames: deque[list[_Waiting]] = deque()
        self._watch: asyncio.TimerHandle | None = None
        self._quiet = wall_seconds
        """Seconds that may pass without any progress."""
        self._deadline = 0.0
        """When the oldest frame must be answered, whatever the worker says of its progress."""
        self._since = since
        """When the process of one play got the oldest of the requests that wait one after another."""
        self._answered = 0
        """Frames that it has answered since."""
        self._due = 0.0
        """When the next look at it is due."""
        self._seen_progress = b""
        self._ids: list[int] = []
        self._scheduled = False
        self._end_callbacks: list[Callable[[], object]] = []
        self._encode = msgspec.msgpack.Encoder().encode
        self._loop.add_reader(forked.channel.fileno(), self._readable)

    @property
    def recycled(self) -> bool:
        """Return whether trajsmith closed it."""
        return self._recycled

    def on_end(self, callback: Callable[[], object]) -> None:
        """Have a function called once when the worker is gone, before those who wait for it are told."""
        self._end_callbacks.append(callback)

    def send(self, operation: WorkerOp, play: int | str, *arguments: Any) -> "asyncio.Future[Reply]":
        """Send a request; the future gives its checked reply.

        Raises:
            WorkerLost: The worker is gone already.
        """
        self._require_live()
        future: asyncio.Future[Reply] = self._loop.create_future()
        self._pending.append(([self._next_id(), operation, play, *arguments], future))
        if not self._frames and not self._scheduled:
            self._flush()  # nobody to wait for: what comes next in this tick shares the next frame
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)
        return future

    def send_batch(self, requests: Iterable[tuple[Any, ...]]) -> "list[asyncio.Future[Reply]]":
        """Send many requests, each (operation, episode, arguments...), in as few frames as there can be.

        Raises:
            WorkerLost: The worker is gone already.
        """
        self._require_live()
        batch: list[_Waiting] = [([self._next_id(), *request], self._loop.create_future()) for request in requests]
        self._pending += batch
        self._flush()
        return [future for _, future in batch]

    def send_with_descriptors(
        self, operation: WorkerOp, descriptors: list[int], *arguments: Any
    ) -> "asyncio.Future[Reply]":
        """Send a request in a frame of its own, with file descriptors."""
        self._require_live()
        future: asyncio.Future[Reply] = self._loop.create_future()
        request: Request = [self._next_id(), operation, 0, *arguments]
        body = self._encode([request])
        self._append([(request, future)])
        try:
            socket.send_fds(self.forked.channel, [HEADER.pack(len(body)) + body], descriptors)
        except OSError:
            self._fail(None, "crash")
        return future

    def close(self) -> None:
        """Kill the worker; requests in work fail as `recycled`. Outside of its own loop nobody waits for them."""
        if self._loop.is_closed():
            self.abandon()
        elif self.lost is None:
            self._recycled = True
            self._fail("it was closed", "crash")

    def abandon(self) -> None:
        """Kill the worker whose event loop has ended."""
        if self.lost is None:
            self._recycled = True
            self.lost = "its event loop ended"
            terminate(self.forked)
            self._status(self.forked.pid)
            release(self.forked)
            self._call_back()

    def kill(self, reason: str, kind: LossKind) -> None:
        """Kill the worker for something that it did beside its replies."""
        self._fail(reason, kind)

    # Out

    def _require_live(self) -> None:
        if self.lost is not None:
            raise WorkerLost(self.lost, "crash", culprit=False, recycled=self._recycled)

    def _next_id(self) -> int:
        if not self._ids:
            self._ids = [number & _MASK for number in struct.unpack(f"<{_IDS}Q", os.urandom(8 * _IDS))]
        return self._ids.pop()

    def _flush(self) -> None:
        self._scheduled = False
        pending, self._pending = self._pending, []
        if self.lost is not None:
            return
        if len(pending) <= self._batch:
            self._write(pending)
        else:
            for start in range(0, len(pending), self._batch):
                self._write(pending[start : start + self._batch])
        self._push()

    def _write(self, batch: list[_Waiting]) -> None:
        try:
            body = self._encode([request for request, _ in batch])
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            if len(batch) == 1:
                batch[0][1].set_exception(RequestNotJson(to_one_line(error)))
                return
            for single in batch:
                self._write([single])
            return
        self._append(batch)
        self._out += HEADER.pack(len(body))
        self._out += body

    def _append(self, batch: list[_Waiting]) -> None:
        self._frames.append(batch)
        if len(self._frames) == 1:
            self._expect()

    def _push(self) -> None:
        """Write as much as the socket takes; the rest when it takes more."""
        channel = self.forked.channel
        try:
            while self._out:
                sent = channel.send(self._out)
                del self._out[:sent]
        except BlockingIOError:
            self._loop.add_writer(channel.fileno(), self._writable)
        except OSError:
            self._fail(None, "crash")

    def _writable(self) -> None:
        self._loop.remove_writer(self.forked.channel.fileno())
        self._push()

    # In

    def _readable(self) -> None:
        try:
            data = self.forked.channel.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._fail(None, "crash")
            return
        self._reader.feed(data)
        try:
            while self._frames and (body := self._reader.frame(self._largest)) is not None:
                self._resolve(body)
        except ProtocolError as error:
            self._fail(f"it broke the protocol: {error}", "protocol", error.request)
        except ValueError as error:
            self._fail(f"it broke the protocol: {error}", "protocol")
        else:
            if len(self._reader) and not self._frames and self.lost is None:
                self._fail("it broke the protocol: unrequested bytes", "protocol")

    def _resolve(self, body: bytes) -> None:
        """Hand the replies of one frame to who waits for them.

        Raises:
            ProtocolError: The frame is not the answer to the oldest one that was sent.
        """
        batch = self._frames[0]
        replies = self._codec.decode(body, [request for request, _ in batch])
        self._frames.popleft()
        for reply, (_, future) in zip(replies, batch, strict=True):
            if not future.done():
                future.set_result(reply)
        self._answered += 1
        self._expect()

    # The end

    def _expect(self) -> None:
        """Give the oldest frame its size and its time.

        Requests that wait for each other in the process of a play share their time, as those of one frame do: each may
        be in time, and all of them late.
        """
        if not self._frames:
            self._since = None
            return
        batch = self._frames[0]
        if len(batch) == 1:
            operation = batch[0][0][1]
            self._largest, loads = self._codec.limits.frames[operation], _LOADS[operation]
        else:
            operations = [request[1] for request, _ in batch]
            self._largest, loads = self._codec.limits.frame(operations), any(map(_LOADS.__getitem__, operations))
        self._quiet = self._wall + self._load if loads else self._wall
        now = self._loop.time()
        further = len(batch) - 1
        if self.forked.progress is None:
            if self._since is None:
                self._since, self._answered = now, 0
            further += self._answered
        self._deadline = (self._since or now) + self._quiet + self._call * further
        self._arm(now)

    def _arm(self, now: float) -> None:
        """Look at it when it is late. A timer that is set for an earlier moment stays: most answers come before it."""
        if self.forked.progress is not None:
            self._seen_progress = bytes(self.forked.progress)
        self._due = min(now + self._quiet, self._deadline)
        if self._watch is not None and self._watch.when() > self._due:
            self._watch.cancel()
            self._watch = None
        if self._watch is None:
            self._watch = self._loop.call_at(self._due, self._check)

    def _check(self) -> None:
        """End the worker that is late; one with many requests may go on while it makes progress, until the deadline."""
        self._watch = None
        if not self._frames or self.lost is not None:
            return
        progress, now = self.forked.progress, self._loop.time()
        if now < self._due:
            self._watch = self._loop.call_at(self._due, self._check)
        elif progress is None or bytes(progress) == self._seen_progress or now >= self._deadline:
            self._fail(f"it gave no answer within {self._quiet:g} s", "timeout")
        else:
            self._arm(now)

    def _fail(self, reason: str | None, kind: LossKind, culprit: int | None = None) -> None:
        """Make an end; without a reason the process itself says why."""
        if self.lost is not None:
            return
        self.lost, self.loss = "it is ending", kind
        self._loop.remove_reader(self.forked.channel.fileno())
        self._loop.remove_writer(self.forked.channel.fileno())
        if self._watch is not None:
            self._watch.cancel()
        if culprit is None:
            culprit = self._find_culprit()
        terminate(self.forked)
        status = self._status(self.forked.pid)
        self.lost = reason or status
        release(self.forked)
        if not self._recycled:
            _log.info("worker %d lost: %s", self.forked.pid, self.lost)
        self._call_back()
        waiting = [item for batch in self._frames for item in batch] + self._pending
        self._frames.clear()
        self._pending = []
        for request, future in waiting:
            if not future.done():
                blamed = (self.forked.progress is None or request[0] == culprit) and not self._recycled
                future.set_exception(WorkerLost(self.lost, kind, blamed, self._recycled))
                future.exception()  # who gave up waiting must not be told of it at the end of the loop

    def _call_back(self) -> None:
        callbacks, self._end_callbacks = self._end_callbacks, []
        for callback in callbacks:
            callback()

    def _find_culprit(self) -> int | None:
        """Return the id of the request that a worker of many plays was at work on."""
        if self.forked.progress is None:
            return None
        number: int = PROGRESS.unpack(self.forked.progress)[1]
        return number
