"""The parent's side of forking: who may fork, and who gets the channel of a play.

A worker that has loaded foreign code forks a process for each play, so that a play costs a fork and no loading. That
code may have changed everything in the worker, so the worker is never trusted with a play's channel. It makes two
system calls on which the kernel asks the parent (`seccomp_unotify(2)`):

* `clone`: allowed once for each request to fork, and to nobody but the worker;
* `pidfd_getfd`: the new process asks for its channel, and the kernel puts it into that very process, as descriptor 3.

A process that has neither channel nor memory in common with another play can tell it nothing.
"""

import asyncio
import errno
import fcntl
import os
import select
import signal
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

from trajsmith.environments.sandbox.codec import Reply
from trajsmith.environments.sandbox.connection import WorkerConnection, WorkerLost
from trajsmith.environments.sandbox.serialization import CHANNEL, HELLO, FrameReader, ReplyStatus, WorkerOp
from trajsmith.environments.sandbox.syscalls import NUMBERS, machine
from trajsmith.environments.sandbox.zygote_process import (
    ForkedProcess,
    ZygoteProcess,
    open_channel,
    release,
    terminate,
)
from trajsmith.records import RunError

_RECEIVE, _RESPOND, _ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40182103
"""ioctls of a seccomp listener; the same numbers on x86_64 and arm64."""
_NOTIFICATION = struct.Struct("=QIIi")
"""Id, process, flags, system call; the rest of the 80 bytes is not needed."""
_NOTIFICATION_BYTES: Final = 80
_RESPONSE = struct.Struct("=QqiI")
"""Id, value, negative errno, flags."""
_DESCRIPTOR = struct.Struct("=QIIII")
"""Id, flags, descriptor here, descriptor there, its flags."""
_CONTINUE: Final = 1
_AT_THIS_NUMBER: Final = 1
_STRIKES: Final = 16
"""Calls that nobody asked for, after which their process is killed."""
_LONGEST_HELLO: Final = 4096


class ForkRefused(Exception):
    """The worker could not fork: too many processes, or no memory."""


async def await_lock(forked: ForkedProcess, seconds: float) -> int | None:
    """Wait until a worker is locked; no foreign code runs before. Returns its listener, if it forks its plays.

    Raises:
        RunError: A layer of the sandbox is missing here, or the worker did not come up.
    """
    channel, reader, listener = forked.channel, FrameReader(), None
    try:
        async with asyncio.timeout(seconds):
            while (frame := reader.frame(_LONGEST_HELLO)) != HELLO:
                if frame:
                    raise RunError(f"sandbox: {frame.decode()}; `trajsmith env probe` says what works here")
                if frame is None:
                    await _wait_readable(channel)
                    data, descriptors, _, _ = socket.recv_fds(channel, _LONGEST_HELLO, 1)
                    if not data:
                        raise RunError("sandbox: a worker ended before it was locked; see `trajsmith env probe`")
                    reader.feed(data)
                    listener = descriptors[0] if descriptors else listener
    except BaseException as error:
        if listener is not None:
            os.close(listener)
        terminate(forked)
        release(forked)
        if isinstance(error, TimeoutError):
            raise RunError(f"sandbox: a worker was not locked within {seconds:g} s: the machine is too busy") from error
        raise
    return listener


