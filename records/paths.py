"""Paths of files that a configuration names: relative ones start at the folder of its YAML file."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

HUB = "hub:"
"""Prefix of what lies in a repository of the Hub: a run, or environments."""


def _resolve(path: Path, info: ValidationInfo) -> Path:
    folder = (info.context or {}).get("folder")
    return path if folder is None else Path(os.path.abspath(Path(folder) / path))  # noqa: PTH100 - keeps links


def _resolve_reference(reference: str, info: ValidationInfo) -> str:
    if reference.startswith(HUB):
        return reference
    name, colon, rest = reference.partition(":")
    return f"{_resolve(Path(name), info)}{colon}{rest}"


SourcePath = Annotated[Path, AfterValidator(_resolve)]
"""A file or folder that is read; made absolute where the validation context has the YAML's `folder`."""
SourceReference = Annotated[str, AfterValidator(_resolve_reference)]
"""The same with a name in the file: "my_env.py:MyEnv"; "hub:owner/name" is no path."""
