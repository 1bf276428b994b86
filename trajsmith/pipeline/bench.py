"""`trajsmith bench`: opens the suite and the model, and plays."""

from collections.abc import Sequence
from pathlib import Path

from trajsmith.evals.bench import CategoryScore, run_suite
from trajsmith.evals.suites import SUITES
from trajsmith.evals.suites.players import BASELINES, build_baseline, build_model_player
from trajsmith.models import BudgetSettings, ModelSettings, RoleSettings, RolesSettings
from trajsmith.models.registry import ModelRegistry
from trajsmith.pipeline.evaluation import open_local_model
from trajsmith.pipeline.progress import NullProgress, RunProgress
from trajsmith.records import FrozenModel, InputError, RunError


class BenchConfig(FrozenModel):
    """Everything that `trajsmith bench` needs."""

    suite: str
    model: str
    """`gold`, `refuse`, `random`; a folder of a model that runs here; or a model's name at `base_url`."""
    base_url: str = ""
    categories: tuple[str, ...] = ()
    """All but the long ones if empty, as the suite lists them."""
    limit: int | None = None
    """At most so many tasks of each category, the first ones."""
    out: Path
    environment: Path | None = None
    """Virtual environment that has the suite's package."""
    concurrency: int = 8
    temperature: float = 0.0
    max_tokens: int = 1024


async def run_bench(config: BenchConfig, progress: RunProgress | None = None) -> list[CategoryScore]:
    """Play what is missing, and write `results.json` beside the plays.

    Raises:
        InputError: Suite, category or model cannot be used.
        RunError: The suite ended, or a model does not answer any more; finished tasks are stored.
    """
    suite = SUITES.get(config.suite)()
    wrong = next((name for name in config.categories if name not in suite.categories), None)
    if wrong is not None:
        raise InputError(f"{config.suite} has no category {wrong!r}; there are: {', '.join(suite.categories)}")
    await suite.open(config.environment)
    name = config.model
    settings = ModelSettings(model=name, base_url=config.base_url) if config.base_url else None
    roles = RolesSettings(agent=RoleSettings(model=name)) if settings else RolesSettings()
    registry = ModelRegistry(
        {name: settings} if settings else {}, roles, BudgetSettings(), config.out, "the same bench"
    )
    model = None
    try:
        tasks = [
            task
            for category in config.categories or suite.categories
            for task in (await suite.load_tasks(category))[: config.limit]
        ]
        if name in BASELINES:
            player = build_baseline(name)
        else:
            if settings is not None:
                await registry.run_preflight(["agent"])
                model = registry.require_role_model("agent")
            else:
                model = open_local_model(name, config.max_tokens, config.temperature)
            player = build_model_player(model, config.temperature, config.max_tokens)
        question = {"suite": config.suite, "version": suite.version, "model": name}
        with (progress or NullProgress()).stage("play tasks", len(tasks), 0, 0) as bar:
            scores = await run_suite(suite, tasks, player, config.out, question, config.concurrency, bar.advance)
        unscored = scores[0].unscored
        if unscored:
            raise RunError(f"{unscored} tasks are not scored: the model's server failed; give the same command again")
        return scores
    finally:
        if model is not None:
            await model.close()
        await registry.close()
        await suite.close()


def join_categories(values: Sequence[str]) -> tuple[str, ...]:
    """Return the categories of an option that may be repeated and may hold several, separated by commas."""
    return tuple(one.strip() for value in values for one in value.split(",") if one.strip())
