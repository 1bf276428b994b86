"""The environments of a run, opened: specs, words, states, and the workers of each stage."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache

from chatmodel import Wording
from environments import EnvironmentSource, Session
from environments.sources import open_source
from grounding import Grounder
from querygen import TaskWriter
from querygen.vary import Case
from toolgraph import GraphIndex, Sampler, ToolGraph, build_graph
from toolgraph.embed import embedding_similarity
from trajectory import EnvironmentSpec, InputError, JsonObject, Task, content_hash
from trajsmith.config import RunConfig
from trajsmith.rundir import RunDirectory

GRAPH = "graph.json"


@dataclass(frozen=True)
class Place:
    """One environment of the run."""

    source: EnvironmentSource
    spec: EnvironmentSpec
    wording: Wording
    states: tuple[str, ...]
    """Hashes of its initial states."""

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """A session that is closed whatever happens."""
        session = await self.source.open()
        try:
            yield session
        finally:
            await session.close()


class World:
    """All environments of a run."""

    def __init__(self, config: RunConfig, run: RunDirectory, places: dict[str, Place]) -> None:
        self.config = config
        self.run = run
        self.places = places
        self.grounder = lru_cache(maxsize=256)(self._grounder)
        self.state = lru_cache(maxsize=64)(run.get_state)
        """Initial state by hash; shared, so it must not be changed."""

    @classmethod
    async def open(cls, config: RunConfig, run: RunDirectory) -> "World":
        """Describe all environments and store their specs and initial states; the run must be locked.

        Raises:
            InputError: Two environments have one name, or one of them cannot be used.
            EnvironmentFault: One of them does not start.
        """
        world = await cls.reopen(config, run)
        for place in world.places.values():
            stored = tuple([run.put_state(state) for state in await place.source.states(config.seed)])
            if stored != place.states:
                raise InputError(f"environment {place.spec.name}: the same seed gives other initial states each time")
            name = place.spec.name
            _keep(run, f"environments/{name}.json", name, place.spec.model_dump(mode="json", exclude_none=True))
            _keep(run, f"environments/{name}.phrases.json", name, place.source.phrasebook.model_dump(mode="json"))
        return world

    @classmethod
    async def reopen(cls, config: RunConfig, run: RunDirectory) -> "World":
        """The same without writing anything, for looking at a run."""
        places: dict[str, Place] = {}
        for entry in config.environments:
            source = open_source(entry)
            spec = await source.spec()
            if spec.name in places:
                raise InputError(f"two environments are named {spec.name!r}: list each once")
            states = tuple([content_hash(state) for state in await source.states(config.seed)])
            places[spec.name] = Place(source, spec, Wording(source.phrasebook, spec.tools), states)
        return cls(config, run, places)

    @cached_property
    def graph(self) -> ToolGraph:
        """The tool graph; read from the run if it is there, built and saved if not."""
        path = self.run.file(GRAPH)
        if path.is_file():
            return ToolGraph.load(path)
        settings = self.config.graph
        similarity = embedding_similarity(settings.embedding) if settings.embedding else None
        tools = [tool for name in sorted(self.places) for tool in self.places[name].spec.tools]
        graph = build_graph(tools, settings, similarity)
        self.run.write_json(GRAPH, graph.model_dump(mode="json", exclude_none=True))
        return graph

    def samplers(self) -> dict[str, Sampler]:
        return {name: Sampler(GraphIndex(self.graph, name), self.config.sample) for name in self.places}

    def _grounder(self, environment: str, state: str) -> Grounder:
        place = self.places[environment]
        return Grounder(place.spec, self.state(state), place.wording.phrasebook, self.config.ground)

    def writer(self, environment: str) -> TaskWriter:
        place = self.places[environment]
        return TaskWriter(place.spec, place.wording, self.config.write)

    def case(self, task: Task, variant: str, session: Session) -> Case:
        """What a variant of a task is made from."""
        place = self.places[task.environments[0]]
        entities = self.config.vary.entities
        return Case(task, self.state(task.initial_state), session, place.spec, place.wording, variant, entities)


def _keep(run: RunDirectory, file: str, name: str, value: JsonObject) -> None:
    """Store what a run was started with; a run goes on only with the same.

    Raises:
        InputError: The environment or its words were changed meanwhile.
    """
    if not run.file(file).is_file():
        run.write_json(file, value)
    elif run.read_json(file) != value:
        what = "words" if file.endswith(".phrases.json") else "code or schemas"
        raise InputError(f"environment {name}: its {what} changed since this run was started: start anew with --fresh")
