"""The keys that may stand at a place of a configuration, read from the type hints of its models."""

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo


def find_nested_keys(annotation: Any, key: str) -> Iterator[str]:
    """Yield the dotted names of a key one level down, as in `sample.count` for `count`."""
    for name, inner in _fields(annotation).items():
        if any(key in _fields(branch) for branch in iter_branches(inner)):
            yield f"{name}.{key}"


def list_valid_keys(annotation: Any, path: tuple[int | str, ...]) -> dict[str, Any]:
    """Names that may stand at a path, with their types; of all branches where types are alternatives."""
    return {name: inner for branch in list_types(annotation, path) for name, inner in _fields(branch).items()}


def list_types(annotation: Any, path: tuple[int | str, ...]) -> list[Any]:
    """Types that a value at a path may have; none where the models do not say."""
    branches = list(iter_branches(annotation))
    for key in path:
        branches = [inner for branch in branches for inner in _inside(branch, key)]
    return branches


def iter_branches(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in {Union, UnionType}:
        for branch in get_args(annotation):
            yield from iter_branches(branch)
    elif get_origin(annotation) is Annotated:
        yield from iter_branches(get_args(annotation)[0])
    else:
        yield annotation


def _inside(annotation: Any, key: int | str) -> Iterator[Any]:
    fields = _fields(annotation)
    if key in fields:
        yield from iter_branches(fields[str(key)])
    elif not fields:
        for argument in get_args(annotation)[0 if isinstance(key, int) else 1 :]:
            yield from iter_branches(argument)


def _fields(annotation: Any) -> dict[str, Any]:
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return {}
    fields = annotation.model_fields.items()
    return {key: field.annotation for name, field in fields for key in _names(name, field)}


def _names(name: str, field: FieldInfo) -> Iterator[str]:
    yield name
    if isinstance(field.validation_alias, str):
        yield field.validation_alias
    elif isinstance(field.validation_alias, AliasChoices):
        yield from (selector for selector in field.validation_alias.choices if isinstance(selector, str))
