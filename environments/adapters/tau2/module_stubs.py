"""What stands in for modules that a domain imports and does not really need: logging, and the package's own tools for
files, which read `.env` and start git when they are imported. Nothing here touches the machine."""

import hashlib
import io
import json
import tomllib
from collections.abc import Callable
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict

from trajsmith.records import JsonObject

STUBBED_MODULES = (
    "tau2.utils",
    "tau2.utils.utils",
    "tau2.utils.io_utils",
    "tau2.utils.pydantic_utils",
    "loguru",
)
"""Their names; packages come before what is in them."""
Model = TypeVar("Model", bound=BaseModel)


class DataFiles:
    """The files of one domain, by their path below its directory."""

    def __init__(self, domain: str, texts: dict[str, str]) -> None:
        self.root = PurePosixPath("/data")
        self._folder = self.root / "tau2" / "domains" / domain
        self._texts = texts

    def open(self, path: Any, mode: str = "r", *arguments: Any, **more: Any) -> io.StringIO:
        """Stands for the builtin.

        Raises:
            OSError: There is no such file, or it is to be written.
        """
        if "r" not in mode or "+" in mode or "b" in mode:
            raise PermissionError(f"data files are only read here: {path}")
        return io.StringIO(self.text(path))

    def text(self, path: Any) -> str:
        place = PurePosixPath(path)
        name = place.relative_to(self._folder).as_posix() if place.is_relative_to(self._folder) else str(place)
        if name not in self._texts:
            raise FileNotFoundError(f"data file {name} is missing")
        return self._texts[name]

    def load(self, path: Any, **more: Any) -> Any:
        """The content of a file, by its suffix."""
        text, suffix = self.text(path), PurePosixPath(path).suffix
        if suffix == ".json":
            return json.loads(text)
        if suffix == ".toml":
            return tomllib.loads(text)
        return yaml.safe_load(text) if suffix in (".yaml", ".yml") else text


class NoExtra(BaseModel):
    """A model that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")


class _NullLogger:
    """A logger that nobody hears."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **more: None


def hash_dict(value: JsonObject) -> str:
    """Hash of a dict; what has no JSON counts by its text."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def hash_model(value: BaseModel, exclude: Any = None) -> str:
    return hash_dict(value.model_dump(exclude=exclude))


def update_model(instance: Model, changes: JsonObject) -> Model:
    """A model with changes in it; dicts are merged at any depth, all else is replaced."""
    return type(instance).model_validate(_merged(instance.model_dump(), changes))


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {**old, **{key: _merged(old[key], value) if key in old else value for key, value in new.items()}}


def _read_only(*arguments: Any, **more: Any) -> None:
    raise PermissionError("data files are only read here")


def build_modules(files: DataFiles) -> dict[str, ModuleType]:
    """The modules by name."""
    contents: dict[str, dict[str, Any]] = {
        "tau2.utils.utils": {"DATA_DIR": files.root, "get_dict_hash": hash_dict},
        "tau2.utils.io_utils": {"load_file": files.load, "dump_file": _read_only},
        "tau2.utils.pydantic_utils": {
            "BaseModelNoExtra": NoExtra,
            "get_dict_hash": hash_dict,
            "get_pydantic_hash": hash_model,
            "update_pydantic_model_with_dict": update_model,
        },
        "loguru": {"logger": _NullLogger()},
    }
    contents["tau2.utils.utils"]["get_now"] = _now
    contents["tau2.utils"] = {name: value for inner in list(contents)[:3] for name, value in contents[inner].items()}
    modules = {}
    for name in STUBBED_MODULES:
        modules[name] = ModuleType(name)
        vars(modules[name]).update(contents.get(name, {}))
        if name == "tau2.utils":
            modules[name].__path__ = []
    return modules


def _now(use_compact_format: bool = False) -> str:
    """The time of messages, which is no part of any state: always the same."""
    return "20250101_000000" if use_compact_format else "2025-01-01T00:00:00.000000"
