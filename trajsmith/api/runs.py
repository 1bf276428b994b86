"""Runs: start and resume them, and read what they hold."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import orjson

from trajsmith.environments.blocking import EnvironmentSession, run_blocking
from trajsmith.export import build_row
from trajsmith.pipeline.config import ConfigInput, RunConfig, load_config, resolve_config
from trajsmith.pipeline.config_changes import apply_change, plan_change
from trajsmith.pipeline.format_export import iter_selected, load_pass_rates
from trajsmith.pipeline.hub_runs import open_run
from trajsmith.pipeline.live_exploration import explore_run
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.record_joins import JudgedTrajectory, join_verdicts
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import TRAJECTORIES, VERDICTS, RunDirectory, find_written_tasks
from trajsmith.pipeline.runner import check_ready, run_pipeline
from trajsmith.pipeline.stored_specs import load_stored_specs
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import (
    EnvironmentSpec,
    InputError,
    JsonObject,
    Record,
    RecordDropped,
    Summary,
    Task,
    Trajectory,
    Verdict,
    count_records,
    read_records,
)

if TYPE_CHECKING:
    from datasets import Dataset

_log = logging.getLogger(__name__)
AnyRecord = TypeVar("AnyRecord", bound=Record)
Overrides = Mapping[str, Any] | Sequence[str]
"""Settings to change: `{"sample.count": 40}`, or `["sample.count=40"]` as on the command line."""


class RecordFile(Generic[AnyRecord]):
    """The records of one file of a run: has a length, and every iteration reads the file anew, line by line."""

    def __init__(self, directory: RunDirectory, path: Path, model: type[AnyRecord]) -> None:
        self.directory = directory
        self.path = path
        self.model = model

    def __len__(self) -> int:
        return count_records(self.path)

    def __iter__(self) -> Iterator[AnyRecord]:
        return read_records(self.path, self.model)

    def find(self, name: str) -> AnyRecord:
        """Return the record with an id; in a large file in milliseconds, after the first time.

        Raises:
            InputError: There is none.
        """
        with self.directory.open_lookup(self.path.name) as lookup:
            record = lookup.find(name, self.model)
        if record is None:
            raise InputError(f"no record {name} in {self.path}")
        return record


class Run:
    """A run directory and the records in it. Nothing is held in memory: records are read when iterated over.

    Example:
        >>> run = trajsmith.load_run("runs/quickstart")
        >>> len(run.tasks), run.summary.funnel["accepted"]
        (393, 393)
        >>> for task, trajectory, verdict in run.judged:
        ...     print(task.turns[0].query, verdict.outcome)
    """

    def __init__(self, path: Path | str) -> None:
        """Open a run; `load_run` is the usual way.

        Raises:
            InputError: There is no run at `path`.
        """
        self.directory = open_run(path)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def path(self) -> Path:
        """Run directory."""
        return self.directory.path

    @cached_property
    def config(self) -> RunConfig:
        """Configuration of the run as it was resolved."""
        return load_config(self.directory.config_path)

    @property
    def summary(self) -> Summary:
        """Figures of the finished run: the funnel with every reason of a loss, coverage, cost.

        Raises:
            InputError: The run is not finished.
        """
        return Summary.model_validate(self.directory.read_json("summary.json"))

    @property
    def tasks(self) -> RecordFile[Task]:
        """Tasks that are played, variants among them."""
        return RecordFile(self.directory, find_written_tasks(self.directory), Task)

    @property
    def trajectories(self) -> RecordFile[Trajectory]:
        """Trajectories, in the order of their tasks."""
        return RecordFile(self.directory, self.directory.file(TRAJECTORIES), Trajectory)

    @property
    def verdicts(self) -> RecordFile[Verdict]:
        """Verdicts, in the order of the trajectories."""
        return RecordFile(self.directory, self.directory.file(VERDICTS), Verdict)

    @property
    def judged(self) -> Iterator[JudgedTrajectory]:
        """Judged trajectories with their tasks, as `(task, trajectory, verdict)`; each access starts at the first."""
        return join_verdicts(self.directory)

    @cached_property
    def specs(self) -> Mapping[str, EnvironmentSpec]:
        """Specs of the environments, by name."""
        return load_stored_specs(self.directory)

    def rows(self) -> Iterator[JsonObject]:
        """Iterate over the rows of the dataset, all splits, built from the records: `messages`, `tools`, verdict.

        A trajectory that a chat template would damage is left out, as in the export, which counts the reasons.
        """
        rates = load_pass_rates(self.directory)
        for task, trajectory, verdict in iter_selected(self.directory):
            if verdict.accepted:
                spec = self.specs[trajectory.environment]
                try:
                    yield build_row(task, trajectory, verdict, spec, None, rates.get(task.id))
                except RecordDropped:
                    continue

    def dataset(self, split: str = "train") -> "Dataset":
        """Return one split of the exported dataset as a `datasets.Dataset`.

        Raises:
            InputError: The run has no dataset, or no such split.
        """
        from datasets import load_dataset

        folder = self.directory.file("dataset")
        if not folder.is_dir():
            raise InputError(f"{self.path} has no dataset yet: run `trajsmith resume {self.path}`")
        loaded = load_dataset(str(folder))
        if split not in loaded:
            raise InputError(f"{folder} has no split {split!r}; there are {', '.join(loaded)}")
        return loaded[split]

    def load_state(self, state_hash: str) -> JsonObject:
        """Return an initial state by its hash, for example `task.initial_state`.

        Raises:
            RunError: The run has no such state.
        """
        return self.directory.get_state(state_hash)

    def open_environment(self, task: Task) -> EnvironmentSession:
        """Open the environment of a task at the task's initial state.

        Raises:
            InputError: The environments of the run cannot be loaded any more.
        """
        source = self._context.place(task.environments[0]).source
        return EnvironmentSession(source, state=self.load_state(task.initial_state))

    @cached_property
    def _context(self) -> RunContext:
        return run_blocking(RunContext.reopen(self.config, self.directory))


def run(
    config: ConfigInput,
    *,
    run: Path | str | None = None,
    overrides: Overrides = (),
    fresh: bool = False,
    progress: RunProgress | None = None,
) -> Run:
    """Run the whole pipeline and return the finished run, as `trajsmith run` does.

    Works from scripts and inside a running event loop (notebooks), where the work gets a loop in a thread of its own
    and this call waits for it; `await asyncio.to_thread(trajsmith.run, ...)` keeps the caller's loop responsive. After
    an interrupt, `resume` goes on.

    Args:
        config: YAML file, its content as a mapping, or a `RunConfig`.
        run: Run directory, in place of the configuration's.
        overrides: Settings to change: `{"sample.count": 40}` or `["sample.count=40"]`.
        fresh: Remove a run that stands in that directory first.
        progress: Shows how far it is; `trajsmith.pipeline.progress.open_progress` has bars. Silent without.

    Raises:
        InputError: The configuration cannot be used, or the directory holds something.
        RunError: The run cannot go on; what was committed stays.

    Example:
        >>> finished = trajsmith.run(
        ...     {"name": "small", "environments": [{"library": "retail"}], "sample": {"count": 20}}, run="runs/small"
        ... )
        >>> finished.dataset()[0]["messages"]
    """
    settings = resolve_config(
        config, list_overrides(overrides) + ([f"run={orjson.dumps(str(run)).decode()}"] if run else [])
    )

    async def start() -> Path:
        await check_ready(settings)
        RunDirectory(settings.run).check_new(dump_settings(settings), fresh, from_python=True)
        explored = await explore_run(settings, _log.info)
        directory = RunDirectory.create(settings.run, dump_settings(explored), fresh, from_python=True)
        await run_pipeline(directory, progress)
        return directory.path

    return Run(run_blocking(start()))


def resume(path: Path | str, *, overrides: Overrides = (), progress: RunProgress | None = None) -> Run:
    """Go on where a run stopped, and return it finished; nothing is lost, doubled or done twice.

    Args:
        path: Run directory.
        overrides: Settings to change. Stages that the change makes stale are done again without asking.
        progress: Shows how far it is; silent without.

    Raises:
        InputError: There is no run, or a setting is wrong.
        RunError: The run cannot go on; what was committed stays.

    Example:
        >>> trajsmith.resume("runs/small", overrides={"verify.prune": False}).summary.funnel
    """
    directory = RunDirectory.open(path)
    changes = list_overrides(overrides)
    if changes:
        change = plan_change(directory, changes)
        run_blocking(check_ready(change.after))
        apply_change(directory, change)
    run_blocking(run_pipeline(directory, progress))
    return Run(path)


def load_run(path: Path | str) -> Run:
    """Open a run directory to read its records; nothing is executed and nothing is written.

    Raises:
        InputError: There is no run at `path`.

    Example:
        >>> run = trajsmith.load_run("runs/quickstart")
        >>> sum(verdict.accepted for verdict in run.verdicts)
    """
    return Run(path)


def list_overrides(overrides: Overrides) -> list[str]:
    """Return overrides as the command line writes them: key=value, the value as JSON, which YAML reads."""
    if isinstance(overrides, Mapping):
        return [f"{key}={orjson.dumps(value, default=str).decode()}" for key, value in overrides.items()]
    return list(overrides)
