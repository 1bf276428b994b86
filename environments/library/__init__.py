"""The bundled environments. Each is a package here that exports one `Environment` class and has a `phrases.yaml`.

Packages installed elsewhere join by the entry point group `trajsmith.environments` (name = "module:Class").
"""

import functools
import importlib
import inspect
import pkgutil
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from trajsmith.environments.native import Environment
from trajsmith.records import InputError

SIZES = ("small", "medium", "large")


@functools.cache
def library_names() -> tuple[str, ...]:
    """Names of all bundled and installed environments, sorted."""
    bundled = [module.name for module in pkgutil.iter_modules(__path__) if module.ispkg]
    installed = [entry.name for entry in entry_points(group="trajsmith.environments")]
    return tuple(sorted({*bundled, *installed}))


@functools.cache
def library_environment(name: str) -> type[Environment[Any]]:
    """The class of a bundled or installed environment.

    Raises:
        InputError: No environment has this name.
    """
    if name not in library_names():
        raise InputError(f"no environment named {name!r} in the library; there are: {', '.join(library_names())}")
    for entry in entry_points(group="trajsmith.environments"):
        if entry.name == name:
            return entry.load()  # type: ignore[no-any-return]
    return only_environment(importlib.import_module(f"{__name__}.{name}"))


def only_environment(module: Any) -> type[Environment[Any]]:
    """The one `Environment` subclass that a module holds.

    Raises:
        InputError: It holds none or several.
    """
    classes = {
        member
        for _, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, Environment) and member is not Environment
    }
    if len(classes) != 1:
        names = ", ".join(sorted(cls.__name__ for cls in classes)) or "none"
        raise InputError(f"{module.__name__}: expected one Environment class, found {names}")
    return classes.pop()


def get_phrases_path(cls: type[Environment[Any]]) -> Path:
    """Return the path of the phrasebook: `phrases.yaml` beside the code of the class; none for a notebook class."""
    file = getattr(sys.modules[cls.__module__], "__file__", None)
    return Path(file).parent / "phrases.yaml" if file else Path()
