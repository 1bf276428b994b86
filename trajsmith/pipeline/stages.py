"""The pipeline stages as the engine runs them: each maps one record to records, or drops it with a reason."""

import asyncio
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from typing import Any

from trajsmith.environments.injected_faults import inject_faults
from trajsmith.models import SCRIPTED, ChatModel, Role
from trajsmith.models.prompts import Prompts, PromptSpec
from trajsmith.models.settings import DIALOGUE
from trajsmith.phrasing import find_clock_date
from trajsmith.pipeline.config import RunConfig
from trajsmith.pipeline.engine import PipelineStage
from trajsmith.pipeline.quotas import apportion
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import CHAINS, GROUNDED, TASKS, TRAJECTORIES, VARIED, VERDICTS
from trajsmith.pipeline.shard_range import ShardRange
from trajsmith.pipeline.top_up_rounds import TopUpRound, build_first_round
from trajsmith.pipeline.vary_plan import VaryInput
from trajsmith.querygen import (
    PERSONA,
    PROPOSE,
    REFINE,
    WRITE,
    WRITE_PROGRAM,
    EarlierRequests,
    ModelTaskAuthor,
    ProgramWriter,
    QueryGates,
    StateEdit,
    StateProposer,
    ground_goal,
    ground_program,
    ground_proposal,
    ground_written_program,
    learn_edits,
    prove_python,
)
from trajsmith.querygen.vary import derive_variant
from trajsmith.records import (
    Chain,
    EnvironmentSpec,
    GroundedChain,
    InputError,
    RecordDropped,
    Task,
    Trajectory,
    Verdict,
    derive_seed,
    has_records,
    read_records,
)
from trajsmith.toolgraph import Sampler, SampleSettings, choose_chains, sample_across, sample_chains
from trajsmith.toolgraph.refine import EDGES, PARAMETERS
from trajsmith.usersim import (
    AGENT,
    DIALOGUE_ROLES,
    USER,
    AgentRole,
    Dialogue,
    RoleContext,
    ScriptedAgent,
    add_reasoning,
    add_tool_search,
    build_agent,
    build_faulty_agent,
    build_user,
    get_role_name,
    prepare_scripted_agent,
)
from trajsmith.verify import (
    CHECK_FUNCTION,
    CHECKLIST,
    JUDGE,
    RUBRIC,
    RUBRIC_JUDGE,
    CheckAuthor,
    Judge,
    RubricJudge,
    add_written_checks,
    add_written_criteria,
    derive_rubric,
    drop_common_criteria,
    select_best,
    verify_trajectory,
)
from trajsmith.verify.traces.replaying import IMPORTED, verify_dialogue


def find_tasks_file(context: RunContext) -> str:
    """The file of the tasks that are played."""
    return VARIED if context.config.vary.on else TASKS


STORIES = 4
"""Scenarios that are tried on the state of a chain before it is dropped."""
ORDER = ("sample", "ground", "write", "vary", "play", "verify")
"""Names of the stages, in the order of the line."""
PROMPTS: dict[Role, tuple[PromptSpec, ...]] = {
    "refine": (EDGES,),
    "classify": (PARAMETERS,),
    "proposer": (PROPOSE, WRITE_PROGRAM),
    "writer": (PERSONA, WRITE, REFINE),
    "checker": (CHECKLIST, CHECK_FUNCTION, RUBRIC),
    "agent": (AGENT,),
    "user": (USER,),
    "judge": (JUDGE, RUBRIC_JUDGE),
}
"""The prompts of each role."""


def list_stages(config: RunConfig) -> tuple[str, ...]:
    """The stages of a run: `vary` only where variants are made."""
    return tuple(name for name in ORDER if name != "vary" or config.vary.on)


