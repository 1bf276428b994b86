"""What attacks are after, and what of it was touched. Made by the process that is attacked: the workers' parent."""

import ctypes
import os
import resource
import secrets
import shutil
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from attacks.syscall_numbers import numbers

KEY = "TRAJSMITH_CANARY_API_KEY"
"""The variable that holds the secret; it must be in the environment when the process starts."""
_SUBREAPER = 36
_SUSPICIOUS = ("socket:", "anon_inode:", "/memfd:", "pipe:")


class World:
    """Canaries, listeners and secrets of one process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secret = os.environ[KEY]
        self._memory = ctypes.create_string_buffer(f"{self.secret}-memory".encode(), 256)
        self._signals: list[int] = []
        self._processors = os.sched_getaffinity(0)
        self._niceness = os.getpriority(os.PRIO_PROCESS, 0)
        self._listeners = self._listen()
        self.port = self._listeners["tcp"].getsockname()[1]
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGIO, signal.SIGURG, signal.SIGWINCH, signal.SIGHUP):
            signal.signal(number, lambda number, _: self._signals.append(number))
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)  # nothing that was started can hide behind init
        self.leak = os.open(folder / "leak", os.O_CREAT | os.O_RDWR, 0o644)
        os.write(self.leak, f"{self.secret}-descriptor".encode())
        os.set_inheritable(self.leak, True)
        if os.geteuid() == 0 and (program := shutil.which("id")):  # a program that tells as whom it runs
            shutil.copy(program, folder / "id")
            (folder / "id").chmod(0o4755)
        self._kept = {path.name for path in folder.iterdir()}
        self.reset()

    def _listen(self) -> dict[str, socket.socket]:
        tcp, udp, abstract, path = (
            socket.socket(),
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
            socket.socket(socket.AF_UNIX),
            socket.socket(socket.AF_UNIX),
        )
        tcp.bind(("127.0.0.1", 0))
        udp.bind(tcp.getsockname())
        abstract.bind(f"\0canary-{os.getpid()}")
        path.bind(str(self.folder / "sock"))
        (self.folder / "sock").chmod(0o777)
        for listener in (tcp, abstract, path):
            listener.listen(20)
        found = {"tcp": tcp, "udp": udp, "abstract": abstract, "path": path}
        for listener in found.values():
            listener.setblocking(False)
        return found

    def info(self) -> dict[str, Any]:
        """What attacks are told."""
        size = (self.folder / "sized").stat().st_size
        assert size == self.size
        return {
            "dir": str(self.folder), "port": self.port, "parent": os.getpid(), "leak": self.leak,
            "address": ctypes.addressof(self._memory), "abstract": f"canary-{os.getpid()}", "nr": numbers(),
        }  # fmt: skip

    def reset(self) -> None:
        """Put the canaries where they belong."""
        os.sched_setaffinity(0, self._processors)
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            os.setpriority(os.PRIO_PROCESS, 0, self._niceness)
        for path in self.folder.iterdir():
            if path.name not in self._kept and path.name != "mount":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        self.folder.chmod(0o777)
        self.size = 1000 + secrets.randbelow(9000)
        for name, text, mode in (
            ("secret.txt", f"{self.secret}-file", 0o644),
            ("victim.txt", "untouched", 0o666),
            ("sized", "s" * self.size, 0o644),
        ):
            path = self.folder / name
            path.write_text(text)
            path.chmod(mode)
        (self.folder / "mount").mkdir(exist_ok=True)
        (self.folder / "mount").chmod(0o777)
        self._limits = self._settings()
        self._signals.clear()
        self._called()

    def _settings(self) -> tuple[object, ...]:
        """What somebody else could change about this process."""
        return (
            os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0), os.sched_getscheduler(0), Path.cwd(),
            [resource.getrlimit(name) for name in range(16)], socket.gethostname(),
            Path("/proc/self/oom_score_adj").read_text(), self._memory.value,
        )  # fmt: skip

    def _called(self) -> list[str]:
        found: list[str] = []
        for name, listener in self._listeners.items():
            with suppress(BlockingIOError):
                while True:
                    if name == "udp":
                        listener.recv(100)
                    else:
                        listener.accept()[0].close()
                    found.append(f"the {name} listener was called")
        return found

    def evidence(self) -> list[str]:
        """What was touched since the last reset."""
        found = self._called()
        victim = self.folder / "victim.txt"
        if not victim.exists() or victim.read_text() != "untouched" or victim.stat().st_mode & 0o777 != 0o666:
            found.append("the victim file was changed")
        expected = self._kept | {"secret.txt", "victim.txt", "sized", "mount"}
        for name in sorted({path.name for path in self.folder.iterdir()} ^ expected):
            found.append(f"the folder was changed: {name}")
        if (self.folder / "mount").is_mount():
            found.append("something was mounted")
        if self._settings() != self._limits:
            found.append("the parent's settings were changed")
        found += [f"the parent got signal {number}" for number in self._signals]
        return found

    def stolen(self, reply: str) -> list[str]:
        """Secrets in a reply."""
        found = ["a secret is in the reply"] if self.secret in reply else []
        if f"size={self.size}" in reply:
            found.append("the size of a file is in the reply")
        return found


def look(pid: int, memory: int) -> set[str]:
    """What can be seen of a process from outside; nothing where this user may not look."""
    root = Path("/proc") / str(pid)
    found: set[str] = set()
    with suppress(OSError, KeyError):
        fields = (root / "stat").read_text().rpartition(")")[2].split()
        found.add(f"its niceness is {fields[16]}")
        status = dict(line.split(":\t", 1) for line in (root / "status").read_text().splitlines() if ":\t" in line)
        found |= {f"its {name} is {status[name]}" for name in ("Cpus_allowed", "Threads", "CapEff", "Uid", "SigIgn")}
        if int(status["VmPeak"].split()[0]) << 10 > memory:
            found.add("it took more memory than it may")
        found.add(f"its limits are {(root / 'limits').read_text()}")
        found |= {f"its namespace is {entry.readlink()}" for entry in (root / "ns").iterdir()}
        found.add(f"its personality is {(root / 'personality').read_text()}")
        for entry in (root / "fd").iterdir():
            target = str(entry.readlink())
            if int(entry.name) > 3 and target.startswith(_SUSPICIOUS):
                found.add(f"it holds {target.split('[')[0]} as {entry.name}")
        for line in (root / "maps").read_text().splitlines():
            fields = line.split()
            if "x" in fields[1] and ("w" in fields[1] or len(fields) == 5):
                found.add("it has memory that it may have written and can execute")
    return found


def offspring(pid: int) -> set[int]:
    """All processes below one."""
    found: set[int] = set()
    with suppress(OSError):
        for task in (Path("/proc") / str(pid) / "task").iterdir():
            for child in (task / "children").read_text().split():
                found |= {int(child)} | offspring(int(child))
    return found
