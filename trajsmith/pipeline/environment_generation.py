"""`trajsmith env gen` with models: configuration, models, run directory; the stages stand in
`trajsmith.envgen.synthesis`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

from pydantic import ValidationError, field_validator, model_validator
from rich.console import Console

from trajsmith.envgen.sources import ThemeSource
from trajsmith.envgen.sources.model_classification import STATEFUL_PROMPT, read_task_set_with_model
from trajsmith.envgen.sources.read_result import SourceReadResult
from trajsmith.envgen.sources.web_search import SearchSettings, WebSearcher
from trajsmith.envgen.synthesis.acceptance import ENVIRONMENTS_FOLDER
from trajsmith.envgen.synthesis.concurrent_themes import synthesize_environments
from trajsmith.envgen.synthesis.examination import DraftRunner
from trajsmith.envgen.synthesis.funnel import Funnel, build_funnel
from trajsmith.envgen.synthesis.loop import SynthesisLoop
from trajsmith.envgen.synthesis.mining import DomainMiner, open_reader
from trajsmith.envgen.synthesis.prompt_specs import SOURCE_SPECS, SPECS
from trajsmith.envgen.synthesis.prompted_generation import PromptedGenerator
from trajsmith.envgen.synthesis.records import SynthesisOutcome, Theme
from trajsmith.envgen.synthesis.search_records import (
    SearchCounts,
    count_searches,
    drop_superseded,
    find_unsearched_in_folder,
    search_all,
)
from trajsmith.envgen.synthesis.settings import ROLES, StageRole, StageRoles, SynthesisSettings
from trajsmith.environments.sandbox.settings import MODES, SandboxSettings
from trajsmith.models import BudgetSettings, ChatModel, ModelSettings, Role, RolesSettings
from trajsmith.models.prompts import Prompts
from trajsmith.models.registry import USAGE, ModelRegistry, check_models
from trajsmith.pipeline.progress import open_progress
from trajsmith.pipeline.run_directory import CONFIG, RunDirectory
from trajsmith.pipeline.yaml_settings import dump_settings, dump_yaml, load_settings
from trajsmith.records import (
    FrozenModel,
    InputError,
    PlainName,
    SourcePath,
    StepJournal,
    content_hash,
    write_whole_file,
)
from trajsmith.toolgraph import EnvironmentWish, SamplingPlan

SUMMARY, PLAN = "summary.json", "plan.yaml"
GROWTH = "growth.json"
"""The environment that a run grows; not there in a run that makes new ones."""
UNREAD = "unread.json"
"""What a start was given, while not all themes of it are kept."""


class GenConfig(FrozenModel):
    """Everything that making environments with models needs; saved in the run directory as it was resolved."""

    name: PlainName
    run: Path = Path("runs/envgen")
    """Run directory: records, usage, and `environments/` with what was accepted."""
    models: dict[str, ModelSettings]
    """Language models by a name of your own."""
    roles: StageRoles
    budget: BudgetSettings = BudgetSettings()
    synthesis: SynthesisSettings = SynthesisSettings()
    sandbox: SandboxSettings = SandboxSettings()
    """How what models wrote is run; the name of a mode will do."""
    search: SearchSettings | None = None
    """MCP server that is asked about domains of which only the name is known; none if left out."""
    prompts: SourcePath | None = None
    """Folder with prompts that take the place of ours, as `envgen.synthesis/name.md.j2`."""

    @field_validator("sandbox", mode="before")
    @classmethod
    def _mode(cls, value: Any) -> Any:
        return {"mode": value} if isinstance(value, str) and value in MODES else value

    @model_validator(mode="after")
    def _can_work(self) -> Self:
        self.roles.check(self.models)
        if self.sandbox.mode == "unsafe":
            raise InputError("sandbox: code that a model wrote runs only in mode default or strict")
        return self

    def makers(self, prompts: Prompts) -> str:
        """Hash of what answers depend on beside what is asked."""
        names = {name: (one.model, one.base_url) for name, one in self.models.items()}
        versions = [prompts.get(spec).version for spec in SPECS.values()]
        return content_hash([self.roles.model_dump(mode="json"), names, versions], 12)

    def fingerprint(self, prompts: Prompts) -> str:
        """Hash of what decides what becomes of a theme."""
        fields = self.model_dump(mode="json", include={"synthesis", "sandbox"})
        return content_hash([self.makers(prompts), fields], 12)


def load_gen_config(path: Path, overrides: Sequence[str] = ()) -> GenConfig:
    """Read, override, validate.

    Raises:
        InputError: One line with file, line and what to do.
    """
    return load_settings(path, GenConfig, overrides)


def build_role_settings(roles: StageRoles) -> RolesSettings:
    """The roles as the registry asks for them: it calls `of` with a name and nothing else."""
    return cast(RolesSettings, roles)


async def check_ready(config: GenConfig, sources: Sequence[ThemeSource] = ()) -> Prompts:
    """Prompts, keys, addresses, models and the search server, before any work; costs nothing.

    Args:
        sources: If all of them have been searched for, the server is not started.

    Raises:
        InputError: One of them is wrong.
    """
    prompts = Prompts(config.prompts)
    for spec in (*SPECS.values(), *SOURCE_SPECS.values(), STATEFUL_PROMPT):
        prompts.get(spec)
    await check_models(config.models, build_role_settings(config.roles), cast(tuple[Role, ...], ROLES))
    if config.search is not None and find_unsearched_in_folder(config.run, config.search, sources):
        async with WebSearcher(config.search):
            pass  # it starts, and has the tool
        if config.search.mining is not None:
            reader = open_reader(config.search, config.search.mining)
            await reader.start()
            await reader.close()
    return prompts


def open_run(config: GenConfig) -> RunDirectory:
    """The run directory: a new one, or the one that is there, whose configuration is replaced.

    Raises:
        InputError: Something else stands there.
    """
    text = dump_settings(config)
    if not is_generation(config.run / CONFIG):
        return RunDirectory.create(config.run, text)
    run = RunDirectory.open(config.run)
    with run.lock():
        run.write_text(CONFIG, text)
    return run


def is_generation(path: Path) -> bool:
    """Return True if a configuration is one of environment generation."""
    try:
        return path.is_file() and bool(load_gen_config(path).name)
    except InputError:
        return False


class GenerationInputs(FrozenModel):
    """Inputs of a generation besides its configuration."""

    sources: tuple[ThemeSource, ...] = ()
    tasks: Path | None = None
    """A set of requests of which the designer finds the themes."""


class GrowthRequest(FrozenModel):
    """Request to grow an environment that models made, kept in the run, so that its directory is enough to go on."""

    directory: Path
    """Folder of the parent."""
    out: Path
    """Directory of the child's folder."""
    name: str | None = None
    """The child's name; None is the parent's with a number."""
    wish: str | None = None
    """What there should be more of."""


