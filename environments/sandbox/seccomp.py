"""The system calls that foreign code may make: an allowlist, compiled to a kernel filter.

Two filters. `worker` is for a process that only computes and answers on its channel. `forker` is for the process that
an environment's plays are forked from, and for these plays: two of its calls, `clone` and `pidfd_getfd`, wait until the
parent has decided on them (see `trajsmith.environments.sandbox.forking`).
"""

import ctypes
import errno
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Literal

from trajsmith.environments.sandbox.syscalls import NUMBERS, LayerMissing, machine, syscall

FilterKind = Literal["worker", "forker"]
ArgumentTest = tuple[int, str, tuple[int, ...]]
"""Argument number, test, values. `in`: its 64 bits are one of these small numbers; `none`: it has none of these bits;
`all`: it has all."""
Instruction = tuple[int, int, int, int]

CHANNEL = 3
"""File descriptor on which a worker hears and answers."""
ALLOW = 0x7FFF0000
KILL = 0x80000000
_ERRNO = 0x00050000
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_SET_FILTER, _ALL_THREADS, _NEW_LISTENER = 1, 1, 8
_NOTIFY = 0x7FC00000
DECIDED = ("clone", "pidfd_getfd")
"""Calls of a forker and its plays that the parent decides on: for a new play, and for its channel."""

_PROT_EXEC, _MAP_SHARED, _MAP_ANONYMOUS = 4, 1, 0x20
_ITIMER_PROF = 2
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9
_FORK = (0x01200011, 0x11)
"""Flags of `clone` for a plain fork, as glibc and as musl make it: no thread, no namespace, no shared memory."""

# fmt: off
_COMPUTE = [
    "munmap", "brk", "mremap", "madvise", "futex", "getrandom", "clock_gettime", "clock_getres", "gettimeofday", "time",
    "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getrusage", "getitimer", "getcwd",
    "sched_getaffinity", "sched_yield", "poll", "ppoll", "rt_sigreturn", "restart_syscall", "exit", "exit_group",
]
_FILES = [
    "open", "openat", "openat2", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2",
    "readlink", "readlinkat",
]
# fmt: on
_MEMORY: dict[str, list[ArgumentTest]] = {
    "mmap": [(2, "none", (_PROT_EXEC,)), (3, "all", (_MAP_ANONYMOUS,)), (3, "none", (_MAP_SHARED,))],
    "mprotect": [(2, "none", (_PROT_EXEC,))],
    "setitimer": [(0, "in", (_ITIMER_PROF,))],
}
_FORKER: dict[str, list[ArgumentTest]] = {
    "clone": [(0, "in", _FORK)],
    "pidfd_getfd": [],
    "prctl": [(0, "in", (_PR_SET_PDEATHSIG,)), (1, "in", (_SIGKILL,))],
}


def refuse(number: int) -> int:
    """The verdict that makes a call fail with this `errno`; 0 makes it seem to succeed without being made."""
    return _ERRNO | number


