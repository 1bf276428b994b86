"""Dialogues that were recorded elsewhere become tasks, trajectories and verdicts of a run."""

from collections.abc import Sequence
from pathlib import Path

from trajsmith.api.runs import Overrides, Run, list_overrides
from trajsmith.environments.blocking import run_blocking
from trajsmith.environments.sources import open_source
from trajsmith.pipeline.config import ConfigInput, RunConfig, load_config, resolve_config
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.run_directory import COPIED_IMPORTS, RunDirectory
from trajsmith.pipeline.runner import import_traces
from trajsmith.pipeline.trace_import import add_files
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import InputError


def import_dialogues(
    files: Sequence[Path | str],
    *,
    run: Path | str,
    config: ConfigInput | None = None,
    format: str = "auto",
    environment: str = "",
    tasks: Path | str | None = None,
    overrides: Overrides = (),
    progress: RunProgress | None = None,
) -> Run:
    """Read recorded dialogues, execute their calls again on an environment, and judge each of them.

    Dialogues that cannot be used are dropped and counted by reason; the others go on. `export_dataset` writes those
    that are accepted. Without gold actions in the file the verdict is `undecided`, and the setting
    `verify.imported.without_gold` says whether such a dialogue is accepted.

    Args:
        files: JSON or JSON Lines files.
        run: Run directory; created if there is none. Files can be added to a run later.
        config: Environments on which the calls are executed, as for `run`; needed for a new run only.
        format: tau2, taubench, atif, hub_traces, openai, sharegpt or bfcl; `auto` recognises it.
        environment: Which of several environments of the configuration.
        tasks: File with what the recordings leave out: BFCL's questions.
        overrides: Settings to change in a new run: `{"verify.imported.without_gold": "replay"}`.
        progress: Shows how far it is; silent without.

    Raises:
        InputError: A file or the configuration cannot be used.
        RunError: The run cannot go on; what was committed stays, and `resume` goes on.

    Example:
        >>> run = trajsmith.import_dialogues(["dialogues.jsonl"], run="runs/mine", config="environment.yaml")
        >>> [(verdict.outcome, verdict.reasons) for verdict in run.verdicts]
    """
    directory, settings = _open_run(Path(run), config, list_overrides(overrides))

    async def work() -> None:
        name = await _choose_environment(settings, environment)
        with directory.lock():
            add_files(directory, [Path(file) for file in files], format, Path(tasks) if tasks else None, name)
        await import_traces(directory, progress)

    run_blocking(work())
    return Run(directory.path)


def _open_run(path: Path, config: ConfigInput | None, overrides: list[str]) -> tuple[RunDirectory, RunConfig]:
    """Return the run that is there, or a new one."""
    if (path / "config.yaml").is_file() and (config is None or RunDirectory(path).holds_records()):
        if config is not None or overrides:
            raise InputError(
                f"{path} holds a run with a configuration of its own: leave out --config, --set, "
                "--without-gold and --min-reward; settings change with trajsmith resume --set"
            )
        return RunDirectory.open(path), load_config(path / "config.yaml")
    if config is None:
        raise InputError(
            f"{path} holds no run yet: say with --config FILE on which environment the recorded calls are made "
            "(a YAML with `environments:`)"
        )
    settings = resolve_config(config, [*overrides, f"run={path}"])
    return RunDirectory.create(settings.run, dump_settings(settings), folder=COPIED_IMPORTS), settings


async def _choose_environment(settings: RunConfig, wanted: str) -> str:
    """Return the name of the environment that is meant.

    Raises:
        InputError: There are several and none is named, or there is none of that name.
    """
    names = [(await open_source(entry).spec()).name for entry in settings.environments]
    if wanted in names or (not wanted and len(names) == 1):
        return wanted or names[0]
    problem = f"no environment {wanted!r}" if wanted else "several environments: say which one with --environment"
    raise InputError(f"{problem}; there is {', '.join(names)}")