class RunGenerationResult(NamedTuple):
    """Result of a generation."""

    outcomes: list[SynthesisOutcome]
    funnel: Funnel
    undecided: dict[str, str]
    """Theme to why it could not be decided now."""
    reading: SourceReadResult | None
    """How requests became themes, where a model did it."""
    search: SearchCounts | None
    """What the search server gave, where there is one."""


MakeLoop = Callable[[PromptedGenerator, DraftRunner, StepJournal, str, str], SynthesisLoop]
"""What the stages work with, from desk, bench, store, makers and fingerprint."""


async def generate(
    config: GenConfig, sources: Sequence[ThemeSource], tasks: Path | None = None, console: Console | None = None,
    make_loop: MakeLoop = SynthesisLoop, growth: GrowthRequest | None = None,
) -> RunGenerationResult:  # fmt: skip
    """Make environments of sources; `trajsmith resume` goes on where a killed run was.

    Args:
        tasks: A set of requests of which the designer finds the themes.
        console: Where it is told how it goes; nowhere if None.
        make_loop: Another loop than that from a theme to an environment.
        growth: What the run grows, where it does.

    Raises:
        InputError: A setting, a key or an address is wrong, or the run directory is something else.
        RunError: A model is out or the budget is spent; what is done is kept.
    """
    prompts = await check_ready(config, sources)
    run = open_run(config)
    with run.lock():
        store = StepJournal(run.path)
        if growth is not None:
            run.write_json(GROWTH, growth.model_dump(mode="json"))
        roles = build_role_settings(config.roles)
        registry = ModelRegistry(config.models, roles, config.budget, run.path, f"trajsmith resume {run.path}")
        try:
            models = open_stage_models(registry)
            _store_inputs(run, GenerationInputs(sources=tuple(sources), tasks=tasks))
            reading = await read_task_set_with_model(models["designer"], prompts, tasks) if tasks else None
            sources = sources if reading is None else [*sources, *reading.sources]
            _store_sources(store, sources)
            run.file(UNREAD).unlink()
            generator = PromptedGenerator(models, prompts, SPECS | SOURCE_SPECS)
            sources = await _searched(config, store, sources, console, generator)
            bench = DraftRunner(run.path / "drafts", config.synthesis, config.sandbox)
            loop = make_loop(
                generator,
                bench,
                store,
                config.makers(prompts),
                config.fingerprint(prompts),
            )
            outcomes = await _run_with_progress(loop, sources, console)
        finally:
            await registry.close()
        totals = build_funnel(outcomes, len(loop.undecided), run.file(USAGE))
        search = None if config.search is None else count_searches(store, sources)
        summary = {"name": config.name, **totals.model_dump(mode="json"), "outcomes": [_short(one) for one in outcomes]}
        run.write_json(SUMMARY, summary if search is None else summary | {"search": search.model_dump(mode="json")})
    return RunGenerationResult(outcomes, totals, loop.undecided, reading, search)


