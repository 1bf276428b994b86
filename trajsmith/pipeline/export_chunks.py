"""Exports one chunk of a run: rows into files, counts for the summary and the report. In any process."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from trajsmith.export import (
    FormatRows,
    FormatTargets,
    ReportCounts,
    WrittenRows,
    find_group,
    list_agent_tools,
    serialize_entry,
)
from trajsmith.pipeline.export_plan import ExportChunk, JudgedPlace, Span, explain_bad_line
from trajsmith.pipeline.run_counts import RunCounts
from trajsmith.pipeline.run_directory import TRAJECTORIES, VERDICTS, RunDirectory, find_written_tasks
from trajsmith.pipeline.stored_specs import load_stored_specs
from trajsmith.records import (
    InputError,
    Record,
    RecordSource,
    RunError,
    TaskHeader,
    Trajectory,
    Verdict,
    open_records,
    raise_gc_threshold,
    read_view,
    storage_boundary,
)

AnyRecord = TypeVar("AnyRecord", bound=Record)
Judged = tuple[TaskHeader, Trajectory, Verdict]


@dataclass(frozen=True)
class ExportOrder:
    """Settings of one export, the same for all its chunks; another process can be given them."""

    targets: FormatTargets
    wanted: tuple[bool, ...] = (True,)
    """Whether accepted trajectories are written, and whether others are."""
    counted: bool = False
    """Count for summary and report, too."""
    faulty: bool = False
    """Mistakes were injected into plays."""
    pages: bool = False
    """Make the entries of the pages of all conversations."""
    again: str = ""
    """What to do after the disk was full."""
    views: bool = True
    """Read trajectories and verdicts as views; formats of others are given records."""


class PageEntry(NamedTuple):
    """One conversation of the pages."""

    number: int
    """Place among all."""
    group: tuple[str, str]
    trajectory_id: str
    data: bytes


@dataclass
class ExportPart:
    """Files and counts of one chunk."""

    rows: WrittenRows
    written: int = 0
    """Trajectories that were passed to the formats."""
    left_out: int = 0
    counts: RunCounts = field(default_factory=RunCounts)
    report: ReportCounts = field(default_factory=ReportCounts)
    entries: list[PageEntry] = field(default_factory=list)
    """All conversations, where pages are written."""


class ChunkExporter:
    """Exports chunks of one run.

    Args:
        run: The run; only its records, specs and states are read.
        order: What is done with each chunk.
        audit: Is told of each accepted trajectory.
    """

    def __init__(
        self,
        run: RunDirectory,
        order: ExportOrder,
        audit: Callable[[TaskHeader, Trajectory], None] | None = None,
    ) -> None:
        self.order = order
        self._run = run
        self._audit = audit
        self._specs = load_stored_specs(run)
        self._tools = list_agent_tools(self._specs.values())
        self._rows: FormatRows | None = None

    def export(self, chunk: ExportChunk) -> ExportPart:
        """Write the rows of a chunk and count.

        Raises:
            InputError: A line is no record, or was changed by hand.
            RunError: Records do not belong together, or the disk is full.
        """
        order, targets = self.order, self.order.targets
        folder = next(iter(targets.folders.values()))
        rows = self._rows = FormatRows(targets, self._run.get_state, f"{chunk.number:06d}-", self._rows)
        part = ExportPart(WrittenRows({}, {}), counts=RunCounts(order.faulty))
        judged_plays = read_judged(self._run, chunk.places, order.views and self._audit is None)
        try:
            with storage_boundary(folder, order.again), raise_gc_threshold():
                for place, judged in zip(chunk.places, judged_plays, strict=True):
                    self._add(part, rows, chunk, place, judged)
                part.rows = rows.finish()
                part.report.close()
        finally:
            rows.close()
        return part

    def _add(self, part: ExportPart, rows: FormatRows, chunk: ExportChunk, place: JudgedPlace, judged: Judged) -> None:
        task, trajectory, verdict = judged
        if verdict.accepted in self.order.wanted:
            part.written += 1
            spec = self._specs[trajectory.environment]
            rows.add(task, trajectory, verdict, spec, chunk.split, chunk.rates.get(task.id))
        else:
            part.left_out += 1
            rows.add_rejected(task, trajectory, verdict)
        if self._audit is not None and verdict.accepted:
            self._audit(task, trajectory)
        if self.order.counted:
            part.counts.add(trajectory, verdict)
            part.report.add(task, trajectory, verdict, self._tools, place.accepted or None, place.compared)
        if self.order.pages:
            group = find_group(trajectory, verdict)
            entry = serialize_entry(task, trajectory, verdict)
            part.entries.append(PageEntry(place.number, group, trajectory.id, entry))


def read_judged(run: RunDirectory, places: Iterable[JudgedPlace], views: bool = True) -> Iterator[Judged]:
    """Read judged trajectories, those that the selection left out as rejected.

    Args:
        run: The run.
        places: Which ones.
        views: Give views of trajectories and verdicts, but where calls are taken out of a trajectory.

    Raises:
        InputError: A line is no record, or was changed by hand; the text names file and line.
        RunError: Records do not belong together.
    """
    paths = find_written_tasks(run), run.file(TRAJECTORIES), run.file(VERDICTS)
    with ExitStack() as stack:
        tasks, trajectories, verdicts = (_open(path, stack) for path in paths)
        task: TaskHeader | None = None
        span = Span(0, 0)
        for place in places:
            if task is None or place.task != span:
                task, span = _read(TaskHeader, paths[0], tasks, place.task), place.task
            verdict = _read(Verdict, paths[2], verdicts, place.verdict, views and not place.unselected)
            trajectory = _read(Trajectory, paths[1], trajectories, place.trajectory, views and not verdict.pruned)
            if verdict.trajectory_id != trajectory.id:
                raise RunError(f"{VERDICTS}: {verdict.id} belongs to {verdict.trajectory_id}, not to {trajectory.id}")
            if trajectory.task_id != task.id:
                raise RunError(f"{TRAJECTORIES}: {trajectory.id} belongs to {trajectory.task_id}, not to {task.id}")
            if place.unselected:
                reasons = (f"not chosen: {place.unselected}",)
                verdict = verdict.model_copy(update={"accepted": False, "reasons": reasons})
            yield task, trajectory, verdict


def serialize_place(run: RunDirectory, place: JudgedPlace) -> bytes:
    """Return the entry of one judged trajectory for the gallery."""
    return serialize_entry(*next(read_judged(run, [place])))


def _open(path: Path, stack: ExitStack) -> RecordSource:
    source = open_records(path)
    stack.enter_context(source)
    return source


def _read(model: type[AnyRecord], path: Path, source: RecordSource, span: Span, view: bool = False) -> AnyRecord:
    line = source.read(span.start, span.length)
    try:
        return read_view(model, line) if view else model.from_line(line)
    except InputError as error:
        raise explain_bad_line(path, span, line, model) from error
