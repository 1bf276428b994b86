"""The part of a run that one shard does, written as "3/8"."""

import re
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import AfterValidator

from trajsmith.records import InputError


@dataclass(frozen=True, order=True)
class ShardRange:
    """Shard `number` of `count`, counted from 1."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "3/8".

        Raises:
            InputError: It is no such text, or there is no such shard.
        """
        match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
        shard = cls(int(match[1]), int(match[2])) if match else None
        if shard is None or not 1 <= shard.number <= shard.count:
            raise InputError(f"shard {text!r}: write it as number/count, the number from 1: 3/8")
        return shard

    def slice(self, total: int) -> tuple[int, int]:
        """Return the first index of this shard's part of `total` things, and the first after it."""
        return (self.number - 1) * total // self.count, self.number * total // self.count

    @property
    def label(self) -> str:
        """Return a name for directories that sorts by number: "03-of-64"."""
        return f"{self.number:0{len(str(self.count))}d}-of-{self.count}"

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def _check_shard(text: str) -> str:
    try:
        return str(ShardRange.parse(text))
    except InputError as error:
        raise ValueError(str(error)) from error


ShardText = Annotated[str, AfterValidator(_check_shard)]
