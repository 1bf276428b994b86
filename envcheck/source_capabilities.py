"""Optional capabilities of environment sources that checks use: fresh processes, leak reports, static analysis."""

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


class ReopenedProcesses:
    """Other processes with the same environment; started when they are needed, ended with the examination."""

    def __init__(self, source: ReopenableSource | None) -> None:
        self.source = source
        self._open: dict[tuple[int, int], EnvironmentSource] = {}

    def at(self, hash_seed: int, shift: int, fresh: bool = False) -> EnvironmentSource:
        """The environment in a process with this hash seed and clock."""
        assert self.source is not None
        if fresh and (hash_seed, shift) in self._open:
            _close(self._open.pop((hash_seed, shift)))
        if (hash_seed, shift) not in self._open:
            self._open[hash_seed, shift] = self.source.reopen(hash_seed, shift)
        return self._open[hash_seed, shift]

    def close(self) -> None:
        for source in self._open.values():
            _close(source)
        self._open.clear()


def _close(source: EnvironmentSource) -> None:
    if isinstance(source, CloseableSource):
        source.close()
