"""Runs in dataset repositories of the Hub: `hub:owner/name` stands for a run directory."""

import re
from pathlib import Path

from trajsmith.environments.linked import list_worlds
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.export import ENVELOPE, MANIFEST, check_manifest
from trajsmith.export.hub import TASKS_OF_DATASET, translate_hub_errors
from trajsmith.pipeline.config import ExportSettings, RunConfig, load_config
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import HUB, InputError

_REVISION = re.compile(r"(?:(?!\.\.)[\w.\-/]){0,200}")
"""What may stand in a folder's name: no step up, no control characters."""


def open_run(path: Path | str) -> RunDirectory:
    """Take up an existing run to read it; `hub:owner/name` is downloaded first.

    Raises:
        InputError: There is none, or it is none that may be opened.
        RunError: The Hub cannot be reached.
    """
    return RunDirectory.open(fetch_run(path) if str(path).startswith(HUB) else path)


def split_reference(path: Path | str) -> tuple[str, str]:
    """Return repository and revision of `hub:owner/name@revision`; both empty for a folder of this machine."""
    if not str(path).startswith(HUB):
        return "", ""
    repo, _, revision = str(path).removeprefix(HUB).partition("@")
    return repo, revision


def fetch_run(path: Path | str) -> Path:
    """Download the tasks of a repository, what is missing of them, and return the folder.

    Where the repository has a manifest, its files are those that the manifest names.

    Args:
        path: `hub:owner/name`, or `hub:owner/name@revision`.

    Raises:
        InputError: It is no name of a repository, the token may not read it, or it holds no tasks.
        RunError: The Hub cannot be reached, or a file differs from the manifest.
    """
    from huggingface_hub import constants, snapshot_download

    repo, revision = split_reference(path)
    if not _REVISION.fullmatch(revision):
        raise InputError(f"{revision[:80]!a} is no revision of a repository: write a branch, a tag or a commit")
    if repo.count("/") != 1 or not _REVISION.fullmatch(repo):
        raise InputError(f"{path}: write the repository as {HUB}owner/name")
    folder = (
        Path(constants.HF_HOME) / "trajsmith" / f"{repo.replace('/', '--')}@{(revision or 'main').replace('/', '--')}"
    )
    patterns = [f"{TASKS_OF_DATASET}/*", MANIFEST, ENVELOPE]
    with translate_hub_errors(repo):
        snapshot_download(
            repo, repo_type="dataset", revision=revision or None, allow_patterns=patterns, local_dir=folder
        )
    check_manifest(folder, TASKS_OF_DATASET)
    run = folder / TASKS_OF_DATASET
    if not (run / "config.yaml").is_file():
        raise InputError(f"{repo} holds no tasks: push them with `trajsmith push RUN {repo} --tasks`")
    check_foreign_config(run / "config.yaml", repo)
    return run


def check_foreign_config(file: Path, repo: str) -> None:
    """Refuse a configuration that says more than which tasks there are: it comes from outside.

    Raises:
        InputError: It starts programs, weakens the sandbox, or names files elsewhere.
    """
    config = load_config(file)
    plain = RunConfig(
        name=config.name,
        seed=config.seed,
        language=config.language,
        environments=config.environments,
        run=config.run,
        export=ExportSettings(split=config.export.split),
    )
    for entry in config.environments:
        place = file.parent.resolve()
        python = str(entry.python).partition(":")[0] if entry.python else None
        files = [path for path in (python, *entry.state_files, entry.phrases, entry.scenarios) if path is not None]
        inside = all((place / path).resolve().is_relative_to(place) for path in files)
        here = not (entry.python or "").startswith(HUB)
        known = (here and entry.kind in ("library", "python")) or entry.linked in list_worlds()
        if not known or not inside or not _is_no_weaker(entry.sandbox):
            raise InputError(
                f"{repo}: an environment ({entry.kind}) of its {file.name} starts programs, names files elsewhere or "
                "weakens the sandbox, which tasks of others may not"
            )
    if config != plain:
        raise InputError(f"{repo}: its {file.name} has settings that others' tasks may not have")


def _is_no_weaker(sandbox: SandboxSettings) -> bool:
    """Return True if nothing is allowed that the default settings forbid: limits may be lower, and the mode strict."""
    default = SandboxSettings()
    changed = {name: value for name, value in sandbox if value != getattr(default, name)}
    mode = changed.pop("mode", "strict")
    return mode == "strict" and all(
        isinstance(value, int | float) and value < getattr(default, name) for name, value in changed.items()
    )
