"""Where the work of a stage is done: in this process, or in workers."""

from typing import Any

from trajsmith.pipeline.config import EngineSettings, RunConfig
from trajsmith.pipeline.engine import PipelineStage
from trajsmith.pipeline.journal import build_ledger_path
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import TASKS, TRAJECTORIES, RunDirectory
from trajsmith.pipeline.worker_pool import StageExecutor, WorkerPool, choose_worker_count, limit_workers
from trajsmith.records import InputError, JsonValue, PluginSource, count_records, list_program_plugins


def choose_workers(run: RunDirectory, context: RunContext, stage: PipelineStage[Any, Any]) -> StageExecutor | None:
    """Return the workers for a stage, here or on Ray; None where this process does it.

    Not for stages in which models speak: budget, cache and order of requests are kept by one process. Drawing chains
    is one stream and stays here, too.

    Raises:
        InputError: Workers are asked for, and the configuration names what only this program has registered.
    """
    config = context.config
    if stage.name == "sample":
        return None
    source = stage.input or (TASKS if stage.name == "vary" else TRAJECTORIES)
    left = count_records(run.file(source)) - count_records(build_ledger_path(run, stage.name))
    engine, asked = config.engine, config.engine.workers
    if engine.kind == "ray":
        few = asked == "auto" and limit_workers(left, left) == 1
    else:
        few = choose_worker_count(asked, left) == 1
    if few:
        return None
    own = find_program_plugins(config)
    if own and asked == "auto" and engine.kind != "ray":
        return None
    if own:
        raise InputError(
            f"engine.workers: {asked}: worker processes have no {own[0].name!r}, which {own[0].module} registers in "
            "this program: give it an entry point (docs/plugins.md), or set engine.kind=local engine.workers=1"
        )
    if context.workers is None:
        context.workers = _start_workers(run, engine, left)
    return context.workers


def _start_workers(run: RunDirectory, engine: EngineSettings, inputs: int) -> StageExecutor:
    if engine.kind == "ray":
        from trajsmith.pipeline.ray_workers import RayWorkers

        return RayWorkers(run.path, engine.ray, engine.workers, inputs, engine.concurrency)
    return WorkerPool(run.path, choose_worker_count(engine.workers, inputs), engine.concurrency)


def find_program_plugins(config: RunConfig) -> list[PluginSource]:
    """Return the plug-ins that a configuration names and only this program has, such as functions of a notebook."""
    words: set[str] = set()

    def collect(value: JsonValue) -> None:
        if isinstance(value, str):
            words.add(value)
        for part in value.items() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
            collect(part)

    collect(config.model_dump(mode="json"))
    return [plugin for plugin in list_program_plugins() if plugin.name in words]