async def _searched(
    config: GenConfig,
    store: StepJournal,
    sources: Sequence[ThemeSource],
    console: Console | None,
    generator: PromptedGenerator,
) -> Sequence[ThemeSource]:
    """The sources, with passages where a search found some."""
    if config.search is None:
        return sources
    tell = _build_printer(console)
    miner = None if config.search.mining is None else DomainMiner(generator, store, config.search, tell)
    search_result = await search_all(store, config.search, sources, tell, miner)
    _store_sources(store, search_result)
    return search_result


async def _run_with_progress(
    loop: SynthesisLoop, sources: Sequence[ThemeSource], console: Console | None
) -> list[SynthesisOutcome]:
    """The outcomes; meanwhile lines and a bar of themes, if there is a console."""
    if console is None:
        return await synthesize_environments(loop, sources)
    with open_progress(console) as progress, progress.stage("themes", len(sources), 0, 0) as bar:
        loop.tell = _build_printer(console)
        loop.ended = lambda accepted: bar.advance(dropped=not accepted)
        return await synthesize_environments(loop, sources)


def _build_printer(console: Console | None) -> Callable[[str], None]:
    def tell(line: str) -> None:
        if console is not None:
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    return tell


def _store_inputs(run: RunDirectory, inputs: GenerationInputs) -> None:
    """Keep what is given until its themes are kept: reading requests may take long, and the run may be stopped."""
    inputs = inputs.model_copy(update={"tasks": inputs.tasks and inputs.tasks.resolve()})
    left = load_unread_inputs(run.path)
    if left is not None and (left.tasks not in (None, inputs.tasks) or not set(left.sources) <= set(inputs.sources)):
        remaining = left.tasks or f"{len(left.sources)} sources"
        raise InputError(
            f"{run.path} was stopped while it read {remaining}: resume with trajsmith resume {run.path} first, "
            "or choose another run directory"
        )
    run.write_json(UNREAD, inputs.model_dump(mode="json"))


def _store_sources(store: StepJournal, sources: Sequence[ThemeSource]) -> None:
    """Keep what a run is about, so that its directory is all that is needed to go on."""
    for theme in (Theme(source=source) for source in sources):
        if store.get("themes", Theme, theme.id) is None:
            store.put("themes", theme.id, theme)