class ChainPlan:
    """The inputs of `sample`: all chains of the run, drawn anew on every pass, with a known length."""

    def __init__(self, context: RunContext, rounds: Sequence[TopUpRound] = ()) -> None:
        """`rounds` are those of a run that tops up; a run without has one."""
        self.context = context
        self.rounds = rounds or (build_first_round(context.config),)

    def __len__(self) -> int:
        return sum(stop - start for start, stop in map(self._find_part, self.rounds))

    def _find_part(self, round_: TopUpRound) -> tuple[int, int]:
        """First number of the chains of a round that this run draws, and the first after them; all but in a shard."""
        shard = self.context.config.shard
        return ShardRange.parse(shard).slice(round_.chains) if shard else (0, round_.chains)

    def __iter__(self) -> Iterator[tuple[str, Chain]]:
        samplers = self.context.samplers() if self.context.config.sample.servers == 1 else {}
        for number, each in enumerate(self.rounds):
            for chain in self._drawn(number, each, samplers):
                yield chain.id, chain

    def _drawn(self, number: int, round_: TopUpRound, samplers: Mapping[str, Sampler]) -> Iterable[Chain]:
        """The chains of one round; across servers they come from all environments."""
        context = self.context
        seed = derive_seed(context.config.seed, "round", number) if number else context.config.seed
        settings = context.sample_settings.model_copy(update={"count": round_.chains})
        states = {name: list(place.states) for name, place in context.places.items()}
        counts = apportion(
            round_.chains, {name: share for name, share in context.config.sources.shares.items() if share}
        )
        settings = settings.model_copy(update={"count": counts.get("chain", 0)})
        if not settings.count:
            chains: Iterable[Chain] = ()
        elif settings.servers == 1:
            some = {name: samplers[name] for name in round_.environments or samplers}
            chains = self._choose_chains(some, states, settings, seed)
        else:
            chains = sample_across(context.graph, settings, seed, states)
        every = itertools.chain(self._draw_sources(round_, counts, seed), chains)
        return map(context.joined, itertools.islice(every, *self._find_part(round_)))

    def _choose_chains(
        self, samplers: dict[str, Sampler], states: dict[str, list[str]], settings: SampleSettings, seed: int
    ) -> Iterable[Chain]:
        """Draw chains within environments; with a plan from more of them, so that its targets are served."""
        plan = self.context.config.plan
        if plan is None:
            return sample_chains(samplers, states, settings, seed)
        pool = settings.model_copy(update={"count": settings.count * plan.pool})
        files = {name: place.file for name, place in self.context.places.items() if place.file is not None}
        return choose_chains(sample_chains(samplers, states, pool, seed), plan, settings.count, files)

    def _draw_sources(self, round_: TopUpRound, counts: Mapping[str, int], seed: int) -> Iterator[Chain]:
        """Draw the inputs of the other sources: environment, state and seed; grounding finds the calls."""
        places = self.context.places
        every = round_.environments or tuple(sorted(places))
        composed = self.context.config.roles.proposer.model == SCRIPTED
        with_tables = [name for name in every if not composed or places[name].wording.phrasebook.tables]
        nested = [
            name for name in with_tables if any(t.parent for t in places[name].wording.phrasebook.tables.values())
        ]
        long = nested if composed and nested else with_tables
        for source, names in (("program", with_tables), ("long", long), ("state", every)):
            for index in range(counts.get(source, 0)):
                if not names:
                    raise InputError(f"sources.{source}: no environment of the run has tables in its phrasebook")
                name = names[index % len(names)]
                states = places[name].states
                yield Chain(
                    index=index,
                    environment=name,
                    tools=(),
                    dependencies=(),
                    state=states[index // len(names) % len(states)],
                    sampler={},
                    seed=derive_seed(seed, source, index),
                    source=source,
                )


def check_roles(config: RunConfig) -> None:
    """Find out before any work whether the roles can be played as they are set.

    Raises:
        InputError: A prompt cannot be used, or the settings ask something of the scripted language that it cannot do.
    """
    if config.play.tools == "two_level" and config.roles.agent.model == SCRIPTED:
        raise InputError("play.tools: two_level needs a model as agent: set roles.agent, or play.tools=native")
    for role in DIALOGUE:
        DIALOGUE_ROLES.get(config.roles.of(role).played_by or SCRIPTED)
    prompts = Prompts(config.prompts)
    for role, specs in PROMPTS.items():
        for spec in specs if config.roles.of(role).model != SCRIPTED else ():
            prompts.get(spec)


def find_record_files(config: RunConfig) -> dict[str, str]:
    """Return the record file of each stage of a run, in the order of the stages."""
    files = zip(ORDER, (CHAINS, GROUNDED, TASKS, VARIED, TRAJECTORIES, VERDICTS), strict=True)
    return {stage: file for stage, file in files if stage in list_stages(config)}


class RoleFactory:
    """Creates the players of all roles: models where configured, the scripted language elsewhere."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.config = context.config

    @cached_property
    def proposer(self) -> ChatModel | None:
        return self.context.role_model("proposer")

    @cached_property
    def writer(self) -> ChatModel | None:
        return self.context.role_model("writer")

    @cached_property
    def checker(self) -> ChatModel | None:
        return self.context.role_model("checker")

    @cached_property
    def agent(self) -> ChatModel | None:
        return self.context.role_model("agent")

    @cached_property
    def user(self) -> ChatModel | None:
        return self.context.role_model("user")

    @cached_property
    def judge(self) -> ChatModel | None:
        return self.context.role_model("judge")

    @cached_property
    def earlier(self) -> EarlierRequests:
        """The requests of the run so far, those of an earlier part of it included."""
        path = self.context.run.file(TASKS)
        tasks = read_records(path, Task) if has_records(path) else ()
        texts = ((task.grounded_id, " ".join(turn.query for turn in task.turns)) for task in tasks)
        return EarlierRequests(self.config.write.author.duplicate, texts)

    async def write(self, grounded: GroundedChain) -> Task:
        """One task. Its place in the order is taken before anything is awaited, so that the order is the inputs'."""
        if self.writer is None:
            return await self._written(grounded, None)
        async with self.earlier.ticket() as ticket:
            place = self.context.place(grounded.environment)
            gates = QueryGates(place.spec, place.wording)
            settings = self.config.write.author
            author = ModelTaskAuthor(
                self.writer, place.spec, gates, self.context.prompts, settings, self.earlier, ticket
            )
            return await self._written(grounded, author)

    async def write_program(self, grounded: GroundedChain) -> Task:
        """Write the task of a grounded program, after its Python text did the same in the sandbox."""
        limits, state = self.config.verify.sandbox, self.context.state(grounded.initial_state)
        source, writer = await prove_python(grounded, limits), self.context.writer(grounded.environment)
        async with self.context.place(grounded.environment).session() as session:
            return await writer.write_program(grounded, state, session, source, limits)

    async def _written(self, grounded: GroundedChain, author: ModelTaskAuthor | None) -> Task:
        state = self.context.state(grounded.initial_state)
        async with self.context.place(grounded.environment).session() as session:
            return await self.context.writer(grounded.environment).write(grounded, state, session, author)

    async def add_checks(self, task: Task) -> Task:
        """Return the task with its rubric, and with the checks and criteria of a model that stood their tests."""
        if self.checker is None:
            return self.derive_rubric(task)
        place, context = self.context.place(task.environments[0]), self.context
        author = CheckAuthor(self.checker, place.spec, context.prompts, context.code_checks, self.config.write.checks)
        most, state = self.config.write.rubric.written, context.state(task.initial_state)
        async with place.session() as session:
            checked = self.derive_rubric(await add_written_checks(task, author, state, session))
            return await add_written_criteria(checked, author, self.rubric_judge(place.spec), most, state, session)

    def derive_rubric(self, task: Task) -> Task:
        """Return the task with the criteria that are derived from it."""
        rubric = derive_rubric(task, self.context.place(task.environments[0]).spec)
        derived = task.model_copy(update={"rubric": rubric, "rubric_dropped": ()})
        return derived.model_copy(update={"id": derived.content_id()})

    def rubric_judge(self, spec: EnvironmentSpec) -> RubricJudge | None:
        """Return who decides the criteria that execution cannot; None without a model as judge."""
        return RubricJudge(self.judge, spec, self.context.prompts) if self.judge is not None else None

    async def play(self, task: Task, candidate: int) -> Trajectory:
        """One play of a task."""
        place, state = self.context.place(task.environments[0]), self.context.state(task.initial_state)
        roles = self.config.roles
        settings = self.config.play
        agent: AgentRole
        fault = ""
        if candidate >= settings.candidates - settings.faulty:
            scripted = build_faulty_agent(task, place.wording, candidate, settings.faults, self.user is not None)
            prepare_scripted_agent(scripted, settings, find_clock_date(state))
            agent, fault = scripted, scripted.fault_kind
        else:
            agent = build_agent(get_role_name(roles.agent, self.agent), self._context(task, candidate, self.agent))
        is_scripted = isinstance(agent, ScriptedAgent)
        agent = add_reasoning(agent, task, place.wording, candidate, settings)
        agent = add_tool_search(agent, task, place.spec, candidate, is_scripted, fault)
        user = build_user(get_role_name(roles.user, self.user), self._context(task, candidate, self.user))
        async with place.session() as opened:
            session = inject_faults(opened, task)
            prompts = self.context.prompts
            dialogue = Dialogue(place.spec, task, state, session, agent, user, settings, candidate, prompts)
            return await dialogue.play()

    def _context(self, task: Task, candidate: int, model: ChatModel | None) -> RoleContext:
        place, state = self.context.place(task.environments[0]), self.context.state(task.initial_state)
        listens = self.user is not None
        prompts = self.context.prompts
        return RoleContext(task, place.spec, place.wording, state, candidate, self.config.play, prompts, model, listens)

    async def verify(self, task: Task, trajectory: Trajectory) -> Verdict:
        """Return the verdict from execution, and from the judge where execution is undecided."""
        place, state = self.context.place(trajectory.environment), self.context.state(task.initial_state)
        settings, code = self.config.verify, self.context.code_checks
        async with place.session() as session:
            if task.variant == IMPORTED:
                return await verify_dialogue(task, trajectory, state, session, settings, code)
            verdict = await verify_trajectory(task, trajectory, state, session, settings, code, place.wording)
        if self.judge is None:
            return verdict
        judge = Judge(self.judge, place.spec, self.config.judge, self.context.prompts)
        reviewed = await judge.review(task, trajectory, verdict)
        rubric_judge = RubricJudge(self.judge, place.spec, self.context.prompts)
        return await rubric_judge.review(task, trajectory, reviewed, settings.rewards)


def make_stages(context: RunContext) -> dict[str, PipelineStage[Any, Any]]:
    """All stages, by name."""
    cast = RoleFactory(context)

    async def sample(chain: Chain) -> tuple[Chain]:
        return (chain,)

    samplers = cache(context.samplers)
    known_edits: dict[tuple[str, str], list[StateEdit]] = {}
    learning = asyncio.Lock()

    async def learnt_edits(chain: Chain) -> list[StateEdit]:
        """Return the changes that the environment allows, as learnt on another of its states where it has one."""
        place = context.place(chain.environment)
        donor = place.states[(place.states.index(chain.state) + 1) % len(place.states)]
        async with learning:
            if (chain.environment, donor) not in known_edits:
                seed = derive_seed(context.config.seed, "edits", chain.environment)
                grounder, tries = context.grounder(chain.environment, donor), context.config.state_first.edits
                async with place.session() as session:
                    edits = await learn_edits(grounder.spec.tools, grounder, session, seed, tries)
                known_edits[chain.environment, donor] = edits
            return known_edits[chain.environment, donor]

    async def ground(chain: Chain) -> tuple[GroundedChain]:
        grounder = context.grounder(chain.environment, chain.state)
        broken = context.place(chain.environment).broken.get(chain.state)
        if broken is not None:
            raise RecordDropped("broken_link", broken)
        async with context.place(chain.environment).session() as session:
            settings = context.config.state_first
            if chain.source == "state" and cast.proposer is not None:
                proposer = StateProposer(cast.proposer, grounder.spec, context.prompts)
                sampler = samplers()[chain.environment]
                grounded, state = await ground_proposal(chain, proposer, grounder, sampler, session, settings)
                context.run.put_state(state)
                return (grounded,)
            if chain.source == "state":
                edits, sampler = await learnt_edits(chain), samplers()[chain.environment]
                return (await ground_goal(chain, edits, grounder, sampler, session, settings),)
            if chain.source is not None and cast.proposer is not None:
                author = ProgramWriter(cast.proposer, grounder.spec, context.prompts)
                limits, programs = context.config.verify.sandbox, context.config.programs
                return (await ground_written_program(chain, author, grounder, session, programs, limits),)
            if chain.source is not None:
                return (await ground_program(chain, grounder, session, context.config.programs),)
            tried = {chain.scenario}
            try:
                return (await grounder.ground(chain, session),)
            except RecordDropped:
                while chain.scenario and len(tried) < STORIES:
                    other = samplers()[chain.environment].draw_other_story(chain, tried)
                    if other is None:
                        break
                    tried.add(other.scenario)
                    with suppress(RecordDropped):
                        return (await grounder.ground(other, session),)
                raise

    async def write(grounded: GroundedChain) -> tuple[Task]:
        task = await (cast.write(grounded) if grounded.program is None else cast.write_program(grounded))
        return (await cast.add_checks(task),)

    async def vary(wanted: VaryInput) -> tuple[Task]:
        task, name = wanted
        if name is None:
            return (task,)
        async with context.place(task.environments[0]).session() as session:
            varied = await derive_variant(name, context.case(task, name, session))
        allowed = {tool.name for tool in context.leave_out_tools(task.environments[0]).tools}
        for call in (call for turn in varied.task.turns for call in turn.gold_calls):
            if call.tool not in allowed:
                raise RecordDropped(f"{name}: left_out_tool", call.tool)
        if varied.state is not None:
            context.run.put_state(varied.state)
        return (cast.derive_rubric(varied.task),)

    async def play(task: Task) -> tuple[Trajectory, ...]:
        return tuple([await cast.play(task, candidate) for candidate in range(context.config.play.candidates)])

    async def verify(played: tuple[Task, tuple[Trajectory, ...]]) -> list[Verdict]:
        task, candidates = played
        judged = [(trajectory, await cast.verify(task, trajectory)) for trajectory in candidates]
        judged = drop_common_criteria(task, judged, context.config.verify.rewards)
        return select_best(judged) if context.config.verify.best else [verdict for _, verdict in judged]

    return {
        "sample": PipelineStage("sample", sample, CHAINS, Chain, title="sample chains"),
        "ground": PipelineStage("ground", ground, GROUNDED, GroundedChain, CHAINS, Chain, "ground by execution"),
        "write": PipelineStage("write", write, TASKS, Task, GROUNDED, GroundedChain, "write tasks"),
        "vary": PipelineStage("vary", vary, VARIED, Task, title="derive variants"),
        "play": PipelineStage("play", play, TRAJECTORIES, Trajectory, find_tasks_file(context), Task, "play dialogues"),
        "verify": PipelineStage("verify", verify, VERDICTS, Verdict, title="verify by replay"),
    }
