"""The system calls that foreign code may make: an allowlist, compiled to a kernel filter.

Two filters. `worker` is for a process that only computes and answers on its channel. `forker` is for the zygote of an
environment, which also forks sessions, and receives their channels; a session then adds the `worker` filter on top.
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
"""Argument number, test, values. `in`: its 64 bits are one of these small numbers; `is`: they are this large number;
`none`: it has none of these bits; `all`: it has all."""
Instruction = tuple[int, int, int, int]

CHANNEL = 3
"""File descriptor on which a worker hears and answers."""
ALLOW = 0x7FFF0000
KILL = 0x80000000
_ERRNO = 0x00050000
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_SET_FILTER, _ALL_THREADS = 1, 1

_PROT_EXEC, _MAP_ANONYMOUS = 4, 0x20
_ITIMER_PROF = 2
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9
_FORK = (0x01200011, 0x11)
"""Flags of `clone` for a plain fork, as glibc and as musl make it: no thread, no namespace, no shared memory."""

_IGNORED = {"clone": 2, "seccomp": 3}
"""Arguments that the kernel ignores: of a plain fork, where the parent would get the child's number; a fourth one."""

# fmt: off
_COMPUTE = [
    "munmap", "brk", "mremap", "madvise", "futex", "getrandom", "clock_gettime", "clock_getres", "gettimeofday", "time",
    "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getrusage", "getitimer", "getcwd",
    "sched_getaffinity", "sched_yield", "poll", "ppoll", "rt_sigreturn", "restart_syscall", "exit", "exit_group",
]
_FORK_SESSIONS = ["wait4", "recvmsg", "close", "close_range"]
_FILES = [
    "open", "openat", "openat2", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2",
    "readlink", "readlinkat",
]
# fmt: on
_MEMORY: dict[str, list[ArgumentTest]] = {
    "mmap": [(2, "none", (_PROT_EXEC,)), (3, "all", (_MAP_ANONYMOUS,))],
    "mprotect": [(2, "none", (_PROT_EXEC,))],
    "setitimer": [(0, "in", (_ITIMER_PROF,))],
}
_FORKER: dict[str, list[ArgumentTest]] = {
    "clone": [(0, "in", _FORK)],
    "prctl": [(0, "in", (_PR_SET_PDEATHSIG,)), (1, "in", (_SIGKILL,))],
    "seccomp": [(0, "in", (_SET_FILTER,)), (1, "in", (_ALL_THREADS,))],
    "prlimit64": [(0, "in", (0,)), (1, "in", (0,))],  # RLIMIT_CPU of itself: it can only go down
    "dup2": [(1, "in", (CHANNEL,))],
    "dup3": [(1, "in", (CHANNEL,))],
}


def refuse(number: int) -> int:
    """The verdict that makes a call fail with this `errno`; 0 makes it seem to succeed without being made."""
    return _ERRNO | number


def _tests(tests: Iterable[ArgumentTest], otherwise: int) -> list[Instruction]:
    deny = (_RETURN, 0, 0, otherwise)
    body: list[Instruction] = []
    for argument, test, values in tests:
        low, high = 16 + 8 * argument, 20 + 8 * argument
        if test == "is":
            body += [(_LOAD, 0, 0, high), (_EQUAL, 1, 0, values[0] >> 32), deny]
            body += [(_LOAD, 0, 0, low), (_EQUAL, 1, 0, values[0] & 0xFFFFFFFF), deny]
        elif test == "none":
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
    return _compiled(kind, 0, channel, name)


def compile_forker_filter(secret: int) -> bytes:
    """The filter of a forker that forks, and adds filters, only with 63 secret bits in an argument that is ignored.

    The code that the forker has loaded does not know them, so it cannot fork, nor put filters under its sessions.
    """
    return _compiled("forker", secret, CHANNEL, None)


def _compiled(kind: FilterKind, secret: int, channel: int, name: str | None) -> bytes:
    allowed = list(_COMPUTE)
    tested = _MEMORY | {
        "read": [(0, "in", (0, channel))],
        "write": [(0, "in", (1, 2, channel))],  # 0, 1 and 2 are /dev/null
        "rt_sigprocmask": [(1, "in", (0,))],  # asking is free
    }
    if kind == "forker":
        allowed += _FORK_SESSIONS
        tested |= _FORKER
        tested["mmap"] = [(2, "none", (_PROT_EXEC,))]  # sessions map memory that they share with the parent
        if secret:
            tested |= {call: [*_FORKER[call], (place, "is", (secret,))] for call, place in _IGNORED.items()}
    answers = {call: refuse(errno.EACCES) for call in _FILES}
    answers["clone3"] = refuse(errno.ENOSYS)  # so that libc falls back to clone, whose flags can be tested
    answers["nanosleep"] = answers["clock_nanosleep"] = refuse(0)  # nobody waits: sleeping is over at once
    return assemble(name or machine(), allowed, tested, answers, refuse(errno.EPERM))


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def install(code: bytes, secret: int = 0) -> None:
    """Put a filter on this process and all that it forks, on top of those it has. It cannot be taken back.

    Needs `limits.no_new_privileges` before it, but for root; and the secret, if the process was locked with one.

    Raises:
        LayerMissing: The kernel has no seccomp filters, or something forbids them.
    """
    text = ctypes.create_string_buffer(code, len(code))
    header = _Program(len(code) // 8, ctypes.cast(text, ctypes.c_void_p))
    try:
        syscall("seccomp", _SET_FILTER, _ALL_THREADS, ctypes.addressof(header), secret)
    except OSError as error:
        raise LayerMissing("seccomp", describe_missing(error)) from error


def describe_missing(error: OSError) -> str:
    """One line for a kernel without seccomp filters."""
    return (
        f"seccomp filters are missing ({error.strerror or error}): foreign code could make any system call; use a "
        "Linux kernel with CONFIG_SECCOMP_FILTER and a container that allows the seccomp system call"
    )
