"""`trajsmith eval`, `sft` and `grpo`: configuration files joined with runs, models and environments."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import orjson
from pydantic import Field, PositiveInt

from arena import EvalSettings, Ground, Score, evaluate, score_episodes
from export.splits import Split
from train_sft.checkpoint import open_model, ready_tokenizer
from train_sft.stack import require_train
from trajectory import Frozen, InputError, Task
from trajsmith.config import load_config
from trajsmith.journal import read_records
from trajsmith.rundir import RunDirectory
from trajsmith.varying import written_tasks
from trajsmith.world import World


class EvalConfig(Frozen):
    """Everything that `trajsmith eval` needs."""

    model: str
    """Folder or Hub name of the model."""
    run: Path
    """Run directory that has the tasks."""
    split: Literal["train", "validation", "test", "all"] = "test"
    """Which of its tasks, by the split settings of the run; `test` was never trained on."""
    limit: PositiveInt | None = None
    """At most this many tasks of each environment, the first ones."""
    out: Path
    """Folder of the results."""
    max_new_tokens: PositiveInt = 512
    """Limit of one message of the model."""
    temperature: float = Field(0.0, ge=0)
    batch: PositiveInt = 32
    """Conversations that are answered together."""
    settings: EvalSettings = EvalSettings()


def split_tasks(run: RunDirectory, split: Split | Literal["all"], limit: int | None = None) -> Iterator[Task]:
    """Tasks of one split, at most `limit` of each environment.

    Raises:
        InputError: The run has no tasks.
    """
    path = written_tasks(run)
    if not path.is_file():
        raise InputError(f"{run.path} has no tasks yet: run `trajsmith resume {run.path}`")
    settings, seen = load_config(run.config_path).export.split, dict[str, int]()
    for task in read_records(path, Task):
        name = task.environments[0]
        if split in ("all", settings.of(task)) and (limit is None or seen.get(name, 0) < limit):
            seen[name] = seen.get(name, 0) + 1
            yield task


async def grounds_of(run: RunDirectory) -> dict[str, Ground]:
    """The environments of a run, for episodes."""
    world = await World.reopen(load_config(run.config_path), run)
    return {name: Ground(place.source, place.spec, place.wording, world.state) for name, place in world.places.items()}


async def run_eval(config: EvalConfig) -> list[Score]:
    """Play what is missing, score everything, and write `results.json` beside the episodes.

    Raises:
        InputError: Model or run cannot be used, or the folder holds the results of something else.
        RunError: The results cannot be written.
    """
    from arena.local import LocalModel

    require_train("eval")
    run = RunDirectory.open(config.run)
    tasks = list(split_tasks(run, config.split, config.limit))
    if not tasks:
        raise InputError(f"{run.path} has no tasks in split {config.split!r}: set export.split in its configuration")
    _same_question(config)
    tokenizer, model = ready_tokenizer(config.model), open_model(config.model)
    settings, file = config.settings, config.out / "episodes.jsonl"
    async with LocalModel(model, tokenizer, config.max_new_tokens, config.temperature, config.batch) as local:
        episodes = await evaluate(tasks, await grounds_of(run), config.model, local.complete, settings, file)
    scores = score_episodes(episodes)
    results = {"model": config.model, "split": config.split, "scores": scores}
    (config.out / "results.json").write_bytes(
        orjson.dumps(results, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)
    )
    return scores


def _same_question(config: EvalConfig) -> None:
    """Results go on only for the same model, tasks and sampling.

    Raises:
        InputError: They were made for others.
    """
    asked = config.model_dump(
        mode="json", exclude={"batch": True, "limit": True, "settings": {"concurrency", "samples"}}
    )
    file = config.out / "question.json"
    if file.is_file() and orjson.loads(file.read_bytes()) != asked:
        raise InputError(f"{config.out} holds results of another model, run or sampling: name another folder as out")
    config.out.mkdir(parents=True, exist_ok=True)
    file.write_bytes(orjson.dumps(asked))
