"""Providers: what starts the process that workers are forked from, and what it puts around it.

The extension point `trajsmith.sandbox_providers`. A provider gets the command of the zygote and returns the one that
is run in its place; the descriptor in it must stay open. The layers of the mode come on top, inside. What stands around
the whole of trajsmith (a container, gVisor, another machine) needs no provider; docs/sandbox.md has them all.
"""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from trajsmith.records import Registry, RunError

Launcher = Callable[[Sequence[str]], list[str]]
"""From the command of the zygote to the command that starts it.

Raises:
    RunError: The provider does not work here; the text says what to install.
"""

SANDBOXES: Registry[Launcher] = Registry("sandbox_providers", {"built_in": __name__, "bubblewrap": __name__})
_SYSTEM: Final = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache")


@SANDBOXES.register("built_in")
def launch_directly(command: Sequence[str]) -> list[str]:
    """Start it as it is."""
    return list(command)


@SANDBOXES.register("bubblewrap")
def launch_in_bubblewrap(command: Sequence[str]) -> list[str]:
    """Start it in namespaces of bubblewrap, where the interpreter, libraries and packages can be read, and no more."""
    program = shutil.which("bwrap")
    if program is None:
        raise RunError("sandbox: provider bubblewrap: bwrap is not installed: apt-get install bubblewrap")
    bound = [part for path in _find_places() for part in ("--ro-bind", path, path)]
    return [
        program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--uid", "65534", "--gid",
        "65534", "--tmpfs", "/tmp", *bound, "--proc", "/proc", "--dev", "/dev", "--remount-ro", "/tmp", "--chdir", "/",
        "--", *command,
    ]  # fmt: skip


def _find_places() -> list[str]:
    """Return what workers read, by its real path and by the one that it is reached through; none is inside another."""
    checkout = Path(sys.modules["trajsmith"].__path__[0]).resolve().parent
    named = [Path(path).absolute() for path in (sys.prefix, sys.base_prefix, *sys.path) if path]
    program = Path(sys.executable).absolute()
    while program.is_symlink():
        program = program.parent / program.readlink()
        named.append(Path(os.path.normpath(program.parent)))
    places = {checkout, *named, *(path.resolve() for path in named), *map(Path, _SYSTEM)}
    return sorted(str(path) for path in places if path.exists() and places.isdisjoint(path.parents))
