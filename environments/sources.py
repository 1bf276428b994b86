"""From settings to sources: which environments a run uses."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from trajsmith.environments.adapters.registry import ADAPTERS, SourceOptions, open_sandboxed
from trajsmith.environments.bundles import list_bundle_files
from trajsmith.environments.file_reading import read_json, read_text
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.linked import find_world, list_worlds, open_world
from trajsmith.environments.native_source import build_library_source
from trajsmith.environments.published import list_pulled_files
from trajsmith.environments.sandbox.settings import MODES, SandboxSettings
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.session import EnvironmentSource
from trajsmith.records import (
    HUB,
    FrozenModel,
    InputError,
    JsonObject,
    SourcePath,
    SourceReference,
    format_first_error,
)

Size = Literal["small", "medium", "large"]
MOST_STATES = 10_000
_KINDS = ("library", "python", "linked", *ADAPTERS.names())
"""What an entry may be."""


class _EnvironmentSettings(FrozenModel):
    """One environment: exactly one of the kinds. All but `library` and `mcp` run in the sandbox."""

    library: str | None = None
    """Name of a bundled or installed environment; "*" stands for all of them, "my_bundle.shop" for one of an installed
    bundle, "my_bundle.*" for all of it."""
    python: SourceReference | None = None
    """A Python file of your own with an `Environment` class, for example "my_env.py" or "my_env.py:MyEnv"; a folder of
    generated environments stands for all that its catalogue accepts, "hub:owner/name" for those of a repository that
    `trajsmith env pull` got."""
    linked: str | None = None
    """A linked world: the name of a bundled one, "*" for all of them, or a YAML file of your own."""
    sandbox: SandboxSettings = SandboxSettings()
    """How foreign code is run; the name of a mode will do."""
    states: dict[Size, Annotated[int, Field(ge=1, le=MOST_STATES)]] = Field(default={"small": 2, "medium": 1})
    """How many initial states of each size are made, for `library`, `python` and `linked`; 10,000 at most."""
    state_files: tuple[SourcePath, ...] = ()
    """Initial states of a `python` environment, as JSON files, in place of those that its class makes."""
    phrases: SourcePath | None = None
    """Phrasebook (YAML); without it, `phrases.yaml` beside a `python` file, or the one of a bundled environment."""
    scenarios: SourcePath | None = None
    """Scenarios (YAML); without it, `scenarios.yaml` beside the `phrases.yaml`."""

    @field_validator("library", "python")
    @classmethod
    def _is_there(cls, value: str | None, info: ValidationInfo) -> str | None:
        """Check a configuration that is about to run; one that is stored may outlive its environments."""
        if value is not None and (info.context or {}).get("must_exist"):
            try:
                if info.field_name == "python":
                    list_python_files(value)
                elif "." in value:
                    list_bundle_files(value)
                elif value != "*":
                    ENVIRONMENTS.get(value)
            except InputError as error:
                raise ValueError(str(error)) from error
        return value

    @field_validator("linked")
    @classmethod
    def _is_a_world(cls, value: str | None, info: ValidationInfo) -> str | None:
        """Start a relative path at the folder of the YAML file, and check it as `_is_there` does."""
        context = info.context or {}
        if value is not None and Path(value).suffix and context.get("folder"):
            value = os.path.abspath(Path(context["folder"]) / value)  # noqa: PTH100 - keeps links
        if value is not None and value != "*" and context.get("must_exist"):
            try:
                find_world(value)
            except InputError as error:
                raise ValueError(str(error)) from error
        return value

    @field_validator("sandbox", mode="before")
    @classmethod
    def _mode(cls, value: Any) -> Any:
        return {"mode": value} if isinstance(value, str) and value in MODES else value

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [kind for kind in _KINDS if getattr(self, kind, None) is not None]
        if len(kinds) != 1:
            raise ValueError(f"give exactly one of {', '.join(_KINDS)}; there is {' and '.join(kinds) or 'none'}")
        if self.state_files and self.python is None:
            raise ValueError("state_files go with python environments only")
        return self

    @property
    def kind(self) -> str:
        return next(kind for kind in _KINDS if getattr(self, kind, None) is not None)


def _read_shorthand(field: str, value: Any) -> Any:
    return {field: value} if isinstance(value, str | Path) else value


def _build_adapter_fields() -> dict[str, Any]:
    """Return a field for every adapter that can be loaded, of its own settings."""
    fields: dict[str, Any] = {}
    for name, adapter in ADAPTERS.load_all().items():
        value: Any = adapter.settings
        if adapter.path_field:
            value = Annotated[value, BeforeValidator(partial(_read_shorthand, adapter.path_field))]
        fields[name] = (value | None, None)
    return fields


if TYPE_CHECKING:
    EnvironmentSettings = _EnvironmentSettings
else:
    EnvironmentSettings = create_model(
        "EnvironmentSettings", __base__=_EnvironmentSettings, __module__=__name__, **_build_adapter_fields()
    )


def expand_settings(settings: EnvironmentSettings) -> list[EnvironmentSettings]:
    """Expand an entry into those that it stands for: all of the library, of a folder of generated environments, of a
    checkout, of a metadata file, or itself.
    """
    if settings.library == "*":
        return [settings.model_copy(update={"library": name}) for name in ENVIRONMENTS.names()]
    if settings.linked == "*":
        return [settings.model_copy(update={"linked": name}) for name in list_worlds()]
    if settings.library is not None and "." in settings.library:
        files = list_bundle_files(settings.library)
        return [settings.model_copy(update={"library": None, "python": file}) for file in files]
    if settings.python is not None:
        several = settings.python.startswith(HUB) or Path(settings.python).is_dir()
        files = list_python_files(settings.python) if several else [settings.python]
        return [settings.model_copy(update={"python": file}) for file in files]
    if settings.kind in ADAPTERS.names():
        expanded = ADAPTERS.get(settings.kind).expand(getattr(settings, settings.kind))
        return [settings.model_copy(update={settings.kind: one}) for one in expanded]
    return [settings]


def open_source(settings: EnvironmentSettings) -> EnvironmentSource:
    """The source that one entry stands for; nothing runs yet.

    Raises:
        InputError: Something named there does not exist, or cannot be read.
    """
    if settings.library is not None:
        return build_library_source(settings.library, get_sizes(settings), settings.phrases, settings.scenarios)
    if settings.python is not None:
        return _open_python(settings, settings.python)
    if settings.linked is not None:
        return open_world(settings.linked, partial(_open_part, settings))
    options = SourceOptions(settings.sandbox, get_sizes(settings), settings.phrases, settings.scenarios)
    return ADAPTERS.get(settings.kind).open(getattr(settings, settings.kind), options)


def _open_part(settings: EnvironmentSettings, entry: str | JsonObject, folder: Path) -> EnvironmentSource:
    """Open an environment of a linked world, with the states and the sandbox of the world's own entry."""
    own = {"library": entry} if isinstance(entry, str) else entry
    shared = settings.model_dump(include={"states", "sandbox"})
    try:
        part = EnvironmentSettings.model_validate({**shared, **own}, context={"folder": folder})
    except ValidationError as error:
        raise InputError(f"world {settings.linked}: environments: {format_first_error(error)}") from error
    if part.linked is not None:
        raise InputError(f"world {settings.linked}: environments: a world cannot be part of another: name its own")
    return open_source(part)


