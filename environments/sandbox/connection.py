"""One worker's channel in the parent's event loop: requests of one tick travel in one frame, replies are checked."""

import asyncio
import logging
import os
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from trajsmith.environments.sandbox.serialization import HEADER, PROGRESS, FrameReader, Reply, Request, WorkerOp
from trajsmith.environments.sandbox.zygote_process import ForkedProcess, release, terminate
from trajsmith.records.text import to_one_line

_log = logging.getLogger(__name__)

_BATCH = 256
"""Most requests in one frame."""
_READ = 1 << 18
_IDS = 512
_MASK = (1 << 63) - 1


class WorkerLost(Exception):
    """The worker is gone, or cannot be trusted any more.

    Attributes:
        reason: One line.
        killed: True if it had to be killed for making no progress.
        culprit: True if it was at work on this request when it went.
        recycled: True if trajsmith closed it. No request is to blame, and each of them can be made again elsewhere.
    """

    def __init__(self, reason: str, killed: bool, culprit: bool, recycled: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.killed = killed
        self.culprit = culprit
        self.recycled = recycled


class RequestNotJson(Exception):
    """A request cannot be written: its arguments are no JSON."""


class WorkerConnection:
    """A live worker. Every request is answered or fails with `WorkerLost`."""

    def __init__(self, forked: ForkedProcess, wall_seconds: float, status: Callable[[int], str]) -> None:
        """`status` tells how a process ended, given its number."""
        self.forked = forked
        self.lost: str | None = None
        """Why there is no worker any more; None while there is."""
        self._recycled = False
        self.bases: dict[str, None] = {}
        """Names of the initial states that the worker has, the oldest first."""
        self._wall = wall_seconds
        self._status = status
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader()
        self._out = bytearray()
        self._pending: list[tuple[Request, asyncio.Future[Reply]]] = []
        self._frames: deque[list[tuple[Request, asyncio.Future[Reply]]]] = deque()
        self._watch: asyncio.TimerHandle | None = None
        self._seen_progress = b""
        self._ids: list[int] = []
        self._scheduled = False
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(list[tuple[int, int, Any]]).decode
        self._loop.add_reader(forked.channel.fileno(), self._readable)

    def send(self, operation: WorkerOp, play: int | str, *arguments: Any) -> asyncio.Future[Reply]:
        """Ask; the future gives [id, status, content].

        Raises:
            WorkerLost: The worker is gone already.
        """
        if self.lost is not None:
            raise WorkerLost(self.lost, killed=False, culprit=False, recycled=self._recycled)
        future = self._loop.create_future()
        self._pending.append(([self._next_id(), operation, play, *arguments], future))
        if not self._frames and not self._scheduled:
            self._flush()  # nobody to wait for: what comes next in this tick shares the next frame
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)
        return future

    def send_batch(self, requests: Iterable[tuple[Any, ...]]) -> list[asyncio.Future[Reply]]:
        """Send many requests, each (operation, episode, arguments...), in as few frames as there can be.

        Raises:
            WorkerLost: The worker is gone already.
        """
        if self.lost is not None:
            raise WorkerLost(self.lost, killed=False, culprit=False, recycled=self._recycled)
        batch = [([self._next_id(), *request], self._loop.create_future()) for request in requests]
        self._pending += batch
        self._flush()
        return [future for _, future in batch]

    def send_with_descriptors(
        self, operation: WorkerOp, descriptors: list[int], *arguments: Any
    ) -> asyncio.Future[Reply]:
        """Ask in a frame of its own, with file descriptors."""
        if self.lost is not None:
            raise WorkerLost(self.lost, killed=False, culprit=False, recycled=self._recycled)
        future: asyncio.Future[Reply] = self._loop.create_future()
        request: Request = [self._next_id(), operation, 0, *arguments]
        body = self._encode([request])
        self._frames.append([(request, future)])
        try:
            socket.send_fds(self.forked.channel, [HEADER.pack(len(body)) + body], descriptors)
        except OSError:
            self._fail(None, killed=False)
        if self._watch is None and self.lost is None:
            self._arm()
        return future

    def close(self) -> None:
        """Kill the worker; requests in work fail as `recycled`. Outside of its own loop nobody waits for them."""
        if self._loop.is_closed():
            self.abandon()
        elif self.lost is None:
            self._recycled = True
            self._fail("it was closed", killed=False)

    def abandon(self) -> None:
        """Kill the worker whose event loop has ended."""
        if self.lost is None:
            self._recycled = True
            self.lost = "its event loop ended"
            terminate(self.forked)
            self._status(self.forked.pid)
            release(self.forked)

    # Out

    def _next_id(self) -> int:
        if not self._ids:
            self._ids = [number & _MASK for number in struct.unpack(f"<{_IDS}Q", os.urandom(8 * _IDS))]
        return self._ids.pop()

    def _flush(self) -> None:
        self._scheduled = False
        pending, self._pending = self._pending, []
        if self.lost is not None:
            return
        for start in range(0, len(pending), _BATCH):
            self._write(pending[start : start + _BATCH])
        self._push()
        if self._frames and self._watch is None:
            self._arm()

    def _write(self, batch: list[tuple[Request, asyncio.Future[Reply]]]) -> None:
        try:
            body = self._encode([request for request, _ in batch])
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            if len(batch) == 1:
                batch[0][1].set_exception(RequestNotJson(to_one_line(error)))
                return
            for single in batch:
                self._write([single])
            return
        self._frames.append(batch)
        self._out += HEADER.pack(len(body))
        self._out += body

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
            self._fail(None, killed=False)

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
            self._fail(None, killed=False)
            return
        self._reader.feed(data)
        try:
            while (body := self._reader.frame()) is not None:
                self._resolve(body)
        except ValueError as error:
            self._fail(f"it broke the protocol: {error}", killed=True)
            return
        if len(self._reader) and not self._frames:
            self._fail("it broke the protocol: unrequested bytes", killed=True)

    def _resolve(self, body: bytes) -> None:
        """Hand the replies of one frame to who waits for them.

        Raises:
            ValueError: The frame is not the answer to the oldest one that was sent.
        """
        if not self._frames:
            raise ValueError("an unrequested frame")
        try:
            replies = self._decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(f"a frame that cannot be read ({to_one_line(error, 80)})") from error
        batch = self._frames[0]
        if len(replies) != len(batch) or any(
            reply[0] != request[0] for reply, (request, _) in zip(replies, batch, strict=True)
        ):
            raise ValueError("replies to other requests")
        self._frames.popleft()
        for reply, (_, future) in zip(replies, batch, strict=True):
            if not future.done():
                future.set_result(reply)  # type: ignore[arg-type]
        if not self._frames and self._watch is not None:
            self._watch.cancel()
            self._watch = None

    # The end

    def _arm(self) -> None:
        self._seen_progress = bytes(self.forked.progress)
        self._watch = self._loop.call_later(self._wall, self._check)

    def _check(self) -> None:
        self._watch = None
        if not self._frames:
            return
        if bytes(self.forked.progress) == self._seen_progress:
            self._fail(f"it made no progress for {self._wall:g} s", killed=True)
        else:
            self._arm()

    def _fail(self, reason: str | None, killed: bool) -> None:
        """Make an end; without a reason the process itself says why."""
        if self.lost is not None:
            return
        self.lost = "it is ending"
        self._loop.remove_reader(self.forked.channel.fileno())
        self._loop.remove_writer(self.forked.channel.fileno())
        if self._watch is not None:
            self._watch.cancel()
        current = PROGRESS.unpack(self.forked.progress)[1]
        terminate(self.forked)
        status = self._status(self.forked.pid)
        self.lost = reason or status
        release(self.forked)
        if not self._recycled:
            _log.info("worker %d lost: %s", self.forked.pid, self.lost)
        waiting = [item for batch in self._frames for item in batch] + self._pending
        self._frames.clear()
        self._pending = []
        for request, future in waiting:
            if not future.done():
                culprit = request[0] == current and not self._recycled
                future.set_exception(WorkerLost(self.lost, killed, culprit, self._recycled))
                future.exception()  # who gave up waiting must not be told of it at the end of the loop
