"""`trajsmith calibrate`: how hard the tasks of a run are, by letting solvers play them."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from trajsmith.cli.console import out, print_line, run_async
from trajsmith.records import RunError

if TYPE_CHECKING:
    from trajsmith.evals import TaskReading
    from trajsmith.pipeline.calibration import CalibrationReport

SHOWN = 10
"""Ambiguous tasks that are printed."""
MOST_TOLD = 12
"""Values of a reading that are printed."""


def calibrate(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, for example runs/quickstart.")],
    solvers: Annotated[
        list[str],
        typer.Option(
            "--solver",
            help="Who plays; may be repeated. scripted:0.1 (the scripted agent, with a mistake in 10 % of the calls), "
            "MODEL@URL (an OpenAI-compatible endpoint), a name among the run's models, or the folder of a model.",
        ),
    ],
    runs: Annotated[int, typer.Option("--runs", min=2, max=1000, help="Plays per task and solver.")] = 5,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Tasks of each environment, at most.")] = None,
    temperature: Annotated[float, typer.Option("--temperature", min=0, help="Of models.")] = 1.0,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of one message of a model.")] = 512,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Plays at a time.")] = 8,
) -> None:
    """Let solvers play the tasks of a run and store every play in RUN/attempts.jsonl.

    Pass rates say which tasks are unsolved, hard, medium, easy or trivial; accept.by.difficulty and the column
    pass_rates use them, and grpo draws from a band of them. Tasks that independent solvers read in another way than
    the gold calls are listed with both readings; all scripted solvers count as one. Stopped, the same command
    goes on. For example:
    trajsmith calibrate runs/quickstart --solver scripted:0.1 --solver Qwen/Qwen3-4B@http://localhost:8000/v1
    """
    from trajsmith.pipeline.calibration import CalibrationSettings, calibrate_run
    from trajsmith.pipeline.progress import open_progress
    from trajsmith.pipeline.run_directory import RunDirectory

    settings = CalibrationSettings(
        solvers=tuple(solvers), runs=runs, limit=limit, concurrency=concurrency, temperature=temperature,
        max_tokens=max_tokens,
    )  # fmt: skip
    run = RunDirectory.open(directory)
    try:
        with open_progress() as progress:
            report = run_async(calibrate_run(run, settings, progress))
    except KeyboardInterrupt as stop:
        raise RunError("stopped; finished plays are stored, the same command continues") from stop
    show_report(report)
    print_line(f"plays: {directory / 'attempts.jsonl'}")
    if report.not_started:
        raise RunError(f"{len(report.not_started)} of {len(settings.solvers)} solvers did not start")


def show_report(report: "CalibrationReport") -> None:
    """Print the pass rates of the solvers, how many tasks have which difficulty, and tasks with two readings."""
    table = Table("solver", "plays", "passed", "pass rate", "say nothing")
    for name, (passed, scored, unscored) in report.solvers.items():
        share = f"{100 * passed / scored:.1f} %" if scored else "-"
        table.add_row(name, str(scored), str(passed), share, str(unscored))
    out.print(table)
    labels = Counter[str](one.label for one in report.difficulties.values())
    labels["unmeasured"] = report.tasks - labels.total()
    out.print(f"{report.tasks} tasks: " + ", ".join(f"{number} {name}" for name, number in labels.items() if number))
    criteria = report.criteria
    if criteria:
        print_line(
            f"{criteria.total()} criteria: {criteria['discriminating']} tell plays apart, {criteria['met_by_all']} are "
            f"met by all plays of their task, {criteria['met_by_none']} by none, and {criteria['undecided']} could not "
            "be decided in every play"
        )
    for name, reason in report.not_started.items():
        print_line(f"did not start: {name}: {reason}")
    if report.ambiguous:
        out.print(f"{len(report.ambiguous)} tasks may be ambiguous: solvers agree on another reading")
    for task in report.ambiguous[:SHOWN]:
        print_line(f"{task.task_id}")
        print_line(f"  gold:  {_render_reading(task.gold)}")
        print_line(f"  other: {_render_reading(task.other)}")
    if len(report.ambiguous) > SHOWN:
        out.print(f"{len(report.ambiguous) - SHOWN} more")


def _render_reading(reading: "TaskReading") -> str:
    actions = "; ".join(reading.actions) or "changes nothing"
    more = f" and {len(reading.stated) - MOST_TOLD} more" if len(reading.stated) > MOST_TOLD else ""
    stated = f", tells {', '.join(reading.stated[:MOST_TOLD])}{more}" if reading.stated else ""
    plays = ", ".join(f"{name} {number}" for name, number in reading.solvers.items()) or "no play"
    return f"{actions}{stated} ({plays})"
