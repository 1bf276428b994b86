"""The run context: opened environments with specs, wording and states, and the stages' workers."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path

from trajsmith.environments import EnvironmentSource, Session
from trajsmith.environments.composite import (
    NAME_SEPARATOR,
    CompositeLookup,
    CompositePart,
    CompositeSource,
    compose_tool_name,
)
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.linked import LinkedSource
from trajsmith.environments.sources import find_python_file, open_source
from trajsmith.grounding import Grounder, Producers, check_phrasebook, check_scenarios
from trajsmith.models import SCRIPTED, ChatModel, Role
from trajsmith.models.prompts import Prompts
from trajsmith.models.registry import ModelRegistry
from trajsmith.phrasing import ScenarioBook, Wording, set_language
from trajsmith.pipeline.config import RunConfig
from trajsmith.pipeline.environment_references import has_bundled_words
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.worker_pool import StageExecutor
from trajsmith.querygen import TaskWriter
from trajsmith.querygen.vary import VARIANTS, VariantCase
from trajsmith.records import (
    Chain,
    EnvironmentSpec,
    InputError,
    JsonObject,
    ModelFault,
    RunError,
    Task,
    ToolSpec,
    UserCache,
    content_hash,
    suggest_names,
    write_whole_file,
)
from trajsmith.toolgraph import (
    GraphIndex,
    Sampler,
    SampleSettings,
    ToolGraph,
    ValueLink,
    build_graph,
    compose_graph,
    list_declared_links,
    score_world_links,
)
from trajsmith.toolgraph.embeddings import build_embedding_similarity
from trajsmith.toolgraph.evidence import GraphEvidence, apply_evidence, compute_schema_scores, execute_all_links
from trajsmith.toolgraph.refine import classify_parameters, refine_edges
from trajsmith.verify import CodeCheckRunner

GRAPH = "graph.json"
_GRAPHS = UserCache("graphs")


@dataclass(frozen=True)
class EnvironmentHandle:
    """One opened environment of the run."""

    source: EnvironmentSource
    spec: EnvironmentSpec
    wording: Wording
    states: tuple[str, ...]
    """Hashes of its initial states."""

    broken: Mapping[str, str] = field(default_factory=dict)
    """Of a linked world: hash of an initial state to why its links could not be applied."""
    file: Path | None = None
    """Python file that it was opened from."""

    @property
    def scenarios(self) -> ScenarioBook:
        """Scenarios of the environment; none for a composite."""
        return self.wording.scenarios

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """A session that is closed whatever happens."""
        session = await self.source.open()
        try:
            yield session
        finally:
            await session.close()


class RunContext:
    """All environments of a run with their graph, models and prompts."""

    def __init__(self, config: RunConfig, run: RunDirectory, places: dict[str, EnvironmentHandle]) -> None:
        self.config = config
        self.run = run
        self.places = places
        self._composites = CompositeLookup(places, _compose_handles)
        self.grounder = lru_cache(maxsize=256)(self._grounder)
        self.givers = lru_cache(maxsize=64)(self._givers)
        """Environment to what its part of the graph says of who gives which parameter."""
        self.writer = lru_cache(maxsize=64)(self._writer)
        self.state = lru_cache(maxsize=64)(run.get_state)
        """Initial state by hash; shared, so it must not be changed."""
        self.workers: StageExecutor | None = None
        """Processes for the stages that compute; started by the first stage that deserves them."""

    @classmethod
    async def open(cls, config: RunConfig, run: RunDirectory) -> "RunContext":
        """Describe all environments and store their specs and initial states; the run must be locked.

        Raises:
            InputError: Two environments have one name, or one of them or its phrasebook cannot be used.
            EnvironmentFault: One of them does not start.
        """
        context = await cls.reopen(config, run)
        for place in context.places.values():
            stored_words = run.file(f"environments/{place.spec.name}.phrases.json").is_file()  # a run goes on with them
            if not stored_words and not has_bundled_words(place.source):
                check_phrasebook(place.source.phrasebook, place.spec)
            stored = tuple([run.put_state(state) for state in await place.source.states(config.seed)])
            if stored != place.states:
                raise InputError(f"environment {place.spec.name}: the same seed gives other initial states each time")
            name = place.spec.name
            _store_once(run, f"environments/{name}.json", name, place.spec.model_dump(mode="json", exclude_none=True))
            _store_once(run, f"environments/{name}.phrases.json", name, place.source.phrasebook.model_dump(mode="json"))
            if place.scenarios.scenarios:
                stories = place.scenarios.model_dump(mode="json")
                _store_once(run, f"environments/{name}.scenarios.json", name, stories)
        return context

    @classmethod
    async def reopen(cls, config: RunConfig, run: RunDirectory) -> "RunContext":
        """The same without writing anything, for looking at a run."""
        set_language(config.language)
        places: dict[str, EnvironmentHandle] = {}
        for entry in config.environments:
            source = open_source(entry)
            spec = await source.spec()
            if spec.name in places:
                raise InputError(f"two environments are named {spec.name!r}: list each once")
            states = tuple([content_hash(state) for state in await source.states(config.seed)])
            if not has_bundled_words(source):
                check_scenarios(source.scenarios, spec)
            wording = Wording(source.phrasebook, spec.tools, source.scenarios)
            broken = source.broken if isinstance(source, LinkedSource) else {}
            file = find_python_file(entry.python)[0] if entry.python is not None else None
            places[spec.name] = EnvironmentHandle(source, spec, wording, states, broken, file)
        return cls(config, run, places)

    async def prepare_graph(self) -> None:
        """Build the tool graph, try its links by execution, ask models about it where the run has them, and save it.

        A graph that the run has already stays. An environment whose links cannot be tried is a finding of the graph.

        Raises:
            RunError: A model does not answer; nothing is saved, and what it did answer is not paid again.
        """
        if self.run.file(GRAPH).is_file():
            return
        key = self._name_graph()
        if key is not None and (stored := _GRAPHS.get(key)) is not None:
            write_whole_file(self.run.file(GRAPH), stored)
            return
        try:
            graph = await self._refine_by_models(await self._build_graph())
        except ModelFault as fault:
            message = f"the tool graph: {fault}; when the model answers, resume with `trajsmith resume {self.run.path}`"
            raise RunError(message) from fault
        graph.save(self.run.file(GRAPH))
        if key is not None:
            _GRAPHS.put(key, self.run.file(GRAPH).read_bytes())

    def _name_graph(self) -> str | None:
        """Return a key of what the graph depends on beside our code; None where other code or models take part."""
        config = self.config
        by_models = any(config.roles.of(role).model != SCRIPTED for role in ("refine", "classify"))
        bundled = all(has_bundled_words(place.source) for place in self.places.values())
        if by_models or config.graph.embedding or not bundled:
            return None
        states = {name: [place.spec.version, *place.states] for name, place in self.places.items()}
        return content_hash([config.graph.model_dump(mode="json"), config.seed, config.language, states])

    async def _build_graph(self) -> ToolGraph:
        """Build the graph from the schemas and what execution shows."""
        settings, seed, parts = self.config.graph, self.config.seed, self._list_parts()
        similarity = build_embedding_similarity(settings.embedding) if settings.embedding else None
        tools = [tool for part in parts for tool in part.spec.tools]
        graph = build_graph(tools, settings, similarity)
        if settings.execution.calls:
            scores = compute_schema_scores(tools, settings, similarity)
            executed = await execute_all_links([part.source for part in parts], scores, settings.execution, seed)
            graph = apply_evidence(graph, GraphEvidence(executed=executed), scores, settings)
        return await self._add_worlds(graph)

    def _list_parts(self) -> list[CompositePart]:
        """Return the environments of the run by their names, with those of its linked worlds.

        Raises:
            InputError: Two of them have one name and are not the same.
        """
        parts: dict[str, CompositePart] = {}
        for place in self.places.values():
            source = place.source
            own = source.composite.parts if isinstance(source, LinkedSource) else [CompositePart(source, place.spec)]
            for part in own:
                name = part.spec.name
                taken = self.places[name].spec if name in self.places else parts.setdefault(name, part).spec
                if taken.version != part.spec.version:
                    raise InputError(f"two environments are named {name!r}: rename one of them")
                parts[name] = part
        return [parts[name] for name in sorted(parts)]

    async def _add_worlds(self, graph: ToolGraph) -> ToolGraph:
        """Return the graph of the places: worlds in place of the environments that only they have."""
        worlds = {name: place for name, place in self.places.items() if isinstance(place.source, LinkedSource)}
        if not worlds:
            return graph
        inside = [graph.inside[name] for name in sorted(self.places) if name not in worlds]
        for name in sorted(worlds):
            inside.append((await self._compose_world(worlds[name], graph)).inside[name])
        return graph.model_copy(
            update={
                "tools": tuple(tool for part in inside for tool in part.tools),
                "parameters": tuple(node for part in inside for node in part.parameters),
                "edges": tuple(edge for part in inside for edge in part.edges),
                "evidence": (),
            }
        )

    async def _compose_world(self, world: EnvironmentHandle, graph: ToolGraph) -> ToolGraph:
        """Return the graph of one world; the links of its stories are tried by execution like any other."""
        assert isinstance(world.source, LinkedSource)
        settings, homes = self.config.graph.execution, world.source.composite.homes
        declared = list_declared_links(world.scenarios, world.spec, homes)
        if not settings.calls:
            return compose_graph(graph, world.spec, homes, declared)
        scores = score_world_links(compose_graph(graph, world.spec, homes, ()), declared)
        (executed,) = await execute_all_links([world.source], scores, settings, self.config.seed)
        return compose_graph(graph, world.spec, homes, declared, executed.links)

    async def _refine_by_models(self, graph: ToolGraph) -> ToolGraph:
        """The graph with what the models of two roles say of it; as it is where both roles are scripted."""
        refiner, classifier, settings = self.role_model("refine"), self.role_model("classify"), self.config.graph
        if refiner is not None:
            graph, _ = await refine_edges(graph, refiner, self.prompts, settings.refine, settings)
        if classifier is not None:
            graph = await classify_parameters(graph, classifier, self.prompts, settings.refine)
        return graph

    @cached_property
    def registry(self) -> ModelRegistry:
        """The models of the run; opened when a stage first asks for one."""
        config = self.config
        return ModelRegistry(
            config.models, config.roles, config.budget, self.run.path, f"trajsmith resume {self.run.path}"
        )

    @cached_property
    def prompts(self) -> Prompts:
        """The prompts of all roles; a folder of the user's own goes before ours."""
        return Prompts(self.config.prompts)

    def role_model(self, role: Role) -> ChatModel | None:
        """Return the model of a role; None for the scripted language. Requests are cached and counted.

        Raises:
            InputError: The model's key is missing, or its provider's library.
        """
        return self.registry.role_model(role) if self.config.roles.of(role).model != SCRIPTED else None

    async def close(self) -> None:
        """Let go of the models and of the workers; safe to call twice."""
        await self.close_workers()
        if "registry" in vars(self):
            await self.registry.close()

    async def close_workers(self) -> None:
        """End the processes of stages; safe to call twice."""
        workers, self.workers = self.workers, None
        if workers is not None:
            await workers.close()

    @cached_property
    def graph(self) -> ToolGraph:
        """The tool graph of the run, after `prepare_graph`."""
        return ToolGraph.load(self.run.file(GRAPH))

    def place(self, name: str) -> EnvironmentHandle:
        """Return an environment of the run, or several of them played as one: "bank+travel"."""
        return self._composites[name]

    def home(self, environment: str, tool: str) -> tuple[str, str]:
        """The environment that a call goes to, and the tool's name there; both as they are for a tool of none."""
        if environment in self.places:
            return environment, tool
        source = self.place(environment).source
        return (
            source.homes.get(tool, (environment, tool)) if isinstance(source, CompositeSource) else (environment, tool)
        )

    def joined(self, chain: Chain) -> Chain:
        """A chain across servers as one on all its environments at once; others as they are. Stores its state."""
        if chain.servers is None:
            return chain
        names = sorted(set(chain.servers))
        states = {name: self.places[name].states for name in names}
        state = {name: self.state(hashes[chain.index % len(hashes)]) for name, hashes in states.items()}
        steps = zip(chain.servers, chain.tools, strict=True)
        update = {
            "environment": NAME_SEPARATOR.join(names),
            "tools": tuple(compose_tool_name(server, tool) for server, tool in steps),
            "state": self.run.put_state(state),
            "servers": None,
            "id": "",
        }
        return Chain(**{**dict(chain), **update})

    @cached_property
    def sample_settings(self) -> SampleSettings:
        """The settings of sampling; tools that are left out are left out of linked worlds, too."""
        if not (settings := self.config.sample).without_tools:
            return settings
        own = {f"{name}.{tool.name}" for name, place in self.places.items() for tool in self._list_left_out(place)}
        added = sorted(own - set(settings.without_tools))
        return settings.model_copy(update={"without_tools": (*settings.without_tools, *added)})

    def check_names(self) -> None:
        """Find out before any work whether all tools that tasks are to do without are there, and all that a plan names.

        Raises:
            InputError: One is not.
        """
        self._check_left_out()
        if self.config.plan is not None:
            tools = {name: [tool.name for tool in place.spec.tools] for name, place in self.places.items()}
            self.config.plan.check(tools, VARIANTS.names())

    def _check_left_out(self) -> None:
        known = {
            name for place in self.places.values() for tool in place.spec.tools for name in _list_names(place, tool)
        }
        for name in self.config.sample.without_tools:
            if name not in known:
                hint = suggest_names(name, sorted(known))
                raise InputError(f"sample.without_tools: no tool {name!r}{f' ({hint})' if hint else ''}")

    def _list_left_out(self, place: EnvironmentHandle) -> list[ToolSpec]:
        wanted = frozenset(self.config.sample.without_tools)
        return [tool for tool in place.spec.tools if not wanted.isdisjoint(_list_names(place, tool))]

    def leave_out_tools(self, environment: str) -> EnvironmentSpec:
        """Return the spec of an environment, or of several as one, without the tools that no task may need."""
        place = self.place(environment)
        left_out = set(self.sample_settings.without_tools)
        if not left_out:
            return place.spec
        homes = ((tool, ".".join(self.home(environment, tool.name))) for tool in place.spec.tools)
        return place.spec.model_copy(update={"tools": tuple(tool for tool, name in homes if name not in left_out)})

    def samplers(self) -> dict[str, Sampler]:
        return {
            name: Sampler(GraphIndex(self.graph, name), self.sample_settings, place.scenarios)
            for name, place in self.places.items()
        }

    @cached_property
    def code_checks(self) -> CodeCheckRunner:
        """Return the runner of hand-written check functions, started on first use."""
        return CodeCheckRunner(self.config.verify.sandbox)

    def _grounder(self, environment: str, state: str) -> Grounder:
        place = self.place(environment)
        book, givers = place.wording.phrasebook, self.givers(environment)
        spec = self.leave_out_tools(environment)
        return Grounder(spec, self.state(state), book, self.config.ground, givers, place.scenarios)

    def _givers(self, environment: str) -> Producers:
        return index_givers(GraphIndex(self.graph, environment))

    def _writer(self, environment: str) -> TaskWriter:
        place = self.place(environment)
        others = partial(self._list_other_tools, environment)
        return TaskWriter(place.spec, place.wording, self.config.write, others)

    def _list_other_tools(self, environment: str) -> tuple[ToolSpec, ...]:
        """Return the tools of the run's other environments; of the bundled ones where it has no other.

        A task across environments shows more than one already.
        """
        if environment not in self.places:
            return ()
        specs = [self.places[name].spec for name in sorted(self.places) if name != environment]
        specs = specs or [ENVIRONMENTS.get(name).describe() for name in ENVIRONMENTS.names() if name != environment]
        return tuple(tool for spec in specs for tool in spec.tools)

    def case(self, task: Task, variant: str, session: Session) -> VariantCase:
        """Return the case from which a task variant is made."""
        place, config = self.place(task.environments[0]), self.config
        state = self.state(task.initial_state)
        entities, audit = config.vary.entities, config.write.audit
        return VariantCase(task, state, session, place.spec, place.wording, variant, entities, audit)


