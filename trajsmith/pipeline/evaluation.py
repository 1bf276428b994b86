"""`trajsmith eval`: held-out tasks of a run, and a model on this machine or behind an endpoint."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Self

import orjson
from pydantic import Field, PositiveInt, model_validator

from trajsmith.evals import (
    BENCHMARKS,
    BenchmarkName,
    EvalContext,
    EvalSettings,
    Score,
    evaluate,
    read_episodes,
    score_episodes,
    store_tasks,
    write_gallery,
)
from trajsmith.evals.transcripts import EPISODES, TRANSCRIPTS
from trajsmith.models import (
    SCRIPTED,
    BudgetSettings,
    ChatModel,
    ModelSettings,
    Role,
    RoleSettings,
    RolesSettings,
    read_checkpoint_info,
)
from trajsmith.models.json_grammar import has_grammars
from trajsmith.models.prompts import Prompts
from trajsmith.models.registry import ModelRegistry
from trajsmith.models.settings import RoleEntry
from trajsmith.models.transformers_engine import TransformersModel, open_model
from trajsmith.pipeline.eval_contexts import open_eval_contexts, split_tasks
from trajsmith.pipeline.hub_runs import open_run
from trajsmith.pipeline.progress import NullProgress, RunProgress
from trajsmith.records import (
    BudgetExceeded,
    FrozenModel,
    InputError,
    JsonObject,
    SourcePath,
    Task,
    ToolStyle,
    content_hash,
    install_command,
    refuse_links,
    storage_boundary,
    write_whole_file,
)
from trajsmith.train_sft.checkpoint import open_training_tokenizer
from trajsmith.train_sft.libraries import require_train
from trajsmith.usersim import build_user_factory

QUESTION, RESULTS = "question.json", "results.json"
PAGES = 1000
"""Episodes of the largest evaluation whose pages are written at its end; of any other `trajsmith report` does."""
SAMPLING = {"model", "extra_body", "temperature", "top_p", "max_tokens", "seed"}
"""Settings of a served model that decide its answers; the others say how it is reached."""


class EvalConfig(FrozenModel):
    """Everything that `trajsmith eval` needs."""

    model: str
    """Name among `models` for a model behind an endpoint; else folder or Hub name of one that runs here."""
    models: dict[str, ModelSettings] = {}
    """Models behind endpoints, by names of your own."""
    user: RoleEntry = RoleSettings()
    """Who plays the user: scripted, or a name among `models`."""
    prompts: SourcePath | None = None
    """Folder with prompts that take the place of ours, as in a run."""
    budget: BudgetSettings = BudgetSettings()
    """What all requests to endpoints may cost."""
    run: Path | None = None
    """Run directory that has the tasks."""
    benchmark: BenchmarkName | None = None
    """Installed benchmark that has the tasks, in place of a run."""
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
    """Conversations that a model on this machine answers together."""
    tools: ToolStyle | None = None
    """How a model on this machine is shown tools; None is as it was trained. Endpoints have it under `models`."""
    dtype: Literal["float32", "bfloat16"] | None = None
    """Number format of a model on this machine; None is the one that its weights are stored in, or float32 where the
    processor has no instructions for bfloat16."""
    constrained: bool = False
    """Let tool calls of a model on this machine follow the schemas of the tools shown, token by token: their names,
    required arguments, types and choices. Needs llguidance."""
    transcripts: bool = True
    """Write messages, calls, diff and verdict of every episode into `transcripts.jsonl`, and pages to read them into
    `gallery/`; `trajsmith diagnose` reads them, too."""
    settings: EvalSettings = EvalSettings()

    @property
    def served(self) -> bool:
        """Return True if the model is behind an endpoint."""
        return self.model in self.models

    @property
    def roles(self) -> RolesSettings:
        """Return the role settings as the model registry reads them."""
        agent = RoleSettings(temperature=self.temperature, max_tokens=self.max_new_tokens)
        return RolesSettings(
            agent=agent.model_copy(update={"model": self.model}) if self.served else RoleSettings(), user=self.user
        )

    @model_validator(mode="after")
    def _roles_are_played(self) -> Self:
        self.roles.check(self.models)
        if (self.run is None) == (self.benchmark is None):
            raise InputError("name either a run or a benchmark")
        if self.constrained and self.served:
            raise InputError("constrained is for a model on this machine, not for one behind an endpoint")
        return self

    def question(self) -> JsonObject:
        """Return the evaluation settings that results belong to: model, tasks, user and sampling."""
        asked = self.model_dump(
            mode="json",
            exclude={
                "models": True,
                "budget": True,
                "batch": True,
                "limit": True,
                "out": True,
                "run": True,
                "transcripts": True,
            }
            | {"settings": {"concurrency", "samples"}},
        )
        used = [name for name in (self.model, self.user.model) if name in self.models]
        for name in ("benchmark", "tools", "dtype"):
            if asked[name] is None:
                del asked[name]
        if not self.constrained:
            del asked["constrained"]
        if self.settings.judge == "all":
            del asked["settings"]["judge"]
        if self.run is not None:
            asked["run"] = content_hash(str(self.run.resolve()), 12)
        return asked | {"models": {name: self._describe_model(name) for name in used}}

    def _describe_model(self, name: str) -> JsonObject:
        settings = self.models[name]
        return settings.model_dump(include=SAMPLING) | ({"tools": settings.tools} if settings.tools else {})


async def run_eval(
    config: EvalConfig, progress: RunProgress | None = None, tasks: Sequence[Task] | None = None
) -> list[Score]:
    """Play what is missing, score everything, and write `results.json` beside the episodes.

    Args:
        config: Model, run and settings.
        progress: Shows how far it is.
        tasks: Tasks of the run to play, in place of those of the configuration's split.

    Raises:
        InputError: Model or run cannot be used, or the folder holds the results of something else.
        RunError: The results cannot be written, the budget is used up, or a server is out; episodes are kept.
    """
    if not config.served:
        require_train("eval")
    tasks, grounds = await _load_tasks(config, tasks)
    refuse_links(config.out)
    _same_question(config)
    registry = ModelRegistry(config.models, config.roles, config.budget, config.out, "the same trajsmith eval")
    try:
        scores = await _play(config, tasks, grounds, registry, progress or NullProgress())
    except BudgetExceeded as stop:
        raise BudgetExceeded(_explain_spent_budget(config, registry, len(tasks))) from stop
    finally:
        await registry.close()
    usage = {role: used.model_dump() for role, used in registry.ledger.totals.items()}
    results = {"model": config.model, "split": config.split, "scores": scores, "usage": usage}
    data = orjson.dumps(results, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)
    write_whole_file(config.out / RESULTS, data)
    if config.transcripts and len(tasks) * config.settings.samples <= PAGES:
        write_gallery(config.out)
    return scores


async def _load_tasks(
    config: EvalConfig, chosen: Sequence[Task] | None
) -> tuple[Sequence[Task], Mapping[str, EvalContext]]:
    """Return the tasks of the run or of the benchmark, and what their environments are evaluated with."""
    if config.benchmark is not None:
        tasks, grounds = await BENCHMARKS.get(config.benchmark)(config.limit)
        if not tasks:
            raise InputError(f"benchmark {config.benchmark} has no tasks")
        return tasks, grounds
    run = open_run(config.run or Path())
    held_out = list(split_tasks(run, config.split, config.limit) if chosen is None else chosen)
    if not held_out:
        raise InputError(f"{run.path} has no tasks in split {config.split!r}: set export.split in its configuration")
    return held_out, await open_eval_contexts(run)


async def _play(
    config: EvalConfig,
    tasks: Sequence[Task],
    grounds: Mapping[str, EvalContext],
    registry: ModelRegistry,
    progress: RunProgress,
) -> list[Score]:
    await registry.run_preflight(_find_model_roles(config))
    file, total = config.out / EPISODES, len(tasks) * config.settings.samples
    users = build_user_factory(config.user, registry.role_model("user"), Prompts(config.prompts))
    model = _open_evaluated_model(config, registry)
    try:
        with progress.stage("play episodes", total, 0, 0) as bar:
            over, settings = _counter(bar.advance), config.settings
            transcripts = config.out / TRANSCRIPTS if config.transcripts else None
            if transcripts is not None:
                store_tasks(config.out, tasks)
            return score_episodes(
                await evaluate(
                    tasks,
                    grounds,
                    model,
                    settings,
                    file,
                    users,
                    over,
                    past_reasoning=not config.served,
                    transcripts=transcripts,
                )
            )
    finally:
        await model.close()


def _counter(advance: Callable[[], None]) -> Callable[[int], None]:
    def over(number: int) -> None:
        for _ in range(number):
            advance()

    return over


def _find_model_roles(config: EvalConfig) -> list[Role]:
    """Roles that models behind endpoints play."""
    roles: tuple[Role, ...] = ("agent", "user")
    return [role for role in roles if config.roles.of(role).model != SCRIPTED]


def _open_evaluated_model(config: EvalConfig, registry: ModelRegistry) -> ChatModel:
    if config.served:
        return registry.require_role_model("agent")
    return open_local_model(
        config.model,
        config.max_new_tokens,
        config.temperature,
        config.batch,
        config.tools,
        config.dtype,
        config.constrained,
    )


def open_local_model(
    name: str,
    max_tokens: int,
    temperature: float,
    batch: int = 32,
    tools: ToolStyle | None = None,
    dtype: str | None = None,
    constrained: bool = False,
) -> ChatModel:
    """Open a model that runs on this machine; the arguments are those of `EvalConfig`.

    Raises:
        InputError: The train extra or llguidance is missing, there is no such model, or it cannot be constrained.
    """
    require_train("eval")
    if constrained and not has_grammars():
        raise InputError(f"constrained: true needs llguidance: {install_command('train')}")
    import torch

    number_format = getattr(torch, dtype) if dtype else None
    tokenizer, model = open_training_tokenizer(name), open_model(name, number_format)
    shown = tools or read_checkpoint_info(name).tools
    return TransformersModel(
        name,
        model,
        tokenizer,
        max_tokens,
        temperature=temperature,
        batch=batch,
        tools=shown,
        constrained=constrained,
    )


def _explain_spent_budget(config: EvalConfig, registry: ModelRegistry, tasks: int) -> str:
    """The line that a used-up budget ends with."""
    file, spent = config.out / EPISODES, registry.ledger.spent
    over = file.read_bytes().count(b"\n") if file.is_file() else 0
    return (
        f"the budget is used up: {spent.tokens} tokens, cost {spent.cost:.6g}; {over} of "
        f"{tasks * config.settings.samples} episodes are over and kept in {file}; raise budget.max_tokens or "
        "budget.max_cost and give the same command again"
    )


def _read(file: Path) -> JsonObject | None:
    """Return the content of a file; None if it is truncated."""
    try:
        document: JsonObject = orjson.loads(file.read_bytes())
    except orjson.JSONDecodeError:
        return None
    return document


def _has_results(file: Path) -> bool:
    return any(not one.should_retry for one in read_episodes(file))


def _same_question(config: EvalConfig) -> None:
    """Check that results which are there answer the same question, and note it.

    An evaluation that ended before its first result, say for a model that is not there, leaves nothing that binds.

    Raises:
        InputError: They were made for another.
        RunError: The folder cannot be written.
    """
    asked, file = config.question(), config.out / QUESTION
    with storage_boundary(file):
        if file.is_file() and _read(file) not in (None, asked) and _has_results(config.out / EPISODES):
            raise InputError(
                f"{config.out} holds results of another model, run or sampling: name another folder as out"
            )
        config.out.mkdir(parents=True, exist_ok=True)
        write_whole_file(file, orjson.dumps(asked))
