"""Copies of runs on storage of fsspec: whatever stops them, what is there is a run that resume finishes alike."""

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import fsspec
import orjson
import pytest
import yaml
from fsspec.implementations.memory import MemoryFileSystem

from trajsmith.api.runs import load_run, resume, run
from trajsmith.pipeline.config import EngineSettings, RunConfig, load_config
from trajsmith.pipeline.config_changes import apply_change, plan_change
from trajsmith.pipeline.object_storage import find_address
from trajsmith.pipeline.progress import NullProgress
from trajsmith.pipeline.record_forms import compress_run
from trajsmith.pipeline.repairs import build_repair_config
from trajsmith.pipeline.run_copies import RunCopy, fetch_copy, push_copy
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


def count_operations(
    copied: RunDirectory, storage: type[FlakyFileSystem], before: dict[str, bytes], known: bytes
) -> int:
    """Return the number of operations of a copy that nothing stops."""
    storage.store.clear()
    for name, data in before.items():
        MemoryFileSystem.pipe_file(storage(), name, data)
    (copied.path / ".copies.json").write_bytes(known)
    storage.operations = 0
    push_copy(copied, URL)
    return storage.operations


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
    total = count_operations(copied, storage, before, known)
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
        steps, step = steps + 1, step + 1 if step < 6 or step > total - 16 else min(step + 7, total - 15)
    assert steps > 20


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


ROUNDS = {**yaml.safe_load(CONFIG), "accept": {"count": 4}, "sample": {"count": 3, "length": [2, 3]}}


def test_a_copy_that_stops_between_ledgers_of_a_run_in_rounds_goes_on(
    storage: type[FlakyFileSystem], tmp_path: Path
) -> None:
    first = run({**ROUNDS, "accept": {"count": 2}}, run=tmp_path / "a").path
    push_copy(RunDirectory(first), URL)
    before = {name: bytes(file.getvalue()) for name, file in storage.store.items()}
    known = (first / ".copies.json").read_bytes()
    resume(first, overrides={"accept.count": 9})
    assert (first / "ledger" / "rounds.json").is_file()
    total = count_operations(RunDirectory(first), storage, before, known)
    for step in range(total - 16, total + 1):
        storage.store.clear()
        for name, data in before.items():
            MemoryFileSystem.pipe_file(storage(), name, data)
        (first / ".copies.json").write_bytes(known)
        storage.operations, storage.fails_at = 0, step
        with suppress(RunError):
            push_copy(RunDirectory(first), URL)
        storage.fails_at = None
        back = fetch_copy(URL, tmp_path / f"b{step}")
        resume(back)
        rows = len(load_run(back).dataset())
        assert rows in (2, 9)
        assert read_data(back)["verdicts"].startswith(read_data(first)["verdicts"][:1000])
        shutil.rmtree(back)


