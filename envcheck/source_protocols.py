"""Optional abilities of an environment source; checks that need a missing one are skipped."""

from typing import Protocol, runtime_checkable

from trajsmith.environments import EnvironmentSource
from trajsmith.records import JsonObject


@runtime_checkable
class ReopenableSource(Protocol):
    """Sources that can start the same environment again in a fresh process."""

    def reopen(self, hash_seed: int, shift: int) -> EnvironmentSource:
        """Start the same environment in a fresh process, which begins only when it is first used.

        Args:
            hash_seed: PYTHONHASHSEED of the process.
            shift: Another number, another clock and other entropy: 0 is the usual one, each step is years ahead, a
                negative one back.
        """


@runtime_checkable
class LeakReportingSource(Protocol):
    """Sources that record side effects of their environment's code outside of the state."""

    async def look(self) -> tuple[list[str], list[str]] | None:
        """Return changed paths outside of the sessions and the nondeterminism sources used since the last call.
        and entropy they used. None where plays have processes of their own, so that there is nothing to see."""


@runtime_checkable
class StaticallyCheckedSource(Protocol):
    """Sources whose code is analysed statically before it runs."""

    def gate(self) -> list[JsonObject]:
        """Return the findings of the static gate: objects with `line`, `rule` and `message`."""


@runtime_checkable
class CloseableSource(Protocol):
    """Sources that hold processes and must be closed."""

    def close(self) -> None:
        """Stop all processes."""
