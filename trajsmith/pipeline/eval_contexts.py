"""Tasks and environments of a run, for training and evaluation."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.evals import EvalContext
from trajsmith.export.splits import Split
from trajsmith.models import SCRIPTED
from trajsmith.models.prompts import Prompts
from trajsmith.models.registry import ModelRegistry
from trajsmith.pipeline.config import RunConfig, load_config
from trajsmith.pipeline.dataset_selection import contaminated_tasks
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import RunDirectory, find_written_tasks
from trajsmith.pipeline.stored_specs import load_stored_specs
from trajsmith.records import InputError, Task, has_records, read_records
from trajsmith.train_grpo import GrpoConfig
from trajsmith.usersim import UserFactory, build_user_factory
from trajsmith.verify.decontaminate import Decontaminator


def split_tasks(run: RunDirectory, split: Split | Literal["all"], limit: int | None = None) -> Iterator[Task]:
    """Tasks of one split, at most `limit` of each environment, without those that stand in a file of `decontaminate`.

    Raises:
        InputError: The run has no tasks, or a file of `decontaminate` cannot be read.
    """
    path = find_written_tasks(run)
    if not has_records(path):
        raise InputError(f"{run.path} has no tasks yet: run `trajsmith resume {run.path}`")
    config, seen = load_config(run.config_path), dict[str, int]()
    settings, foreign = config.export.split, build_contamination_test(run, config)
    for task in read_records(path, Task):
        name = task.environments[0]
        if not task.turns[-1].state_hash:
            continue  # imported without gold: nothing could be said of an episode
        if split in ("all", settings.of(task)) and (limit is None or seen.get(name, 0) < limit) and not foreign(task):
            seen[name] = seen.get(name, 0) + 1
            yield task


def build_contamination_test(run: RunDirectory, config: RunConfig) -> Callable[[Task], bool]:
    """Return a test for tasks that stand in a benchmark's file, played or not."""
    if not config.decontaminate:
        return lambda task: False
    decontaminator, dropped, specs = (
        Decontaminator(config.decontaminate),
        contaminated_tasks(run),
        load_stored_specs(run),
    )
    return lambda task: task.id in dropped or decontaminator.holds(task, specs[task.environments[0]].tools)


def list_training_tasks(run: RunDirectory, split: Split | Literal["all"], limit: int | None = None) -> list[Task]:
    """Return the tasks of one split that reinforcement learning can use: their tools never change during an episode.

    Raises:
        InputError: The run has no tasks.
    """
    return [task for task in split_tasks(run, split, limit) if not (task.twist and task.twist.arrives)]


class RunEvalContexts(dict[str, EvalContext]):
    """The environments of a run by name; several of them played as one ("bank+travel") are opened when asked for."""

    def __init__(self, context: RunContext) -> None:
        super().__init__()
        self.context = context
        for name in context.places:
            self.__missing__(name)

    def __missing__(self, name: str) -> EvalContext:
        place, context = self.context.place(name), self.context
        self[name] = EvalContext(place.source, place.spec, place.wording, context.state, context.code_checks)
        return self[name]


async def open_eval_contexts(run: RunDirectory) -> RunEvalContexts:
    """Open the environments of a run for episodes."""
    return RunEvalContexts(await RunContext.reopen(load_config(run.config_path), run))


@contextmanager
def open_simulated_users(config: GrpoConfig) -> Iterator[tuple[UserFactory, BackgroundLoop]]:
    """Open the simulated users of a training's episodes with the event loop that they share.

    Raises:
        InputError: The model's key is missing, or a prompt cannot be used.
    """
    background = BackgroundLoop()
    try:
        if config.user.model == SCRIPTED:
            yield build_user_factory(config.user, None, Prompts(config.prompts)), background
            return
        config.out.mkdir(parents=True, exist_ok=True)
        registry = background.run(_open_registry(config))
        try:
            yield background.run(_build_model_users(registry, config)), background
        finally:
            background.run(registry.close())
    finally:
        background.close()


async def _open_registry(config: GrpoConfig) -> ModelRegistry:
    """The models, in the thread of the loop that uses them."""
    return ModelRegistry(
        config.models, config.roles, config.budget, config.out, "the same trajsmith grpo with --resume"
    )


async def _build_model_users(registry: ModelRegistry, config: GrpoConfig) -> UserFactory:
    users = build_user_factory(config.user, registry.require_role_model("user"), Prompts(config.prompts))
    await registry.run_preflight(["user"])
    return users
