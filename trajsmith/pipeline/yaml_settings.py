"""Configuration as data: one YAML file, `--set` overrides, validated once; every fault is one line that says where.

Unknown keys are refused whatever the models say: a misspelt key that is silently ignored costs a whole run.
The YAML is that of version 1.2 where 1.1 surprises: `no`, `on` and `2024-01-01` are text.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from trajsmith.pipeline.settings_keys import find_nested_keys, iter_branches, list_types, list_valid_keys
from trajsmith.records import InputError, JsonObject, JsonValue, compose_yaml, suggest_names, to_one_line
from trajsmith.records.secrets import PLACEHOLDER, REFERENCE, SECRET_NAME, find_secret, known_secrets, redact_url

Settings = TypeVar("Settings", bound=BaseModel)
KeyPath = tuple[int | str, ...]

PACKAGED_CONFIGS = Path(__file__).parents[1] / "configs"
"""Folder of the configurations that are installed with the package."""
BOOL = "tag:yaml.org,2002:bool"
TIMESTAMP = "tag:yaml.org,2002:timestamp"
LONGEST_SHOWN = 200
"""Characters of an override that errors repeat."""
FLOAT = "tag:yaml.org,2002:float"
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # not every build of PyYAML has libyaml
_SafeDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Loader(yaml.SafeLoader):
    """The safe loader without dates, with `true` and `false` as the only booleans, and 1e-4 as a number (YAML 1.2)."""

    yaml_implicit_resolvers = {
        first: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag != TIMESTAMP and not (tag == BOOL and first not in "tTfF")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class _Dumper(_SafeDumper):  # type: ignore[misc]
    """The safe dumper, which quotes a text that the loader would take for a number."""


for _yaml in (_Loader, _Dumper):
    _yaml.add_implicit_resolver(FLOAT, re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789"))


class _FastLoader(_SafeLoader):  # type: ignore[misc]
    """The same by libyaml, whose errors say less."""

    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers


@dataclass(frozen=True)
class _Source:
    """Parsed text with its node tree, which knows the lines."""

    name: str
    data: JsonValue
    root: yaml.Node | None

    @classmethod
    def parse(cls, name: str, text: str) -> "_Source":
        try:
            try:
                root, data = compose_yaml(text, _FastLoader)
            except yaml.YAMLError:
                root, data = compose_yaml(text, _Loader)
        except yaml.MarkedYAMLError as error:
            where = f"{name}:{error.problem_mark.line + 1}" if error.problem_mark else name
            raise InputError(f"{where}: not valid YAML: {to_one_line(error.problem or error.context)}") from error
        except yaml.YAMLError as error:
            raise InputError(f"{name}: not valid YAML: {to_one_line(error)}") from error
        for line, fault in _key_faults(root, set()) if root else ():
            raise InputError(f"{name}:{line}: {fault}")
        return cls(name, data, root)

    def place(self, path: KeyPath) -> str:
        """File and line of a key, or of the closest thing around it that stands in the file."""
        node, line = self.root, 1
        for key in path:
            if isinstance(node, yaml.MappingNode):
                matches = [(k, value) for k, value in node.value if k.value == key]
                if not matches:
                    break
                line, node = matches[0][0].start_mark.line + 1, matches[0][1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
                node = node.value[key]
                line = node.start_mark.line + 1
            else:
                break
        return f"{self.name}:{line}"


@dataclass(frozen=True)
class _Override:
    """One `--set`, parsed."""

    text: str
    path: KeyPath
    value: JsonValue

    @property
    def place(self) -> str:
        return f"--set {to_one_line(self.text, LONGEST_SHOWN)}"


def find_config(path: Path | str) -> Path:
    """Return the path of a configuration; a bare name such as "quickstart" that is no file is a packaged one.

    Raises:
        InputError: It is a bare name, and there is no configuration of that name.
    """
    file = Path(path)
    if file.is_file() or file.suffix or len(file.parts) != 1:
        return file
    packaged = PACKAGED_CONFIGS / f"{file}.yaml"
    if not packaged.is_file():
        hint = suggest_names(str(file), [config.stem for config in PACKAGED_CONFIGS.glob("*.yaml")])
        hint = hint or "`trajsmith configs` lists those that are installed"
        raise InputError(f"no such file or packaged configuration: {file}: {hint}")
    return packaged


def load_settings(
    path: Path | str, model: type[Settings], overrides: Sequence[str] = (), must_exist: bool = False
) -> Settings:
    """Read a YAML file, apply `a.b.0.c=value` overrides in order, and validate.

    A bare name stands for a packaged configuration, see `find_config`. Relative paths of files that are read
    (`SourcePath`) start at the folder of the file; those of run directories and models at the working directory.

    Raises:
        InputError: The first fault, in one line: file, line, key, and the closest valid key for an unknown one.
    """
    file = find_config(path)
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError as error:
        raise InputError(f"no such file: {file}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 text: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    return parse_settings(text, str(file), file.absolute().parent, model, overrides, must_exist)


def parse_settings(
    text: str,
    name: str,
    folder: Path,
    model: type[Settings],
    overrides: Sequence[str] = (),
    must_exist: bool = False,
) -> Settings:
    """Parse YAML text as `load_settings` does.

    Args:
        text: The YAML.
        name: Name of the text in error messages, for example its file.
        folder: Folder at which relative paths of files that are read start.
        model: The settings.
        overrides: `a.b.0.c=value`, applied in order.
        must_exist: The environments that are named must be there.

    Raises:
        InputError: The first fault, in one line.
    """
    source = _Source.parse(name, text)
    data = {} if source.data is None else source.data
    if not isinstance(data, dict):
        raise InputError(f"{name}:1: the file must hold keys and values, not a {_kind(data)}")
    _refuse_secrets(data, source)
    applied: list[_Override] = []
    for override in overrides:
        data, path_set, value = _apply(data, override)
        applied.append(_Override(override, path_set, value))
        _refuse_secrets(value, source, path_set, override)
    _refuse_numbers(data, model, source, applied)
    context = {"folder": folder, "name": name}
    try:
        settings = model.model_validate(data, extra="forbid", context=context)
        if must_exist:  # after all other faults
            model.model_validate(data, extra="forbid", context=context | {"must_exist": True})
        return settings
    except ValidationError as error:
        raise InputError(_explain(error, model, data, source, applied)) from error
    except InputError as error:  # raised by a validator of the model
        raise InputError(f"{name}: {error}") from error


def _refuse_secrets(data: JsonValue, source: _Source, path: KeyPath = (), override: str = "") -> None:
    """Refuse keys in a configuration: it is stored with the run and published with the dataset.

    Raises:
        InputError: A text holds the value of a variable that bears a key, or what looks like a key.
    """
    known = known_secrets()

    def search(value: JsonValue, path: KeyPath) -> None:
        if isinstance(value, str):
            secret = find_secret(value, known)
            if secret:
                place = "--set" if override else source.place(path)
                raise InputError(
                    f"{place}: {_dotted(path)}: it holds {secret}, and configurations are published: put it into an "
                    "environment variable and name that one: key_env: NAME for a model, ${NAME} in env and headers"
                )
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in pairs:
            search(inner, (*path, key))

    search(data, path)


def _refuse_numbers(data: JsonValue, model: type[BaseModel], source: _Source, overrides: list[_Override]) -> None:
    """Refuse numbers that no record can hold, and truth values where a number is meant (Python takes True for 1).

    Raises:
        InputError: There is one.
    """

    def search(value: JsonValue, path: KeyPath) -> None:
        place = f"{_place(path, source, overrides)}: {_dotted(path)}"
        if isinstance(value, bool):
            types = list_types(model, path)
            if bool not in types and (int in types or float in types):
                raise InputError(f"{place}: a number is needed (got {str(value).lower()})")
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InputError(f"{place}: the number has more than 64 bits")
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in pairs:
            search(inner, (*path, key))

    search(data, ())


def publishable(data: Any, inside: str = "") -> Any:
    """Settings without literal secrets: those of `env`, `headers`, keys by name, users and queries of addresses.

    References to environment variables stay.
    """
    if isinstance(data, dict):
        return {
            key: _published(key, value)
            if isinstance(value, str) and (inside in ("env", "headers") or SECRET_NAME.search(key))
            else publishable(value, key)
            for key, value in data.items()
        }
    if isinstance(data, list):
        hidden = [isinstance(before, str) and _is_secret_flag(before) for before in ("", *data[:-1])][: len(data)]
        return [PLACEHOLDER if hide else publishable(value) for hide, value in zip(hidden, data, strict=True)]
    if isinstance(data, str):
        name, equals, _ = data.partition("=")
        if equals and _is_secret_flag(name) and not REFERENCE.search(data):
            return f"{name}={PLACEHOLDER}"
        return redact_url(data) if re.match(r"https?://\S+$", data) else data
    return data


def _is_secret_flag(text: str) -> bool:
    return text.startswith("-") and "=" not in text and bool(SECRET_NAME.search(text))


def _published(key: str, value: str) -> str:
    return value if REFERENCE.search(value) or key in ("key_env", "reasoning_key") else PLACEHOLDER


def dump_settings(settings: BaseModel, folders: bool = True) -> str:
    """The settings as YAML with every default written out; `load_settings` reads the same settings back.

    Args:
        folders: False leaves out the folders of absolute paths and literal secrets, for what others are going to read.
    """
    data = settings.model_dump(mode="json", by_alias=True)
    return dump_yaml(data if folders else publishable(_without_folders(data)))


def dump_yaml(data: JsonValue) -> str:
    """Return JSON data as YAML that `parse_settings` reads back equal."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _without_folders(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_folders(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_without_folders(value) for value in data]
    return Path(data).name if isinstance(data, str) and Path(data).is_absolute() and "\n" not in data else data


