"""Writer of several export formats in one pass over the judged trajectories, or over parts of them in turn or at once.

`FormatRows` writes the rows of some trajectories into files, in any process; `MultiFormatWriter` makes datasets of
these files. Files are cut where the caller cuts the trajectories, so datasets do not depend on who wrote them.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from trajsmith.export.columns import RowEncoder
from trajsmith.export.dataset import DatasetWriter
from trajsmith.export.formats import FORMATS, ExportItem, Format, FormatSettings
from trajsmith.export.preference_pairs import count_equal_messages
from trajsmith.export.rows import ToolSchemaCache, build_row
from trajsmith.export.shards import FilesOfSplits, RowFiles
from trajsmith.export.splits import SPLITS, SplitSettings
from trajsmith.records import (
    EnvironmentSpec,
    JsonObject,
    RecordDropped,
    RunError,
    Task,
    TaskHeader,
    Trajectory,
    Verdict,
    raise_gc_threshold,
)

_log = logging.getLogger(__name__)
WRONG = ("partial", "agent_error")
"""Outcomes of plays that the agent is to blame for."""


@dataclass(frozen=True)
class FormatTargets:
    """Formats with their folders and settings; another process can be given them."""

    folders: Mapping[str, Path]
    """Format to the folder of its files of rows."""
    settings: FormatSettings
    rows_per_shard: int = 2000


@dataclass(frozen=True)
class WrittenRows:
    """Files that one `FormatRows` wrote."""

    files: Mapping[str, FilesOfSplits]
    """Format to its files of each split."""
    dropped: Mapping[str, Counter[str]]
    """Format to reason to trajectories that it refused."""


class FormatRows:
    """Writes rows of trajectories in every format, into files that begin with a prefix.

    Args:
        targets: Formats and folders.
        state: Gives an initial state by its hash.
        prefix: Part of the names of the files.
        shared: Another one of the same process, whose schemas and encoders are used again.
    """

    def __init__(
        self,
        targets: FormatTargets,
        state: Callable[[str], JsonObject],
        prefix: str = "",
        shared: "FormatRows | None" = None,
    ) -> None:
        self.formats = {name: FORMATS.get(name) for name in targets.folders}
        self.dropped: dict[str, Counter[str]] = {name: Counter() for name in targets.folders}
        """Format to reason to trajectories that it refused."""
        self._encoders: dict[str, RowEncoder | None] = (
            shared._encoders if shared else {name: _create_encoder(one) for name, one in self.formats.items()}
        )
        self._files = {
            name: RowFiles(folder, targets.rows_per_shard, self._encoders[name], prefix)
            for name, folder in targets.folders.items()
        }
        self._settings = targets.settings
        self._state = state
        self._done: dict[str, str] = {}
        self._shown: ToolSchemaCache = shared._shown if shared else {}
        self._comparing = [name for name, export_format in self.formats.items() if export_format.compares]
        self._accepted: list[ExportItem] = []
        """Of the newest task."""
        self._rejected: list[tuple[Trajectory, Verdict]] = []
        """Of the newest task."""
        self._task = ""

    def add(
        self,
        task: Task | TaskHeader,
        trajectory: Trajectory,
        verdict: Verdict,
        spec: EnvironmentSpec,
        split: str,
        pass_rates: Mapping[str, float] | None = None,
    ) -> None:
        """Write one accepted trajectory in every format; a format that refuses it counts the reason."""
        try:
            row = build_row(task, trajectory, verdict, spec, self._shown, pass_rates)
        except RecordDropped as drop:
            _log.debug("row %s refused by all formats: %s", trajectory.id, drop)
            for reasons in self.dropped.values():
                reasons[drop.reason] += 1
            return
        item = ExportItem(task, trajectory, verdict, spec, row, split, self._state)
        for name in self.formats:
            if name not in self._comparing:
                self._write(name, item)
        if self._comparing:
            self._open_task(task.id)
            self._accepted.append(item)

    def add_rejected(self, task: Task | TaskHeader, trajectory: Trajectory, verdict: Verdict) -> None:
        """Take a rejected play, beside the accepted ones of its task; only formats that compare write it.

        A play that completed its task and was left out for another reason, such as a quota, is no wrong one.
        """
        if self._comparing and verdict.outcome in WRONG:
            self._open_task(task.id)
            self._rejected.append((trajectory, verdict))

    def count_rows(self, name: str) -> dict[str, int]:
        """Return the rows of a format so far, by split."""
        return self._files[name].rows

    def finish(self) -> WrittenRows:
        """Write what waits for its task to end, and close the files."""
        self._compare()
        return WrittenRows({name: files.finish() for name, files in self._files.items()}, self.dropped)

    def close(self) -> None:
        """Close the files as they are; safe to call twice."""
        for files in self._files.values():
            files.close()

    def _open_task(self, task: str) -> None:
        """Begin another task; the trajectories of one come together."""
        if task != self._task:
            self._compare()
            self._task = task

    def _compare(self) -> None:
        """Write each rejected play of the newest task with the accepted one that is like it for longest."""
        for rejected in self._rejected if self._accepted else ():
            item = max(self._accepted, key=lambda item: count_equal_messages(item.trajectory, rejected[0]))
            for name in self._comparing:
                self._write(name, replace(item, rejected=rejected))
        self._accepted, self._rejected = [], []

    def _write(self, name: str, item: ExportItem) -> None:
        export_format = self.formats[name]
        if export_format.per_task and self._done.get(name) == item.head.id:  # the trajectories of a task come together
            return
        try:
            for row in export_format.rows(item, self._settings):
                self._files[name].write(row, item.split)
        except RecordDropped as drop:
            _log.debug("row %s refused by %s: %s", item.trajectory.id, name, drop)
            self.dropped[name][drop.reason] += 1
            return
        self._done[name] = item.head.id


def _create_encoder(export_format: Format) -> RowEncoder | None:
    return None if export_format.columns is None else RowEncoder(export_format.columns)


class MultiFormatWriter:
    """Datasets of several formats; leaving the context commits the folders.

    Args:
        targets: Format to the folder it is written to.
        state: Gives an initial state by its hash.
        split: How rows are divided.
        settings: What the formats are told.
        rows_per_shard: Rows per Parquet file.
        pass_rates: Task to the pass rates of the solvers that played it.

    Raises:
        InputError: A format is unknown, or a target is a file.
        RunError: A target holds something else; or, after all others are in place, a format that got no row.
    """

    def __init__(
        self,
        targets: Mapping[str, Path],
        state: Callable[[str], JsonObject],
        split: SplitSettings,
        settings: FormatSettings,
        rows_per_shard: int = 2000,
        pass_rates: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        self.formats = {name: FORMATS.get(name) for name in targets}
        self.writers = {
            name: DatasetWriter(folder, rows_per_shard, self.formats[name].columns, self.formats[name].files(SPLITS))
            for name, folder in targets.items()
        }
        self.targets = FormatTargets(
            {name: writer.scrap for name, writer in self.writers.items()}, settings, rows_per_shard
        )
        """Where files of rows for `add_written` belong."""
        self.dropped: dict[str, Counter[str]] = {name: Counter() for name in targets}
        """Format to reason to trajectories that it refused."""
        self.empty_reason = "no trajectory was accepted"
        """Why no trajectory was added, for the error text if none is."""
        self._split = split
        self._pass_rates = pass_rates or {}
        self._own = FormatRows(self.targets, state)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(raise_gc_threshold())
            for writer in self.writers.values():
                stack.enter_context(writer)
            stack.callback(self._own.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.add_written(self._own.finish())
        empty = [name for name, writer in self.writers.items() if not writer.rows] if error is None else []
        for name in empty:
            self.writers[name].discard()
        for name, writer in self.writers.items():
            if name not in empty and error is None:
                for file, content in self.formats[name].files(writer.splits).items():
                    writer.attach(file, content)
        self._stack.__exit__(kind, error, trace)
        if empty:
            raise RunError("; ".join(self._nothing(name) for name in empty))

    def add(self, task: Task | TaskHeader, trajectory: Trajectory, verdict: Verdict, spec: EnvironmentSpec) -> None:
        """Write one accepted trajectory in every format; a format that refuses it counts the reason."""
        self._own.add(task, trajectory, verdict, spec, self._split.of(task), self._pass_rates.get(task.id))

    def add_written(self, written: WrittenRows) -> None:
        """Add rows that a `FormatRows` with these `targets` wrote, after those that were added before."""
        for name, files in written.files.items():
            self.writers[name].add_files(files)
            self.dropped[name].update(written.dropped[name])

    def _nothing(self, name: str) -> str:
        reasons = ", ".join(f"{reason} {number}" for reason, number in self.dropped[name].most_common(3))
        return f"format {name}: no row to export ({reasons or self.empty_reason})"
