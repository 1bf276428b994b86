"""trajsmith turns executable tool environments into verified multi-turn tool-use datasets, and trains on them."""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

__all__ = ["RunEnv", "RunTaskset"]
"""What the `verifiers` package finds under the id `trajsmith`; nobody else needs them."""


def __getattr__(name: str) -> Any:
    """`__version__` (a source tree that is not installed has none), and the classes that `verifiers` looks for."""
    if name in __all__:
        from trajsmith import verifiers_env

        return getattr(verifiers_env, name)
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return version("trajsmith")
    except PackageNotFoundError:
        return "0+unknown"
