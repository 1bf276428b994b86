"""Attacks of `trajsmith env probe --attack`, as text: they run in workers only.

Each is the body of a function of `info` (paths, ports and process ids that a thief would have to guess) that returns
what it got. Whether it did harm is judged outside, by `attack_suite`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ATTACKS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({
    "files": {
        "open a file": "return open(info['secret']).read()",
        "open by descriptor": "import os; n = os.open(info['secret'], 0); text = os.read(n, 99)\n"
        "os.close(n); return text",
        "list a folder": "import os; return 'did: %s' % os.listdir(info['folder'])",
        "read a link of /proc": "import os; return 'did: ' + os.readlink('/proc/self/exe')",
        "change a file": "open(info['victim'], 'w').write('x')",
        "make a file": "open(info['folder'] + '/new', 'w').write('x')",
        "remove a file": "import os; os.unlink(info['victim'])",
        "make a link": "import os; os.symlink(info['secret'], info['folder'] + '/link')",
        "change rights": "import os; os.chmod(info['victim'], 0o777)",
        "load a module of a path": "import sys; sys.path.insert(0, info['folder']); import thief; return thief.SECRET",
    },
    "keys": {
        "environment": "import os; return [value for value in os.environ.values() if value.startswith('secret-')]",
        "environment of another process": "return open('/proc/%d/environ' % info['holder']).read()",
        "map of the parent": "return 'did: map' * bool(open('/proc/%d/maps' % info['parent']).read())",
        "descriptors": "import os\nfor n in range(4, 1024):\n    try: found = os.pread(n, 99, 0)\n"
        "    except OSError: continue\n    if found.startswith(b'secret-'): return found",
    },
    "network": {
        "TCP": "import socket; socket.create_connection(('127.0.0.1', info['port']), 1).send(b'x')",
        "UDP": "import socket; socket.socket(2, 2).sendto(b'x', ('127.0.0.1', info['port']))",
        "socket file": "import socket; s = socket.socket(1, 1); s.connect(info['socket']); s.send(b'x')",
        "names": "import socket; return 'did: %s' % socket.getaddrinfo('localhost', 80)",
    },
    "processes": {
        "fork": "import os\npid = os.fork()\nif pid == 0:\n    import time\n    time.sleep(60)\nreturn 'did: fork'",
        "program": "import subprocess; return 'did: ' + subprocess.check_output(['/bin/echo', 'x']).decode()",
        "signal to the parent": "import os; os.kill(info['parent'], 0); return 'did: signal'",
        "new session": "import os; os.setsid(); return 'did: session'",
        "memory of the parent": "import ctypes; return ctypes.CDLL(None).process_vm_readv and "
        "open('/proc/%d/mem' % info['parent'], 'rb').fileno() and 'did: memory'",
        "priority": "import os; os.nice(5); return 'did: nice'",
        "raise a limit": "import resource as r; r.setrlimit(r.RLIMIT_NPROC, (9, 9)); return 'did: limit'",
    },
    "plays": {
        "global": "import builtins; builtins.open = None; import json; json.loads = lambda text: {'token': 'A'}",
        "library": "import keyword, copy; keyword.kwlist.append('x'); copy._deepcopy_dispatch.clear()",
        "collector": "import gc\nfor one in gc.get_objects():\n    if isinstance(one, dict) and 'token' in one:\n"
        "        one['token'] = 'A'",
        "frames": "import sys\nf = sys._getframe()\nwhile f:\n    f.f_globals.pop('json', None)\n    f = f.f_back",
        "channel": "import os; os.write(3, b'\\x05\\x00\\x00\\x00xxxxx'); return 'x'",
    },
    "parent": {
        "endless": "while True: pass",
        "endless, catching all": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "waits": "import threading; l = threading.Lock(); l.acquire(); l.acquire()",
        "ends": "import os; os._exit(3)",
        "kills itself": "import os; os.kill(os.getpid(), 9)",
        "stack": "def f(): return f()\nimport sys; sys.setrecursionlimit(10**9); f()",
        "memory": "kept = []\nwhile True: kept.append(bytes(1 << 24))",
        "huge result": "return 'x' * (64 << 20)",
        "many values": "return [[]] * (8 << 20)",
        "deep result": "found = []\nfor _ in range(100000): found = [found]\nreturn found",
        "no JSON": "return float('nan')",
        "huge number": "return 10 ** 400",
        "half a character": "return '\\ud800'",
        "terminal": "raise ValueError('\\x1b[2J' * 100 + '\\u202e')",
        "poses as an input error": "from trajsmith.records import InputError; raise InputError('forged')",
        "answers twice": "import os; os.write(3, b'\\x01\\x00\\x00\\x00\\x90' * 9); return 'x'",
        "announces a huge frame": "import os; os.write(3, b'\\xff\\xff\\xff\\x7f'); return 'x'",
    },
})  # fmt: skip
"""Bodies by class and name."""

LOADING: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    kind: tuple(name for name in ATTACKS[kind] if name != "fork")
    for kind in ("files", "keys", "network", "processes")
})  # fmt: skip
"""Names by class of the attacks that are made while the module loads, too; a fork would load it twice."""

ENVIRONMENT: Final = '''
from typing import Any
from trajsmith import Environment, EnvironmentState, tool

{functions}
LOADED = {loaded}

class LabState(EnvironmentState):
    token: str = ""


class Lab(Environment[LabState]):
    """A place where attacks are tried."""

    @classmethod
    def seed_state(cls, size: str, seed: int) -> LabState:
        return LabState(now="2025-01-01T00:00:00", token=size)

    @tool(effect="write")
    def act(self, name: str, info: dict[str, Any]) -> Any:
        """Attack."""
        return LOADED if name == "loaded" else {{"said": repr(ATTACKS[name](info))[:2000]}}

    @tool(effect="write")
    def act_bare(self, name: str, info: dict[str, Any]) -> Any:
        """Attack by the result."""
        return ATTACKS[name](info)

    @tool(effect="read")
    def get(self) -> str:
        """Tell whose play this is."""
        return self.state.token
'''


def write_environment(load_info: Mapping[str, object] | None = None) -> str:
    """Write the module of an environment whose tool makes the attacks.

    Args:
        load_info: Given, the attacks on the machine are made while the module loads, too.
    """
    bodies = {name: body for attacks in ATTACKS.values() for name, body in attacks.items()}
    parts = []
    for number, body in enumerate(bodies.values()):
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        parts.append(f"def attack_{number}(info):\n{lines}\n")
    table = ", ".join(f"{name!r}: attack_{number}" for number, name in enumerate(bodies))
    functions = "\n".join(parts) + f"\nATTACKS = {{{table}}}\n"
    loaded = "{}"
    if load_info is not None:
        functions += (
            "def attack_all(names, info):\n    found = {}\n    for name in names:\n        try:\n"
            "            found[name] = repr(ATTACKS[name](info))[:500]\n"
            "        except Exception as error:\n            found[name] = 'blocked: ' + type(error).__name__\n"
            "    return found\n"
        )
        names = [name for kind in LOADING.values() for name in kind]
        loaded = f"attack_all({names!r}, {dict(load_info)!r})"
    return ENVIRONMENT.format(functions=functions, loaded=loaded)
