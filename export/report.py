"""The report: one HTML file with what was rejected and why, the shape of the data and a gallery of conversations."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path

from trajsmith.export._templates import FOLDER, create_template_environment, format_number, format_percent
from trajsmith.export.gallery import Gallery, escape_embedded_json
from trajsmith.export.report_counts import ReportCounts, list_agent_tools
from trajsmith.export.report_words import describe_failed_checks, describe_fault, describe_reason
from trajsmith.export.sibling_pairs import SiblingPair
from trajsmith.export.statistics import Statistics, ToolCoverage, build_funnel_steps, compute_tool_coverage
from trajsmith.records import (
    EnvironmentSpec,
    FaultSummary,
    Summary,
    Task,
    TaskHeader,
    Trajectory,
    Verdict,
    open_whole_file,
)

GALLERY_LIMIT = 120
HEAT_LEVELS = 5
VARIETY_SAMPLE = 12
"""Dialogues of one environment whose words the page compares; `trajsmith audit` compares more."""
RIGHT_PLAYS = "none"
"""Key of the plays without an injected mistake in `Summary.faults`."""
NOT_CHOSEN = ("not the best candidate", "not chosen: ")
"""Beginnings of the reasons of plays that are right and still not in the dataset."""

JudgedItem = tuple[Task, Trajectory, Verdict]


@dataclass
class DialogueFaults:
    """Faults of language in the dialogues of the dataset, as `trajsmith audit` counts them."""

    dialogues: int
    faults: Counter[str]
    """Kind to faults, also those that were not found."""
    faulty: Counter[str]
    """Kind to dialogues with such a fault."""


class ReportBuilder:
    """Gathers what the page shows while the records stream by; only those that the page may show are kept.

    Args:
        specs: Environments of the run.
        gallery: Conversations that the page shows.
        compared: Dialogues of one environment whose words are compared.
    """

    def __init__(
        self,
        specs: Sequence[EnvironmentSpec],
        gallery: int = GALLERY_LIMIT,
        compared: int = VARIETY_SAMPLE,
    ) -> None:
        self.counts = ReportCounts(compared)
        self._specs = specs
        self._tools = list_agent_tools(specs)
        self._gallery = Gallery(gallery, len(specs))

    def add(self, task: Task | TaskHeader, trajectory: Trajectory, verdict: Verdict) -> None:
        """Count one judged trajectory."""
        self.counts.add(task, trajectory, verdict, self._tools)
        self._gallery.add(task, trajectory, verdict)

    def merge(self, counts: ReportCounts) -> None:
        """Add what was counted elsewhere of later tasks."""
        self.counts.merge(counts)

    def offer(self, environment: str, accepted: bool, trajectory_id: str, make_entry: Callable[[], bytes]) -> None:
        """Consider a trajectory for the gallery that is counted elsewhere; its entry is made if it is shown."""
        self._gallery.offer(environment, accepted, trajectory_id, make_entry)

    def write(
        self, summary: Summary, path: str | Path, faults: DialogueFaults | None = None, pages: str | None = None
    ) -> None:
        """Write the page; an older one is replaced at the end, whole.

        Args:
            summary: What the run came to.
            path: The file.
            faults: Faults of language, if they were counted.
            pages: Address of the overview of all conversations, as seen from the page.
        """
        with open_whole_file(Path(path)) as file:
            file.write(self._render(summary, faults, pages).encode())

    def _render(self, summary: Summary, faults: DialogueFaults | None, pages: str | None) -> str:
        from markupsafe import Markup

        statistics, pairs = self.counts.statistics, self.counts.pairs.list_pairs()
        coverage = compute_tool_coverage(summary, self._specs, statistics)
        most = max((count for strip in coverage for _, count in strip.calls), default=0)
        entries = self._gallery.chosen(self.counts.pairs.serialize_plays())
        text: str = (
            create_template_environment()
            .get_template("report.html.j2")
            .render(
                summary=summary,
                statistics=statistics,
                wall=_duration(summary.wall_seconds),
                verdict=_describe_verdict(summary, statistics),
                headline=_headline(summary, statistics, coverage),
                pairs=[(pair, *_describe_pair(pair)) for pair in pairs],
                linked=entries,
                faults=_fault_rows(summary),
                right=summary.faults.get(RIGHT_PLAYS, FaultSummary(plays=0, rejected=0)),
                caught=_sum_faults(summary),
                not_chosen=[row for row in _reasons(summary, statistics) if row[0].startswith(NOT_CHOSEN)],
                funnel=build_funnel_steps(summary),
                difficulty=_difficulty(statistics),
                per_environment=_per_environment(self._specs, statistics),
                per_source=[
                    (source, counts[True], counts[False]) for source, counts in sorted(statistics.sources.items())
                ],
                repairs=[
                    (mistake, kinds.get("recover", 0), kinds.get("cut", 0))
                    for mistake, kinds in summary.repairs.items()
                ],
                criteria=[
                    (topic, counts["met"], counts["unmet"]) for topic, counts in sorted(statistics.criteria.items())
                ],
                criteria_note=_describe_left_out(statistics),
                rejected=[
                    (describe_reason(reason), count, 0)
                    for reason, count in _reasons(summary, statistics)
                    if not reason.startswith(NOT_CHOSEN)
                ],
                skills=statistics.skills.list_skills(),
                variants=sorted(statistics.variants.items()),
                variety=self.counts.variety.measure(),
                measured=self.counts.variety.dialogues,
                language=faults,
                coverage=coverage,
                heat=lambda count: _heat(count, most),
                note=_gallery_note(len(entries), self._gallery.seen, statistics.accepted.total() < self._gallery.seen),
                pages=pages,
                items=Markup(escape_embedded_json(entries.values())),
                css=Markup((FOLDER / "report.css").read_text("utf-8")),
                js=Markup((FOLDER / "report.js").read_text("utf-8")),
            )
        )
        return text


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
    return report.counts.statistics


def _count_plays(summary: Summary, statistics: Statistics) -> tuple[int, int, int]:
    """Return the plays, those in the dataset, and those that are right and not in it."""
    played = summary.funnel.get("played", statistics.played.total())
    accepted = summary.funnel.get("accepted", statistics.accepted.total())
    passed_over = sum(count for reason, count in _reasons(summary, statistics) if reason.startswith(NOT_CHOSEN))
    return played, accepted, passed_over


def _describe_verdict(summary: Summary, statistics: Statistics) -> list[tuple[str, int, float]]:
    """Return kind, plays and share of all plays: in the dataset, rejected, right and not chosen."""
    played, accepted, passed_over = _count_plays(summary, statistics)
    parts = [
        ("in the dataset", accepted),
        ("rejected", max(0, played - accepted - passed_over)),
        ("right, not chosen", passed_over),
    ]
    return [(name, count, count / played if played else 0.0) for name, count in parts]


def _headline(summary: Summary, statistics: Statistics, coverage: Sequence[ToolCoverage]) -> list[tuple[str, str, str]]:
    """Label, value and note of the numbers on top."""
    played, accepted, passed_over = _count_plays(summary, statistics)
    rejected = max(0, played - accepted - passed_over)
    tools, covered = sum(len(strip.calls) for strip in coverage), sum(strip.covered for strip in coverage)
    turns = summary.mean_turns or statistics.turns.mean
    calls = summary.mean_calls_per_turn or statistics.calls_per_turn.mean
    used = sum(bool(strip.trajectories) for strip in coverage)
    all_turns, all_calls = statistics.skills.events["turns"], statistics.skills.events["calls"]
    numbers = [
        (
            "dialogues accepted",
            format_number(accepted),
            f"{format_percent(accepted / played)} of {format_number(played)} played" if played else "",
        ),
        (
            "rejected",
            format_number(rejected),
            f"{format_percent(rejected / played)} of {format_number(played)} played" if played else "",
        ),
        ("environments", format_number(len(coverage)), f"{used} with data"),
        (
            "tools used",
            f"{format_number(covered)} of {format_number(tools)}",
            format_percent(covered / tools) if tools else "",
        ),
        ("turns", format_number(all_turns), f"{turns:.2f} per dialogue"),
        ("calls", format_number(all_calls), f"{calls:.2f} per turn"),
    ]
    if summary.tokens_per_accepted:
        cost = f"{summary.cost_per_accepted:.4f} USD each" if summary.cost_per_accepted else "prompt and completion"
        numbers.append(("tokens per accepted", format_number(round(summary.tokens_per_accepted)), cost))
    return numbers


def _fault_rows(summary: Summary) -> list[tuple[str, str, FaultSummary, float]]:
    """Return short name, description, counts and recall of each kind of injected mistake, most plays first."""
    kinds = [(kind, counts) for kind, counts in summary.faults.items() if kind != RIGHT_PLAYS]
    return [
        (*describe_fault(kind), counts, (counts.rejected + counts.removed) / counts.plays if counts.plays else 0.0)
        for kind, counts in sorted(kinds, key=lambda item: (-item[1].plays, item[0]))
    ]


def _sum_faults(summary: Summary) -> FaultSummary:
    """Return the counts over all kinds of injected mistakes."""
    kinds = [counts for kind, counts in summary.faults.items() if kind != RIGHT_PLAYS]
    return FaultSummary(
        plays=sum(counts.plays for counts in kinds),
        rejected=sum(counts.rejected for counts in kinds),
        removed=sum(counts.removed for counts in kinds),
    )


def _describe_pair(pair: SiblingPair) -> tuple[str, str, list[str]]:
    """Return the short name of what is wrong, a sentence about it, and what the checks say."""
    name, sentence = describe_fault(pair.kind) if pair.injected else (describe_reason(pair.kind), "")
    failed = describe_failed_checks(pair.verdict.checks)
    return name, sentence, failed or [describe_reason(reason) for reason in pair.verdict.reasons]


def _per_environment(specs: Sequence[EnvironmentSpec], statistics: Statistics) -> list[tuple[str, int, int]]:
    names = dict.fromkeys([*(spec.name for spec in specs), *sorted(statistics.played)])
    return [(name, statistics.accepted[name], statistics.played[name] - statistics.accepted[name]) for name in names]


_LEFT_OUT = {
    "met_by_all": "met by all candidates",
    "met_by_none": "met by none",
    "no_judge": "need a judge, and there was none",
    "not_examined": "not examined",
    "undecided": "could not be decided",
}


def _describe_left_out(statistics: Statistics) -> str:
    """Return what the bars of the criteria show, and how many do not count in a play, by reason."""
    totals = sum(statistics.criteria.values(), Counter[str]())
    left = [f"{format_number(totals[name])} {words}" for name, words in _LEFT_OUT.items() if totals[name]]
    return "dark: met, pale: not met" + (f"; not counted: {', '.join(left)}" if left else "")


def _reasons(summary: Summary, statistics: Statistics) -> list[tuple[str, int]]:
    reasons = summary.rejected or dict(statistics.reasons)
    return sorted(reasons.items(), key=lambda item: (-item[1], item[0]))


def _difficulty(statistics: Statistics) -> list[tuple[str, int]]:
    if not statistics.difficulty:
        return []
    return [(f".{tenth}", statistics.difficulty[tenth]) for tenth in range(10)]


def _heat(count: int, most: int) -> int:
    """Level 1 to 5 on a logarithmic scale: one frequent tool must not make all others look alike."""
    return min(HEAT_LEVELS, max(1, ceil(HEAT_LEVELS * log(count + 1) / log(most + 1)))) if count else 0


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
