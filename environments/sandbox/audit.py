"""An audit hook (PEP 578) that keeps code in a worker from looking into the worker itself.

It is no boundary to the host - the kernel layers are. It guards the results of *other plays of the same worker*: no
frames, no garbage collector, no tracing, no replaced code, no way to the channel.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any

from trajsmith.environments.sandbox.serialization import split_words

_PREFIXES = split_words("""
    _thread. builtins.breakpoint builtins.input code. cpython. ctypes. fcntl. ftplib. gc. glob. http. imaplib.
    marshal. mmap. msvcrt. nntplib. os. pathlib. pickle. poplib. pty. resource. setopencodehook shutil. signal.
    smtplib. socket. sqlite3. subprocess. sys._ sys.addaudithook sys.excepthook sys.set sys.unraisablehook syslog.
    tempfile. telnetlib. urllib. webbrowser. winreg.
""")
_EVENTS = frozenset({
    "compile", "exec", "function.__new__", "object.__delattr__", "object.__getattr__", "object.__setattr__", "open",
})  # fmt: skip


def install(modules: Iterable[str], allowed: Iterable[str] = ()) -> Callable[[bool], None]:
    """Install the hook, asleep; the returned function wakes it or puts it to sleep.

    Args:
        modules: What foreign code may import: what the zygote has imported.
        allowed: Events that this kind of program needs although they are on the list.
    """
    importable = frozenset(modules)
    exempt = frozenset(allowed)
    awake = [False]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if not awake[0]:
            return
        if event == "import":
            if arguments[0] not in importable:
                raise ImportError(f"module {arguments[0]} is not there in the sandbox; the setting `imports` adds it")
        elif (event in _EVENTS or event.startswith(_PREFIXES)) and event not in exempt:
            raise PermissionError(f"the sandbox does not allow {event}")

    sys.addaudithook(hook)

    def wake(on: bool) -> None:
        awake[0] = on

    return wake
