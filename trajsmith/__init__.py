"""trajsmith turns executable tool environments into verified multi-turn tool-use datasets, and trains on them.

The public names are loaded on first use, so that `import trajsmith` costs nothing and sandboxed workers stay small.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trajsmith.api.datasets import export_dataset, filter_trajectories
    from trajsmith.api.environments import build_graph, check_environment, open_environment
    from trajsmith.api.evaluation import evaluate
    from trajsmith.api.imports import import_dialogues
    from trajsmith.api.runs import Run, load_run, resume, run
    from trajsmith.api.trl_spec import TrajsmithSpec
    from trajsmith.environments import Environment, EnvironmentState, StateModel, tool
    from trajsmith.pipeline.config import RunConfig
    from trajsmith.pipeline.verifiers_env import RunEnv, RunTaskset
    from trajsmith.records import Task, ToolError, Trajectory, Verdict
    from trajsmith.verify import verify

    __version__: str

_HOMES = {
    "Environment": "trajsmith.environments",
    "EnvironmentState": "trajsmith.environments",
    "Run": "trajsmith.api.runs",
    "RunConfig": "trajsmith.pipeline.config",
    "RunEnv": "trajsmith.pipeline.verifiers_env",
    "RunTaskset": "trajsmith.pipeline.verifiers_env",
    "StateModel": "trajsmith.environments",
    "Task": "trajsmith.records",
    "ToolError": "trajsmith.records",
    "TrajsmithSpec": "trajsmith.api.trl_spec",
    "Trajectory": "trajsmith.records",
    "Verdict": "trajsmith.records",
    "build_graph": "trajsmith.api.environments",
    "check_environment": "trajsmith.api.environments",
    "evaluate": "trajsmith.api.evaluation",
    "export_dataset": "trajsmith.api.datasets",
    "filter_trajectories": "trajsmith.api.datasets",
    "import_dialogues": "trajsmith.api.imports",
    "load_run": "trajsmith.api.runs",
    "open_environment": "trajsmith.api.environments",
    "resume": "trajsmith.api.runs",
    "run": "trajsmith.api.runs",
    "tool": "trajsmith.environments",
}
"""Public name to the module that defines it. The `verifiers` package looks for `RunEnv` and `RunTaskset`."""

__all__ = [
    "Environment",
    "EnvironmentState",
    "Run",
    "RunConfig",
    "RunEnv",
    "RunTaskset",
    "StateModel",
    "Task",
    "ToolError",
    "Trajectory",
    "TrajsmithSpec",
    "Verdict",
    "build_graph",
    "check_environment",
    "evaluate",
    "export_dataset",
    "filter_trajectories",
    "import_dialogues",
    "load_run",
    "open_environment",
    "resume",
    "run",
    "tool",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Load a public name, or the version of the installed distribution."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "verify":  # the package of this name can be called: docs/decisions/0084-public-api.md
        return import_module("trajsmith.verify")
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("trajsmith")
    except PackageNotFoundError:
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
