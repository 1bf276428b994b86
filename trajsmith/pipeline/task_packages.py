"""Tasks of a run as a folder that another library loads: a few lines of code in its form, and the run inside.

The code of each folder calls a module of this package (`verifiers_env`, `inspect_tasks`, `nemo_gym_server`,
`openenv_tasks`); what is scored is scored there.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath

import orjson

from trajsmith.export.atomic_folder import TASK_FILES, AtomicFolder
from trajsmith.pipeline.record_joins import JudgedTrajectory
from trajsmith.pipeline.run_directory import TRAJECTORIES, VERDICTS, RunDirectory
from trajsmith.pipeline.task_bundle import find_environment_settings, write_task_bundle
from trajsmith.pipeline.task_server import (
    build_solution,
    find_reason_against,
    is_moved_by_calls,
    iter_solutions,
    open_tasks,
    render_prompt,
)
from trajsmith.records import JsonObject, RunError, Task
from trajsmith.records.storage import storage_boundary
from trajsmith.train_grpo import MESSAGE_USER, EpisodeSource

WRITTEN = "written"
TEMPLATES = Path(__file__).parent / "templates"
RUN = "run"
"""Folder of the tasks in a package."""
RowBuilder = Callable[[EpisodeSource, Task, str], JsonObject]
"""Of a task and the name of the module, a row of the framework's data file."""


@dataclass(frozen=True)
class PackageForm:
    """Layout of a framework's folder of tasks; `{module}` and `{name}` stand for its name."""

    about: str
    """One line for `trajsmith export --formats`."""
    files: tuple[tuple[str, str], ...]
    """Template and path in the folder."""
    place: str
    """Folder of the run in the folder."""
    calls_only: bool = False
    """Leave out tasks in which something else than the agent's calls changes the state."""
    solutions: bool = False
    """Put the accepted plays beside the tasks."""
    rows: tuple[str, RowBuilder] | None = None
    """Path and builder of a file with a row per task."""


def build_gym_row(source: EpisodeSource, task: Task, module: str) -> JsonObject:
    """Build a row of NeMo Gym: prompt and tools as a request of the Responses API, and the agent that plays it."""
    tools = [
        {
            "type": "function", "name": tool.name, "description": tool.description, "parameters": tool.input_schema,
            "strict": False,
        }
        for tool in (*source.list_shown_tools(task), MESSAGE_USER)
    ]  # fmt: skip
    prompt = [
        {"role": "system", "content": render_prompt(source, task)},
        {"role": "user", "content": task.turns[0].query},
    ]
    request = {"input": prompt, "tools": tools, "parallel_tool_calls": False}
    agent = {"type": "responses_api_agents", "name": f"{module}_simple_agent"}
    return {"task_id": task.id, "responses_create_params": request, "agent_ref": agent}


GYM = "resources_servers/{module}"
FORMS: dict[str, PackageForm] = {
    "inspect": PackageForm(
        "a folder for `inspect eval`: tools on a session, the user, and the verdict as score",
        (("inspect_task.py.txt", "task.py"), ("inspect_README.md", "README.md")),
        RUN,
    ),
    "nemo_gym": PackageForm(
        "a resources server of NeMo Gym and its rows: tools, the user, and the verdict as reward",
        (
            ("nemo_gym_app.py.txt", f"{GYM}/app.py"),
            ("nemo_gym_pyproject.toml", f"{GYM}/pyproject.toml"),
            ("nemo_gym_config.yaml", f"{GYM}/configs/{{module}}.yaml"),
            ("nemo_gym_README.md", "README.md"),
        ),
        f"{GYM}/{RUN}",
        rows=(f"{GYM}/data/tasks.jsonl", build_gym_row),
    ),
    "openenv": PackageForm(
        "an OpenEnv environment: openenv.yaml, server and Dockerfile; tasks by id, the user, and the verdict as reward",
        (
            ("openenv_openenv.yaml", "openenv.yaml"),
            ("openenv_pyproject.toml", "pyproject.toml"),
            ("openenv_init.py.txt", "__init__.py"),
            ("openenv_client.py.txt", "client.py"),
            ("openenv_app.py.txt", "server/app.py"),
            ("openenv_init.py.txt", "server/__init__.py"),
            ("openenv_Dockerfile", "server/Dockerfile"),
            ("openenv_README.md", "README.md"),
        ),
        RUN,
    ),
    "verifiers": PackageForm(
        "a package of the verifiers library: tools, user and rewards by execution, with solutions",
        (
            ("verifiers_pyproject.toml", "pyproject.toml"),
            ("verifiers_README.md", "README.md"),
            ("verifiers_init.py.txt", "{module}/__init__.py"),
        ),
        f"{{module}}/{RUN}",
        calls_only=True,
        solutions=True,
    ),
}
"""Format of `trajsmith export` to the form of its folder."""


