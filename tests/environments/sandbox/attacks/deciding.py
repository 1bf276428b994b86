"""A parent for a forker of the tests: decides on the calls of one fork and one channel, then refuses all others."""

import errno
import fcntl
import os
import socket
from collections.abc import Callable

from trajsmith.environments.sandbox import forking, lockdown, seccomp
from trajsmith.environments.sandbox.syscalls import NUMBERS, machine


def start_decider() -> Callable[[int], None]:
    """Start a process that decides, and return what `lockdown.lock_worker` wants. The channel is its descriptor 3."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            lockdown.arm_parent_death()
            _decide(socket.recv_fds(theirs, 1, 1)[1][0])
        finally:
            os._exit(0)
    theirs.close()

    def announce(listener: int) -> None:
        socket.send_fds(ours, [b"x"], [listener])
        ours.close()

    return announce


def _decide(listener: int) -> None:
    clone = NUMBERS[machine()]["clone"]
    left = {clone: 1, NUMBERS[machine()]["pidfd_getfd"]: 1}
    while True:
        text = bytearray(forking._NOTIFICATION_BYTES)
        try:
            fcntl.ioctl(listener, forking._RECEIVE, text)
        except OSError:
            continue
        number, _, _, call = forking._NOTIFICATION.unpack_from(text)
        allowed, left[call] = left[call], 0
        value, error, flags = 0, 0, 0
        if not allowed:
            error = -errno.EPERM
        elif call == clone:
            flags = forking._CONTINUE
        else:
            order = forking._DESCRIPTOR.pack(number, forking._AT_THIS_NUMBER, seccomp.CHANNEL, seccomp.CHANNEL, 0)
            fcntl.ioctl(listener, forking._ADD_DESCRIPTOR, order)
            value = seccomp.CHANNEL
        fcntl.ioctl(listener, forking._RESPOND, forking._RESPONSE.pack(number, value, error, flags))
