"""Copies of run directories on object stores and other storage that fsspec knows: `s3://bucket/runs/a`.

A run is made on a local disk, since it appends and renames; its copy is brought up to date every few minutes and at the
end, so that a machine that is lost costs minutes. Records are copied before the ledgers that name how much of them is
committed, and ledgers are read before the records: whatever stops a copy, `resume` finds a state that the run had.
"""

import asyncio
import logging
import secrets
import shutil
import sqlite3
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from trajsmith.pipeline.config import RunConfig
from trajsmith.pipeline.object_storage import check_address, list_files, open_storage, storage_errors
from trajsmith.pipeline.progress import NullProgress, RunProgress
from trajsmith.pipeline.run_directory import CONFIG, COPIES, LEDGER, LOCK, OWNER, SCRAP, RunDirectory
from trajsmith.pipeline.shard_range import ShardRange
from trajsmith.records import FrozenModel, InputError, RunError

_log = logging.getLogger(__name__)

WRITER = ".writer.json"
"""File of a copy that names who brings it up to date; the last one who took the run up."""
NOT_COPIED = frozenset({LOCK, OWNER, SCRAP, COPIES})
PARALLEL = 8
"""Files that are copied at a time."""
RETRY = "give the same command again"
PASSES = 5
"""Times that files which change their form under the copy are looked for again."""


class CopyRecord(FrozenModel):
    """One copy of a run, as the run directory knows it, in `.copies.json`."""

    url: str
    writer: str = ""
    """Random name of the directory as the one that brings the copy up to date; empty until it does."""
    earlier_writer: str = ""
    """Who brought it up to date before, or when it was downloaded."""
    pushed: bool = False
    """The copy was brought up to date from here at least once."""
    fetched: dict[str, str] = {}
    """File of the copy to a mark of its content there, when it was downloaded."""
    files: dict[str, tuple[int, int]] = {}
    """File to its size and time of change when it was copied."""
    ledgers: dict[str, tuple[int, str]] = {}
    """Ledger to its size and SHA-256 when it was copied."""


