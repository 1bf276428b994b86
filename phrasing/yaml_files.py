"""Reading of the YAML files that stand beside an environment: phrasebook and scenarios."""

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from trajsmith.records import InputError, format_first_error

ModelT = TypeVar("ModelT", bound=BaseModel)


def load_yaml_model(path: Path, model: type[ModelT], kind: str) -> ModelT:
    """Read one model from a YAML file; an empty file is a model without keys.

    Args:
        path: The file.
        model: What it holds.
        kind: What to call it in errors: "phrasebook".

    Raises:
        InputError: The file cannot be read, is not YAML, or has unknown keys.
    """
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return model.model_validate(data or {})
    except OSError as error:
        raise InputError(f"{kind} {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise InputError(f"{kind} {path}: not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        raise InputError(f"{kind} {path}: {format_first_error(error)}") from error
