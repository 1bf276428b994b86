"""The lock of the only writer of a file: the kernel's, or where that reaches no other machine, a file with its name.

File systems of a network may have no `flock`, or one that other machines do not see. There a file is made that must not
be there yet (`O_EXCL`, which NFS guarantees since version 3). It says which process of which machine writes. What a
process of this machine left behind when it was killed is removed; what one of another machine left, only its user can.
"""

import errno
import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trajsmith.records.canonical import hash_bytes
from trajsmith.records.errors import RunError
from trajsmith.records.links import open_no_follow

_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})
_MOUNTS = Path("/proc/self/mountinfo")
_LOCAL = {"nfs": ("nolock", "local_lock=all", "local_lock=flock"), "nfs4": ("local_lock=all", "local_lock=flock"),
          "lustre": ("localflock",)}  # fmt: skip
"""File systems to the options with which their locks hold on one machine only."""
_ALWAYS_LOCAL = frozenset({"fuse.sshfs", "9p"})


class WriterLock:
    """Lock of one file that is open. It ends when it is released, or with the process.

    Args:
        handle: Descriptor of the file.
        owner: File that names the writer where the kernel's lock is not enough.
        subject: What is written, for messages.

    Raises:
        RunError: Somebody else has it; the text says who.
        OSError: It cannot be had for another reason.
    """

    def __init__(self, handle: int, owner: Path, subject: Path) -> None:
        self._owner = owner
        self._subject = subject
        self._text = ""
        shared = not has_local_locks(owner)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                holder = os.pread(handle, 256, 0).decode(errors="replace").strip()
                raise self._taken(holder if holder.isdigit() else "") from error
            if error.errno not in _NO_LOCKS:
                raise
            shared = False
        if not shared or owner.exists():
            self._make_owner_file()

    def release(self) -> None:
        """Remove the file that names the writer; the kernel's lock ends with the descriptor."""
        with suppress(OSError):
            if self._text and self._owner.read_text() == self._text:
                self._owner.unlink()

    def _make_owner_file(self) -> None:
        text = f"{os.getpid()} {read_start_time(os.getpid())} {socket.gethostname()}\n"
        while True:
            try:
                handle = open_no_follow(self._owner, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            except FileExistsError:
                self._remove_leftover()
                continue
            try:
                os.write(handle, text.encode())
                os.fsync(handle)
            finally:
                os.close(handle)
            self._text = text
            return

    def _remove_leftover(self) -> None:
        """Remove the file of a process of this machine that is gone.

        Raises:
            RunError: It is not gone, or is of another machine.
        """
        with _alone(self._owner):
            try:
                process, started, host = self._owner.read_text().split()
                now = read_start_time(int(process))
            except FileNotFoundError:
                return
            except ValueError:
                process, started, now, host = "", "", "", "another machine"
            if host != socket.gethostname():
                raise self._taken(process, host)
            if now == started:
                raise self._taken(process)
            self._owner.unlink(missing_ok=True)

    def _taken(self, process: str, host: str = "") -> RunError:
        writer = (f"process {process}" if process else "another process") + (f" on {host}" if host else "")
        gone = f"; if it is gone, remove {self._owner}" if host else ""
        return RunError(f"{self._subject} is being written by {writer}: wait for it, or stop it{gone}")


@contextmanager
def _alone(owner: Path) -> Iterator[None]:
    """Keep other processes of this machine from removing the same leftover."""
    name = f"trajsmith-{os.getuid()}-{hash_bytes(os.fsencode(owner.absolute()), 16)}.lock"
    handle = open_no_follow(Path(tempfile.gettempdir()) / name, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def read_start_time(process: int) -> str:
    """Return when a process started, in ticks of its machine; "0" where that is not known, "" if there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return ""
    with suppress(OSError):
        os.kill(process, 0)
        return "0"
    return ""


def has_local_locks(path: Path, mounts: Path = _MOUNTS) -> bool:
    """Return whether locks of a path's file system are known to hold on this machine only."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return False
    place, best = path.absolute(), ("", "", "")
    for line in lines:
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        point = before.split()[4].replace("\\040", " ")
        if place.is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind, options)
    _, kind, options = best
    return kind in _ALWAYS_LOCAL or bool(set(options.split(",")) & set(_LOCAL.get(kind, ())))