class RunCopy:
    """The copy of one run directory.

    Args:
        run: The run directory.
        url: Address of the copy.

    Raises:
        InputError: The address is none, or the package for its storage is not installed.
    """

    def __init__(self, run: RunDirectory, url: str) -> None:
        self.run = run
        self.url = check_address(url)
        self._files, self._root = open_storage(self.url)
        self._record = load_copy_record(run, self.url)
        self._folders: set[str] = set()
        """Folders that are there; object stores need none."""

    def take(self) -> None:
        """Become the one who brings the copy up to date.

        Raises:
            InputError: Another run stands there.
            RunError: The storage cannot be used.
        """
        with storage_errors(self.url, f"{self.run.again} tries it again"):
            writer, record = read_writer(self._files, self._root), self._record
            if record is None and (writer or self._files.exists(f"{self._root}/{CONFIG}")):
                raise InputError(
                    f"{self.url} holds a run that {self.run.path} is no copy of: `trajsmith resume {self.url}` takes "
                    "that one up; else name another address, or remove what is there"
                )
            if record is not None and writer and writer not in (record.writer, record.earlier_writer):
                raise self._describe_takeover()
            if record is not None and writer == record.writer != "":
                return
            known = {}
            if record is not None and record.fetched:  # what nobody has changed since is not copied again
                marks = {name: mark for name, (_, mark) in list_files(self._files, self._root, self.url).items()}
                known = {name: stat for name, stat in record.files.items() if marks.get(name) == record.fetched[name]}
            self._save(CopyRecord(url=self.url, writer=secrets.token_hex(8), earlier_writer=writer, files=known))
            self._files.pipe_file(self._place(WRITER), orjson.dumps({"writer": self._known.writer}))

    def _describe_takeover(self) -> RunError:
        return RunError(
            f"{self.url} was taken over by another directory, where the run goes on; {self.run.path} goes on without a "
            f"copy by: trajsmith resume {self.run.path} --set engine.copy_to=null"
        )

    def push(self) -> int:
        """Bring the copy up to date and return the number of files that were copied.

        Raises:
            RunError: The storage cannot be used, or another directory has taken the copy over.
        """
        with storage_errors(self.url, f"the run itself is kept; {self.run.again} copies it again"):
            if read_writer(self._files, self._root) != self._known.writer:
                raise self._describe_takeover()
            ledgers = {path.name: path.read_bytes() for path in sorted((self.run.path / LEDGER).glob("*"))}
            first = not self._known.pushed
            there = list_files(self._files, self._root, self.url) if first else {}
            self._take_back(ledgers, [name for name in there if name.startswith(f"{LEDGER}/")])
            copied = self._push_files([name for name in there if not name.startswith(f"{LEDGER}/") and name != WRITER])
            marks = {name: _describe(data) for name, data in ledgers.items()}
            changed = [name for name, mark in marks.items() if self._known.ledgers.get(name) != mark]
            for name in changed:
                self._files.pipe_file(self._place(f"{LEDGER}/{name}"), ledgers[name])
            self._save(self._known.model_copy(update={"ledgers": marks, "pushed": True}))
            return copied + len(changed)

    def _take_back(self, ledgers: dict[str, bytes], unknown: list[str]) -> None:
        """Make the ledgers of the copy say no more than those here, before the records of the copy become those here.

        Args:
            ledgers: Ledgers of the run.
            unknown: Ledgers of the copy that this directory has not written.
        """
        for name in {*self._known.ledgers, *(path.rpartition("/")[2] for path in unknown)}:
            data, place = ledgers.get(name), f"{self._root}/{LEDGER}/{name}"
            size, digest = self._known.ledgers.get(name, (0, ""))
            if data is not None and (name.endswith(".json") or digest == sha256(data[:size]).hexdigest()):
                continue  # only grown since, or no list of what is committed
            try:
                old = self._files.cat_file(place)
            except FileNotFoundError:
                continue
            if data is not None and old.startswith(data):
                self._files.pipe_file(place, data)
            elif data is None or not data.startswith(old):  # the stage was made anew
                self._files.rm_file(place)

    @property
    def _known(self) -> CopyRecord:
        if self._record is None:
            raise ValueError("take the copy first")
        return self._record

    def _place(self, name: str) -> str:
        """Return where a file of the copy is, with its folder made."""
        place = f"{self._root}/{name}"
        folder = place.rpartition("/")[0]
        if folder not in self._folders:
            self._files.makedirs(folder, exist_ok=True)
            self._folders.add(folder)
        return place

    def _push_files(self, unknown: Collection[str]) -> int:
        """Copy the files that changed, then remove those that are no more; not the ledgers.

        Args:
            unknown: Files of the copy that this directory may not have written.
        """
        copied = 0
        for _ in range(PASSES):
            paths = {name: path for name, path in iter_files(self.run.path) if not name.startswith(f"{LEDGER}/")}
            stats = {name: stat for name, path in paths.items() if (stat := _stat(path))}
            changed = [name for name, stat in stats.items() if self._known.files.get(name) != stat]
            with ThreadPoolExecutor(PARALLEL) as pool:
                arrived = dict(zip(changed, pool.map(self._push_file, changed), strict=True))
            done = {name: stats[name] for name in changed if arrived[name]}
            copied += len(done)
            self._remove(name for name in {*self._known.files, *unknown} if name not in paths)
            before = {name: stat for name, stat in self._known.files.items() if name in paths}
            self._save(self._known.model_copy(update={"files": before | done}))
            if all(arrived.values()):
                return copied
        raise RunError(f"files of {self.run.path} changed each time that they were copied to {self.url}")

    def _push_file(self, name: str) -> bool:
        """Copy one file; False if it is there no more, since a record file has two forms."""
        path = self.run.path / name
        try:
            if path.suffix == ".sqlite":
                with self._snapshot(path) as whole:
                    self._files.put_file(str(whole), self._place(name))
            else:
                self._files.put_file(str(path), self._place(name))
        except FileNotFoundError:
            if path.exists():
                raise
            return False
        return True

    @contextmanager
    def _snapshot(self, path: Path) -> Iterator[Path]:
        """A copy of an SQLite file that others may be writing."""
        part = self.run.build_part_path(path)
        part.parent.mkdir(exist_ok=True)
        try:
            with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(part)) as target:
                source.backup(target)
            yield part
        finally:
            part.unlink(missing_ok=True)

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            if self._files.exists(f"{self._root}/{name}"):
                self._files.rm_file(f"{self._root}/{name}")

    def _save(self, record: CopyRecord) -> None:
        self._record = record
        _save_record(self.run, record)


@asynccontextmanager
async def keep_copy(run: RunDirectory, url: str | None, seconds: float) -> AsyncIterator[None]:
    """Keep the copy of a run up to date while the context is open, and at its end, also that by an error.

    Args:
        run: A run whose lock is held.
        url: Address of the copy; None for none.
        seconds: Time between two updates.

    Raises:
        InputError: The address cannot be used, or another run stands there.
        RunError: The copy is not complete at the end.
    """
    if url is None:
        yield
        return
    copy = RunCopy(run, url)
    await asyncio.to_thread(copy.take)

    async def update_often() -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                count = await asyncio.to_thread(copy.push)
                _log.info("%s: %d files copied", url, count)
            except RunError as error:  # the run goes on, and its end tries again and says so
                _log.warning("%s", error)

    timer = asyncio.create_task(update_often())

    async def finish() -> None:
        timer.cancel()
        await asyncio.gather(timer, return_exceptions=True)
        await asyncio.to_thread(copy.push)

    try:
        yield
    except BaseException:
        try:
            await finish()
        except RunError as error:  # the other error says why the run stopped
            _log.warning("%s", error)
        raise
    await finish()


