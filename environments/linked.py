"""Linked worlds: environments that share people, dates and other values, so that what one tells is needed in another.

A world is a YAML file. Its environments are played as one (`environments/composite.py`); `links` say which fields of
their states mean the same, and `scenarios` tell stories with steps in several of them, tied by `same_as`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from trajsmith.environments.composite import CompositePart, CompositeSource, compose_tool_name
from trajsmith.environments.linked_states import BrokenLinkError, StateLink, link_states
from trajsmith.environments.session import EnvironmentSource, Session
from trajsmith.phrasing import Phrasebook, Scenario, ScenarioBook, ScenarioStep, load_yaml_model
from trajsmith.records import (
    EnvironmentFault,
    EnvironmentSpec,
    FrozenModel,
    InputError,
    JsonObject,
    PlainName,
    content_hash,
)

_WORLDS = Path(__file__).parent / "worlds"


class LinkedWorld(FrozenModel):
    """One world, as its file describes it."""

    name: PlainName
    """Name of the environment that all of them are together."""
    description: str
    """What a person does there, in one sentence."""
    environments: tuple[str | JsonObject, ...] = Field(min_length=2)
    """Names of bundled environments, or entries as in a run's configuration."""
    clock: str = ""
    """Environment whose day all have; the dates of the others are moved. The first one if left out."""
    links: tuple[StateLink, ...] = ()
    """Fields of the states that mean the same."""
    words: dict[str, str] = {}
    """Thing that several environments have ("room_id") to the one whose words it is spoken of in."""
    roles: tuple[str, ...] = ()
    """Who the user may be; those of the environments if left out."""
    scenarios: tuple[Scenario, ...] = Field(min_length=1)
    """Stories; a step's tool is `environment.tool`, and its name is the tool's if it has no `id`."""

    @model_validator(mode="before")
    @classmethod
    def _name_steps(cls, data: Any) -> Any:
        for scenario in _list_entries(data, "scenarios"):
            for step in _list_entries(scenario, "steps"):
                if isinstance(step, dict) and isinstance(step.get("tool"), str):
                    step.setdefault("id", step["tool"].rpartition(".")[2])
        return data

    @model_validator(mode="after")
    def _names_tools(self) -> Self:
        for scenario in self.scenarios:
            for step in scenario.steps:
                if "." not in step.tool:
                    raise ValueError(f"scenario {scenario.id}: write the tool {step.tool!r} as environment.tool")
        return self

    def compose_scenarios(self, names: Sequence[str]) -> ScenarioBook:
        """Return the stories with the tools' names in the composite; users do not know the values that cross.

        Args:
            names: Names of the environments.

        Raises:
            InputError: A step names an environment that the world does not have.
        """
        composed = []
        for scenario in self.scenarios:
            steps: list[ScenarioStep] = []
            homes = {step.name: step.tool.partition(".")[0] for step in scenario.steps}
            for step in scenario.steps:
                environment, _, tool = step.tool.partition(".")
                if environment not in names:
                    raise InputError(
                        f"world {self.name}: scenario {scenario.id}: there is no environment {environment!r}; "
                        f"it has {', '.join(names)}"
                    )
                crossing = (name for name, other in step.same_as.items() if homes[other.split(".")[0]] != environment)
                update = {"tool": compose_tool_name(environment, tool), "unsaid": (*step.unsaid, *crossing)}
                steps.append(step.model_copy(update=update))
            composed.append(scenario.model_copy(update={"steps": tuple(steps)}))
        return ScenarioBook(scenarios=tuple(composed))


