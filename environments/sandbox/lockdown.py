"""The kernel layers of the sandbox, put on in the right order. Standard library only.

The zygote calls `arm_parent_death`, then `enter_namespaces` in mode strict; each of its forks calls `lock_worker`
before the first foreign byte runs. A worker with `forks=True` forks sessions, and each session calls `lock_session`
after it has moved its channel to descriptor 3 and closed all others. Nothing of it can be taken back.
"""

import ctypes
import signal

from trajsmith.environments.sandbox import landlock, limits, seccomp
from trajsmith.environments.sandbox.limits import WorkerLimits, arm_parent_death
from trajsmith.environments.sandbox.namespaces import enter_namespaces
from trajsmith.environments.sandbox.syscalls import LayerMissing, failure, libc, syscall

__all__ = [
    "LAYERS",
    "LayerMissing",
    "WorkerLimits",
    "arm_parent_death",
    "enter_namespaces",
    "fork",
    "lock_session",
    "lock_worker",
    "map_shared_memory",
    "prepare",
]

LAYERS: frozenset[str] = frozenset(
    {"uid", "rlimits", "undumpable", "landlock", "no_new_privs", "pdeathsig", "seccomp", "namespaces"}
)
"""The layers of the operating system by name; `namespaces` is for the whole zygote, by `enter_namespaces`."""
_NEED_NO_NEW_PRIVILEGES = frozenset({"no_new_privs", "landlock", "seccomp"})
_READ_WRITE, _SHARED = 3, 1


def prepare() -> None:
    """Compile the filters once in the zygote, so that its forks need not.

    Raises:
        LayerMissing: The machine's instruction set is unknown.
    """
    seccomp.compile_filter("worker")


def lock_worker(layers: frozenset[str], limits_: WorkerLimits, *, forks: bool, secret: int = 0) -> None:
    """Give up everything that a worker does not need: its user, its limits, files, network, processes, system calls.

    Afterwards a worker reads on descriptors 0 and 3, writes on 1, 2 and 3, and computes. It cannot close a descriptor,
    nor change what a signal does. `time.sleep` returns at once. With `forks` it may also `fork` (nothing else: no
    thread, no program), receive descriptors, close them, move one to 3, and lock its sessions; these map memory that
    they share with the parent by `shared_memory`, because `mmap.mmap` looks at its file.

    Args:
        layers: Which layers; those that are not of `LAYERS` are others' business.
        limits_: Its user and what it may take.
        forks: True for the zygote of an environment.
        secret: 63 random bits without which it can neither fork nor lock a session; 0 where anybody in it may.

    Raises:
        LayerMissing: The machine does not have a layer; the process must end.
    """
    private = "uid" in layers and limits.become_user(limits_.uid)
    if "rlimits" in layers:
        limits.set_limits(limits_, forks=forks, private=private)
    if "undumpable" in layers:
        limits.set_undumpable()
    if layers & _NEED_NO_NEW_PRIVILEGES:
        limits.set_no_new_privileges()
    if "landlock" in layers:
        landlock.restrict()
    if "pdeathsig" in layers:
        arm_parent_death()  # the change of user cleared it
    if "seccomp" in layers:
        seccomp.compile_filter("worker")  # for the sessions
        seccomp.install(seccomp.compile_forker_filter(secret) if forks else seccomp.compile_filter("worker"))


def fork(secret: int) -> int:
    """`os.fork` for a zygote that was locked with a secret; the process must have one thread.

    Raises:
        OSError: The secret is wrong, or there are too many processes.
    """
    return syscall("clone", signal.SIGCHLD, 0, secret, 0, 0)


def lock_session(layers: frozenset[str], limits_: WorkerLimits, secret: int = 0) -> None:
    """Give up what the zygote of an environment could do beyond a worker. Called first thing in a forked session.

    Ends the process if its parent ended meanwhile. The secret is that of `lock_worker`.

    Raises:
        LayerMissing: The machine does not have a layer; the process must end.
    """
    if "pdeathsig" in layers:
        arm_parent_death()  # the fork cleared it
    if "rlimits" in layers:
        limits.limit_cpu(limits_.cpu_seconds)
    if "seccomp" in layers:
        seccomp.install(seccomp.compile_filter("worker"), secret)


def map_shared_memory(descriptor: int, size: int) -> memoryview:
    """Writable memory behind a descriptor, for as long as the process lives; works in a session, where files do not.

    Raises:
        OSError: It cannot be mapped.
    """
    address = libc().mmap(None, ctypes.c_size_t(size), _READ_WRITE, _SHARED, descriptor, ctypes.c_long(0))
    if address in (None, -1, 2**64 - 1):
        raise failure("mmap")
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")
