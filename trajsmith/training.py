"""Tasks and environments of a run, for training and evaluation."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from arena import Ground, ModelUsers, Users, scripted_user
from chatmodel import SCRIPTED, ChatModel
from chatmodel.board import Board
from chatmodel.prompts import Prompts
from environments.blocking import Background
from export.splits import Split
from train_grpo import GrpoConfig
from trajectory import InputError, Task
from trajsmith.choosing import contaminated_tasks
from trajsmith.config import RunConfig, load_config
from trajsmith.exporting import stored_specs
from trajsmith.journal import read_records
from trajsmith.rundir import RunDirectory
from trajsmith.varying import written_tasks
from trajsmith.world import World
from usersim import USER
from verify.decontaminate import Decontaminator


def split_tasks(run: RunDirectory, split: Split | Literal["all"], limit: int | None = None) -> Iterator[Task]:
    """Tasks of one split, at most `limit` of each environment, without those that stand in a file of `decontaminate`.

    Raises:
        InputError: The run has no tasks, or a file of `decontaminate` cannot be read.
    """
    path = written_tasks(run)
    if not path.is_file():
        raise InputError(f"{run.path} has no tasks yet: run `trajsmith resume {run.path}`")
    config, seen = load_config(run.config_path), dict[str, int]()
    settings, foreign = config.export.split, _contamination(run, config)
    for task in read_records(path, Task):
        name = task.environments[0]
        if not task.turns[-1].state_hash:
            continue  # imported without gold: nothing could be said of an episode
        if split in ("all", settings.of(task)) and (limit is None or seen.get(name, 0) < limit) and not foreign(task):
            seen[name] = seen.get(name, 0) + 1
            yield task


def _contamination(run: RunDirectory, config: RunConfig) -> Callable[[Task], bool]:
    """Return a test for tasks that stand in a benchmark's file, played or not."""
    if not config.decontaminate:
        return lambda task: False
    decontaminator, dropped, specs = Decontaminator(config.decontaminate), contaminated_tasks(run), stored_specs(run)
    return lambda task: task.id in dropped or decontaminator.holds(task, specs[task.environments[0]].tools)


class Grounds(dict[str, Ground]):
    """The environments of a run by name; several of them played as one ("bank+travel") are opened when asked for."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        for name in world.places:
            self.__missing__(name)

    def __missing__(self, name: str) -> Ground:
        place, world = self.world.place(name), self.world
        self[name] = Ground(place.source, place.spec, place.wording, world.state, world.code_checks)
        return self[name]


async def grounds_of(run: RunDirectory) -> Grounds:
    """The environments of a run, for episodes."""
    return Grounds(await World.reopen(load_config(run.config_path), run))


@contextmanager
def simulated_users(config: GrpoConfig) -> Iterator[tuple[Users, Background]]:
    """Who plays the user in the episodes of a training, and the loop in which they and the episodes live.

    Raises:
        InputError: The model's key is missing, or a prompt cannot be used.
    """
    background = Background()
    try:
        if config.user.model == SCRIPTED:
            yield scripted_user, background
            return
        prompts = Prompts(config.prompts)
        prompts.get(USER)
        config.out.mkdir(parents=True, exist_ok=True)
        board = background.run(_open_board(config))
        try:
            yield ModelUsers(background.run(_talker(board)), prompts), background
        finally:
            background.run(board.close())
    finally:
        background.close()


async def _open_board(config: GrpoConfig) -> Board:
    """The models, in the thread of the loop that uses them."""
    return Board(config.models, config.roles, config.budget, config.out, "the same trajsmith grpo with --resume")


async def _talker(board: Board) -> ChatModel:
    found = board.talker("user")
    if found is None:
        raise InputError("no model plays the user")
    await board.try_out(["user"])
    return found
