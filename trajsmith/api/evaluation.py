"""Evaluation of a model on the tasks of a run."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from trajsmith.api.runs import Run
from trajsmith.environments.blocking import run_blocking
from trajsmith.evals import EvalSettings, Score, score_episodes
from trajsmith.evals import evaluate as evaluate_tasks
from trajsmith.evals.transcripts import EPISODES
from trajsmith.models import CallableModel, ChatModel, ChatReply, ChatRequest, ModelSettings
from trajsmith.pipeline.eval_contexts import open_eval_contexts, split_tasks
from trajsmith.pipeline.evaluation import EvalConfig, run_eval
from trajsmith.pipeline.progress import RunProgress
from trajsmith.records import InputError, Task


def evaluate(
    model: str | ChatModel | Callable[[ChatRequest], Awaitable[ChatReply]],
    run: Run | Path | str,
    *,
    tasks: Sequence[Task] | None = None,
    split: Literal["train", "validation", "test", "all"] = "test",
    limit: int | None = None,
    endpoint: ModelSettings | None = None,
    settings: EvalSettings | None = None,
    out: Path | str | None = None,
    progress: RunProgress | None = None,
) -> list[Score]:
    """Play tasks of a run with a model as the agent, judge every episode by replay, and return the scores.

    The user is the scripted one; `trajsmith eval` with a configuration also has users that a model plays.

    Args:
        model: Folder or Hub name of a model that runs here (needs the train extra); the name of a model behind
            `endpoint`; a `trajsmith.models.ChatModel`; or an asynchronous function from `ChatRequest` to `ChatReply`.
        run: Run, or run directory, that has the tasks.
        tasks: Tasks of the run to play, in place of `split` and `limit`.
        split: Which tasks of the run, by its split settings.
        limit: At most this many tasks of each environment.
        endpoint: How to reach the model, as under `models` in a configuration.
        settings: Episodes per task, episodes at a time, steps per turn.
        out: Folder of the episodes, with which a stopped evaluation goes on; without it they are not kept.
        progress: Shows how far it is; silent without.

    Returns:
        Scores of all tasks together, then by environment, with 95 % intervals.

    Raises:
        InputError: Model or run cannot be used, or there is no task.
        RunError: A server or an environment is out.

    Example:
        >>> score = trajsmith.evaluate("models/mine", "runs/quickstart", split="all", limit=20)[0]
        >>> score.pass1, (score.low, score.high)
    """
    opened = run if isinstance(run, Run) else Run(run)
    chosen = list(split_tasks(opened.directory, split, limit) if tasks is None else tasks)
    if not chosen:
        raise InputError(f"{opened.path} has no tasks in split {split!r}: set export.split in its configuration")
    with TemporaryDirectory() as scratch:
        folder = Path(out or scratch)
        if isinstance(model, str):
            config = EvalConfig(
                model=model,
                models={model: endpoint} if endpoint else {},
                run=opened.path,
                split=split,
                limit=limit,
                out=folder,
                settings=settings or EvalSettings(),
            )
            return run_blocking(run_eval(config, progress, chosen))
        if endpoint:
            raise InputError("endpoint goes with the name of a model: evaluate('name', run, endpoint=...)")
        player = CallableModel(getattr(model, "__name__", "model"), model) if callable(model) else model
        return run_blocking(_evaluate_model(player, opened, chosen, settings or EvalSettings(), folder))


async def _evaluate_model(
    model: ChatModel, run: Run, tasks: Sequence[Task], settings: EvalSettings, folder: Path
) -> list[Score]:
    contexts = await open_eval_contexts(run.directory)
    try:
        return score_episodes(await evaluate_tasks(tasks, contexts, model, settings, folder / EPISODES))
    finally:
        contexts.context.code_checks.close()
