"""What this machine offers to the sandbox, and which of its modes work here. Everything is tried, in children."""

import errno
import os
import platform
import resource
import select
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from trajsmith.environments.sandbox import landlock, limits, lockdown, seccomp
from trajsmith.environments.sandbox.syscalls import LayerMissing, machine
from trajsmith.records import FrozenModel

if TYPE_CHECKING:
    from rich.table import Table

Name = Literal[
    "architecture", "kernel", "seccomp", "notifications", "landlock", "rlimits", "uid", "pidfd", "cpu_timer",
    "namespaces", "cgroup_memory",
]  # fmt: skip
_ROOM = 512 << 20
"""Bytes that a trial may take beyond what this process has."""
_DEFAULT: tuple[Name, ...] = (
    "architecture", "seccomp", "notifications", "landlock", "rlimits", "uid", "pidfd", "cpu_timer"
)  # fmt: skip
_WORKER_LAYERS = lockdown.LAYERS - {"namespaces"}
_ENOUGH_SECONDS = 20.0


class Feature(FrozenModel):
    """Something that a kernel, a container or a user may or may not have."""

    name: Name
    """Its name, as in errors."""
    available: bool
    """True if it was tried and works."""
    detail: str
    """What was seen; where it is missing, one line with what that means and what to do."""
    needed_for: str
    """What the sandbox does with it, and in which modes."""


class ModeVerdict(FrozenModel):
    """Availability of a sandbox mode on this machine."""

    works: bool
    """True if the mode was tried as a whole and holds."""
    message: str
    """What is missing, what it means, what to do; "ok" if nothing is."""


class ProbeReport(FrozenModel):
    """All features, and what follows for each mode."""

    features: tuple[Feature, ...]
    """In the order of the report."""
    modes: dict[Literal["default", "strict", "unsafe"], ModeVerdict]
    """One verdict for each mode."""

    def feature(self, name: Name) -> Feature:
        """One feature by name."""
        return next(feature for feature in self.features if feature.name == name)


_NEEDED_FOR: dict[Name, str] = {
    "architecture": "system call numbers of the filter (default, strict)",
    "kernel": "nothing by itself: only its offered features count",
    "seccomp": "the list of system calls that foreign code may make (default, strict)",
    "notifications": "a process for every play, whose channel no other process holds (default, strict)",
    "landlock": "no files, no TCP, no signals, even if the filter had a gap (default, strict)",
    "rlimits": "memory, files, processes (default, strict)",
    "uid": "every worker a user of its own, where root starts it (default, strict)",
    "pidfd": "ending exactly the process that was meant (default, strict)",
    "cpu_timer": "CPU time per call (all modes)",
    "namespaces": "empty root, no network, no other processes (strict)",
    "cgroup_memory": "nothing yet: memory is limited by rlimits and by looks at all processes",
}


def probe() -> ProbeReport:
    """Try everything. Takes some tens of milliseconds and changes nothing in this process."""
    features = [_feature("architecture", machine), _feature("kernel", _kernel)]
    if features[0].available:
        features += [_feature(name, trial) for name, trial in _TRIALS.items()]
    else:
        features += [
            _known(name, False, f"not tried: {features[0].detail}") for name in _NEEDED_FOR if name not in _ALWAYS
        ]
    by_name = {feature.name: feature for feature in features}
    default = _verdict([by_name[name] for name in _DEFAULT], _try_default)
    strict = _verdict([by_name[name] for name in (*_DEFAULT, "namespaces")], _try_strict)
    unsafe = ModeVerdict(works=True, message="ok: no protection at all, for development only")
    return ProbeReport(features=tuple(features), modes={"default": default, "strict": strict, "unsafe": unsafe})