def _key_faults(node: yaml.Node, seen: set[int]) -> Iterator[tuple[int, str]]:
    """Line and text of keys that stand twice or are no text, which the YAML library lets pass."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _key_faults(item, seen)
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if key.tag not in {"tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"}:
            yield line, f"the key {to_one_line(key.value)} is not read as text: put it in quotes"
        elif key.value in lines:
            yield line, f'the key "{key.value}" stands twice, first in line {lines[key.value]}'
        lines[str(key.value)] = line
        yield from _key_faults(value, seen)


def _apply(data: JsonObject, override: str) -> tuple[JsonObject, KeyPath, JsonValue]:
    """A copy of `data` with one `--set` in it, and where it went. Only the containers on the way are copied."""
    name, equals, text = override.partition("=")
    override = to_one_line(override, LONGEST_SHOWN)
    parts = name.strip().split(".")
    if not equals or not all(parts):
        raise InputError(f"--set {override}: write it as key=value, for example play.candidates=4")
    value = _Source.parse(f"--set {override}", text).data
    path: list[int | str] = []

    def put(container: JsonValue, rest: list[str]) -> JsonValue:
        if not rest:
            return value
        head, tail = rest[0], rest[1:]
        where = ".".join(map(str, path)) or "the file"
        if container is None or isinstance(container, dict):
            path.append(head)
            inside = container or {}
            return {**inside, head: put(inside.get(head), tail)}
        if not isinstance(container, list):
            raise InputError(f"--set {override}: {where} is a {_kind(container)}, so nothing can be set inside it")
        if not head.isdecimal() or int(head) >= len(container):
            raise InputError(f"--set {override}: {where} is a list of {len(container)}, so {head} is no index in it")
        index = int(head)
        path.append(index)
        return [*container[:index], put(container[index], tail), *container[index + 1 :]]

    return put(data, parts), tuple(path), value


def _explain(
    error: ValidationError, model: type[BaseModel], data: JsonObject, source: _Source, overrides: list[_Override]
) -> str:
    """The fault that most likely is the cause: an unknown key before whatever is missing because of it."""
    faults = error.errors(include_url=False)
    for fault in faults:
        if fault["type"] == "extra_forbidden":
            path = _key_path(fault, data)
            valid = list_valid_keys(model, path[:-1])
            if path[-1] not in valid:  # else it is only unknown to another branch of a union
                nested = [] if path[1:] else list(find_nested_keys(model, str(path[0])))
                unknown = f"unknown key; {suggest_names('', (), 3, first=nested)}" if nested else ""
                unknown = unknown or _unknown(str(path[-1]), valid)
                return f"{_place(path, source, overrides)}: {_dotted(path)}: {unknown}"
    known = [fault for fault in faults if fault["type"] != "extra_forbidden"]
    fault = (known or faults)[0]
    path = _key_path(fault, data)
    meant = _misspelt_entry(path, source) if fault["type"] == "missing" else ""
    annotation = list_valid_keys(model, path[:-1]).get(str(path[-1])) if path else None
    return f"{_place(path, source, overrides)}: {_dotted(path)}: {_message(fault, annotation)}{meant}"


def _misspelt_entry(path: KeyPath, source: _Source) -> str:
    """Return a hint for a missing key when an override created a misspelt entry beside it."""
    end = next((end for end in range(1, len(path)) if not _holds(source.data, path[:end])), len(path))
    if end >= len(path):
        return ""
    beside: Any = source.data
    for key in path[: end - 1]:
        beside = beside[key]
    hint = suggest_names(str(path[end - 1]), beside) if isinstance(beside, dict) else ""
    return f': "{path[end - 1]}" is a new entry; {hint}' if hint else ""


def _place(path: KeyPath, source: _Source, overrides: list[_Override]) -> str:
    """The last override that touches the key, or file and line."""
    for override in reversed(overrides):
        shared = min(len(path), len(override.path))
        inside = len(override.path) <= len(path) or not _holds(source.data, path)
        if path and path[:shared] == override.path[:shared] and inside:
            return override.place
    return source.place(path)


def _holds(data: JsonValue, path: KeyPath) -> bool:
    for key in path:
        in_list = isinstance(data, list) and isinstance(key, int) and key < len(data)
        if not in_list and not (isinstance(data, dict) and key in data):
            return False
        data = data[key]
    return True


def _key_path(fault: ErrorDetails, data: JsonValue) -> KeyPath:
    """Pydantic's location without the names of union branches, which are no keys of the file."""
    path: KeyPath = ()
    last = len(fault["loc"]) - 1
    for position, key in enumerate(fault["loc"]):
        is_key = position == last and fault["type"] in {"missing", "extra_forbidden"}
        if is_key or _holds(data, (*path, key)):
            path = (*path, key)
    return path


