"""An environment whose code takes over its worker while it loads: it answers the parent as it likes.

`EVIL` is its source. `REPLIES` and `CHANGES` name what a play does to its parent when `act(how)` is called, and at the
next look at its state. Data of `test_boundary.py`.
"""

SYSCALL = """
import sys
frame_ = sys._getframe()
while "lockdown" not in frame_.f_globals:
    frame_ = frame_.f_back
ctypes = frame_.f_globals["lockdown"].ctypes
libc = ctypes.CDLL(None)
"""
"""Finds the C library, whose module is hidden."""

EVIL = (
    SYSCALL
    + r'''
import os, struct
from datetime import datetime

import msgspec

from trajsmith import Environment, EnvironmentState, tool

encode = msgspec.msgpack.encode


class EvilState(EnvironmentState):
    token: str = "?"
    counter: int = 0


class Evil(Environment[EvilState]):
    """An environment that is not what it seems."""

    @classmethod
    def seed_state(cls, size: str, seed: int) -> EvilState:
        return EvilState(now=datetime(2026, 1, 1), seed=seed)

    @tool(effect="read")
    def get(self) -> dict:
        """Look."""
        return {"token": self.state.token, "counter": self.state.counter}

    @tool(effect="write")
    def add(self, number: int) -> dict:
        """Count."""
        self.state.counter += number
        return {"counter": self.state.counter}

    @tool(effect="write")
    def act(self, how: str) -> dict:
        """Attack."""
        return {"done": how}


def frame(body):
    return struct.pack("<I", len(body)) + body


def write(data):
    view = memoryview(data)
    while view:
        view = view[os.write(3, view):]


def raw(data, end=False):
    """Bytes in place of an answer."""
    write(data)
    while not end:
        pass
    os._exit(0)


def ok(rid, content=b"1"):
    return [rid, 0, content]


def fault(*content):
    return lambda rid: [rid, 4, encode(content[0] if len(content) == 1 else list(content))]


def drip(rid):
    write(b"\x40\x00\x00\x00")
    for _ in range(10**9):
        if _ % 50_000 == 0 and _ < 2_000_000:
            os.write(3, b"x")


def bomb(call):
    def go(rid):
        while True:
            call(libc)
    return go


def fork_often(rid):
    while True:
        try:
            if os.fork() == 0:
                os._exit(0)
        except OSError:
            pass


def memory(size):
    def go(rid):
        KEPT.append(bytearray(size))
        return ok(rid, b'{"done": "kept"}')
    return go


def second_channel(rid):
    return ok(rid, b'{"done": %d}' % libc.syscall(438, 0, 0, 0))


KEPT = []
NEST = lambda depth: b"[" * depth + b"]" * depth
REPLIES = {
    "content int": lambda rid: [rid, 0, 5],
    "content none": lambda rid: [rid, 0, None],
    "content text": lambda rid: [rid, 0, "{}"],
    "content list": lambda rid: [rid, 0, [1, 2]],
    "content map": lambda rid: [rid, 0, {"a": 1}],
    "content float": lambda rid: [rid, 0, 1.5],
    "content bool": lambda rid: [rid, 0, True],
    "content huge int": lambda rid: [rid, 0, 2**64 - 1],
    "content extension": lambda rid: [rid, 0, msgspec.msgpack.Ext(5, b"abc")],
    "content timestamp": lambda rid: [rid, 0, datetime(2020, 1, 1)],
    "content many lists": lambda rid: [rid, 0, [[]] * 500_000],
    "status 99": lambda rid: [rid, 99, b"1"],
    "status 6": lambda rid: [rid, 6, encode("seccomp is missing")],
    "status of files": lambda rid: [rid, 5, encode("not mine")],
    "status negative": lambda rid: [rid, -1, b"1"],
    "status huge": lambda rid: [rid, 2**64 - 1, b"1"],
    "status none": lambda rid: [rid, None, b"1"],
    "status text": lambda rid: [rid, "0", b"1"],
    "status list": lambda rid: [rid, [0], b"1"],
    "id of another": lambda rid: [rid ^ 1, 0, b"1"],
    "id negative": lambda rid: [-rid, 0, b"1"],
    "id text": lambda rid: [str(rid), 0, b"1"],
    "id none": lambda rid: [None, 0, b"1"],
    "one element more": lambda rid: [rid, 0, b"1", 1],
    "one element less": lambda rid: [rid, 0],
    "no list": lambda rid: 5,
    "a map": lambda rid: {"id": rid},
    "json broken": lambda rid: ok(rid, b'{"a": '),
    "json empty": lambda rid: ok(rid, b""),
    "json nan": lambda rid: ok(rid, b"NaN"),
    "json two": lambda rid: ok(rid, b"1 2"),
    "json surrogate": lambda rid: ok(rid, b'"\\ud800"'),
    "json bytes": lambda rid: ok(rid, b'"\xff\xfe"'),
    "json zero byte": lambda rid: ok(rid, b'{"a": \x00}'),
    "json 101 deep": lambda rid: ok(rid, NEST(101)),
    "json 1000 deep": lambda rid: ok(rid, NEST(1000)),
    "json 100000 deep": lambda rid: ok(rid, NEST(100_000)),
    "json deep objects": lambda rid: ok(rid, b'{"a":' * 300 + b"1" + b"}" * 300),
    "json many lists": lambda rid: ok(rid, b"[" + b"[]," * 300_000 + b"[]]"),
    "json many numbers": lambda rid: ok(rid, b"[" + b"0," * 500_000 + b"0]"),
    "json many objects": lambda rid: ok(rid, b"[" + b"{}," * 300_000 + b"{}]"),
    "json many keys": lambda rid: ok(rid, b"{" + b",".join(b'"%d":1' % n for n in range(90_000)) + b"}"),
    "json one byte too large": lambda rid: ok(rid, b'"' + b"x" * (1 << 20) + b'"'),
    "json wrote broken": lambda rid: [rid, 7, b"{"],
    "json refused broken": lambda rid: [rid, 1, b"{"],
    "fault int": fault(5),
    "fault map": fault({"kind": "crash"}),
    "fault short": fault("crash", "x"),
    "fault kind int": fault(5, "x", None),
    "fault kind unknown": fault("bad_luck", "x", None),
    "fault of trajsmith": fault("recycled", "x", None),
    "fault quarantine": fault("quarantine", "x", None),
    "fault message int": fault("crash", 5, None),
    "fault message long": fault("crash", "x" * 100_000, None),
    "fault tool int": fault("crash", "x", 5),
    "fault tool long": fault("crash", "x", "y" * 10_000),
    "fault surrogate": lambda rid: [rid, 4, b"\x93\xa5crash\xa3\xed\xa0\x80\xc0"],
    "fault empty": lambda rid: [rid, 4, b""],
    "frame empty": lambda rid: raw(frame(b"")),
    "frame no replies": lambda rid: raw(frame(b"\x90")),
    "frame two replies": lambda rid: raw(frame(encode([ok(rid), ok(rid)]))),
    "frame 300 replies": lambda rid: raw(frame(encode([ok(rid)] * 300))),
    "frame of a giant": lambda rid: raw(b"\xff\xff\xff\xff" + b"x" * 1000),
    "frame says 64 MB": lambda rid: raw(struct.pack("<I", 64 << 20)),
    "frame of 16 MB of lists": lambda rid: raw(frame(b"\xdd\x00\xff\xff\xff" + b"\x90" * (16 << 20))),
    "frame of 1 MB of lists": lambda rid: raw(frame(b"\xdd\x00\x0f\xff\xff" + b"\x90" * 1_000_000)),
    "frame nests": lambda rid: raw(frame(b"\x91" * 1_000_000)),
    "frame says many": lambda rid: raw(frame(b"\xdd\xff\xff\xff\xff")),
    "frame garbage": lambda rid: raw(frame(b"\xc1\xc1\xc1")),
    "frame twice": lambda rid: raw(frame(encode([ok(rid)])) * 2),
    "frame and a byte": lambda rid: raw(frame(encode([ok(rid, b'{"done": "x"}')])) + b"x"),
    "frame and more in it": lambda rid: raw(frame(encode([ok(rid)]) + b"\x00")),
    "frame half, then the end": lambda rid: raw(b"\x10\x00\x00\x00abc", True),
    "frame half, then nothing": lambda rid: raw(b"\x10\x00\x00\x00abc"),
    "header half, then nothing": lambda rid: raw(b"\x10\x00"),
    "nothing": lambda rid: raw(b""),
    "the end": lambda rid: raw(b"", True),
    "bytes for ever": lambda rid: [write(b"\x01\x00\x00\x00\x90" * 10_000) for _ in iter(int, 1)],
    "a large frame for ever": lambda rid: [write(b"\xff\xff\x0f\x00"), *(write(b"x" * 65536) for _ in iter(int, 1))],
    "drip": drip,
    "forks for ever": fork_often,
    "threads for ever": bomb(lambda libc: libc.syscall(56, 0x3D0F00, 0, 0, 0, 0)),
    "asks for channels for ever": bomb(lambda libc: libc.syscall(438, 0, 0, 0)),
    "a second channel": second_channel,
    "keeps memory": memory(64 << 20),
    "more memory than it may": memory(2 << 30),
}
CHANGES = {
    "changes int": 5,
    "changes of ints": [1, 2],
    "changes short": [["token", None]],
    "changes name int": [[5, None, b"1"]],
    "changes key int": [["token", 5, b"1"]],
    "changes text int": [["token", None, 5]],
    "changes broken json": [["token", None, b'{"a": ']],
    "changes deep json": [["token", None, NEST(500)]],
    "changes of an entry of no object": [["token", "a", b"1"]],
    "changes of an entry broken": [["token", None, b"{}"], ["token", "a", b"{"]],
    "changes with a surrogate": [["token", None, b'"\\ud800"']],
    "changes many": [["a", None, None]] * 1_000_000,
    "changes of many values": [["token", None, b"[" + b"0," * 2_000_000 + b"0]"]],
}

Server = next(one for one in object.__subclasses__() if one.__name__ == "WorkerServer")
ORIGINAL = Server._answer
NEXT = []


def answer(self, request):
    rid, operation = request[0], request[1]
    if operation == 0 and request[3] == "act":
        how = request[4]["how"]
        self._timer._set = lambda *_: None  # no timer from now on
        __import__("signal").setitimer(2, 0)
        if how in REPLIES:
            return REPLIES[how](rid)
        NEXT.append(how)
    if operation == 2 and NEXT:
        return [rid, 0, encode(CHANGES[NEXT[0]])]
    return ORIGINAL(self, request)


Server._answer = answer
'''
)

