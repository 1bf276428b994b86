"""The stages of the line as the engine runs them: each reads one record and gives records, or drops with a reason."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from chatmodel import SCRIPTED, ChatModel, Role
from chatmodel.prompts import Prompts, PromptSpec
from chatmodel.surface import clock_of
from environments.staged import staged
from querygen import PERSONA, REFINE, WRITE, Author, Earlier, Gates
from querygen.vary import derive
from toolgraph import Sampler, sample_across, sample_chains
from toolgraph.refine import EDGES, PARAMETERS
from trajectory import Chain, GroundedChain, InputError, JsonObject, Task, Trajectory, Verdict, derive_seed
from trajsmith.config import RunConfig
from trajsmith.engine import Stage
from trajsmith.journal import read_records
from trajsmith.rounds import Round, first_round
from trajsmith.varying import TASKS, VARIED, VaryInput, tasks_file
from trajsmith.world import Place, World
from usersim import AGENT, USER, AgentRole, Dialogue, ModelAgent, ModelUser, UserRole, scripted_agent, scripted_user
from verify import JUDGE, Judge, select_best, verify_trajectory
from verify.outside.playing import IMPORTED, verify_outside

CHAINS, GROUNDED = "chains.jsonl", "grounded.jsonl"
TRAJECTORIES, VERDICTS = "trajectories.jsonl", "verdicts.jsonl"
ORDER = ("sample", "ground", "write", "vary", "play", "verify")
"""Names of the stages, in the order of the line."""
PROMPTS: dict[Role, tuple[PromptSpec, ...]] = {
    "refine": (EDGES,),
    "classify": (PARAMETERS,),
    "writer": (PERSONA, WRITE, REFINE),
    "agent": (AGENT,),
    "user": (USER,),
    "judge": (JUDGE,),
}
"""The prompts of each role."""


def order(config: RunConfig) -> tuple[str, ...]:
    """The stages of a run: `vary` only where variants are made."""
    return tuple(name for name in ORDER if name != "vary" or config.vary.on)


class ChainPlan:
    """The inputs of `sample`: all chains of the run, drawn anew on every pass, with a known length."""

    def __init__(self, world: World, rounds: Sequence[Round] = ()) -> None:
        """`rounds` are those of a run that tops up; a run without has one."""
        self.world = world
        self.rounds = rounds or (first_round(world.config),)

    def __len__(self) -> int:
        return sum(each.chains for each in self.rounds)

    def __iter__(self) -> Iterator[tuple[str, Chain]]:
        samplers = self.world.samplers() if self.world.config.sample.servers == 1 else {}
        for number, each in enumerate(self.rounds):
            for chain in self._drawn(number, each, samplers):
                yield chain.id, chain

    def _drawn(self, number: int, round_: Round, samplers: Mapping[str, Sampler]) -> Iterable[Chain]:
        """The chains of one round; across servers they come from all environments."""
        world = self.world
        seed = derive_seed(world.config.seed, "round", number) if number else world.config.seed
        settings = world.config.sample.model_copy(update={"count": round_.chains})
        states = {name: list(place.states) for name, place in world.places.items()}
        if settings.servers == 1:
            some = {name: samplers[name] for name in round_.environments or samplers}
            return sample_chains(some, states, settings, seed)
        return map(world.joined, sample_across(world.graph, settings, seed, states))


def check_cast(config: RunConfig) -> None:
    """Find out before any work whether the roles can be played as they are set.

    Raises:
        InputError: A prompt cannot be used, or the settings ask something of the scripted language that it cannot do.
    """
    if config.play.tools == "two_level" and config.roles.agent.model == SCRIPTED:
        raise InputError("play.tools: two_level needs a model as agent: set roles.agent, or play.tools=native")
    prompts = Prompts(config.prompts)
    for role, specs in PROMPTS.items():
        for spec in specs if config.roles.of(role).model != SCRIPTED else ():
            prompts.get(spec)


class Cast:
    """Who plays which role in this run: models where they are configured, the scripted language where not."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.config = world.config

    @cached_property
    def writer(self) -> ChatModel | None:
        return self.world.talker("writer")

    @cached_property
    def agent(self) -> ChatModel | None:
        return self.world.talker("agent")

    @cached_property
    def user(self) -> ChatModel | None:
        return self.world.talker("user")

    @cached_property
    def judge(self) -> ChatModel | None:
        return self.world.talker("judge")

    @cached_property
    def earlier(self) -> Earlier:
        """The requests of the run so far, those of an earlier part of it included."""
        path = self.world.run.file(TASKS)
        tasks = read_records(path, Task) if path.is_file() else ()
        texts = ((task.grounded_id, " ".join(turn.query for turn in task.turns)) for task in tasks)
        return Earlier(self.config.write.author.duplicate, texts)

    async def write(self, grounded: GroundedChain) -> Task:
        """One task. Its place in the order is taken before anything is awaited, so that the order is the inputs'."""
        if self.writer is None:
            return await self._written(grounded, None)
        async with self.earlier.ticket() as ticket:
            place = self.world.place(grounded.environment)
            gates = Gates(place.spec, place.wording)
            settings = self.config.write.author
            author = Author(self.writer, place.spec, gates, self.world.prompts, settings, self.earlier, ticket)
            return await self._written(grounded, author)

    async def _written(self, grounded: GroundedChain, author: Author | None) -> Task:
        state = self.world.state(grounded.initial_state)
        async with self.world.place(grounded.environment).session() as session:
            return await self.world.writer(grounded.environment).write(grounded, state, session, author)

    async def play(self, task: Task, candidate: int) -> Trajectory:
        """One play of a task."""
        place, state = self.world.place(task.environments[0]), self.world.state(task.initial_state)
        agent, user = self._agent(task, place, candidate), self._user(task, place, state, candidate)
        async with place.session() as opened:
            session = staged(opened, task)
            settings, prompts = self.config.play, self.world.prompts
            dialogue = Dialogue(place.spec, task, state, session, agent, user, settings, candidate, prompts)
            return await dialogue.play()

    def _agent(self, task: Task, place: Place, candidate: int) -> AgentRole:
        if self.agent is None:
            return scripted_agent(task, place.wording, candidate, listens=self.user is not None)
        return ModelAgent(self.agent, place.spec, task, self.config.play, candidate)

    def _user(self, task: Task, place: Place, state: JsonObject, candidate: int) -> UserRole:
        if self.user is None:
            return scripted_user(task, place.wording, candidate, clock_of(state))
        return ModelUser(self.user, place.spec, place.wording, task, state, candidate, self.world.prompts)

    async def verify(self, task: Task, trajectory: Trajectory) -> Verdict:
        """What execution says, and where it cannot tell, the judge."""
        place, state = self.world.place(trajectory.environment), self.world.state(task.initial_state)
        settings, code = self.config.verify, self.world.code_checks
        async with place.session() as session:
            if task.variant == IMPORTED:
                return await verify_outside(task, trajectory, state, session, settings, code)
            verdict = await verify_trajectory(task, trajectory, state, session, settings, code, place.wording)
        if self.judge is None:
            return verdict
        judge = Judge(self.judge, place.spec, self.config.judge, self.world.prompts)
        return await judge.review(task, trajectory, verdict)


