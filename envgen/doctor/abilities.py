"""What a source may be able to do beyond `EnvironmentSource`; checks that need it are skipped where it is missing."""

from typing import Protocol, runtime_checkable

from environments import EnvironmentSource
from trajectory import JsonObject


@runtime_checkable
class Reopening(Protocol):
    """Sources that can start the same environment again elsewhere."""

    def reopen(self, hash_seed: int, shift: int) -> EnvironmentSource:
        """The same environment in a fresh process; nothing needs to start before it is used.

        Args:
            hash_seed: PYTHONHASHSEED of the process.
            shift: Another number, another clock and other entropy: 0 is the usual one, each step is years ahead, a
                negative one back.
        """


@runtime_checkable
class Looking(Protocol):
    """Sources that notice what the code of their environment uses and leaves behind."""

    async def look(self) -> tuple[list[str], list[str]] | None:
        """Since the last look: paths of state outside of the plays that calls changed, and which of clock, random, uuid
        and entropy they used. None where plays have processes of their own, so that there is nothing to see."""


@runtime_checkable
class Gated(Protocol):
    """Sources whose code is looked at before it runs."""

    def gate(self) -> list[JsonObject]:
        """What the static gate says: objects with `line`, `rule` and `message`."""


@runtime_checkable
class Closing(Protocol):
    """Sources that hold processes."""

    def close(self) -> None:
        """Let them go."""
