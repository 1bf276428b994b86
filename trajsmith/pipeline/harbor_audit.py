"""Audit of a folder of Harbor tasks: the solution must pass, no play and wrong plays must fail.

A task that trajsmith exported brings what its test needs, and is judged here as the test does it: the transcript is
played again. All other tasks need their image, which only a container runtime can build and run; of them the files
are looked at, and nothing of theirs is run.
"""

import random
import shutil
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from trajsmith.pipeline.hub_runs import check_foreign_config
from trajsmith.pipeline.progress import NullProgress, RunProgress
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.suite_counts import (
    EMPTY_PASSES,
    GOLD_FAILS,
    SuiteAudit,
    SuiteCall,
    build_mutants,
    collect_values,
    find_untold,
    name_by_text,
)
from trajsmith.pipeline.task_server import judge_transcript, open_tasks
from trajsmith.records import (
    EnvironmentFault,
    InputError,
    RunError,
    Task,
    Trajectory,
    Verdict,
    derive_seed,
)
from trajsmith.train_grpo import EpisodeSource

BUNDLE = Path("tests") / "task"
PLACE = "/tests/task"
"""Where the bundle of an exported task stands in its container."""
TRANSCRIPT = Path("solution") / "transcript.jsonl"
OTHER_CALLS = 4
"""Calls of other tasks that are tried as the one that nobody asked for."""
UNDECIDED = ("environment_error", "user_error", "undecided")


def audit_harbor(
    folder: Path, mutants: int, limit: int | None, seed: int, progress: RunProgress | None = None
) -> SuiteAudit:
    """Audit the tasks of a folder.

    Args:
        folder: Holds task folders, itself or in `tasks`.
        mutants: Wrong plays of each task at most.
        limit: Tasks at most.
        seed: Of the choice of mutants.
        progress: Told about each task.

    Raises:
        InputError: There are no tasks.
    """
    places = find_tasks(folder)[:limit]
    audit = SuiteAudit(f"harbor {folder.name}", tasks=len(places))
    solutions = {place: _read_solution(place) for place in places}
    with (progress or NullProgress()).stage("audit tasks", len(places), 0, 0) as bar:
        for place in places:
            fault = find_fault(place)
            if fault:
                audit.report(fault, place.name)
            elif solutions[place] is None:
                audit.report("malformed task: its solution is no transcript", place.name)
            else:
                _TaskAudit(audit, place, solutions).examine(mutants, seed)
            bar.advance()
    return audit


