"""What the commands print of a finished run."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from trajsmith.cli.console import out, print_line
from trajsmith.cli.repair import show_repairs

if TYPE_CHECKING:
    from trajsmith.records import Summary

MOST_REASONS = 10
"""Reasons of rejection that are printed after a run, the commonest ones."""


def show_run(path: Path, summary: "Summary", exported: bool = True) -> None:
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
            print_line(f"dropped ({stage.name}): {reason}: {stage.dropped[reason]}")
            print_line(f"  first: {example}")
    calls = [number for tools in summary.coverage.values() for number in tools.values()]
    used = sum(number > 0 for number in summary.environments.values())
    out.print(
        f"{summary.mean_turns:.1f} turns, {summary.mean_calls_per_turn:.1f} calls a turn, "
        f"{sum(number > 0 for number in calls)} of {len(calls)} tools used, "
        f"{used} environment{'' if used == 1 else 's'}"
    )
    if summary.usage.requests:
        out.print(
            f"{summary.usage.requests} requests to models, {summary.usage.tokens} tokens, "
            f"cost {summary.usage.cost:.4f}; for each accepted trajectory {summary.tokens_per_accepted:.0f} tokens, "
            f"cost {summary.cost_per_accepted:.4f}"
        )
    show_repairs(summary)
    reasons = Counter(summary.rejected).most_common()
    for reason, number in reasons[:MOST_REASONS]:
        out.print(f"rejected: {reason}: {number}", markup=False)
    if rest := reasons[MOST_REASONS:]:
        out.print(f"rejected for {len(rest)} other reasons: {sum(number for _, number in rest)}; see summary.json")
    if exported:
        out.print(f"dataset: {path / 'dataset'}   report: {path / 'report.html'}", markup=False)
