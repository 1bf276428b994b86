"""The configuration of a run: it only composes the settings that the packages own."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import to_jsonable_python

from trajsmith.environments.adapters.mcp.client_files import read_client_file
from trajsmith.environments.library import list_environments_in
from trajsmith.environments.sources import EnvironmentSettings, expand_settings
from trajsmith.export import FORMATS, FormatName, SplitSettings
from trajsmith.grounding import GroundSettings
from trajsmith.models import BudgetSettings, ModelSettings, RolesSettings
from trajsmith.phrasing import LanguageCode
from trajsmith.pipeline.engine import ENGINES, EngineName
from trajsmith.pipeline.object_storage import check_copy_address, find_address
from trajsmith.pipeline.quotas import AcceptSettings
from trajsmith.pipeline.shard_range import ShardText
from trajsmith.pipeline.yaml_settings import PACKAGED_CONFIGS, dump_settings, dump_yaml, load_settings, parse_settings
from trajsmith.querygen import ProgramSettings, StateFirstSettings, WriteSettings
from trajsmith.querygen.vary import VARIANTS, VarySettings
from trajsmith.records import FrozenModel, InputError, PlainName, Registry, Seed, SourcePath, has_records
from trajsmith.toolgraph import SAMPLERS, GraphSettings, SampleSettings, SamplingPlan
from trajsmith.usersim import PlaySettings
from trajsmith.verify import JudgeSettings, VerifySettings
from trajsmith.verify.checks import CHECKS
from trajsmith.verify.duplicates import DuplicateSettings
from trajsmith.verify.rewards import REWARDS

LIVE_CHAINS = 60
"""Chains that are drawn for each server of a client's file: enough for 40 rows of most."""


class RaySettings(FrozenModel):
    """Settings of a Ray cluster: its address, and what each worker needs there."""

    address: str | None = None
    """`auto`, `HOST:6379` or `ray://HOST:10001`; unset is RAY_ADDRESS, and a new Ray on this machine without it."""
    cpus: PositiveFloat = 1
    """Cores that each worker reserves."""
    resources: dict[str, PositiveFloat] = Field(default_factory=dict)
    """Custom resources that each worker reserves, for example `{trajsmith: 1}` on nodes that have a sandbox."""
    runtime_env: dict[str, Any] = Field(default_factory=dict)
    """Ray's runtime environment, where nodes do not have trajsmith installed."""


class EngineSettings(FrozenModel):
    """Settings of the engine that runs the stages."""

    kind: EngineName = "local"
    """`local`: asyncio and processes on this machine; `ray`: the same on a Ray cluster, with the run directory on
    storage that all nodes see; `trajsmith plugins --kind engines` lists all."""
    concurrency: PositiveInt = 8
    """Records in work at a time, in each worker."""
    workers: Literal["auto"] | PositiveInt = "auto"
    """Processes that ground, write, play and verify; 1 works in this one. `auto` takes all cores where a stage has
    enough records to make up for starting them. Records do not depend on it. Stages in which models speak wait more
    than they compute and stay in one process."""
    ray: RaySettings = RaySettings()
    compress_above_mb: NonNegativeInt | None = 256
    """Size in MiB above which the record file of a stage is compressed when the stage is done; 0 compresses every one,
    null none. Commands read either form; `trajsmith compress` changes it."""
    copy_to: Annotated[str, AfterValidator(check_copy_address)] | None = None
    """Address of a copy of the run on storage that fsspec knows, for example s3://bucket/runs/a (package s3fs), with
    which `trajsmith resume ADDRESS` goes on elsewhere. Those of shards have the shard in their names."""
    copy_every: PositiveFloat = 300.0
    """Seconds between two updates of the copy; the end of a command updates it, too."""


class ExportSettings(FrozenModel):
    """Settings of the export of accepted trajectories."""

    license: str = "apache-2.0"
    """Licence in the dataset card."""
    rows_per_shard: PositiveInt = 2000
    gallery: int = Field(default=120, ge=1, le=1000)
    """Trajectories shown in the report, a page of about 13 KB for each; `trajsmith report --all` has pages for all."""
    pages: int = Field(default=1000, ge=0)
    """Largest run, in trajectories, of which each export writes all as pages; of any other `report --all` does."""
    split: SplitSettings = SplitSettings()
    """How rows are divided into train, validation and test; all go to train by default."""
    formats: tuple[FormatName, ...] = ()
    """Formats written beside the dataset, into `exports/<name>`; `trajsmith export --formats` lists them."""
    window: PositiveInt | None = None
    """Assistant turns of history in the rows of `per_turn` and `per_step`; None is the format's own default."""