def find_tasks(folder: Path) -> list[Path]:
    """Return the task folders of a suite in the order of their names.

    Raises:
        InputError: There are none.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder: name one that holds Harbor tasks")
    places = sorted(file.parent for where in (folder, folder / "tasks") for file in where.glob("*/task.toml"))
    if not places:
        raise InputError(f"{folder} holds no Harbor tasks: no folder in it, or in its `tasks`, has a task.toml")
    return places


def find_fault(place: Path) -> str:
    """Return why a task cannot be played here, or nothing."""
    if not (place / "task.toml").is_file():
        return "malformed task: task.toml is no file"
    try:
        tomllib.loads((place / "task.toml").read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError, RecursionError):
        return "malformed task: task.toml cannot be read"
    if not (place / "instruction.md").is_file():
        return "malformed task: no instruction.md"
    if not (place / "tests" / "test.sh").is_file():
        return "malformed task: no tests/test.sh"
    if not (place / "solution").is_dir():
        return "not played: no solution"
    if not (place / BUNDLE / "config.yaml").is_file() or not (place / TRANSCRIPT).is_file():
        return "not played: solution and tests need the task's image"
    return ""


def _read_solution(place: Path) -> tuple[SuiteCall, ...] | None:
    """Return the calls and messages of a solution, or None if it is no transcript."""
    if not (place / TRANSCRIPT).is_file():
        return None
    try:
        lines = [orjson.loads(line) for line in (place / TRANSCRIPT).read_bytes().splitlines() if line.strip()]
    except (OSError, orjson.JSONDecodeError):
        return None
    if not all(isinstance(line, dict) and isinstance(line.get("arguments"), dict) and "tool" in line for line in lines):
        return None
    return tuple(SuiteCall(str(line["tool"]), line["arguments"]) for line in lines)


class _TaskAudit:
    """The audit of one task that brings what it needs."""

    def __init__(self, audit: SuiteAudit, place: Path, solutions: Mapping[Path, tuple[SuiteCall, ...] | None]) -> None:
        self._audit = audit
        self._place = place
        self._gold = solutions[place] or ()
        self._others = [call for other, calls in solutions.items() if other != place for call in calls or ()]

    def examine(self, mutants: int, seed: int) -> None:
        """Judge the solution, no play, and wrong plays."""
        with tempfile.TemporaryDirectory(prefix="trajsmith-audit-") as scratch:
            bundle = Path(scratch) / "task"
            try:
                _copy_bundle(self._place / BUNDLE, bundle)
                check_foreign_config(bundle / "config.yaml", self._place.name)
                with open_tasks(RunDirectory.open(bundle)) as source:
                    self._examine_plays(source, mutants, seed)
            except (InputError, RunError, OSError, UnicodeDecodeError) as error:
                self._audit.report("malformed task: its bundle cannot be played", f"{self._place.name}: {error}")
            except EnvironmentFault as fault:
                self._audit.report(f"cannot be judged: {fault.kind}", f"{self._place.name}: {fault.message}")

    def _examine_plays(self, source: EpisodeSource, mutants: int, seed: int) -> None:
        audit, name = self._audit, self._place.name
        if len(source.tasks) != 1:
            raise InputError(f"it holds {len(source.tasks)} tasks that can be played from outside")
        task = next(iter(source.tasks.values()))
        trajectory, gold = _judge(source, task, self._gold)
        _, empty = _judge(source, task, ())
        audit.played += 1
        if gold.accepted:
            audit.gold_passes += 1
        else:
            audit.report(f"{GOLD_FAILS}: {', '.join(gold.reasons) or gold.outcome}", name)
        if not empty.accepted:
            audit.empty_fails += 1
        else:
            audit.report(EMPTY_PASSES, name)
        if not gold.accepted:
            return
        rng = random.Random(derive_seed(seed, name))
        shown = {tool.name for tool in source.list_shown_tools(task)}
        others = [call for call in self._others if call.tool in shown]
        some = rng.sample(others, min(OTHER_CALLS, len(others)))
        values = collect_values([*self._gold, *self._others])
        wrong = 0
        for play in build_mutants(self._gold, (), some, values, mutants, rng, added_first=True):
            if wrong >= mutants:
                break
            mutant = name_by_text(play, self._gold)
            try:
                played, verdict = _judge(source, task, mutant.calls)
            except EnvironmentFault as fault:
                audit.report(f"mutant cannot be judged: {fault.kind}", f"{name}: {fault.message}")
                continue
            same = played.final_state == trajectory.final_state
            if same and not (mutant.is_by_text and find_untold(task, self._gold, mutant.calls)):
                audit.equivalent += 1
            else:
                wrong += 1
                audit.count_mutant(name, mutant, verdict.accepted)


def _copy_bundle(bundle: Path, target: Path) -> None:
    """Copy a bundle, with paths below it where its configuration has those of the container.

    Raises:
        InputError: It holds links, which could lead anywhere.
    """
    if any(path.is_symlink() for path in (bundle, *bundle.rglob("*"))):
        raise InputError("it holds links")
    shutil.copytree(bundle, target)
    text = (target / "config.yaml").read_text("utf-8")
    (target / "config.yaml").write_text(text.replace(f"{PLACE}/", "").replace(PLACE, "."), "utf-8")


def _judge(source: EpisodeSource, task: Task, calls: Sequence[SuiteCall]) -> tuple[Trajectory, Verdict]:
    """Judge a play.

    Raises:
        EnvironmentFault: The environment broke, so that it cannot be judged.
    """
    lines = [{"tool": call.tool, "arguments": call.arguments} for call in calls]
    trajectory, verdict = judge_transcript(source, task, lines)
    if verdict.outcome in UNDECIDED:
        raise EnvironmentFault("state", task.environments[0], f"a play is {verdict.outcome}")
    return trajectory, verdict
