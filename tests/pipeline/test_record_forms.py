"""Runs with compressed records: the same bytes everywhere, resume, look-ups, kills, and one writer."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pyarrow.parquet
import pytest

from trajsmith.api.runs import Run, load_run, resume, run
from trajsmith.pipeline import record_forms
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.diagnosis import write_plan
from trajsmith.pipeline.progress import NullProgress
from trajsmith.pipeline.record_forms import RECORD_FILES, compress_run, restore_run
from trajsmith.pipeline.record_joins import PlayedPairs
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import InputError, RunError, open_records

CONFIG = """
name: forms
seed: 5
environments:
  - {library: bank, states: {small: 1}}
sample: {count: 12, length: [3, 5]}
vary: {rates: {refused_call: 0.5}}
engine: {workers: 1}
play: {candidates: 2, faulty: 1}
verify: {best: false}
"""
STAGES = ("chains", "grounded", "tasks", "varied", "trajectories", "verdicts")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    folder = tmp_path_factory.mktemp("runs")
    config = folder / "forms.yaml"
    config.write_text(CONFIG)
    return run(config, run=folder / "plain").path


@pytest.fixture
def copied(plain: Path, tmp_path: Path) -> Path:
    shutil.copytree(plain, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def packed(copied: Path) -> Path:
    compress_run(RunDirectory(copied), NullProgress())
    assert list_forms(copied) == [f"{name}.jsonl.zst" for name in sorted(STAGES)]
    return copied


def list_forms(path: Path) -> list[str]:
    return sorted(file.name for file in path.iterdir() if file.name.partition(".")[0] in STAGES)


def read_records(path: Path) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for name in STAGES:
        with open_records(path / f"{name}.jsonl") as source:
            contents[name] = b"".join(source.iter_blocks())
    return contents


def read_rows(path: Path) -> list[Any]:
    """Return the rows and the schema, which say in a failure what bytes cannot."""
    tables = [pyarrow.parquet.read_table(file) for file in sorted(path.glob("dataset/data/*.parquet"))]
    return [[*table.to_pylist(), str(table.schema)] for table in tables]


def read_dataset(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.glob("dataset/data/*")}


def test_compressed_after_each_stage_everything_else_is_the_same(plain: Path, tmp_path: Path) -> None:
    config = tmp_path / "forms.yaml"
    config.write_text(CONFIG)
    finished = run(config, run=tmp_path / "run", overrides={"engine.compress_above_mb": 0})
    assert list_forms(tmp_path / "run") == [f"{name}.jsonl.zst" for name in sorted(STAGES)]
    assert read_records(tmp_path / "run") == read_records(plain)
    assert read_dataset(tmp_path / "run") == read_dataset(plain)
    ledgers = {file.name: file.read_bytes() for file in plain.glob("ledger/*.jsonl")}
    assert {file.name: file.read_bytes() for file in (tmp_path / "run" / "ledger").glob("*.jsonl")} == ledgers
    assert finished.summary.funnel == load_run(plain).summary.funnel


def test_small_runs_stay_plain(plain: Path) -> None:
    assert load_config(plain / "config.yaml").engine.compress_above_mb == 256
    assert list_forms(plain) == [f"{name}.jsonl" for name in sorted(STAGES)]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_export_of_compressed_records_has_the_same_bytes(
    packed: Path, plain: Path, trajsmith: Any, workers: int
) -> None:
    dataset, rows = read_dataset(packed), read_rows(packed)
    shutil.rmtree(packed / "dataset")
    config = (packed / "config.yaml").read_text()
    (packed / "config.yaml").write_text(config.replace("workers: 1", f"workers: {workers}"))
    done = trajsmith("export", packed)
    assert done.code == 0, done.err
    assert read_rows(packed) == rows
    assert read_dataset(packed) == dataset == read_dataset(plain)
    assert list_forms(packed) == [f"{name}.jsonl.zst" for name in sorted(STAGES)]


def read_output(done: Any) -> str:
    assert done.code == 0, done.err
    output: str = done.out
    return output


def test_commands_that_read_give_the_same_for_both_forms(
    packed: Path, plain: Path, tmp_path: Path, trajsmith: Any
) -> None:
    names = [play.id for play in load_run(plain).trajectories]
    for command in (["replay"], ["replay", "--id", names[3]], ["show", names[0], names[5]], ["audit"]):
        outputs = [read_output(trajsmith(command[0], path, *command[1:])) for path in (plain, packed)]
        assert outputs[0] == outputs[1].replace(str(packed), str(plain))
    for path in (plain, packed):
        read_output(trajsmith("filter", path, "--verdict", "completed", "--out", tmp_path / path.name / "best"))
        read_output(trajsmith("repair", path, "--out", tmp_path / path.name / "repaired"))
        read_output(trajsmith("report", path, "--all"))
    for part in ("best/data", "repaired/dataset/data"):
        files = [sorted((tmp_path / path.name / part).glob("*")) for path in (plain, packed)]
        assert [file.read_bytes() for file in files[0]] == [file.read_bytes() for file in files[1]] != []
    assert list_forms(packed) == [f"{name}.jsonl.zst" for name in sorted(STAGES)]


def test_the_public_functions_read_either_form(packed: Path, plain: Path) -> None:
    before, after = Run(plain), Run(packed)
    assert list(after.judged) == list(before.judged)
    assert len(after.tasks) == len(before.tasks)
    assert list(after.rows()) == list(before.rows())
    play = list(before.trajectories)[7]
    assert after.trajectories.find(play.id) == before.trajectories.find(play.id) == play
    assert after.tasks.find(play.task_id).id == play.task_id
    with pytest.raises(InputError, match=r"no record traj_0 in \S+trajectories.jsonl"):
        after.trajectories.find("traj_0")


def test_a_finished_run_is_resumed_without_being_decompressed(packed: Path, plain: Path) -> None:
    resume(packed)
    assert list_forms(packed) == [f"{name}.jsonl.zst" for name in sorted(STAGES)]
    assert read_dataset(packed) == read_dataset(plain)


def test_a_run_whose_earlier_stages_are_compressed_goes_on(packed: Path, plain: Path) -> None:
    records = read_records(plain)
    (packed / "summary.json").unlink()
    (packed / "verdicts.jsonl.zst").unlink()
    (packed / "ledger" / "verify.jsonl").unlink()
    ledger = packed / "ledger" / "play.jsonl"
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:-4]))  # as an outage leaves it
    resume(packed)
    assert list_forms(packed) == [
        *("chains.jsonl.zst", "grounded.jsonl.zst", "tasks.jsonl.zst", "trajectories.jsonl", "varied.jsonl.zst"),
        "verdicts.jsonl",
    ]
    assert read_records(packed) == records
    assert read_dataset(packed) == read_dataset(plain)


def test_changed_settings_remove_compressed_outputs_and_make_them_again(packed: Path, plain: Path) -> None:
    resume(packed, overrides={"verify.step_labels": True})
    assert "verdicts.jsonl" in list_forms(packed) and "verdicts.jsonl.zst" not in list_forms(packed)
    assert read_records(packed)["trajectories"] == read_records(plain)["trajectories"]
    assert read_records(packed)["verdicts"] != read_records(plain)["verdicts"]


def test_rounds_add_to_compressed_files(packed: Path, plain: Path, tmp_path: Path) -> None:
    shutil.copytree(plain, tmp_path / "other")
    count = load_run(plain).summary.funnel["accepted"] + 3
    for path, most in ((packed, 0), (tmp_path / "other", None)):
        resume(path, overrides={"accept.count": count, "engine.compress_above_mb": most})
    assert len(orjson.loads((packed / "ledger" / "rounds.json").read_bytes())) > 1
    assert list_forms(packed) == [f"{name}.jsonl.zst" for name in sorted(STAGES)]
    assert list_forms(tmp_path / "other") == [f"{name}.jsonl" for name in sorted(STAGES)]
    assert read_records(packed) == read_records(tmp_path / "other")
    assert len(read_records(packed)["chains"]) > len(read_records(plain)["chains"])


def test_shards_that_are_compressed_are_merged(plain: Path, tmp_path: Path, trajsmith: Any) -> None:
    config = tmp_path / "forms.yaml"
    config.write_text(CONFIG + f"run: {tmp_path / 'run'}\n")
    for number, most in ((1, "0"), (2, "null")):
        done = trajsmith("run", config, "--shard", f"{number}/2", "--set", f"engine.compress_above_mb={most}")
        assert done.code == 0, done.err
    shards = [tmp_path / f"run-{number}-of-2" for number in (1, 2)]
    assert [len(list(shard.glob("*.zst"))) for shard in shards] == [6, 0]
    assert trajsmith("merge", *shards, "--out", tmp_path / "merged").code == 0
    assert read_records(tmp_path / "merged") == read_records(plain)
    assert read_dataset(tmp_path / "merged") == read_dataset(plain)


def test_the_command_compresses_and_takes_back(copied: Path, plain: Path, trajsmith: Any) -> None:
    done = trajsmith("compress", copied)
    assert done.code == 0, done.err
    assert "trajectories.jsonl.zst" in done.out
    assert read_records(copied) == read_records(plain)
    assert trajsmith("compress", copied).code == 0, "a second time there is nothing to do"
    done = trajsmith("compress", copied, "--undo")
    assert done.code == 0, done.err
    assert list_forms(copied) == [f"{name}.jsonl" for name in sorted(STAGES)]
    assert {name: (copied / f"{name}.jsonl").read_bytes() for name in STAGES} == read_records(plain)


def test_a_run_that_is_not_finished_is_not_compressed(copied: Path, trajsmith: Any) -> None:
    (copied / "summary.json").unlink()
    done = trajsmith("compress", copied)
    assert done.code == 2
    assert done.err.startswith(f"error: {copied} is not finished")
    assert list_forms(copied) == [f"{name}.jsonl" for name in sorted(STAGES)]


@pytest.mark.parametrize("undo", [False, True], ids=["compress", "undo"])
def test_killed_between_two_files_the_same_command_goes_on(
    copied: Path, plain: Path, monkeypatch: pytest.MonkeyPatch, undo: bool
) -> None:
    directory = RunDirectory(copied)
    if undo:
        compress_run(directory, NullProgress())
    work, name = (restore_run, "restore_records") if undo else (compress_run, "compress_records")
    original, calls = getattr(record_forms, name), []

    def stop_at_third(path: Path, *arguments: Any, **named: Any) -> None:
        calls.append(path)
        if len(calls) == 3:
            os._exit(9)
        original(path, *arguments, **named)

    pid = os.fork()
    if pid == 0:
        try:
            monkeypatch.setattr(record_forms, name, stop_at_third)
            work(directory, NullProgress())
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert {file.rpartition(".")[2] for file in list_forms(copied)} == {"jsonl", "zst"}
    assert read_records(copied) == read_records(plain)
    work(directory, NullProgress())
    assert list_forms(copied) == [f"{name}.jsonl{'' if undo else '.zst'}" for name in sorted(STAGES)]
    assert not (copied / ".tmp").exists()
    assert read_records(copied) == read_records(plain)


def test_a_second_writer_is_refused(copied: Path, trajsmith: Any) -> None:
    with RunDirectory(copied).lock(), pytest.raises(RunError, match="is being written by process"):
        compress_run(RunDirectory(copied), NullProgress())
    assert list_forms(copied) == [f"{name}.jsonl" for name in sorted(STAGES)]


def test_what_is_read_goes_on_while_the_form_changes(copied: Path, plain: Path) -> None:
    plays = iter(load_run(copied).trajectories)
    first = [next(plays) for _ in range(3)]
    compress_run(RunDirectory(copied), NullProgress())
    assert [*first, *plays] == list(load_run(plain).trajectories)


@pytest.mark.parametrize("command", ["export", "replay", "resume", "report", "audit"])
def test_damage_is_one_line_that_names_the_file(packed: Path, trajsmith: Any, command: str) -> None:
    file = packed / "trajectories.jsonl.zst"
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0x40
    file.write_bytes(data)
    done = trajsmith(command, packed)
    lines = [line for line in done.err.splitlines() if line.startswith("error")]
    assert done.code == 2
    assert len(lines) == 1
    assert lines[0].startswith(f"error: {file} is damaged: frame 1 ")


def test_a_torn_file_is_one_line_that_names_the_file(packed: Path, trajsmith: Any) -> None:
    file = packed / "verdicts.jsonl.zst"
    file.write_bytes(file.read_bytes()[:-30])
    done = trajsmith("compress", packed, "--undo")
    assert (done.code, done.err.splitlines()[-1]) == (
        2,
        f"error: {file} is damaged: it does not end in the table of its frames; put back a copy of it",
    )
    assert file.exists()


def test_a_linked_compressed_file_is_refused(packed: Path, tmp_path: Path, trajsmith: Any) -> None:
    file = packed / "trajectories.jsonl.zst"
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    done = trajsmith("show", packed, "traj_0123456789abcdef")
    assert done.code == 2
    assert f"{file} is a symbolic link" in done.err


def test_records_of_every_kind_are_shown(packed: Path, plain: Path, trajsmith: Any) -> None:
    assert set(RECORD_FILES) >= {f"{name}.jsonl" for name in STAGES}
    for name in STAGES:
        line = (plain / f"{name}.jsonl").read_text().splitlines()[-1]
        record = orjson.loads(line)
        assert record.pop("checksum")
        for path in (plain, packed):
            assert read_output(trajsmith("show", path, record["id"], "--line")) == line + "\n"
            assert orjson.loads(read_output(trajsmith("show", path, record["id"]))) == record


@pytest.mark.parametrize(
    ("name", "error"),
    [
        pytest.param("traj_0123456789abcdef", "no record traj_0123456789abcdef in ", id="unknown"),
        pytest.param(
            "bank", "'bank' is no id of a record of a run: those begin with chain_, ground_, task_", id="kind"
        ),
    ],
)
def test_what_cannot_be_shown_is_one_line(plain: Path, trajsmith: Any, name: str, error: str) -> None:
    done = trajsmith("show", plain, name)
    assert done.code == 2
    assert done.err.startswith(f"error: {error}")


def test_an_id_of_bytes_that_are_no_text_is_one_line(plain: Path, trajsmith: Any) -> None:
    for command in (("show", plain, "traj_\udcff"), ("replay", plain, "--id", "traj_\udcff")):
        done = trajsmith(*command)
        assert done.code == 2
        assert "Traceback" not in done.err


def test_files_that_are_no_run_get_no_index_beside_them(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next export into the folder of a package would refuse a file that no export writes."""
    monkeypatch.setattr("trajsmith.records.record_files.INDEXED", 100)
    shutil.rmtree(copied / "ledger")
    before = sorted(copied.iterdir())
    with RunDirectory(copied).open_lookup("trajectories.jsonl") as lookup:
        assert lookup.find_line("traj_0123456789abcdef") is None
    assert sorted(copied.iterdir()) == before