class SourceSettings(FrozenModel):
    """Shares of the sources of tasks; they need not sum to one."""

    chains: float = Field(1.0, ge=0)
    """Chains of tools drawn from the graph or a scenario (EnvFactory)."""
    programs: float = Field(0.0, ge=0)
    """Solution programs with joins, aggregates, branches and loops (Agent-World 3.1.1)."""
    long: float = Field(0.0, ge=0)
    """Programs of 15 to 50 calls for one request."""
    state_first: float = Field(0.0, ge=0)
    """A change of the state that is asked for, whose calls a solver finds (EnvScaler 4.1, AWM 3.2)."""

    @model_validator(mode="after")
    def _is_something(self) -> Self:
        if not sum(self.shares.values()):
            raise ValueError("give at least one source a share above 0")
        return self

    @property
    def shares(self) -> dict[str, float]:
        """Share of each source by its name in records."""
        return {"chain": self.chains, "program": self.programs, "long": self.long, "state": self.state_first}


class RunConfig(FrozenModel):
    """Everything that a run needs; saved in the run directory as it was resolved."""

    name: PlainName
    seed: Seed = 0
    """Two runs with one seed give the same records, byte for byte."""
    run: Path = Path("runs/run")
    """Run directory; an address such as s3://bucket/runs/a means `runs/a` here with that address as
    `engine.copy_to`."""
    language: LanguageCode = "en"
    """What users and agents speak; tools, results and policies stay as they are. `de` needs bundled environments that
    have `phrases.de.yaml`."""
    environments: tuple[EnvironmentSettings, ...] = Field(min_length=1)
    models: dict[str, ModelSettings] = {}
    """Language models by a name of your own."""
    roles: RolesSettings = RolesSettings()
    budget: BudgetSettings = BudgetSettings()
    graph: GraphSettings = GraphSettings()
    sample: SampleSettings = SampleSettings()
    sources: SourceSettings = SourceSettings()
    """Where tasks start; `sample.count` is shared out among them."""
    programs: ProgramSettings = ProgramSettings()
    """Programmatic tasks, where `sources` asks for some."""
    state_first: StateFirstSettings = StateFirstSettings()
    """Tasks that start from a change of the state, where `sources` asks for some."""
    plan: SamplingPlan | None = None
    """What the run makes more of, as `trajsmith diagnose` writes it; `trajsmith run CONFIG --plan FILE` sets it."""
    ground: GroundSettings = GroundSettings()
    write: WriteSettings = WriteSettings()
    vary: VarySettings = VarySettings()
    play: PlaySettings = PlaySettings()
    judge: JudgeSettings = JudgeSettings()
    prompts: SourcePath | None = None
    """Folder with prompts that take the place of ours, as `package/name.md.j2`; see `trajsmith prompts list`."""
    verify: VerifySettings = VerifySettings()
    duplicates: DuplicateSettings | None = None
    """When two trajectories are too much alike; without it, all are kept."""
    decontaminate: tuple[SourcePath, ...] = ()
    """Files of benchmarks; rows that stand in them are dropped."""
    accept: AcceptSettings | None = None
    """How many rows the dataset has, and of which kinds; without it, all that were accepted."""
    export: ExportSettings = ExportSettings()
    engine: EngineSettings = EngineSettings()
    shard: ShardText | None = None
    """Part of the chains that this run does, such as "3/8"; `trajsmith merge` makes one run of all parts. A shard makes
    no dataset and tops nothing up."""

    @model_validator(mode="before")
    @classmethod
    def _is_of_this_command(cls, data: Any, info: ValidationInfo) -> Any:
        """Refuse the configuration of another command by name; its keys would be called unknown one by one.

        Raises:
            InputError: It is one.
        """
        if isinstance(data, dict) and "environments" not in data:
            command = "env gen" if "synthesis" in data else ""
            if "model" in data or "scratch" in data:
                command = "sft" if "dataset" in data else "grpo" if "trainer" in data else "eval"
            if command:
                file = Path((info.context or {}).get("name", "CONFIG"))
                name = file.stem if file.parent == PACKAGED_CONFIGS else file
                options = " --config" if command == "env gen" else ""
                raise InputError(f"this configures trajsmith {command}: trajsmith {command}{options} {name}")
        return data

    @model_validator(mode="before")
    @classmethod
    def _split_address_of_run(cls, data: Any) -> Any:
        """Replace an address in `run` by a directory of this machine whose copy is kept at the address.

        Raises:
            ValueError: It is no address of a run, or `engine.copy_to` names another one.
        """
        address = find_address(data.get("run", "")) if isinstance(data, dict) else None
        if address is None:
            return data
        address, engine = check_copy_address(address), data.get("engine") or {}
        if isinstance(engine, EngineSettings):
            engine = engine.model_dump()
        if not isinstance(engine, dict):
            return data
        if str(engine.get("copy_to") or address).rstrip("/") != address:
            raise ValueError(f"run is {address}, and engine.copy_to another address: leave one of them out")
        return data | {"run": f"runs/{address.rpartition('/')[2]}", "engine": engine | {"copy_to": address}}

    @field_validator("environments", mode="before")
    @classmethod
    def _are_entries(cls, value: Any) -> Any:
        if isinstance(value, str | list | tuple) and not value:
            raise ValueError("name at least one environment, such as - {library: retail}")
        for entry in [value] if isinstance(value, str) else value if isinstance(value, list) else ():
            if isinstance(entry, str):
                kind = "python" if ".py" in entry else "library"
                other = "{library: NAME}" if kind == "python" else "{python: FILE}"
                raise ValueError(f"write an entry as - {{{kind}: {entry}}}, or - {other}")
        return value

    @model_validator(mode="after")
    def _roles_are_played(self) -> Self:
        self.roles.check(self.models)
        return self


