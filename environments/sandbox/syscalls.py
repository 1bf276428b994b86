"""System calls by name, through libc: what the Python standard library has no function for.

Standard library only: this is imported in the zygote, before anything else.
"""

import ctypes
import os
import platform
from functools import cache

# fmt: off
_X86_64 = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "lstat": 6, "poll": 7, "mmap": 9, "mprotect": 10,
    "munmap": 11, "brk": 12, "rt_sigprocmask": 14, "rt_sigreturn": 15, "access": 21, "sched_yield": 24, "mremap": 25,
    "madvise": 28, "dup2": 33, "nanosleep": 35, "getitimer": 36, "setitimer": 38, "getpid": 39, "sendto": 44,
    "recvfrom": 45, "sendmsg": 46, "recvmsg": 47, "clone": 56, "exit": 60, "wait4": 61, "getcwd": 79, "readlink": 89,
    "gettimeofday": 96, "getrusage": 98, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108, "getppid": 110,
    "pivot_root": 155, "prctl": 157, "gettid": 186, "time": 201, "futex": 202, "sched_getaffinity": 204,
    "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231,
    "openat": 257, "newfstatat": 262, "readlinkat": 267, "faccessat": 269, "ppoll": 271, "unshare": 272,
    "set_robust_list": 273, "dup3": 292, "prlimit64": 302, "seccomp": 317, "getrandom": 318, "statx": 332, "rseq": 334,
    "pidfd_open": 434, "clone3": 435, "close_range": 436, "openat2": 437, "pidfd_getfd": 438, "faccessat2": 439,
    "landlock_create_ruleset": 444, "landlock_restrict_self": 446,
}
_AARCH64 = {
    "getcwd": 17, "dup3": 24, "pivot_root": 41, "faccessat": 48, "openat": 56, "close": 57, "read": 63, "write": 64,
    "ppoll": 73, "readlinkat": 78, "newfstatat": 79, "exit": 93, "exit_group": 94, "unshare": 97, "futex": 98,
    "set_robust_list": 99, "nanosleep": 101, "getitimer": 102, "setitimer": 103, "clock_gettime": 113,
    "clock_getres": 114, "clock_nanosleep": 115, "sched_getaffinity": 123, "sched_yield": 124, "restart_syscall": 128,
    "rt_sigprocmask": 135, "rt_sigreturn": 139, "getrusage": 165, "prctl": 167, "gettimeofday": 169, "getpid": 172,
    "getppid": 173, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177, "gettid": 178, "sendto": 206,
    "recvfrom": 207, "sendmsg": 211, "recvmsg": 212, "brk": 214, "munmap": 215, "mremap": 216, "clone": 220,
    "mmap": 222, "mprotect": 226, "madvise": 233, "wait4": 260, "prlimit64": 261, "seccomp": 277, "getrandom": 278,
    "statx": 291, "rseq": 293, "pidfd_open": 434, "clone3": 435, "close_range": 436, "openat2": 437,
    "pidfd_getfd": 438, "faccessat2": 439, "landlock_create_ruleset": 444, "landlock_restrict_self": 446,
}
# fmt: on
NUMBERS: dict[str, dict[str, int]] = {"x86_64": _X86_64, "aarch64": _AARCH64}
"""System call numbers by machine; a call that a machine does not have is absent."""


class LayerMissing(Exception):
    """This machine lacks a layer of the sandbox; the text is one line: what is missing, what it means, what to do."""

    def __init__(self, feature: str, message: str) -> None:
        self.feature = feature
        super().__init__(message)


def machine() -> str:
    """The name of this machine's instruction set.

    Raises:
        LayerMissing: The sandbox does not know it.
    """
    name = platform.machine() if platform.system() == "Linux" else platform.system()
    if name not in NUMBERS:
        known = " or ".join(NUMBERS)
        raise LayerMissing("architecture", f"the sandbox needs Linux on {known}, this is {name}: run it there")
    return name


@cache
def libc() -> ctypes.CDLL:
    """The C library of this process, with `errno` kept."""
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    library.mmap.restype = ctypes.c_void_p
    return library


def failure(operation: str) -> OSError:
    """The error of the last call into `libc`."""
    number = ctypes.get_errno()
    return OSError(number, f"{operation}: {os.strerror(number)}")


def syscall(name: str, *arguments: int | bytes | None) -> int:
    """Make a system call; bytes are passed by address.

    Raises:
        OSError: The kernel refused.
    """
    words = [ctypes.c_long(word) if isinstance(word, int) else ctypes.c_char_p(word) for word in arguments]
    result: int = libc().syscall(ctypes.c_long(NUMBERS[machine()][name]), *words)
    if result < 0:
        raise failure(name)
    return result


def prctl(option: int, *arguments: int) -> int:
    """Change a property of this process.

    Raises:
        OSError: The kernel refused.
    """
    words = [ctypes.c_ulong(word) for word in (*arguments, 0, 0, 0, 0)[:4]]
    result: int = libc().prctl(ctypes.c_int(option), *words)
    if result < 0:
        raise failure(f"prctl({option})")
    return result
