"""Pictures of a dataset for its card: SVG files that need no script and no font."""

from collections.abc import Sequence
from math import log2

from trajsmith.export._templates import create_template_environment, format_number, format_percent
from trajsmith.export.statistics import Statistics, ToolCoverage, build_funnel_steps
from trajsmith.records import Summary

Bar = tuple[str, int, str]
"""Label, value, and what stands behind the value."""

MAX_BARS = 40
LEFT, RIGHT, TOP, BOTTOM = 60, 700, 66, 270


def build_plots(summary: Summary, statistics: Statistics, coverage: Sequence[ToolCoverage]) -> dict[str, str]:
    """File name to SVG: funnel, tool coverage, lengths, diversity."""
    return {
        "plots/funnel.svg": _funnel(summary),
        "plots/coverage.svg": _coverage(coverage),
        "plots/turns.svg": _bars("Turns", "requests of the user per conversation", statistics.turns.bins()),
        "plots/calls.svg": _bars("Tool calls", "calls per conversation", statistics.calls.bins()),
        "plots/diversity.svg": _diversity(statistics),
    }


def _funnel(summary: Summary) -> str:
    steps = build_funnel_steps(summary)
    bars = [
        (step.name, step.count, format_percent(step.of_previous) if step.of_previous is not None else "")
        for step in steps
    ]
    return _render("The funnel", "records after each step, and the share of the step before", bars)


def _coverage(coverage: Sequence[ToolCoverage]) -> str:
    """Tools called per environment; those with most tools never called first."""
    ordered = sorted(coverage, key=lambda one: (-len(one.never), one.environment))
    bars = [(one.environment, one.covered, f"of {len(one.calls)} tools") for one in ordered[:MAX_BARS]]
    return _render("Tool coverage", f"tools called in kept conversations, {len(coverage)} environments", bars)


def _bars(title: str, note: str, bins: Sequence[tuple[str, int]]) -> str:
    return _render(title, note, [(label, count, "") for label, count in bins])


def _render(title: str, note: str, bars: Sequence[Bar]) -> str:
    text: str = create_template_environment().get_template("plot.svg.j2").render(title=title, note=note, bars=bars)
    return text


def _diversity(statistics: Statistics) -> str:
    """Render the number of distinct consecutive tool pairs over conversations: a flat end means saturation."""
    growth = statistics.growth()
    most, highest = max((seen for seen, _ in growth), default=1), max((pairs for _, pairs in growth), default=1)
    across = max(1.0, log2(most))
    points = [
        (round(LEFT + (RIGHT - LEFT) * log2(seen) / across), round(BOTTOM - (BOTTOM - TOP) * pairs / max(1, highest)))
        for seen, pairs in growth
    ]
    text: str = (
        create_template_environment()
        .get_template("curve.svg.j2")
        .render(
            title="Diversity",
            note="different pairs of tools called one after the other, over all environments",
            points=points,
            ticks=[(x, format_number(seen)) for (x, _), (seen, _) in zip(points, growth, strict=True)][-8:],
            highest=format_number(highest),
            axis="conversations (each tick twice the one before)",
        )
    )
    return text