def _tests(tests: Iterable[ArgumentTest], otherwise: int) -> list[Instruction]:
    deny = (_RETURN, 0, 0, otherwise)
    body: list[Instruction] = []
    for argument, test, values in tests:
        low, high = 16 + 8 * argument, 20 + 8 * argument
        if test == "none":
            body += [(_LOAD, 0, 0, low), (_ANY_BIT, 0, 1, values[0]), deny]
        elif test == "all":
            body += [(_LOAD, 0, 0, low), (_AND, 0, 0, values[0]), (_EQUAL, 1, 0, values[0]), deny]
        else:
            body += [(_LOAD, 0, 0, high), (_EQUAL, 1, 0, 0), deny, (_LOAD, 0, 0, low)]
            body += [(_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
            body += [deny]
    return [*body, (_RETURN, 0, 0, ALLOW)]


def assemble(
    name: str,
    allowed: Iterable[str],
    tested: Mapping[str, Iterable[ArgumentTest]],
    answers: Mapping[str, int],
    otherwise: int,
) -> bytes:
    """A filter for a machine: calls that pass, calls that pass a test, calls with a fixed verdict, and all others.

    A call that the machine does not have is left out. Calls of another instruction set kill the process.
    """
    numbers = NUMBERS[name]
    code: list[Instruction] = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, _ARCHITECTURES[name]), (_RETURN, 0, 0, KILL)]
    code += [(_LOAD, 0, 0, 0)]
    if name == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, KILL)]
    for verdicts in (dict.fromkeys(allowed, ALLOW), answers):
        for call, verdict in verdicts.items():
            if call in numbers:
                code += [(_EQUAL, 0, 1, numbers[call]), (_RETURN, 0, 0, verdict)]
    for call, tests in tested.items():
        if call in numbers:
            body = _tests(tests, otherwise)
            code += [(_EQUAL, 0, len(body), numbers[call]), *body]
    code += [(_RETURN, 0, 0, otherwise)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


@cache
def compile_filter(kind: FilterKind, channel: int = CHANNEL, name: str | None = None) -> bytes:
    """The filter of a kind of process, compiled once. `name` is a machine; this one by default.

    Raises:
        LayerMissing: The machine is unknown.
    """
    allowed = list(_COMPUTE)
    tested: dict[str, list[ArgumentTest]] = _MEMORY | {
        "read": [(0, "in", (0, channel))],
        "write": [(0, "in", (1, 2, channel))],  # 0, 1 and 2 are /dev/null
        "rt_sigprocmask": [(1, "in", (0,))],  # asking is free
    }
    if kind == "forker":
        tested |= _FORKER
    answers = {call: refuse(errno.EACCES) for call in _FILES}
    answers["clone3"] = refuse(errno.ENOSYS)  # so that libc falls back to clone, whose flags can be tested
    answers["nanosleep"] = answers["clock_nanosleep"] = refuse(0)  # nobody waits: sleeping is over at once
    return assemble(name or machine(), allowed, tested, answers, refuse(errno.EPERM))


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def install(code: bytes) -> None:
    """Put a filter on this process and all that it forks, on top of those it has. It cannot be taken back.

    Needs `limits.no_new_privileges` before it, but for root.

    Raises:
        LayerMissing: The kernel has no seccomp filters, or something forbids them.
    """
    _install(code, _ALL_THREADS)


def install_listener() -> int:
    """Have somebody decide on the calls of `DECIDED`; returns the descriptor on which they are announced.

    It holds for this process and all that it forks, and beside filters that allow these calls.

    Raises:
        LayerMissing: The kernel has no seccomp notifications, or this process has a listener already.
    """
    numbers = NUMBERS[machine()]
    code = [(_LOAD, 0, 0, 0)]
    for call in DECIDED:
        code += [(_EQUAL, 0, 1, numbers[call]), (_RETURN, 0, 0, _NOTIFY)]
    code += [(_RETURN, 0, 0, ALLOW)]
    return _install(b"".join(struct.pack("=HBBI", *instruction) for instruction in code), _NEW_LISTENER)


def _install(code: bytes, flags: int) -> int:
    text = ctypes.create_string_buffer(code, len(code))
    header = _Program(len(code) // 8, ctypes.cast(text, ctypes.c_void_p))
    try:
        return syscall("seccomp", _SET_FILTER, flags, ctypes.addressof(header), 0)
    except OSError as error:
        raise LayerMissing("seccomp", describe_missing(error, flags)) from error


def describe_missing(error: OSError, flags: int = 0) -> str:
    """One line for a kernel without seccomp filters, or without their notifications."""
    reason = error.strerror or error
    if flags & _NEW_LISTENER and error.errno != errno.ENOSYS:
        return (
            f"seccomp notifications are missing ({reason}): plays cannot have a process each; use a kernel >= 5.9 and "
            "a container without a seccomp agent of its own, or set plays: shared for code that you trust"
        )
    return (
        f"seccomp filters are missing ({reason}): foreign code could make any system call; use a Linux kernel with "
        "CONFIG_SECCOMP_FILTER and a container that allows the seccomp system call"
    )
