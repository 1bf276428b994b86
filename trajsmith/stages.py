"""The stages of the line as the engine runs them: each reads one record and gives records, or drops with a reason."""

from collections.abc import Iterator
from typing import Any

from chatmodel.surface import clock_of
from toolgraph import sample_across, sample_chains
from trajectory import Chain, GroundedChain, Task, Trajectory, Verdict
from trajsmith.engine import Stage
from trajsmith.world import World
from usersim import Dialogue, ScriptedAgent, ScriptedUser
from verify import select_best, verify_trajectory
from verify.outside.playing import IMPORTED, verify_outside

CHAINS, GROUNDED, TASKS = "chains.jsonl", "grounded.jsonl", "tasks.jsonl"
TRAJECTORIES, VERDICTS = "trajectories.jsonl", "verdicts.jsonl"
ORDER = ("sample", "ground", "write", "play", "verify")
"""Names of the stages, in the order of the line."""


class ChainPlan:
    """The inputs of `sample`: all chains of the run, drawn anew on every pass, with a known length."""

    def __init__(self, world: World) -> None:
        self.world = world

    def __len__(self) -> int:
        return self.world.config.sample.count

    def __iter__(self) -> Iterator[tuple[str, Chain]]:
        world = self.world
        settings, seed = world.config.sample, world.config.seed
        states = {name: list(place.states) for name, place in world.places.items()}
        if settings.servers == 1:
            chains = sample_chains(world.samplers(), states, settings, seed)
        else:
            chains = map(world.joined, sample_across(world.graph, settings, seed, states))
        return ((chain.id, chain) for chain in chains)


def make_stages(world: World) -> dict[str, Stage[Any, Any]]:
    """All stages, by name."""
    config = world.config

    async def sample(chain: Chain) -> tuple[Chain]:
        return (chain,)

    async def ground(chain: Chain) -> tuple[GroundedChain]:
        async with world.place(chain.environment).session() as session:
            return (await world.grounder(chain.environment, chain.state).ground(chain, session),)

    async def write(grounded: GroundedChain) -> tuple[Task]:
        state = world.state(grounded.initial_state)
        async with world.place(grounded.environment).session() as session:
            return (await world.writer(grounded.environment).write(grounded, state, session),)

    async def play(task: Task) -> tuple[Trajectory, ...]:
        place = world.place(task.environments[0])
        state = world.state(task.initial_state)
        played = []
        for candidate in range(config.play.candidates):
            agent, user = (
                ScriptedAgent(task, place.wording, candidate),
                ScriptedUser(task, place.wording, candidate, clock_of(state)),
            )
            async with place.session() as session:
                dialogue = Dialogue(place.spec, task, state, session, agent, user, config.play, candidate)
                played.append(await dialogue.play())
        return tuple(played)

    async def verify(played: tuple[Task, tuple[Trajectory, ...]]) -> list[Verdict]:
        task, candidates = played
        state = world.state(task.initial_state)
        judge = verify_outside if task.variant == IMPORTED else verify_trajectory
        judged = []
        for trajectory in candidates:
            async with world.place(trajectory.environment).session() as session:
                verdict = await judge(task, trajectory, state, session, config.verify, world.code_checks)
                judged.append((trajectory, verdict))
        return select_best(judged) if config.verify.best else [verdict for _, verdict in judged]

    return {
        "sample": Stage("sample", sample, CHAINS, Chain, title="sample chains"),
        "ground": Stage("ground", ground, GROUNDED, GroundedChain, CHAINS, Chain, "ground by execution"),
        "write": Stage("write", write, TASKS, Task, GROUNDED, GroundedChain, "write tasks"),
        "play": Stage("play", play, TRAJECTORIES, Trajectory, TASKS, Task, "play dialogues"),
        "verify": Stage("verify", verify, VERDICTS, Verdict, title="verify by replay"),
    }
