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
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from trajsmith.pipeline.config import RunConfig
from trajsmith.pipeline.object_storage import check_address, list_files, open_storage, storage_errors
from trajsmith.pipeline.progress import NullProgress, RunProgress
from trajsmith.pipeline.run_directory import CONFIG, COPIES, LEDGER, LOCK, OWNER, SCRAP, RunDirectory
from trajsmith.pipeline.shard_range import ShardRange
from trajsmith.pipeline.stages import ORDER
from trajsmith.records import FrozenModel, InputError, RunError, TrajsmithError

_log = logging.getLogger(__name__)

WRITER = ".writer.json"
"""File of a copy that names who brings it up to date; the last one who took the run up."""
NOT_COPIED = frozenset({LOCK, OWNER, SCRAP, COPIES})
PARALLEL = 8
"""Files that are copied at a time."""
RETRY = "give the same command again"
PASSES = 5
"""Times that files which change their form under the copy are looked for again."""


class TakenOver(RunError):
    """Raised when another directory brings the copy up to date now."""


class CopiedFile(NamedTuple):
    """One file as it was when it was copied."""

    size: int
    changed: int
    """Time of its last change in nanoseconds."""
    mark: str
    """Mark of its content in the storage; empty if that is not known."""


class CopyRecord(FrozenModel):
    """One copy of a run, as the run directory knows it, in `.copies.json`."""

    url: str
    writer: str = ""
    """Random name of the last command here that wrote to the copy."""
    earlier_writer: str = ""
    """The one before, or the one at the time of the download."""
    files: dict[str, CopiedFile] = {}


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
        self.known = load_copy_record(run, self.url)
        self._files, self._root = open_storage(self.url)
        self._folders: set[str] = set()
        """Folders that are there; object stores need none."""
        self._lock = threading.Lock()

    def take(self) -> None:
        """Become the one who brings the copy up to date.

        Raises:
            InputError: Another run stands there, or something else.
            TakenOver: The run goes on in another directory.
            RunError: The storage cannot be used.
        """
        with self._lock, storage_errors(self.url, f"{self.run.again} tries it again"):
            writer, known = read_writer(self._files, self._root), self.known
            if writer and known is not None and writer not in (known.writer, known.earlier_writer):
                raise self._describe_takeover()
            if writer and known is None:
                raise InputError(
                    f"{self.url} holds a run that {self.run.path} is no copy of: `trajsmith resume {self.url}` takes "
                    "that one up; else name another address, or remove what is there"
                )
            if not writer and list_files(self._files, self._root, self.url):
                raise InputError(f"{self.url} holds files that are no copy of a run: name another address")
            record = CopyRecord(url=self.url, writer=secrets.token_hex(8), earlier_writer=writer)
            self._save(record.model_copy(update={"files": known.files if known else {}}))
            self._files.pipe_file(self._place(WRITER), orjson.dumps({"writer": record.writer}))

    def push(self) -> int:
        """Bring the copy up to date and return the number of files that were copied.

        Raises:
            TakenOver: The run goes on in another directory.
            RunError: The storage cannot be used.
        """
        with self._lock, storage_errors(self.url, f"the run itself is kept; {self.run.again} copies it again"):
            self._check_writer()
            ledgers = {f"{LEDGER}/{path.name}": path.read_bytes() for path in (self.run.path / LEDGER).glob("*")}
            there = {name: mark for name, (_, mark) in list_files(self._files, self._root, self.url).items()}
            old = self._take_back(ledgers, [name for name in there if name.startswith(f"{LEDGER}/")])
            copied = self._push_files({name: mark for name, mark in there.items() if not name.startswith(f"{LEDGER}/")})
            for name in sorted(ledgers, key=_place_ledger):
                if old.get(name) != ledgers[name]:
                    self._check_writer()
                    self._files.pipe_file(self._place(name), ledgers[name])
                    copied += 1
            return copied

    def _take_back(self, ledgers: dict[str, bytes], there: list[str]) -> dict[str, bytes]:
        """Make the ledgers of the copy say no more than those here, before the records of the copy become those here.

        Args:
            ledgers: Ledgers of the run, by name.
            there: Names of the ledgers of the copy.

        Returns:
            Ledgers that the copy has now.
        """
        left = {}
        for name in sorted(there, key=_place_ledger, reverse=True):
            old, data = self._files.cat_file(f"{self._root}/{name}"), ledgers.get(name)
            if data is not None and (name.endswith(".json") or data.startswith(old)):
                left[name] = old  # only grown since, or no list of what is committed
            elif data is not None and old.startswith(data):
                self._files.pipe_file(f"{self._root}/{name}", data)
                left[name] = data
            else:  # the stage was made anew
                self._files.rm_file(f"{self._root}/{name}")
        return left

    def _check_writer(self) -> None:
        if read_writer(self._files, self._root) != self._known.writer:
            raise self._describe_takeover()

    def _describe_takeover(self) -> TakenOver:
        return TakenOver(
            f"{self.url} was taken over by another directory, where the run goes on; `trajsmith resume {self.url} "
            f"--run DIR` takes it up in a new one, {self.run.path} goes on without it by --set engine.copy_to=null"
        )

    @property
    def _known(self) -> CopyRecord:
        if self.known is None:
            raise ValueError("take the copy first")
        return self.known

    def _place(self, name: str) -> str:
        """Return where a file of the copy is, with its folder made."""
        place = f"{self._root}/{name}"
        folder = place.rpartition("/")[0]
        if folder not in self._folders:
            self._files.makedirs(folder, exist_ok=True)
            self._folders.add(folder)
        return place

    def _push_files(self, there: dict[str, str]) -> int:
        """Copy the files that changed here or there, then remove those that are no more; not the ledgers.

        Args:
            there: Files of the copy, with marks of their contents.
        """
        copied = 0
        for _ in range(PASSES):
            self._check_writer()
            paths = {name: path for name, path in iter_files(self.run.path) if not name.startswith(f"{LEDGER}/")}
            stats = {name: stat for name, path in paths.items() if (stat := _stat(path))}
            same = {
                name: one
                for name, one in self._known.files.items()
                if stats.get(name) == (one.size, one.changed) and there.get(name, "") == one.mark != ""
            }
            changed = [name for name in stats if name not in same]
            self._save(self._known.model_copy(update={"files": same}))
            with ThreadPoolExecutor(PARALLEL) as pool:
                uploads = {name: pool.submit(self._push_file, name) for name in changed}
            results = {name: upload.result() for name, upload in uploads.items()}
            for name in there:
                if name not in paths and name != WRITER:
                    self._files.rm_file(f"{self._root}/{name}")
            there = {name: mark for name, (_, mark) in list_files(self._files, self._root, self.url).items()}
            done = {name: CopiedFile(*stats[name], there.get(name, "")) for name in changed if results[name]}
            copied += len(done)
            self._save(self._known.model_copy(update={"files": same | done}))
            if all(results.values()):
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

    def _save(self, record: CopyRecord) -> None:
        self.known = record
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
    taken = copy.known is None
    if taken:
        await asyncio.to_thread(copy.take)  # an address that cannot be used is said before any work
    main, stop = asyncio.current_task(), asyncio.Event()
    lost: TakenOver | None = None

    async def update() -> None:
        nonlocal taken
        if not taken:
            await asyncio.to_thread(copy.take)
            taken = True
        count = await asyncio.to_thread(copy.push)
        _log.info("%s: %d files copied", url, count)

    async def update_often() -> None:
        nonlocal lost
        while not stop.is_set():
            try:
                await update()
            except TakenOver as error:
                lost = error
                if main is not None:
                    main.cancel()
                return
            except TrajsmithError as error:  # the run goes on, and its end tries again and says so
                _log.warning("%s", error)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), seconds)

    timer = asyncio.create_task(update_often())

    async def end_timer() -> None:
        stop.set()
        while not timer.done():
            try:
                await asyncio.shield(timer)
            except asyncio.CancelledError:
                if lost is None:
                    raise
        if lost is not None:
            raise lost

    try:
        yield
    except BaseException:
        await end_timer()
        try:
            await update()
        except TrajsmithError as error:  # the other error says why the run stopped
            _log.warning("%s", error)
        raise
    await end_timer()
    await update()


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
        others = [name for name in names if name not in ledgers and name.split("/")[0] not in {*NOT_COPIED, WRITER}]
        with (progress or NullProgress()).stage("download run", len(ledgers) + len(others), 0, 0) as bar:
            for group in (ledgers, others):
                with ThreadPoolExecutor(PARALLEL) as pool:
                    for _ in pool.map(fetch, group):
                        bar.advance(0, 1)
        copied = {name: CopiedFile(*stat, names[name][1]) for name in others if (stat := _stat(part / name))}
        record = CopyRecord(url=url, earlier_writer=writer, files=copied)
        _save_record(RunDirectory(part), record)
        part.rename(target)
    return target


def push_copy(run: RunDirectory, url: str) -> int:
    """Copy a run to storage once and return the number of files that were copied.

    Raises:
        InputError: The address cannot be used, or another run stands there.
        RunError: The storage cannot be used, or the run is being written.
    """
    copy = RunCopy(run, url)
    with run.lock():
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


def _place_ledger(name: str) -> tuple[bool, int, str]:
    """Return the order in which ledgers are copied: none before those of the stages that it builds on."""
    stage = name.rpartition("/")[2].partition(".")[0]
    return not name.endswith(".json"), ORDER.index(stage) if stage in ORDER else -1, name
