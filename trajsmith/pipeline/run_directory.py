"""The run directory: everything that a run knows, and the only argument of `resume`.

Files other than the journals appear whole or not at all (temp file, then rename), so that a run can be killed at any
moment. Temp files live in `.tmp/` inside the run: the rename stays on one file system, and cleaning is one folder.
"""

import os
import shlex
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath

import orjson
import yaml

from trajsmith.pipeline.object_storage import find_address
from trajsmith.records import (
    HUB,
    InputError,
    JsonObject,
    JsonValue,
    RecordLookup,
    RunError,
    WriterLock,
    build_compressed_path,
    canonical_json,
    compose_yaml,
    count_records,
    has_records,
    hash_bytes,
    open_no_follow,
    refuse_link,
    refuse_links,
    to_one_line,
)
from trajsmith.records.storage import SAME_COMMAND, open_whole_file, storage_boundary

CONFIG = "config.yaml"
CHAINS, GROUNDED = "chains.jsonl", "grounded.jsonl"
TASKS, VARIED = "tasks.jsonl", "varied.jsonl"
TRAJECTORIES, VERDICTS = "trajectories.jsonl", "verdicts.jsonl"
RECORDS = ".jsonl"
"""End of the names of files of records."""
SUMMARY = "summary.json"
LEDGER = "ledger"
FOLDERS = ("environments", "states", LEDGER)
CACHE = "cache"
COPIED_IMPORTS = "imports"
"""Folder of the copies of imported files."""
LOCK, OWNER = ".lock", ".lock.owner"
SCRAP = ".tmp"
COPIES = ".copies.json"
"""What the run knows of its copies on other storage."""
KEPT = (LOCK, OWNER, CONFIG, LEDGER, CACHE, COPIES)
"""What a fresh start does not remove as a whole."""
OF_A_START = frozenset({LOCK, OWNER, SCRAP, COPIES, CONFIG, CACHE, COPIED_IMPORTS, "environments", "states"})
"""What a start writes before its first record; another start loses nothing by taking it over."""
FIXED = ("name", "seed", "run", "environments")
"""Settings that make it another run."""
STATE_CACHE = 64


