"""The kernel layers of the sandbox, put on in the right order. Standard library only.

The zygote calls `arm_parent_death`, then `enter_namespaces` in mode strict; each of its forks calls `lock_worker`
before the first foreign byte runs. A worker that plays are forked from passes `announce`; each play calls
`take_channel` first thing. Nothing of it can be taken back.
"""

import ctypes
import os
from collections.abc import Callable

from trajsmith.environments.sandbox import landlock, limits, seccomp
from trajsmith.environments.sandbox.limits import WorkerLimits, adopt_orphans, arm_parent_death
from trajsmith.environments.sandbox.namespaces import enter_namespaces
from trajsmith.environments.sandbox.syscalls import LayerMissing, failure, libc, syscall

__all__ = [
    "LAYERS",
    "LayerMissing",
    "WorkerLimits",
    "adopt_orphans",
    "arm_parent_death",
    "enter_namespaces",
    "lock_worker",
    "map_shared_memory",
    "prepare",
    "take_channel",
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


def lock_worker(layers: frozenset[str], limits_: WorkerLimits, announce: Callable[[int], object] | None = None) -> None:
    """Give up everything that a worker does not need: its user, its limits, files, network, processes, system calls.

    Afterwards a worker reads on descriptors 0 and 3, writes on 1, 2 and 3, and computes. It cannot open or close a
    descriptor, share memory, nor change what a signal does. `time.sleep` returns at once.

    Args:
        layers: Which layers; those that are not of `LAYERS` are others' business.
        limits_: Its user and what it may take.
        announce: Given for a worker that plays are forked from. It gets the descriptor of a seccomp listener before the
            lock closes, and must pass it to the parent, who then decides on each fork and each channel.

    Raises:
        LayerMissing: The machine does not have a layer; the process must end.
    """
    forks = announce is not None
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
        if announce is not None:
            listener = seccomp.install_listener()
            announce(listener)
            os.close(listener)
        seccomp.install(seccomp.compile_filter("forker" if forks else "worker"))


def take_channel(layers: frozenset[str]) -> None:
    """Ask the parent for the channel of this play, which becomes descriptor 3. Called first thing in a forked play.

    The kernel hands the channel to this very process, so that no process that it was forked from ever holds it. Ends
    the process if its parent ended meanwhile.

    Raises:
        OSError: The parent expects no play, or has one already.
    """
    if "pdeathsig" in layers:
        arm_parent_death()  # the fork cleared it
    if "seccomp" in layers:
        syscall("pidfd_getfd", 0, 0, 0)


def map_shared_memory(descriptor: int, size: int) -> memoryview:
    """Writable memory behind a descriptor, for as long as the process lives; works in a session, where files do not.

    Raises:
        OSError: It cannot be mapped.
    """
    address = libc().mmap(None, ctypes.c_size_t(size), _READ_WRITE, _SHARED, descriptor, ctypes.c_long(0))
    if address in (None, -1, 2**64 - 1):
        raise failure("mmap")
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")