def get_sizes(settings: EnvironmentSettings) -> dict[str, int]:
    """Return the number of initial states of each size."""
    return {size: count for size, count in settings.states.items()}  # noqa: C416 - widens the keys


def find_python_file(reference: str) -> tuple[Path, str]:
    """Split "my_env.py:MyEnv" into the file and the name of the class, "" where none is given.

    Raises:
        InputError: There is no such file.
    """
    name, _, wanted = reference.partition(":")
    if not Path(name).is_file():
        raise InputError(f"environment file not found: {name}")
    return Path(name), wanted


def list_python_files(reference: str) -> list[str]:
    """List the files of a folder that `trajsmith env gen --count` made: accepted ones where a catalogue says so.

    `hub:owner/name` is the folder that `trajsmith env pull` wrote. Any other reference is a file by itself.

    Raises:
        InputError: There is no such file, or no environment in the folder.
    """
    if reference.startswith(HUB):
        return list_pulled_files(reference)
    folder = Path(reference)
    if not folder.is_dir():
        find_python_file(reference)
        return [reference]
    names = sorted(path.parent.name for path in folder.glob("*/*.py") if path.stem == path.parent.name)
    catalogue = folder / "catalogue.json"
    if catalogue.is_file():
        entries: Any = read_json(catalogue)
        try:
            accepted = {entry["name"] for entry in entries["entries"] if entry["accepted"]}
        except (KeyError, TypeError) as error:
            raise InputError(f"{catalogue} is no catalogue of `trajsmith env gen --count`") from error
        names = [name for name in names if name in accepted]
    if not names:
        raise InputError(f"{folder} has no environments: expected NAME/NAME.py, as `trajsmith env gen --count` makes")
    return [str(folder / name / f"{name}.py") for name in names]


def _open_python(settings: EnvironmentSettings, reference: str) -> SandboxSource:
    file, wanted = find_python_file(reference)
    payload: JsonObject = {
        "source": read_text(file), "file": file.name, "cls": wanted, "sizes": get_sizes(settings),
        "given": {path.name: read_json(path) for path in settings.state_files},
    }  # fmt: skip
    phrases = settings.phrases or file.parent / "phrases.yaml"
    options = SourceOptions(settings.sandbox, get_sizes(settings), phrases, settings.scenarios)
    return open_sandboxed("native", payload, options, name=file.stem)