class RunDirectory:
    """Paths, atomic files, content-addressed states and the writer's lock of one run.

    Make one with `create` or `open`. Reading needs no lock; appending to journals does.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.again = f"`trajsmith resume {path}`"
        """What goes on after a stop, for errors of writing; `SAME_COMMAND` where resume does something else."""
        self.locked = False
        """True while this object holds the writer's lock."""
        self._verified_state = lru_cache(maxsize=STATE_CACHE)(self._read_state)

    @classmethod
    def create(
        cls,
        path: Path | str,
        config_yaml: str,
        fresh: bool = False,
        from_python: bool = False,
        folder: str = "",
    ) -> "RunDirectory":
        """Start a run in an empty or new directory; with `fresh`, in place of the run that stands there.

        A run without records, of a start that failed, is taken over with the new configuration. The answers of models
        in `cache/` are kept even then: the same request is not paid again.

        Args:
            from_python: Errors name arguments of `trajsmith.run` in place of commands.
            folder: Is made before the configuration, so that a start that is cut shows what the run was to be.

        Raises:
            InputError: Something stands there already. Only what looks like a run is ever removed.
            RunError: The run to be replaced is being written by another process.
        """
        run = cls(Path(path))
        run.check_new(config_yaml, fresh, from_python)
        resume, run.again = run.again, SAME_COMMAND
        with storage_boundary(run.path, run.again):
            run.path.mkdir(parents=True, exist_ok=True)
        for name in KEPT:  # the rest is removed, links as links
            refuse_link(run.path, PurePosixPath(name))
            refuse_links(run.path / name)
        with run._locked():
            run.check_new(config_yaml, fresh, from_python)  # another process may have been faster
            run._clear()
            if folder:
                run.file(folder).mkdir(exist_ok=True)
            run.write_text(CONFIG, config_yaml)
        run.again = resume
        return run

    def check_new(self, config_yaml: str, fresh: bool = False, from_python: bool = False) -> None:
        """Make the checks of `create` and write nothing.

        Raises:
            InputError: Something stands there already, or nothing can be written there.
        """
        if not str(self.path).isprintable():
            raise InputError(f"{self.path} cannot be a run directory: its name has control characters")
        try:
            if self.path.exists() and not self.path.is_dir():
                raise InputError(f"{self.path} is a file: choose another run directory")
        except OSError as error:
            raise InputError(f"{self.path} cannot be a run directory: {error.strerror}") from error
        place = next(folder for folder in (self.path, *self.path.absolute().parents) if folder.exists())
        if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
            reason = "is a folder in which nothing can be written" if place.is_dir() else "is a file"
            raise InputError(f"{self.path} cannot be a run directory: {place} {reason}")
        if self._is_run():
            if not fresh and self.holds_records():
                raise InputError(self._describe_run(config_yaml, from_python))
        elif self._holds_files():
            raise InputError(
                f"{self.path} is not empty and holds no run that `trajsmith resume {self.path}` or --fresh could take: "
                "choose another run directory"
            )

    def _describe_run(self, config_yaml: str, from_python: bool) -> str:
        """Return the error for a run that stands here, with the settings in which it differs from the one wanted."""
        try:
            stored = compose_yaml(self.file(CONFIG).read_text("utf-8"), yaml.SafeLoader)[1]
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise InputError(f"{self.path} holds a run whose {CONFIG} cannot be read: {to_one_line(error)}") from error
        changes = list_changes(stored, yaml.safe_load(config_yaml))
        fresh, other = ("fresh=True", "run=") if from_python else ("--fresh", "--run")
        resume = f"trajsmith.resume({str(self.path)!r})" if from_python else f"`trajsmith resume {self.path}`"
        if not changes:
            return f"{self.path} already holds a run: resume with {resume}, or start anew with {fresh}"
        texts = [f"{key} {_shorten(old)} -> {_shorten(new)}" for key, old, new in changes[:3]]
        more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
        message = f"{self.path} holds a run of another configuration ({', '.join(texts)}{more}): "
        if len(changes) <= 3 and not any(key.split(".")[0] in FIXED for key, _, _ in changes):
            if from_python:
                values = {key: new for key, _, new in changes}
                message += f"trajsmith.resume({str(self.path)!r}, overrides={values!r}) changes it, "
            else:
                options = [shlex.quote(f"{key}={orjson.dumps(new).decode()}") for key, _, new in changes]
                message += f"trajsmith resume {self.path} --set {' --set '.join(options)} changes it, "
        return message + f"{fresh} starts anew, {other} names another directory"

    @classmethod
    def open(cls, path: Path | str) -> "RunDirectory":
        """Take up an existing run.

        Raises:
            InputError: There is none, its configuration is a symbolic link, or it is a repository of the Hub.
        """
        if str(path).startswith(HUB):
            raise InputError(
                f"{path} can be read only, and this needs a run directory of your own: `trajsmith replay` and "
                "`trajsmith task`, export with --out, and configurations of eval and grpo take a run of the Hub"
            )
        if address := find_address(path):
            name = address.rpartition("/")[2]
            raise InputError(
                f"{address} is a copy of a run: trajsmith copy {address} runs/{name}, then name runs/{name}"
            )
        run = cls(Path(path))
        refuse_link(run.path, PurePosixPath(CONFIG))
        if not run.config_path.is_file():
            raise InputError(f"no run here: {run.path} has no {CONFIG}")
        return run

    @property
    def config_path(self) -> Path:
        return self.path / CONFIG

    def file(self, name: str) -> Path:
        """Path of a file of this run; `name` is relative and stays inside.

        Raises:
            InputError: `name` leads out of the run directory, by its parts or by a symbolic link.
        """
        relative = PurePosixPath(name)
        if relative.is_absolute() or ".." in relative.parts or not relative.parts:
            raise InputError(f"not a file name inside a run: {name!r}")
        refuse_link(self.path, relative)
        if relative.suffix == RECORDS:
            refuse_link(self.path, relative.with_name(build_compressed_path(Path(relative)).name))
        return self.path / relative

    def build_part_path(self, path: Path) -> Path:
        """Return where a file is written before it is put in place; the next writer removes what a kill leaves."""
        return self.path / SCRAP / f"{path.name}.{os.getpid()}.{threading.get_ident()}"

    def open_lookup(self, name: str) -> RecordLookup:
        """Open a record file to look records up by their ids; a large plain one of a run gets an index beside it.

        Raises:
            InputError: The file is missing, damaged, or holds something else.
        """
        path = self.file(name)
        return RecordLookup(path, self.build_part_path(path) if (self.path / LEDGER).is_dir() else None)

    def refuse_links(self) -> None:
        """Refuse a run with a symbolic link in it: whoever made the run chose what is written through it.

        Raises:
            InputError: There is one.
        """
        refuse_links(self.path)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only writer; the kernel lets go when the process dies, however it dies.

        Raises:
            InputError: There is a symbolic link in the run.
            RunError: Another writer is at work; the text names its process.
        """
        self.refuse_links()
        with self._locked():
            yield

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with storage_boundary(self.path / LOCK, self.again):
            handle = open_no_follow(self.path / LOCK, os.O_RDWR | os.O_CREAT)
        lock = None
        try:
            lock = self._take(handle)
            self.locked = True
            with storage_boundary(self.path, self.again):
                shutil.rmtree(self.path / SCRAP, ignore_errors=True)
                for folder in FOLDERS:
                    (self.path / folder).mkdir(exist_ok=True)
            yield
        finally:
            if self.locked:
                with suppress(OSError):  # only tidiness: an idle run holds no pid, and no scrap of a killed worker
                    os.ftruncate(handle, 0)
                    shutil.rmtree(self.path / SCRAP)
                self.locked = False
            if lock is not None:
                lock.release()
            os.close(handle)

    def write_text(self, name: str, text: str) -> Path:
        """Write a whole file, or nothing."""
        return self._write(self.file(name), text.encode())

    def write_json(self, name: str, value: JsonValue, durable: bool = True) -> Path:
        """Write a whole JSON file, or nothing. `durable=False` spares the fsync for what may be lost in an outage."""
        try:
            data = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        except TypeError as error:
            raise InputError(f"{self.file(name)}: not JSON data: {error}") from error
        return self._write(self.file(name), data, durable)

    def read_json(self, name: str) -> JsonValue:
        """Read a JSON file of this run.

        Raises:
            InputError: It is not there, or is no JSON.
        """
        path = self.file(name)
        try:
            return orjson.loads(path.read_bytes())
        except FileNotFoundError as error:
            raise InputError(f"{path} is missing: the stage that writes it has not run") from error
        except (OSError, orjson.JSONDecodeError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error

    def put_state(self, state: JsonObject) -> str:
        """Store a state under its hash, once; the hash is `content_hash(state)`."""
        data = canonical_json(state)
        name = hash_bytes(data)
        path = self._state_path(name)
        if not path.is_file() or path.stat().st_size != len(data):  # an outage may have left an empty file
            self._write(path, data, durable=False)
        return name

    def get_state(self, name: str) -> JsonObject:
        """The state with this hash; every call gives a new object, so that nobody shares what somebody changes.

        Raises:
            RunError: The run has no such state, or its file was damaged.
        """
        try:
            state: JsonObject = orjson.loads(self._verified_state(name))
        except orjson.JSONDecodeError as error:
            raise RunError(f"{self._state_path(name)} cannot be read: {error}") from error
        if not isinstance(state, dict):
            raise RunError(f"{self._state_path(name)} is no state: it holds no JSON object")
        return state

    def _read_state(self, name: str) -> bytes:
        path = self._state_path(name)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise RunError(f"state {name} cannot be read: {path}: {error.strerror}") from error
        if hash_bytes(data) != name:
            raise RunError(f"{path} was changed: its content does not have the hash that it is named after")
        return data

    def _state_path(self, name: str) -> Path:
        return self.file(f"states/{name}.json")

    def _write(self, path: Path, data: bytes, durable: bool = True) -> Path:
        scrap = self.build_part_path(path)
        with storage_boundary(path, self.again):
            scrap.parent.mkdir(exist_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            with open_whole_file(path, durable, scrap) as file:
                file.write(data)
        return path

    def _take(self, handle: int) -> WriterLock:
        with storage_boundary(self.path / LOCK, self.again):
            lock = WriterLock(handle, self.path / OWNER, self.path)
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        return lock

    def _is_run(self) -> bool:
        """A run has a configuration and a ledger; a lone config.yaml could be anybody's project."""
        return self.config_path.is_file() and (self.path / LEDGER).is_dir()

    def holds_records(self) -> bool:
        """Return False for a run whose start failed before anything was committed."""
        entries = (entry for entry in self.path.iterdir() if entry.name not in OF_A_START)
        return any(entry.name != LEDGER or any(entry.iterdir()) for entry in entries)

    def _holds_files(self) -> bool:
        """False for what a start that was killed leaves behind: empty folders, the lock, scraps."""
        ours = {self.path / name for name in (LOCK, OWNER, SCRAP, COPIES)}
        return any(path.is_file() for path in self.path.rglob("*") if path not in ours and path.parent not in ours)

    def _clear(self) -> None:
        """Empty the directory, config.yaml last: killed halfway, it still looks like a run and --fresh goes on."""
        with storage_boundary(self.path, self.again):
            for entry in [*self.path.iterdir(), *(self.path / LEDGER).iterdir()]:
                if entry.name in KEPT:
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
            self.config_path.unlink(missing_ok=True)
            for folder in FOLDERS:
                (self.path / folder).mkdir(exist_ok=True)


def find_written_tasks(run: RunDirectory) -> Path:
    """Return the path of the tasks that are played: with variants where the run has derived them."""
    varied = run.file(VARIED)
    return varied if has_records(varied) else run.file(TASKS)


def describe_unfinished(run: RunDirectory) -> str:
    """Return one line about a run that was stopped, and how it goes on; empty for a finished one."""
    played, verified = (count_records(run.file(name)) for name in (TRAJECTORIES, VERDICTS))
    if verified >= played and run.file(SUMMARY).is_file():
        return ""
    return f"{run.path} is not finished ({verified} of {played} dialogues are verified): {run.again} goes on with it"


def list_changes(old: JsonValue, new: JsonValue, key: str = "") -> list[tuple[str, JsonValue, JsonValue]]:
    """Return the settings in which two configurations differ, as (dotted key, old, new); not the run directory."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return [] if old == new else [(key, old, new)]
    names = [name for name in dict.fromkeys([*new, *old]) if key or name != "run"]
    inner = [list_changes(old.get(name), new.get(name), f"{key}.{name}" if key else name) for name in names]
    return [change for changes in inner for change in changes]


def _shorten(value: JsonValue, width: int = 60) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= width else f"{text[: width - 1]}…"