_space: dict[str, dict[str, object]] = {}
_tables = EVIL[EVIL.index("def frame(body)") : EVIL.index("Server = next(")]
exec(
    "import os, struct\nfrom datetime import datetime\nimport msgspec\nencode = msgspec.msgpack.encode\n" + _tables,
    _space,
)
REPLIES = list(_space["REPLIES"])
CHANGES = list(_space["CHANGES"])
STALLS = {"frame half, then nothing", "header half, then nothing", "nothing", "drip"}
"""Attacks that end at the wall limit; `drip` sends something meanwhile."""
HARMLESS = {"a second channel", "keeps memory", "frame twice", "frame and a byte"}
"""Attacks that reach nothing: a whole answer counts, and what comes after it ends the process."""

LOADS = {
    "spec int": "encode([5, []])",
    "spec no json": "encode([b'{', []])",
    "spec no spec": "encode([b'{}', []])",
    "spec of a list": "encode([b'[1]', []])",
    "spec deep": "encode([b'[' * 5000 + b']' * 5000, []])",
    "spec of many values": "encode([b'[' + b'[],' * 2_000_000 + b'[]]', []])",
    "spec of 64 MB": "encode([b' ' * (64 << 20), []])",
    "notes int": "encode([b'{}', 5])",
    "notes of ints": "encode([b'{}', [5]])",
    "notes many": "encode([b'{}', ['x'] * 100_000])",
    "nothing": "b''",
    "text": "'x'",
    "schema of the state that is none": "described(program, state_schema={'type': 5})",
    "pattern that is none": "described(program, state_schema={'pattern': '(' * 900 + ')' * 900})",
    "schema of a tool that is none": "described(program, {'inputSchema': {'properties': [1]}})",
    "result of a tool that is none": "described(program, {'outputSchema': {'items': 5}})",
}
"""Answers to the request to load."""
LOAD = """
import sys, msgspec, orjson
encode, frame_ = msgspec.msgpack.encode, sys._getframe()
def described(program, tool=(), **changes):
    spec = {**program.spec.model_dump(mode="json", exclude_none=True), **changes}
    spec["tools"][0].update(tool)
    return encode([orjson.dumps(spec), []])
while frame_:
    if "_loaded" in frame_.f_globals:
        frame_.f_globals["describe_spec"] = lambda program: CONTENT
    frame_ = frame_.f_back
"""
"""Puts one of `LOADS`, in place of CONTENT, where the worker describes the environment."""

