"""Reading of the YAML files that stand beside an environment: phrasebook and scenarios."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

import orjson
import yaml
from pydantic import BaseModel, PrivateAttr, ValidationError

from trajsmith.phrasing.languages import get_language
from trajsmith.records import FrozenModel, InputError, UserCache, compose_yaml, format_first_error

_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CACHE = UserCache("yaml")
_MERGE = "tag:yaml.org,2002:merge"


class WordsOfFile(FrozenModel):
    """Words about an environment, which remember the file that they were read from."""

    _file: str = PrivateAttr("")

    @property
    def file(self) -> str:
        """File, for errors; empty for words that come from elsewhere."""
        return self._file

    def set_file(self, file: Path | str) -> Self:
        """Remember the file, and return the same object."""
        self._file = str(file)
        return self


ModelT = TypeVar("ModelT", bound=BaseModel)


def find_language_file(path: Path) -> Path:
    """Return the file of the language of the run: `phrases.yaml`, or `phrases.de.yaml` beside it."""
    code = get_language().code
    return path if code == "en" else path.with_suffix(f".{code}{path.suffix}")


def load_yaml_model(path: Path, model: type[ModelT], kind: str, rewrite: Callable[[str], str] | None = None) -> ModelT:
    """Read one model from a YAML file; an empty file is a model without keys.

    Args:
        path: The file.
        model: What it holds.
        kind: What to call it in errors: "phrasebook".
        rewrite: Changes the text before it is read.

    Raises:
        InputError: The file cannot be read, is not YAML, or has keys that are unknown or stand twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
        data = read_yaml(rewrite(text) if rewrite else text)
        return model.model_validate(data or {})
    except OSError as error:
        raise InputError(f"{kind} {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{kind} {path}: no UTF-8 text: {error.reason} at byte {error.start}") from error
    except yaml.YAMLError as error:
        raise InputError(f"{kind} {path}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        raise InputError(f"{kind} {path}: {format_first_error(error)}") from error


def read_yaml(text: str) -> Any:
    """Read YAML with the fastest safe loader, or what the user's cache holds of it; a key that stands twice in one
    mapping is an error."""
    stored = _CACHE.get(text)
    if stored is not None:
        return orjson.loads(stored)
    data = compose_yaml(text, _UniqueKeyLoader)[1]
    with suppress(TypeError):  # of data that is no JSON, such as numbers as keys
        stored = orjson.dumps(data)
        if orjson.loads(stored) == data:  # dates are not
            _CACHE.put(text, stored)
    return data


class _UniqueKeyLoader(_SafeLoader):  # type: ignore[misc]
    """Plain YAML would take the second of two equal keys without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key in (key for key, _ in node.value if key.tag != _MERGE):
            name = self.construct_object(key, deep=True)
            if name in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} stands twice", key.start_mark)
            seen.add(name)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping
