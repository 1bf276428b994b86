"""`trajsmith bench`: opens the suite and the model, and plays."""

from collections.abc import Sequence
from pathlib import Path

from trajsmith.evals.bench import CategoryScore, run_suite
from trajsmith.evals.suites import (
    BASELINES,
    SUITES,
    UNAVAILABLE,
    AnySuite,
    ConversationSuite,
    SuitePlayer,
    SuiteTask,
    build_baseline,
    build_baseline_script,
    build_conversation_player,
    build_model_player,
    build_model_script,
)
from trajsmith.models import SCRIPTED, BudgetSettings, ChatModel, ModelSettings, Role, RolesSettings
from trajsmith.models.registry import ModelRegistry
from trajsmith.pipeline.bench_contamination import report_contamination
from trajsmith.pipeline.evaluation import open_local_model
from trajsmith.pipeline.progress import NullProgress, RunProgress
from trajsmith.records import FrozenModel, InputError, RunError

NO_JUDGE = "none"
"""Leaves out what a judge would decide."""
MAX_TOKENS = 1024


class BenchConfig(FrozenModel):
    """Everything that `trajsmith bench` needs."""

    suite: str
    model: str
    """`gold`, `refuse`, `random`; a folder of a model that runs here; or a model's name at `base_url`."""
    base_url: str = ""
    user: str = ""
    """Who plays the user of conversations: a model as `model` is named, or our scripted user if empty."""
    user_base_url: str = ""
    judge: str = ""
    """Model of the suite's own judge; without one, what a judge decides is left out if that is asked for."""
    judge_base_url: str = ""
    categories: tuple[str, ...] = ()
    """All but the long ones if empty, as the suite lists them."""
    limit: int | None = None
    """At most so many tasks of each category, the first ones."""
    trials: int = 1
    """Plays of each task."""
    out: Path
    environment: Path | None = None
    """Virtual environment that has the suite's package."""
    path: Path | None = None
    """Checkout of the suite, where no package holds it."""
    trained_on: tuple[Path, ...] = ()
    """Runs whose rows the model was trained on: those that hold tasks of the suite are counted."""
    concurrency: int = 8
    temperature: float = 0.0
    max_tokens: int = MAX_TOKENS
    """Tokens of one message, at most."""

    def named_models(self) -> dict[Role, tuple[str, str]]:
        """Return name and address of the models that are asked for, by role."""
        roles: dict[Role, tuple[str, str]] = {
            "agent": (self.model, self.base_url),
            "user": (self.user, self.user_base_url),
            "judge": (self.judge, self.judge_base_url),
        }
        return {role: named for role, named in roles.items() if named[0] and named[0] not in (*BASELINES, NO_JUDGE)}

    def question(self, version: str, conversations: bool) -> dict[str, str]:
        """Return what results belong to."""
        asked = {"suite": self.suite, "version": version, "model": self.model}
        if self.max_tokens != MAX_TOKENS:
            asked |= {"max_tokens": str(self.max_tokens)}
        if conversations:
            asked |= {"user": self.user or SCRIPTED, "judge": self.judge or NO_JUDGE}
        return asked


async def run_bench(config: BenchConfig, progress: RunProgress | None = None) -> list[CategoryScore]:
    """Play what is missing, and write `results.json` beside the plays, and `contamination.json` with `trained_on`.

    Raises:
        InputError: A run, suite, category or model cannot be used.
        RunError: The suite ended, or a model does not answer any more; finished tasks are stored.
    """
    if config.suite in UNAVAILABLE:
        played = ", ".join(source.name for source in SUITES.sources())
        raise InputError(f"{config.suite} cannot be played: {UNAVAILABLE[config.suite]}; there are: {played}")
    suite = SUITES.get(config.suite)()
    wrong = next((name for name in config.categories if name not in suite.categories), None)
    if wrong is not None:
        raise InputError(f"{config.suite} has no category {wrong!r}; there are: {', '.join(suite.categories)}")
    if (config.user or config.judge) and not isinstance(suite, ConversationSuite):
        raise InputError(f"{config.suite} has no user and no judge: leave --user and --judge out")
    models = BenchModels(config)
    try:
        await suite.open(config.environment, config.path)
        tasks = [
            task
            for category in config.categories or suite.categories
            for task in (await suite.load_tasks(category))[: config.limit]
        ]
        if config.trained_on:
            report_contamination(tasks, config.trained_on, config.out)
        player = await models.build_player(suite, tasks)
        question = config.question(suite.version, isinstance(suite, ConversationSuite))
        with (progress or NullProgress()).stage("play tasks", len(tasks) * config.trials, 0, 0) as bar:
            scores = await run_suite(
                suite, tasks, player, config.out, question, config.concurrency, bar.advance, config.trials
            )
        failed = sum(number for name, number in scores[0].errors.items() if name.startswith("model_"))
        if failed:
            raise RunError(f"{failed} plays are not scored: a model's server failed; give the same command again")
        return scores
    finally:
        await models.close()
        await suite.close()


class BenchModels:
    """The models of a benchmark: behind endpoints, or on this machine."""

    def __init__(self, config: BenchConfig) -> None:
        self._config = config
        self._named = config.named_models()
        served = {role: named for role, named in self._named.items() if named[1]}
        self._served: list[Role] = list(served)
        settings = {str(role): ModelSettings(model=name, base_url=url) for role, (name, url) in served.items()}
        roles = RolesSettings.model_validate({role: {"model": role} for role in served})
        self._registry = ModelRegistry(settings, roles, BudgetSettings(), config.out, "the same bench")
        self._local: dict[str, ChatModel] = {}

    async def build_player(self, suite: AnySuite, tasks: Sequence[SuiteTask]) -> SuitePlayer:
        """Return who plays.

        Raises:
            InputError: A model cannot be used, or a judge is needed.
        """
        config, scripted = self._config, self._config.model in BASELINES
        await self._registry.run_preflight(self._served)
        if not isinstance(suite, ConversationSuite):
            if scripted:
                return build_baseline(config.model)
            return build_model_player(self._require("agent"), config.temperature, config.max_tokens)
        judged = bool(config.judge) and config.judge != NO_JUDGE
        needing = sum(map(suite.needs_judge, tasks))
        if needing and not config.judge and not scripted:
            raise InputError(
                f"a model judges a part of {needing} of these {len(tasks)} tasks: name one with --judge, or leave that "
                f"part out with --judge {NO_JUDGE}"
            )
        script = build_baseline_script(config.model)
        if not scripted:
            user = self._require("user") if config.user else None
            judge = self._require("judge") if judged else None
            script = build_model_script(self._require("agent"), user, judge, config.temperature, config.max_tokens)
        return build_conversation_player(script, judged)

    def _require(self, role: Role) -> ChatModel:
        name, url = self._named[role]
        if url:
            return self._registry.require_role_model(role)
        if name not in self._local:
            self._local[name] = open_local_model(name, self._config.max_tokens, self._config.temperature)
        return self._local[name]

    async def close(self) -> None:
        """Close all models."""
        for model in self._local.values():
            await model.close()
        await self._registry.close()


def join_categories(values: Sequence[str]) -> tuple[str, ...]:
    """Return the categories of an option that may be repeated and may hold several, separated by commas."""
    return tuple(one.strip() for value in values for one in value.split(",") if one.strip())
