"""Bundled and installed environments as sources, in this process."""

from functools import cached_property
from pathlib import Path
from typing import Any

from trajsmith.environments import library
from trajsmith.environments.library import ENVIRONMENTS, get_phrases_path
from trajsmith.environments.native import Environment
from trajsmith.environments.native_program import NativeProgram, NativeSession
from trajsmith.environments.program_sessions import StartCache
from trajsmith.environments.recent_states import RecentStates
from trajsmith.phrasing import Phrasebook, ScenarioBook, find_language_file, load_phrasebook, open_scenarios
from trajsmith.records import EnvironmentSpec, JsonObject


class NativeSource:
    """A class of this process as `EnvironmentSource`."""

    def __init__(
        self,
        cls: type[Environment[Any]],
        sizes: dict[str, int],
        phrases: Path | None = None,
        scenarios: Path | None = None,
    ) -> None:
        self.cls = cls
        self.name = cls.environment_name()
        self.sizes = sizes
        """How many initial states of each size."""
        self._starts: StartCache = RecentStates()
        self.phrases = phrases if phrases is not None else get_phrases_path(cls)
        self._scenarios = scenarios

    @property
    def isolation(self) -> str:
        return "bundled or installed code, in process"

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    @property
    def has_bundled_words(self) -> bool:
        """Return True if its words come with trajsmith, whose tests hold that they fit the tools."""
        bundled = self.cls.__module__.startswith(f"{library.__name__}.") and self._scenarios is None
        return bundled and self.phrases == get_phrases_path(self.cls)

    @cached_property
    def phrasebook(self) -> Phrasebook:
        """The phrasebook beside the code; an empty one where there is none."""
        phrases = find_language_file(self.phrases)
        return load_phrasebook(phrases) if phrases.is_file() else Phrasebook()

    @cached_property
    def scenarios(self) -> ScenarioBook:
        """The scenarios of the settings, or those beside the phrasebook."""
        return open_scenarios(self._scenarios, self.phrases)

    async def spec(self) -> EnvironmentSpec:
        return self.cls.describe()

    async def states(self, seed: int) -> list[JsonObject]:
        return NativeProgram(self.cls, self.sizes).states(seed)

    async def open(self) -> NativeSession:
        return NativeSession(self.cls, self.cls.describe(), self._starts)


def build_library_source(
    name: str, sizes: dict[str, int], phrases: Path | None = None, scenarios: Path | None = None
) -> NativeSource:
    """A bundled environment, with words of its own if none are given.

    Raises:
        InputError: There is none of this name.
    """
    return NativeSource(ENVIRONMENTS.get(name), sizes, phrases, scenarios)
