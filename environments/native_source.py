"""Native environments as sources: bundled ones by name, a user's own by file."""

import importlib.util
import sys
import traceback
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson

from chatmodel import Phrasebook, load_phrasebook
from environments.library import library_environment, only_environment, phrases_path
from environments.native import Environment, NativeSession, Starts
from trajectory import EnvironmentSpec, InputError, JsonObject, derive_seed, environment_boundary, hash_bytes


class NativeSource:
    """A class of this process as `EnvironmentSource`."""

    def __init__(self, cls: type[Environment[Any]], sizes: dict[str, int], phrases: Path | None = None) -> None:
        self.cls = cls
        self.name = cls.environment_name()
        self.sizes = sizes
        self._starts: Starts = {}
        self.phrases = phrases if phrases is not None else phrases_path(cls)

    @cached_property
    def phrasebook(self) -> Phrasebook:
        """The phrasebook beside the code; an empty one where there is none."""
        return load_phrasebook(self.phrases) if self.phrases.is_file() else Phrasebook()

    async def spec(self) -> EnvironmentSpec:
        return self.cls.describe()

    async def states(self, seed: int) -> list[JsonObject]:
        """`sizes` says how many states of each size."""
        found: list[JsonObject] = []
        for size, count in self.sizes.items():
            for number in range(count):
                with environment_boundary(self.name):
                    state = self.cls.seed_state(size, derive_seed(seed, self.name, size, number) % 2**31)
                    found.append(orjson.loads(state.model_dump_json()))
        return found

    async def open(self) -> NativeSession:
        return NativeSession(self.cls, self.cls.describe(), self._starts)


def library_source(name: str, sizes: dict[str, int]) -> NativeSource:
    """A bundled environment.

    Raises:
        InputError: There is none of this name.
    """
    return NativeSource(library_environment(name), sizes)


def file_source(reference: str, sizes: dict[str, int], phrases: Path | None) -> NativeSource:
    """An environment from a Python file: "my_env.py", or "my_env.py:MyEnvironment" if the file has several.

    Raises:
        InputError: The file cannot be read or does not import; the text names the line.
    """
    file, _, wanted = reference.partition(":")
    module = _import_file(Path(file))
    if not wanted:
        return NativeSource(only_environment(module), sizes, phrases)
    found = vars(module).get(wanted)
    if not (isinstance(found, type) and issubclass(found, Environment)):
        raise InputError(f"{file}: there is no Environment class named {wanted!r}")
    return NativeSource(found, sizes, phrases)


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError(f"environment file not found: {path}")
    name = f"trajsmith_user_{path.stem}_{hash_bytes(path.read_bytes(), 8)}"  # two folders may each have an env.py
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"environment file is no Python file: {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except InputError:
        raise
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == spec.origin]
        line = frames[-1].lineno if frames else getattr(error, "lineno", None)
        message = " ".join(str(error).split())
        raise InputError(f"{path}:{line or 1}: {type(error).__name__}: {message}") from error
    return module
