"""trajsmith turns executable tool environments into verified multi-turn tool-use datasets, and trains on them."""

from importlib.metadata import PackageNotFoundError, version


def __getattr__(name: str) -> str:
    """`__version__`, looked up when somebody asks (a source tree that is not installed has none)."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return version("trajsmith")
    except PackageNotFoundError:
        return "0+unknown"
