"""What is done before plays are forked, so that each of them writes to fewer pages of memory.

A play shares the memory of the process that it is forked from, and the kernel copies each page that it writes to.
Python writes where it only reads: counts of references, caches of attributes, specialised code. And `malloc` hands out
what became free between older objects, from all over its memory. Each page costs 3 us.
"""

import ctypes
import socket
from datetime import datetime

import msgspec
import orjson

from trajsmith.environments.native import Environment, EnvironmentState, StateModel, tool
from trajsmith.environments.native_program import NativeProgram
from trajsmith.environments.sandbox.serialization import Request, WorkerOp, make_sender, split_words
from trajsmith.environments.sandbox.serve import RequestLimits, Timer, WorkerServer
from trajsmith.environments.sandbox.syscalls import libc
from trajsmith.environments.sandbox.virtual import VirtualSources

_ROUNDS = 10
"""Python specialises a function after eight calls."""
_LIMITS = RequestLimits(call_seconds=60.0, load_seconds=60.0, result_bytes=1 << 20, state_bytes=1 << 20, shift=0)
_CHUNK_SIZES = (*(1 << bits for bits in range(16, 10, -1)), *range(1016, 16, -16))
"""Bytes, the largest first: what is left of a chunk is taken by a smaller one."""
_MOST_FREE = 16 << 20
"""Free bytes beyond which they are left to the plays: they are more than what is saved."""


class _MallocInfo(ctypes.Structure):
    """Result of glibc's `mallinfo2`; see mallinfo(3)."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in split_words("arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost")
    ]


class _Row(StateModel):
    row_id: str
    count: int
    texts: list[str] = []


class _State(EnvironmentState):
    rows: dict[str, _Row]


class _Rows(Environment[_State]):
    """Rows."""

    @tool(effect="read")
    def read_row(self, row_id: str) -> _Row:
        """Read a row."""
        return self.lookup(self.state.rows, row_id, "row")

    @tool(effect="write")
    def write_row(self, row_id: str, count: int) -> _Row:
        """Change a row."""
        row = self.lookup(self.state.rows, row_id, "row")
        row.count = count
        return row


def serve_trial_plays(world: VirtualSources) -> None:
    """Serve a few plays of an environment of our own: what a server does in every play has then been done before."""
    timer = Timer()
    server = WorkerServer(NativeProgram(_Rows), _LIMITS, timer, world, lambda on: None)
    state = _State(now=datetime(2026, 1, 1), seed=1, rows={key: _Row(row_id=key, count=1) for key in ("a", "b")})
    base, encode = orjson.dumps(state.model_dump(mode="json")), msgspec.msgpack.encode
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send = make_sender(ours.fileno())
        for play in range(_ROUNDS):
            writes = {"row_id": "b", "count": play}
            calls = [("read_row", {"row_id": "a"}), ("read_row", {"row_id": "c"}), ("write_row", writes)]
            requests: list[Request] = [[0, WorkerOp.BASE, "base", base], [0, WorkerOp.START, play, "base", []]]
            requests += [[0, WorkerOp.CALL, play, name, arguments, "assistant", 1] for name, arguments in calls]
            requests += [[0, WorkerOp.CHANGES, play], [0, WorkerOp.END, play], [0, WorkerOp.DROP, "base"]]
            for request in requests:
                send(encode([request]))
        ours.shutdown(socket.SHUT_WR)
        server.run(theirs.fileno())
    timer.disarm()  # nobody handles its signal here, which would end this process


def fill_free_chunks() -> None:
    """Take what `malloc` has free between older objects, so that plays get their memory from one place at its end.

    Does nothing where the C library is not glibc, or where much is free.
    """
    library = libc()
    try:
        count_memory = library.mallinfo2
    except AttributeError:  # another C library, or glibc before 2.33
        return
    count_memory.restype = _MallocInfo
    allocate, move_end = library.malloc, library.sbrk
    allocate.restype, allocate.argtypes = ctypes.c_size_t, [ctypes.c_size_t]
    move_end.restype, move_end.argtypes = ctypes.c_size_t, [ctypes.c_ssize_t]
    memory = count_memory()
    if memory.fordblks - memory.keepcost > _MOST_FREE:
        return
    last = move_end(0) - memory.keepcost
    for size in _CHUNK_SIZES:
        while 0 < allocate(size) < last:  # it is never given back
            pass
