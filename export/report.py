"""The report: one HTML file with the funnel, the shape of the data and a gallery of conversations."""

from collections.abc import Iterable, Sequence
from math import ceil, log
from pathlib import Path

from trajsmith.export._templates import FOLDER, create_template_environment, format_number, format_percent
from trajsmith.export.gallery import Gallery
from trajsmith.export.statistics import Statistics, ToolCoverage, build_funnel_steps, compute_tool_coverage
from trajsmith.records import EnvironmentSpec, Summary, Task, TaskHeader, Trajectory, Verdict
from trajsmith.records.storage import open_whole_file

GALLERY_LIMIT = 120
HEAT_LEVELS = 5

JudgedItem = tuple[Task, Trajectory, Verdict]


class ReportBuilder:
    """Gathers what the page shows while the records stream by; only those that the gallery may show are kept.

    Args:
        specs: Environments of the run.
        gallery: Conversations that the page shows.
    """

    def __init__(self, specs: Sequence[EnvironmentSpec], gallery: int = GALLERY_LIMIT) -> None:
        self.statistics = Statistics()
        self._specs = specs
        self._shown = Gallery(gallery, len(specs))

    def add(self, task: Task | TaskHeader, trajectory: Trajectory, verdict: Verdict) -> None:
        """Count one judged trajectory."""
        self.statistics.add(task, trajectory, verdict)
        self._shown.add(task, trajectory, verdict)

    def write(self, summary: Summary, path: str | Path) -> None:
        """Write the page; an older one is replaced at the end, whole."""
        with open_whole_file(Path(path)) as file:
            file.write(_render(summary, self._specs, self.statistics, self._shown).encode())


def build_report(
    summary: Summary,
    specs: Sequence[EnvironmentSpec],
    items: Iterable[JudgedItem],
    path: str | Path,
    *,
    gallery: int = GALLERY_LIMIT,
) -> Statistics:
    """Write the report of some items and give back what was counted on the way. The items are read once."""
    report = ReportBuilder(specs, gallery)
    for item in items:
        report.add(*item)
    report.write(summary, path)
    return report.statistics


def _render(summary: Summary, specs: Sequence[EnvironmentSpec], statistics: Statistics, shown: Gallery) -> str:
    from markupsafe import Markup

    coverage = compute_tool_coverage(summary, specs, statistics)
    most = max((count for strip in coverage for _, count in strip.calls), default=0)
    entries = shown.chosen()
    text: str = (
        create_template_environment()
        .get_template("report.html.j2")
        .render(
            summary=summary,
            statistics=statistics,
            wall=_duration(summary.wall_seconds),
            headline=_headline(summary, statistics, coverage),
            funnel=build_funnel_steps(summary),
            difficulty=_difficulty(statistics),
            per_environment=_per_environment(specs, statistics),
            rejected=[(reason, count, 0) for reason, count in _reasons(summary, statistics)],
            coverage=coverage,
            heat=lambda count: _heat(count, most),
            note=_gallery_note(len(entries), shown.seen, statistics.accepted.total() < shown.seen),
            items=Markup(escape_embedded_json(entries)),
            css=Markup((FOLDER / "report.css").read_text("utf-8")),
            js=Markup((FOLDER / "report.js").read_text("utf-8")),
        )
    )
    return text


def escape_embedded_json(entries: Sequence[bytes]) -> str:
    """A JSON array that is safe inside a script element: it holds no "<", so it can neither end nor open one."""
    return "[" + ",\n".join(entry.decode().replace("<", "\\u003c") for entry in entries) + "]"


def _headline(summary: Summary, statistics: Statistics, coverage: Sequence[ToolCoverage]) -> list[tuple[str, str, str]]:
    """Label, value and note of the numbers on top."""
    accepted = summary.funnel.get("accepted", sum(statistics.accepted.values()))
    played = summary.funnel.get("played", sum(statistics.played.values()))
    tools, covered = sum(len(strip.calls) for strip in coverage), sum(strip.covered for strip in coverage)
    turns = summary.mean_turns or statistics.turns.mean
    calls = summary.mean_calls_per_turn or statistics.calls_per_turn.mean
    numbers = [
        (
            "accepted",
            format_number(accepted),
            f"{format_percent(accepted / played)} of {format_number(played)} played" if played else "",
        ),
        (
            "environments",
            format_number(len(coverage)),
            f"{sum(bool(strip.trajectories) for strip in coverage)} with data",
        ),
        ("tools covered", format_percent(covered / tools) if tools else "–", f"{covered} of {tools}"),
        ("turns", f"{turns:.2f}", "mean per conversation"),
        ("calls per turn", f"{calls:.2f}", "mean"),
    ]
    if summary.tokens_per_accepted:
        cost = f"{summary.cost_per_accepted:.4f} USD each" if summary.cost_per_accepted else "prompt and completion"
        numbers.append(("tokens per accepted", format_number(round(summary.tokens_per_accepted)), cost))
    return numbers


def _per_environment(specs: Sequence[EnvironmentSpec], statistics: Statistics) -> list[tuple[str, int, int]]:
    names = dict.fromkeys([*(spec.name for spec in specs), *sorted(statistics.played)])
    return [(name, statistics.accepted[name], statistics.played[name] - statistics.accepted[name]) for name in names]


def _reasons(summary: Summary, statistics: Statistics) -> list[tuple[str, int]]:
    reasons = summary.rejected or dict(statistics.reasons)
    return sorted(reasons.items(), key=lambda item: (-item[1], item[0]))


def _difficulty(statistics: Statistics) -> list[tuple[str, int]]:
    if not statistics.difficulty:
        return []
    return [(f".{tenth}", statistics.difficulty[tenth]) for tenth in range(10)]


def _heat(count: int, most: int) -> int:
    """Level 1 to 5 on a logarithmic scale: one frequent tool must not make all others look alike."""
    return max(1, ceil(HEAT_LEVELS * log(count + 1) / log(most + 1))) if count else 0


def _gallery_note(shown: int, seen: int, with_rejected: bool) -> str:
    if shown == seen:
        return f"All {seen} conversations." if seen else "No conversation was played."
    rejected = ", with some that were not accepted" if with_rejected else ""
    return f"{shown} of {seen} conversations, spread over the environments{rejected}."


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
