"""Types of settings that nearly everything has: seeds and names."""

from typing import Annotated

from pydantic import AfterValidator, Field

LONGEST_NAME = 120
LONGEST_TOOL_NAME = 256
PLAIN_NAME = f"a name of 1 to {LONGEST_NAME} printable characters, without slashes and line breaks"


def is_plain_name(name: str) -> bool:
    """Return whether a name can be shown, and be part of a file's name."""
    return bool(name.strip()) and len(name) <= LONGEST_NAME and not set("/\\") & set(name) and name.isprintable()


def shorten_name(name: str) -> str:
    """Quote a name for an error, whatever stands in it."""
    return ascii(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}...")


def _check_name(name: str) -> str:
    if not is_plain_name(name):
        raise ValueError(PLAIN_NAME)
    return name


Seed = Annotated[int, Field(ge=0, lt=2**63)]
"""Seed of randomness; not negative, so that no two spellings mean the same."""
PlainName = Annotated[str, AfterValidator(_check_name)]
"""A name that people read and that files, tables and addresses are made of."""
