"""trajsmith turns executable tool environments into verified multi-turn tool-use datasets, and trains on them.

The public names are loaded on first use, so that `import trajsmith` costs nothing and sandboxed workers stay small.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trajsmith.environments import Environment, EnvironmentState, StateModel, tool
    from trajsmith.pipeline.verifiers_env import RunEnv, RunTaskset
    from trajsmith.records import Task, ToolError, Trajectory, Verdict

    __version__: str

_HOMES = {
    "Environment": "trajsmith.environments",
    "EnvironmentState": "trajsmith.environments",
    "RunEnv": "trajsmith.pipeline.verifiers_env",
    "RunTaskset": "trajsmith.pipeline.verifiers_env",
    "StateModel": "trajsmith.environments",
    "Task": "trajsmith.records",
    "ToolError": "trajsmith.records",
    "Trajectory": "trajsmith.records",
    "Verdict": "trajsmith.records",
    "tool": "trajsmith.environments",
}
"""Public name to the package that defines it. The `verifiers` package looks for `RunEnv` and `RunTaskset`."""

__all__ = [
    "Environment",
    "EnvironmentState",
    "RunEnv",
    "RunTaskset",
    "StateModel",
    "Task",
    "ToolError",
    "Trajectory",
    "Verdict",
    "tool",
]


def __getattr__(name: str) -> Any:
    """Load a public name, or the version of the installed distribution."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("trajsmith")
    except PackageNotFoundError:
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, "__version__"])