class LinkedSource:
    """Source of sessions in a linked world."""

    def __init__(self, world: LinkedWorld, sources: Sequence[EnvironmentSource]) -> None:
        self.world = world
        self.sources = sources
        self.broken: dict[str, str] = {}
        """Hash of an initial state to why its links could not be applied; filled by `states`."""
        self._composite: CompositeSource | None = None
        self._clock = world.clock

    @property
    def name(self) -> str:
        return self.world.name

    @property
    def isolation(self) -> str:
        return ", ".join(dict.fromkeys(source.isolation for source in self.sources))

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(note for source in self.sources for note in source.notes)

    @property
    def composite(self) -> CompositeSource:
        """The environments as one; available with the spec."""
        assert self._composite is not None, "ask for the spec first"
        return self._composite

    @property
    def phrasebook(self) -> Phrasebook:
        """The words of all environments; available with the spec."""
        book = self.composite.phrasebook
        return book.model_copy(update={"roles": self.world.roles}) if self.world.roles else book

    @property
    def scenarios(self) -> ScenarioBook:
        """The stories of the world; available with the spec."""
        return self.world.compose_scenarios([part.spec.name for part in self.composite.parts])

    async def spec(self) -> EnvironmentSpec:
        if self._composite is None:
            parts = [CompositePart(source, await source.spec()) for source in self.sources]
            self._check_names([part.spec.name for part in parts])
            self._clock = self.world.clock or parts[0].spec.name
            self._composite = CompositeSource(parts, self.world.name, self.world.description, self.world.words)
        return self._composite.joined

    def _check_names(self, names: Sequence[str]) -> None:
        """Find out whether all environments that the file names are there.

        Raises:
            InputError: One is not.
        """
        used = [self.world.clock or names[0], *self.world.words.values()]
        used += [place.partition(".")[0] for link in self.world.links for place in (link.source, link.target)]
        wrong = next((name for name in used if name not in names), None)
        if wrong is not None:
            raise InputError(f"world {self.name}: there is no environment {wrong!r}; it has {', '.join(names)}")

    async def states(self, seed: int) -> list[JsonObject]:
        """The initial states: one clock, links applied, each part validated by its environment.

        A state whose links cannot be applied stays as it is, and `broken` says why.
        """
        await self.spec()
        self.broken.clear()
        linked = []
        for state in await self.composite.states(seed):
            try:
                linked.append(await self._check(link_states(state, self.world.links, self._clock)))
            except BrokenLinkError as error:
                self.broken[content_hash(state)] = str(error)
                linked.append(state)
        return linked

    async def _check(self, state: JsonObject) -> JsonObject:
        """Return a state that all environments can start from.

        Raises:
            BrokenLinkError: One of them refuses its part.
        """
        for part in self.composite.parts:
            session = await part.source.open()
            try:
                await session.reset(state[part.spec.name])
            except (InputError, EnvironmentFault) as error:
                raise BrokenLinkError(f"{part.spec.name} refuses its linked state: {error}") from error
            finally:
                await session.close()
        return state

    async def open(self) -> Session:
        await self.spec()
        return await self.composite.open()


def _list_entries(node: Any, key: str) -> list[Any]:
    """Return the list under a key; empty where there is none, which the fields' types then say."""
    entries = node.get(key) if isinstance(node, dict) else None
    return entries if isinstance(entries, list) else []


def list_worlds() -> list[str]:
    """Return the names of the bundled worlds."""
    return sorted(file.stem for file in _WORLDS.glob("*.yaml"))


def find_world(reference: str) -> Path:
    """Return the file of a world: a bundled one by its name, or a file of the user's own.

    Raises:
        InputError: There is none.
    """
    if reference in list_worlds():
        return _WORLDS / f"{reference}.yaml"
    if not Path(reference).is_file():
        raise InputError(
            f"no linked world named {reference!r}, and no such file; there are: {', '.join(list_worlds())}"
        )
    return Path(reference)


def open_world(reference: str, open_part: Callable[[str | JsonObject, Path], EnvironmentSource]) -> LinkedSource:
    """Open a world.

    Args:
        reference: Name of a bundled world, or a file.
        open_part: Opens one of its environments, as the file names it; the folder of the file goes with it.

    Raises:
        InputError: The file cannot be used, or one of its environments is not there.
    """
    file = find_world(reference)
    world = load_yaml_model(file, LinkedWorld, "world")
    return LinkedSource(world, [open_part(entry, file.parent) for entry in world.environments])
