"""Types of settings that nearly everything has: seeds and names."""

from typing import Annotated

from pydantic import AfterValidator, Field

LONGEST_NAME = 120


def _check_name(name: str) -> str:
    if not name.strip() or len(name) > LONGEST_NAME or "/" in name or "\\" in name or not name.isprintable():
        raise ValueError(f"a name of 1 to {LONGEST_NAME} printable characters, without slashes and line breaks")
    return name


Seed = Annotated[int, Field(ge=0, lt=2**63)]
"""Seed of randomness; not negative, so that no two spellings mean the same."""
PlainName = Annotated[str, AfterValidator(_check_name)]
"""A name that people read and that files, tables and addresses are made of."""
