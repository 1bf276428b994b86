"""`trajsmith arena`: rounds of evaluation, diagnosis, targeted rows and training."""

from typing import TYPE_CHECKING

from trajsmith.cli.console import out, print_line, run_async
from trajsmith.cli.options import ConfigFile, DryRun, Set
from trajsmith.records import RunError

if TYPE_CHECKING:
    from trajsmith.evals.round_comparison import Change


def arena(config: ConfigFile, overrides: Set = None, dry_run: DryRun = False) -> None:
    """Evaluate a model, find its weak groups, make data for them, train on it, and evaluate again, for some rounds.

    Each step has a folder with a record; stopped or killed, the same command goes on and repeats no finished step.
    A control arm trains on as many rows without the plan. For example: trajsmith arena arena_demo --dry-run
    """
    from rich.table import Table

    from trajsmith.pipeline.arena import count_finished, list_steps, prepare_arena, run_arena
    from trajsmith.pipeline.arena_config import ArenaConfig
    from trajsmith.pipeline.progress import open_progress
    from trajsmith.pipeline.yaml_settings import load_settings

    settings = load_settings(config, ArenaConfig, overrides or [])
    if dry_run:
        from trajsmith.pipeline.dry_run import preview

        steps, data = list_steps(settings), prepare_arena(settings)
        run_async(preview(data, out))
        for step in steps:
            print_line(f"{'done' if count_finished(settings.out, [step]) else 'to do'}: {settings.out / step}")
        arms = 2 if settings.control else 1
        print_line(
            f"at most {settings.rounds} rounds: {settings.rounds * arms * settings.rows} rows, "
            f"{settings.rounds * arms} trainings by {settings.trainer.kind}, "
            f"{(1 + settings.rounds * (arms + 1)) * settings.held_out.count} tasks to play"
        )
        return
    try:
        with open_progress() as progress:
            report = run_arena(settings, progress)
    except KeyboardInterrupt as stop:
        raise RunError("stopped; finished steps are stored, the same command continues") from stop
    table = Table("round", "group", "tasks", "before", "after", "gain (95 %)", "control", "more than control (95 %)")
    for each in report.rounds:
        for group in each.groups:
            cells = [f"{100 * group.before:.1f}", f"{100 * group.after:.1f}", _format_change(group.gain)]
            if group.control is not None and group.advantage is not None:
                cells += [f"{100 * group.control:.1f}", _format_change(group.advantage)]
            table.add_row(str(each.number), f"{group.dimension} {group.name}".strip(), str(group.tasks), *cells)
    out.print(table)
    if report.attribution is not None:
        print_line(f"rows: {report.attribution.says}")
        for one in report.attribution.effects:
            rivals = f" (or {', '.join(one.alike[:4])})" if one.alike else ""
            points = f"{100 * one.effect:+.1f} points ({100 * one.low:+.1f} to {100 * one.high:+.1f})"
            print_line(
                f"{one.dimension} {one.rows}{rivals}, 10 % more rows: {one.group_dimension} {one.group} {points}"
            )
    if report.stopped:
        print_line(f"stopped: {report.stopped}")
    print_line(f"model: {report.model}")
    print_line(f"open {settings.out / 'arena.html'} in a browser")


def _format_change(change: "Change") -> str:
    return f"{100 * change.mean:+.1f} ({100 * change.low:+.1f} to {100 * change.high:+.1f})"
