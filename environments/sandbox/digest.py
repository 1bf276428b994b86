"""What foreign modules hold between calls: a fingerprint of everything mutable that can be reached from them.

Sessions that share a worker share its modules. A call that changes what the module, one of its classes or functions
holds may change what other sessions see; the fingerprint before and after tells. It looks at values, attributes,
defaults, closures, caches, iterators and generators, and never runs foreign code: no `__eq__`, `__hash__`,
`__repr__`, `__iter__`, property or metaclass of a foreign class. Types are asked through `type(x)`, attributes through
the descriptors of the interpreter.

It says "the same" or "not the same" within one process only, as identities of code and classes go into it. Reading
functions raises audit events (`object.__getattr__`), so an audit hook must be asleep meanwhile.

Not seen: what library objects keep in C, what library modules keep (but functions, classes or data put there are
seen), and whatever lies deeper than `DEPTH` or beyond the first `OBJECTS` objects, counted from the names of the
modules inwards.
"""

import builtins
import random
import sys
from collections import deque
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from trajsmith.environments.sandbox._introspection import (
    LARGEST,
    LEAVES,
    Child,
    ForeignTypes,
    list_module_items,
    read_object,
)

DEPTH = 100
"""Nesting at which it stops looking."""
OBJECTS = LARGEST
"""Objects after which it stops looking."""
SIBLINGS = 4
"""More changed entries than this under one parent are told as the parent."""

SEQUENCES = ("('list'", "('deque'")
"""How the tokens of containers begin whose elements have no names."""

EntryPath = tuple[str, ...]
"""Where a value is: its text is the concatenation."""
Entries = dict[EntryPath, str]
"""What is reachable, by path; to be compared by `differences`."""


def collect_module_entries(names: Iterable[str]) -> Entries:
    """Collect entries for everything reachable from modules; a name that is not imported counts as an entry."""
    return _Walk(names).entries


def find_differences(before: Entries, after: Entries) -> list[str]:
    """Return the differences of two fingerprints, as sorted paths such as `environment_code.CACHE['x']`.

    Of something new or gone only its own path is told, or that of the list it is in; of a change only the innermost
    one; a parent of many changes stands for them.
    """
    changed = {path for path, token in after.items() if before.get(path, token) != token}
    came_or_went = before.keys() ^ after.keys()
    tops = {path for path in came_or_went if path[:-1] not in came_or_went}
    paths = changed | {path for path in tops if not after.get(path[:-1], "").startswith(SEQUENCES)}
    outer = {path[:size] for path in paths for size in range(1, len(path))}
    inner = paths - outer
    crowds = _crowds(inner)
    return sorted({"".join(path[:-1] if path[:-1] in crowds else path) for path in inner})


def _crowds(paths: Iterable[EntryPath]) -> set[EntryPath]:
    siblings: dict[EntryPath, int] = {}
    for path in paths:
        siblings[path[:-1]] = siblings.get(path[:-1], 0) + 1
    return {parent for parent, count in siblings.items() if count > SIBLINGS and len(parent) > 1}


class _Walk:
    """One look at everything reachable."""

    def __init__(self, names: Iterable[str]) -> None:
        self.entries: Entries = {}
        self._recorded = 0
        self._seen: set[int] = set()
        modules = {name: sys.modules.get(name) for name in names}
        self._waiting: deque[tuple[list[Child], EntryPath, int]] = deque()
        namespaces = frozenset(id(vars(module)) for module in modules.values() if type(module) is ModuleType)
        self._foreign = ForeignTypes(frozenset(modules), namespaces)
        for name, module in modules.items():
            if type(module) is ModuleType:
                self._waiting.append((list_module_items(vars(module)), (name,), 0))
            else:
                self._record((name,), "not a module")
        self._record(("builtins",), hash(tuple(map(id, vars(builtins).values()))))
        if type(random._inst) is random.Random:  # the virtual one is fresh in every call
            self._record(("random",), hash(random.getstate()))
        self._look()

    def _record(self, path: EntryPath, token: Any) -> None:
        self._recorded += 1
        self.entries[path] = repr(token)

    def _look(self) -> None:
        """Visit what is waiting, from the names of modules inwards: what is left out in the end lies deepest."""
        waiting, alive = self._waiting, []
        while waiting and self._recorded < OBJECTS:
            children, path, depth = waiting.popleft()
            alive.append(children)  # what readers made must live on, or its identity is given out again
            for label, value in children:
                self._visit(value, (*path, label), depth)

    def _visit(self, value: Any, path: EntryPath, depth: int) -> None:
        leaf = LEAVES.get(id(type(value)))
        if leaf is not None:
            self._record(path, leaf(value))
            return
        identity = id(value)
        if identity in self._seen:
            self._record(path, ("again", identity))
        elif depth > DEPTH:
            self._record(path, "not looked at")
        else:
            self._seen.add(identity)
            token, children = read_object(value, self._foreign)
            self._record(path, token)
            if children:
                self._waiting.append((children, path, depth + 1))
