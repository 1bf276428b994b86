"""The stages of the line as the engine runs them: each reads one record and gives records, or drops with a reason."""

from collections.abc import Iterator, Sequence
from typing import Any

from chatmodel.surface import clock_of
from environments.staged import staged
from querygen.vary import derive
from toolgraph import sample_chains
from trajectory import Chain, GroundedChain, Task, Trajectory, Verdict, derive_seed
from trajsmith.config import RunConfig
from trajsmith.engine import Stage
from trajsmith.rounds import Round, first_round
from trajsmith.varying import VARIED, VaryInput, tasks_file
from trajsmith.world import World
from usersim import Dialogue, ScriptedAgent, ScriptedUser
from usersim.twisted import TwistedAgent, TwistedUser
from verify import verify_trajectory
from verify.conduct import with_conduct
from verify.outside.playing import IMPORTED, verify_outside

CHAINS, GROUNDED, TASKS = "chains.jsonl", "grounded.jsonl", "tasks.jsonl"
TRAJECTORIES, VERDICTS = "trajectories.jsonl", "verdicts.jsonl"
ORDER = ("sample", "ground", "write", "play", "verify")
"""Names of the stages, in the order of the line."""


def order(config: RunConfig) -> tuple[str, ...]:
    """The stages of a run: with `vary` between `write` and `play` where variants are made."""
    return (*ORDER[:3], "vary", *ORDER[3:]) if config.vary.on else ORDER


class ChainPlan:
    """The inputs of `sample`: all chains of the run, drawn anew on every pass, with a known length."""

    def __init__(self, world: World, rounds: Sequence[Round] = ()) -> None:
        """`rounds` are those of a run that tops up; a run without has one."""
        self.world = world
        self.rounds = rounds or (first_round(world.config),)

    def __len__(self) -> int:
        return sum(each.chains for each in self.rounds)

    def __iter__(self) -> Iterator[tuple[str, Chain]]:
        world, samplers = self.world, self.world.samplers()
        states = {name: list(place.states) for name, place in world.places.items()}
        for number, each in enumerate(self.rounds):
            seed = derive_seed(world.config.seed, "round", number) if number else world.config.seed
            settings = world.config.sample.model_copy(update={"count": each.chains})
            some = {name: samplers[name] for name in each.environments or samplers}
            for chain in sample_chains(some, states, settings, seed):
                yield chain.id, chain


def make_stages(world: World) -> dict[str, Stage[Any, Any]]:
    """All stages, by name."""
    config = world.config

    async def sample(chain: Chain) -> tuple[Chain]:
        return (chain,)

    async def ground(chain: Chain) -> tuple[GroundedChain]:
        async with world.places[chain.environment].session() as session:
            return (await world.grounder(chain.environment, chain.state).ground(chain, session),)

    async def write(grounded: GroundedChain) -> tuple[Task]:
        state = world.state(grounded.initial_state)
        async with world.places[grounded.environment].session() as session:
            return (await world.writer(grounded.environment).write(grounded, state, session),)

    async def vary(wanted: VaryInput) -> tuple[Task]:
        task, name = wanted
        if name is None:
            return (task,)
        async with world.places[task.environments[0]].session() as session:
            varied = await derive(name, world.case(task, name, session))
        if varied.state is not None:
            world.run.put_state(varied.state)
        return (varied.task,)

    async def play(task: Task) -> tuple[Trajectory, ...]:
        place = world.places[task.environments[0]]
        state = world.state(task.initial_state)
        played = []
        for candidate in range(config.play.candidates):
            agent, user = (
                ScriptedAgent(task, place.wording, candidate),
                ScriptedUser(task, place.wording, candidate, clock_of(state)),
            )
            async with place.session() as opened:
                session = staged(opened, task)
                if task.twist is not None:
                    agent = TwistedAgent(task, place.wording, candidate)
                    user = TwistedUser(task, place.wording, candidate, clock_of(state), session)
                dialogue = Dialogue(place.spec, task, state, session, agent, user, config.play, candidate)
                played.append(await dialogue.play())
        return tuple(played)

    async def verify(pair: tuple[Task, Trajectory]) -> tuple[Verdict]:
        task, trajectory = pair
        state = world.state(task.initial_state)
        async with world.places[trajectory.environment].session() as session:
            judge = verify_outside if task.variant == IMPORTED else verify_trajectory
            verdict = await judge(task, trajectory, state, staged(session, task, trajectory))
            return (with_conduct(task, trajectory, verdict),)

    return {
        "sample": Stage("sample", sample, CHAINS, Chain, title="sample chains"),
        "ground": Stage("ground", ground, GROUNDED, GroundedChain, CHAINS, Chain, "ground by execution"),
        "write": Stage("write", write, TASKS, Task, GROUNDED, GroundedChain, "write tasks"),
        "vary": Stage("vary", vary, VARIED, Task, title="derive variants"),
        "play": Stage("play", play, TRAJECTORIES, Trajectory, tasks_file(world), Task, "play dialogues"),
        "verify": Stage("verify", verify, VERDICTS, Verdict, title="verify by replay"),
    }
