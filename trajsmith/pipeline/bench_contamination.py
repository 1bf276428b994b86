"""Contamination report of a benchmark: rows of training runs that hold its tasks."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import orjson

from trajsmith.evals.suites import SuiteTask
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.stored_specs import load_stored_specs
from trajsmith.records import FrozenModel
from trajsmith.verify.decontaminate import Decontaminator

QUESTIONS, REPORT = "questions.jsonl", "contamination.json"
SHOWN = 5
"""Matching rows of a run that the report names."""


class RunContamination(FrozenModel):
    """Rows of one run that hold tasks of a benchmark."""

    run: str
    rows: int
    """Accepted rows that were compared."""
    matched: dict[str, int]
    """Kind of match (`text`, `calls`, `tools`, `entities`) to the number of rows."""
    examples: tuple[tuple[str, str, str], ...]
    """Task of the run, kind, and what matched."""


def report_contamination(tasks: Sequence[SuiteTask], runs: Sequence[Path], out: Path) -> tuple[RunContamination, ...]:
    """Compare the accepted rows of runs with tasks of a benchmark, and write both below `out`.

    Args:
        tasks: The tasks that are played.
        runs: Run directories whose rows the model was trained on.
        out: Folder of the results.

    Raises:
        InputError: One of the folders is no run.
    """
    opened = [RunDirectory.open(path) for path in runs]
    out.mkdir(parents=True, exist_ok=True)
    questions = out / QUESTIONS
    questions.write_bytes(b"".join(orjson.dumps(_describe(task)) + b"\n" for task in tasks))
    reports = tuple(_compare(run, questions) for run in opened)
    (out / REPORT).write_bytes(orjson.dumps([report.model_dump() for report in reports], option=orjson.OPT_INDENT_2))
    return reports


def _describe(task: SuiteTask) -> dict[str, object]:
    user_texts = [message.content for turn in task.turns for message in turn if message.role == "user"]
    calls = [call for turn in task.gold or () for step in turn for call in step]
    return {
        "text": "\n".join([*user_texts, task.scenario]),
        "calls": [{"name": call.name, "arguments": call.arguments} for call in calls],
        "tools": sorted(task.tool_names),
    }


def _compare(run: RunDirectory, questions: Path) -> RunContamination:
    decontaminator, specs = Decontaminator([questions]), load_stored_specs(run)
    matched: Counter[str] = Counter()
    examples: list[tuple[str, str, str]] = []
    for task, trajectory, verdict in join_verdicts(run):
        if not verdict.accepted:
            continue
        match = decontaminator.match(task, trajectory, specs[trajectory.environment].tools)
        if match is not None:
            kind = match[0].partition(" ")[0]
            matched[kind] += 1
            examples.append((task.id, kind, match[1]))
    return RunContamination(
        run=str(run.path), rows=decontaminator.checked, matched=dict(matched), examples=tuple(examples[:SHOWN])
    )