def render(report: ProbeReport) -> "Table":
    """The report as a table for a terminal."""
    from rich.table import Table

    table = Table("what", "here", "detail", "used for", title="sandbox")
    for mode, verdict in report.modes.items():
        table.add_row(f"mode {mode}", _mark(verdict.works), verdict.message, "", end_section=mode == "unsafe")
    for feature in report.features:
        table.add_row(feature.name, _mark(feature.available), feature.detail, feature.needed_for)
    return table


def _mark(good: bool) -> str:
    return "[green]yes[/green]" if good else "[red]no[/red]"


def _verdict(needed: list[Feature], trial: Callable[[], str]) -> ModeVerdict:
    missing = [feature for feature in needed if not feature.available]
    if missing:
        return ModeVerdict(works=False, message="; ".join(feature.detail for feature in missing))
    works, detail = _in_child(trial)
    return ModeVerdict(works=works, message=detail)


def _known(name: Name, available: bool, detail: str) -> Feature:
    return Feature(name=name, available=available, detail=detail, needed_for=_NEEDED_FOR[name])


def _feature(name: Name, trial: Callable[[], str]) -> Feature:
    return _known(name, *_in_child(trial))


def _in_child(trial: Callable[[], str]) -> tuple[bool, str]:
    """Run it where nothing of it can stick. Returns whether it succeeded, and what it says."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        answer = b"0it ended before it answered"
        try:
            os.close(reads)
            os.dup2(writes, seccomp.CHANNEL)
            os.closerange(seccomp.CHANNEL + 1, os.sysconf("SC_OPEN_MAX"))  # a worker starts without the caller's files
            answer = b"1" + trial().encode()
        except LayerMissing as error:
            answer = b"0" + str(error).encode()
        except BaseException as error:  # noqa: BLE001 - must not unwind into the caller's stack in this child
            answer = b"0" + f"{type(error).__name__}: {error}".encode()
        finally:
            os.write(seccomp.CHANNEL, answer)
            os._exit(0)
    os.close(writes)
    answer = _read(reads)
    os.close(reads)
    if not answer:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return (answer[:1] == b"1", answer[1:].decode() or "the trial was killed or hung")


def _read(descriptor: int) -> bytes:
    """Read a child's answer within a time limit; empty if there is none."""
    text = b""
    end = time.monotonic() + _ENOUGH_SECONDS
    while select.select([descriptor], [], [], max(0.0, end - time.monotonic()))[0]:
        part = os.read(descriptor, 4096)
        if not part:
            break
        text += part
    return text


def _kernel() -> str:
    return f"{platform.system()} {platform.release()}"


def _seccomp() -> str:
    limits.set_no_new_privileges()
    seccomp.install(seccomp.compile_filter("worker"))
    try:
        os.getsid(0)
    except PermissionError:
        return f"{len(seccomp.compile_filter('worker')) // 8} instructions"
    raise LayerMissing("seccomp", seccomp.describe_missing(OSError(0, "a filter was taken, but has no effect")))


def _notifications() -> str:
    limits.set_no_new_privileges()
    seccomp.install_listener()
    return "the parent decides on forks and channels"


def _landlock() -> str:
    limits.set_no_new_privileges()
    try:
        abi = landlock.get_landlock_abi()
    except OSError as error:
        raise LayerMissing("landlock", landlock.describe_missing(error)) from error
    landlock.restrict()
    try:
        os.scandir("/")
    except PermissionError:
        return f"ABI {abi}" + ("" if abi >= 6 else " (files only: the system call filter covers the rest)")
    raise LayerMissing("landlock", landlock.describe_missing(OSError(0, "a ruleset was taken, but has no effect")))


def _rlimits() -> str:
    memory = _own_memory() + _ROOM
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    try:
        bytes(2 * _ROOM)
    except MemoryError:
        return "address space is limited"
    raise LayerMissing("rlimits", "resource limits have no effect: one call could take all memory; use a Linux kernel")