def fetch_copy(url: str, target: Path, progress: RunProgress | None = None) -> Path:
    """Download a run from its copy; `target` appears whole or not at all.

    Args:
        url: Address of the copy.
        target: Run directory to be made. One that was fetched from there before, or is where the copy came from, stays.
        progress: Shows how far it is; silent without.

    Raises:
        InputError: There is no run at the address, or something else stands at `target`.
        RunError: The storage cannot be used.
    """
    url = check_address(url)
    if target.exists():
        if load_copy_record(RunDirectory.open(target), url) is not None:
            return target
        raise InputError(f"{target} stands there already and is no copy of {url}: choose another directory by --run")
    files, root = open_storage(url)
    part = target.with_name(f".{target.name}.part")
    with storage_errors(url, RETRY):
        writer, names = read_writer(files, root), list_files(files, root, url)
    if CONFIG not in names:
        raise InputError(f"no run at {url}: it has no {CONFIG}")
    with storage_errors(url, RETRY):
        shutil.rmtree(part, ignore_errors=True)

        def fetch(name: str) -> None:
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            files.get_file(f"{root}/{name}", str(part / name))

        ledgers = [name for name in names if name.startswith(f"{LEDGER}/")]  # first: records only grow after them
        others = [name for name in names if name not in {*ledgers, WRITER}]
        with (progress or NullProgress()).stage("download run", len(ledgers) + len(others), 0, 0) as bar:
            for group in (ledgers, others):
                with ThreadPoolExecutor(PARALLEL) as pool:
                    for _ in pool.map(fetch, group):
                        bar.advance(0, 1)
        stats = {name: stat for name in others if (stat := _stat(part / name))}
        marks = {name: names[name][1] for name in others}
        record = CopyRecord(url=url, earlier_writer=writer, fetched=marks, files=stats)
        _save_record(RunDirectory(part), record)
        part.rename(target)
    return target


def push_copy(run: RunDirectory, url: str) -> int:
    """Copy a run to storage once and return the number of files that were copied.

    Raises:
        InputError: The address cannot be used, or another run stands there.
        RunError: The storage cannot be used.
    """
    copy = RunCopy(run, url)
    copy.take()
    return copy.push()


def choose_address(config: RunConfig) -> str | None:
    """Return the address of the copy of a run, or of one of its shards; None if it has none."""
    address = config.engine.copy_to
    if address is None or config.shard is None:
        return address
    return f"{address}-{ShardRange.parse(config.shard).label}"


def iter_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Iterate over the files of a run that are copied, as (name, path)."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.split("/")[0] in NOT_COPIED or name.endswith((".sqlite-wal", ".sqlite-shm")):
            continue
        if path.is_file() and not path.is_symlink():
            yield name, path


def load_copy_record(run: RunDirectory, url: str) -> CopyRecord | None:
    """Return what a run directory knows of its copy at an address; None if it has none there."""
    known = _load_records(run).get(url)
    try:
        return None if known is None else CopyRecord.model_validate(known)
    except ValidationError:
        return None


def _load_records(run: RunDirectory) -> dict[str, Any]:
    """Return what a run directory knows of its copies, by address."""
    try:
        known = orjson.loads(run.file(COPIES).read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return {}
    return known if isinstance(known, dict) else {}


def _save_record(run: RunDirectory, record: CopyRecord) -> None:
    run.write_json(COPIES, _load_records(run) | {record.url: record.model_dump(mode="json")}, durable=False)


def read_writer(files: Any, root: str) -> str:
    """Return who brings a copy up to date; empty if nobody does."""
    try:
        return str(orjson.loads(files.cat_file(f"{root}/{WRITER}"))["writer"])
    except FileNotFoundError:
        return ""


def _stat(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
        if path.suffix == ".sqlite":  # what was written last is in the log beside it
            wal = path.with_name(f"{path.name}-wal")
            extra = wal.stat() if wal.is_file() else None
            return (
                (stat.st_size + extra.st_size, max(stat.st_mtime_ns, extra.st_mtime_ns))
                if extra
                else (stat.st_size, stat.st_mtime_ns)
            )
    except FileNotFoundError:
        return None
    return stat.st_size, stat.st_mtime_ns


def _describe(data: bytes) -> tuple[int, str]:
    return len(data), sha256(data).hexdigest()