def write_task_package(run: RunDirectory, form_name: str, out: Path) -> Counter[str]:
    """Write a folder with every task that has an accepted play; an older export is replaced.

    Each solution is played before its task is written and must pass, and doing nothing must fail.

    Args:
        run: Run with verdicts.
        form_name: One of `FORMS`.
        out: Folder to write.

    Returns:
        How many tasks are "written", and how many were left out, by reason.

    Raises:
        InputError: An environment needs more than a folder can hold.
        RunError: No task can be written, or `out` holds something else.
    """
    form, module = FORMS[form_name], build_module_name(run.path.resolve().name)
    entries = asyncio.run(find_environment_settings(run))
    with open_tasks(run) as source:
        chosen, counts = _choose_tasks(run, source, form)
        rows = [form.rows[1](source, judged.task, module) for judged in chosen] if form.rows else []
    fields = {
        "name": module.replace("_", "-"), "module": module, "version": version("trajsmith"), "tasks": len(chosen),
    }  # fmt: skip
    place = form.place.format(**fields)
    names = [target for _, target in form.files] + ([form.rows[0]] if form.rows else [])
    files = (*(name.format(**fields) for name in names), *(f"{place}/{file}" for file in TASK_FILES))
    with storage_boundary(out), AtomicFolder(out, files) as folder:
        bundle = folder.part / place
        write_task_bundle(run, [judged.task for judged in chosen], entries, bundle, PurePosixPath())
        if form.solutions:
            (bundle / TRAJECTORIES).write_bytes(b"".join(judged.trajectory.to_line() for judged in chosen))
            (bundle / VERDICTS).write_bytes(b"".join(judged.verdict.to_line() for judged in chosen))
        if form.rows:
            folder.attach(form.rows[0].format(**fields), b"".join(orjson.dumps(row) + b"\n" for row in rows))
        for template, target in form.files:
            text = (TEMPLATES / template).read_text("utf-8")
            folder.attach(target.format(**fields), text.format(**fields))
    return counts


def _choose_tasks(
    run: RunDirectory, source: EpisodeSource, form: PackageForm
) -> tuple[Sequence[JudgedTrajectory], Counter[str]]:
    """Return accepted plays of the tasks that can stand alone, and how many cannot, by reason."""
    counts, chosen = Counter[str](), []
    for judged in iter_solutions(run):
        moved_by_user = form.calls_only and not is_moved_by_calls(judged.task)
        reason = "user_acts" if moved_by_user else find_reason_against(source, judged.task, build_solution(judged))
        counts[reason or WRITTEN] += 1
        if not reason:
            chosen.append(judged)
    if not chosen:
        reasons = ", ".join(f"{reason} {number}" for reason, number in counts.most_common()) or "no play was accepted"
        raise RunError(f"{run.path}: no task can be written ({reasons})")
    return chosen, counts


def build_module_name(name: str) -> str:
    """Return the name of the package's module: that of the run's folder, in what Python allows."""
    return "trajsmith_" + (re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or RUN)
