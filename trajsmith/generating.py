"""`trajsmith env gen` with models: configuration, models, run directory; the stages stand in `envgen.synthesis`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

from pydantic import ValidationError, field_validator, model_validator
from rich.console import Console

from chatmodel import BudgetSettings, ChatModel, ModelSettings, Role, RolesSettings
from chatmodel.board import USAGE, Board, check_models
from chatmodel.prompts import Prompts
from envgen.sources import Source
from envgen.sources.asking import STATEFUL, read_task_set_by
from envgen.sources.reading import Reading
from envgen.sources.searching import Searcher, SearchSettings
from envgen.synthesis.desk import Desk
from envgen.synthesis.examining import Bench
from envgen.synthesis.funnel import Funnel, funnel
from envgen.synthesis.loop import Loop
from envgen.synthesis.prompting import SPECS
from envgen.synthesis.records import Outcome, Theme
from envgen.synthesis.searched import SearchCounts, counted, latest, search_all, unasked
from envgen.synthesis.settings import ROLES, StageRole, StageRoles, SynthesisSettings
from envgen.synthesis.several import synthesise
from envgen.synthesis.store import Store
from environments.sandbox.settings import MODES, SandboxSettings
from trajectory import Frozen, InputError, SourcePath, content_hash
from trajsmith.progress import open_progress
from trajsmith.rundir import CONFIG, RunDirectory
from trajsmith.settings import dump_settings, load_settings

SUMMARY = "summary.json"
UNREAD = "unread.json"
"""What a start was given, while not all themes of it are kept."""


class GenConfig(Frozen):
    """Everything that making environments with models needs; saved in the run directory as it was resolved."""

    name: str
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
        kept = self.model_dump(mode="json", include={"synthesis", "sandbox"})
        return content_hash([self.makers(prompts), kept], 12)


def load_gen_config(path: Path, overrides: Sequence[str] = ()) -> GenConfig:
    """Read, override, validate.

    Raises:
        InputError: One line with file, line and what to do.
    """
    return load_settings(path, GenConfig, overrides)


def role_settings(roles: StageRoles) -> RolesSettings:
    """The roles as the board asks for them: it calls `of` with a name and nothing else."""
    return cast(RolesSettings, roles)


async def check_ready(config: GenConfig, sources: Sequence[Source] = ()) -> Prompts:
    """Prompts, keys, addresses, models and the search server, before any work; costs nothing.

    Args:
        sources: If all of them have been searched for, the server is not started.

    Raises:
        InputError: One of them is wrong.
    """
    prompts = Prompts(config.prompts)
    for spec in (*SPECS.values(), STATEFUL):
        prompts.get(spec)
    await check_models(config.models, role_settings(config.roles), cast(tuple[Role, ...], ROLES))
    if config.search is not None and unasked(config.run, config.search, sources):
        async with Searcher(config.search):
            pass  # it starts, and has the tool
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
    """Whether a configuration is one of making environments."""
    try:
        return path.is_file() and bool(load_gen_config(path).name)
    except InputError:
        return False


class Given(Frozen):
    """What a start was given beside its configuration."""

    sources: tuple[Source, ...] = ()
    tasks: Path | None = None
    """A set of requests of which the designer finds the themes."""


class Generated(NamedTuple):
    """What came of a start."""

    outcomes: list[Outcome]
    funnel: Funnel
    undecided: dict[str, str]
    """Theme to why it could not be decided now."""
    reading: Reading | None
    """How requests became themes, where a model did it."""
    search: SearchCounts | None
    """What the search server gave, where there is one."""


MakeLoop = Callable[[Desk, Bench, Store, str, str], Loop]
"""What the stages work with, from desk, bench, store, makers and fingerprint."""


async def generate(
    config: GenConfig, sources: Sequence[Source], tasks: Path | None = None, console: Console | None = None,
    make_loop: MakeLoop = Loop, again: str = "",
) -> Generated:  # fmt: skip
    """Make environments of sources; the same command goes on where a killed one was.

    Args:
        tasks: A set of requests of which the designer finds the themes.
        console: Where it is told how it goes; nowhere if None.
        make_loop: Another loop than that from a theme to an environment.
        again: The command that goes on after a stop, for the line that says so; env gen's if empty.

    Raises:
        InputError: A setting, a key or an address is wrong, or the run directory is something else.
        RunError: A model is out or the budget is spent; what is done is kept.
    """
    prompts = await check_ready(config, sources)
    run = open_run(config)
    with run.lock():
        store = Store(run.path)
        again = again or f"trajsmith env gen --run {run.path}"
        board = Board(config.models, role_settings(config.roles), config.budget, run.path, again)
        try:
            talkers = _talkers(board)
            _begin(run, Given(sources=tuple(sources), tasks=tasks))
            reading = await read_task_set_by(talkers["designer"], prompts, tasks) if tasks else None
            sources = sources if reading is None else [*sources, *reading.sources]
            _note(store, sources)
            run.file(UNREAD).unlink()
            sources = await _searched(config, store, sources, console)
            bench = Bench(run.path / "drafts", config.synthesis, config.sandbox)
            loop = make_loop(
                Desk(talkers, prompts, SPECS), bench, store, config.makers(prompts), config.fingerprint(prompts)
            )
            outcomes = await _told(loop, sources, console)
        finally:
            await board.close()
        found = funnel(outcomes, len(loop.undecided), run.file(USAGE))
        search = None if config.search is None else counted(store, sources)
        told = {"name": config.name, **found.model_dump(mode="json"), "outcomes": [_short(one) for one in outcomes]}
        run.write_json(SUMMARY, told if search is None else told | {"search": search.model_dump(mode="json")})
    return Generated(outcomes, found, loop.undecided, reading, search)


async def _searched(
    config: GenConfig, store: Store, sources: Sequence[Source], console: Console | None
) -> Sequence[Source]:
    """The sources, with passages where a search found some."""
    if config.search is None:
        return sources
    found = await search_all(store, config.search, sources, _teller(console))
    _note(store, found)
    return found


async def _told(loop: Loop, sources: Sequence[Source], console: Console | None) -> list[Outcome]:
    """The outcomes; meanwhile lines and a bar of themes, if there is a console."""
    if console is None:
        return await synthesise(loop, sources)
    with open_progress(console) as progress, progress.stage("themes", len(sources), 0, 0) as bar:
        loop.tell = _teller(console)
        loop.ended = lambda accepted: bar.advance(dropped=not accepted)
        return await synthesise(loop, sources)


def _teller(console: Console | None) -> Callable[[str], None]:
    def tell(line: str) -> None:
        if console is not None:
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    return tell


def _begin(run: RunDirectory, given: Given) -> None:
    """Keep what is given until its themes are kept: reading requests may take long, and the run may be stopped."""
    given = given.model_copy(update={"tasks": given.tasks and given.tasks.resolve()})
    left = unread(run.path)
    if left is not None and (left.tasks not in (None, given.tasks) or not set(left.sources) <= set(given.sources)):
        what = left.tasks or f"{len(left.sources)} sources"
        raise InputError(
            f"{run.path} was stopped while it read {what}: go on with trajsmith env gen --run {run.path} first, "
            "or choose another run directory"
        )
    run.write_json(UNREAD, given.model_dump(mode="json"))


def _note(store: Store, sources: Sequence[Source]) -> None:
    """Keep what a run is about, so that its directory is all that is needed to go on."""
    for theme in (Theme(source=source) for source in sources):
        if store.get("themes", Theme, theme.id) is None:
            store.put("themes", theme.id, theme)


def _talkers(board: Board) -> dict[StageRole, ChatModel]:
    found: dict[StageRole, ChatModel] = {}
    for role in ROLES:
        talker = board.talker(cast(Role, role))
        assert talker is not None, "roles.check lets no role be scripted"
        found[role] = talker
    return found


def _short(outcome: Outcome) -> dict[str, Any]:
    return outcome.model_dump(mode="json", exclude={"id", "best"})


def unread(folder: Path) -> Given | None:
    """What the last start was given, if it was stopped before all themes of it were kept."""
    path = folder / UNREAD
    try:
        return Given.model_validate_json(path.read_bytes()) if path.is_file() else None
    except ValidationError as error:
        raise InputError(f"{path} was changed by hand: take it away and give the source again") from error


def known(folder: Path) -> Given:
    """What a run was started with: its themes, and what is still to be read.

    Raises:
        InputError: There is no run, or it was stopped before it kept anything.
    """
    left = unread(folder) or Given()
    store = Store(folder)
    sources = latest(store, [*left.sources, *(theme.source for theme in store.all("themes", Theme))])
    if not sources and left.tasks is None:
        raise InputError(f"{folder} knows of no source yet: give one, such as --from-domain NAME, with --config FILE")
    return Given(sources=tuple(dict.fromkeys(sources)), tasks=left.tasks)