def test_a_plan_of_a_compressed_evaluation_avoids_its_tasks(
    plain: Path, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr("trajsmith.pipeline.diagnosis.build_plan", lambda _, avoid: asked.append([*avoid]))
    for folder in (plain, packed, tmp_path):
        assert write_plan(SimpleNamespace(), folder, tmp_path) is None
    assert asked == [[plain / "tasks.jsonl"], [packed / "tasks.jsonl"], []]


def test_before_dialogues_are_played_none_is_found(copied: Path) -> None:
    (copied / "trajectories.jsonl").unlink()
    assert PlayedPairs(RunDirectory(copied)).find(["traj_0123456789abcdef"]) == []


def test_a_large_plain_run_gets_an_index_that_a_change_makes_worthless(
    copied: Path, trajsmith: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trajsmith.records.record_files.INDEXED", 100)
    lines = (copied / "trajectories.jsonl").read_bytes().splitlines(keepends=True)
    last = orjson.loads(lines[-1])["id"]
    read_output(trajsmith("show", copied, last))
    assert (copied / "trajectories.jsonl.ids").is_file()
    (copied / "trajectories.jsonl").write_bytes(b"".join(lines[:-1]))
    assert trajsmith("show", copied, last).code == 2
    compress_run_of = trajsmith("compress", copied, "--undo")
    assert compress_run_of.code == 0