def make_stages(world: World) -> dict[str, Stage[Any, Any]]:
    """All stages, by name."""
    cast = Cast(world)

    async def sample(chain: Chain) -> tuple[Chain]:
        return (chain,)

    async def ground(chain: Chain) -> tuple[GroundedChain]:
        async with world.place(chain.environment).session() as session:
            return (await world.grounder(chain.environment, chain.state).ground(chain, session),)

    async def write(grounded: GroundedChain) -> tuple[Task]:
        return (await cast.write(grounded),)

    async def vary(wanted: VaryInput) -> tuple[Task]:
        task, name = wanted
        if name is None:
            return (task,)
        async with world.place(task.environments[0]).session() as session:
            varied = await derive(name, world.case(task, name, session))
        if varied.state is not None:
            world.run.put_state(varied.state)
        return (varied.task,)

    async def play(task: Task) -> tuple[Trajectory, ...]:
        return tuple([await cast.play(task, candidate) for candidate in range(world.config.play.candidates)])

    async def verify(played: tuple[Task, tuple[Trajectory, ...]]) -> list[Verdict]:
        task, candidates = played
        judged = [(trajectory, await cast.verify(task, trajectory)) for trajectory in candidates]
        return select_best(judged) if world.config.verify.best else [verdict for _, verdict in judged]

    return {
        "sample": Stage("sample", sample, CHAINS, Chain, title="sample chains"),
        "ground": Stage("ground", ground, GROUNDED, GroundedChain, CHAINS, Chain, "ground by execution"),
        "write": Stage("write", write, TASKS, Task, GROUNDED, GroundedChain, "write tasks"),
        "vary": Stage("vary", vary, VARIED, Task, title="derive variants"),
        "play": Stage("play", play, TRAJECTORIES, Trajectory, tasks_file(world), Task, "play dialogues"),
        "verify": Stage("verify", verify, VERDICTS, Verdict, title="verify by replay"),
    }
