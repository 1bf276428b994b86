"""A stdio server as a process group that always ends, with a short memory of what it said where nobody listens."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

LONGEST_MESSAGE = 16 * 1024 * 1024
"""Bytes of one line on stdout; a longer one ends the connection."""
_LONGEST_GARBAGE = 200
"""Characters that are kept of a line that is no message."""
_STDERR_TAIL = 8 * 1024
_MOST_GARBAGE = 100
"""Lines on stdout that are no messages, such as banners, before the server counts as broken."""
_GRACE = 1.0
"""Seconds between the polite and the hard kill. The workspace is thrown away, so there is nothing to save."""
_POLL = 0.01
_PR_SET_PDEATHSIG = 1


class ServerProcess:
    """Use `spawn`. `stop` and `kill` end the whole process group."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin and process.stdout and process.stderr
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._stderr = process.stderr
        self._said = b""
        self._killed = False
        self.garbage: list[str] = []
        """Beginnings of lines on stdout that are no JSON-RPC messages."""
        self.mute = False
        """True once nothing more can come from stdout."""

    @classmethod
    async def spawn(cls, command: list[str], env: dict[str, str], directory: Path) -> "ServerProcess":
        """Start it in its own session.

        Raises:
            OSError: It cannot be started.
        """
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=env,
            cwd=directory,
            start_new_session=True,
            limit=LONGEST_MESSAGE,
            preexec_fn=_build_parent_death_hook(),
        )
        return cls(process)

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode

    @property
    def last_stderr_line(self) -> str:
        """The last line on stderr that is not empty."""
        lines = self._said.decode("utf-8", errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    async def listen_to_stderr(self) -> None:
        """Read stderr to its end, so that the server never blocks on it; keeps only the tail."""
        while chunk := await self._stderr.read(64 * 1024):
            self._said = (self._said + chunk)[-_STDERR_TAIL:]

    async def skip_stdout(self) -> None:
        """Read stdout to its end and forget it."""
        while await self._stdout.read(64 * 1024):
            pass

    async def lines(self) -> AsyncIterator[bytes]:
        """Lines of stdout, until it ends, overflows, or holds too much that is no message."""
        try:
            while len(self.garbage) < _MOST_GARBAGE and (line := await self._stdout.readline()):
                if line.strip():
                    yield line
        except ValueError:
            self.garbage.append(f"a line of more than {LONGEST_MESSAGE} bytes")
        finally:
            self.mute = True

    def add_garbage(self, line: bytes) -> None:
        """Keep the beginning of a line that is no message."""
        self.garbage.append(line[: 4 * _LONGEST_GARBAGE].decode("utf-8", errors="replace").strip()[:_LONGEST_GARBAGE])

    async def send(self, line: bytes) -> None:
        """Write to stdin.

        Raises:
            OSError: The server does not listen any more.
        """
        self._stdin.write(line)
        await self._stdin.drain()

    def close_stdin(self) -> None:
        """Tell it that nothing more comes."""
        self._stdin.close()

    async def wait_until_ended(self, seconds: float) -> bool:
        """Wait for its end. Polls, because asyncio's own `wait` also waits for children that hold the pipes."""
        for _ in range(max(1, round(seconds / _POLL))):
            if self._process.returncode is not None:
                return True
            await asyncio.sleep(_POLL)
        return self._process.returncode is not None

    async def stop(self) -> None:
        """Ask it to end, then kill the group; also when this is cancelled."""
        try:
            self.close_stdin()
            self._signal(signal.SIGTERM)
            await self.wait_until_ended(_GRACE)
        finally:
            self.kill()
        await self.wait_until_ended(_GRACE)

    def kill(self) -> None:
        """Kill the group at once, whatever is left of it."""
        if not self._killed:
            self._killed = True
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _build_parent_death_hook() -> Callable[[], None] | None:
    """Return a hook that has a new server killed with its parent (Linux only; elsewhere it has to notice EOF)."""
    if sys.platform != "linux":
        return None
    from trajsmith.environments.sandbox.syscalls import libc, prctl

    libc()  # looked up before the fork

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    return ask