def _own_memory() -> int:
    """Address space of this process, which may have loaded much more than a zygote has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _trial_limits() -> lockdown.WorkerLimits:
    return lockdown.WorkerLimits(memory_bytes=_own_memory() + _ROOM, uid=limits.list_users()[0])


def _uid() -> str:
    users = limits.list_users()
    if limits.become_user(users[0]):
        return f"workers get users {users[0]} to {users[-1]}"
    if os.geteuid() == 0:
        raise LayerMissing(
            "uid",
            "this is root without CAP_SETUID: workers would stay root; start as an ordinary user, or with --cap-add "
            "SETUID --cap-add SETGID",
        )
    return "not root: workers keep this user"


def _pidfd() -> str:
    try:
        descriptor = os.pidfd_open(os.getpid())
        signal.pidfd_send_signal(descriptor, 0)
    except OSError as error:
        raise LayerMissing(
            "pidfd",
            f"pidfds are missing ({error.strerror}): a worker could not be ended for sure; use a kernel >= 5.3 and a "
            "container that allows pidfd_open and pidfd_send_signal",
        ) from error
    return "works"


def _cpu_timer() -> str:
    fired: list[int] = []
    signal.signal(signal.SIGPROF, lambda number, frame: fired.append(number))
    signal.setitimer(signal.ITIMER_PROF, 0.002)
    end = time.process_time() + 0.5
    while not fired and time.process_time() < end:
        pass
    if fired:
        return "works"
    raise LayerMissing("cpu_timer", "the profiling timer does not fire: calls could run for ever; use a Linux kernel")


def _namespaces() -> str:
    lockdown.enter_namespaces()
    return "user, net, ipc, uts, mnt, pid, cgroup"


def _cgroup_memory() -> str:
    root = Path("/sys/fs/cgroup")
    try:
        controllers = (root / "cgroup.controllers").read_text().split()
    except OSError:
        raise LayerMissing("cgroup_memory", "no cgroup v2 here; not needed") from None
    if "memory" not in controllers:
        raise LayerMissing("cgroup_memory", "cgroup v2 has no memory controller here; not needed")
    own = root / Path("/proc/self/cgroup").read_text().rpartition("::")[2].strip().lstrip("/")
    if not os.access(own, os.W_OK):
        raise LayerMissing("cgroup_memory", "this user may not make cgroups; not needed")
    return "can be used"


_ALWAYS = ("architecture", "kernel")
_TRIALS: dict[Name, Callable[[], str]] = {
    "seccomp": _seccomp, "notifications": _notifications, "landlock": _landlock, "rlimits": _rlimits, "uid": _uid,
    "pidfd": _pidfd, "cpu_timer": _cpu_timer, "namespaces": _namespaces, "cgroup_memory": _cgroup_memory,
}  # fmt: skip


def _try_default() -> str:
    """Lock a worker and try the doors."""
    lockdown.lock_worker(_WORKER_LAYERS, _trial_limits())
    _all_refused("/")
    return "ok"


def _try_strict() -> str:
    """Enter namespaces, lock a worker in there, and try the doors."""
    chosen = _trial_limits()  # before /proc is gone
    lockdown.enter_namespaces()
    lockdown.lock_worker(_WORKER_LAYERS, chosen)
    _all_refused("/")
    return "ok"


def _all_refused(path: str) -> None:
    """Every way out must be refused.

    Raises:
        LayerMissing: One is open.
    """
    ways: dict[str, Callable[[], object]] = {
        "open a file": lambda: os.scandir(path),
        "open a socket": socket.socket,
        "start a process": lambda: os.fork() or os._exit(0),
        "signal its parent": lambda: os.kill(os.getppid(), 0),
        "raise a limit": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
    }
    for action, way in ways.items():
        try:
            way()
        except (OSError, ValueError) as error:
            if isinstance(error, ValueError) or error.errno in (errno.EPERM, errno.EACCES):
                continue
            raise
        raise LayerMissing("worker", f"a locked worker can {action}: please report this machine, and do not use it")