def load_config(path: Path, overrides: Sequence[str] = (), must_exist: bool = False) -> RunConfig:
    """Read, override, validate; entries that stand for several (`library: "*"`, a checkout) are spelled out.

    A JSON file is a client's list of MCP servers (`mcp.json`), which a run explores first; other settings are those of
    `list_live_defaults`.

    Args:
        must_exist: The environments that are named must be there, as for a new run.

    Raises:
        InputError: One line with file, line and what to do.
    """
    if Path(path).suffix == ".json":
        text = dump_yaml(
            {
                "name": Path(path).stem,
                "run": f"runs/{Path(path).stem}",
                "environments": [{"mcp": {"file": str(path)}}],
                **list_live_defaults(len(read_client_file(Path(path)))),
            }
        )
        return _expand_entries(parse_settings(text, str(path), Path.cwd(), RunConfig, overrides, must_exist))
    return _expand_entries(load_settings(path, RunConfig, overrides, must_exist))


def list_live_defaults(servers: int, shortest: int = 2) -> dict[str, Any]:
    """Return the settings of a run of explored servers: short chains, and links by what the exploration saw.

    Args:
        servers: Number of servers.
        shortest: Calls of a task at least.
    """
    return {
        "graph": {"execution": {"calls": 0}},
        "sample": {"count": LIVE_CHAINS * servers, "length": [shortest, 4]},
        "ground": {"min_calls": shortest},
    }


def resolve_config(config: "ConfigInput", overrides: Sequence[str] = ()) -> RunConfig:
    """Return the configuration that a file, a mapping or a `RunConfig` stands for, as `load_config` returns it.

    Relative paths of files in a mapping or a `RunConfig` start at the working directory.

    Raises:
        InputError: One line with the place and what to do.
    """
    if isinstance(config, str | Path):
        return load_config(Path(config), overrides, must_exist=True)
    text = dump_settings(config) if isinstance(config, RunConfig) else dump_yaml(to_jsonable_python(dict(config)))
    return _expand_entries(parse_settings(text, "configuration", Path.cwd(), RunConfig, overrides, must_exist=True))


ConfigInput = str | Path | Mapping[str, Any] | RunConfig
"""YAML file, its content as a mapping, or the validated configuration."""


