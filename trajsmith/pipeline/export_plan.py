"""Which judged trajectories are exported together: chunks of whole tasks, cut by what the run holds and nothing else.

A chunk is what one process exports at a time. Its rows belong to one split and fill whole shards, so the files of a
dataset do not depend on who exported which chunk. Only the heads of records are decoded here, which costs a tenth of
parsing them; whoever exports a chunk parses its lines and compares their hashes.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from trajsmith.export import SPLITS, SplitSettings
from trajsmith.pipeline.run_directory import TRAJECTORIES, VERDICTS, RunDirectory, find_written_tasks
from trajsmith.records import (
    InputError,
    Record,
    RunError,
    TaskHeader,
    Verdict,
    content_hash,
    iter_placed_lines,
    open_records,
)

ROWS_PER_CHUNK = 1000
"""Rows of a chunk, at least; a shard of more rows is one chunk."""
PLACES_PER_ROW = 20
"""Judged trajectories of a chunk for each row that it may have: of a run that accepts next to nothing."""

LINE_END = ord("\n")

Head = TypeVar("Head", bound=msgspec.Struct)


class Span(NamedTuple):
    """Bytes of a file, of its plain form where it is compressed."""

    start: int
    length: int


class JudgedPlace(NamedTuple):
    """Place of one judged trajectory in the files of its run."""

    number: int
    """Place among all, from 0."""
    task: Span
    trajectory: Span
    verdict: Span
    accepted: int
    """Place among those of the dataset, from 1; 0 for one that is not in it."""
    unselected: str
    """Why the selection of the run left it out; empty if it did not."""
    compared: bool
    """The report compares its words with those of others."""


@dataclass(frozen=True, slots=True)
class ExportChunk:
    """Tasks with their judged trajectories that are exported together."""

    number: int
    """From 0, in the order of the dataset."""
    split: str
    places: tuple[JudgedPlace, ...]
    rates: Mapping[str, Mapping[str, float]]
    """Task to the pass rates of the solvers that played it."""

    @property
    def id(self) -> str:
        """Name for errors: numbers among the judged trajectories."""
        return f"{self.places[0].number + 1} to {self.places[-1].number + 1} ({self.split})"


class VerdictHead(msgspec.Struct):
    """Fields of a verdict that decide where its trajectory goes."""

    id: str
    trajectory_id: str
    task_id: str
    environment: str
    accepted: bool


class _TaskHead(msgspec.Struct):
    id: str
    grounded_id: str
    environments: tuple[str, ...]


@dataclass
class _OpenChunk:
    places: list[JudgedPlace] = field(default_factory=list)
    rows: int = 0
    rates: dict[str, Mapping[str, float]] = field(default_factory=dict)


class ExportPlan:
    """Chunks of a run, as a stream; memory holds those that are not full yet.

    Args:
        run: The run.
        split: How rows are divided.
        rows_per_shard: Rows per file.
        unselected: Accepted trajectories that are not in the dataset, with the reason.
        rates: Task to the pass rates of the solvers that played it.
        wanted: Whether accepted ones are written, and whether others are.
        compared: Dialogues of one environment whose words the report compares.
        notice: Is told of each judged trajectory.
    """

    def __init__(
        self,
        run: RunDirectory,
        split: SplitSettings,
        rows_per_shard: int,
        unselected: Mapping[str, str],
        rates: Mapping[str, Mapping[str, float]],
        wanted: Collection[bool] = (True,),
        compared: int = 0,
        notice: Callable[[VerdictHead, JudgedPlace], None] | None = None,
    ) -> None:
        self.run = run
        self.content = ""
        """Hash of what is in the dataset, of all that was iterated over."""
        self._split = split
        self._rows = rows_per_shard * max(1, ROWS_PER_CHUNK // rows_per_shard)
        self._unselected = unselected
        self._rates = rates
        self._wanted = wanted
        self._compared = compared
        self._notice = notice

    def __iter__(self) -> Iterator[ExportChunk]:
        chunks: dict[str, _OpenChunk] = {}
        number = 0
        for head, places in self._iter_tasks():
            split = self._split.choose(head.environments, head.grounded_id or head.id)
            rows = sum(bool(place.accepted) in self._wanted for place in places)
            if any(place.accepted for place in places):
                self.content = content_hash([self.content, split, self._rates.get(head.id)], 16)
            chunk = chunks.setdefault(split, _OpenChunk())
            if chunk.places and (chunk.rows + rows > self._rows or len(chunk.places) > PLACES_PER_ROW * self._rows):
                yield ExportChunk(number, split, tuple(chunk.places), chunk.rates)
                number += 1
                chunk = chunks[split] = _OpenChunk()
            chunk.places += places
            chunk.rows += rows
            if head.id in self._rates:
                chunk.rates[head.id] = self._rates[head.id]
        for split in SPLITS:
            if split in chunks:
                yield ExportChunk(number, split, tuple(chunks[split].places), chunks[split].rates)
                number += 1

    def _iter_tasks(self) -> Iterator[tuple[_TaskHead, list[JudgedPlace]]]:
        """Iterate over the tasks that were played, with their judged trajectories."""
        accepted, compared = 0, dict[str, int]()
        places: list[JudgedPlace] = []
        task: _TaskHead | None = None
        for number, (head, where, spans) in enumerate(self._iter_judged()):
            if task is not None and head.id != task.id:
                yield task, places
                places = []
            task = head
            unselected = self._unselected.get(where.trajectory_id, "") if where.accepted else ""
            taken = where.accepted and not unselected
            shown = taken and compared.setdefault(where.environment, 0) < self._compared
            if taken:
                accepted += 1
                compared[where.environment] += 1 if shown else 0
                self.content = chain_content(self.content, where.trajectory_id, where.id)
            place = JudgedPlace(number, *spans, accepted if taken else 0, unselected, shown)
            if self._notice is not None:
                self._notice(where, place)
            places.append(place)
        if task is not None:
            yield task, places

    def _iter_judged(self) -> Iterator[tuple[_TaskHead, VerdictHead, tuple[Span, Span, Span]]]:
        """Iterate over task, verdict and the spans of all three; trajectories without a verdict are left out.

        Raises:
            InputError: A line is no record; the text names file and line.
            RunError: A task is missing.
        """
        path = find_written_tasks(self.run)
        tasks = _iter_heads(path, _TaskHead, TaskHeader)
        head: _TaskHead | None = None
        span = Span(0, 0)
        trajectories = _iter_spans(self.run.file(TRAJECTORIES))
        verdicts = _iter_heads(self.run.file(VERDICTS), VerdictHead, Verdict)
        for (played, _), (verdict, judged) in zip(trajectories, verdicts, strict=False):
            while head is None or head.id != verdict.task_id:
                head, span = next(tasks, (None, span))
                if head is None:
                    raise RunError(
                        f"{TRAJECTORIES}: task {verdict.task_id} of {verdict.trajectory_id} is not in {path.name}"
                    )
            yield head, verdict, (span, played, judged)
        for verdict, _ in verdicts:
            raise RunError(f"{VERDICTS}: {verdict.id} belongs to {verdict.trajectory_id}, not in {TRAJECTORIES}")


def chain_content(content: str, trajectory_id: str, verdict_id: str) -> str:
    """Return the hash of what is in a dataset after one more trajectory."""
    return content_hash([content, trajectory_id, verdict_id], 16)


def _iter_heads(path: Path, head: type[Head], model: type[Record]) -> Iterator[tuple[Head, Span]]:
    decode = msgspec.json.Decoder(head).decode
    for span, line in _iter_spans(path):
        try:
            yield decode(line), span
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise explain_bad_line(path, span, bytes(line), model) from error


def _iter_spans(path: Path) -> Iterator[tuple[Span, memoryview]]:
    """Iterate over the lines of a file, but empty ones and a torn last one."""
    with open_records(path) as source:
        for start, line in iter_placed_lines(source):
            if line[-1] == LINE_END:
                yield Span(start, len(line)), line


def explain_bad_line(path: Path, span: Span, line: bytes, model: type[Record]) -> InputError:
    """Return the error for a line that is no record, with its number in the file."""
    number = sum(1 for before, _ in _iter_spans(path) if before.start <= span.start)
    where = f"{path}:{number}"
    try:
        model.from_line(line, where)
    except InputError as error:
        return error
    return InputError(f"{where}: not a record of this run")
