"""The attacks as data: each is a function that is written out here, but only ever runs in a sandbox, as text.

An attack gets `info` (what a thief would have to guess: canary files, ports, process ids, an address) and returns what
it stole, or says what it did. Whether it succeeded is judged outside, by `world.py`: a secret in the reply, a canary
that changed, a listener that was called, a process that stayed, something seen in `/proc`.
"""

import importlib
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

CORPUS = (
    "on_files", "on_writing", "on_secrets", "on_network", "on_processes", "on_others", "on_kernel", "on_code",
    "on_resources", "on_plays", "on_modules", "on_results", "on_channel", "on_checks", "on_adapters", "at_load",
    "on_rest",
)  # fmt: skip
HOST_CATEGORIES = frozenset({"files", "secrets", "network", "processes", "kernel", "resources"})


@dataclass(frozen=True)
class Attack:
    """One attack."""

    id: str
    category: str
    """What it is after: the host (`HOST_CATEGORIES`), other plays, the parent's protocol, ..."""
    source: str
    """Python source of a function `attack(info)`."""
    when: str = "call"
    """`call`: in a tool; `load`: while the module is executed; `states`: while initial states are made; `start`: while
    a play starts; `check`: in a check function; `file_...`: see `on_adapters.py`."""
    cuts: tuple[frozenset[str], ...] = ()
    """Sets of layers: without all layers of a set the attack succeeds (started by root), with any one of them it does
    not. None: it is not of the kernel layers, or has no effect on this kind of machine even without any."""
    shares: bool = True
    """False if it may end or hang its worker."""


_found: list[Attack] = []
Body = Callable[[dict], object]


def attack(category: str, *cuts: str, when: str = "call", shares: bool = True) -> Callable[[Body], Body]:
    """Put a function into the corpus, as text. A cut is written "layer layer"."""

    def register(function: Body) -> Body:
        lines = textwrap.dedent(inspect.getsource(function)).splitlines()
        start = next(number for number, line in enumerate(lines) if line.startswith("def "))
        lines[start] = lines[start].replace(f"def {function.__name__}(", "def attack(", 1)
        sets = tuple(frozenset(cut.split()) for cut in cuts)
        _found.append(Attack(function.__name__, category, "\n".join(lines[start:]) + "\n", when, sets, shares))
        return function

    return register


def all_attacks() -> list[Attack]:
    """The whole corpus; ids are unique."""
    for name in CORPUS:
        importlib.import_module(f"attacks.{name}")
    names = [found.id for found in _found]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    return list(_found)


def host_attacks() -> list[Attack]:
    """Those that the kernel layers are there for, and that run in a bare worker."""
    return [found for found in all_attacks() if found.category in HOST_CATEGORIES and found.when == "call"]
