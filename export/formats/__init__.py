"""The export matrix: one small file per format; a file that is here is registered."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from trajsmith.export.formats._base import ExportItem, Format, FormatSettings
from trajsmith.records import InputError

__all__ = ["ExportItem", "Format", "FormatSettings", "find_format", "load_formats"]


@cache
def load_formats() -> dict[str, Format]:
    """Every format by name."""
    modules = (module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
    formats = [import_module(f"{__name__}.{name}").FORMAT for name in modules]
    return {entry.name: entry for entry in sorted(formats, key=lambda entry: entry.name)}


def find_format(name: str) -> Format:
    """One format.

    Raises:
        InputError: There is none of that name; the text lists them.
    """
    formats = load_formats()
    if name not in formats:
        raise InputError(f"no format {name!r}; there are {', '.join(formats)}")
    return formats[name]
