"""What a process may be and take: its user, its privileges, its limits, and its end with its parent."""

import ctypes
import os
import resource
import signal
import struct
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trajsmith.environments.sandbox.syscalls import LayerMissing, failure, libc, prctl

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 1, 4, 24, 38, 47
_PR_SET_CHILD_SUBREAPER = 36
_CLEAR_ALL = 4
_CAPABILITY_HEADER = struct.pack("=Ii", 0x20080522, 0)
_CAPABILITY_WORDS = struct.Struct("=6I")
"""Effective, permitted, inheritable: the low words, then the high ones."""
CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SETPCAP = 5, 6, 7, 8
_MIB = 1 << 20
USERS = 4096
"""Users of workers; the last one is that of a zygote in namespaces."""
_FREE_USERS, _NARROW_USERS = 70_000, 60_578
"""First users that nobody else gives away: systemd has 61184 to 65519 for its own services, and sub-users begin at
100000. A container whose users end at 65535 has the 606 that systemd leaves free below its own."""
_NARROW_COUNT = 606


@dataclass(frozen=True)
class WorkerLimits:
    """Resource limits of one worker, or of one session with its own process."""

    memory_bytes: int = 768 * _MIB
    """Address space."""
    open_files: int = 16
    """Highest file descriptor."""
    cpu_seconds: int | None = None
    """CPU time of a whole process, after which the kernel kills it; each play has its own."""
    uid: int = _FREE_USERS
    """User and group of the process where it may choose: a base, plus the number of the worker."""
    processes: int = 1024
    """Sessions that the zygote of an environment may have at a time; a worker may have no process beside itself."""


def get_capabilities() -> int:
    """The effective capabilities of this process as bits."""
    data = ctypes.create_string_buffer(_CAPABILITY_WORDS.size)
    if libc().capget(_CAPABILITY_HEADER, data) != 0:
        raise failure("capget")
    words = _CAPABILITY_WORDS.unpack(data.raw)
    return int(words[0] | words[3] << 32)


def keep_capabilities(*numbers: int) -> None:
    """Drop all capabilities but these, for this process and whatever it may become.

    Raises:
        OSError: The kernel refused.
    """
    has = get_capabilities()
    if has & (1 << CAP_SETPCAP):
        for number in set(range(64)) - set(numbers):
            with suppress(OSError):  # numbers that this kernel does not know
                prctl(_PR_CAPBSET_DROP, number)
    prctl(_PR_CAP_AMBIENT, _CLEAR_ALL)
    bits = has & sum(1 << number for number in numbers)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    if libc().capset(_CAPABILITY_HEADER, _CAPABILITY_WORDS.pack(low, low, 0, high, high, 0)) != 0:
        raise failure("capset")


@cache
def list_users() -> range:
    """Return the users that workers may become here, if this process may choose one."""
    first, last = _FREE_USERS, _FREE_USERS + USERS
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/uid_map").read_text().splitlines():
            inside, _, count = map(int, line.split())
            if inside <= first and last <= inside + count:
                return range(first, last)
        return range(_NARROW_USERS, _NARROW_USERS + _NARROW_COUNT)
    return range(first, last)


def choose_user(number: int) -> int:
    """Return the user of the worker of this number; programs that run at the same time begin at different places."""
    users = list_users()
    return users[(os.getpid() * 61 + number) % (len(users) - 1)]


def become_user(uid: int) -> bool:
    """Switch to this user where permitted (root, or the zygote in its namespace); return whether it happened.

    Raises:
        LayerMissing: It may change its user, but not to this one.
    """
    if not get_capabilities() & (1 << CAP_SETUID):
        return False
    try:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        keep_capabilities(CAP_SETUID)
        os.setresuid(uid, uid, uid)
        keep_capabilities()
    except OSError as error:
        raise LayerMissing(
            "uid",
            f"workers cannot become user {uid} ({error.strerror}): they could signal each other; start as an ordinary "
            "user, or give the container this range of users",
        ) from error
    return True


def set_no_new_privileges() -> None:
    """Forbid programs that this process runs to gain privileges."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def set_undumpable() -> None:
    """Forbid processes of the same user to read memory, attach or get a core file."""
    prctl(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Become the parent of the processes whose parents, children of this process, end before them."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


_armed: list[int] = []
"""The process that armed last: after a fork, the parent."""


def arm_parent_death(number: int = signal.SIGKILL) -> None:
    """Be sent a signal when the parent ends. `fork` and a change of user clear this, so it is called after each.

    A process whose parent ended before the call ends here, where the parent had armed too. "Parent" is the *thread*
    that forked: start the zygote from a thread that lives as long as the pool.
    """
    prctl(_PR_SET_PDEATHSIG, number)
    me = os.getpid()
    if _armed and _armed[0] not in (me, os.getppid()):
        os._exit(1)
    _armed[:] = [me]


def expect_parent_outside() -> None:
    """The parent has no number here: this is the first process of a PID namespace."""
    _armed[:] = [0]


def set_limits(limits: WorkerLimits, *, forks: bool, private: bool) -> None:
    """Set the resource limits, hard and soft.

    Args:
        limits: What the process may take.
        forks: True for the zygote of an environment.
        private: True where no other process has its user, so that its processes alone are counted.
    """
    processes = limits.processes if forks else 0
    if forks and not private:  # sessions of other environments, and all else that the user runs, count too
        processes = 8 * limits.processes + _count_threads(os.getuid())
    chosen = {
        resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_MEMLOCK: 0, resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_NICE: 0, resource.RLIMIT_RTPRIO: 0, resource.RLIMIT_SIGPENDING: 64,
        resource.RLIMIT_NOFILE: limits.open_files, resource.RLIMIT_NPROC: processes, resource.RLIMIT_STACK: 8 * _MIB,
        resource.RLIMIT_AS: limits.memory_bytes,
    }  # fmt: skip
    for name, value in chosen.items():
        _lower(name, value)
    if limits.cpu_seconds is not None:
        _lower(resource.RLIMIT_CPU, limits.cpu_seconds)


def _lower(name: int, value: int) -> None:
    """Set a limit; where the process already has a lower one, that stays."""
    hard = resource.getrlimit(name)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(name, (value, value))


def _count_threads(uid: int) -> int:
    """Count the threads of a user: the kernel counts all of them against RLIMIT_NPROC."""
    count = 0
    for task in Path("/proc").glob("[0-9]*/task"):
        with suppress(OSError):  # it ended meanwhile
            status = task.stat()
            count += status.st_nlink - 2 if status.st_uid == uid else 0
    return count
