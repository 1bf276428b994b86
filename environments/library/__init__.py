"""The bundled environments: each package here exports one `Environment` class and has a `phrases.yaml`."""

import sys
from pathlib import Path
from typing import Any

from trajsmith.environments.native import Environment, only_environment
from trajsmith.phrasing import LanguageCode, find_language_file, use_language
from trajsmith.records import Registry

SIZES = ("small", "medium", "large")


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
