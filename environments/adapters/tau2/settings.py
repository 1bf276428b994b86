"""What a user says about a domain of τ²-bench, and what is read of the package and its data."""

import os
import re
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from pydantic import NonNegativeInt

from trajsmith.environments.adapters.tau2.closure import collect_sources
from trajsmith.environments.file_reading import read_json, read_text, require_objects
from trajsmith.records import FrozenModel, InputError, JsonObject, SourcePath, canonical_json

PRELOAD: tuple[str, ...] = ("trajsmith.environments.adapters.tau2.program", "tomllib", "yaml")
"""Modules that a worker must have imported before it is locked."""
_MARKER = Path("environment") / "toolkit.py"
"""A file that the benchmark's package has, and the other package of this name on PyPI has not."""
_DATA_NAME = re.compile(r"""["']([\w./-]+\.(?:json|toml|ya?ml|md|txt))["']""")
_SOURCE = "https://github.com/sierra-research/tau2-bench"


class Tau2Settings(FrozenModel):
    """One domain."""

    domain: str
    """Its name, for example "retail"."""
    path: SourcePath | None = None
    """A checkout, or the directory of the package; left out, the installed package `tau2`."""
    data: SourcePath | None = None
    """The directory that holds `tau2/domains`; left out, TAU2_DATA_DIR, or `data` in the checkout."""
    name: str | None = None
    """Name of the environment; "tau2_" and the domain if left out."""
    options: JsonObject = {}
    """What the domain's `get_environment` gets, for example {"policy_type": "workflow"}."""
    tasks: str = "tasks.json"
    """File of the tasks, beside the database; their initial states are those of the environment."""
    without: tuple[str, ...] = ()
    """Tasks that are left out, by id."""
    max_states: NonNegativeInt = 8
    """Initial states of tasks that differ from the domain's own, in their order; 0 for all."""


def get_environment_name(settings: Tau2Settings) -> str:
    """The environment's name, without running anything."""
    return settings.name or f"tau2_{settings.domain}".replace("-", "_")


def build_payload(settings: Tau2Settings) -> JsonObject:
    """Everything that the loader needs, as plain JSON; sources are read and parsed, never run or imported.

    Raises:
        InputError: The package or a file of the domain is not there, or cannot be read.
    """
    package = find_package(settings.path)
    _require_domain(settings, package)
    modules = collect_sources(package, [f"tau2.domains.{settings.domain}.environment", "tau2.data_model.tasks"])
    folder = _data(settings, package)
    tasks, initial = _tasks(settings, folder)
    return {
        "name": get_environment_name(settings),
        "domain": settings.domain,
        "file": f"tau2/domains/{settings.domain}",
        "modules": [[name, file, source] for name, (file, source) in modules.items()],
        "data": _files(folder, [source for _, source in modules.values()], settings.tasks),
        "options": settings.options,
        "initial": initial,
        "tasks": tasks,
    }


def build_evaluation_payload(settings: Tau2Settings, evaluators: Sequence[str]) -> JsonObject:
    """Everything that judging the tasks of a domain needs, as plain JSON: also the modules of its evaluators.

    Raises:
        InputError: As `build_payload`.
    """
    package = find_package(settings.path)
    _require_domain(settings, package)
    wanted = [f"tau2.domains.{settings.domain}.environment", "tau2.data_model.tasks", "tau2.data_model.message"]
    modules = collect_sources(package, [*wanted, *evaluators])
    folder = _data(settings, package)
    return {
        "name": get_environment_name(settings),
        "domain": settings.domain,
        "modules": [[name, file, source] for name, (file, source) in modules.items()],
        "data": _files(folder, [source for _, source in modules.values()], settings.tasks),
    }


def read_raw_tasks(settings: Tau2Settings) -> list[JsonObject]:
    """The tasks as they stand in the domain's file.

    Raises:
        InputError: The package or the file of the tasks is not there, or cannot be read.
    """
    return _list_tasks(settings, _data(settings, find_package(settings.path)))