def _message(fault: ErrorDetails, annotation: Any) -> str:
    """Return what a value must be, and the value; `annotation` is the type of the key."""
    got = fault["input"]
    shown = f" (got {str(got)[:60]!r})" if isinstance(got, str | int | float) else ""
    members = next((get_args(branch) for branch in iter_branches(annotation) if get_origin(branch) is tuple), ())
    if fault["type"] in ("tuple_type", "too_long", "missing") and len(members) == 2 and members[1] is not Ellipsis:
        return f"two values in brackets, such as [2, 4]{shown}"
    if fault["type"] == "missing":
        return "this key is required"
    if fault["type"] in ("int_type", "int_parsing", "int_from_float"):
        return f"it is a whole number{shown}"
    return to_one_line(fault["msg"].removeprefix("Value error, ")) + shown


def _unknown(key: str, valid: dict[str, Any]) -> str:
    hint = suggest_names(key, valid, cutoff=0.5)
    if hint:
        return f"unknown key; {hint}"
    return f"unknown key; valid keys are {', '.join(sorted(valid))}" if valid else "unknown key; no keys are valid here"


def _dotted(path: KeyPath) -> str:
    return to_one_line(".".join(map(str, path)), LONGEST_SHOWN) or "the file"


def _kind(value: JsonValue) -> str:
    names = {dict: "mapping", list: "list", str: "text", bool: "truth value", int: "number", float: "number"}
    return names.get(type(value), type(value).__name__)
