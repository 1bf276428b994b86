"""Registries of the extension points: one mechanism for what is built in, installed, or registered by a program.

The built-in things of a kind are modules; installed ones are entry points of the group `trajsmith.<kind>`. Both are
listed without being imported. docs/plugins.md has the protocol of every kind.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet

from trajsmith.records.errors import InputError
from trajsmith.records.text import suggest_names

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
Registered = TypeVar("Registered")

OWN = "trajsmith"


@cache
def _scan_entry_points() -> Any:
    """Read the entry points of all installed distributions once."""
    from importlib.metadata import entry_points  # not at the top: sandboxed workers import this module

    return entry_points()


@cache
def _select_entry_points(group: str) -> "tuple[EntryPoint, ...]":
    return tuple(_scan_entry_points().select(group=group))


@cache
def _list_modules(*folders: str) -> tuple[str, ...]:
    """Return the names of all modules in the folders of a package, but of those that begin with "_"."""
    return tuple(module.name for module in iter_modules(folders) if not module.name.startswith("_"))


@dataclass(frozen=True)
class PluginSource:
    """Origin of a name in a registry."""

    name: str
    module: str
    distribution: str = ""
    """Name and version of an installed distribution, "trajsmith" for built-in things, empty for a program's own."""
    entry_point: "EntryPoint | None" = None

    def __str__(self) -> str:
        return f"{self.module} ({self.distribution or 'registered by this program'})"

    @property
    def package(self) -> str:
        """Return the top-level package of the module."""
        return self.module.partition(".")[0]


_REGISTRIES: "WeakSet[Registry[Any]]" = WeakSet()


def list_program_plugins() -> list[PluginSource]:
    """Return what this program has registered itself; another process does not have it."""
    sources = [source for registry in _REGISTRIES for source in registry.sources()]
    return sorted(
        (one for one in sources if not one.distribution and not one.entry_point and one.package != OWN),
        key=lambda one: (one.name, one.module),
    )


class Registry(Generic[T]):
    """Things of one kind by name. A thing is imported when it is first asked for.

    Args:
        kind: Plural that names the entry-point group: "rewards" for `trajsmith.rewards`.
        built_in: A package of which every module is a built-in thing of the module's name, except modules that start
            with "_"; or a mapping from names to modules.
        find: Returns the thing of a module that registers none.
    """

    def __init__(
        self,
        kind: str,
        built_in: str | Mapping[str, str],
        find: Callable[[ModuleType], T] | None = None,
    ) -> None:
        self.kind = kind
        self.noun = kind.removesuffix("s")
        self._built_in = built_in
        self._find = find
        self._things: dict[str, T] = {}
        """What was registered."""
        self._modules: dict[str, str] = {}
        """Name to the module that registered it."""
        self._loaded: dict[str, T] = {}
        """What was asked for."""
        _REGISTRIES.add(self)

    def register(self, name: str) -> Callable[[Registered], Registered]:
        """Return a decorator that registers a thing under a name.

        Raises:
            InputError: Another module has registered this name.
        """
        module: str = sys._getframe(1).f_globals["__name__"]  # a thing may be an instance, which knows no module

        def decorate(plugin: Registered) -> Registered:
            if self._modules.setdefault(name, module) != module:
                raise InputError(f"two {self.kind} are named {name!r}: {self._modules[name]} and {module}")
            self._things[name] = plugin  # type: ignore[assignment]
            self._loaded.pop(name, None)
            return plugin

        return decorate

    def names(self) -> tuple[str, ...]:
        """Return all names, sorted; nothing is imported."""
        return tuple(sorted(self._sources()))

    def sources(self) -> list[PluginSource]:
        """Return where all names come from, sorted by name; a name that stands twice can be used from neither."""
        return [source for _, sources in sorted(self._sources().items()) for source in sources]

    def check_name(self, name: str) -> str:
        """Return the name, for the validation of settings; nothing is imported.

        Raises:
            ValueError: There is no such name; the text lists those that there are.
        """
        names = self.names()
        if name not in names:
            hint = suggest_names(name, names)
            close = f" ({hint})" if hint else ""
            raise ValueError(f"no {self.noun} named {name!r}{close}; there are: {', '.join(names) or 'none'}")
        return name

    def get(self, name: str) -> T:
        """Return the thing of a name.

        Raises:
            InputError: There is none, there are two, or its module cannot be imported.
        """
        if name not in self._loaded:
            try:
                self.check_name(name)
            except ValueError as error:
                raise InputError(str(error)) from None
            sources = self._sources()[name]
            if len(sources) > 1:
                raise InputError(f"two {self.kind} are named {name!r}, remove one: {' and '.join(map(str, sources))}")
            self._loaded[name] = self._things[name] if name in self._things else self._load(sources[0])
        return self._loaded[name]

    def load_all(self) -> dict[str, T]:
        """Return everything that can be loaded, by name; of what cannot, one line is logged."""
        from logging import getLogger

        plugins = {}
        for name in self.names():
            try:
                plugins[name] = self.get(name)
            except InputError as error:
                getLogger(OWN).warning("%s", error)
        return plugins

    def _sources(self) -> dict[str, list[PluginSource]]:
        """Name to its sources; more than one is a clash."""
        sources: dict[str, list[PluginSource]] = {}
        for name, module in self._list_built_in().items():
            sources[name] = [PluginSource(name, module, OWN)]
        for entry in _select_entry_points(f"{OWN}.{self.kind}"):
            owner, module = (
                f"{entry.dist.name} {entry.dist.version}" if entry.dist else "",
                entry.value.partition(":")[0],
            )
            sources.setdefault(entry.name, []).append(PluginSource(entry.name, module, owner, entry))
        for name, module in self._modules.items():
            source, declared = PluginSource(name, module), sources.setdefault(name, [])
            if source.package not in {one.package for one in declared}:
                declared.append(source)
        return sources

    def _list_built_in(self) -> Mapping[str, str]:
        if not isinstance(self._built_in, str):
            return self._built_in
        names = _list_modules(*import_module(self._built_in).__path__)
        return {name: f"{self._built_in}.{name}" for name in names}

    def _load(self, source: PluginSource) -> T:
        try:
            loaded: Any = source.entry_point.load() if source.entry_point else import_module(source.module)
            if source.name in self._things:
                return self._things[source.name]
            if not isinstance(loaded, ModuleType):
                return loaded  # type: ignore[no-any-return]
            if self._find is not None:
                return self._find(loaded)
            raise ImportError(f"the module registers no {source.name!r}")
        except Exception as error:  # a plug-in is anybody's code, and may break in any way while it is imported
            where = f"{self.noun} {source.name!r} of {source}"
            raise InputError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