def _compose_handles(parts: list[EnvironmentHandle]) -> EnvironmentHandle:
    source = CompositeSource([CompositePart(part.source, part.spec) for part in parts])
    return EnvironmentHandle(source, source.joined, Wording(source.phrasebook, source.joined.tools), ())


def _store_once(run: RunDirectory, file: str, name: str, value: JsonObject) -> None:
    """Store what a run was started with; a run goes on only with the same.

    Raises:
        InputError: The environment or its words were changed meanwhile.
    """
    if not run.file(file).is_file():
        run.write_json(file, value)
    elif run.read_json(file) != value:
        changed = "words" if file.endswith((".phrases.json", ".scenarios.json")) else "code or schemas"
        raise InputError(
            f"environment {name}: its {changed} changed since this run was started: start anew with --fresh"
        )


def _list_names(place: EnvironmentHandle, tool: ToolSpec) -> set[str]:
    """Return the names of a tool in settings: as of its environment, and in a linked world as of the part it is of."""
    names = {f"{place.spec.name}.{tool.name}"}
    if isinstance(place.source, LinkedSource):
        names.add(".".join(place.source.composite.homes[tool.name]))
    return names


def index_givers(index: GraphIndex) -> Producers:
    """Return the givers of each parameter: reading tools first, then by name match."""
    return {
        key: [(source, link.output) for source, link in sorted(links, key=lambda pair: _first(index, *pair))]
        for key, links in index.producers.items()
    }


def _first(index: GraphIndex, source: str, link: ValueLink) -> tuple[bool, float, str]:
    return source not in index.reads, -link.score, source
