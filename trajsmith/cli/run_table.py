"""The closing tables of a run on the terminal."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from trajsmith.records import Summary

out = Console(highlight=False)


def show_run(path: Path, summary: Summary, exported: bool = True) -> None:
    """Table of the stages, figures, reasons of rejection, and where everything lies."""
    table = Table(
        "stage",
        "in",
        "out",
        "dropped",
        "seconds",
        title=f"{summary.name}: {summary.funnel['accepted']} accepted trajectories",
    )
    for stage in summary.stages:
        dropped = ", ".join(f"{reason} {number}" for reason, number in stage.dropped.items())
        table.add_row(stage.name, str(stage.read), str(stage.written), dropped, f"{stage.seconds:.1f}")
    out.print(table)
    for stage in summary.stages:
        for reason, example in stage.examples.items():
            out.print(f"dropped ({stage.name}): {reason}: {stage.dropped[reason]}", markup=False, soft_wrap=True)
            out.print(f"  first: {example}", markup=False, soft_wrap=True)
    calls = [number for tools in summary.coverage.values() for number in tools.values()]
    out.print(
        f"{summary.mean_turns:.1f} turns, {summary.mean_calls_per_turn:.1f} calls a turn, "
        f"{sum(number > 0 for number in calls)} of {len(calls)} tools used, "
        f"{sum(number > 0 for number in summary.environments.values())} environments"
    )
    if summary.usage.requests:
        out.print(
            f"{summary.usage.requests} requests to models, {summary.usage.tokens} tokens, "
            f"cost {summary.usage.cost:.4f}; for each accepted trajectory {summary.tokens_per_accepted:.0f} tokens, "
            f"cost {summary.cost_per_accepted:.4f}"
        )
    for reason, number in summary.rejected.items():
        out.print(f"rejected: {reason}: {number}", markup=False)
    if exported:
        out.print(f"dataset: {path / 'dataset'}   report: {path / 'report.html'}", markup=False)