def _expand_entries(config: RunConfig) -> RunConfig:
    config = _follow_plan(config)
    entries = tuple(one for entry in config.environments for one in expand_settings(entry))
    _check_accept(config)
    config = config.model_copy(update={"environments": entries})
    _check_language(config)
    return config


def _follow_plan(config: RunConfig) -> RunConfig:
    """Derive the variants of a plan from every task that allows them, and open the environments made for it.

    Raises:
        InputError: The plan cannot be followed across servers.
    """
    if config.plan is None:
        return config
    if config.sample.servers > 1:
        raise InputError("plan: chains on several servers cannot be chosen: set sample.servers to 1")
    rates = {**config.vary.rates, **dict.fromkeys(config.plan.variants, 1.0)}
    named = {Path(entry.python.partition(":")[0]).resolve() for entry in config.environments if entry.python}
    files = {file.resolve(): file for wish in config.plan.environments for file in wish.files}
    entries = [EnvironmentSettings(python=str(file)) for place, file in files.items() if place not in named]
    update = {"vary": config.vary.model_copy(update={"rates": rates}), "environments": (*config.environments, *entries)}
    return config.model_copy(update=update)


def _check_language(config: RunConfig) -> None:
    """Find out whether everything that the run wants exists in its language.

    Raises:
        InputError: It does not.
    """
    code = config.language
    if code == "en":
        return
    known = list_environments_in(code)
    wrong = next((entry.library or entry.kind for entry in config.environments if entry.library not in known), None)
    if wrong is not None:
        raise InputError(f"language: {code}: environment {wrong} has no phrases in it; there are: {', '.join(known)}")
    if config.vary.on:
        raise InputError(f"language: {code}: variants are written in English only: remove vary.rates")
    if any(share for name, share in config.sources.shares.items() if name != "chain"):
        raise InputError(
            f"language: {code}: programmatic tasks are written in English only: leave sources.chains alone"
        )
    if config.play.reasoning != "off":
        raise InputError(f"language: {code}: reasoning is written in English only: set play.reasoning=off")
    spoken = next((role for role in ("writer", "user") if config.roles.of(role).model != "scripted"), None)
    if spoken is not None:
        raise InputError(f"language: {code}: the prompts of roles.{spoken} are in English only: leave it scripted")


def check_files(config: RunConfig) -> None:
    """Find out before any work whether the files are there that are only read at the end.

    Raises:
        InputError: A file of `decontaminate` is not there.
    """
    for path in config.decontaminate:
        if not path.is_file():
            problem = "is a directory: name its files" if path.is_dir() else "there is no such file"
            raise InputError(f"decontaminate: {path}: {problem}")
    for path in (file for wish in config.plan.environments for file in wish.files) if config.plan else ():
        if not path.is_file():
            raise InputError(
                f"plan.environments: {path}: there is no such file: name the Python file that env gen made"
            )
    for path in config.plan.avoid if config.plan else ():
        if not has_records(path):
            raise InputError(f"plan.avoid: {path}: there is no such file: name tasks.jsonl of the evaluation")


def check_plugins(config: RunConfig) -> None:
    """Load before any work what the configuration names.

    Raises:
        InputError: Something cannot be imported, or two distributions give it the same name.
    """
    named: list[tuple[Registry[Any], Iterable[str]]] = [
        (SAMPLERS, [config.sample.method]),
        (VARIANTS, config.vary.rates),
        (CHECKS, config.verify.checks),
        (REWARDS, config.verify.rewards.names),
        (FORMATS, config.export.formats),
        (ENGINES, [config.engine.kind]),
    ]
    for registry, names in named:
        for name in names:
            registry.get(name)


def _check_accept(config: RunConfig) -> None:
    shares = config.accept.by.get("variant", {}) if config.accept else {}
    for name in shares if isinstance(shares, dict) else ():
        if name != "base" and name not in VARIANTS.names():
            raise InputError(
                f"accept.by.variant: no variant named {name!r}; there are: base, {', '.join(VARIANTS.names())}"
            )
        if name != "base" and not config.vary.on:
            raise InputError(f"accept.by.variant wants {name}, but no variants are made: set vary.rates.{name}")