async def _wait_readable(channel: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(channel.fileno(), readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(channel.fileno())


class PlayForker:
    """Forks processes for plays from a worker, and decides on the calls by which they come to life."""

    def __init__(
        self, connection: WorkerConnection, zygote: ZygoteProcess, listener: int | None, wall_seconds: float
    ) -> None:
        """Listen to a worker. Without a listener the channel goes through the worker: only mode `unsafe` does that."""
        self._connection = connection
        self._zygote = zygote
        self._listener = listener
        self._wall = wall_seconds
        self._loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()
        self._plays: dict[int, WorkerConnection] = {}
        self._strikes: dict[int, int] = {}
        self._may_fork = False
        self._strays = False
        """Whether the worker may have forked a process that nobody knows."""
        self._newborn: asyncio.Future[ForkedProcess] | None = None
        connection.on_end(self._end)
        if listener is not None:
            self._calls = {NUMBERS[machine()][name]: name for name in ("clone", "pidfd_getfd")}
            self._pid = read_pid(connection.forked)
            self._poll = select.poll()
            self._poll.register(listener, select.POLLIN)
            self._loop.add_reader(listener, self._decide)

    async def fork(self) -> tuple[ForkedProcess, float]:
        """Return a new process with its channel, and the moment of the loop at which the worker was asked for it.

        Raises:
            WorkerLost: The worker is gone, or forks nothing.
            ForkRefused: It cannot have one more process.
        """
        async with self._lock:
            asked = self._loop.time()
            if self._listener is None:
                return await self._fork_through_worker(), asked
            self._end_strays()
            newborn: asyncio.Future[ForkedProcess] = self._loop.create_future()
            self._newborn = newborn
            self._may_fork = True
            late = self._loop.call_later(self._wall, self._give_up, newborn)
            try:
                answer = self._connection.send(WorkerOp.FORK, 0)
                answer.add_done_callback(lambda answer: _note_refusal(answer, newborn))
                return await newborn, asked
            except BaseException as error:
                self._strays = not self._may_fork
                if newborn.done() and not newborn.cancelled() and newborn.exception() is None:
                    terminate(newborn.result())
                    release(newborn.result())
                if isinstance(error, ForkRefused):
                    self._end_strays()
                raise
            finally:
                late.cancel()
                self._may_fork, self._newborn = False, None

    def watch(self, connection: WorkerConnection) -> None:
        """Know a play, which is killed if it makes calls that are the worker's, until it ends."""
        pid = connection.forked.pid
        self._plays[pid] = connection
        connection.on_end(lambda: self._plays.pop(pid, None))

    async def _fork_through_worker(self) -> ForkedProcess:
        channel, theirs = open_channel()
        try:
            reply = await self._connection.send_with_descriptors(WorkerOp.FORK, [theirs.fileno()])
            pid = _read_pid(reply)
        except BaseException:
            channel.close()
            raise
        finally:
            theirs.close()
        forked = ForkedProcess(channel, None, pid, self._zygote.pidfd(pid))
        forked.pid = read_pid(forked)
        return forked

    def _end_strays(self) -> None:
        """End what a worker forked when it said that it cannot, or whom nobody waited for."""
        if not self._strays or self._connection.lost is not None:
            return
        self._strays = False
        try:
            children = Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split()
        except OSError:  # a kernel without this list: its whole group ends
            self._connection.kill("it forked a process that is no play", "protocol")
            return
        for pid in map(int, children):
            if pid not in self._plays:
                _kill_child(pid, self._pid)

    def _give_up(self, newborn: "asyncio.Future[ForkedProcess]") -> None:
        """End the worker that does not fork the play that it was asked for."""
        if not newborn.done():
            newborn.set_exception(WorkerLost("it forked no play", "timeout", culprit=True))
            self._connection.kill(f"it forked no play within {self._wall:g} s", "timeout")

    def _end(self) -> None:
        """The worker is gone, and the kernel ends its plays."""
        if self._listener is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._listener)
            os.close(self._listener)
            self._listener = None
        if self._newborn is not None and not self._newborn.done():
            main = self._connection
            self._newborn.set_exception(WorkerLost(str(main.lost), main.loss, culprit=False, recycled=main.recycled))

    # Decisions

    def _decide(self) -> None:
        """Answer one call; it waits in the kernel until then."""
        assert self._listener is not None
        if not any(event & select.POLLIN for _, event in self._poll.poll(0)):
            self._loop.remove_reader(self._listener)  # all processes of the filter are gone
            return
        text = bytearray(_NOTIFICATION_BYTES)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, text)
        except OSError:  # it was killed meanwhile
            return
        number, pid, _, call = _NOTIFICATION.unpack_from(text)
        name, newborn = self._calls.get(call), self._newborn
        if name == "clone" and pid == self._pid and self._may_fork:
            self._may_fork = False
            self._respond(number, flags=_CONTINUE)
        elif name == "pidfd_getfd" and pid != self._pid and pid not in self._plays and newborn and not newborn.done():
            self._hand_over(number, pid, newborn)
        else:
            self._respond(number, error=errno.EPERM)
            self._strike(pid)

    def _hand_over(self, number: int, pid: int, newborn: "asyncio.Future[ForkedProcess]") -> None:
        """Put the channel of the play into the new process."""
        assert self._listener is not None
        ours, theirs = open_channel()
        forked = ForkedProcess(ours, None, pid, None)
        try:
            forked.pidfd = os.pidfd_open(pid)
            order = _DESCRIPTOR.pack(number, _AT_THIS_NUMBER, theirs.fileno(), CHANNEL, 0)
            fcntl.ioctl(self._listener, _ADD_DESCRIPTOR, order)  # fails if it is gone, and its number another's by now
        except OSError:  # it is gone: nobody will ever use the channel
            release(forked)
            return
        finally:
            theirs.close()
        self._respond(number, value=CHANNEL)
        newborn.set_result(forked)

    def _respond(self, number: int, value: int = 0, error: int = 0, flags: int = 0) -> None:
        assert self._listener is not None
        try:
            fcntl.ioctl(self._listener, _RESPOND, _RESPONSE.pack(number, value, -error, flags))
        except FileNotFoundError:  # it was killed meanwhile
            return

    def _strike(self, pid: int) -> None:
        self._strikes[pid] = self._strikes.get(pid, 0) + 1
        if self._strikes[pid] >= _STRIKES:
            del self._strikes[pid]
            self._plays.get(pid, self._connection).kill("it made system calls that are for its parent", "protocol")


def read_pid(forked: ForkedProcess) -> int:
    """Return the number that a process has here, whatever namespace it is in.

    Raises:
        RunError: The process is gone.
    """
    if forked.pidfd is None:
        return forked.pid
    for line in Path(f"/proc/self/fdinfo/{forked.pidfd}").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "Pid" and int(value) > 0:
            return int(value)
    raise RunError("the sandbox lost a worker while it started")


def _kill_child(pid: int, parent: int) -> None:
    """Kill a process, if it is the child of another still and its number nobody else's by now."""
    with suppress(OSError):
        descriptor = os.pidfd_open(pid)
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
            if int(stat.rpartition(")")[2].split()[1]) == parent:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


def _note_refusal(answer: "asyncio.Future[Reply]", newborn: "asyncio.Future[ForkedProcess]") -> None:
    """Tell who waits for a process that the worker cannot fork it."""
    if answer.cancelled() or newborn.done():
        return
    try:
        _read_pid(answer.result())
    except (ForkRefused, WorkerLost) as error:
        newborn.set_exception(error)


def _read_pid(reply: Reply) -> int:
    if reply.status != ReplyStatus.OK:
        raise ForkRefused(reply.value[1])
    pid: int = reply.value
    return pid
