"""The system call filters, run by an interpreter of their own: so both machines are tested on either."""

import errno
import struct

import pytest

from trajsmith.environments.sandbox import seccomp
from trajsmith.environments.sandbox.syscalls import NUMBERS

MACHINES = sorted(NUMBERS)
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOWED = seccomp.ALLOW


def verdict(code: bytes, machine: str, call: str | int, *arguments: int, architecture: int | None = None) -> int:
    """What a filter says of a system call, by the rules of classic BPF."""
    number = NUMBERS[machine][call] if isinstance(call, str) else call
    data = struct.pack("=IIQ6Q", number, architecture or ARCHITECTURES[machine], 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    program = list(struct.iter_unpack("=HBBI", code))
    place, word = 0, 0
    while True:
        operation, true, false, value = program[place]
        place += 1
        if operation == 0x20:
            (word,) = struct.unpack_from("=I", data, value)
        elif operation == 0x54:
            word &= value
        elif operation == 0x06:
            return value
        else:
            holds = {0x15: word == value, 0x35: word >= value, 0x45: bool(word & value)}[operation]
            place += true if holds else false


def refused(number: int) -> int:
    return 0x00050000 | number


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def worker(machine: str) -> bytes:
    return seccomp.compile_filter("worker", name=machine)


@pytest.fixture
def forker(machine: str) -> bytes:
    return seccomp.compile_filter("forker", name=machine)


def test_a_call_of_another_machine_kills(worker: bytes, machine: str) -> None:
    other = next(name for name in MACHINES if name != machine)
    for foreign in (ARCHITECTURES[other], 0x40000003, 0x40000028):  # the 32-bit sides of both
        assert verdict(worker, machine, 0, architecture=foreign) == seccomp.KILL


def test_the_third_calling_convention_of_x86_kills() -> None:
    code = seccomp.compile_filter("worker", name="x86_64")
    assert verdict(code, "x86_64", 0x40000000 | 39) == seccomp.KILL
    assert verdict(code, "x86_64", 0xFFFFFFFF) == seccomp.KILL


def test_unknown_calls_are_refused(worker: bytes, machine: str) -> None:
    known = set(NUMBERS[machine].values())
    for number in range(600):
        if number not in known:
            assert verdict(worker, machine, number) == refused(errno.EPERM), number


@pytest.mark.parametrize("call", ["munmap", "brk", "futex", "getrandom", "clock_gettime", "getpid", "exit_group"])
def test_computing_is_allowed(worker: bytes, forker: bytes, machine: str, call: str) -> None:
    assert verdict(worker, machine, call) == verdict(forker, machine, call) == ALLOWED


@pytest.mark.parametrize("call", ["openat", "openat2", "newfstatat", "statx", "faccessat", "readlinkat"])
def test_files_are_refused_as_files_are(worker: bytes, machine: str, call: str) -> None:
    assert verdict(worker, machine, call) == refused(errno.EACCES)


@pytest.mark.parametrize(
    "call", ["clone", "wait4", "recvmsg", "prctl", "seccomp", "prlimit64", "dup3", "close", "close_range", "sendto"]
)
def test_a_worker_may_not_what_forkers_may(worker: bytes, machine: str, call: str) -> None:
    assert verdict(worker, machine, call, 0x11) == refused(errno.EPERM)


def test_reading_and_writing_is_for_the_channel(worker: bytes, machine: str) -> None:
    assert [verdict(worker, machine, "read", number) == ALLOWED for number in range(6)] == [1, 0, 0, 1, 0, 0]
    assert [verdict(worker, machine, "write", number) == ALLOWED for number in range(6)] == [0, 1, 1, 1, 0, 0]
    assert verdict(worker, machine, "write", 1 << 32 | 3) == refused(errno.EPERM)  # the whole register counts


def test_another_channel_can_be_chosen(machine: str) -> None:
    code = seccomp.compile_filter("worker", channel=7, name=machine)
    assert verdict(code, machine, "write", 7) == ALLOWED
    assert verdict(code, machine, "write", 3) == refused(errno.EPERM)


def test_memory_is_never_executable(worker: bytes, forker: bytes, machine: str) -> None:
    private_memory = 0x22
    for code in (worker, forker):
        assert verdict(code, machine, "mmap", 0, 4096, 3, private_memory) == ALLOWED
        for protection in (4, 5, 6, 7):
            assert verdict(code, machine, "mmap", 0, 4096, protection, private_memory) == refused(errno.EPERM)
            assert verdict(code, machine, "mprotect", 0, 4096, protection) == refused(errno.EPERM)
        assert verdict(code, machine, "mprotect", 0, 4096, 3) == ALLOWED


@pytest.mark.parametrize("flags", [0x01, 0x02, 0x03, 0x21, 0x23])
def test_memory_is_neither_of_a_descriptor_nor_shared(worker: bytes, forker: bytes, machine: str, flags: int) -> None:
    """Memory that a forker shared would be seen by all plays."""
    for code in (worker, forker):
        assert verdict(code, machine, "mmap", 0, 4096, 3, flags, 5) == refused(errno.EPERM)


def test_only_the_timer_of_the_sandbox_can_be_set(worker: bytes, machine: str) -> None:
    assert [verdict(worker, machine, "setitimer", kind) == ALLOWED for kind in range(3)] == [False, False, True]


def test_signals_can_be_asked_for_but_not_blocked(worker: bytes, forker: bytes, machine: str) -> None:
    for code in (worker, forker):
        assert verdict(code, machine, "rt_sigprocmask", 0, 0) == ALLOWED
        assert verdict(code, machine, "rt_sigprocmask", 0, 0x7F0000000000) == refused(errno.EPERM)


def test_sleeping_seems_to_work_and_takes_no_time(worker: bytes, machine: str) -> None:
    assert verdict(worker, machine, "nanosleep") == verdict(worker, machine, "clock_nanosleep") == refused(0)


def test_the_new_way_to_fork_does_not_exist(worker: bytes, forker: bytes, machine: str) -> None:
    assert verdict(worker, machine, "clone3") == verdict(forker, machine, "clone3") == refused(errno.ENOSYS)


@pytest.mark.parametrize("flags", [0x11, 0x01200011])
def test_a_forker_forks(forker: bytes, machine: str, flags: int) -> None:
    assert verdict(forker, machine, "clone", flags) == ALLOWED


@pytest.mark.parametrize("flags", [0, 0x100, 0x003D0F00, 0x10000011, 0x20000011, 0x4011, 1 << 32 | 0x11])
def test_a_forker_makes_no_threads_and_no_namespaces(forker: bytes, machine: str, flags: int) -> None:
    assert verdict(forker, machine, "clone", flags) == refused(errno.EPERM)


def test_a_forker_changes_nothing_but_its_end_with_its_parent(forker: bytes, machine: str) -> None:
    assert verdict(forker, machine, "prctl", 1, 9) == ALLOWED
    assert verdict(forker, machine, "prctl", 1, 0) == refused(errno.EPERM)  # not to outlive its parent
    assert verdict(forker, machine, "prctl", 4, 1) == refused(errno.EPERM)
    for call in ("prlimit64", "dup3", "close", "recvmsg", "sendmsg", "wait4", "seccomp"):
        assert verdict(forker, machine, call, 0, 0) == refused(errno.EPERM)


def test_a_play_may_nothing_that_a_worker_may_not_but_what_its_parent_decides(forker: bytes, machine: str) -> None:
    worker = seccomp.compile_filter("worker", name=machine)
    calls = NUMBERS[machine]
    more = {call for call in calls if verdict(forker, machine, call, 0x11) != verdict(worker, machine, call, 0x11)}
    assert more == set(seccomp.DECIDED)


def test_filters_are_short_enough_for_the_kernel(worker: bytes, forker: bytes) -> None:
    assert len(worker) % 8 == len(forker) % 8 == 0
    assert max(len(worker), len(forker)) // 8 <= 4096
