"""Copies of runs on storage of fsspec: whatever stops them, what is there is a run that resume finishes alike."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import orjson
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from trajsmith.api.runs import load_run, resume, run
from trajsmith.pipeline.config_changes import apply_change, plan_change
from trajsmith.pipeline.object_storage import find_address
from trajsmith.pipeline.progress import NullProgress
from trajsmith.pipeline.record_forms import compress_run
from trajsmith.pipeline.run_copies import fetch_copy, push_copy
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import InputError, RunError

CONFIG = """
name: copied
seed: 5
environments:
  - {library: bank, states: {small: 1}}
sample: {count: 6, length: [2, 3]}
engine: {workers: 1}
"""
URL = "flaky://store/runs/a"
RECORDS = ("chains", "grounded", "tasks", "trajectories", "verdicts")


class FlakyFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """Storage in memory that fails from the operation `fails_at` on; one failing upload leaves half of its file."""

    protocol = "flaky"
    store: dict[str, Any] = {}
    pseudo_dirs: list[str] = [""]
    fails_at: int | None = None
    operations = 0

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("flaky://", "memory://")))

    def _count(self) -> None:
        cls = type(self)
        cls.operations += 1
        if cls.fails_at is not None and cls.operations > cls.fails_at:
            raise OSError(5, "the storage is gone")

    def pipe_file(self, path: str, value: bytes, **more: Any) -> None:
        self._count()
        super().pipe_file(path, value, **more)

    def put_file(self, lpath: str, rpath: str, **more: Any) -> None:
        self._count()
        super().put_file(lpath, rpath, **more)

    def rm_file(self, path: str) -> None:
        self._count()
        del self.store[self._strip_protocol(path)]

    def cat_file(self, path: str, **more: Any) -> bytes:
        self._count()
        return bytes(super().cat_file(path, **more))


@pytest.fixture
def storage() -> Iterator[type[FlakyFileSystem]]:
    fsspec.register_implementation("flaky", FlakyFileSystem, clobber=True)
    FlakyFileSystem.store.clear()
    FlakyFileSystem.pseudo_dirs[:] = [""]
    FlakyFileSystem.fails_at, FlakyFileSystem.operations = None, 0
    yield FlakyFileSystem
    FlakyFileSystem.fails_at = None


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    config = folder / "copied.yaml"
    config.write_text(CONFIG)
    return run(config, run=folder / "finished").path


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> RunDirectory:
    shutil.copytree(finished, tmp_path / "a")
    return RunDirectory(tmp_path / "a")


def read_records(path: Path) -> dict[str, bytes]:
    return {name: (path / f"{name}.jsonl").read_bytes() for name in RECORDS}


def read_data(path: Path) -> dict[str, bytes]:
    files = [file for file in sorted(path.glob("dataset/data/*")) if file.is_file()]
    return read_records(path) | {file.name: file.read_bytes() for file in files}


def stop_early(path: Path) -> None:
    """Leave a run as a kill in the middle of `play` does."""
    for name in ("summary.json", "verdicts.jsonl", "ledger/verify.jsonl"):
        (path / name).unlink()
    shutil.rmtree(path / "dataset")
    ledger = path / "ledger" / "play.jsonl"
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:-3]))


def test_a_copy_comes_back_equal_and_only_what_changed_is_copied_again(
    copied: RunDirectory, storage: type[FlakyFileSystem], tmp_path: Path
) -> None:
    count = push_copy(copied, URL)
    assert count > 20
    assert push_copy(copied, URL) == 0
    path = fetch_copy(URL, tmp_path / "back")
    assert read_data(path) == read_data(copied.path)
    resume(path)
    assert read_data(path) == read_data(copied.path)
    changed = push_copy(RunDirectory(path), URL)
    assert 0 < changed < count, "summary, report and such; not the records and states"
    assert fetch_copy(URL, tmp_path / "back") == path, "it is that run already"


def test_record_files_that_are_compressed_replace_the_plain_ones(
    copied: RunDirectory, storage: type[FlakyFileSystem], tmp_path: Path
) -> None:
    push_copy(copied, URL)
    compress_run(copied, NullProgress())
    push_copy(copied, URL)
    names = {path.rsplit("/", 1)[1] for path in storage.store}
    assert "trajectories.jsonl.zst" in names
    assert "trajectories.jsonl" not in names
    assert len(load_run(fetch_copy(URL, tmp_path / "back")).tasks) == len(load_run(copied.path).tasks)


@pytest.mark.parametrize("change", ["goes_on", "made_anew", "taken_over"])
def test_wherever_a_copy_stops_the_run_there_can_be_finished(
    copied: RunDirectory, finished: Path, storage: type[FlakyFileSystem], tmp_path: Path, change: str
) -> None:
    """`goes_on`: the run ends; `made_anew`: with other settings; `taken_over`: on another machine."""
    stop_early(copied.path)
    push_copy(copied, URL)
    before = {name: bytes(file.getvalue()) for name, file in storage.store.items()}
    known = (copied.path / ".copies.json").read_bytes()
    if change == "taken_over":
        copied = RunDirectory(fetch_copy(URL, tmp_path / "other"))
        known = (copied.path / ".copies.json").read_bytes()
    if change == "made_anew":
        apply_change(copied, plan_change(copied, ["write.direct=1.0", "write.questions=0"]))
    resume(copied.path)
    whole = read_data(copied.path)
    results = {repr(sorted(whole.items()))}
    if change == "made_anew":  # the settings that the copy has may be either
        results.add(repr(sorted(read_data(finished).items())))
        assert len(results) == 2
    else:
        assert whole == read_data(finished)
    steps, step = 0, 0
    while True:
        storage.store.clear()
        for name, data in before.items():
            MemoryFileSystem.pipe_file(storage(), name, data)
        (copied.path / ".copies.json").write_bytes(known)
        storage.operations, storage.fails_at = 0, step
        try:
            push_copy(copied, URL)
            ended = True
        except RunError as error:
            assert "the storage is gone" in str(error)
            ended = False
        storage.fails_at = None
        target = tmp_path / f"back-{step}"
        resume(fetch_copy(URL, target))
        assert repr(sorted(read_data(target).items())) in results, f"stopped at operation {step}"
        shutil.rmtree(target)
        if ended:
            break
        steps, step = steps + 1, step + (1 if step < 8 else 7)
    assert steps > 5


def test_a_run_keeps_its_copy_and_goes_on_from_it_elsewhere(
    finished: Path, storage: type[FlakyFileSystem], tmp_path: Path
) -> None:
    config = tmp_path / "copied.yaml"
    config.write_text(CONFIG)
    made = run(config, run=tmp_path / "a", overrides={"engine.copy_to": URL, "engine.copy_every": 0.05})
    back = fetch_copy(URL, tmp_path / "b")
    assert read_records(back) == read_records(made.path) == read_records(finished)
    assert (back / "summary.json").is_file()
    assert "flaky://" in (back / "config.yaml").read_text()
    assert "flaky://" not in (back / "dataset" / "config.yaml").read_text(), "a private address is not published"
    resume(back)
    for _ in range(2):
        with pytest.raises(RunError, match="was taken over by another directory"):
            resume(made.path)
    resume(made.path, overrides={"engine.copy_to": None})
    resume(back)


def test_storage_that_fails_stops_no_run_and_is_said_at_its_end(
    storage: type[FlakyFileSystem], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tmp_path / "copied.yaml"
    config.write_text(CONFIG)
    storage.fails_at = 2
    with pytest.raises(RunError, match=r"the storage is gone.*the run itself is kept; `trajsmith resume"):
        run(config, run=tmp_path / "a", overrides={"engine.copy_to": URL, "engine.copy_every": 0.01})
    assert load_run(tmp_path / "a").summary.funnel["accepted"] > 0
    assert "the storage is gone" in caplog.text
    storage.fails_at = None
    resume(tmp_path / "a")
    assert (fetch_copy(URL, tmp_path / "b") / "summary.json").is_file()


def test_another_run_is_not_overwritten(copied: RunDirectory, finished: Path, storage: type[FlakyFileSystem]) -> None:
    push_copy(RunDirectory(copied.path), URL)
    other = copied.path.with_name("other")
    shutil.copytree(finished, other)
    with pytest.raises(InputError, match="no copy of"):
        push_copy(RunDirectory(other), URL)
    with pytest.raises(InputError, match="is no copy of"):
        fetch_copy(URL, other)


def test_answers_of_models_are_copied_whole(
    copied: RunDirectory, storage: type[FlakyFileSystem], tmp_path: Path
) -> None:
    import sqlite3

    (copied.path / "cache").mkdir(exist_ok=True)
    writer = sqlite3.connect(copied.path / "cache" / "answers.sqlite", isolation_level=None)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("CREATE TABLE answers (text TEXT)")
    writer.execute("INSERT INTO answers VALUES ('one')")
    push_copy(copied, URL)
    writer.execute("INSERT INTO answers VALUES ('two')")  # is in the log beside the file
    assert push_copy(copied, URL) == 1
    back = fetch_copy(URL, tmp_path / "back")
    rows = sqlite3.connect(back / "cache" / "answers.sqlite").execute("SELECT text FROM answers").fetchall()
    assert rows == [("one",), ("two",)]
    writer.close()


@pytest.mark.parametrize("name", ["../out.jsonl", "states/../../out", "a\x1bb", "a\\b"])
def test_names_that_lead_out_are_refused(storage: type[FlakyFileSystem], tmp_path: Path, name: str) -> None:
    files = storage()
    MemoryFileSystem.pipe_file(files, "/store/runs/a/config.yaml", b"name: a")
    files.store[f"/store/runs/a/{name}"] = files.store["/store/runs/a/config.yaml"]
    with pytest.raises(InputError, match="is no copy of a run"):
        fetch_copy(URL, tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("nowhere://a/b", "Protocol not known"),
        ("flaky://user:key@store/a", "without a name, key or query"),
        ("flaky://store/a?key=1", "without a name, key or query"),
        ("flaky://store/../a", "without a name, key or query"),
        ("flaky://", "write an address"),
        ("flaky://store/runs/none", "no run at"),
    ],
)
def test_wrong_addresses_are_one_line(storage: type[FlakyFileSystem], tmp_path: Path, address: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        fetch_copy(address, tmp_path / "a")


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("s3://bucket/runs/a", "s3://bucket/runs/a"),
        (Path("s3://bucket/runs/a"), "s3://bucket/runs/a"),
        (Path("file:///mnt/a"), "file:///mnt/a"),
        ("hub:owner/name", None),
        ("runs/a", None),
        ("/mnt/a:/b", None),
    ],
)
def test_addresses_are_told_from_paths(path: Path | str, address: str | None) -> None:
    assert find_address(path) == address


def test_commands_copy_resume_and_refuse(finished: Path, tmp_path: Path, trajsmith: Any) -> None:
    address = f"file://{tmp_path}/store/a"
    shutil.copytree(finished, tmp_path / "a")
    assert "files copied" in trajsmith("copy", tmp_path / "a", address).out
    assert trajsmith("copy", address, tmp_path / "b").code == 0
    done = trajsmith("resume", Path(address), "--run", tmp_path / "c")
    assert done.code == 0, done.err
    assert read_data(tmp_path / "c") == read_data(finished) == read_data(tmp_path / "b")
    done = trajsmith("copy", tmp_path / "a", tmp_path / "d")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert orjson.loads((tmp_path / "a" / ".copies.json").read_bytes())[address]["pushed"]
