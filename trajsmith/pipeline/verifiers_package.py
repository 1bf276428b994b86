"""Tasks of a run as a package of the `verifiers` library: a taskset, its environment, and the run inside.

The package is code of a few lines around `trajsmith.pipeline.verifiers_env`; what is scored is scored there.
"""

import asyncio
import re
from collections import Counter
from importlib.metadata import version
from pathlib import Path, PurePosixPath

from trajsmith.export.atomic_folder import AtomicFolder
from trajsmith.pipeline.run_directory import TRAJECTORIES, VERDICTS, RunDirectory
from trajsmith.pipeline.task_bundle import find_environment_settings, write_task_bundle
from trajsmith.pipeline.task_server import (
    build_solution,
    find_reason_against,
    is_moved_by_calls,
    iter_solutions,
    open_tasks,
)
from trajsmith.records import RunError
from trajsmith.records.storage import storage_boundary

WRITTEN = "written"
TEMPLATES = Path(__file__).parent / "templates"
RUN = "run"
"""Folder of the tasks in the package."""


def write_verifiers_package(run: RunDirectory, out: Path) -> Counter[str]:
    """Write an installable package with every task that has an accepted play; an older export is replaced.

    Each solution is played before it is written and must pass, and doing nothing must fail.

    Args:
        run: Run with verdicts.
        out: Folder of the package, with its `pyproject.toml`.

    Returns:
        How many tasks are "written", and how many were left out, by reason.

    Raises:
        InputError: An environment needs more than a folder can hold.
        RunError: No task can be written, or `out` holds something else.
    """
    module = build_module_name(run.path.resolve().name)
    entries = asyncio.run(find_environment_settings(run))
    counts, chosen = Counter[str](), []
    with open_tasks(run) as source:
        for judged in iter_solutions(run):
            alone = is_moved_by_calls(judged.task)
            reason = find_reason_against(source, judged.task, build_solution(judged)) if alone else "user_acts"
            counts[reason or WRITTEN] += 1
            if not reason:
                chosen.append(judged)
    if not chosen:
        reasons = ", ".join(f"{reason} {number}" for reason, number in counts.most_common()) or "no play was accepted"
        raise RunError(f"{run.path}: no task can be written ({reasons})")
    with storage_boundary(out), AtomicFolder(out, module) as folder:
        place = folder.part / module / RUN
        write_task_bundle(run, [judged.task for judged in chosen], entries, place, PurePosixPath())
        (place / TRAJECTORIES).write_bytes(b"".join(judged.trajectory.to_line() for judged in chosen))
        (place / VERDICTS).write_bytes(b"".join(judged.verdict.to_line() for judged in chosen))
        fields = {
            "name": module.replace("_", "-"), "module": module, "version": version("trajsmith"), "tasks": len(chosen),
        }  # fmt: skip
        for name, target in (
            ("pyproject.toml", "pyproject.toml"), ("README.md", "README.md"), ("init.py.txt", f"{module}/__init__.py"),
        ):  # fmt: skip
            text = (TEMPLATES / f"verifiers_{name}").read_text("utf-8").format(**fields)
            (folder.part / target).write_text(text, "utf-8")
    return counts


def build_module_name(name: str) -> str:
    """Return the name of the package's module: that of the run's folder, in what Python allows."""
    return "trajsmith_" + (re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or RUN)
