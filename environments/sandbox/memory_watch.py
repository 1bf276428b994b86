"""A limit on the memory that all processes of an environment take together; each alone has its address space limited.

Counted is what a process has grown by since it was forked: what it shares with the worker that it comes from costs
nothing. Control groups would count better, and need rights that an ordinary user does not have.
"""

import asyncio
import os
from contextlib import suppress
from io import FileIO
from typing import Final

from trajsmith.environments.sandbox.connection import WorkerConnection

_PAGE = os.sysconf("SC_PAGE_SIZE")
_SECONDS: Final = 1.0
_SOON: Final = 0.2
"""Seconds between two looks, and those after a look that saw a quarter of the limit."""


class MemoryWatch:
    """Kills the largest process of an environment while all of them together take too much."""

    def __init__(self, limit: int) -> None:
        """Watch nothing yet; the limit is in bytes, and 0 stands for half of the machine's memory."""
        self._limit = limit or os.sysconf("SC_PHYS_PAGES") * _PAGE // 2
        self._first: dict[WorkerConnection, tuple[int, int]] = {}
        """Number of each process, and the bytes that it had when it was forked."""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, connection: WorkerConnection, pid: int) -> None:
        """Watch a process, by its number here, until it ends."""
        self._first[connection] = pid, read_memory(pid)
        connection.on_end(lambda: self._first.pop(connection, None))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SECONDS, self._look)

    def _look(self) -> None:
        self._timer = None
        grown = {connection: read_memory(pid) - first for connection, (pid, first) in self._first.items()}
        total = sum(size for size in grown.values() if size > 0)
        near = total > self._limit // 4
        for connection in sorted(grown, key=lambda one: -grown[one]):
            if total <= self._limit:
                break
            total -= max(grown[connection], 0)
            connection.kill(f"its environment took more than {self._limit >> 20} MB in all its processes", "limit")
        if self._first:
            self._timer = asyncio.get_running_loop().call_later(_SOON if near else _SECONDS, self._look)


def read_memory(pid: int) -> int:
    """Return the bytes of memory of a process that no file backs; 0 if it is gone."""
    with suppress(OSError, ValueError, IndexError):
        with FileIO(f"/proc/{pid}/statm") as file:
            _, resident, shared, *_ = file.read(256).split()
        return (int(resident) - int(shared)) * _PAGE
    return 0
