"""Tasks of a run as a folder of Harbor tasks: one accepted play each is the solution, replay and checks are the test.

The container runs the task's MCP server (`trajsmith.pipeline.task_server`) as root, in a folder that the agent's user
cannot read: state, user and transcript are out of its reach. The test plays the transcript again.
"""

import asyncio
import json
from collections import Counter
from importlib.metadata import version
from pathlib import Path, PurePosixPath

import orjson

from trajsmith.export.atomic_folder import AtomicFolder
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.task_bundle import find_environment_settings, write_task_bundle
from trajsmith.pipeline.task_server import (
    build_solution,
    find_reason_against,
    iter_solutions,
    open_tasks,
    render_prompt,
)
from trajsmith.records import RunError, Task
from trajsmith.records.storage import storage_boundary
from trajsmith.train_grpo import needs_user

TASKS_FOLDER = "tasks"
FILES = (f"{TASKS_FOLDER}/task-*/*",)
"""Patterns of the files of an export."""
WRITTEN = "written"
TEMPLATES = Path(__file__).parent / "templates"
SERVER = PurePosixPath("/opt/trajsmith")
"""Folder of the server in the container."""
HOST, PORT = "127.0.0.1", 8765
ADDRESS = f"{HOST}:{PORT}"
URL = f"http://{ADDRESS}/mcp"


def write_harbor_tasks(run: RunDirectory, out: Path) -> Counter[str]:
    """Write a Harbor task for every task that has an accepted play; an older export is replaced.

    Each solution is played before it is written and must pass, and doing nothing must fail.

    Args:
        run: Run with verdicts.
        out: Folder; the tasks are in its `tasks`, as Harbor and TRL's `HarborSpec` expect them.

    Returns:
        How many tasks are "written", and how many were left out, by reason.

    Raises:
        InputError: An environment needs more than a folder can hold.
        RunError: No task has an accepted play, or `out` holds something else.
    """
    entries = asyncio.run(find_environment_settings(run))
    counts = Counter[str]()
    with open_tasks(run) as source, storage_boundary(out), AtomicFolder(out, FILES) as folder:
        for judged in iter_solutions(run):
            task, lines = judged.task, build_solution(judged)
            reason = find_reason_against(source, task, lines)
            counts[reason or WRITTEN] += 1
            if reason:
                continue
            target = folder.part / TASKS_FOLDER / task.id.replace("_", "-")
            for part in ("environment", "tests", "solution"):
                (target / part).mkdir(parents=True)
            for bundle, place in (
                (target / "environment" / "task", SERVER / "task"),
                (target / "tests" / "task", PurePosixPath("/tests/task")),
            ):
                write_task_bundle(run, [task], entries, bundle, place)
            _write_text(target, task, render_prompt(source, task))
            text = b"".join(orjson.dumps(line) + b"\n" for line in lines)
            (target / "solution" / "transcript.jsonl").write_bytes(text)
        if not counts[WRITTEN]:
            folder.discard()
    if not counts[WRITTEN]:
        reasons = ", ".join(f"{reason} {number}" for reason, number in counts.most_common()) or "no play was accepted"
        raise RunError(f"{run.path}: no task can be written ({reasons})")
    return counts


def _write_text(target: Path, task: Task, policy: str) -> None:
    """Write the files that people and programs read."""
    fields = {
        "trajsmith": f"trajsmith=={version('trajsmith')}", "server": str(SERVER), "address": ADDRESS, "host": HOST,
        "port": PORT, "url": URL, "policy": policy, "query": task.turns[0].query,
    }  # fmt: skip
    for name, place in (
        ("Dockerfile", "environment"), ("start.sh", "environment"), ("solve.sh", "solution"), ("test.sh", "tests"),
        ("instruction.md", "."),
    ):  # fmt: skip
        path = target / place / name
        path.write_text((TEMPLATES / f"harbor_{name}").read_text("utf-8").format(**fields), "utf-8")
        if path.suffix == ".sh":
            path.chmod(0o755)
    (target / "task.toml").write_text(_render_toml(task), "utf-8")


def _render_toml(task: Task) -> str:
    """Render `task.toml`; its metadata has the share of wrong runs that the checks of the task notice."""
    audit = task.audit
    metadata: dict[str, object] = {
        "task_id": task.id, "environment": task.environments[0], "mode": task.mode, "variant": task.variant,
        "language": task.language, "turns": len(task.turns), "gold_calls": len(task.gold_calls),
        "difficulty": task.difficulty, "served_user": needs_user(task),
    }  # fmt: skip
    if audit is not None and audit.discrimination is not None:
        metadata |= {
            "discrimination": audit.discrimination,
            "mutants": sum(audit.made.values()),
            "equivalent_runs": audit.equivalent,
        }
    tables: dict[str, dict[str, object]] = {
        "task": {"name": f"trajsmith/{task.id.replace('_', '-')}", "description": task.turns[0].intent},
        "metadata": metadata,
        "agent": {"timeout_sec": 900.0, "user": "agent"},
        "verifier": {"timeout_sec": 300.0, "user": "root"},
        "environment": {"cpus": 1, "memory_mb": 2048},
        "environment.healthcheck": {
            "command": f"sh {SERVER}/start.sh", "interval_sec": 1.0, "timeout_sec": 10.0, "retries": 120,
        },
    }  # fmt: skip
    text = ['schema_version = "1.4"', f"artifacts = [{json.dumps(str(SERVER / 'transcript.jsonl'))}]"]
    for name, table in tables.items():
        text += ["", f"[{name}]", *(f"{key} = {_render_value(value)}" for key, value in table.items())]
    text += ["", "[[environment.mcp_servers]]", 'name = "trajsmith"', 'transport = "streamable-http"', f'url = "{URL}"']
    return "\n".join(text) + "\n"


def _render_value(value: object) -> str:
    """Render a string, number or boolean; a JSON string without escaped surrogates is one of TOML."""
    return json.dumps(value, ensure_ascii=False)