def test_two_commands_at_once_and_slow_storage_copy_one_after_the_other(
    storage: type[FlakyFileSystem], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, most = 0, 0
    push = RunCopy.push

    def slow_push(copy: RunCopy) -> int:
        nonlocal now, most
        now, most = now + 1, max(most, now + 1)
        time.sleep(0.3)
        try:
            return push(copy)
        finally:
            now -= 1

    monkeypatch.setattr(RunCopy, "push", slow_push)
    made = run(yaml.safe_load(CONFIG), run=tmp_path / "a", overrides={"engine.copy_to": URL, "engine.copy_every": 0.01})
    assert most == 1
    assert read_data(fetch_copy(URL, tmp_path / "b")) == read_data(made.path)


def test_a_file_that_a_failed_update_left_behind_is_removed(
    copied: RunDirectory, storage: type[FlakyFileSystem]
) -> None:
    push_copy(copied, URL)
    (copied.path / "extra.txt").write_text("here for a moment")
    storage.operations, storage.fails_at = 0, 3
    with pytest.raises(RunError):
        push_copy(copied, URL)
    storage.fails_at = None
    MemoryFileSystem.pipe_file(storage(), "/store/runs/a/extra.txt", b"here for")
    (copied.path / "extra.txt").unlink()
    push_copy(copied, URL)
    assert not [name for name in storage.store if name.endswith("extra.txt")]


def test_what_another_machine_still_wrote_is_written_over(
    copied: RunDirectory, storage: type[FlakyFileSystem], tmp_path: Path
) -> None:
    push_copy(copied, URL)
    MemoryFileSystem.pipe_file(storage(), "/store/runs/a/report.html", b"an older one, late")
    assert push_copy(copied, URL) == 1
    assert (fetch_copy(URL, tmp_path / "b") / "report.html").read_bytes() == (copied.path / "report.html").read_bytes()


def test_a_takeover_stops_the_run_that_goes_on_here(
    finished: Path, storage: type[FlakyFileSystem], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    push = RunCopy.push

    def push_and_lose(copy: RunCopy) -> int:
        count = push(copy)
        MemoryFileSystem.pipe_file(storage(), "/store/runs/a/.writer.json", b'{"writer": "another"}')
        return count

    monkeypatch.setattr(RunCopy, "push", push_and_lose)
    config = {**yaml.safe_load(CONFIG), "sample": {"count": 200, "length": [2, 3]}}
    with pytest.raises(RunError, match="was taken over by another directory"):
        run(config, run=tmp_path / "a", overrides={"engine.copy_to": URL, "engine.copy_every": 0.01})
    assert not (tmp_path / "a" / "summary.json").exists(), "it stopped and was not finished"


def test_of_two_equal_directories_one_is_refused(copied: RunDirectory, storage: type[FlakyFileSystem]) -> None:
    push_copy(copied, URL)
    shutil.copytree(copied.path, copied.path.with_name("clone"))
    push_copy(RunDirectory(copied.path.with_name("clone")), URL)
    with pytest.raises(RunError, match="was taken over by another directory"):
        push_copy(copied, URL)


def test_a_folder_that_is_no_copy_is_not_touched(copied: RunDirectory, tmp_path: Path) -> None:
    precious = tmp_path / "home" / "precious.txt"
    precious.parent.mkdir()
    precious.write_text("keep")
    address = f"file://{precious.parent}"
    (copied.path / ".copies.json").write_text(
        orjson.dumps({address: {"url": address, "files": {"precious.txt": [4, 1, "x"]}}}).decode()
    )
    with pytest.raises(InputError, match="no copy of a run"):
        push_copy(copied, address)
    assert precious.read_text() == "keep"


def test_repairs_of_a_run_with_a_copy_have_none(finished: Path, tmp_path: Path) -> None:
    config = load_config(finished / "config.yaml", [f"engine.copy_to={URL}"])
    assert config.engine.copy_to == URL
    assert build_repair_config(config, tmp_path).engine.copy_to is None


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


@pytest.mark.parametrize("name", ["../out.jsonl", "states/../../out", "a\x1bb"])
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
        ("flaky://store//a", "write an address"),
        ("Flaky://store/a", "write an address"),
        ("file://store/a", "three slashes"),
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
    assert orjson.loads((tmp_path / "a" / ".copies.json").read_bytes())[address]["writer"]


def test_a_run_whose_directory_is_an_address_is_made_here_and_copied_there(
    finished: Path, tmp_path: Path, trajsmith: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    address = f"file://{tmp_path}/store/big"
    Path("big.yaml").write_text(CONFIG + f"run: {address}\n")
    done = trajsmith("run", "big.yaml")
    assert done.code == 0, done.err
    assert read_data(Path("runs/big")) == read_data(Path("store/big")) == read_data(finished)
    assert load_config(Path("runs/big/config.yaml")).engine.copy_to == address
    shutil.rmtree("runs/big")  # another machine
    refused = trajsmith("report", address)
    assert (refused.code, refused.err.count("\n")) == (2, 1) and f"trajsmith copy {address} runs/big" in refused.err
    stop_early(Path("store/big"))
    done = trajsmith("resume", address)
    assert done.code == 0, done.err
    assert read_data(Path("runs/big")) == read_data(Path("store/big")) == read_data(finished)


@pytest.mark.parametrize("address", ["s3://bucket/runs/a", "s3:/bucket/runs/a", Path("s3://bucket/runs/a")], ids=repr)
@pytest.mark.parametrize("engine", [None, {"workers": 1}, EngineSettings(workers=1)], ids=["none", "keys", "made"])
def test_an_address_is_read_in_each_form(address: Any, engine: Any) -> None:
    more = {} if engine is None else {"engine": engine}
    config = RunConfig.model_validate({"name": "a", "run": address, "environments": [{"library": "bank"}], **more})
    assert (config.run, config.engine.copy_to) == (Path("runs/a"), "s3://bucket/runs/a")
    assert config.engine.workers == ("auto" if engine is None else 1)


def test_the_option_for_the_directory_takes_an_address(
    tmp_path: Path, trajsmith: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("big.yaml").write_text(CONFIG)
    done = trajsmith("run", "big.yaml", "--run", f"file://{tmp_path}/store/big")
    assert done.code == 0, done.err
    assert read_data(Path("runs/big")) == read_data(Path("store/big"))
    done = trajsmith("run", "big.yaml", "--run", f"file://{tmp_path}/store/big", "--shard", "1/2")
    assert done.code == 0, done.err
    assert read_records(Path("runs/big-1-of-2")) == read_records(Path("store/big-1-of-2"))


def test_a_directory_that_is_no_address_or_two_is_refused(tmp_path: Path) -> None:
    key, two = tmp_path / "key.yaml", tmp_path / "two.yaml"
    key.write_text(f"{CONFIG}run: s3://user:key@bucket/a\n")
    two.write_text(CONFIG.replace("engine: {", "engine: {copy_to: s3://bucket/b, ") + "run: s3://bucket/a\n")
    with pytest.raises(InputError, match="without a name, key or query"):
        load_config(key)
    with pytest.raises(InputError, match="leave one of them out"):
        load_config(two)
