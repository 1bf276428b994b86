"""The package mcp: other packages pin 1.x, which is enough for all but servers and clients of the protocol."""

import re

from trajsmith.records import InputError

OLDEST = (2, 2)
"""Major and minor version whose servers and clients are used here."""


def require_mcp(use: str) -> None:
    """Refuse early where the package is missing or too old.

    Args:
        use: What needs it, as the beginning of the sentence.

    Raises:
        InputError: With the command that installs it.
    """
    from importlib import metadata  # sandbox workers import this package, and never need it

    try:
        version = metadata.version("mcp")
    except metadata.PackageNotFoundError:
        version = ""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST:
        there = f"mcp {version} is installed" if version else "the package mcp is missing"
        raise InputError(f"{use} needs mcp 2.2 or newer, and {there}: pip install 'mcp>=2.2,<3'")
