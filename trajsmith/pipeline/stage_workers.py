"""Where the work of a stage is done: in this process, or in workers."""

from typing import Any

from trajsmith.pipeline.config import RunConfig
from trajsmith.pipeline.engine import PipelineStage
from trajsmith.pipeline.journal import build_ledger_path
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import TASKS, TRAJECTORIES, RunDirectory
from trajsmith.pipeline.worker_pool import WorkerPool, choose_worker_count
from trajsmith.records import InputError, JsonValue, PluginSource, list_program_plugins
from trajsmith.records.journal import count_records


def choose_workers(run: RunDirectory, context: RunContext, stage: PipelineStage[Any, Any]) -> WorkerPool | None:
    """Return the worker processes for a stage; None where this process does it.

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
    count = choose_worker_count(config.engine.workers, left)
    if count == 1:
        return None
    own = find_program_plugins(config)
    if own and config.engine.workers == "auto":
        return None
    if own:
        raise InputError(
            f"engine.workers: {count}: worker processes have no {own[0].name!r}, which {own[0].module} registers in "
            "this program: give it an entry point (docs/plugins.md), or set engine.workers=1"
        )
    context.workers = context.workers or WorkerPool(run.path, count, config.engine.concurrency)
    return context.workers


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