def open_stage_models(registry: ModelRegistry) -> dict[StageRole, ChatModel]:
    """Return the model of each role."""
    return {role: registry.require_role_model(role) for role in ROLES}


def _short(outcome: SynthesisOutcome) -> dict[str, Any]:
    return outcome.model_dump(mode="json", exclude={"id", "best"})


def load_unread_inputs(folder: Path) -> GenerationInputs | None:
    """Return the inputs of the last start if it stopped before all its themes were stored."""
    path = folder / UNREAD
    try:
        return GenerationInputs.model_validate_json(path.read_bytes()) if path.is_file() else None
    except ValidationError as error:
        raise InputError(f"{path} was changed by hand: take it away and give the source again") from error


def load_growth_request(folder: Path) -> GrowthRequest | None:
    """Return what a run grows; None if it makes new environments.

    Raises:
        InputError: The file was changed by hand.
    """
    path = folder / GROWTH
    try:
        return GrowthRequest.model_validate_json(path.read_bytes()) if path.is_file() else None
    except ValidationError as error:
        raise InputError(f"{path} was changed by hand: give the same trajsmith env grow again") from error


def load_run_inputs(folder: Path) -> GenerationInputs:
    """Return the inputs that a run was started with: its themes, and what is still to be read.

    Raises:
        InputError: There is no run, or it was stopped before it kept anything.
    """
    left = load_unread_inputs(folder) or GenerationInputs()
    store = StepJournal(folder)
    sources = drop_superseded(store, [*left.sources, *(theme.source for theme in store.all("themes", Theme))])
    if not sources and left.tasks is None:
        raise InputError(f"{folder} knows of no source yet: give one, such as --from-domain NAME, with --config FILE")
    return GenerationInputs(sources=tuple(dict.fromkeys(sources)), tasks=left.tasks)


def read_plan(file: Path) -> SamplingPlan:
    """Read a plan that wants environments.

    Raises:
        InputError: It cannot be read, or no environment is left to make.
    """
    plan = load_settings(file, SamplingPlan, must_exist=True)
    if not plan.list_open_wishes():
        state = "has all that it wants" if plan.environments else "wants none: no environment is weak as a whole"
        raise InputError(
            f"{file}: environments: the plan {state}; trajsmith run CONFIG --plan {file} takes it as it is"
        )
    return plan


def build_wish_sources(plan: SamplingPlan) -> list[ThemeSource]:
    """Return a theme for each environment of a plan that nothing was made for."""
    wishes = [wish for wish in plan.environments if not wish.files]
    return [
        ThemeSource(kind="domain", name=_name_theme(wish), summary=wish.wish, origin=PLAN, licence=None)
        for wish in wishes
    ]


def _name_theme(wish: EnvironmentWish) -> str:
    return wish.like.replace("_", " ")


def store_plan(config: GenConfig, plan: SamplingPlan) -> None:
    """Keep a plan in the run that makes its environments, so that the directory is enough to go on."""
    write_whole_file(open_run(config).file(PLAN), _dump_plan(plan))


def fill_plan_files(run: Path, outcomes: Sequence[SynthesisOutcome]) -> Path | None:
    """Write the files of accepted environments into the plan of a run; return it, or None if none was made for it."""
    file = run / PLAN
    if not file.is_file():
        return None
    plan = load_settings(file, SamplingPlan)
    names = {one.source: one.name for one in outcomes if one.accepted}
    wishes = []
    for wish in plan.environments:
        name = names.get(_name_theme(wish))
        if name is not None and not wish.files:
            path = (run / ENVIRONMENTS_FOLDER / name / f"{name}.py").resolve()
            wish = wish.model_copy(update={"files": (path,)})
        wishes.append(wish)
    if tuple(wishes) == plan.environments:
        return None
    write_whole_file(file, _dump_plan(plan.model_copy(update={"environments": tuple(wishes)})))
    return file


def _dump_plan(plan: SamplingPlan) -> bytes:
    return dump_yaml(plan.model_dump(mode="json")).encode()