LAB = '''
from datetime import datetime
from trajsmith import Environment, EnvironmentState, tool
LOADED
class LabState(EnvironmentState):
    token: str = ""
class Lab(Environment[LabState]):
    """A lab."""
    @classmethod
    def seed_state(cls, size: str, seed: int) -> LabState:
        return LabState(now=datetime(2026, 1, 1), seed=seed)
    @tool(effect="read")
    def act(self) -> int:
        """Act."""
        try:
            BODY
        except OSError:
            return 1
'''
SHARING = {
    "shared memory made at load": (
        SYSCALL + "libc.mmap.restype = ctypes.c_void_p\nPLACE = libc.mmap(None, 4096, 3, 0x21, -1, 0)",
        "return 1 if PLACE in (None, 2**64 - 1) else 2",
    ),
    "shared memory by mremap": (
        SYSCALL + "libc.mremap.restype = ctypes.c_void_p\nPLACE = libc.mremap(id(libc) & ~4095, 0, 4096, 1)",
        "return 1 if PLACE in (None, 2**64 - 1) else 2",
    ),
    "pipe made at load": (SYSCALL + "MADE = libc.pipe(bytes(8))", "return -MADE"),
    "socket pair made at load": (SYSCALL + "MADE = libc.socketpair(1, 1, 0, bytes(8))", "return -MADE"),
    "memory file made at load": (SYSCALL + "MADE = libc.memfd_create(b'x', 0)", "return -MADE"),
    "queue of messages made at load": (SYSCALL + "MADE = libc.msgget(0, 0o1777)", "return -MADE"),
    "shared memory of System V": (SYSCALL + "MADE = libc.shmget(0, 4096, 0o1777)", "return -MADE"),
    "event descriptor made at load": (SYSCALL + "MADE = libc.eventfd(0, 0)", "return -MADE"),
    "copy of the worker's channel": (SYSCALL + "MADE = libc.dup(3)", "return -MADE"),
    "copy of the worker's channel by fcntl": (SYSCALL + "MADE = libc.fcntl(3, 0, 9)", "return -MADE"),
    "write below the channel": (SYSCALL, "return -max(libc.write(n, b'x', 1) for n in range(4, 16))"),
    "fork made at load": (SYSCALL + "MADE = libc.fork()\nif MADE == 0:\n    libc._exit(0)", "return -MADE"),
    "channel asked for at load": (SYSCALL + "MADE = libc.syscall(438, 0, 0, 0)", "return -MADE"),
    "counter of the module": ("COUNT = [0]", "COUNT[0] += 1; return COUNT[0]"),
    "counter of a library": ("import keyword", "keyword.kwlist.append('x'); return keyword.kwlist.count('x')"),
    "fields of a library class": (
        "import pydantic",
        "pydantic.BaseModel.seen = getattr(pydantic.BaseModel, 'seen', 0) + 1; return pydantic.BaseModel.seen",
    ),
    "handlers of a logger": (
        "import logging", "logging.getLogger('x').addFilter(len); return len(logging.getLogger('x').filters)"
    ),
    "modules of the interpreter": (
        "import sys",
        "sys.modules[f's{len(sys.modules)}'] = sys; return sum(n[:1] == 's' and n[1:].isdigit() for n in sys.modules)",
    ),
    "builtins": ("import builtins", "builtins.seen = getattr(builtins, 'seen', 0) + 1; return builtins.seen"),
    "environment variables": (
        "import os", "os.environ._data[b'SEEN'] = os.environ._data.get(b'SEEN', b'') + b'x'; "
        "return len(os.environ._data[b'SEEN'])",
    ),
    "a default": ("def count(seen=[]):\n    seen.append(1)\n    return len(seen)", "return count()"),
    "chance made at load": (
        "import random\nCHANCE = random.Random(1)\nFIRST = random.Random(1).random()",
        "return 1 if CHANCE.random() == FIRST else 2",
    ),
    "a decimal context": ("import decimal", "decimal.getcontext().prec += 1; return decimal.getcontext().prec - 28"),
    "offset of a descriptor": (SYSCALL, "return -libc.lseek(1, 5, 1)"),
    "flags of a descriptor": (SYSCALL, "return -libc.fcntl(1, 4, 2048)"),
    "lock of a descriptor": (SYSCALL, "return -libc.flock(1, 2)"),
    "a signal to all": (SYSCALL, "return -max(libc.kill(-1, 9), libc.kill(0, 9))"),
    "a signal to the worker": (SYSCALL, "return -libc.kill(libc.getppid(), 9)"),
    "another process group": (SYSCALL, "return -max(libc.setpgid(0, 0), libc.setsid())"),
    "memory of the worker": (SYSCALL, "return -libc.process_vm_readv(libc.getppid(), 0, 0, 0, 0, 0)"),
    "not ending with its parent": (SYSCALL, "return -libc.prctl(1, 0, 0, 0, 0)"),
    "no limit of CPU time": (SYSCALL, "return -libc.setrlimit(0, bytes(16))"),
    "priority of others": (SYSCALL, "return -libc.setpriority(0, 0, 19)"),
    "waiting for the children of the worker": (SYSCALL, "return -libc.waitpid(-1, None, 1)"),
}  # fmt: skip
"""Code when the file loads, and the body of `act`, which returns 1 where it reaches nothing of other plays."""


def sharing_source(name: str) -> str:
    """An environment that tries one of `SHARING`."""
    load, body = SHARING[name]
    return LAB.replace("LOADED", load).replace("BODY", body)
