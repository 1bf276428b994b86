"""Record files of stages with a commit log, so that a run can be killed at any moment and taken up again.

The outputs of one input are appended to the stage's record file, then one row is appended to `ledger/<stage>.jsonl`:
`{"input": id, "outputs": [ids], "end": bytes of the record file, "drop": {"reason", "detail"}}` (`drop` only where
there is one). Only what the ledger vouches for counts: what stands beyond it is cut off on opening and done again.
Inputs are committed in order, so the number of rows is the point at which to go on. Nothing volatile is written.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import orjson
from pydantic import ValidationError

from trajsmith.pipeline.run_directory import LEDGER, RunDirectory
from trajsmith.records import (
    AppendFile,
    FrozenModel,
    JsonObject,
    Record,
    RecordDropped,
    RunError,
    format_first_error,
    open_output,
    read_lines,
)

DETAIL_LENGTH = 2000
FAULT = "environment_fault:"
"""How the reason of a drop begins whose cause is a broken environment."""


class Drop(FrozenModel):
    """Why an input gave nothing."""

    reason: str
    detail: str = ""


class LedgerRow(FrozenModel):
    """One committed input."""

    input: str
    outputs: tuple[str, ...]
    end: int
    """Bytes of the record file after the outputs."""
    drop: Drop | None = None

    def to_line(self) -> bytes:
        return orjson.dumps(self.model_dump(mode="json", exclude_none=True), option=orjson.OPT_APPEND_NEWLINE)


class LedgerCounts(NamedTuple):
    """Counts of one stage."""

    read: int
    written: int
    dropped: dict[str, int]
    """Reason to number of inputs."""
    examples: dict[str, str]
    """Reason to the first detail, of faults of environments."""


class _Tally:
    def __init__(self) -> None:
        self.rows = 0
        self.written = 0
        self.reasons: Counter[str] = Counter()
        self.examples: dict[str, str] = {}

    def add(self, row: LedgerRow) -> None:
        self.rows += 1
        self.written += len(row.outputs)
        if row.drop:
            self.reasons[row.drop.reason] += 1
            if row.drop.detail and row.drop.reason.startswith(FAULT):
                self.examples.setdefault(row.drop.reason, row.drop.detail)

    def counts(self) -> LedgerCounts:
        return LedgerCounts(self.rows, self.written, dict(sorted(self.reasons.items())), dict(self.examples))


def read_ledger(path: Path) -> Iterator[LedgerRow]:
    """The committed rows of a ledger, without a torn last line; none if there is no file.

    Raises:
        RunError: A row in the middle is damaged.
    """
    return (row for row, _ in _scan(path))


def _scan(path: Path) -> Iterator[tuple[LedgerRow, int]]:
    """Rows with the byte offset at which each ends."""
    for number, line, end in read_lines(path):
        try:
            yield LedgerRow.model_validate_json(line), end
        except ValidationError as error:
            raise RunError(f"{path}:{number}: the run was changed by hand: {format_first_error(error)}") from error


def count_ledger(run: RunDirectory, stage: str) -> LedgerCounts:
    """Return the counts of a stage from its ledger."""
    tally = _Tally()
    for row in read_ledger(build_ledger_path(run, stage)):
        tally.add(row)
    return tally.counts()


def build_ledger_path(run: RunDirectory, stage: str) -> Path:
    return run.file(f"{LEDGER}/{stage}.jsonl")


class Journal:
    """The record file of one stage together with its ledger, open for appending.

    Opening repairs what a kill or an outage left behind. Needs the run's lock. Use it as a context manager.

    Raises:
        RunError: The ledger and the record file contradict each other: somebody changed the run by hand.
    """

    def __init__(self, run: RunDirectory, stage: str, output: str) -> None:
        if not run.locked:
            raise RunError(f"{run.path}: stage {stage} needs the run's lock to write")
        self.last_input: str | None = None
        """Id of the last committed input."""
        self._tally = _Tally()
        self._broken = False
        path = run.file(output)
        self._output = open_output(path, run.build_part_path(path), run.again)
        try:
            self._ledger = AppendFile(build_ledger_path(run, stage), run.again)
            try:
                self._recover()
            except BaseException:  # whatever happens, the file is closed; it goes on up
                self._ledger.close(sync=False)
                raise
        except BaseException:  # the same for the file opened before
            self._output.close(sync=False)
            raise

    def commit(self, source: str, outputs: Sequence[Record], drop: RecordDropped | None = None) -> None:
        """Append the outputs of one input, then vouch for them.

        Raises:
            RunError: The disk is full or broken. This input is then not committed; a resumed run does it again.
        """
        if self._broken:
            raise RunError(f"{self._output.path}: writing failed before; nothing more is committed")
        before = self._output.end
        data = b"".join(output.to_line() for output in outputs)
        note = Drop(reason=_writable(drop.reason), detail=_writable(drop.detail)) if drop else None
        row = LedgerRow(input=source, outputs=tuple(output.id for output in outputs), end=before + len(data), drop=note)
        self._broken = True
        if data:
            self._output.append(data)
        try:
            self._ledger.append(row.to_line())
        except RunError:
            with suppress(RunError):  # the ledger's failure is the one to tell
                self._output.cut(before)
            raise
        self._broken = False
        self._count(row)

    @property
    def rows(self) -> int:
        """Number of inputs that are committed."""
        return self._tally.rows

    def counts(self) -> LedgerCounts:
        return self._tally.counts()

    def close(self) -> None:
        """Records before ledger: after an outage the ledger must not vouch for what is not on the disk."""
        try:
            self._output.close(sync=not self._broken)
        finally:
            self._ledger.close(sync=not self._broken)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _count(self, row: LedgerRow) -> None:
        self._tally.add(row)
        self.last_input = row.input

    def _recover(self) -> None:
        """Keep the rows whose records are on the disk; cut the ledger and the record file to them."""
        ledger_end = end = start = 0
        block: LedgerRow | None = None
        for row, row_end in _scan(self._ledger.path):
            if row.end > self._output.end:  # an outage kept the ledger and lost records: do them again
                break
            if row.end < end:
                raise self._changed_by_hand(f"row {self.rows + 1} ends before the row above it")
            if row.end > end:
                block, start, end = row, end, row.end
            ledger_end = row_end
            self._count(row)
        if block:  # before anything is cut: a run that was changed by hand stays as it is
            self._compare(block, start, self._output.read(start, end))
        self._ledger.cut(ledger_end)
        self._output.cut(end)

    def _compare(self, row: LedgerRow, start: int, data: bytes) -> None:
        """The last committed block must hold exactly the records that the ledger names."""
        try:
            ids = tuple(_id_of(line) for line in data.splitlines())
        except (orjson.JSONDecodeError, KeyError) as error:
            raise self._changed_by_hand(f"no records at byte {start}", self._output.path) from error
        if ids != row.outputs or not data.endswith(b"\n"):
            raise self._changed_by_hand(f"at byte {start} are other records than its ledger names", self._output.path)

    def _changed_by_hand(self, change: str, path: Path | None = None) -> RunError:
        return RunError(f"{path or self._ledger.path}: the run was changed by hand: {change}; start anew with --fresh")


def _id_of(line: bytes) -> str:
    record: JsonObject = orjson.loads(line)
    return str(record["id"])


def _writable(text: str) -> str:
    """Foreign error texts may hold half characters, and no end."""
    return text[:DETAIL_LENGTH].encode("utf-8", "replace").decode()
