"""Adapters by name: each reads environments in the form of another project, from settings of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from pydantic import BaseModel

from trajsmith.environments import adapters
from trajsmith.environments.outside_state import find_outside_state
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.session import EnvironmentSource
from trajsmith.records import JsonObject, Registry


@dataclass(frozen=True)
class SourceOptions:
    """Settings of an environment that do not depend on its form."""

    sandbox: SandboxSettings
    sizes: dict[str, int]
    """Number of initial states of each size, for adapters that make states."""
    phrases: Path | None = None
    """Phrasebook of the environment."""
    scenarios: Path | None = None
    """Scenarios of the environment."""


def _expand_to_itself(settings: Any) -> Sequence[Any]:
    return (settings,)


@dataclass(frozen=True)
class Adapter:
    """Reader of environments of one form."""

    settings: type[BaseModel]
    """What stands under the adapter's name in the configuration."""
    open: Callable[[Any, SourceOptions], EnvironmentSource]
    """Opens the source that the settings stand for; nothing runs yet. Raises `InputError`."""
    expand: Callable[[Any], Sequence[Any]] = _expand_to_itself
    """Spells out settings that stand for several environments, such as a whole checkout."""
    path_field: str = ""
    """Field that a text in place of the settings stands for."""


ADAPTERS: Registry[Adapter] = Registry(
    "adapters",
    {
        module.name: f"{adapters.__name__}.{module.name}.adapter"
        for module in iter_modules(adapters.__path__)
        if module.ispkg
    },
)


def open_sandboxed(
    kind: str,
    payload: JsonObject,
    options: SourceOptions,
    preload: Sequence[str] = (),
    events: tuple[str, ...] = (),
    own_modules: bool = False,
    name: str = "",
) -> SandboxSource:
    """Open a source whose code runs in the sandbox.

    Args:
        kind: Loader of the program; see `trajsmith.environments.programs.find_loader`.
        payload: What the loader gets.
        preload: Modules that the workers import before they are locked.
        events: Audit events that libraries of this form raise in calls; they may keep something outside of the state.
        own_modules: The objects of the modules are each episode's own.
        name: The environment's name; that of the payload if not given.
    """
    sandbox = options.sandbox.model_copy(update={"imports": (*options.sandbox.imports, *preload)})
    alone = sandbox.plays != "shared" and (bool(events) or _keeps_outside_state(payload, own_modules))
    title = name or str(payload.get("name") or payload.get("file") or kind)
    return SandboxSource(
        title, kind, payload, sandbox, options.phrases, own_process=alone, events=events, scenarios=options.scenarios
    )


def _keeps_outside_state(payload: JsonObject, own_modules: bool) -> bool:
    """Return whether the code may keep something outside of its state, so that only a fresh start forgets it."""
    return any(find_outside_state(source, own_modules) for source in _list_sources(payload))


def _list_sources(payload: JsonObject) -> list[str]:
    """Return the texts of all foreign code that goes to a loader."""
    sources = [entry["source"] for entry in payload.get("sources", ())]
    return [*sources, payload["source"]] if isinstance(payload.get("source"), str) else sources
