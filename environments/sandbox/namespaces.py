"""Namespaces of their own for a zygote and all its workers: users, network, processes, files, and names."""

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from trajsmith.environments.sandbox import limits
from trajsmith.environments.sandbox.syscalls import LayerMissing, failure, libc, syscall

_NEW = 0x10000000 | 0x40000000 | 0x08000000 | 0x04000000 | 0x00020000 | 0x20000000 | 0x02000000
"""user, net, ipc, uts, mnt, pid, cgroup."""
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXEC, _REMOUNT, _RECURSIVE, _PRIVATE = 1, 2, 4, 8, 32, 16384, 1 << 18
_DETACH = 2
_BARE = _NO_SUID | _NO_DEVICES | _NO_EXEC
_TMPFS = b"size=4k,nr_inodes=8,mode=555"
_PLACES = ("/tmp", "/run", "/proc")
"""Folders to mount the new root on; it is gone from them in the next step."""


def enter_namespaces() -> None:
    """Go on in namespaces of its own, as another process, with an empty read-only root and no network.

    The zygote calls this once, after its imports and before it forks a worker, and goes on afterwards as if nothing
    had happened: it forks, the child returns from here as the first process of the new PID namespace (number 1, so
    everything in the namespace ends with it), and the parent stays behind only to wait for it and to end with its exit
    code. Each of the two is killed when its own parent ends. File descriptors stay open in the child only. After
    it no file can be opened, `/dev/null` included: open what workers need before. The child must wait for orphans.

    Where root starts it, processes inside have the users of `limits.list_users`, by the same numbers as outside; the
    zygote takes the last one. An ordinary user stays who it is.

    Raises:
        LayerMissing: The machine does not allow it; the process is as it was, but for namespaces half entered.
    """
    try:
        users = limits.list_users()
        capabilities = _unshare(users[0], users[0], len(users))
        _empty_root()
    except OSError as error:
        raise LayerMissing("namespaces", describe_missing(error)) from error
    _continue_as_first_process(capabilities)


def describe_missing(error: OSError) -> str:
    """One line for namespaces that cannot be entered."""
    return (
        f"namespaces are missing ({error.strerror or error}): mode 'strict' does not work; allow user namespaces "
        "(kernel.unprivileged_userns_clone=1, user.max_user_namespaces > 0, no AppArmor restriction; in Docker "
        "--security-opt seccomp=unconfined), or set mode: default"
    )


def _unshare(uid: int, gid: int, count: int) -> tuple[int, ...]:
    """New namespaces; returns the capabilities inside that a zygote needs to give its workers users of their own."""
    if not limits.get_capabilities() & (1 << limits.CAP_SETUID):
        uid, gid = os.getuid(), os.getgid()
        _enter()
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
        return ()
    finish = _map_from_outside(os.getpid(), uid, gid, count)
    try:
        _enter()
    finally:
        status = finish()
    if status:
        raise OSError(status, os.strerror(status))
    last = count - 1
    os.setgroups([])
    os.setresgid(gid + last, gid + last, gid + last)
    os.setresuid(uid + last, uid + last, uid + last)
    return limits.CAP_KILL, limits.CAP_SETUID, limits.CAP_SETGID, limits.CAP_SETPCAP


def _enter() -> None:
    if libc().unshare(_NEW) != 0:
        raise failure("unshare")


def _map_from_outside(pid: int, uid: int, gid: int, count: int) -> Callable[[], int]:
    """Only somebody outside may give a user namespace many users: a child does, when the returned function is called.

    The function waits for it and returns its errno.
    """
    hears, tells = os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(tells)
        status = 0
        try:
            if os.read(hears, 1):
                _write(f"/proc/{pid}/uid_map", f"{uid} {uid} {count}")
                _write(f"/proc/{pid}/gid_map", f"{gid} {gid} {count}")
        except OSError as error:
            status = error.errno or 1
        finally:
            os._exit(status)
    os.close(hears)

    def finish() -> int:
        with suppress(BrokenPipeError):
            os.write(tells, b"1")
        os.close(tells)
        return os.waitstatus_to_exitcode(os.waitpid(helper, 0)[1])

    return finish


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)


def _mount(source: bytes | None, target: str, kind: bytes | None, flags: int, data: bytes | None = None) -> None:
    if libc().mount(source, target.encode(), kind, ctypes.c_ulong(flags), data) != 0:
        raise failure(f"mount {target}")


def _empty_root() -> None:
    """Replace the root of the file system by an empty folder that nobody can write to."""
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    place = next(place for place in _PLACES if Path(place).is_dir())
    _mount(b"tmpfs", place, b"tmpfs", _BARE, _TMPFS)
    os.chdir(place)
    os.mkdir("old", 0o700)  # noqa: PTH102 - relative to the folder it is in
    syscall("pivot_root", b".", b"old")
    os.chdir("/")
    if libc().umount2(b"/old", _DETACH) != 0:
        raise failure("umount2")
    os.rmdir("/old")  # noqa: PTH106 - beside the others
    _mount(None, "/", None, _REMOUNT | _READ_ONLY | _BARE, _TMPFS)


def _continue_as_first_process(capabilities: tuple[int, ...]) -> None:
    child = os.fork()
    if child == 0:
        limits.expect_parent_outside()
        limits.arm_parent_death()
        limits.keep_capabilities(*capabilities)
        return
    limits.arm_parent_death()  # the change of user cleared it
    os.closerange(0, 1 << 20)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(code if code >= 0 else 128 - code)
