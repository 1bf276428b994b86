"""The bundled environments: each package here exports one `Environment` class and has a `phrases.yaml`."""

import inspect
import sys
from pathlib import Path
from typing import Any

from trajsmith.environments.native import Environment
from trajsmith.phrasing import LanguageCode, find_language_file, use_language
from trajsmith.records import InputError, Registry

SIZES = ("small", "medium", "large")


def only_environment(module: Any, file: str = "") -> type[Environment[Any]]:
    """The one `Environment` subclass that a module holds; `file` is its name in error texts.

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
        hint = f"; choose one as {file}:{min(cls.__name__ for cls in classes)}" if file and classes else ""
        raise InputError(f"{file or module.__name__}: expected one Environment class, found {names}{hint}")
    return classes.pop()


ENVIRONMENTS: Registry[type[Environment[Any]]] = Registry("environments", __name__, only_environment)


def get_phrases_path(cls: type[Environment[Any]]) -> Path:
    """Return the path of the phrasebook: `phrases.yaml` beside the code of the class; none for a notebook class."""
    file = getattr(sys.modules[cls.__module__], "__file__", None)
    return Path(file).parent / "phrases.yaml" if file else Path()


def list_environments_in(language: LanguageCode) -> list[str]:
    """Return the names of the environments that have phrases in a language."""
    with use_language(language):
        paths = {name: get_phrases_path(ENVIRONMENTS.get(name)) for name in ENVIRONMENTS.names()}
        return [name for name, path in paths.items() if find_language_file(path).is_file()]