def read_tasks(settings: Tau2Settings) -> list[JsonObject]:
    """The tasks with their gold actions, as plain data: {"id", "state", "calls"}.

    `state` is the number of the task's initial state among those that the environment gives; a call is {"tool",
    "arguments", "actor"}. Tasks whose state is beyond `max_states` are not among them.

    Raises:
        InputError: The package or the file of the tasks is not there, or cannot be read.
    """
    return _tasks(settings, _data(settings, find_package(settings.path)))[0]


def _require_domain(settings: Tau2Settings, package: Path) -> None:
    """Refuse a domain that the package does not have."""
    if not (package / "domains" / settings.domain / "environment.py").is_file():
        domains = sorted(file.parent.name for file in package.glob("domains/*/environment.py"))
        raise InputError(f"{package}: no domain {settings.domain!r}; there are {', '.join(domains) or 'none'}")


def find_package(path: Path | None) -> Path:
    """The directory of the benchmark's package.

    Raises:
        InputError: It is not there, or another package has its name.
    """
    if path is not None:
        for candidate in (path, path / "tau2", path / "src" / "tau2"):
            if (candidate / _MARKER).is_file():
                return candidate
        raise InputError(f"{path}: no package tau2 with {_MARKER} in it: give a checkout of {_SOURCE}")
    spec = PathFinder.find_spec("tau2")  # looks for it without importing it
    places = list(spec.submodule_search_locations or ()) if spec else []
    for place in places:
        if (Path(place) / _MARKER).is_file():
            return Path(place)
    problem = "the package tau2 that is installed is another one" if spec else "the package tau2 is not installed"
    raise InputError(f"{problem} (PyPI's is not the benchmark): clone {_SOURCE} and give it as `path`")


def _data(settings: Tau2Settings, package: Path) -> Path:
    """The directory of the domain's data."""
    named = os.environ.get("TAU2_DATA_DIR")
    root = settings.data or (Path(named) if named else package.parents[1] / "data")
    folder = root / "tau2" / "domains" / settings.domain
    if not folder.is_dir():
        raise InputError(f"{folder}: no data of the domain; set `data`, or TAU2_DATA_DIR, to what holds tau2/domains")
    return folder


def _files(folder: Path, sources: list[str], tasks: str) -> JsonObject:
    """Texts of the files that the sources name, by their path below the domain's directory. Tasks travel apart."""
    named = {name for source in sources for name in _DATA_NAME.findall(source)} - {tasks}
    return {name: read_text(folder / name) for name in sorted(named) if (folder / name).is_file()}


def _tasks(settings: Tau2Settings, folder: Path) -> tuple[list[JsonObject], list[JsonObject | None]]:
    """Tasks, and the initial states that they need; the first is the domain's own."""
    initial: list[JsonObject | None] = [None]
    places: dict[bytes, int] = {canonical_json(None): 0}
    tasks = []
    for task in _list_tasks(settings, folder):
        wanted = task.get("initial_state") or None
        key = canonical_json(wanted)
        if str(task.get("id")) in settings.without:
            continue
        if key not in places:
            if settings.max_states and len(initial) > settings.max_states:
                continue
            places[key] = len(initial)
            initial.append(wanted)
        tasks.append({"id": str(task.get("id")), "state": places[key], "calls": _calls(task)})
    return tasks, initial


def _list_tasks(settings: Tau2Settings, folder: Path) -> list[JsonObject]:
    listed = read_json(folder / settings.tasks)
    listed = listed.get("tasks") if isinstance(listed, dict) else listed
    return require_objects(listed, f"{folder / settings.tasks}: not a list of tasks")


def _calls(task: JsonObject) -> list[JsonObject]:
    actions = (task.get("evaluation_criteria") or {}).get("actions") or []
    return [
        {"tool": action["name"], "arguments": action["arguments"], "actor": action.get("requestor") or "assistant"}
        for action in actions
    ]
