"""An environment of foreign code as `EnvironmentSource`: everything that is asked of it happens in the sandbox."""

from functools import cached_property
from pathlib import Path

from trajsmith.environments.program_sessions import ProgramSession, RestorableSession, StartCache
from trajsmith.environments.recent_states import RecentStates
from trajsmith.environments.sandbox.host import WorkerHost
from trajsmith.environments.sandbox.link import SandboxLink
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.phrasing import Phrasebook, ScenarioBook, load_phrasebook, open_scenarios
from trajsmith.records import EnvironmentSpec, JsonObject


class SandboxSource:
    """A program in workers."""

    def __init__(
        self,
        name: str,
        kind: str,
        payload: JsonObject,
        settings: SandboxSettings,
        phrases: Path | None = None,
        own_process: bool = False,
        hash_seed: int = 0,
        shift: int = 0,
        events: tuple[str, ...] = (),
        scenarios: Path | None = None,
    ) -> None:
        """Nothing starts yet.

        Args:
            name: See `Host`, as for the others.
            phrases: File of its phrasebook.
            scenarios: File of its scenarios; `scenarios.yaml` beside the phrasebook if left out.
            own_process: The code may keep something outside of its state: plays get a process each, and go back only by
                a fresh process and the same calls.
        """
        self.host = WorkerHost(
            name, kind, payload, settings, own_process, hash_seed=hash_seed, shift=shift, events=events
        )
        self._events = events
        self._made_of = (name, kind, payload, settings, phrases, own_process)
        self._own_process = own_process
        self._phrases, self._scenarios = phrases, scenarios
        self._starts: StartCache = RecentStates()

    @property
    def name(self) -> str:
        """The program's own name, once it is loaded."""
        return self.host.name

    @property
    def isolation(self) -> str:
        """Mode, processes, and layers that the user allowed to be missing."""
        settings = self.host.settings
        if settings.mode == "unsafe":
            return "unsafe: a process without any lock"
        missing = f", without {', '.join(settings.allow_missing)}" if settings.allow_missing else ""
        plays = "in a process each" if self.host.own_process else "share"
        return f"sandbox {settings.mode}, plays {plays}{missing}"

    @cached_property
    def phrasebook(self) -> Phrasebook:
        return load_phrasebook(self._phrases) if self._phrases and self._phrases.is_file() else Phrasebook()

    @cached_property
    def scenarios(self) -> ScenarioBook:
        return open_scenarios(self._scenarios, self._phrases)

    async def spec(self) -> EnvironmentSpec:
        return await self.host.spec()

    async def states(self, seed: int) -> list[JsonObject]:
        await self.spec()
        return await self.host.states(seed)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of the loader on the environment's files; available with the spec."""
        return self.host.notes

    def reopen(self, hash_seed: int, shift: int) -> "SandboxSource":
        """The same environment in other processes.

        Args:
            hash_seed: PYTHONHASHSEED of the processes; the usual one is 0.
            shift: Another number, another virtual clock and chance; the usual one is 0.
        """
        return SandboxSource(
            *self._made_of, hash_seed=hash_seed, shift=shift, events=self._events, scenarios=self._scenarios
        )

    async def look(self) -> tuple[list[str], list[str]] | None:
        """See `Host.look`."""
        return await self.host.look()

    async def open(self) -> ProgramSession:
        session_class = ProgramSession if self._own_process else RestorableSession
        return session_class(await self.spec(), SandboxLink(self.host), self._starts)

    def close(self) -> None:
        """End the program's worker; a session that is used after it makes its calls again in a new one."""
        self.host.close()
