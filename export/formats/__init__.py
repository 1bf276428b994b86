"""The export matrix: one small file per format; a file that is here is registered."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from export.formats._base import Format, FormatSettings, Item
from trajectory import InputError

__all__ = ["Format", "FormatSettings", "Item", "all_formats", "format_named"]


@cache
def all_formats() -> dict[str, Format]:
    """Every format by name."""
    modules = (module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
    found = [import_module(f"{__name__}.{name}").FORMAT for name in modules]
    return {made.name: made for made in sorted(found, key=lambda made: made.name)}


def format_named(name: str) -> Format:
    """One format.

    Raises:
        InputError: There is none of that name; the text lists them.
    """
    formats = all_formats()
    if name not in formats:
        raise InputError(f"no format {name!r}; there are {', '.join(formats)}")
    return formats[name]
